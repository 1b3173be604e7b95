"""The directory of a model, and its embedding of a network in the user's cache, each of which may be a stranger's.

An embedding depends on the model and the network, and may take long. Each pair has a folder of its own in the cache,
which is named by their fingerprint and can be deleted. What lies beside a run or a dataset is not read.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import fewnode
from fewnode._system import kept
from fewnode._system.files import cache_directory, one_line
from fewnode.dataset import Dataset
from fewnode.errors import FewnodeError
from fewnode.formats.directory import read_record, write_record
from fewnode.formats.manifest import ModelManifest, StoredOptions, check_manifest
from fewnode.method import Embeds, Stored, head_of
from fewnode.methods.table import METHODS
from fewnode.model.estimator import OWN_PARTS, Estimator
from fewnode.model.fitting import recorded_head
from fewnode.vectors import as_arrays, from_arrays

ARRAY_TYPES = ("float32", "float64", "int64", "uint8", "bool")
KIND = "embedding"
MAX_CACHE_BYTES = 10 << 30
"""Of all embeddings that are kept; then what was not used for longest goes."""


def load_model(
    directory: str | Path, encoder: Any = None, method: str | type | None = None, valuator: Any = None
) -> Estimator:
    """A model that `save` wrote.

    One that was trained with an `encoder` or a `valuator` of your own needs it again, and so does one that was trained
    with a `method` of your own: its class, or file.py:Class. A method that keeps no state comes back with `needs_fit`.

    >>> import fewnode, numpy as np
    >>> y = np.repeat(range(12), 20)
    >>> data = fewnode.Dataset.from_scipy(y[:, None] == y, np.eye(12)[y], y)
    >>> fewnode.Estimator("propagation", way=3, shot=2, steps=1).fit(data).save("run")
    >>> load_model("run").predict(data.graph, [0, 25], ["mail", "vpn"], [3, 30])
    ['mail', 'vpn']
    """
    meta, state = read_model(Path(directory))
    try:
        check_manifest(ModelManifest, meta)
        return _restored(meta, state, method, dict(zip(OWN_PARTS, (encoder, valuator), strict=True)))
    except FewnodeError as error:
        raise FewnodeError(f"{directory}: {error}") from None
    except (LookupError, ValueError, TypeError, RuntimeError, AttributeError, OverflowError) as error:
        raise FewnodeError(f"{directory}: not a complete model ({one_line(error)})") from None


def read_model(directory: Path) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The manifest and the arrays of a model; where there is none, what there is instead."""
    if not directory.is_dir():
        raise FewnodeError(f"{directory}: no such run; train one first")
    if not (directory / "model.json").exists():
        if (directory / "dataset.json").exists():
            raise FewnodeError(f"{directory}: a dataset, not a model; train one on it")
        raise FewnodeError(f"{directory}: no model in it; an unfinished training can be resumed")
    return read_record(directory, "model")


def _restored(
    meta: Mapping[str, Any], state: Mapping[str, NDArray[Any]], method: str | type | None, parts: Mapping[str, Any]
) -> Estimator:
    """The model of a manifest that was checked; `parts` are the user's own."""
    options, source = dict(meta["options"]), method or meta["method"]
    for part, again in parts.items():
        if isinstance(options.get(part), dict):
            own = options.pop(part).get("class")
            if again is None:
                raise FewnodeError(f"was trained with its own {part}, {own}; pass load_model(…, {part}=…)")
    if method is None and source not in METHODS:
        raise FewnodeError(f"was trained with {source}, which is code; name it: `method` FILE.py:CLASS")
    if isinstance(source, str) and source in METHODS:
        options = {name: value for name, value in options.items() if value is not None}  # as the method has it
        check_manifest(StoredOptions, options, "options.")
    options |= {part: own for part, own in parts.items() if own is not None}
    model = Estimator(source, *(meta[key] for key in ("way", "shot", "query", "seed", "features")), **options)
    model.trained_ = dict(meta["trained"])
    if isinstance(model.method_, Stored):
        for name, array in state.items():  # a checksum says that they are as written, not that they are numbers
            if array.dtype.name not in ARRAY_TYPES:
                raise FewnodeError(f"tensor {name!r} is {array.dtype}, expected {', '.join(ARRAY_TYPES)}")
            if not np.isfinite(array).all():
                raise FewnodeError(f"tensor {name!r} is not finite")
        model.method_.restore(model.trained_["width"], {name: array.copy() for name, array in state.items()})
        model.needs_fit = False
        if isinstance(model.method_, Embeds):
            recorded_head(head_of(model.method_), model.trained_)  # or it is refused
    return model


# --- the embedding of a network -----------------------------------------------------------------------------------


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
    sizes = {each: sum(file.stat().st_size for file in each.iterdir()) for each in folder.iterdir() if each.is_dir()}
    oldest = sorted(sizes, key=lambda each: each.stat().st_mtime)
    while len(oldest) > 1 and sum(sizes[each] for each in oldest) > MAX_CACHE_BYTES:
        shutil.rmtree(oldest.pop(0), ignore_errors=True)


def fingerprint(model: Estimator, data: Dataset) -> str:
    """Models and networks that share it have the same embedding, to the last bit."""
    made_with = {**model.all_settings(), "version": fewnode.__version__, "threads": kept.threads()}
    state = [part for name, array in sorted(model.method_.state().items()) for part in (name, np.atleast_1d(array))]
    return kept.fingerprint(json.dumps(made_with, sort_keys=True, default=str), data.sha256, *state)


def _place(model: Estimator, data: Dataset) -> Path:
    return cache_directory("embeddings") / fingerprint(model, data)


def _is_worth_it(model: Estimator) -> bool:
    """Attributes made of the structure (`features`) are not kept, and take longer than all the rest."""
    return isinstance(model.method_, Embeds) and isinstance(model.method_, Stored) and model.features is None
