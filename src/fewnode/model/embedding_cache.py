"""The embedding of all nodes, kept in the user's cache: it depends on the model and the network, and may take long.

Each model and network have a folder of their own there, which is named by their fingerprint. It can be deleted. What
lies beside a run or a dataset may be a stranger's, and is not read.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from contextlib import suppress
from pathlib import Path

import numpy as np

import fewnode
from fewnode._system.files import cache_directory
from fewnode._system.locks import threads
from fewnode.dataset import Dataset
from fewnode.errors import FewnodeError
from fewnode.formats.directory import read_record, write_record
from fewnode.method import Embeds, Stored
from fewnode.model.estimator import Estimator
from fewnode.vectors import as_arrays, from_arrays

KIND = "embedding"
MAX_CACHE_BYTES = 10 << 30
"""Of all that is kept; then what was not used for longest goes."""


def keep(model: Estimator, data: Dataset) -> None:
    """Write the embedding if it is worth it. Without room for it the next process takes as long as this one did."""
    if _is_worth_it(model):
        embedding = model.space(data).embedding
        with suppress(OSError, FewnodeError):
            write_record(_place(model, data), KIND, {}, as_arrays(embedding))
            shrink(_place(model, data).parent)


def recall(model: Estimator, data: Dataset) -> bool:
    """Let the model have the embedding that `keep` wrote for this model and this network."""
    if not _is_worth_it(model):
        return False
    try:
        place = _place(model, data)
        embedding = from_arrays(read_record(place, KIND)[1], data.graph.n)
        os.utime(place)
    except (FewnodeError, OSError, KeyError, ValueError):
        return False
    model.space(data, embedding)
    return True


def shrink(folder: Path) -> None:
    """Delete what was not used for longest until the rest is small enough. What was used last stays."""
    sizes = {kept: sum(file.stat().st_size for file in kept.iterdir()) for kept in folder.iterdir() if kept.is_dir()}
    oldest = sorted(sizes, key=lambda kept: kept.stat().st_mtime)
    while len(oldest) > 1 and sum(sizes[kept] for kept in oldest) > MAX_CACHE_BYTES:
        shutil.rmtree(oldest.pop(0), ignore_errors=True)


def fingerprint(model: Estimator, data: Dataset) -> str:
    """Models and networks that share it have the same embedding, to the last bit."""
    made_with = {**model.all_settings(), "version": fewnode.__version__, "threads": threads()}
    digest = hashlib.sha256(f"{json.dumps(made_with, sort_keys=True, default=str)} {data.sha256}".encode())
    for name, tensor in sorted(model.method_.state().items()):
        digest.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}".encode())
        digest.update(np.asarray(tensor).tobytes())
    return digest.hexdigest()


def _place(model: Estimator, data: Dataset) -> Path:
    return cache_directory("embeddings") / fingerprint(model, data)


def _is_worth_it(model: Estimator) -> bool:
    """Attributes made of the structure (`features`) are not kept, and take longer than all the rest."""
    return isinstance(model.method_, Embeds) and isinstance(model.method_, Stored) and model.features is None
