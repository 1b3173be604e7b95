"""What stands before the numbers of an .npy file, and what is refused there."""

from __future__ import annotations

import math
import warnings
import zipfile
import zlib
from tokenize import TokenError
from typing import Any, BinaryIO, Literal

import numpy as np

from fewnode.errors import FewnodeError

MAX_EMPTY = 1 << 20
"""Rows of an array that stores nothing, as one of a million rows and no column: a file of a few bytes can claim any."""

DAMAGED = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    ValueError,
    OverflowError,
    NotImplementedError,
    RuntimeError,
    SyntaxError,
    TokenError,
)
"""What Python's own zip and npy readers raise at bytes that are not theirs."""


def need_plain_shape(where: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> int:
    """The bytes of an array, if its shape is one that it may have."""
    if not all(type(length) is int and length >= 0 for length in shape):
        raise FewnodeError(f"{where} has the shape {str(shape)[:60]}, expected whole numbers from 0 on")
    size = math.prod(shape) * dtype.itemsize
    if not size and math.prod(max(length, 1) for length in shape) > MAX_EMPTY:
        raise FewnodeError(f"{where} claims {str(shape)[:60]} values and stores none")
    return size


def npy_header(file: BinaryIO) -> tuple[tuple[int, ...], Literal["C", "F"], np.dtype[Any]]:
    """Shape, memory order and type of the array that follows in an .npy file."""
    version = np.lib.format.read_magic(file)
    read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that Python 2 wrote it, which does no harm
        shape, fortran, dtype = read_header(file)
    return shape, "F" if fortran else "C", dtype
