"""Networks in an `.npz` file, read without trusting it.

Arrays are `edge_index` (2 x E), `y` (-1: unknown), attributes as `x_indptr x_indices x_data x_shape` or as a dense `x`;
weights and kinds of edges as `edge_weight`, `edge_type` and `relation_names`; the class split as `train_classes
valid_classes test_classes`; `class_names node_names vocab info`. Only `edge_index` has to be there.
"""

from __future__ import annotations

import errno
import io
import math
import os
import warnings
import zipfile
import zlib
from collections.abc import Mapping
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
from fewnode.dataset import ClassSplit, Dataset
from fewnode.errors import FewnodeError, warn_unused
from fewnode.formats.directory import checked_csr
from fewnode.graph import Graph, Ints, dense_blocks
from fewnode.relations import Directed, edge_rows, read_relations
from fewnode.tables.compact import compact_graph

FREE_INFLATION = 64 << 20
MAX_INFLATION = 100
"""What claims to inflate more than this (beyond 64 MB) is a bomb, not a network."""
MAX_DIRECTORY = 1 << 16
"""Bytes of the list of members: a thousand arrays."""
MAX_EMPTY = 1 << 20
"""Rows of an array that stores nothing, as one of a million rows and no column: a file of a few bytes can claim any."""
HEADER_BYTES = 1 << 16
BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, SyntaxError, TokenError, ValueError, OverflowError)
"""What Python's own zip and npy readers raise at bytes that are not theirs (`NotImplementedError` among them)."""

_CSR = ("x_data", "x_indices", "x_indptr", "x_shape")
_SPLIT = ("train_classes", "valid_classes", "test_classes")
_EDGES = ("edge_index", "edge_weight", "edge_type", "relation_names")
_KNOWN = {*_EDGES, "y", "x", *_CSR, *_SPLIT, "class_names", "node_names", "vocab", "info"}

Arrays = Mapping[str, NDArray[Any]]


def is_bomb(inflated: int, packed: int) -> bool:
    """Whether so many bytes from so few are more than any honest file holds."""
    return inflated > max(FREE_INFLATION, MAX_INFLATION * packed)


def read_dataset_npz(
    path: Path,
    seed: int = 0,
    directed: Directed = False,
    scale: str | None = None,
    room: Path | None = None,
) -> Dataset:
    """The network of a file.

    Without a class split in it, it gets a random one by `seed`. `directed` and `scale` are as in
    `read_relations`. With `room`, a folder for what does not fit, large arrays stay in the file and are read in pieces.
    """
    arrays, unused = read_npz(path, mapped=room is not None)
    try:
        if "edge_index" not in arrays:
            known = ", ".join(sorted(arrays)) or "no known array"
            raise FewnodeError(f"array 'edge_index' is missing; found {known}")
        y, x = _labels(arrays), None
        if "x" in arrays and "x_indptr" in arrays:
            raise FewnodeError("attributes are there twice, as 'x' and as 'x_indptr'; leave out one of them")
        if "x" in arrays:
            x = _dense(arrays["x"], room)
        elif "x_indptr" in arrays:
            x = _sparse(y.size, *(arrays[part] for part in _CSR))
        kind, names = arrays.get("edge_type"), _texts(arrays, "relation_names")
        rows = edge_rows(arrays["edge_index"], arrays.get("edge_weight"), kind, names)
        from_edges = Graph.from_edges if room is None else compact_graph
        graph, facts = read_relations(rows, y.size, x, directed=directed, scale=scale, from_edges=from_edges)
        if not y.size:
            raise FewnodeError("there is no node in it")
        if isinstance(x, np.ndarray):
            graph = replace(graph, blocks=dense_blocks(x))  # one vector, unless they look like counts
        info = {"source": path.name, "note": " ".join(_texts(arrays, "info") or ()), **facts.info}
        data = Dataset(
            graph,
            y,
            _split(arrays, y) or ClassSplit.random(y, seed=seed),
            _texts(arrays, "class_names") or (),
            _texts(arrays, "node_names"),
            _texts(arrays, "vocab"),
            path.stem,
            {**info, "unused": unused} if unused else info,
        )
    except FewnodeError as error:
        raise FewnodeError(f"{path}: {error}") from None
    except (KeyError, ValueError, TypeError, IndexError, OverflowError, SystemError) as error:
        raise FewnodeError(f"{path}: not the expected layout ({one_line(error)})") from None
    if unused:
        warn_unused([f"{path}: {unused[0]}", *unused[1:]], stacklevel=3)
    return data


def has_split(path: Path) -> bool:
    """Whether it is an .npz file that says which classes are for what."""
    if not path.is_file() or not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        return not {f"{part}.npy" for part in _SPLIT}.isdisjoint(archive.namelist())


# --- arrays of a file ---------------------------------------------------------------------------------------------


def read_npz(path: Path, mapped: bool = False) -> tuple[dict[str, NDArray[Any]], list[str]]:
    """The known arrays of an .npz file, and the names of all others.

    Sizes are checked before anything is inflated. Arrays of Python objects are never loaded. `mapped` arrays stay in
    the file, if it is not compressed.
    """
    members: dict[str, zipfile.ZipInfo] = {}
    try:
        with readable(path) as file:
            size = os.fstat(file.fileno()).st_size
            _need_short_directory(path, file, size)
            with zipfile.ZipFile(file) as archive:
                for member in archive.infolist():
                    name = member.filename.removesuffix(".npy")
                    if name in members:
                        raise FewnodeError(f"{path}: array {name[:60]!r} is there twice; leave out one of them")
                    members[name] = member
                claimed = sum(member.file_size for name, member in members.items() if name in _KNOWN)
                if is_bomb(claimed, size):
                    raise FewnodeError(f"{path}: claims to inflate to {claimed >> 20} MB, refused")
                arrays = {
                    name: _read_npy(path, archive, member, mapped) for name, member in members.items() if name in _KNOWN
                }
    except (*BROKEN, OSError) as error:
        if isinstance(error, OSError) and error.errno != errno.EINVAL:  # that is a place before the file's beginning
            raise
        raise FewnodeError(f"{path}: not a readable .npz file ({one_line(error)})") from None
    return arrays, [name for name in members if name not in arrays]


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


def _read_npy(path: Path, archive: zipfile.ZipFile, member: zipfile.ZipInfo, mapped: bool) -> NDArray[Any]:
    """One array by NumPy's own reader, once its header and the file agree on a size."""
    where = f"{path}: array {member.filename.removesuffix('.npy')!r}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that Python 2 wrote it, which does no harm
        with archive.open(member) as file:
            head = io.BytesIO(file.read(HEADER_BYTES))
        first = np.lib.format.read_magic(head) == (1, 0)
        read_header = np.lib.format.read_array_header_1_0 if first else np.lib.format.read_array_header_2_0
        shape, fortran, dtype = read_header(head)
        if dtype.hasobject or dtype.kind not in "biufUS":
            raise FewnodeError(f"{where} holds Python objects; save it as numbers or strings")
        if not all(type(length) is int and length >= 0 for length in shape):
            raise FewnodeError(f"{where} has the shape {str(shape)[:60]}, expected whole numbers from 0 on")
        size = math.prod(shape) * dtype.itemsize
        if not size and math.prod(max(length, 1) for length in shape) > MAX_EMPTY:
            raise FewnodeError(f"{where} claims {str(shape)[:60]} values and stores none")
        if size != member.file_size - head.tell():
            raise FewnodeError(f"{where} claims {size} bytes, but stores {member.file_size - head.tell()}")
        if not (mapped and member.compress_type == zipfile.ZIP_STORED and size):
            with archive.open(member) as file:
                return np.asarray(np.lib.format.read_array(file))
    whole = memory.map_file(path)
    lengths = whole[member.header_offset + 26 : member.header_offset + 30].copy().view("<u2")
    start = member.header_offset + 30 + int(lengths.sum()) + head.tell()
    return whole[start : start + size].view(dtype).reshape(shape, order="F" if fortran else "C")


# --- a graph of arrays --------------------------------------------------------------------------------------------


def _dense(x: NDArray[Any], room: Path | None) -> NDArray[np.float32]:
    if x.ndim != 2 or x.dtype.kind not in "biuf":
        raise FewnodeError(f"attributes are {x.dtype} {x.shape}, expected numbers, a row for each node")
    if room is not None and x.dtype == np.float32 and x.flags.c_contiguous:
        return x
    numbers, low = np.empty(x.shape, np.float32) if room is None else memory.scratch(room, x.shape), 0
    for rows in memory.chunks(x):
        with np.errstate(over="ignore"):  # what becomes infinite is refused where the graph is made
            numbers[low : low + len(rows)] = rows
        low += len(rows)
    return numbers


def _sparse(
    n: int, data: NDArray[Any], indices: NDArray[Any], indptr: NDArray[Any], shape: NDArray[Any]
) -> sp.csr_array:
    rows, columns = (int(length) for length in shape)
    if rows != n:
        raise FewnodeError(f"x_shape says {rows} rows for {n} labels")
    try:
        return checked_csr(data, indices, indptr, (rows, columns))
    except FewnodeError as error:
        raise FewnodeError(f"x_indptr, x_indices: {error}") from None


def _labels(arrays: Arrays) -> Ints:
    """Class ids; without `y` all are unknown, and attributes, names or edges tell how many nodes there are.

    Checked here and not only in `Dataset`: whoever counts classes allocates as many as the largest label says.
    """
    if "y" in arrays:
        y = arrays["y"]
        if y.ndim != 1 or y.dtype.kind not in "iu":
            raise FewnodeError(f"labels are {y.dtype} {y.shape}, expected integers, one a node")
        if y.size and y.max() > _most(y):
            node = int(np.argmax(y))
            raise FewnodeError(f"label of node {node} is {y.max()}, far more than there are nodes ({y.size})")
        return y
    for name in ("x", "node_names", "x_indptr"):
        if name in arrays:
            return np.full(len(arrays[name]) - (name == "x_indptr"), UNKNOWN)
    edges = arrays["edge_index"]
    n = int(edges.max(initial=-1)) + 1
    if n > _most(edges):
        raise FewnodeError(f"an edge has node {n - 1}, and no array (y, x, node_names) says how many nodes there are")
    return np.full(n, UNKNOWN)


def _most(numbers: NDArray[Any]) -> int:
    """The largest number that so many of them may name: each number below it takes memory."""
    return 10 * numbers.size + 1000


def _split(arrays: Arrays, y: NDArray[Any]) -> ClassSplit | None:
    """The class split of a file, if it has any part of it; a part that is not there is empty."""
    if not any(part in arrays for part in _SPLIT):
        return None
    parts = [tuple(int(c) for c in arrays.get(part, ())) for part in _SPLIT]
    if wrong := [c for part in parts for c in part if not 0 <= c <= _most(y)]:
        raise FewnodeError(f"class {wrong[0]} in the split is out of range")
    return ClassSplit(*parts)


def _texts(arrays: Arrays, key: str) -> tuple[str, ...] | None:
    if key not in arrays:
        return None
    texts = [text.decode() if isinstance(text, bytes) else str(text) for text in arrays[key].ravel().tolist()]
    "".join(texts).encode()  # half of a surrogate pair is no text; beyond U+10FFFF `tolist` ends in a SystemError
    return tuple(texts)
