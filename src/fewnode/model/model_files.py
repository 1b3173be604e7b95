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
