"""The embedding of all nodes, kept in a directory: it depends on the model and the network alone, and may take long.

`fewnode train` keeps it with the run, so that `predict`, `suggest` and `serve` begin at once. It can be deleted.
Answers depend on it alone, so it counts only if this user wrote it: it is signed, together with the model's weights
and the network. One that comes with a stranger's run is computed anew.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from pathlib import Path

import numpy as np
import torch

import fewnode
from fewnode.dataset import Dataset
from fewnode.engine.sparse import as_tensor
from fewnode.errors import FewnodeError
from fewnode.estimator import Estimator
from fewnode.machine import memory
from fewnode.machine.signing import is_signed, sign
from fewnode.recognition.prototypes import Prototypical
from fewnode.storage.io import read_record, write_record
from fewnode.storage.packing import Arrays

KIND = "embedding"


def keep(directory: Path, model: Estimator, data: Dataset) -> None:
    """Write the embedding if it is worth it. Without room for it the next process takes as long as this one did."""
    if _is_worth_it(model):
        z, importance = model.embedded(data.graph)
        with suppress(OSError):
            arrays = {"z": z.contiguous().numpy(), "importance": importance.contiguous().numpy()}
            write_record(directory, KIND, {"signature": sign(KIND, *_signed(model, data, arrays))}, arrays)


def recall(directory: Path, model: Estimator, data: Dataset) -> bool:
    """Let the model have the embedding that this user's `keep` wrote for this model and this network."""
    if not _is_worth_it(model):
        return False
    try:
        meta, arrays = read_record(directory, KIND, check=False)  # the signature covers every number
        z, importance = arrays["z"], arrays["importance"]
    except (FewnodeError, OSError, KeyError):
        return False
    if z.ndim != 2 or z.shape[0] != data.graph.n or importance.shape != z.shape[:1]:
        return False
    if z.dtype != np.float32 or importance.dtype != np.float32:
        return False
    if not is_signed(meta.get("signature"), KIND, *_signed(model, data, arrays)):
        return False
    model.remember(data.graph, as_tensor(z), as_tensor(importance))
    return True


def _signed(model: Estimator, data: Dataset, arrays: Arrays) -> tuple[bytes | memoryview, ...]:
    shape, z = str(arrays["z"].shape), memory.chunks(arrays["z"])
    return fingerprint(model, data).encode(), shape.encode(), *(part.data for part in z), arrays["importance"].data


def _is_worth_it(model: Estimator) -> bool:
    """Attributes made of the structure (`features`) are not kept, and take longer than all the rest."""
    return isinstance(model.method_, Prototypical) and model.method_.kept and model.features is None


def fingerprint(model: Estimator, data: Dataset) -> str:
    """Models and networks that share it have the same embedding, to the last bit."""
    made_with = {**model.all_settings(), "version": fewnode.__version__, "threads": torch.get_num_threads()}
    digest = hashlib.sha256(f"{json.dumps(made_with, sort_keys=True, default=str)} {data.sha256}".encode())
    for name, tensor in sorted(model.method_.state().items()):
        digest.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}".encode())
        digest.update(tensor.contiguous().numpy().tobytes())
    return digest.hexdigest()
