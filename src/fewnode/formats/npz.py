"""Two `.npz` layouts that networks are passed around in, read without trusting the file.

The one has `edge_index, y, x_indptr x_indices x_data x_shape, train_classes valid_classes test_classes`, and weights
and kinds of edges as `edge_weight, edge_type, relation_names`. The other is that of the gnn-benchmark collection
(Coauthor, Amazon photo and computers, CoraFull): `adj_* attr_* labels`.
"""

from __future__ import annotations

import errno
import io
import math
import os
import warnings
import zipfile
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from io import BufferedReader
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from fewnode._system import memory
from fewnode._system.files import one_line, readable
from fewnode.class_labels import UNKNOWN
from fewnode.column_blocks import dense_blocks
from fewnode.dataset import ClassSplit, Dataset
from fewnode.errors import FewnodeError, warn_unused
from fewnode.formats.packing import checked_csr
from fewnode.graph import Attributes, Ints
from fewnode.relations import Directed, EdgeRows, edge_rows, read_relations
from fewnode.tables.compact import compact_graph

FREE_INFLATION = 64 << 20
MAX_INFLATION = 100
"""What claims to inflate more than this (beyond 64 MB) is a bomb, not a network."""

MAX_DIRECTORY = 1 << 16
"""Bytes of the list of members: a thousand arrays."""

MAX_CODE = 0x10FFFF
"""The last character that there is."""

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

_CSR = ("data", "indices", "indptr", "shape")
_SPLIT = ("train_classes", "valid_classes", "test_classes")
_EDGES = ("edge_index", "edge_weight", "edge_type", "relation_names")
_OWN = (*_EDGES, "y", "x", *(f"x_{part}" for part in _CSR), *_SPLIT, "vocab", "info")
_BENCHMARK = ("labels", "attr_matrix", "attr_names", *(f"{what}_{part}" for what in ("adj", "attr") for part in _CSR))
_NAMES = {"class_names", "node_names", "attr_names", "info"}
_KNOWN = frozenset((*_OWN, *_BENCHMARK, "class_names", "node_names"))

Arrays = Mapping[str, NDArray[Any]]


def is_bomb(inflated: int, packed: int) -> bool:
    """Whether so many bytes from so few are more than any honest file holds."""
    return inflated > max(FREE_INFLATION, MAX_INFLATION * packed)


def read_npz(path: Path, wanted: Collection[str], mapped: bool = False) -> dict[str, NDArray[Any]]:
    """Those of the `wanted` arrays that an .npz file has as numbers or strings.

    Sizes are checked before anything is inflated. Arrays of Python objects are never loaded. They are refused, but for
    names in the layout of the gnn-benchmark collection, whose own files hold some. `mapped` arrays stay in the file, if
    it is not compressed.
    """
    try:
        with open_archive(path, wanted) as archive:
            members = [m for m in archive.infolist() if m.filename.removesuffix(".npy") in wanted]
            arrays = {m.filename.removesuffix(".npy"): _read_npy(path, archive, m, mapped) for m in members}
            needed = set(arrays) - (_NAMES if "adj_indptr" in arrays else set())
            for name in arrays:
                if arrays[name] is None and name in needed:
                    raise FewnodeError(f"{path}: array {name!r} holds Python objects; save it as numbers or strings")
            return {name: array for name, array in arrays.items() if array is not None}
    except (*DAMAGED, OSError) as error:
        if isinstance(error, OSError) and error.errno != errno.EINVAL:  # that is a place before the file's beginning
            raise
        raise FewnodeError(f"{path}: not a readable .npz file ({one_line(error)})") from None


@contextmanager
def open_archive(path: Path, wanted: Collection[str]) -> Iterator[zipfile.ZipFile]:
    """The archive of an .npz file, once what it claims of its list of members and of the wanted ones is bounded."""
    with readable(path) as file:
        size = os.fstat(file.fileno()).st_size
        _need_short_directory(path, file, size)
        with zipfile.ZipFile(file) as archive:
            names = [member.filename.removesuffix(".npy") for member in archive.infolist()]
            if twice := next((name for i, name in enumerate(names) if name in names[:i]), None):
                raise FewnodeError(f"{path}: array {twice[:60]!r} is there twice; leave out one of them")
            claimed = sum(m.file_size for m, name in zip(archive.infolist(), names, strict=True) if name in wanted)
            if is_bomb(claimed, size):
                raise FewnodeError(f"{path}: claims to inflate to {claimed >> 20} MB, refused")
            yield archive


def _need_short_directory(path: Path, file: BufferedReader, size: int) -> None:
    """Refuse a file whose list of members would take long to read: its length stands at the end of the file.

    `zipfile` also finds that end before a comment, and the length in a record for large files: both are looked at.
    """
    file.seek(max(0, size - 22 - 20 - 56))
    large, place, end = (tail := file.read())[-98:-42], tail[-42:-22], tail[-22:]
    if not end.startswith(b"PK\x05\x06") or end[20:] != b"\0\0":
        raise FewnodeError(f"{path}: not a readable .npz file (a list of members does not end it)")
    listed = int.from_bytes(end[12:16], "little")
    if place.startswith(b"PK\x06\x07"):
        listed = int.from_bytes(large[40:48], "little") if large.startswith(b"PK\x06\x06") else size
    if listed > MAX_DIRECTORY:
        raise FewnodeError(f"{path}: a directory of over {MAX_DIRECTORY >> 10} kB, expected few arrays")
    file.seek(0)


def _read_npy(path: Path, archive: zipfile.ZipFile, member: zipfile.ZipInfo, mapped: bool) -> NDArray[Any] | None:
    where = f"{path}: array {member.filename!r}"
    with archive.open(member) as file:
        head = io.BytesIO(file.read(1 << 16))
        version = np.lib.format.read_magic(head)
        read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that Python 2 wrote it, which does no harm
            shape, fortran, dtype = read_header(head)
        order: Any = "F" if fortran else "C"
        if dtype.hasobject or dtype.kind not in "biufUS":
            return None
        if not all(type(length) is int and length >= 0 for length in shape):
            raise FewnodeError(f"{where} has the shape {str(shape)[:60]}, expected whole numbers from 0 on")
        size = math.prod(shape) * dtype.itemsize
        if not size and math.prod(max(length, 1) for length in shape) > MAX_EMPTY:
            raise FewnodeError(f"{where} claims {str(shape)[:60]} values and stores none")
        if size != member.file_size - head.tell():
            raise FewnodeError(f"{where} claims {size} bytes, but stores {member.file_size - head.tell()}")
        if mapped and member.compress_type == zipfile.ZIP_STORED and size:
            whole = memory.map_file(path)
            lengths = whole[member.header_offset + 26 : member.header_offset + 30].copy().view("<u2")
            start = member.header_offset + 30 + int(lengths.sum()) + head.tell()
            return whole[start : start + size].view(dtype).reshape(shape, order=order)
        blob = head.read() + file.read()
    if len(blob) != size:
        raise FewnodeError(f"{where} is cut short")
    return np.frombuffer(blob, dtype).reshape(shape, order=order)


def read_dataset_npz(
    path: Path,
    fractions: Sequence[float] = (50, 20, 30),
    seed: int = 0,
    directed: Directed = False,
    scale: str | None = None,
    room: Path | None = None,
) -> Dataset:
    """A network in either layout; which one, its arrays tell.

    A file without a class split gets a random one from `fractions` and `seed`. `directed` and `scale` are as in
    `read_relations`. With `room`, a folder for what does not fit, large arrays stay in the file and are read in pieces.
    """
    arrays = read_npz(path, _KNOWN, mapped=room is not None)
    try:
        y, rows, x = _benchmark_graph(arrays, room) if "adj_indptr" in arrays else _own_graph(arrays, room)
        makes: dict[str, Any] = {} if room is None else {"from_edges": compact_graph}
        graph, facts = read_relations(rows, y.size, x, directed=directed, scale=scale, **makes)
        if not y.size:
            raise FewnodeError("there is no node in it")
        if isinstance(x, np.ndarray):
            graph = replace(graph, blocks=dense_blocks(x))  # one vector, unless they look like counts
        split = split_of(arrays, y) or ClassSplit.random(y, fractions, seed)
        names = {key: names_of(arrays, key) for key in ("class_names", "node_names", "vocab", "attr_names")}
        return Dataset(
            graph=graph,
            y=y,
            split=split,
            class_names=names["class_names"] or (),
            node_names=names["node_names"],
            feature_names=names["vocab"] or names["attr_names"],
            name=path.stem,
            info={
                "source": path.name,
                "note": note_of(arrays),
                **facts.info,
                **warn_others(path, arrays),
            },
        )
    except FewnodeError as error:
        raise FewnodeError(f"{path}: {error}") from None
    except (KeyError, ValueError, TypeError, IndexError, OverflowError) as error:
        raise FewnodeError(f"{path}: not the expected layout ({one_line(error)})") from None


def warn_others(path: Path, used: Collection[str]) -> dict[str, list[str]]:
    """Name the arrays of a file that nothing is made of: those nobody knows, and those of Python objects."""
    with zipfile.ZipFile(path) as archive:
        names = dict.fromkeys(name.removesuffix(".npy") for name in archive.namelist())
    unused = [f"{name} (Python objects)" if name in _KNOWN else name for name in names if name not in used]
    if unused:
        warn_unused([f"{path}: {unused[0]}", *unused[1:]], stacklevel=4)
    return {"unused": unused} if unused else {}


def _own_graph(arrays: Arrays, room: Path | None) -> tuple[Ints, EdgeRows, Attributes | None]:
    """Labels, edges and attributes."""
    _require(arrays, "edge_index")
    if "x" in arrays and "x_indptr" in arrays:
        raise FewnodeError("attributes are there twice, as 'x' and as 'x_indptr'; leave out one of them")
    y = labels_of(arrays)
    x = _sparse(arrays, "x", y.size) if "x" not in arrays else _dense(arrays["x"], room)
    kind, names = arrays.get("edge_type"), names_of(arrays, "relation_names")
    return y, edge_rows(arrays["edge_index"], arrays.get("edge_weight"), kind, names), x


def _benchmark_graph(arrays: Arrays, room: Path | None) -> tuple[Ints, EdgeRows, Attributes | None]:
    """Labels, edges and attributes. Every stored value of the matrix that is not zero is an edge of that weight."""
    _require(arrays, "labels", *(f"adj_{part}" for part in _CSR))
    y = checked_labels(arrays["labels"])
    x = _sparse(arrays, "attr", y.size) if "attr_matrix" not in arrays else _dense(arrays["attr_matrix"], room)
    adj = sp.coo_array(_sparse(arrays, "adj", y.size))
    there = adj.data != 0
    return y, edge_rows(np.stack([adj.row, adj.col])[:, there], adj.data[there]), x


def _require(arrays: Arrays, *names: str) -> None:
    if missing := [name for name in names if name not in arrays]:
        found = ", ".join(sorted(arrays)) or "no known array"
        raise FewnodeError(f"array {missing[0]!r} is missing; found {found}")


def _dense(x: NDArray[Any], room: Path | None) -> NDArray[np.float32]:
    if x.ndim != 2 or x.dtype.kind not in "biuf":
        raise FewnodeError(f"attributes are {x.dtype} {x.shape}, expected numbers, a row for each node")
    if room is not None and x.dtype == np.float32 and x.flags.c_contiguous:
        return x
    numbers = np.empty(x.shape, np.float32) if room is None else memory.scratch(room, x.shape)
    low = 0
    for rows in memory.chunks(x):
        with np.errstate(over="ignore"):  # what becomes infinite is refused where the graph is made
            numbers[low : low + len(rows)] = rows
        low += len(rows)
    return numbers


def _sparse(arrays: Arrays, what: str, n: int) -> sp.csr_array | None:
    if f"{what}_indptr" not in arrays:
        return None
    data, indices, indptr, shape = (arrays[f"{what}_{part}"] for part in _CSR)
    rows, columns = (int(s) for s in shape)
    if rows != n:
        raise FewnodeError(f"{what}_shape says {rows} rows for {n} labels")
    try:
        return checked_csr(data, indices, indptr, (rows, columns))
    except FewnodeError as error:
        raise FewnodeError(f"{what}_indptr, {what}_indices: {error}") from None


def labels_of(arrays: Arrays) -> NDArray[Any]:
    """Class ids; without `y` all are unknown, and attributes, names or edges tell how many nodes there are."""
    if "y" in arrays:
        return checked_labels(arrays["y"])
    if "x" in arrays or "node_names" in arrays:
        return np.full(len(arrays["x" if "x" in arrays else "node_names"]), UNKNOWN)
    if "x_shape" in arrays:
        n, told = int(arrays["x_shape"][0]), arrays["x_indptr"].size - 1 if "x_indptr" in arrays else -1
        if n != told:
            raise FewnodeError(f"x_shape says {n} rows, and x_indptr {told}")
        return np.full(n, UNKNOWN)
    edges = arrays["edge_index"]
    n = int(edges.max(initial=-1)) + 1
    if n > 10 * edges.size + 1000:
        raise FewnodeError(f"an edge has node {n - 1}, and no array (y, x, node_names) says how many nodes there are")
    return np.full(n, UNKNOWN)


def checked_labels(y: NDArray[Any]) -> NDArray[Any]:
    """Checked here and not only in `Dataset`: whoever counts classes allocates as many as the largest label says."""
    if y.ndim != 1 or y.dtype.kind not in "iu":
        raise FewnodeError(f"labels are {y.dtype} {y.shape}, expected integers, one a node")
    if y.size and y.max() > _largest_class(y):
        raise FewnodeError(f"label of node {int(np.argmax(y))} is {y.max()}, far more than there are nodes ({y.size})")
    return y


def _largest_class(y: NDArray[Any]) -> int:
    return 10 * y.size + 1000


def split_of(arrays: Arrays, y: NDArray[Any]) -> ClassSplit | None:
    """The class split of a file, if it has any part of it; a part that is not there is empty."""
    if not any(part in arrays for part in _SPLIT):
        return None
    parts = [tuple(int(c) for c in arrays.get(part, ())) for part in _SPLIT]
    for c in (c for part in parts for c in part):
        if not 0 <= c <= _largest_class(y):
            raise FewnodeError(f"class {c} in the split is out of range")
    return ClassSplit(*parts)


def has_split(path: Path) -> bool:
    """Whether it is an .npz file that says which classes are for what."""
    if not path.is_file() or not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        return not {f"{part}.npy" for part in _SPLIT}.isdisjoint(archive.namelist())


def note_of(arrays: Arrays) -> str:
    """What the file says of itself."""
    return " ".join(names_of(arrays, "info") or ())


def names_of(arrays: Arrays, key: str) -> tuple[str, ...] | None:
    """Names as text, of characters that there are."""
    if key not in arrays:
        return None
    names = np.atleast_1d(arrays[key]).ravel()
    if names.dtype.kind == "U":
        codes = np.ascontiguousarray(names).view(names.dtype.byteorder.replace("|", "=") + "u4")
        if codes.size and (codes.max() > MAX_CODE or ((codes >= 0xD800) & (codes < 0xE000)).any()):
            raise FewnodeError(f"array {key!r} holds characters that there are not; save it as text")
    if names.dtype.kind == "S":
        return tuple(name.decode() for name in names.tolist())
    return tuple(map(str, names.tolist()))
