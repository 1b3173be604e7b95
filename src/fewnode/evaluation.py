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
from fewnode.episodes import Episode, EpisodeSampler
from fewnode.errors import FewnodeError, closest
from fewnode.graph import Graph, Ints
from fewnode.interval import Interval, interval
from fewnode.method import Fitted, Probabilities, Transductive, predict_tasks
from fewnode.nodes import PyGData, as_labelled
from fewnode.open_set import tell_apart
from fewnode.pools import pool_shape

TASKS = 50
"""Tasks of an evaluation, as in the paper."""
METRICS = ("accuracy", "macro_f1", "weighted_f1")


@dataclass(frozen=True, eq=False)
class Result:
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

    def to_json(self) -> dict[str, Any]:
        """One flat object: means and intervals, how they came about, and the per-task numbers."""
        repeats, tasks = self.per_task["accuracy"].shape
        return {
            **{metric: {"mean": self[metric].mean, "ci95": self[metric].ci95} for metric in self.per_task},
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
        asked = {"way": way, "shot": shot, "query": query, "tasks": tasks, "queries": long_tail(queries) or None}
        if given := [name for name, value in asked.items() if value is not None]:
            raise FewnodeError(f"a pool has its own tasks: leave out {', '.join(given)}")
        shape = pool_shape(pool)
    if not pool:
        raise FewnodeError(f"at least one task is needed, not {tasks or 0}")
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


def score_answers(answers: Sequence[Probabilities], pool: Sequence[Episode]) -> dict[str, NDArray[np.float64]]:
    predicted = np.concatenate([p.argmax(axis=1) for p in answers])
    truth = np.concatenate([task.query_y for task in pool])
    task = np.repeat(np.arange(len(pool)), [task.query.size for task in pool])
    n_way = max(task.n_way for task in pool)
    cell = (task * n_way + truth) * n_way + predicted
    return measure(np.bincount(cell, minlength=len(pool) * n_way**2).reshape(-1, n_way, n_way))


BINS = 15


def calibration_error(answers: Sequence[Probabilities], pool: Sequence[Episode]) -> float:
    """Expected calibration error (Guo et al., 2017): the mean of |accuracy - confidence| over bins of equal width."""
    gaps = [calibration_gaps(answer, task.query_y) for answer, task in zip(answers, pool, strict=True)]
    return float(np.abs(np.sum(gaps, axis=0)).sum() / max(1, sum(task.query.size for task in pool)))


def calibration_gaps(answer: Probabilities, query_y: Ints) -> NDArray[np.float64]:
    """Confidence less accuracy, summed over the queries of each bin of confidence: tasks can be added up."""
    confidence = answer.max(axis=1).astype(np.float64)
    place = np.minimum((confidence * BINS).astype(int), BINS - 1)
    gap: NDArray[np.float64] = confidence - (answer.argmax(axis=1) == query_y)
    return np.bincount(place, gap, minlength=BINS).astype(np.float64)


def measure(confusion: Ints) -> dict[str, NDArray[np.float64]]:
    """The metrics of tasks, from how often class i was taken for class j: tasks x N x N.

    Deviation D4: Micro-F1 equals accuracy when every node has one label, so it is not among them.
    """
    hit = np.diagonal(confusion, axis1=1, axis2=2)
    true, claimed = confusion.sum(axis=2), confusion.sum(axis=1)
    f1 = 2 * hit / np.maximum(true + claimed, 1)
    return {
        "accuracy": hit.sum(axis=1) / true.sum(axis=1),
        "macro_f1": f1.sum(axis=1) / ((true + claimed) > 0).sum(axis=1),
        "weighted_f1": (f1 * true).sum(axis=1) / true.sum(axis=1),
    }
