"""Evaluation (section 5.2): a fixed pool of tasks, accuracy and F1 with 95 % intervals, per-task numbers.

Only this module holds query labels; methods are never given them.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewnode.dataset import Dataset
from fewnode.display import Shown
from fewnode.episodes import Episode, EpisodeSampler
from fewnode.errors import FewnodeError, closest
from fewnode.graph import Graph
from fewnode.method import Fitted, Transductive, predict_tasks
from fewnode.nodes import PyGData, as_labelled
from fewnode.scoring.interval import Interval, interval
from fewnode.scoring.metrics import METRICS, calibration_error, score_answers
from fewnode.scoring.open_set import tell_apart
from fewnode.scoring.pools import pool_shape

TASKS = 50
"""Tasks of an evaluation, as in the paper."""


@dataclass(frozen=True, eq=False, repr=False)
class Result(Shown):
    """The outcome of an evaluation. `per_task[metric]` is repeats x tasks.

    `ece` is the expected calibration error: how far probabilities are from being frequencies.

    >>> result = Result({"accuracy": np.array([[0.8, 0.9, 1.0]])})
    >>> print(result.accuracy)
    90.0 ± 24.8
    """

    per_task: dict[str, NDArray[np.float64]]
    provenance: dict[str, Any] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    ece: float = float("nan")

    @property
    def accuracy(self) -> Interval:
        return self[METRICS[0]]

    def __getitem__(self, metric: str) -> Interval:
        return interval(self.per_task[metric])

    def facts(self) -> dict[str, object]:
        """The figures, in %, and where they are from."""
        scores = {name.replace("_", "-"): f"{self[name]}" for name in self.per_task}
        return {"tasks": next(iter(self.per_task.values())).size, "on": self.provenance.get("data", "?"), **scores}

    def to_json(self) -> dict[str, Any]:
        """One flat object: means and intervals, how they came about, and the per-task numbers."""
        repeats, tasks = next(iter(self.per_task.values())).shape
        return {
            **{metric: self[metric].to_json() for metric in self.per_task},
            "ece": self.ece,
            "tasks": tasks,
            "repeats": repeats,
            "seconds": self.seconds,
            **self.provenance,
            "per_task": {metric: scores.tolist() for metric, scores in self.per_task.items()},
        }


def evaluate(
    method: Fitted,
    data: Dataset | PyGData,
    way: int | None = None,
    shot: int | None = None,
    query: int | None = None,
    tasks: int | None = None,
    seed: int = 0,
    pool: Sequence[Episode] | None = None,
    transductive: bool = False,
    queries: str = "balanced",
    open_set: bool = False,
) -> Result:
    """Score a fitted method on tasks of the test classes (50), or on a `pool` of tasks that is given.

    Where nothing is asked, the tasks are as the `Estimator` was trained for: as many ways (or all test classes, if
    there are fewer), as many shots, and as many queries a class as shots. `seed` is the pool's own: tasks stay the
    same whatever seed the method was trained with. Inductive unless `transductive`: then the queries of a task help
    each other. `queries`: `balanced` over the classes or `long-tail`. With `open_set` as many nodes of other classes
    are asked about too; `auroc` says how well they are told apart.

    >>> import fewnode
    >>> y = np.repeat(range(12), 20)
    >>> data = Dataset.from_scipy(y[:, None] == y, np.eye(12)[y], y)
    >>> model = fewnode.Estimator("propagation", way=3, shot=1, steps=1).fit(data)
    >>> evaluate(model, data, tasks=20).accuracy.mean
    1.0
    """
    data = as_labelled(data)
    if pool is None:
        sampler = test_tasks(method, data, way, shot, query, seed, queries)
        pool = sampler.take(TASKS if tasks is None else tasks)
        shape: dict[str, Any] = {"way": sampler.n_way, "shot": sampler.k_shot, "query": sampler.m_query}
    else:
        shape, asked = pool_shape(pool), {"way": way, "shot": shot, "query": query, "tasks": tasks}
        own = {**shape, "tasks": len(pool)}
        asked["queries"] = long_tail(queries) or None
        if given := [name for name, value in asked.items() if value not in (None, own[name])]:
            raise FewnodeError(f"a pool has its own tasks: leave out {', '.join(given)}")
    if not pool:
        raise FewnodeError(f"at least one task is needed, not {tasks or 0}")
    if shape["way"] == 1 and not open_set:
        raise FewnodeError("of one class alone every answer is right: ask for two ways or more, or with --open-set")
    start = time.perf_counter()
    answers = predict_tasks(method, data.graph, [episode.task for episode in pool], transductive)
    scores = score_answers(answers, pool)
    if open_set:
        if not isinstance(method, Transductive):
            raise FewnodeError(f"{type(method).__name__} cannot tell a node of no given class")
        scores |= tell_apart(method.familiar, data, pool, seed)
    return Result(
        per_task={metric: per_task[None] for metric, per_task in scores.items()},
        provenance={
            "data": data.name,
            "data_sha256": data.sha256,
            "queries": queries,
            **shape,
            "transductive": transductive,
        },
        seconds={"evaluate": time.perf_counter() - start},
        ece=calibration_error(answers, pool),
    )


def test_tasks(
    method: object, data: Dataset, way: int | None, shot: int | None, query: int | None, seed: int, queries: str
) -> EpisodeSampler:
    """Tasks of the test classes: what is asked or, where nothing is, what the method was trained for. M is K."""
    if way is None:
        way = max(2, min(getattr(method, "way", 5), len(data.split.test)))
    shot = getattr(method, "shot", 5) if shot is None else shot
    return EpisodeSampler(data, "test", way, shot, query, seed, long_tail(queries))


def long_tail(queries: str) -> bool:
    """Whether the queries of a task are spread unevenly."""
    if queries not in ("balanced", "long-tail"):
        raise FewnodeError(f"queries {queries!r}{closest(queries, ('balanced', 'long-tail'))}: balanced or long-tail")
    return queries == "long-tail"


def join(results: Sequence[Result]) -> Result:
    """Trainings with different seeds on the same tasks, as one result."""
    seconds = {key: sum(r.seconds[key] for r in results) for key in results[0].seconds}
    per_task = {metric: np.concatenate([r.per_task[metric] for r in results]) for metric in results[0].per_task}
    return Result(per_task, results[0].provenance, seconds, float(np.mean([r.ece for r in results])))


def score(method: Fitted, graph: Graph, pool: Sequence[Episode]) -> dict[str, NDArray[np.float64]]:
    """Accuracy, macro-F1 and weighted-F1 of each task of the pool."""
    return score_answers(predict_tasks(method, graph, [episode.task for episode in pool]), pool)
