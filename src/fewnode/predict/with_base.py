"""New classes beside the base classes of a dataset: a node may be in one of either.

A base class has many labels and a new class few, so base classes have a head start. What validation classes showed of
it is subtracted from the log-probabilities of base classes.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from fewnode.classes.definitions import Definitions
from fewnode.dataset import Dataset
from fewnode.episodes import Episode, EpisodeSampler
from fewnode.errors import FewnodeError
from fewnode.estimator import Estimator
from fewnode.evaluation import TASKS, Result
from fewnode.graph import Ints
from fewnode.method import Probabilities
from fewnode.naming import alike
from fewnode.nodes import PyGData, as_labelled
from fewnode.recognition.base_bias import bias_at, harmonic_mean
from fewnode.recognition.base_tasks import BaseTasks, drawn_support
from fewnode.recognition.class_bias import biased
from fewnode.scoring.metrics import calibration_error

QUERIES = 5
"""A class, at least: of fewer, accuracies of a task are coarse."""


def base_members(data: Dataset) -> dict[str, Ints]:
    """The nodes of each training and validation class that has some, by its name."""
    known = [*data.split.train, *data.split.valid]
    found = {data.class_names[c]: np.flatnonzero(data.y == c) for c in known}
    found = {name: nodes for name, nodes in found.items() if nodes.size}
    if not found:
        raise FewnodeError(
            f"{data.name} has no base classes to stand beside the new ones: leave out --with-base, or give it training "
            "and validation classes (fewnode data import --split)"
        )
    return found


def joined_by_base(data: Dataset, given: Definitions, model: Estimator) -> tuple[Definitions, Mapping[Hashable, float]]:
    """The classes of a question and the base classes of the dataset; and the bias on the latter, for a `Recogniser`.

    A base class has at most 50 of its labelled nodes as support, drawn by the model's seed. A node that was given for
    a new class is not among them. What cannot be used or corrected is told in `remarks`.
    """
    base, new = base_members(data), {*given.labels, *given.descriptions}
    instead = "give the new class another name, or leave out --with-base"
    if clash := [name for name in base if name in new]:
        raise FewnodeError(f"class {clash[0]!r} is a base class of {data.name} already: {instead}")
    if why := next(filter(None, (alike(name, base) for name in sorted(new))), None):
        raise FewnodeError(f"{why}; the first is a base class of {data.name}: {instead}")
    support, labels, remarks = list(given.support), list(given.labels), list(given.remarks)
    bias: dict[Hashable, float] = {}
    head_start = bias_at(model.trained_["base_bias"], _mean_shots(given))
    for place, (name, members) in enumerate(base.items()):
        free = np.setdiff1d(members, given.support)
        if not free.size:
            remarks.append(f"base class {name!r}: all its nodes are given for new classes, so it is left out")
            continue
        drawn = drawn_support(free, model.seed, place).tolist()
        support, labels = support + drawn, labels + [name] * len(drawn)
        bias[name] = -head_start
    if not model.trained_["base_bias"]:
        remarks.append("base classes keep their head start: it could not be learned in training")
    return replace(given, support=support, labels=labels, remarks=tuple(remarks)), bias


def _mean_shots(given: Definitions) -> float:
    """The harmonic mean of the labelled nodes a new class; a description alone counts as one."""
    shots = Counter(given.labels) | Counter(dict.fromkeys(given.descriptions, 1))
    return len(shots) / sum(1 / count for count in shots.values())


def evaluate_with_base(
    model: Estimator,
    data: Dataset | PyGData,
    way: int | None = None,
    shot: int | None = None,
    query: int | None = None,
    tasks: int = TASKS,
    seed: int = 0,
    transductive: bool = False,
    corrected: bool = True,
) -> Result:
    """Score a fitted model on tasks of new (test) classes that stand beside all base classes of the dataset.

    Each task has `way` new classes of `shot` labels, and of every base class up to 50. Queries are of both kinds,
    `query` a class. `Result` has `accuracy_new`, `accuracy_base` and their `harmonic_mean`, over tasks. `corrected`:
    False leaves base classes their head start.

    >>> import fewnode
    >>> y = np.repeat(range(12), 20)
    >>> data = Dataset.from_scipy(y[:, None] == y, np.eye(12)[y], y)
    >>> result = evaluate_with_base(fewnode.Estimator(way=3, shot=1).fit(data), data, tasks=5)
    >>> print(result["harmonic_mean"])
    100.0 ± 0.0
    """
    data = as_labelled(data)
    members = list(base_members(data).values())
    way = max(2, min(model.way, len(data.split.test))) if way is None else way
    shot = model.shot if shot is None else shot
    query = max(shot, QUERIES) if query is None else query
    if tasks < 1:
        raise FewnodeError(f"at least one task is needed, not {tasks}")
    pool = BaseTasks(EpisodeSampler(data, "test", way, shot, query, seed), members).take(tasks)
    if not any((episode.query_y >= way).any() for episode in pool):
        raise FewnodeError(f"{data.name}: its base classes have one node each, which leaves nothing to ask about them")
    start = time.perf_counter()
    head_start = bias_at(model.trained_["base_bias"], shot) if corrected else 0.0
    bias = np.repeat([0.0, -head_start], [way, len(members)])
    answers = [biased(p, bias) for p in model.predict_tasks(data, [episode.task for episode in pool], transductive)]
    return Result(
        per_task={metric: np.array([scores]) for metric, scores in _scores(answers, pool, way).items()},
        provenance={
            "data": data.name,
            "data_sha256": data.sha256,
            "way": way,
            "shot": shot,
            "query": query,
            "base": len(members),
            "base_bias": head_start,
            "transductive": transductive,
        },
        seconds={"evaluate": time.perf_counter() - start},
        ece=calibration_error(answers, pool),
    )


def _scores(answers: Sequence[Probabilities], pool: Sequence[Episode], way: int) -> dict[str, NDArray[np.float64]]:
    right = [answer.argmax(axis=1) == episode.query_y for answer, episode in zip(answers, pool, strict=True)]
    is_new = [episode.query_y < way for episode in pool]
    new = np.array([hit[own].mean() for hit, own in zip(right, is_new, strict=True)])
    base = np.array([hit[~own].mean() for hit, own in zip(right, is_new, strict=True)])
    return {
        "accuracy": np.array([hit.mean() for hit in right]),
        "accuracy_new": new,
        "accuracy_base": base,
        "harmonic_mean": harmonic_mean(new, base),
    }
