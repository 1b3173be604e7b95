"""Vectors beside a table: an array or an .npy file with a row for each node joins the table as one more column."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fewnode.datasets.npz import DAMAGED, npy_header
from fewnode.datasets.rows import NodeRows
from fewnode.datasets.standardise import Vectors
from fewnode.errors import FewnodeError
from fewnode.interchange import plain_array
from fewnode.machine.files import one_line, readable

VectorSource: TypeAlias = str | os.PathLike[str] | Any
"""An .npy file, or anything that NumPy takes for a matrix."""
VectorSources: TypeAlias = VectorSource | Sequence[str | os.PathLike[str]] | Mapping[str, VectorSource] | None

NAMELESS = "vectors"
"""The column of an array that has no name."""


def read_vectors(sources: VectorSources) -> dict[str, Vectors]:
    """The matrices by the names of their columns: a file goes by its name."""
    if sources is None:
        return {}
    if isinstance(sources, Mapping):
        return {str(name): _matrix(source, f"vectors {str(name)!r}") for name, source in sources.items()}
    if isinstance(sources, (str, os.PathLike)):
        sources = [sources]
    if isinstance(sources, (list, tuple)) and sources and all(isinstance(each, (str, os.PathLike)) for each in sources):
        files = [Path(each) for each in sources]
        if twice := next((file for file in files if sum(file.stem == other.stem for other in files) > 1), None):
            raise FewnodeError(f"{twice}: two files of vectors are called {twice.stem!r}; rename one")
        return {file.stem: read_npy(file) for file in files}
    return {NAMELESS: _matrix(sources, NAMELESS)}


def read_npy(path: Path) -> Vectors:
    """A matrix of numbers from an .npy file; Python objects are never loaded."""
    with readable(path) as file:
        try:
            shape, order, dtype = npy_header(file)
        except DAMAGED as error:
            raise FewnodeError(f"{path}: not a readable .npy file ({one_line(error)})") from None
        if dtype.hasobject or dtype.kind not in "biuf" or len(shape) != 2:
            raise FewnodeError(f"{path}: found {dtype} {shape}, expected numbers, a row for each node")
        size, there = math.prod(shape) * dtype.itemsize, os.fstat(file.fileno()).st_size - file.tell()
        if size != there:
            raise FewnodeError(f"{path}: claims {size:,} bytes, but stores {there:,}")
        flat = np.frombuffer(file.read(), dtype)
    return _single(flat.reshape(shape, order=order))


def attach(rows: NodeRows, vectors: Mapping[str, Vectors]) -> NodeRows:
    """The same rows with a column more for each matrix. A row of NaN is a missing vector."""
    for name, matrix in vectors.items():
        if name in rows.headers:
            raise FewnodeError(f"{rows.name}: there is a column {name!r} already; vectors need a name of their own")
        if len(matrix) != len(rows):
            raise FewnodeError(
                f"{name}: {len(matrix):,} vectors for the {len(rows):,} nodes of {rows.name}; "
                "expected one for each row, in the same order"
            )
        rows = _with_column(rows, name, matrix)
    return rows


def _with_column(rows: NodeRows, name: str, matrix: Vectors) -> NodeRows:
    parts, start = [], 0
    for part in rows.parts:
        table, stop = part.table, start + len(part.table)
        data = table.data.append_column(name, _cells(matrix[start:stop]))
        parts.append(replace(part, table=replace(table, data=data, header=(*table.header, name))))
        start = stop
    return NodeRows(tuple(parts))


def _cells(matrix: Vectors) -> pa.Array:
    missing = np.isnan(matrix).all(axis=1) if matrix.shape[1] else np.zeros(len(matrix), bool)
    ends = pa.array(np.arange(len(matrix) + 1) * matrix.shape[1], pa.int64())
    values = pa.array(np.ascontiguousarray(matrix).reshape(-1))
    return pa.LargeListArray.from_arrays(ends, values, mask=pa.array(missing))


def _matrix(source: VectorSource, what: str) -> Vectors:
    if isinstance(source, (str, os.PathLike)):
        return read_npy(Path(source))
    try:
        matrix = np.asarray(plain_array(source))
    except (TypeError, ValueError) as error:
        raise FewnodeError(f"{what}: no matrix ({one_line(error)})") from None
    if matrix.ndim != 2 or matrix.dtype.kind not in "biuf":
        raise FewnodeError(f"{what}: found {matrix.dtype} {matrix.shape}, expected numbers, a row for each node")
    return _single(matrix)


def _single(matrix: NDArray[Any]) -> Vectors:
    with np.errstate(over="ignore"):  # what becomes infinite is refused with its row
        return matrix.astype(np.float32)
