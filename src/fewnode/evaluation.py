"""Evaluation (section 5.2): a fixed pool of tasks, accuracy and F1 with 95 % intervals, per-task numbers.

Only this module holds query labels; methods are never given them.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from fewnode.episodes import Episode, EpisodeSampler
from fewnode.errors import FewnodeError
from fewnode.graph import Dataset, Graph, Ints, class_index
from fewnode.io import read_lines, write_text

Probabilities = NDArray[np.float32]
METRICS = ("accuracy", "macro_f1", "weighted_f1")


class Predictor(Protocol):
    """What can be evaluated: a fitted method. Labels are 0 … N-1; each query node gets a probability a class."""

    def predict_proba(self, graph: Graph, support: Ints, support_y: Ints, query: Ints) -> Probabilities: ...


class Method(Predictor, Protocol):
    """What a few-shot method is: a `Predictor` that learns from episodes."""

    def fit(self, graph: Graph, train: EpisodeSampler, valid: EpisodeSampler) -> object: ...


@runtime_checkable
class Batched(Protocol):
    """A method that answers many tasks faster together than one by one."""

    def predict_tasks(self, graph: Graph, tasks: Sequence[Episode]) -> list[Probabilities]: ...


@dataclass(frozen=True)
class Interval:
    """A mean and the half-width of its 95 % interval."""

    mean: float
    ci95: float

    def __str__(self) -> str:
        return f"{100 * self.mean:.1f} ± {100 * self.ci95:.1f}"


@dataclass(frozen=True, eq=False)
class Result:
    """The outcome of an evaluation. `per_task[metric]` is repeats x tasks."""

    per_task: dict[str, NDArray[np.float64]]
    provenance: dict[str, Any] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def accuracy(self) -> Interval:
        return self[METRICS[0]]

    def __getitem__(self, metric: str) -> Interval:
        return interval(self.per_task[metric])

    def to_json(self) -> dict[str, Any]:
        """One flat object: means and intervals, how they came about, and the per-task numbers."""
        repeats, tasks = self.per_task["accuracy"].shape
        return {
            **{metric: {"mean": self[metric].mean, "ci95": self[metric].ci95} for metric in METRICS},
            "tasks": tasks,
            "repeats": repeats,
            "seconds": self.seconds,
            **self.provenance,
            "per_task": {metric: self.per_task[metric].tolist() for metric in METRICS},
        }


def interval(scores: NDArray[np.float64]) -> Interval:
    """Mean and 95 % half-width of repeats x tasks, where every repeat (another training seed) sees the same tasks.

    Tasks and seeds are both samples, so both variances count; with one repeat this is the t interval over tasks.
    """
    repeats, tasks = scores.shape
    variance = 0.0
    for count, means in ((tasks, scores.mean(axis=0)), (repeats, scores.mean(axis=1))):
        if count > 1:
            variance += stats.t.ppf(0.975, count - 1) ** 2 * means.var(ddof=1) / count
    return Interval(float(scores.mean()), float(np.sqrt(variance)))


def evaluate(
    method: Predictor,
    data: Dataset,
    way: int = 5,
    shot: int = 5,
    query: int | None = None,
    tasks: int = 50,
    seed: int = 0,
    pool: Sequence[Episode] | None = None,
) -> Result:
    """Score a fitted method on `tasks` tasks of the test classes, or on a `pool` of tasks that is given.

    `seed` is the pool's own: tasks stay the same whatever seed the method was trained with.
    """
    if pool is None:
        if tasks < 1:
            raise FewnodeError(f"at least one task is needed, not {tasks}")
        pool = EpisodeSampler(data, "test", way, shot, query, seed).take(tasks)
    start = time.perf_counter()
    scores = score(method, data.graph, pool)
    return Result(
        per_task={metric: scores[metric][None] for metric in METRICS},
        provenance={"data": data.name, "data_sha256": data.sha256, "way": way, "shot": shot, "query": query or shot},
        seconds={"evaluate": time.perf_counter() - start},
    )


def join(results: Sequence[Result]) -> Result:
    """Trainings with different seeds on the same tasks, as one result."""
    seconds = {key: sum(r.seconds[key] for r in results) for key in results[0].seconds}
    per_task = {metric: np.concatenate([r.per_task[metric] for r in results]) for metric in METRICS}
    return Result(per_task, results[0].provenance, seconds)


def score(method: Predictor, graph: Graph, pool: Sequence[Episode]) -> dict[str, NDArray[np.float64]]:
    """Accuracy, macro-F1 and weighted-F1 of each task of the pool."""
    predicted = np.concatenate([p.argmax(axis=1) for p in predict_tasks(method, graph, pool)])
    truth = np.concatenate([task.query_y for task in pool])
    task = np.repeat(np.arange(len(pool)), [task.query.size for task in pool])
    n_way = max(task.n_way for task in pool)
    cell = (task * n_way + truth) * n_way + predicted
    return measure(np.bincount(cell, minlength=len(pool) * n_way**2).reshape(-1, n_way, n_way))


def predict_tasks(method: Predictor, graph: Graph, pool: Sequence[Episode]) -> list[Probabilities]:
    if isinstance(method, Batched):
        return method.predict_tasks(graph, pool)
    return [method.predict_proba(graph, e.support, e.support_y, e.query) for e in pool]


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


# --- pools: tasks as JSON lines, to be saved, exchanged and read --------------------------------------------------


def save_pool(path: Path, pool: Sequence[Episode], data: Dataset) -> None:
    """One task a line; nodes by name where they have names, labels by class name."""
    lines = []
    for task in pool:
        label = data.y[task.support[np.unique(task.support_y, return_index=True)[1]]]
        name = [data.class_names[c] for c in label]
        line = {
            "support": [data.node_name(v) for v in task.support],
            "support_y": [name[c] for c in task.support_y],
            "query": [data.node_name(v) for v in task.query],
            "query_y": [name[c] for c in task.query_y],
        }
        lines.append(json.dumps(line, ensure_ascii=False))
    write_text(path, "\n".join(lines) + "\n")


def read_pool(path: Path, data: Dataset) -> list[Episode]:
    """Tasks that somebody drew: JSON lines of `support, support_y, query, query_y`; nodes are names or row numbers."""
    pool = []
    for number, line in read_lines(path):
        try:
            task = json.loads(line)
            label = class_index(str(name) for name in task["support_y"])
            pool.append(
                Episode(
                    support=np.array([data.node(str(v)) for v in task["support"]], np.int64),
                    support_y=np.array([label[str(c)] for c in task["support_y"]], np.int64),
                    query=np.array([data.node(str(v)) for v in task["query"]], np.int64),
                    query_y=np.array([label[str(c)] for c in task["query_y"]], np.int64),
                )
            )
        except FewnodeError as error:
            raise FewnodeError(f"{path}: line {number}: {error}") from None
        except KeyError as error:
            raise FewnodeError(f"{path}: line {number}: {error} is missing") from None
        except (ValueError, TypeError, RecursionError):
            raise FewnodeError(
                f"{path}: line {number}: not a JSON object with support, support_y, query and query_y"
            ) from None
    if not pool:
        raise FewnodeError(f"{path}: no task in it")
    return pool
