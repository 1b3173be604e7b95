"""How well several classes a node are recognised: tasks, F1 of decisions, precision of rankings, calibration.

A task draws classes, and K members of each. Every drawn node comes with all classes of the task that it is in, so a
class may have more than K; and what a query is to be recognised as is the set of those that it is in.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from fewnode.class_labels import as_members
from fewnode.dataset import Dataset
from fewnode.episodes import choose, uniform
from fewnode.errors import FewnodeError
from fewnode.evaluation import TASKS, Result
from fewnode.graph import Ints
from fewnode.model.estimator import Estimator
from fewnode.nodes import PyGData, as_labelled
from fewnode.protocols.all_classes import ALL_CLASSES, DRAWS, fit_without_base, large_classes
from fewnode.recognition.classes import Given
from fewnode.recognition.several import class_shares, shares_of_support
from fewnode.scoring.metrics import BINS

Floats = NDArray[np.float64]
Truth = NDArray[np.bool_]

PRECISION_AT = 10
"""Nodes that a class is looked at by precision@k; fewer if it has fewer members."""
Report = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class MultiLabelEpisode:
    """A task whose nodes may be in several of its classes: a support node stands there once for each."""

    support: Ints
    support_y: Ints
    query: Ints
    truth: Truth
    """Queries x classes."""


class MultiLabelSampler:
    """`sampler[t]` is task t, a function of (seed, t) alone. Of `classes`, `way` are drawn, or all in turn.

    Queries are `query` members of each class, or every other labelled node if that is None.

    >>> y = np.repeat(range(4), 20)
    >>> task = MultiLabelSampler(Dataset.from_scipy(y[:, None] == y, y=y), range(4), way=2, shot=3, query=5)[0]
    >>> task.support.size, task.truth.shape, task.truth.sum(axis=0).tolist()
    (6, (10, 2), [5, 5])
    """

    def __init__(
        self, data: Dataset, classes: Iterable[int], way: int | None, shot: int, query: int | None, seed: int = 0
    ) -> None:
        self.labels: sp.csr_array = as_members(data.y, data.labels, len(data.class_names))
        self.classes = np.array(list(classes), np.int64)
        self.members = {c: data.members(c) for c in self.classes.tolist()}
        self.labelled = np.flatnonzero(data.labelled_mask)
        self.way, self.shot, self.query, self.seed = way, shot, query, seed
        asked = len(self.classes) if way is None else way
        if min(asked, shot, 1 if query is None else query) < 1:
            raise FewnodeError(f"way, shot and query must be at least 1, not {asked}, {shot} and {query}")
        if asked > len(self.classes):
            raise FewnodeError(f"{asked}-way tasks need {asked} classes, there are {len(self.classes)}: choose fewer")
        for c, nodes in self.members.items():
            if nodes.size < (need := shot + (1 if query is None or way is None else query)):
                name = data.class_names[c]
                raise FewnodeError(f"class {name!r} has {nodes.size} nodes, {need} are needed; ask for fewer")

    def __getitem__(self, t: int) -> MultiLabelEpisode:
        way, more = self.way or len(self.classes), self.query or 0
        draw = uniform(self.seed, t, way * (1 + self.shot + more))
        chosen = self.classes if self.way is None else self.classes[choose(draw, len(self.classes), way)]
        drawn = []
        for c in chosen.tolist():
            nodes = self.members[c]
            drawn.append(nodes[choose(draw, nodes.size, min(nodes.size, self.shot + more))])
        support = np.unique(np.concatenate([nodes[: self.shot] for nodes in drawn]))
        asked = self.labelled if self.query is None else np.concatenate([nodes[self.shot :] for nodes in drawn])
        query = np.setdiff1d(asked, support)
        row, y = self.labels[support][:, chosen].toarray().nonzero()
        return MultiLabelEpisode(support[row], y, query, self.labels[query][:, chosen].toarray())


def evaluate_multi_label(
    model: Estimator,
    data: Dataset | PyGData,
    way: int | None = None,
    shot: int | None = None,
    query: int | None = None,
    tasks: int = TASKS,
    seed: int = 0,
    precision_at: int = PRECISION_AT,
) -> Result:
    """Score a fitted model on tasks of the test classes, where a node may be in several of them.

    Shapes are as in `evaluate`. All queries are members of some class of the task, drawn as support nodes are: so the
    shares of classes among these count, not those of the network. Scores: `micro_f1` and `macro_f1` of what is at least
    as likely as not, and `average_precision` and `precision_at_k` of nodes ranked for each class, both the mean over
    classes. `ece` is the expected calibration error of the probabilities of all classes.
    """
    data = as_labelled(data)
    way = max(2, min(model.way, len(data.split.test))) if way is None else way
    if way < 2:
        raise FewnodeError(f"way is {way}: one class alone has no other to be told from; two are needed")
    shot = model.shot if shot is None else shot
    query = shot if query is None else query
    sampler = MultiLabelSampler(data, data.split.test, way, shot, query, seed)
    shape = {"way": way, "shot": shot, "query": query}
    return _scored(model, data, sampler, tasks, None, precision_at, shape)


def evaluate_all_classes_multi_label(
    data: Dataset | PyGData,
    method: str | Estimator = "gpn-plus",
    shot: int = 5,
    draws: int = DRAWS,
    seed: int = 0,
    query: int | None = None,
    options: Mapping[str, Any] | None = None,
    precision_at: int = PRECISION_AT,
    report: Report = lambda done, total: None,
) -> Result:
    """The same without base classes: `shot` labels of every class, and every other labelled node is asked about.

    With `query`, at most so many members a class are. Classes too small are named in `provenance["left_out"]`. What
    share of the labelled nodes is in a class is estimated, as for anybody who asks about all of them.
    """
    data = as_labelled(data)
    classes, left_out = large_classes(data, shot, several=True)
    sampler = MultiLabelSampler(data, classes.tolist(), None, shot, query, seed)
    fitted = fit_without_base(method, data, seed, options or {})
    if not isinstance(fitted, Estimator):
        raise FewnodeError(f"{method} cannot tell whether a node is in a class at all; gpn-plus can")
    shape = {"protocol": ALL_CLASSES, "way": len(classes), "shot": shot, "query": query, "draws": draws}
    shape |= {"left_out": list(left_out), "method": fitted.method}
    return _scored(fitted, data, sampler, draws, sampler.labelled, precision_at, shape, report)


def _scored(
    model: Estimator,
    data: Dataset,
    sampler: MultiLabelSampler,
    tasks: int,
    population: Ints | None,
    precision_at: int,
    shape: dict[str, Any],
    report: Report = lambda done, total: None,
) -> Result:
    if tasks < 1 or precision_at < 1:
        raise FewnodeError(f"at least one task and one node are needed, not {tasks} and {precision_at}")
    start, scores = time.perf_counter(), []
    gaps, cells = np.zeros(BINS), 0
    for t in range(tasks):
        report(t, tasks)
        episode = sampler[t]
        given = Given.of_support(data.graph, episode.support, episode.support_y, several=True)
        question = model.question(data, given, multi_label=True)
        shares = shares_of_support(given) if population is None else class_shares(question.embedded, given, population)
        found, _ = replace(question, shares=tuple(shares)).probabilities(episode.query)
        scores.append(multi_label_scores(found, episode.truth, precision_at))
        gaps, cells = gaps + probability_gaps(found, episode.truth), cells + found.size
    report(tasks, tasks)
    return Result(
        per_task={name: np.array([[each[name] for each in scores]]) for name in scores[0]},
        provenance={
            "data": data.name,
            "data_sha256": data.sha256,
            "multi_label": True,
            "precision_at": precision_at,
            "pool_seed": sampler.seed,
            **shape,
        },
        seconds={"evaluate": time.perf_counter() - start},
        ece=float(np.abs(gaps).sum() / max(1, cells)),
    )


def multi_label_scores(found: Floats, truth: Truth, precision_at: int = PRECISION_AT) -> dict[str, float]:
    """Of probabilities and what is true, both nodes x classes. Means are over classes that have a member.

    >>> scores = multi_label_scores(np.array([[0.9, 0.6], [0.7, 0.1]]), np.array([[True, True], [False, False]]))
    >>> {name: round(score, 3) for name, score in scores.items()}
    {'micro_f1': 0.8, 'macro_f1': 0.833, 'average_precision': 1.0, 'precision_at_k': 1.0}
    """
    claimed = found >= 0.5
    hit, both, members = (claimed & truth).sum(axis=0), claimed.sum(axis=0) + truth.sum(axis=0), truth.sum(axis=0)
    precision, top = [], []
    for c in np.flatnonzero(members):
        right = truth[np.argsort(-found[:, c], kind="stable"), c]
        at = right.cumsum() / np.arange(1, right.size + 1)
        precision.append(at[right].mean())
        top.append(at[min(precision_at, members[c]) - 1])
    f1 = (2 * hit / np.maximum(both, 1))[both > 0]
    means = [
        2 * hit.sum() / max(1, both.sum()),
        *(np.mean(part) if len(part) else 0.0 for part in (f1, precision, top)),
    ]
    return dict(zip(("micro_f1", "macro_f1", "average_precision", "precision_at_k"), map(float, means), strict=True))


def probability_gaps(found: Floats, truth: Truth) -> Floats:
    """Probability less frequency, summed over the nodes and classes of each bin of probability."""
    place = np.minimum((found * BINS).astype(int), BINS - 1)
    return np.bincount(place.ravel(), (found - truth).ravel(), minlength=BINS).astype(np.float64)
