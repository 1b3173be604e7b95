"""The `.npz` layout that few-shot networks are passed around in, read without trusting the file."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from fewnode.errors import FewnodeError
from fewnode.graph import Attributes, ClassSplit, Dataset, Graph
from fewnode.io import one_line, readable

MAX_INFLATION = 100
"""An archive that claims to inflate more than this (beyond 64 MB) is a bomb, not a network."""

DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, ValueError, NotImplementedError, RuntimeError, SyntaxError)
"""What Python's own zip and npy readers raise at bytes that are not theirs."""

Arrays = Mapping[str, NDArray[Any]]


def read_npz(path: Path) -> dict[str, NDArray[Any]]:
    """Every array of an .npz file. Sizes are checked before anything is inflated; objects are refused."""
    try:
        with readable(path) as file, zipfile.ZipFile(file) as archive:
            members = archive.infolist()
            claimed = sum(member.file_size for member in members)
            if claimed > max(64 << 20, MAX_INFLATION * path.stat().st_size):
                raise FewnodeError(f"{path}: claims to inflate to {claimed >> 20} MB, refused")
            return {m.filename.removesuffix(".npy"): _read_npy(path, archive, m) for m in members}
    except DAMAGED as error:
        raise FewnodeError(f"{path}: not a readable .npz file ({one_line(error)})") from None


def _read_npy(path: Path, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> NDArray[Any]:
    where = f"{path}: array {member.filename!r}"
    with archive.open(member) as file:
        head = io.BytesIO(file.read(1 << 16))
        version = np.lib.format.read_magic(head)
        read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, fortran, dtype = read_header(head)
        if dtype.hasobject or dtype.kind not in "biufUS":
            raise FewnodeError(f"{where} holds {dtype} (pickled objects are refused), expected numbers or strings")
        size = int(np.prod([1, *shape], dtype=object)) * dtype.itemsize
        if size != member.file_size - head.tell():
            raise FewnodeError(f"{where} claims {size} bytes, but stores {member.file_size - head.tell()}")
        blob = head.read() + file.read()
    if len(blob) != size:
        raise FewnodeError(f"{where} is cut short")
    return np.frombuffer(blob, dtype).reshape(shape, order="F" if fortran else "C")


def read_dataset_npz(
    path: Path, fractions: Sequence[float] = (50, 20, 30), seed: int = 0, directed: bool = False
) -> Dataset:
    """The layout `edge_index, y, x_indptr x_indices x_data x_shape, train_classes valid_classes test_classes, …`.

    A file without a class split gets a random one from `fractions` and `seed`.
    """
    arrays = read_npz(path)
    try:
        if missing := {"edge_index", "y"} - set(arrays):
            raise FewnodeError(f"array {min(missing)!r} is missing; found {', '.join(sorted(arrays))}")
        y = arrays["y"]
        graph = Graph.from_edges(arrays["edge_index"], y.size, _sparse_x(arrays, y.size), directed=directed)
        split = _split_of(arrays) or ClassSplit.random(y, fractions, seed)
        names = {key: _names_of(arrays, key) for key in ("class_names", "node_names", "vocab")}
        return Dataset(
            graph=graph,
            y=y,
            split=split,
            class_names=names["class_names"] or (),
            node_names=names["node_names"],
            feature_names=names["vocab"],
            name=path.stem,
            info={"source": path.name, "note": str(arrays.get("info", ""))},
        )
    except FewnodeError as error:
        raise FewnodeError(f"{path}: {error}") from None
    except (KeyError, ValueError, TypeError) as error:
        raise FewnodeError(f"{path}: not the expected layout ({one_line(error)})") from None


def _sparse_x(arrays: Arrays, n: int) -> Attributes | None:
    if "x" in arrays:
        return arrays["x"].astype(np.float32)
    if "x_indptr" not in arrays:
        return None
    shape = tuple(int(s) for s in arrays["x_shape"])
    if shape[0] != n:
        raise FewnodeError(f"x_shape says {shape[0]} rows for {n} labels in y")
    x = sp.csr_array((arrays["x_data"], arrays["x_indices"], arrays["x_indptr"]), shape=shape)
    x.check_format(full_check=True)
    return x


def _split_of(arrays: Arrays) -> ClassSplit | None:
    parts = [f"{part}_classes" for part in ("train", "valid", "test")]
    if not all(part in arrays for part in parts):
        return None
    return ClassSplit(*(tuple(int(c) for c in arrays[part]) for part in parts))


def _names_of(arrays: Arrays, key: str) -> tuple[str, ...] | None:
    return tuple(str(name) for name in arrays[key]) if key in arrays else None
