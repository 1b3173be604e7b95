"""Evaluation (section 5.2): a fixed pool of tasks, scores with 95 % intervals, and the scores of each task.

Methods are never given the labels of queries.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from fewnode.class_labels import UNKNOWN
from fewnode.dataset import ClassSplit, Dataset
from fewnode.display import Shown
from fewnode.episodes import Episode, EpisodeSampler, TaskSampler
from fewnode.errors import FewnodeError
from fewnode.graph import Graph, Ints
from fewnode.method import Embeds, Fitted, Transductive, answering, needs_base, predict_tasks
from fewnode.methods.plugins import name_of
from fewnode.methods.table import build_method
from fewnode.model.estimator import Estimator
from fewnode.nodes import PyGData, as_labelled
from fewnode.options import Asked
from fewnode.recognition.classes import Given
from fewnode.recognition.several import claimed_from, class_shares, each_on_its_own, shares_of_support
from fewnode.scores import (
    BINS,
    METRICS,
    Floats,
    Interval,
    auroc,
    average_precision,
    calibration_gaps,
    confusions,
    interval,
    measure,
    several_scores,
    two_class_scores,
)
from fewnode.tasks import (
    AllClassesSampler,
    SeveralEpisode,
    SeveralSampler,
    described_tasks,
    large_classes,
    pool_shape,
    strangers,
)

TASKS, DRAWS = 50, 30
"""Of an evaluation: tasks of test classes, as in the paper, and draws of labels of all classes."""
ALL_CLASSES = "all-classes"


@dataclass(frozen=True, eq=False, repr=False)
class Result(Shown):
    """The outcome of an evaluation. `per_task[metric]` is repeats x tasks.

    `ece` is the expected calibration error: how far probabilities are from being frequencies. `confusion`, if asked
    for: how often a query of one class (row) was taken for another (column), over all tasks; `class_names` names both.

    >>> result = Result({"accuracy": np.array([[0.8, 0.9, 1.0]])})
    >>> print(result.accuracy)
    90.0 ± 24.8
    """

    per_task: dict[str, Floats]
    provenance: dict[str, Any] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    ece: float = float("nan")
    confusion: Ints | None = None
    class_names: tuple[str, ...] = ()

    @property
    def accuracy(self) -> Interval:
        return self[METRICS[0]]

    def __getitem__(self, metric: str) -> Interval:
        return interval(self.per_task[metric])

    @property
    def per_class(self) -> dict[str, dict[str, float]]:
        """Precision, recall and F1 of each class, and how often one of it was asked about; empty if not asked for."""
        if self.confusion is None:
            return {}
        asked, claimed, hit = self.confusion.sum(axis=1), self.confusion.sum(axis=0), self.confusion.diagonal()
        columns = (hit / np.maximum(claimed, 1), hit / np.maximum(asked, 1), 2 * hit / np.maximum(asked + claimed, 1))
        rows = zip(self.class_names, *(column.tolist() for column in (*columns, asked)), strict=True)
        return {name: dict(zip(("precision", "recall", "f1", "queries"), row, strict=True)) for name, *row in rows}

    def facts(self) -> dict[str, object]:
        """The figures, in %, and where they are from."""
        scores = {name.replace("_", "-"): f"{self[name]}" for name in self.per_task}
        return {"tasks": next(iter(self.per_task.values())).size, "on": self.provenance.get("data", "?"), **scores}

    def to_json(self) -> dict[str, Any]:
        """One flat object: means and intervals, how they came about, and the per-task numbers."""
        repeats, tasks = next(iter(self.per_task.values())).shape
        counts = {} if self.confusion is None else {"confusion": self.confusion.tolist(), "classes": self.per_class}
        return {
            **{metric: self[metric].to_json() for metric in self.per_task},
            "ece": self.ece,
            "tasks": tasks,
            "repeats": repeats,
            "seconds": self.seconds,
            **self.provenance,
            **counts,
            "per_task": {metric: scores.tolist() for metric, scores in self.per_task.items()},
        }


def evaluate(
    method: Fitted | Estimator | str | type,
    data: Dataset | PyGData,
    way: int | None = None,
    shot: int | None = None,
    query: int | None = None,
    tasks: int | None = None,
    seed: int = 0,
    pool: Sequence[Episode] | None = None,
    report: Callable[[int, int], None] = lambda done, total: None,
    **how: Any,
) -> Result:
    """Score a fitted method on tasks of the test classes (50), on a `pool` of tasks, or on labels of all classes.

    Where nothing is asked, the tasks are as the `Estimator` was trained for: as many ways (or all test classes, if
    there are fewer), as many shots, and as many queries a class as shots. `seed` is the tasks' own: they stay the same
    whatever seed the method was trained with.

    `classes="all"`: no base classes. `shot` labels (5) of every class are given, and all other labelled nodes, or
    `query` of each class, are asked about; this is done `tasks` times (30). A method given by its name or class, with
    its `options`, is fitted to the graph alone. Classes that are too small are named in `provenance["left_out"]`.

    `transductive`: the queries of a task help each other. `queries`: `balanced` over the classes, or `long-tail`.
    `open_set`: as many nodes of other classes are asked about; `auroc` says how well they are told apart. `described`:
    classes come with their names and these texts; then `shot` may be 0. `several`: a node may be in several classes;
    `precision_at` is the k of precision@k. `per_class`: precision and recall of each class, and a confusion matrix.
    `report` is told how many tasks are done.

    >>> import fewnode
    >>> y = np.repeat(range(12), 20)
    >>> data = Dataset.from_scipy(y[:, None] == y, np.eye(12)[y], y)
    >>> model = fewnode.Estimator("propagation", way=3, shot=1, steps=1).fit(data)
    >>> evaluate(model, data, tasks=20).accuracy.mean
    1.0
    >>> evaluate("nearest-mean", data, shot=1, tasks=5, classes="all").accuracy.mean
    1.0
    """
    data, every = as_labelled(data), how.get("classes") == "all"
    given = {"way": way, "shot": shot, "query": query, "tasks": tasks, **({"seed": seed} if seed else {}), **how}
    asked = Asked.of({name: value for name, value in given.items() if value is not None})
    asked.refuse_unused(pool is not None)
    shape, batches, population = _tasks(method, data, asked, pool)
    if shape["way"] == 1 and not asked.open_set:
        raise FewnodeError("of one class alone every answer is right: ask for two ways or more, or for an open set")
    seconds, start, fitted = dict[str, float](), time.perf_counter(), method
    if isinstance(method, str | type):
        if not every:
            raise FewnodeError("tasks of test classes need a fitted method: fit it first, or ask all classes")
        fitted = fit_without_base(method, data, seed, asked.options)
        seconds["fit"], start = time.perf_counter() - start, time.perf_counter()
    tally = _Tally(fitted, data, asked, population)
    for done, batch in enumerate(batches):
        report(done, shape.get("draws", 1))
        (tally.add_several if asked.several else tally.add)(batch)
    report(shape.get("draws", 1), shape.get("draws", 1))
    named = name_of(method) if isinstance(method, type) else getattr(method, "method", type(method).__name__)
    modes = {"multi_label": True, "precision_at": asked.precision_at} if asked.several else {}
    about = {"data": data.name, "data_sha256": data.sha256, "method": method if isinstance(method, str) else named}
    return Result(
        per_task={metric: np.array([scores]) for metric, scores in tally.scores.items()},
        provenance={**about, **shape, **modes, "transductive": asked.transductive},
        seconds={**seconds, "evaluate": time.perf_counter() - start},
        ece=float(np.abs(tally.gaps).sum() / max(1, tally.answers)),
        confusion=tally.confusion,
        class_names=data.class_names,
    )


def _tasks(
    method: object, data: Dataset, asked: Asked, pool: Sequence[Episode] | None
) -> tuple[dict[str, Any], Iterable[Sequence[Any]], Ints | None]:
    """What the tasks are like, the tasks in batches, and the nodes among which classes have their shares, if known."""
    sampler: Any
    if pool is not None:
        shape: dict[str, Any] = pool_shape(pool)
        own = {**shape, "tasks": len(pool)}.items()
        if wrong := [name for name, value in own if getattr(asked, name) not in (None, value)]:
            raise FewnodeError("a pool has its own tasks", remedy=f"leave out `{'`, `'.join(wrong)}`")
        if not pool:
            raise FewnodeError("at least one task is needed, and the pool has none")
        return {**shape, "queries": None}, [pool], None
    if asked.classes == "all":
        shot, draws = 5 if asked.shot is None else asked.shot, asked.tasks or DRAWS
        classes, left_out = large_classes(data, shot, asked.several)
        if asked.several:
            sampler = SeveralSampler(data, classes.tolist(), None, shot, asked.query, asked.seed)
        else:
            sampler = AllClassesSampler(data, shot, asked.seed, asked.query)
        shape = {"way": sampler.n_way, "shot": shot, "query": asked.query, "pool_seed": asked.seed}
        shape |= {"protocol": ALL_CLASSES, "draws": draws, "left_out": list(left_out)}
        return shape, ([sampler[t]] for t in range(draws)), sampler.labelled if asked.several else None
    way, shot, query = asked_shape = _shape(method, data, asked)
    query = max(shot, 5) if asked.described is not None and asked.query is None else query
    count, shape = asked.tasks or TASKS, {"way": way, "shot": shot, "query": query, "queries": asked.queries}
    if asked.described is not None:
        tasks = described_tasks(data, data.split.test, asked.described, (way, shot, query), count, asked.seed)
        return shape, [tasks], None
    if asked.several:
        sampler = SeveralSampler(data, data.split.test, *asked_shape, asked.seed)
    else:
        sampler = tasks_of_test(method, data, asked)
    return shape, [[sampler[t] for t in range(count)]], None


def tasks_of_test(method: object, data: Dataset, asked: Asked) -> EpisodeSampler:
    """Tasks of the test classes, of one class a node."""
    return EpisodeSampler(data, "test", *_shape(method, data, asked), asked.seed, asked.queries == "long-tail")


def _shape(method: object, data: Dataset, asked: Asked) -> tuple[int, int, int]:
    """N, K and M: what is asked or, where nothing is, what the method was trained for. M is K."""
    way = asked.way or max(2, min(getattr(method, "way", 5), len(data.split.test)))
    shot = getattr(method, "shot", 5) if asked.shot is None else asked.shot
    return way, shot, shot if asked.query is None else asked.query


class _Tally:
    """Scores of tasks, added up batch by batch: one may ask about every node of a network."""

    def __init__(self, fitted: Any, data: Dataset, asked: Asked, population: Ints | None) -> None:
        self.fitted, self.data, self.asked, self.population = fitted, data, asked, population
        if asked.open_set and not isinstance(fitted, Transductive):
            raise FewnodeError(f"{type(fitted).__name__} cannot tell a node of no given class")
        if asked.several and not isinstance(fitted, Estimator):
            raise FewnodeError("this method cannot tell whether a node is in a class at all; gpn-plus can")
        self.answer = answering(fitted, data.graph)
        self.scores: dict[str, list[float]] = {}
        self.gaps, self.answers = np.zeros(BINS), 0
        width = len(data.class_names)
        self.confusion: Ints | None = np.zeros((width, width), np.int64) if asked.per_class else None

    def add(self, batch: Sequence[Episode]) -> None:
        """Tasks of one class a node."""
        tasks, truth = [episode.task for episode in batch], [episode.query_y for episode in batch]
        answers = self.answer(tasks, self.asked.transductive)
        self._keep({name: scores.tolist() for name, scores in measure(confusions(answers, truth)).items()})
        for answer, labels in zip(answers, truth, strict=True):
            self.gaps += calibration_gaps(answer.max(axis=1), answer.argmax(axis=1) == labels)
            self.answers += labels.size
        two_classes = all(episode.n_way == 2 for episode in batch)
        for t, (answer, episode) in enumerate(zip(answers, batch, strict=True)):
            if self.asked.open_set:
                self._keep(_tell_apart(self.fitted, self.data, episode, t, self.asked.seed))
            elif two_classes:
                self._keep(two_class_scores(answer, episode.query_y))
            if self.confusion is not None:
                self._count(self.confusion, episode, answer.argmax(axis=1))

    def _count(self, confusion: Ints, episode: Episode, predicted: Ints) -> None:
        """Which class of the network was taken for which. Those of a task are known by its nodes."""
        class_of = np.full(episode.n_way, UNKNOWN)
        class_of[episode.query_y] = self.data.y[episode.query]
        class_of[episode.support_y] = self.data.y[episode.support]
        if (class_of == UNKNOWN).any():
            raise FewnodeError(f"per_class: a class of the tasks has no node whose class {self.data.name} knows")
        np.add.at(confusion, (class_of[episode.query_y], class_of[predicted]), 1)

    def add_several(self, batch: Sequence[SeveralEpisode]) -> None:
        """Tasks of several classes a node. Of test tasks, queries are members of classes as the support nodes are."""
        for episode in batch:
            task = episode.task
            given = Given.of_support(self.data, task.support, task.support_y, several=True)
            space, some = self.fitted.question(self.data, given, True).embedded, self.population
            shares = shares_of_support(given) if some is None else class_shares(space, given, some)
            found = each_on_its_own(space, given, task.query, shares)
            self._keep(several_scores(found, found >= claimed_from(found), episode.truth, self.asked.precision_at))
            self.gaps += calibration_gaps(found, episode.truth)
            self.answers += found.size

    def _keep(self, scores: Mapping[str, Any]) -> None:
        for name, values in scores.items():
            self.scores.setdefault(name, []).extend(values if isinstance(values, list) else [values])


def _tell_apart(fitted: Any, data: Dataset, episode: Episode, t: int, seed: int) -> dict[str, float]:
    """How well a method tells a task's queries from as many nodes of other classes.

    `known` and `unknown`: the share of queries taken for members, and of strangers taken for strangers, at the
    threshold that was chosen on validation classes.
    """
    asked = np.concatenate([episode.query, strangers(data, episode, t, seed)])
    said = () if episode.task.described is None else (episode.task.described,)
    sure = fitted.familiar(data.graph, episode.support, episode.support_y, asked, *said)
    own = np.arange(asked.size) < episode.query.size
    scores = {"auroc": auroc(sure, own), "average_precision": average_precision(sure, own)}
    return {**scores, "known": float((sure[own] >= 0.5).mean()), "unknown": float((sure[~own] < 0.5).mean())}


def fit_without_base(method: str | type, data: Dataset, seed: int = 0, options: Mapping[str, Any] = {}) -> Fitted:
    """The method, fitted to the graph alone. One that needs base classes says so."""
    made: Any = build_method(method, seed, options)
    if isinstance(made, Embeds) and isinstance(method, str) and not needs_base(made):  # and so it is calibrated
        return Estimator(method, seed=seed, **options).fit(replace(data, split=ClassSplit((), (), ())))
    made.fit(data.graph, TaskSampler.none(), TaskSampler.none())
    return made  # type: ignore[no-any-return]


def join(results: Sequence[Result]) -> Result:
    """Trainings with different seeds on the same tasks, as one result."""
    first = results[0]
    seconds = {key: sum(r.seconds[key] for r in results) for key in first.seconds}
    per_task = {metric: np.concatenate([r.per_task[metric] for r in results]) for metric in first.per_task}
    counts = [r.confusion for r in results if r.confusion is not None]
    confusion = np.sum(counts, axis=0) if counts else None
    ece = float(np.mean([r.ece for r in results]))
    return replace(first, per_task=per_task, seconds=seconds, ece=ece, confusion=confusion)


def score(method: Fitted, graph: Graph, pool: Sequence[Episode]) -> dict[str, Floats]:
    """Accuracy, macro-F1 and weighted-F1 of each task of the pool."""
    answers = predict_tasks(method, graph, [episode.task for episode in pool])
    return measure(confusions(answers, [episode.query_y for episode in pool]))
