"""The directory of a model: whether it is one, and whether what it holds can be weights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewnode._system.files import one_line
from fewnode.errors import FewnodeError
from fewnode.formats.directory import read_record
from fewnode.formats.manifest import ModelManifest, StoredOptions, check_manifest
from fewnode.method import Embeds, Stored
from fewnode.methods.table import METHODS
from fewnode.model.estimator import OWN_PARTS, Estimator
from fewnode.model.fitting import recorded_head

ARRAY_TYPES = ("float32", "float64", "int64", "uint8", "bool")


def read_model(directory: Path) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The manifest and the arrays of a model; where there is none, what there is instead."""
    if not directory.is_dir():
        raise FewnodeError(f"{directory}: no such run; train one first")
    if not (directory / "model.json").exists():
        if (directory / "dataset.json").exists():
            raise FewnodeError(f"{directory}: a dataset, not a model; train one on it")
        raise FewnodeError(f"{directory}: no model in it; an unfinished training can be resumed")
    return read_record(directory, "model")


@contextmanager
def naming(directory: Path) -> Iterator[None]:
    """What is found wrong with a model inside of this is said of its directory."""
    try:
        yield
    except FewnodeError as error:
        raise FewnodeError(f"{directory}: {error}") from None
    except (LookupError, ValueError, TypeError, RuntimeError, AttributeError, OverflowError) as error:
        raise FewnodeError(f"{directory}: not a complete model ({one_line(error)})") from None


def checked_arrays(state: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Arrays in memory of their own; a checksum says that they are as written, not that they are numbers."""
    for name, array in state.items():
        if array.dtype.name not in ARRAY_TYPES:
            raise FewnodeError(f"tensor {name!r} is {array.dtype}, expected {', '.join(ARRAY_TYPES)}")
        if not np.isfinite(array).all():
            raise FewnodeError(f"tensor {name!r} is not finite")
    return {name: array.copy() for name, array in state.items()}


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
    directory = Path(directory)
    meta, state = read_model(directory)
    with naming(directory):
        check_manifest(ModelManifest, meta)
        options = dict(meta["options"])
        for part, again in zip(OWN_PARTS, (encoder, valuator), strict=True):
            if isinstance(options.get(part), dict):
                own = options.pop(part).get("class")
                if again is None:
                    raise FewnodeError(f"was trained with its own {part}, {own}; pass load_model(…, {part}=…)")
        source = method or meta["method"]
        if method is None and source not in METHODS:
            raise FewnodeError(f"was trained with {source}, which is code; name it: --method FILE.py:CLASS")
        if isinstance(source, str) and source in METHODS:
            options = {name: value for name, value in options.items() if value is not None}  # as the method has it
            check_manifest(StoredOptions, options, "options.")
        options |= {part: own for part, own in zip(OWN_PARTS, (encoder, valuator), strict=True) if own is not None}
        model = Estimator(source, *(meta[key] for key in ("way", "shot", "query", "seed", "features")), **options)
        model.trained_ = dict(meta["trained"])
        if isinstance(model.method_, Stored):
            model.method_.restore(model.trained_["width"], checked_arrays(state))
            model.needs_fit = False
            if isinstance(model.method_, Embeds):
                recorded_head(model.method_.head(), model.trained_)  # or it is refused
    return model
