"""Probabilities that mean something: a temperature and a sense for strangers, both from validation classes.

A method's softmax is as sure as its scores are large, which says little. Here its probabilities are raised to a power
that makes them frequencies on tasks of classes it was not trained on, and a node's closeness to the nearest prototype
is turned into the probability that it is in any of the classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from fewnode.episodes import Episode, EpisodeSampler
from fewnode.evaluation import Probabilities
from fewnode.graph import Graph, Ints
from fewnode.methods.gpn import Known, Prototypical

SHOTS, QUERIES, TASKS = (1, 2, 5, 10), 5, 40
OTHERS, RARE = 200, 0.05
"""What being in none of the classes is learned from: so many nodes of other classes a task; and the share that members
have of the weight."""
Floats = NDArray[np.floating]


@dataclass(frozen=True)
class Temperature:
    """p raised to exp(level + by_shots log K + by_ways log N + by_nearness s) and normalised.

    K is the harmonic mean of the shots; s is how near a query is to the labelled node nearest to it. A node like none
    of them is still a little more like one than like another, and its scores do not show that this is chance.
    """

    level: float = 0.0
    by_shots: float = 0.0
    by_ways: float = 0.0
    by_nearness: float = 0.0

    def power(self, support_y: Ints, near: Floats | float = 0.0) -> Floats:
        """Of each query, or of all if `near` is one number."""
        task = np.array([self.level, self.by_shots, self.by_ways]) @ _shape(support_y)
        return np.exp(task + self.by_nearness * np.asarray(near, np.float64))

    def __call__(self, probability: Probabilities, support_y: Ints, near: Floats | float = 0.0) -> Probabilities:
        power = np.broadcast_to(self.power(support_y, near), probability.shape[:1])[:, None]
        score = power * np.log(np.maximum(probability, 1e-30, dtype=np.float64))
        weight = np.exp(score - score.max(axis=1, keepdims=True))
        found: Probabilities = (weight / weight.sum(axis=1, keepdims=True)).astype(np.float32)
        return found


def mean_shots(support_y: Ints) -> float:
    return float(1 / np.mean(1 / np.bincount(support_y)))


def _shape(support_y: Ints) -> NDArray[np.float64]:
    return np.array([1.0, np.log(mean_shots(support_y)), np.log(support_y.max() + 1)])


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
        shots = str(round(mean_shots(task.support_y)))
        right.setdefault(shots, []).append(float((answer.argmax(axis=1) == task.query_y).mean()))
    return {shots: float(np.mean(shares)) for shots, shares in right.items()}


def fit_temperature(
    answers: Sequence[Probabilities], tasks: Sequence[Episode], near: Sequence[Floats] | None = None
) -> Temperature:
    """The temperature that minimises the negative log-likelihood; none if there is no task to learn from.

    `near`: of each task, how near its queries are to the labelled node nearest to them, if that is to count.
    """
    if not tasks:
        return Temperature()
    width = max(task.n_way for task in tasks)
    padded = [np.pad(p, ((0, 0), (0, width - p.shape[1]))) for p in answers]
    score = np.log(np.maximum(np.concatenate(padded).astype(np.float64), 1e-30))
    label = np.concatenate([task.query_y for task in tasks])
    closest = np.zeros(label.size) if near is None else np.concatenate(near).astype(np.float64)
    middle, spread = closest.mean(), closest.std() + 1e-12
    shape = np.concatenate([np.tile(_shape(task.support_y), (task.query.size, 1)) for task in tasks])
    shape = np.column_stack([shape, (closest - middle) / spread])
    rows = np.arange(label.size)

    def loss(at: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        scaled = np.exp(shape @ at)[:, None] * score
        scaled -= scaled.max(axis=1, keepdims=True)
        p = np.exp(scaled)
        total = p.sum(axis=1)
        by_power = (p * scaled).sum(axis=1) / total - scaled[rows, label]  # of each row, by the logarithm of its power
        value = np.mean(np.log(total) - scaled[rows, label])
        # where every answer is right, being ever surer would never end
        return float(value + 1e-3 * at @ at), shape.T @ by_power / label.size + 2e-3 * at

    from scipy.optimize import minimize  # half a second to import, and only a fit needs it

    level, by_shots, by_ways, slope = map(
        float, minimize(loss, np.zeros(4), jac=True, method="L-BFGS-B", bounds=[(-8, 8)] * 4).x
    )
    by_nearness = slope / float(spread) if near is not None else 0.0
    return Temperature(level - by_nearness * float(middle), by_shots, by_ways, by_nearness)


def fit_known(method: Prototypical, graph: Graph, members: Sequence[Ints], way: int) -> Known | None:
    """Logistic regression of being in a task on closeness, over its queries and nodes of the classes left out.

    Tasks of one class, of two and of `way`: of several prototypes one is near sooner.
    """
    if len(members) < 3:
        return None
    everyone, class_of = np.sort(np.concatenate(members)), np.full(graph.n, -1)
    for c, nodes in enumerate(members):
        class_of[nodes] = c
    rows, weight = [], []
    for task in _membership_tasks(members, min(way, len(members) - 1)):
        outside = everyone[np.isin(class_of[everyone], class_of[task.support], invert=True)]
        outside = outside[:: max(1, outside.size // OTHERS)][:OTHERS]
        asked = np.concatenate([task.query, outside])
        ready = method.ready(graph, task.support, task.support_y)
        top, place = method.nearness(graph, ready, asked).max(dim=1)
        crowd = method.crowd(graph, asked)
        given = (top, torch.zeros_like(top) if crowd is None else crowd, ready.shots.log()[place])
        shape = np.full((asked.size, 2), (np.log(task.n_way), 1.0))
        rows.append(np.column_stack([*(part.cpu().numpy() for part in given), shape]))
        weight.append(np.repeat([RARE / task.query.size, (RARE - 1) / outside.size], [task.query.size, outside.size]))
    if not rows:
        return None
    size = float(np.mean([nodes.size for nodes in members]))
    return _logistic(np.concatenate(rows).astype(np.float64), np.concatenate(weight) / len(rows), size / graph.n)


def _membership_tasks(members: Sequence[Ints], way: int) -> list[Episode]:
    found: list[Episode] = []
    ways = sorted({1, 2, way})
    for n_way in ways:
        tasks = calibration_tasks(members, max(2, n_way), count=TASKS // len(ways))
        found += tasks if n_way > 1 else [_first_class(task) for task in tasks]
    return found


def _first_class(task: Episode) -> Episode:
    """What is left of a task with one class alone."""
    own, asked = task.support_y == 0, task.query_y == 0
    return Episode(task.support[own], task.support_y[own], task.query[asked], task.query_y[asked])


def _logistic(rows: NDArray[np.float64], weight: NDArray[np.float64], class_share: float) -> Known:
    """From rows of closeness, crowd, log K, log N and 1, and their weights, which are negative for strangers.

    Members have `RARE` of the weight of every task: most nodes of a network are strangers, so it is the nearest of them
    that have to be told from members. The odds are then taken back to those of as many members as strangers.
    """
    middle, spread = rows[:, :2].mean(axis=0), rows[:, :2].std(axis=0) + 1e-12
    columns = np.column_stack([(rows[:, :2] - middle) / spread, rows[:, 2:]])
    sign, weight = np.sign(weight), np.abs(weight)

    def loss(at: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        margin = sign * (columns @ at)
        slope = -weight * sign * np.exp(-np.logaddexp(0, margin))
        value = weight @ np.logaddexp(0, -margin) + 1e-5 * at @ at
        return float(value), columns.T @ slope + 2e-5 * at

    from scipy.optimize import minimize  # half a second to import, and only a fit needs it

    found = minimize(loss, np.zeros(5), jac=True, method="L-BFGS-B").x
    slope, by_crowd = map(float, found[:2] / spread)
    intercept = float(found[4] - found[:2] @ (middle / spread) - np.log(RARE / (1 - RARE)))
    return Known(slope, float(found[2]), intercept, by_crowd, float(found[3]), class_share)
