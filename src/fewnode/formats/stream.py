"""An `.npz` network larger than memory, imported piece by piece: every array is read in order, none is held whole.

Rows of the adjacency matrix are made in ranges that fit: each range is one reading of the edges (`arc_rows`).
"""

from __future__ import annotations

import io
import math
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewnode.class_labels import UNKNOWN
from fewnode.column_blocks import SAMPLE, dense_blocks
from fewnode.dataset import ClassSplit, Dataset
from fewnode.errors import FewnodeError
from fewnode.formats.arc_rows import write_rows
from fewnode.formats.npz import checked_labels, names_of, note_of, open_archive, read_npz, split_of, warn_others
from fewnode.machine import memory
from fewnode.machine.files import one_line
from fewnode.machine.npy import DAMAGED, need_plain_shape, npy_header
from fewnode.storage.io import Stream, load_dataset, stored_blocks, write_record
from fewnode.storage.packing import pack_names

LARGE = ("edge_index", "x", "x_data", "x_indices", "x_indptr")
SMALL = ("y", "x_shape", "train_classes", "valid_classes", "test_classes", "class_names", "vocab", "info")
PIECE = 1 << 22
"""Numbers read at a time."""


def import_stream(
    path: Path,
    out: Path,
    limit: int,
    fractions: Sequence[float] = (50, 20, 30),
    seed: int = 0,
    directed: bool = False,
    name: str | None = None,
) -> Dataset:
    """The network of an .npz file (`edge_index, y, x` and what else `read_dataset_npz` takes) as a dataset directory.

    At most `limit` bytes are in use. Node names are refused: a Python string for each would not fit.
    """
    try:
        return _import(path, out, limit, fractions, seed, directed, name)
    except DAMAGED as error:
        raise FewnodeError(f"{path}: not a readable .npz file ({one_line(error)})") from None


def _import(
    path: Path, out: Path, limit: int, fractions: Sequence[float], seed: int, directed: bool, name: str | None
) -> Dataset:
    if not path.is_file():
        raise FewnodeError(f"{path}: no such file; --memory imports .npz files")
    with open_archive(path, LARGE):  # what is bounded here is opened again for each array
        columns = {each: Column(path, each) for each in (*LARGE, "node_names") if _has(path, each)}
    small = read_npz(path, SMALL)
    for kind in ("edge_weight", "edge_type"):
        if _has(path, kind):
            raise FewnodeError(f"{path}: array {kind!r} is not read with --memory; leave it out, or --memory")
    if "node_names" in columns:
        raise FewnodeError(f"{path}: node names do not fit with --memory; leave them out of the file, rows are numbers")
    if "edge_index" not in columns:
        raise FewnodeError(f"{path}: array 'edge_index' is missing")
    try:
        y = _labels(columns, small)
        split = split_of(small, y) or ClassSplit.random(y, fractions, seed)
    except FewnodeError as error:
        raise FewnodeError(f"{path}: {error}") from None
    names = names_of(small, "class_names")
    top = max([int(y.max(initial=-1)), *split.train, *split.valid, *split.test])
    x, shape = _attributes(path, columns, small, y.size)
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=out) as waiting:
        indptr = _rows(columns["edge_index"], y.size, limit, directed, waiting)
        index = np.dtype(np.int32 if max(int(indptr[-1]), y.size) < 2**31 else np.int64)
        indices = Stream(index, (int(indptr[-1]),), _waiting(waiting))
        meta = {
            "name": name or path.stem,
            "x_shape": list(shape),
            "class_names": list(names or map(str, range(top + 1))),
            "split": {part: list(split.part(part)) for part in ("train", "valid", "test")},
            "info": {"source": path.name, "note": note_of(small), **warn_others(path, {*columns, *small})},
            "encoding": None,
            **_blocks(columns),
        }
        arrays = {"adj.indptr": indptr.astype(index), "adj.indices": indices, "y": y, **x}
        if words := names_of(small, "vocab"):
            arrays |= pack_names("feature_names", words)
        write_record(out, "dataset", meta, arrays)
    return load_dataset(out, check=False)


def _labels(columns: dict[str, Column], small: dict[str, NDArray[Any]]) -> NDArray[np.int64]:
    """As `labels_of` has them; without `y`, attributes must tell how many nodes there are."""
    if "y" in small:
        return checked_labels(small["y"]).astype(np.int64)
    told = columns.get("x", columns.get("x_indptr"))
    if told is None:
        raise FewnodeError("no array says how many nodes there are, expected 'y' or attributes")
    return np.full(told.shape[0] - (told.name != "x"), UNKNOWN)


class Column:
    """One array of an .npz file, read in order; nothing of it is kept."""

    def __init__(self, path: Path, name: str) -> None:
        self.path, self.name = path, name
        with self._open() as (_, head):
            self.shape, self.dtype = head
        need_plain_shape(f"{path}: array {name!r}", self.shape, self.dtype)
        if self.dtype.kind not in "biufUS" or self.dtype.hasobject:
            raise FewnodeError(f"{path}: array {name!r} holds {self.dtype}, expected numbers")

    def _open(self) -> Any:
        return _Member(self.path, self.name)

    def pieces(self, start: int = 0, count: int | None = None) -> Iterator[NDArray[Any]]:
        """Numbers from `start` on, flat."""
        left = math.prod(self.shape) - start if count is None else count
        with self._open() as (file, _):
            file.seek(start * self.dtype.itemsize, io.SEEK_CUR)
            while left:
                blob = file.read(min(PIECE, left) * self.dtype.itemsize)
                if not blob or len(blob) % self.dtype.itemsize:
                    raise FewnodeError(f"{self.path}: array {self.name!r} is cut short")
                yield np.frombuffer(blob, self.dtype)
                left -= len(blob) // self.dtype.itemsize


class _Member:
    """A file in the archive, past its header."""

    def __init__(self, path: Path, name: str) -> None:
        self.path, self.name = path, name

    def __enter__(self) -> tuple[Any, tuple[tuple[int, ...], np.dtype[Any]]]:
        self.archive = zipfile.ZipFile(self.path)
        self.file = self.archive.open(f"{self.name}.npy")
        shape, order, dtype = npy_header(self.file)  # type: ignore[arg-type]
        if order != "C" and len(shape) > 1:
            raise FewnodeError(f"{self.path}: array {self.name!r} is in Fortran order; save it in C order")
        return self.file, (shape, dtype)

    def __exit__(self, *_: object) -> None:
        self.file.close()
        self.archive.close()


def _has(path: Path, name: str) -> bool:
    with zipfile.ZipFile(path) as archive:
        return f"{name}.npy" in archive.namelist()


def _attributes(
    path: Path, columns: dict[str, Column], small: dict[str, NDArray[Any]], n: int
) -> tuple[dict[str, Any], tuple[int, int]]:
    if "x" in columns:
        if "x_indptr" in columns:
            raise FewnodeError(f"{path}: attributes are there twice, as 'x' and as 'x_indptr'; leave out one of them")
        x = columns["x"]
        if len(x.shape) != 2 or x.shape[0] != n or x.dtype.kind not in "biuf":
            raise FewnodeError(f"{path}: attributes are {x.dtype} {x.shape}, expected numbers, {n} rows")
        return {"x": Stream(np.dtype(np.float32), x.shape, _finite(x))}, (n, x.shape[1])
    if "x_indptr" not in columns:
        empty = {"x.indptr": np.zeros(n + 1, np.int32), "x.indices": np.zeros(0, np.int32)}
        return {**empty, "x.data": np.zeros(0, np.float32)}, (n, 0)
    if missing := [part for part in ("x_data", "x_indices", "x_shape") if part not in {*columns, *small}]:
        raise FewnodeError(f"{path}: array {missing[0]!r} is missing beside 'x_indptr'")
    data, indices, indptr = (columns[f"x_{part}"] for part in ("data", "indices", "indptr"))
    index = np.dtype(np.int32 if math.prod(data.shape) < 2**31 else np.int64)
    types = {"x.data": (data, np.dtype(np.float32)), "x.indices": (indices, index), "x.indptr": (indptr, index)}
    streams = {name: Stream(dtype, column.shape, column.pieces()) for name, (column, dtype) in types.items()}
    streams["x.data"] = Stream(np.dtype(np.float32), data.shape, _finite(data))
    rows, width = (int(each) for each in small["x_shape"])
    if rows != n or indptr.shape != (n + 1,):
        raise FewnodeError(f"{path}: x_shape says {rows} rows and x_indptr {indptr.shape[0] - 1}, expected {n}")
    return streams, (rows, width)


def _blocks(columns: dict[str, Column]) -> dict[str, Any]:
    """What the first of the dense attributes look like, as `read_dataset_npz` sees them."""
    if "x" not in columns or not math.prod(columns["x"].shape):
        return {}
    width = columns["x"].shape[1]
    rows = max(1, min(columns["x"].shape[0], -(-SAMPLE // width)))
    first = np.concatenate(list(columns["x"].pieces(0, rows * width))).reshape(rows, width)
    return stored_blocks(dense_blocks(first))


def _finite(column: Column) -> Iterator[NDArray[np.float32]]:
    seen = 0
    for piece in column.pieces():
        with np.errstate(over="ignore"):
            numbers = piece.astype(np.float32)
        finite = np.isfinite(numbers)
        if not finite.all():
            place = seen + int(np.argmin(finite))
            raise FewnodeError(f"{column.path}: number {place} of the attributes is NaN or infinite")
        yield numbers
        seen += piece.size


def _rows(edges: Column, n: int, limit: int, directed: bool, waiting: Any) -> NDArray[np.int64]:
    """The columns of each row go to the file `waiting`; the starts of the rows are returned."""
    if len(edges.shape) != 2 or edges.shape[0] != 2 or edges.dtype.kind not in "iu":
        raise FewnodeError(f"{edges.path}: edges are {edges.dtype} {edges.shape}, expected integers of shape (2, E)")
    return write_rows(lambda: _arcs(edges, n, directed), n, limit, waiting)


def _arcs(edges: Column, n: int, directed: bool) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Sources and targets; unless `directed`, every edge both ways."""
    e = edges.shape[1]
    for one, other in zip(edges.pieces(0, e), edges.pieces(e, e), strict=True):
        source, target = one.astype(np.int64), other.astype(np.int64)
        _check_ends(edges, source, target, n)
        yield source, target
        if not directed:
            yield target, source


def _check_ends(edges: Column, source: NDArray[np.int64], target: NDArray[np.int64], n: int) -> None:
    for ends in (source, target):
        if ends.size and (ends.min() < 0 or ends.max() >= n):
            bad = int(ends[(ends < 0) | (ends >= n)][0])
            raise FewnodeError(f"{edges.path}: edge with node {bad}, which is out of range; expected 0 to {n - 1}")


def _waiting(file: Any) -> Iterator[NDArray[np.int32]]:
    file.seek(0)
    while blob := file.read(4 * PIECE):
        yield np.frombuffer(blob, np.int32)
        memory.keep()
