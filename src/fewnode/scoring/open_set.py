"""How well nodes of the given classes are told from nodes of none of them: the open-set half of an evaluation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from fewnode.dataset import Dataset
from fewnode.episodes import Episode, choose, uniform
from fewnode.errors import FewnodeError
from fewnode.graph import Ints

Familiar: TypeAlias = Callable[..., NDArray[np.float32]]
"""P(a query is in one of the classes) of (graph, support, support_y, query) and, if there are some, descriptions."""


def tell_apart(familiar: Familiar, data: Dataset, pool: Sequence[Episode], seed: int) -> dict[str, NDArray[np.float64]]:
    """How well a method tells a task's queries from as many nodes of other classes.

    `auroc`: the chance that a query seems more familiar than a stranger. `known` and `unknown`: the share of queries
    taken for familiar, and of strangers taken for strangers, at the threshold that was chosen on validation classes.
    """
    found: dict[str, list[float]] = {"auroc": [], "known": [], "unknown": []}
    for t, task in enumerate(pool):
        others = strangers(data, task, t, seed)
        asked = np.concatenate([task.query, others])
        said = () if task.task.described is None else (task.task.described,)
        sure = familiar(data.graph, task.support, task.support_y, asked, *said)
        own, other = np.split(sure, [task.query.size])
        surer = (own[:, None] > other) + 0.5 * (own[:, None] == other)
        found["auroc"].append(float(surer.mean()))
        found["known"].append(float((own >= 0.5).mean()))
        found["unknown"].append(float((other < 0.5).mean()))
    return {name: np.array(values) for name, values in found.items()}


def strangers(data: Dataset, task: Episode, t: int, seed: int) -> Ints:
    """Nodes of classes that are not in the task, as many as it has queries: of the test part if it has such classes."""
    own = np.unique(data.y[np.concatenate([task.support, task.query])])  # a described class may have no support
    parts = (data.split.test, (*data.split.train, *data.split.valid))
    others = next((left for part in parts if (left := np.setdiff1d(part, own)).size), np.arange(0))
    nodes = np.flatnonzero(np.isin(data.y, others))
    if nodes.size == 0:
        raise FewnodeError("there is no class outside the task: nothing to tell apart")
    count = min(task.query.size, nodes.size)
    return nodes[choose(uniform(seed, t, count), nodes.size, count)]
