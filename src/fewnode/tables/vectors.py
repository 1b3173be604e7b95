"""Vectors beside a table: an array or an .npy file with a row for each node joins the table as one more column."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tokenize import TokenError
from typing import Any
from zipfile import BadZipFile

import numpy as np
import pyarrow as pa

from fewnode._system.files import one_line, readable
from fewnode.errors import FewnodeError
from fewnode.interchange import plain_array
from fewnode.tables.columns import Vectors
from fewnode.tables.rows import Rows

DAMAGED = (ValueError, OSError, EOFError, SyntaxError, TokenError, TypeError, ArithmeticError, BadZipFile)
"""What NumPy raises at bytes that are not its own."""
NAMELESS = "vectors"
"""The column of an array that has no name."""


def read_vectors(given: Any, files: Sequence[str] = ()) -> dict[str, Vectors]:
    """The matrices by the names of their columns: a file goes by its name. `given` is a matrix, a file, or several."""
    if isinstance(given, Mapping):
        return {str(name): _matrix(source, f"vectors {str(name)!r}") for name, source in given.items()}
    if isinstance(given, (str, os.PathLike)):
        given = [given]
    if isinstance(given, (list, tuple)) and given and all(isinstance(each, (str, os.PathLike)) for each in given):
        files, given = [*files, *map(str, given)], None
    paths = [Path(each) for each in files]
    if twice := next((path for path in paths if sum(path.stem == other.stem for other in paths) > 1), None):
        raise FewnodeError(f"{twice}: two files of vectors are called {twice.stem!r}; rename one")
    matrices = {path.stem: read_npy(path) for path in paths}
    return matrices if given is None else {**matrices, NAMELESS: _matrix(given, NAMELESS)}


def read_npy(path: Path) -> Vectors:
    """A matrix of numbers from an .npy file; Python objects are never loaded."""
    with readable(path):
        try:
            matrix = np.load(path, mmap_mode="r")
        except DAMAGED as error:
            raise FewnodeError(f"{path}: not a readable .npy file, or cut short ({one_line(error)})") from None
    if not isinstance(matrix, np.ndarray):
        raise FewnodeError(f"{path}: several arrays, expected an .npy file of one")
    return _matrix(matrix, str(path))


def with_vectors(rows: Rows, vectors: Mapping[str, Vectors]) -> Rows:
    """The same rows with a column more for each matrix. A row of NaN is a missing vector."""
    for name, matrix in vectors.items():
        if name in rows.headers or name in rows.beside:
            raise FewnodeError(f"{rows.name}: there is a column {name!r} already; vectors need a name of their own")
        count = len(rows) + rows.repeated
        if len(matrix) not in (len(rows), count):
            raise FewnodeError(
                f"{name}: {len(matrix):,} vectors for the {count:,} nodes of {rows.name}; "
                "expected one for each row, in the same order"
            )
        own = matrix if len(matrix) == len(rows) else matrix[rows.origin]
        missing = np.isnan(own).all(axis=1) if own.shape[1] else np.zeros(len(own), bool)
        ends = pa.array(np.arange(len(own) + 1) * own.shape[1], pa.int64())
        values = pa.array(np.ascontiguousarray(own).reshape(-1))
        cells = pa.LargeListArray.from_arrays(ends, values, mask=pa.array(missing))
        rows = replace(rows, beside={**rows.beside, name: cells})
    return rows


def _matrix(source: Any, what: str) -> Vectors:
    if isinstance(source, (str, os.PathLike)):
        return read_npy(Path(source))
    try:
        matrix = np.asarray(plain_array(source))
    except (TypeError, ValueError) as error:
        raise FewnodeError(f"{what}: no matrix ({one_line(error)})") from None
    if matrix.ndim != 2 or matrix.dtype.kind not in "biuf":
        raise FewnodeError(f"{what}: found {matrix.dtype} {matrix.shape}, expected numbers, a row for each node")
    with np.errstate(over="ignore"):  # what becomes infinite is refused with its row
        single: Vectors = matrix.astype(np.float32)
    return single
