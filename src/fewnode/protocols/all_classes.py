"""The protocol `all-classes`: no base classes, K labels of every class, every other labelled node a query.

It is what somebody has who comes with a graph and a handful of labels, and what methods without base classes are
compared by elsewhere (GraphAny, prompt methods, graph foundation models).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from fewnode.dataset import ClassSplit, Dataset
from fewnode.episodes import Episode, EpisodeSampler, Task, choose, uniform
from fewnode.errors import FewnodeError
from fewnode.evaluation import Result
from fewnode.graph import Ints
from fewnode.method import Embeds, Fitted, Method, answering, needs_base
from fewnode.methods.plugins import name_of
from fewnode.methods.table import build_method
from fewnode.model.estimator import Estimator
from fewnode.nodes import PyGData, as_labelled
from fewnode.scoring.metrics import calibration_gaps, score_answers

ALL_CLASSES = "all-classes"
DRAWS = 30


class AllClassesSampler:
    """`sampler[t]` is draw t: K support nodes of every class, and all its other labelled nodes to ask about.

    Like that of an `EpisodeSampler`, a draw is a function of (seed, t) alone. With `query` at most so many nodes a
    class are asked about; the support nodes stay the same. Classes with at most K labelled nodes leave nothing to
    ask about: they are in `left_out`, by name.

    >>> y = np.repeat([0, 1, 2], [5, 4, 2])
    >>> data = Dataset.from_scipy(y[:, None] == y, y=y, class_names=("mail", "vpn", "rare"))
    >>> sampler = AllClassesSampler(data, shot=2)
    >>> sampler[0].support.size, sampler[0].query.size, sampler.left_out
    (4, 5, ('rare',))
    """

    def __init__(self, data: Dataset | PyGData, shot: int = 5, seed: int = 0, query: int | None = None) -> None:
        data = as_labelled(data)
        if shot < 1 or (query is not None and query < 1):
            raise FewnodeError(f"shot and query must be at least 1, not {shot} and {query}")
        self.classes, self.left_out = large_classes(data, shot)
        self.members = [np.flatnonzero(data.y == c) for c in self.classes]
        self.shot, self.seed, self.query = shot, seed, query

    def __getitem__(self, t: int) -> Episode:
        sizes = [members.size for members in self.members]
        asked = [size - self.shot if self.query is None else min(self.query, size - self.shot) for size in sizes]
        draw = uniform(self.seed, t, len(sizes) * self.shot + (0 if self.query is None else sum(asked)))
        support = [members[choose(draw, members.size, self.shot)] for members in self.members]
        rest = [np.setdiff1d(members, picked) for members, picked in zip(self.members, support, strict=True)]
        if self.query is not None:
            rest = [others[choose(draw, others.size, count)] for others, count in zip(rest, asked, strict=True)]
        label = np.arange(len(sizes))
        task = Task(np.concatenate(support), label.repeat(self.shot), np.concatenate(rest))
        return Episode(task, label.repeat(asked))


def large_classes(data: Dataset, shot: int, several: bool = False) -> tuple[Ints, tuple[str, ...]]:
    """The classes that have a node to ask about beside `shot` support nodes, and the names of those that have none.

    Nodes in several classes count only if `several`: else each has one right answer.
    """
    sizes = data.class_sizes if several else np.bincount(data.y[data.y >= 0], minlength=len(data.class_names))
    classes: Ints = np.flatnonzero(sizes > shot)
    if classes.size < 2:
        raise FewnodeError(
            f"{data.name}: {classes.size} of {np.count_nonzero(sizes)} classes have more than {shot} labelled nodes, "
            "two are needed; ask for fewer shots"
        )
    return classes, tuple(data.class_names[c] for c in np.flatnonzero((data.class_sizes > 0) & (sizes <= shot)))


def evaluate_all_classes(
    method: str | type | Method | Estimator,
    data: Dataset | PyGData,
    shot: int = 5,
    draws: int = DRAWS,
    seed: int = 0,
    transductive: bool = False,
    query: int | None = None,
    options: Mapping[str, Any] | None = None,
    report: Callable[[int, int], None] = lambda done, total: None,
) -> Result:
    """Fit a method without base classes, then score it on `draws` draws of `shot` labels of every class.

    `method` is a name with its `options`, or a method of your own, which is fitted here. It sees no label but those of
    the support set. `seed` is that of the draws and of the method; the interval is over draws. Classes too small are
    named in `provenance["left_out"]`. `report` is told how many draws are done.

    >>> y = np.repeat(range(4), 20)
    >>> data = Dataset.from_scipy(y[:, None] == y, np.eye(4)[y], y)
    >>> print(evaluate_all_classes("nearest-mean", data, shot=1, draws=5).accuracy)
    100.0 ± 0.0
    """
    data = as_labelled(data)
    sampler = AllClassesSampler(data, shot, seed, query)
    if draws < 1:
        raise FewnodeError(f"at least one draw is needed, not {draws}")
    start = time.perf_counter()
    fitted = fit_without_base(method, data, seed, options or {})
    fit = time.perf_counter() - start
    start = time.perf_counter()
    result = score_draws(fitted, data, sampler, draws, transductive, report)
    named = name_of(method) if isinstance(method, type) else getattr(method, "method", type(method).__name__)
    named = method if isinstance(method, str) else named
    provenance = {**result.provenance, "method": named}
    return replace(result, provenance=provenance, seconds={"fit": fit, "evaluate": time.perf_counter() - start})


def fit_without_base(
    method: str | type | Method | Estimator, data: Dataset, seed: int, options: Mapping[str, Any]
) -> Fitted:
    """The method, fitted to the graph alone. One that needs base classes says so."""
    if options and not isinstance(method, str | type):
        raise FewnodeError(f"a {type(method).__name__} has its own options: leave out {', '.join(options)}")
    chosen: Any = build_method(method, seed, options) if isinstance(method, str | type) else method
    if isinstance(chosen, Embeds) and isinstance(method, str) and not needs_base(chosen):  # and so it is calibrated
        chosen = Estimator(method, seed=seed, **options)
    if isinstance(chosen, Estimator):
        return chosen.fit(replace(data, split=ClassSplit((), (), ())))
    chosen.fit(data.graph, EpisodeSampler.none(), EpisodeSampler.none())
    fitted: Fitted = chosen
    return fitted


def score_draws(
    fitted: Fitted,
    data: Dataset,
    sampler: AllClassesSampler,
    draws: int = DRAWS,
    transductive: bool = False,
    report: Callable[[int, int], None] = lambda done, total: None,
) -> Result:
    """The scores of a fitted method; one draw is in memory at a time, for each may ask about every node."""
    scores: list[dict[str, Any]] = []
    gaps, asked = np.zeros(1), 0
    answer_tasks = answering(fitted, data.graph)
    for t in range(draws):
        report(t, draws)
        episode = sampler[t]
        (answer,) = answer_tasks([episode.task], transductive)
        scores.append(score_answers([answer], [episode]))
        gaps, asked = gaps + calibration_gaps(answer, episode.query_y), asked + episode.query.size
    report(draws, draws)
    return Result(
        per_task={metric: np.concatenate([each[metric] for each in scores])[None] for metric in scores[0]},
        provenance={
            "protocol": ALL_CLASSES,
            "data": data.name,
            "data_sha256": data.sha256,
            "way": len(sampler.members),
            "shot": sampler.shot,
            "query": sampler.query,
            "draws": draws,
            "pool_seed": sampler.seed,
            "left_out": list(sampler.left_out),
            "transductive": transductive,
        },
        ece=float(np.abs(gaps).sum() / asked),
    )
