"""The model for a dataset that nobody trained for: GPN+, fitted once and kept for the next process.

It is kept with the dataset's own directory or, for a built-in network and for files, in the user's cache. It counts
only if this user wrote it, as its embedding is signed. It can be deleted.
"""

from __future__ import annotations

import os
import secrets
import shutil
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

import fewnode
from fewnode.dataset import Dataset
from fewnode.errors import FewnodeError
from fewnode.estimator import Estimator, load_model
from fewnode.predict.embedding_cache import keep, recall

FOLDER = ".gpn-plus"


@lru_cache(maxsize=2)
def untrained(data: Dataset) -> Estimator:
    """GPN+ as the dataset's base classes, if it has some, and its prior make it. A dataset is read once a process."""
    place = _place(data)
    found = _kept(place, data)
    if found is not None:
        return found
    model = Estimator("gpn-plus").fit(data)
    with suppress(OSError, FewnodeError):
        _keep(place, model, data)
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
    return (_place(data) / "model.json").exists()


def _kept(place: Path, data: Dataset) -> Estimator | None:
    try:
        model = load_model(place)
    except (FewnodeError, OSError):
        return None
    same = model.trained_["data"]["sha256"] == data.sha256 and model.trained_["versions"] == _versions(model)
    return model if same and recall(place, model, data) else None


def _versions(model: Estimator) -> dict[str, str]:
    return {**model.trained_["versions"], "fewnode": fewnode.__version__}


def _keep(place: Path, model: Estimator, data: Dataset) -> None:
    """Written beside and moved into place: who looks sees a whole model or none."""
    beside = place.with_name(f"{place.name}.{secrets.token_hex(4)}")
    try:
        model.save(beside)
        keep(beside, model, data)
        shutil.rmtree(place, ignore_errors=True)
        beside.rename(place)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _place(data: Dataset) -> Path:
    home = data.graph.home
    if home is not None and os.access(home, os.W_OK):
        return home / FOLDER
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "fewnode" / data.sha256[:32]
