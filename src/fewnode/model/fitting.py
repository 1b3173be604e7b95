"""What an estimator learns of base classes beside its method: the tasks to train on, and how sure answers may be."""

from __future__ import annotations

import platform
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import torch

import fewnode
from fewnode.dataset import Dataset
from fewnode.episodes import Episode, EpisodeSampler
from fewnode.errors import FewnodeError
from fewnode.graph import Graph
from fewnode.interchange import PARTS
from fewnode.recognition.calibration import (
    DOUBT,
    MODES,
    NO_TEMPERATURE,
    TASKS,
    CalibrationPrior,
    accuracy_by_shots,
    calibration_tasks,
    fit_temperature,
)
from fewnode.recognition.fit_membership import fit_membership
from fewnode.recognition.labelled import WORTHS
from fewnode.recognition.prototypes import Prototypical
from fewnode.tasks import named_tasks
from fewnode.train import Journal


class TaskShape(NamedTuple):
    """What the tasks of a training are like."""

    way: int
    shot: int
    query: int
    seed: int


@runtime_checkable
class Stepwise(Protocol):
    """A method that is trained step by step: it can be followed, and continued where it was left."""

    def fit_in_steps(self, graph: Graph, train: EpisodeSampler, valid: EpisodeSampler, journal: Journal) -> object: ...


def fit_method(
    method: Any,
    data: Dataset,
    graph: Graph,
    shape: TaskShape,
    journal: Journal,
) -> dict[str, Any]:
    """Train a method on the base classes; what is to be kept of it with the model.

    `graph` is as the method reads it.
    """
    train, valid = base_tasks(data, shape, getattr(method, "needs_base", True))
    start = time.perf_counter()
    if isinstance(method, Stepwise):
        method.fit_in_steps(graph, train, valid, journal)
    else:
        method.fit(graph, train, valid)
    found = calibrate(method, data, graph, train, valid, shape.way, shape.shot)
    return {**training_record(method, data, graph), **found, "seconds": time.perf_counter() - start}


def short_facts(trained: Mapping[str, Any]) -> dict[str, object]:
    """What a notebook shows of a model: the record that is kept with it, in a few lines."""
    if not trained:
        return {"fitted": "not yet"}
    accuracy = ", ".join(f"{100 * value:.1f} % with {shots}" for shots, value in trained["validated"].items())
    return {
        "fitted": f"on {trained['data']['name']}, {trained['data']['nodes']:,} nodes, in {trained['seconds']:.1f} s",
        "base classes": f"{len(trained['classes']['train'])} training, {len(trained['classes']['valid'])} validation",
        "validation accuracy": f"{accuracy} labels a class" if accuracy else None,
        "none of these": "can be told" if trained["membership"] else "cannot be told",
    }


def base_tasks(data: Dataset, shape: TaskShape, needed: bool) -> tuple[EpisodeSampler, EpisodeSampler]:
    """Tasks of training and of validation classes. Where they are not `needed`, of what there is."""
    way, shot, query, seed = shape
    try:
        train = EpisodeSampler(data, "train", way, shot, query, seed)
        if len(data.split.valid) < 2:
            raise FewnodeError(f"{len(data.split.valid)} validation classes; two are needed to choose by: split again")
        return train, EpisodeSampler(data, "valid", min(way, len(data.split.valid)), shot, shot)
    except FewnodeError:
        if needed or min(way, shot, query) < 1:
            raise
    parts = [[np.flatnonzero(data.y == c) for c in data.split.part(part)] for part in ("train", "valid")]
    large = [[nodes for nodes in members if nodes.size > 1] for members in parts]
    samplers = [EpisodeSampler.among(members, len(members), 1, 1) for members in large]
    return samplers[0], samplers[1]


def training_record(method: Any, data: Dataset, graph: Graph) -> dict[str, Any]:
    """What a model is trained on and by, to be kept with it. `graph` is as the method reads it."""
    history = getattr(method, "history_", None)
    return {
        "n_features": data.graph.n_features,
        "width": graph.n_features,
        "feature_names": list(data.feature_names) if data.feature_names else None,
        "data": {"name": data.name, "sha256": data.sha256, "nodes": data.graph.n, "edges": data.graph.n_edges},
        "classes": {part: [data.class_names[c] for c in data.split.part(part)] for part in PARTS},
        "history": asdict(history) if history else None,
        "threads": torch.get_num_threads(),
        "versions": {
            "fewnode": fewnode.__version__,
            "torch": torch.__version__,
            "python": platform.python_version(),
        },
    }


def calibrate(
    method: Any, data: Dataset, graph: Graph, train: EpisodeSampler, valid: EpisodeSampler, way: int, shot: int
) -> dict[str, Any]:
    """What validation classes say about being sure, and about nodes of none of the classes.

    Both depend on how hard the classes are, and the more of them are asked the better: also training classes, if
    the method is no surer of them than of others.
    """
    if not isinstance(method, Prototypical):
        history = getattr(method, "history_", None)
        validated = {str(shot): history.best.accuracy} if history else {}
        return {"temperature": None, "membership": None, "validated": validated}
    unseen = calibration_tasks(valid.members, way)
    members = valid.members if method.learns_classes else [*train.members, *valid.members]
    prior: CalibrationPrior | None = getattr(method, "prior", None)
    named = named_tasks(data, members, min(way, len(members)), TASKS) if method.reads_descriptions else []
    if named:
        both = named_tasks(data, members, min(way, len(members)), TASKS, shot=1)
        method.worth_ = max(WORTHS, key=lambda worth: _accuracy(method, worth, graph, both))
    method.membership = fit_membership(method, graph, members, way, prior.membership if prior else None, named)
    ways = [each for each in sorted({2, way, 2 * way}) if each <= len(members)]
    episodes = [each for n in ways for each in calibration_tasks(members, n, count=TASKS // len(ways))]
    episodes += named
    tasks = [episode.task for episode in episodes]
    answers = {mode: method.predict_tasks(graph, tasks, mode == MODES[1]) for mode in MODES}
    # only where z of all nodes is at hand: else every query would be embedded twice
    near = [method.closest(graph, task) for task in tasks] if method.kept else None
    expected = prior.temperatures if prior else dict.fromkeys(MODES, NO_TEMPERATURE)
    doubt = 1e-3 + (DOUBT / len(members) ** 2 if prior and members else 0)
    temperature = {
        mode: asdict(fit_temperature(given, episodes, near, expected[mode], doubt)) for mode, given in answers.items()
    }
    return {
        "temperature": temperature,
        "membership": asdict(method.membership) if method.membership else None,
        "validated": accuracy_by_shots(method.predict_tasks(graph, [each.task for each in unseen]), unseen),
    }


def _accuracy(method: Any, worth: float, graph: Graph, tasks: Sequence[Episode]) -> tuple[float, float]:
    """Of known classes with one label and their names, if a name counts so much; of equals, the prior's counts."""
    method.worth_ = worth
    answers = method.predict_tasks(graph, [each.task for each in tasks])
    right = [np.mean(answer.argmax(axis=1) == each.query_y) for answer, each in zip(answers, tasks, strict=True)]
    return float(np.mean(right)), worth
