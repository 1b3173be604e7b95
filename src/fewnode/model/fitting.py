"""What an estimator learns of base classes beside its method: the tasks to train on, and how sure answers may be."""

from __future__ import annotations

import platform
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import fewnode
from fewnode._system.kept import threads
from fewnode.dataset import ClassSplit, Dataset
from fewnode.episodes import Episode, EpisodeSampler, TaskSampler
from fewnode.errors import FewnodeError
from fewnode.graph import Graph
from fewnode.interchange import PARTS
from fewnode.method import Describes, Embeds, Fits, FitsEmbedding, HasHistory, Stepwise, head_of, needs_base, space_of
from fewnode.recognition.calibration import (
    DOUBT,
    MODES,
    NO_TEMPERATURE,
    TASKS,
    MembershipModel,
    Temperature,
    accuracy_by_shots,
    calibration_tasks,
    fit_membership,
    fit_temperature,
)
from fewnode.recognition.prototypes import WORTHS
from fewnode.recognition.space import Head, Space
from fewnode.tasks import named_tasks

if TYPE_CHECKING:
    from fewnode.train import Journal


class TaskShape(NamedTuple):
    """What the tasks of a training are like."""

    way: int
    shot: int
    query: int
    seed: int


def fit_method(
    method: Fits, data: Dataset, graph: Graph, shape: TaskShape, journal: Journal
) -> tuple[dict[str, Any], Space | None]:
    """Train a method on the base classes: what is to be kept of it with the model, and how it sees the graph.

    `graph` is as the method reads it.
    """
    train, valid = base_tasks(data, shape, needs_base(method))
    start, space = time.perf_counter(), None
    if isinstance(method, FitsEmbedding) and isinstance(method, Embeds):
        embedding = method.fit_embedding(graph, train, valid)
        space = Space(embedding, head_of(method), method.unlinked if isinstance(method, Describes) else None)
    elif isinstance(method, Stepwise):
        method.fit_in_steps(graph, train, valid, journal)
    else:
        method.fit(graph, train, valid)
    history = method.history_ if isinstance(method, HasHistory) else None
    learned: dict[str, Any] = {"temperature": None, "membership": None, "worth": 1.0}
    validated = {str(shape.shot): history.best.accuracy} if history else {}
    if isinstance(method, Embeds):
        space, validated = calibrated(space or space_of(method, graph), data, train, valid, shape.way)
        head = space.head
        learned = {
            "temperature": {mode: asdict(each) for mode, each in head.temperatures.items()} or None,
            "membership": asdict(head.membership) if head.membership else None,
            "worth": head.worth,
        }
    record = {
        "n_features": data.graph.n_features,
        "width": graph.n_features,
        "feature_names": list(data.feature_names) if data.feature_names else None,
        "data": {"name": data.name, "sha256": data.sha256, "nodes": data.graph.n, "edges": data.graph.n_edges},
        "classes": {part: [data.class_names[c] for c in data.split.part(part)] for part in PARTS},
        "history": asdict(history) if history else None,
        "threads": threads(),
        "versions": {"fewnode": fewnode.__version__, "numpy": np.__version__, "python": platform.python_version()},
        "validated": validated,
        "seconds": time.perf_counter() - start,
    }
    return {**record, **learned}, space


def recorded_head(head: Head, trained: Mapping[str, Any]) -> Head:
    """The head of a fitted method, calibrated as its record says. `TypeError` if it is not one."""
    temperatures = {mode: Temperature(**numbers) for mode, numbers in (trained["temperature"] or {}).items()}
    membership = MembershipModel(**trained["membership"]) if trained["membership"] else None
    return replace(head, temperatures=temperatures, membership=membership, worth=trained["worth"])


def base_tasks(data: Dataset, shape: TaskShape, needed: bool) -> tuple[TaskSampler, TaskSampler]:
    """Tasks of training and of validation classes, of as many ways as there are. Where not `needed`, of what there is.

    Deviation D14: with fewer than N classes, tasks have as many ways as there are.
    """
    way, shot, query, seed = shape
    try:
        if min(len(data.split.train), len(data.split.valid)) < 2:
            raise FewnodeError(_split_again(data.split))
        train = EpisodeSampler(data, "train", way, shot, query, seed)
        return train, EpisodeSampler(data, "valid", min(way, len(data.split.valid)), shot, shot)
    except FewnodeError:
        if needed or min(way, shot, query) < 1:
            raise
    parts = [[np.flatnonzero(data.y == c) for c in data.split.part(part)] for part in ("train", "valid")]
    large = [[nodes for nodes in members if nodes.size > 1] for members in parts]
    samplers = [TaskSampler(members, len(members), 1, 1) for members in large]
    return samplers[0], samplers[1]


def _split_again(split: ClassSplit) -> str:
    """What is too few, and a split of the same classes that is not, if there is one."""
    base = sorted((*split.train, *split.valid))
    told = f"{len(split.train)} training and {len(split.valid)} validation classes; two of each are needed"
    if len(base) < 4:
        return f"{told} to learn from and to choose by; gpn-plus needs none"
    better = ClassSplit(tuple(base[:-2]), tuple(base[-2:]), split.test)
    return f"{told}: split the {len(base) + len(split.test)} classes again, such as split=fewnode.{better}"


def calibrated(
    space: Space, data: Dataset, train: TaskSampler, valid: TaskSampler, way: int
) -> tuple[Space, dict[str, float]]:
    """What validation classes say about being sure, and about nodes of none of the classes; their accuracy by shots.

    Both depend on how hard the classes are, and the more of them are asked the better: also training classes, if
    the method is no surer of them than of others.
    """
    head, unseen = space.head, calibration_tasks(valid.members, way)
    members = valid.members if head.learns_classes else [*train.members, *valid.members]
    prior, fewer = head.prior, min(way, len(members))
    named = named_tasks(data, members, fewer, TASKS) if space.reads_descriptions else []
    if named:
        both = named_tasks(data, members, fewer, TASKS, shot=1)
        head = replace(head, worth=max(WORTHS, key=lambda worth: _accuracy(space, worth, both)))
        space = replace(space, head=head)
    membership = fit_membership(space, members, way, prior.membership if prior else None, named)
    space = replace(space, head=replace(head, membership=membership))
    ways = [each for each in sorted({2, way, 2 * way}) if each <= len(members)]
    episodes = [each for n in ways for each in calibration_tasks(members, n, count=TASKS // len(ways))] + named
    tasks = [episode.task for episode in episodes]
    # only where z of all nodes is at hand: else every query would be embedded twice
    near = [space.closest(space.look(task.query), space.labelled(task)) for task in tasks] if head.crowds else None
    expected = prior.temperatures if prior else dict.fromkeys(MODES, NO_TEMPERATURE)
    doubt = 1e-3 + (DOUBT / len(members) ** 2 if prior and members else 0)
    temperatures = {
        mode: fit_temperature(space.answer_tasks(tasks, mode == MODES[1]), episodes, near, expected[mode], doubt)
        for mode in MODES
    }
    accuracy = accuracy_by_shots(space.answer_tasks([each.task for each in unseen]), unseen)
    return replace(space, head=replace(space.head, temperatures=temperatures)), accuracy


def _accuracy(space: Space, worth: float, tasks: Sequence[Episode]) -> tuple[float, float]:
    """Of known classes with one label and their names, if a name counts so much; of equals, the prior's counts."""
    judged = replace(space, head=replace(space.head, worth=worth))
    answers = judged.answer_tasks([each.task for each in tasks])
    right = [np.mean(answer.argmax(axis=1) == each.query_y) for answer, each in zip(answers, tasks, strict=True)]
    return float(np.mean(right)), worth
