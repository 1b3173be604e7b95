"""The embedding of all nodes, kept in a directory: it depends on the model and the network alone, and may take long.

`fewnode train` keeps it with the run, so that `predict`, `suggest` and `serve` begin at once. It can be deleted.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from pathlib import Path

import numpy as np
import torch

import fewnode
from fewnode.engine.sparse import as_tensor
from fewnode.errors import FewnodeError
from fewnode.estimator import Estimator
from fewnode.graph import Dataset
from fewnode.io import read_record, write_record
from fewnode.methods.gpn import Prototypical

KIND = "embedding"


def keep(directory: Path, model: Estimator, data: Dataset) -> None:
    """Write the embedding if it is worth it. Without room for it the next process takes as long as this one did."""
    if _is_worth_it(model):
        z, importance = model.embedded(data.graph)
        with suppress(OSError):
            arrays = {"z": z.numpy(), "importance": importance.numpy()}
            write_record(directory, KIND, {"key": fingerprint(model, data)}, arrays)


def recall(directory: Path, model: Estimator, data: Dataset) -> bool:
    """Let the model have the embedding that `keep` wrote, if it is this model's of this network, and whole."""
    if not _is_worth_it(model):
        return False
    try:
        meta, arrays = read_record(directory, KIND)
        z, importance = arrays["z"], arrays["importance"]
    except (FewnodeError, OSError, KeyError):
        return False
    n = data.graph.n
    whole = z.ndim == 2 and z.shape[0] == n and importance.shape == (n,) and z.dtype == importance.dtype == np.float32
    if not whole or meta.get("key") != fingerprint(model, data) or not np.isfinite(z).all():
        return False
    model.remember(data.graph, as_tensor(z), as_tensor(importance))
    return True


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
