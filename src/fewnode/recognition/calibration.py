"""Probabilities that mean something: a temperature, learned on validation classes.

A method's softmax is as sure as its scores are large, which says little. Here its probabilities are raised to a power
that makes them frequencies on tasks of classes it was not trained on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fewnode.episodes import Episode, EpisodeSampler, Task
from fewnode.graph import Ints
from fewnode.recognition.membership import MembershipModel
from fewnode.vectors import Probabilities

SHOTS, QUERIES, TASKS = (1, 2, 5, 10), 5, 40
DOUBT = 0.1
"""What it costs to differ from the prior, by the square of the number of classes."""
STRAY = 0.4
"""How far the logarithm of the power may be from what other networks taught: its standard deviation between them."""
REVISIONS = np.linspace(-1.5, 1.5, 61)
MAX_LOG_POWER = 30.0
"""A power beyond leaves no probability but 0 and 1, or makes all the same."""
CONVERGED = {"ftol": 1e-15, "gtol": 1e-9}
"""Of L-BFGS: where it would stop by default, results still depend on rounding in what it is given."""
MODES = ("inductive", "transductive")
Floats = NDArray[np.floating]


@dataclass(frozen=True)
class Temperature:
    """p raised to exp(level + by_shots log K + by_ways log N + by_nearness s + by_words w) and normalised.

    K is the harmonic mean of the shots, where a description alone counts as one; w is the share of classes that only a
    description stands for; s is how near a query is to the labelled node nearest to it. A node like none of them is
    still a little more like one than like another, and its scores do not show that this is chance.
    """

    level: float = 0.0
    by_shots: float = 0.0
    by_ways: float = 0.0
    by_nearness: float = 0.0
    by_words: float = 0.0

    def power(self, task: Task, near: Floats | float = 0.0) -> Floats:
        """Of each query, or of all if `near` is one number."""
        power = np.array([self.level, self.by_shots, self.by_ways, self.by_words]) @ _shape(task)
        power = power + self.by_nearness * np.asarray(near, np.float64)
        return np.exp(np.clip(power, -MAX_LOG_POWER, MAX_LOG_POWER))

    def __call__(self, probability: Probabilities, task: Task, near: Floats | float = 0.0) -> Probabilities:
        power = np.broadcast_to(self.power(task, near), probability.shape[:1])[:, None]
        score = power * np.log(np.maximum(probability, 1e-30, dtype=np.float64))
        weight = np.exp(score - score.max(axis=1, keepdims=True))
        found: Probabilities = (weight / weight.sum(axis=1, keepdims=True)).astype(np.float32)
        return found

    def revision(self, task: Task, left_out: LeftOut) -> float:
        """What labelled nodes, each predicted from all others, say should be added to `level`.

        The most likely one, if it is drawn from a normal distribution with a standard deviation of `STRAY` beforehand.
        """
        score = self.power(task) * np.log(np.maximum(left_out.probability, 1e-30, dtype=np.float64))
        scaled = np.exp(REVISIONS)[:, None, None] * score
        scaled -= scaled.max(axis=2, keepdims=True)
        log_prob = scaled[:, np.arange(len(score)), left_out.y] - np.log(np.exp(scaled).sum(axis=2))
        return float(REVISIONS[np.argmax(log_prob.sum(axis=1) - REVISIONS**2 / (2 * STRAY**2))])


@dataclass(frozen=True, eq=False)
class LeftOut:
    """Labelled nodes, each asked about with the others as its support set, and their classes."""

    probability: Probabilities
    y: Ints


NO_TEMPERATURE = Temperature()


def mean_shots(task: Task) -> float:
    """The harmonic mean of the labelled nodes a class; a description alone counts as one."""
    return float(1 / np.mean(1 / np.maximum(np.bincount(task.support_y, minlength=task.n_way), 1)))


def _shape(task: Task) -> NDArray[np.float64]:
    words = np.mean(np.bincount(task.support_y, minlength=task.n_way) == 0)
    return np.array([1.0, np.log(mean_shots(task)), np.log(task.n_way), words])


def calibration_tasks(members: Sequence[Ints], way: int, seed: int = 1, count: int = TASKS) -> list[Episode]:
    """`count` tasks of each of several shots, of those classes that have the nodes for them."""
    found: list[Episode] = []
    for k_shot in SHOTS:
        large = [nodes for nodes in members if nodes.size >= k_shot + QUERIES]
        if len(large) > 1:
            found += EpisodeSampler.among(large, min(way, len(large)), k_shot, QUERIES, seed).take(count)
    return found


def accuracy_by_shots(answers: Sequence[Probabilities], tasks: Sequence[Episode]) -> dict[str, float]:
    """The share of right answers at each number of shots."""
    right: dict[str, list[float]] = {}
    for answer, task in zip(answers, tasks, strict=True):
        shots = str(round(mean_shots(task.task)))
        right.setdefault(shots, []).append(float((answer.argmax(axis=1) == task.query_y).mean()))
    return {shots: float(np.mean(shares)) for shots, shares in right.items()}


def fit_temperature(
    answers: Sequence[Probabilities],
    tasks: Sequence[Episode],
    near: Sequence[Floats] | None = None,
    prior: Temperature = NO_TEMPERATURE,
    doubt: float = 1e-3,
) -> Temperature:
    """The temperature that minimises the negative log-likelihood; the prior if there is no task to learn from.

    `near`: of each task, how near its queries are to the labelled node nearest to them, if that is to count. `doubt`
    is how much it costs to differ from the prior: where every answer is right, being ever surer would never end.
    """
    if not tasks:
        return prior
    width = max(task.n_way for task in tasks)
    padded = [np.pad(p, ((0, 0), (0, width - p.shape[1]))) for p in answers]
    score = np.log(np.maximum(np.concatenate(padded).astype(np.float64), 1e-30))
    label = np.concatenate([task.query_y for task in tasks])
    closest = np.zeros(label.size) if near is None else np.concatenate(near).astype(np.float64)
    middle, spread = closest.mean(), closest.std() + 1e-12
    shape = np.concatenate([np.tile(_shape(task.task), (task.query.size, 1)) for task in tasks])
    shape = np.column_stack([shape, (closest - middle) / spread])
    rows = np.arange(label.size)
    slope = prior.by_nearness if near is not None else 0.0
    level = prior.level + slope * middle
    start = np.array([level, prior.by_shots, prior.by_ways, prior.by_words, slope * spread])

    def loss(at: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        scaled = np.exp(shape @ at)[:, None] * score
        scaled -= scaled.max(axis=1, keepdims=True)
        p = np.exp(scaled)
        total = p.sum(axis=1)
        by_power = (p * scaled).sum(axis=1) / total - scaled[rows, label]  # of each row, by the logarithm of its power
        value = np.mean(np.log(total) - scaled[rows, label])
        away = at - start
        return float(value + doubt * away @ away), shape.T @ by_power / label.size + 2 * doubt * away

    from scipy.optimize import minimize  # half a second to import, and only a fit needs it

    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=[(-8, 8)] * 5, options=CONVERGED).x
    level, by_shots, by_ways, by_words, slope = map(float, found)
    by_nearness = slope / float(spread) if near is not None else 0.0
    return Temperature(level - by_nearness * float(middle), by_shots, by_ways, by_nearness, by_words)


@dataclass(frozen=True)
class CalibrationPrior:
    """What other networks taught about being sure, for each mode, and about nodes of none of the classes."""

    temperatures: Mapping[str, Temperature]
    membership: MembershipModel
