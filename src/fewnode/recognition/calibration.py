"""Probabilities that mean something, learned on known classes: a temperature, and a sense of being in no class.

A method's softmax is as sure as its scores are large, which says little. Here its probabilities are raised to a power
that makes them frequencies on tasks of classes it was not trained on. How near a node is to a class becomes P(it is in
any of them): learned on tasks of some known classes, and nodes of those left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fewnode.episodes import Episode, Task, TaskSampler
from fewnode.graph import Ints
from fewnode.vectors import Probabilities

if TYPE_CHECKING:
    from fewnode.recognition.space import Space

SHOTS, QUERIES, TASKS = (1, 2, 5, 10), 5, 40
DOUBT = 0.1
"""What it costs a temperature to differ from the prior, by the square of the number of classes."""
STRAY = 0.4
"""How far the logarithm of the power may be from what other networks taught: its standard deviation between them."""
REVISIONS = np.linspace(-1.5, 1.5, 61)
MAX_LOG_POWER = 30.0
"""A power beyond leaves no probability but 0 and 1, or makes all the same."""
CONVERGED = {"ftol": 1e-15, "gtol": 1e-9}
"""Of L-BFGS: where it would stop by default, results still depend on rounding in what it is given."""
MODES = ("inductive", "transductive")
Floats = NDArray[np.floating[Any]]
Doubles = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LeftOut:
    """Labelled nodes, each asked about with the others as its support set, and their classes."""

    probability: Probabilities
    y: Ints


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
        """The power of each query, or of all if `near` is one number."""
        power = np.array([self.level, self.by_shots, self.by_ways, self.by_words]) @ _shape(task)
        power = power + self.by_nearness * np.asarray(near, np.float64)
        return np.exp(np.clip(power, -MAX_LOG_POWER, MAX_LOG_POWER))

    def __call__(self, probability: Probabilities, task: Task, near: Floats | float = 0.0) -> Probabilities:
        power = np.broadcast_to(self.power(task, near), probability.shape[:1])[:, None]
        score = power * np.log(np.maximum(probability, 1e-30, dtype=np.float64))
        weight = np.exp(score - score.max(axis=1, keepdims=True))
        return np.asarray(weight / weight.sum(axis=1, keepdims=True), np.float32)

    def revision(self, task: Task, left_out: LeftOut) -> float:
        """What labelled nodes, each predicted from all others, say should be added to `level`.

        The most likely one, if it is drawn from a normal distribution with a standard deviation of `STRAY` beforehand.
        """
        score = self.power(task) * np.log(np.maximum(left_out.probability, 1e-30, dtype=np.float64))
        scaled = np.exp(REVISIONS)[:, None, None] * score
        scaled -= scaled.max(axis=2, keepdims=True)
        log_prob = scaled[:, np.arange(len(score)), left_out.y] - np.log(np.exp(scaled).sum(axis=2))
        likely = log_prob.sum(axis=1) - REVISIONS**2 / (2 * STRAY**2)
        best = int(np.clip(likely.argmax(), 1, likely.size - 2))
        before, here, after = likely[best - 1 : best + 2]  # the top of the parabola through these: no jump between two
        top = (before - after) / min(2 * (before - 2 * here + after), -1e-9)
        return float(REVISIONS[best] + np.clip(top, -1, 1) * (REVISIONS[1] - REVISIONS[0]))


NO_TEMPERATURE = Temperature()


def _mean_shots(task: Task) -> float:
    """The harmonic mean of the labelled nodes a class; a description alone counts as one."""
    return float(1 / np.mean(1 / np.maximum(np.bincount(task.support_y, minlength=task.n_way), 1)))


def _shape(task: Task) -> Doubles:
    words = np.mean(np.bincount(task.support_y, minlength=task.n_way) == 0)
    return np.array([1.0, np.log(_mean_shots(task)), np.log(task.n_way), words])


def calibration_tasks(members: Sequence[Ints], way: int, seed: int = 1, count: int = TASKS) -> list[Episode]:
    """`count` tasks of each of several shots, of those classes that have the nodes for them."""
    found: list[Episode] = []
    for k_shot in SHOTS:
        large = [nodes for nodes in members if nodes.size >= k_shot + QUERIES]
        if len(large) > 1:
            found += TaskSampler(large, min(way, len(large)), k_shot, QUERIES, seed).take(count)
    return found


def accuracy_by_shots(answers: Sequence[Probabilities], tasks: Sequence[Episode]) -> dict[str, float]:
    """The share of right answers at each number of shots."""
    right: dict[str, list[float]] = {}
    for answer, task in zip(answers, tasks, strict=True):
        shots = str(round(_mean_shots(task.task)))
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
    middle, spread, rows = closest.mean(), closest.std() + 1e-12, np.arange(label.size)
    shape = np.concatenate([np.tile(_shape(task.task), (task.query.size, 1)) for task in tasks])
    shape = np.column_stack([shape, (closest - middle) / spread])
    slope = prior.by_nearness if near is not None else 0.0
    start = np.array([prior.level + slope * middle, prior.by_shots, prior.by_ways, prior.by_words, slope * spread])

    def loss(at: Doubles) -> tuple[float, Doubles]:
        scaled = np.exp(shape @ at)[:, None] * score
        scaled -= scaled.max(axis=1, keepdims=True)
        p = np.exp(scaled)
        total = p.sum(axis=1)
        by_power = (p * scaled).sum(axis=1) / total - scaled[rows, label]  # of each row, by the logarithm of its power
        return float(np.mean(np.log(total) - scaled[rows, label])), shape.T @ by_power / label.size

    level, by_shots, by_ways, by_words, slope = _minimum(loss, start, doubt, [(-8, 8)] * 5).tolist()
    by_nearness = slope / float(spread) if near is not None else 0.0
    return Temperature(level - by_nearness * float(middle), by_shots, by_ways, by_nearness, by_words)


def _minimum(
    loss: Callable[[Doubles], tuple[float, Doubles]], start: Doubles, doubt: float, bounds: Any = None
) -> Doubles:
    """Where a loss is least, if it costs `doubt` times the squared distance to be away from `start`."""
    from scipy.optimize import minimize  # half a second to import, and only a fit needs it

    def whole(at: Doubles) -> tuple[float, Doubles]:
        (value, slope), away = loss(at), at - start
        return value + doubt * float(away @ away), slope + 2 * doubt * away

    found: Doubles = minimize(whole, start, jac=True, method="L-BFGS-B", bounds=bounds, options=CONVERGED).x
    return found


# --- whether a node is in any of the classes ------------------------------------------------------------------------

OTHERS, RARE = 200, 0.05
"""What being in none of the classes is learned from: so many nodes of other classes a task; and the share that members
have of the weight."""
MEMBER_DOUBT = 0.05
"""What it costs to differ from the prior, by the square of the number of classes: of three, little can be learned."""


@dataclass(frozen=True)
class MembershipModel:
    """P(a node is in one of the given classes): logistic in how near the nearest is, its shots, the crowd, and log N.

    Where nodes lie close together, being near to a class says less: so are many that are not in it. Of several classes
    one is near sooner. `class_share` is the share of a network's nodes that a known class has, on average.
    """

    slope: float
    by_shots: float
    intercept: float
    by_crowd: float = 0.0
    by_ways: float = 0.0
    class_share: float = 0.05
    by_words: float = 0.0
    """Where only a description stands for the nearest class: nodes are never as near to it as to a node."""

    def probability(self, near: Floats, shots: Floats, crowd: Floats | None = None, share: float = 0.5) -> Floats:
        """Of a node on its own, if that share of all nodes are members. A class without shots is described.

        `near` is how near each node (a row) is to each class, `crowd` how close nodes lie around it.
        """
        return sigmoid(self._log_odds(near, shots, crowd) + math.log(share / (1 - share)))

    def among(self, near: Floats, shots: Floats, crowd: Floats | None = None) -> Floats:
        """Of nodes asked about together in a task, which tell what share of them are members.

        One member and one stranger are imagined, so that it is neither 0 nor 1.
        """
        odds = self._log_odds(near, shots, crowd)
        return sigmoid(odds + log_odds(_share_of_members(odds, 0.5, imagined=2)))

    def share(
        self,
        near: Floats,
        shots: Floats,
        crowd: Floats | None = None,
        rather: Floats | float = 1.0,
        class_share: float | None = None,
    ) -> float:
        """What share of a network is in the classes: by some of its nodes, and as much by the size of known classes.

        The nodes alone can be far off where a few of thousands are members; the sizes where new classes are others.
        `rather`: P(a node is in these classes rather than in others of which nodes are known).
        """
        size = self.class_share if class_share is None else class_share
        expected = min(0.5, max(1e-6, shots.size * size))
        odds = self._log_odds(near, shots, crowd)
        return float(_share_of_members(odds, expected, near.shape[0], rather)[..., 0])

    def _log_odds(self, near: Floats, shots: Floats, crowd: Floats | None) -> Floats:
        """How much likelier the node looks so as a member than as a stranger; the logarithm."""
        top, place = near.max(axis=-1).astype(np.float64), near.argmax(axis=-1)
        by_class = self.by_shots * np.log(np.maximum(shots, 1)) + self.by_words * (shots == 0)
        odds = self.slope * top + by_class[place] + self.by_ways * math.log(near.shape[-1]) + self.intercept
        return np.asarray(odds if crowd is None else odds + self.by_crowd * crowd)


@dataclass(frozen=True)
class CalibrationPrior:
    """What other networks taught about being sure, for each mode, and about nodes of none of the classes."""

    temperatures: Mapping[str, Temperature]
    membership: MembershipModel


@np.errstate(over="ignore")
def sigmoid(x: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-x)))


def log_odds(p: Floats, least: float = 0.0) -> Floats:
    p = np.clip(p, least, 1 - least)
    return np.asarray(np.log(p) - np.log1p(-p))


def _share_of_members(
    odds: Floats, expected: float, imagined: int, rather: Floats | float = 1.0, steps: int = 50
) -> Floats:
    """The share of members that makes these nodes likeliest, by expectation-maximisation (Saerens et al., 2002).

    Beside them are so many `imagined` nodes, of which the `expected` share are members.
    """
    share: Floats = np.full((*odds.shape[:-1], 1), expected)
    for _ in range(steps):
        member = (rather * sigmoid(odds + log_odds(share))).sum(axis=-1, keepdims=True)
        share = (member + imagined * expected) / (odds.shape[-1] + imagined)
    return share


def fit_membership(
    space: Space,
    members: Sequence[Ints],
    way: int,
    prior: MembershipModel | None = None,
    named: Sequence[Episode] = (),
) -> MembershipModel | None:
    """Logistic regression of being in a task on closeness, over its queries and nodes of the classes left out.

    With too few classes to leave any out, it is the prior's. `named` are tasks of classes that are only described.
    """
    found = membership_rows(space, members, way, named)
    if found is None:
        return prior
    size = float(np.mean([nodes.size for nodes in members]))
    doubt = 1e-5 + (MEMBER_DOUBT / len(members) ** 2 if prior else 0)
    return logistic(*found, size / space.embedding.n, prior, doubt)


def membership_rows(
    space: Space, members: Sequence[Ints], way: int, named: Sequence[Episode] = ()
) -> tuple[Doubles, Doubles] | None:
    """Rows of closeness, crowd, log K, described, log N and 1; and their weights, which are negative for strangers.

    They are of tasks of one class, of two and of `way`. None with too few classes.
    """
    if len(members) < 3:
        return None
    everyone, class_of = np.sort(np.concatenate(members)), np.full(space.embedding.n, -1)
    for c, nodes in enumerate(members):
        class_of[nodes] = c
    ways, asked = sorted({1, 2, min(way, len(members) - 1)}), list[tuple[Episode, Ints]]()
    tasks = [(n, task) for n in ways for task in calibration_tasks(members, max(2, n), count=TASKS // len(ways))]
    for task in [*(_first_class(task) if n == 1 else task for n, task in tasks), *named]:
        outside = everyone[np.isin(class_of[everyone], class_of[task.query], invert=True)]
        if outside.size:
            asked.append((task, outside[:: max(1, outside.size // OTHERS)][:OTHERS]))
    if not asked:
        return None
    nodes = np.unique(np.concatenate([part for task, outside in asked for part in (task.query, outside)]))
    crowd = space.crowd(space.look(nodes))
    rows, weight = [], []
    for task, outside in asked:
        queries, prepared = np.concatenate([task.query, outside]), space.prepare(task.task)
        near = space.near(prepared, space.look(queries))
        shots = prepared.given.shots[near.argmax(axis=1)]
        around = np.zeros(queries.size) if crowd is None else crowd[np.searchsorted(nodes, queries)]
        shape = np.full((queries.size, 2), (np.log(task.n_way), 1.0))
        rows.append(np.column_stack([near.max(axis=1), around, np.log(np.maximum(shots, 1)), shots == 0, shape]))
        weight.append(np.repeat([RARE / task.query.size, (RARE - 1) / outside.size], [task.query.size, outside.size]))
    return np.concatenate(rows).astype(np.float64), np.concatenate(weight) / len(rows)


def _first_class(task: Episode) -> Episode:
    """What is left of a task with one class alone."""
    own, asked = task.support_y == 0, task.query_y == 0
    return Episode(Task(task.support[own], task.support_y[own], task.query[asked]), task.query_y[asked])


def logistic(
    rows: Doubles, weight: Doubles, class_share: float, prior: MembershipModel | None = None, doubt: float = 1e-5
) -> MembershipModel:
    """From what `membership_rows` gives; `doubt` is how much it costs to differ from the prior.

    Members have `RARE` of the weight of every task. The odds are then taken back to as many members as strangers.
    """
    middle, spread = rows[:, :2].mean(axis=0), rows[:, :2].std(axis=0) + 1e-12
    columns = np.column_stack([(rows[:, :2] - middle) / spread, rows[:, 2:]])
    sign, weight = np.sign(weight), np.abs(weight)
    start, odds = np.zeros(6), np.log(RARE / (1 - RARE))
    if prior is not None:
        near = np.array([prior.slope, prior.by_crowd])
        level = prior.intercept + near @ middle + odds
        start = np.array([*(near * spread), prior.by_shots, prior.by_words, prior.by_ways, level])

    def loss(at: Doubles) -> tuple[float, Doubles]:
        margin = sign * (columns @ at)
        slope = -weight * sign * np.exp(-np.logaddexp(0, margin))
        return float(weight @ np.logaddexp(0, -margin)), columns.T @ slope

    found = _minimum(loss, start, doubt)
    slope, by_crowd = (found[:2] / spread).tolist()
    by_shots, by_words, by_ways, level = found[2:].tolist()
    intercept = float(level - found[:2] @ (middle / spread) - odds)
    return MembershipModel(slope, by_shots, intercept, by_crowd, by_ways, class_share, by_words)
