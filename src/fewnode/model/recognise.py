"""Answers without a training: GPN+ for a dataset, fitted once and kept for the next process.

It is kept in the user's cache, by the dataset's fingerprint and this version. It can be deleted.
"""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

import fewnode
from fewnode._system.files import cache_directory
from fewnode._system.kept import Kept
from fewnode.dataset import Dataset
from fewnode.errors import FewnodeError, warn_unused
from fewnode.model.estimator import Estimator
from fewnode.model.model_files import keep, load_model, recall
from fewnode.nodes import Network, Nodes, as_dataset
from fewnode.recognition.answers import Answers
from fewnode.recognition.classes import Class, Given
from fewnode.recognition.population import blank, claimable, left_out

MODELS = Kept(2)


def recognise(
    data: Network,
    classes: Mapping[str, Nodes | str | Class],
    query: Nodes | None = None,
    *,
    model: Estimator | None = None,
    explain: bool = False,
    transductive: bool = False,
    closed_set: bool = False,
    threshold: float | None = None,
    proportions: Mapping[str, float] | None = None,
    with_base: bool = False,
    multi_label: bool = False,
    expected: float | None = None,
) -> Answers:
    """Judge every node, or those of `query`, by classes that are given as nodes, as a sentence, or both.

    Every node means those of the kinds that have labels, or nodes of a class. If `multi_label`, each class is judged on
    its own, and a given node may be in several. Name it in all of them: it speaks against the others.

    No training is needed: without a `model`, GPN+ answers from what base classes the dataset has and from its prior.
    What it could not use of a description, and a description that the nodes of its class disagree with, is named by an
    `UnusedInput` warning. `proportions`: the share of each class among those nodes that are in any, if that is known.
    `expected`: how many nodes are in the classes, if that is known. `with_base`: nodes may also be in one of the base
    classes of the dataset, each by as many of its labelled nodes as the largest new class has.

    >>> import fewnode
    >>> y = np.repeat(range(4), 20)
    >>> data = fewnode.Dataset.from_scipy(y[:, None] == y, np.eye(4)[y], y)
    >>> found = recognise(data, {"mail": [0, 1], "vpn": fewnode.Class(yes=[25, 26])}, query=[3, 30])
    >>> found.labels
    ['mail', 'vpn']
    """
    network = as_dataset(data)
    if multi_label and proportions:
        raise FewnodeError("several classes a node: each is judged on its own; leave out proportions")
    model = model or untrained(network)
    question = model.question(network, Given.of(network, classes, multi_label), multi_label, with_base)
    rows = np.flatnonzero(claimable(network, question.given.support)) if query is None else question.rows(query)
    others = left_out(network, question.given.support) if query is None else ""
    remarks = [*question.remarks, others, blank(network, rows)]
    if told := [*filter(None, remarks)]:
        warn_unused(told, stacklevel=3)
    mode: dict[str, Any] = {"closed_set": closed_set, "threshold": threshold}
    found = question.judge(rows, **mode, transductive=transductive, explain=explain, expected=expected)
    return found if proportions is None else found.in_proportion(proportions)


def untrained(data: Dataset) -> Estimator:
    """GPN+ as the dataset's base classes, if it has some, and its prior make it. A dataset is read once a process."""
    return MODELS(data.sha256, lambda: _fitted(data))


def _fitted(data: Dataset) -> Estimator:
    with suppress(OSError, FewnodeError):
        model = load_model(_place(data))
        if model.trained_["data"]["sha256"] == data.sha256:
            if not recall(model, data):
                keep(model, data)
            return model
    model = Estimator("gpn-plus").fit(data)
    with suppress(OSError, FewnodeError):
        _keep(model, data)
    return model


def is_kept(data: Dataset) -> bool:
    """Whether a model is there already, so that the first answer comes at once."""
    try:
        return (_place(data) / "model.json").exists()
    except OSError:
        return False


def _keep(model: Estimator, data: Dataset) -> None:
    """Written beside and moved into place: who looks sees a whole model or none."""
    place = _place(data)
    beside = place.with_name(f"{place.name}.{secrets.token_hex(4)}")
    try:
        model.save(beside)
        keep(model, data)
        shutil.rmtree(place, ignore_errors=True)
        beside.rename(place)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _place(data: Dataset) -> Path:
    return cache_directory("models") / f"{data.sha256}-{fewnode.__version__}"
