"""The model for a dataset that nobody trained for: GPN+, fitted once and kept for the next process.

It is kept in the user's cache, by the dataset's fingerprint and this version. It can be deleted.
"""

from __future__ import annotations

import secrets
import shutil
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

import fewnode
from fewnode.dataset import Dataset
from fewnode.errors import FewnodeError
from fewnode.estimator import Estimator, load_model
from fewnode.machine.files import cache_directory
from fewnode.predict.embedding_cache import keep, recall


@lru_cache(maxsize=2)
def untrained(data: Dataset) -> Estimator:
    """GPN+ as the dataset's base classes, if it has some, and its prior make it. A dataset is read once a process."""
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


def unused_edges(model: Estimator, data: Dataset) -> list[str]:
    """What the edges say that the model does not use: nobody knows which kinds matter before classes are known."""
    graph = data.graph
    if not getattr(model.method_, "adapts_", False) or not graph.relations:
        return []
    said = ["kinds"] if len(graph.relations) > 1 else []
    said += ["directions"] if any(relation.directed for relation in graph.relations) else []
    return [f"{' and '.join(said)} of edges: without base classes nobody knows which matter"] if said else []


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
