"""Membership learned on known classes: tasks of some of them, and nodes of those left out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fewnode.episodes import Episode, Task
from fewnode.graph import Ints
from fewnode.recognition.calibration import CONVERGED, TASKS, calibration_tasks
from fewnode.recognition.membership import MembershipModel
from fewnode.recognition.space import Space

OTHERS, RARE = 200, 0.05
"""What being in none of the classes is learned from: so many nodes of other classes a task; and the share that members
have of the weight."""
DOUBT = 0.05
"""What it costs to differ from the prior, by the square of the number of classes: of three, little can be learned."""


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
    return logistic(*found, size / space.embedding.n, prior, 1e-5 + DOUBT / len(members) ** 2 if prior else 1e-5)


def membership_rows(
    space: Space, members: Sequence[Ints], way: int, named: Sequence[Episode] = ()
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Rows of closeness, crowd, log K, described, log N and 1; and their weights, which are negative for strangers.

    Of tasks of one class, of two and of `way`: of several prototypes one is near sooner. None with too few classes.
    """
    if len(members) < 3:
        return None
    everyone, class_of = np.sort(np.concatenate(members)), np.full(space.embedding.n, -1)
    for c, nodes in enumerate(members):
        class_of[nodes] = c
    asked: list[tuple[Episode, Ints]] = []
    for task in [*_membership_tasks(members, min(way, len(members) - 1)), *named]:
        outside = everyone[np.isin(class_of[everyone], class_of[task.query], invert=True)]
        if outside.size:
            asked.append((task, outside[:: max(1, outside.size // OTHERS)][:OTHERS]))
    if not asked:
        return None
    nodes = np.unique(np.concatenate([part for task, outside in asked for part in (task.query, outside)]))
    crowd = space.crowd(space.look(nodes))
    rows, weight = [], []
    for task, outside in asked:
        queries = np.concatenate([task.query, outside])
        prepared = space.prepare(task.task)
        near = space.near(prepared, space.look(queries))
        shots = prepared.shots[near.argmax(axis=1)]
        around = np.zeros(queries.size) if crowd is None else crowd[np.searchsorted(nodes, queries)]
        shape = np.full((queries.size, 2), (np.log(task.n_way), 1.0))
        rows.append(np.column_stack([near.max(axis=1), around, np.log(np.maximum(shots, 1)), shots == 0, shape]))
        weight.append(np.repeat([RARE / task.query.size, (RARE - 1) / outside.size], [task.query.size, outside.size]))
    return np.concatenate(rows).astype(np.float64), np.concatenate(weight) / len(rows)


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
    return Episode(Task(task.support[own], task.support_y[own], task.query[asked]), task.query_y[asked])


def logistic(
    rows: NDArray[np.float64],
    weight: NDArray[np.float64],
    class_share: float,
    prior: MembershipModel | None = None,
    doubt: float = 1e-5,
) -> MembershipModel:
    """From what `membership_rows` gives; `doubt` is how much it costs to differ from the prior.

    Members have `RARE` of the weight of every task: most nodes of a network are strangers, so it is the nearest of them
    that have to be told from members. The odds are then taken back to those of as many members as strangers.
    """
    middle, spread = rows[:, :2].mean(axis=0), rows[:, :2].std(axis=0) + 1e-12
    columns = np.column_stack([(rows[:, :2] - middle) / spread, rows[:, 2:]])
    sign, weight = np.sign(weight), np.abs(weight)
    start, odds = np.zeros(6), np.log(RARE / (1 - RARE))
    if prior is not None:
        near = np.array([prior.slope, prior.by_crowd])
        level = prior.intercept + near @ middle + odds
        start = np.array([*(near * spread), prior.by_shots, prior.by_words, prior.by_ways, level])

    def loss(at: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        margin, away = sign * (columns @ at), at - start
        slope = -weight * sign * np.exp(-np.logaddexp(0, margin))
        value = weight @ np.logaddexp(0, -margin) + doubt * away @ away
        return float(value), columns.T @ slope + 2 * doubt * away

    from scipy.optimize import minimize  # half a second to import, and only a fit needs it

    found = minimize(loss, start, jac=True, method="L-BFGS-B", options=CONVERGED).x
    slope, by_crowd = map(float, found[:2] / spread)
    by_shots, by_words, by_ways, level = map(float, found[2:])
    intercept = float(level - found[:2] @ (middle / spread) - odds)
    return MembershipModel(slope, by_shots, intercept, by_crowd, by_ways, class_share, by_words)
