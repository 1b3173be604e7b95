"""Our own format for datasets and models: a directory of one JSON manifest and one safetensors file.

It holds numbers and text only. Every write is atomic. The manifest has the SHA-256 of the tensors and of itself, and
must equal, byte for byte, what we would write for its content: a flipped bit in either file is an error and never a
silently different model. A stranger can compute checksums, too, so what is in the files is checked as well.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from fewnode._system import memory
from fewnode._system.files import atomic_write, one_line, read_text, readable, write_text
from fewnode.dataset import ClassSplit, Dataset
from fewnode.errors import FewnodeError
from fewnode.formats.manifest import DatasetManifest, check_manifest
from fewnode.graph import Block, Graph, Relation, is_sparse
from fewnode.interchange import PARTS

MAX_MANIFEST_BYTES = 1 << 25
MAX_HEADER_BYTES = 1 << 20
MAX_TENSORS = 1000
"""Of a safetensors file: a thousand tensors are described in a tenth of that header."""
MAX_BRACKETS = 100_000
"""Lists and tables in a manifest: each takes thirty times the memory that its text does."""

TYPES = {"F64": "f8", "I64": "i8", "U64": "u8", "F32": "f4", "I32": "i4", "U32": "u4", "U8": "u1", "BOOL": "?"}
"""The types of safetensors that are written here; wider ones first, so that each lies at a multiple of its width."""
TEXTS = ("node_names", "feature_names", "texts")

Arrays = dict[str, NDArray[Any]]


# --- a directory of manifest and tensors --------------------------------------------------------------------------


def write_record(directory: Path, kind: str, meta: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write `kind`.safetensors, and then `kind`.json: with it the record is whole."""
    files = {f"{kind}.safetensors": write_safetensors(directory / f"{kind}.safetensors", arrays)}
    manifest = {**meta, "format": f"fewnode-{kind}-1", "sha256": files}
    manifest["sha256"] = {**files, "manifest": hashlib.sha256(canonical(manifest).encode()).hexdigest()}
    write_text(directory / f"{kind}.json", canonical(manifest))


def read_record(directory: Path, kind: str, check: bool = True) -> tuple[dict[str, Any], Arrays]:
    """The manifest and the tensors (memory-mapped) of a directory that `write_record` wrote.

    Without `check` the tensors are not read through to compare their checksum.
    """
    meta = _read_manifest(directory / f"{kind}.json", f"fewnode-{kind}-1")
    path = directory / f"{kind}.safetensors"
    with readable(path) as file:
        if check and hashlib.file_digest(file, "sha256").hexdigest() != meta["sha256"].get(path.name):
            raise FewnodeError(f"{path}: damaged, its SHA-256 is not the one in {kind}.json")
    return meta, map_safetensors(path)


def canonical(meta: Mapping[str, Any]) -> str:
    """A manifest's only way to be written."""
    return json.dumps(meta, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _read_manifest(path: Path, expected: str) -> dict[str, Any]:
    text = read_text(path, MAX_MANIFEST_BYTES)
    if text.count("[") + text.count("{") > MAX_BRACKETS:
        raise FewnodeError(f"{path}: more than {MAX_BRACKETS:,} lists and tables, refused")
    try:
        meta = json.loads(text)
        intact = canonical(meta) == text
        claimed = meta["sha256"].pop("manifest")
        intact &= hashlib.sha256(canonical(meta).encode()).hexdigest() == claimed
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        intact = False
    if not intact:
        raise FewnodeError(f"{path}: damaged or edited by hand; its checksum does not match")
    if meta.get("format") != expected:
        raise FewnodeError(f"{path}: format {meta.get('format')!r}, expected {expected!r}")
    return dict(meta)


# --- safetensors --------------------------------------------------------------------------------------------------


def write_safetensors(path: Path, arrays: Mapping[str, NDArray[Any]]) -> str:
    """Arrays as a safetensors file, never all of it in memory, and the SHA-256 of the file."""
    order = sorted(arrays, key=lambda name: (-arrays[name].dtype.itemsize, name))
    names = {np.dtype(code): name for name, code in TYPES.items()}
    header, end = {}, 0
    for name in order:
        array = arrays[name]
        start, end = end, end + array.nbytes
        header[name] = {"dtype": names[array.dtype], "shape": list(array.shape), "data_offsets": [start, end]}
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-(8 + len(text)) % 64)  # arrays begin where a processor reads them at once
    digest = hashlib.sha256()
    with atomic_write(path) as file:
        for blob in (len(text).to_bytes(8, "little"), text):
            digest.update(blob)
            file.write(blob)
        for name in order:
            for piece in memory.chunks(np.atleast_1d(arrays[name])):
                rows = np.ascontiguousarray(piece).reshape(-1).view(np.uint8)
                digest.update(rows.data)
                file.write(rows.data)
    return digest.hexdigest()


def map_safetensors(path: Path) -> Arrays:
    """The arrays of a safetensors file, where they are on the disk; `memory.keep` can let go of them."""
    return read_safetensors(path)[1]


def read_safetensors(path: Path) -> tuple[dict[str, str], Arrays]:
    """The header's strings and the arrays (memory-mapped). The library checks the header, once its size is bounded."""
    with readable(path) as file:
        size = int.from_bytes(file.read(8), "little")
    if size > MAX_HEADER_BYTES:
        raise FewnodeError(f"{path}: not a safetensors file, or one with a header beyond {MAX_HEADER_BYTES >> 20} MB")
    try:
        with safe_open(path, framework="np") as tensors:
            if (count := len(tensors.keys())) > MAX_TENSORS:
                raise FewnodeError(f"{path}: {count:,} tensors, expected at most {MAX_TENSORS:,}")
        blob = memory.map_file(path)
        header = json.loads(blob[8 : 8 + size].tobytes())
        strings, arrays = header.pop("__metadata__", {}), {}
        for name, entry in header.items():
            low, high = entry["data_offsets"]
            arrays[name] = blob[8 + size + low : 8 + size + high].view(TYPES[entry["dtype"]]).reshape(entry["shape"])
        return strings, arrays
    except (SafetensorError, ValueError, TypeError, KeyError) as error:
        raise FewnodeError(f"{path}: not a readable safetensors file ({one_line(error)})") from None


def need_shapes(state: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Refuse arrays of a file that are not exactly those, of these shapes."""
    if odd := sorted(state.keys() ^ shapes.keys()):
        raise ValueError(f"tensor {odd[0]!r} is {'missing' if odd[0] in shapes else 'not one of the method'}")
    for name, shape in shapes.items():
        if tuple(state[name].shape) != shape:
            raise ValueError(f"tensor {name!r} is {tuple(state[name].shape)}, expected {shape}")


# --- datasets -----------------------------------------------------------------------------------------------------


def save_dataset(data: Dataset, directory: Path) -> None:
    """Write a dataset. Weights that are all 1 are not stored, and a relation that is its graph's `adj` only once."""
    if (directory / "dataset.json").exists():
        raise FewnodeError(f"{directory}: there is a dataset already; choose another directory")
    graph, relations = data.graph, []
    arrays = {"y": data.y, **_matrix_arrays("adj", graph.adj, graph.weighted)}
    arrays |= _matrix_arrays("x", graph.x, True) if is_sparse(graph.x) else {"x": graph.x}
    for i, relation in enumerate(graph.relations):
        alone = _same(relation.adj, graph.adj)
        relations.append({"name": relation.name, "directed": relation.directed, "alone": alone})
        arrays |= {} if alone else _matrix_arrays(f"relation.{i}", relation.adj, relation.weighted)
    for what in TEXTS:
        if (texts := getattr(data, what)) is not None:
            encoded = [text.encode() for text in texts]
            arrays[what] = np.frombuffer(b"".join(encoded), np.uint8)
            arrays[f"{what}.ends"] = np.cumsum([len(text) for text in encoded], dtype=np.int64)
    if data.labels is not None:
        arrays |= _matrix_arrays("labels", data.labels, False)
    if data.kind is not None:
        arrays["kind"] = data.kind
    meta = {
        "name": data.name,
        "x_shape": list(graph.x.shape),
        "blocks": [asdict(block) for block in graph.blocks],
        "class_names": list(data.class_names),
        "split": {part: list(data.split.part(part)) for part in PARTS},
        "info": data.info,
        "encoding": data.encoding,
        "relations": relations,
        "kind_names": list(data.kind_names),
    }
    write_record(directory, "dataset", meta, arrays)


def load_dataset(directory: Path, check: bool = True) -> Dataset:
    """The dataset of a directory, memory-mapped. Without `check` it is one that this user has just opened elsewhere."""
    meta, arrays = read_record(directory, "dataset", check)
    try:
        manifest = check_manifest(DatasetManifest, meta)
        n, width = manifest.x_shape
        adj, x = _matrix("adj", arrays, (n, n)), arrays.get("x")
        relations = tuple(
            Relation(r.name, adj if r.alone else _matrix(f"relation.{i}", arrays, (n, n)), r.directed)
            for i, r in enumerate(manifest.relations)
        )
        blocks = tuple(Block(**block.model_dump()) for block in manifest.blocks)
        return Dataset(
            Graph(adj, _matrix("x", arrays, (n, width)) if x is None else x, directory.resolve(), blocks, relations),
            arrays["y"],
            ClassSplit(**{part: tuple(getattr(manifest.split, part)) for part in PARTS}),
            tuple(manifest.class_names),
            **{what: _texts(what, arrays) for what in TEXTS},
            name=manifest.name,
            info=manifest.info,
            encoding=manifest.encoding,
            labels=_matrix("labels", arrays, (n, len(manifest.class_names))) if "labels.indices" in arrays else None,
            kind=arrays.get("kind"),
            kind_names=tuple(manifest.kind_names),
        )
    except FewnodeError as error:
        raise FewnodeError(f"{directory}: {error}") from None
    except (KeyError, ValueError, TypeError) as error:
        raise FewnodeError(f"{directory}: not a complete dataset ({one_line(error)})") from None


def _matrix_arrays(name: str, matrix: sp.csr_array, values: bool) -> Arrays:
    places = {f"{name}.indptr": matrix.indptr, f"{name}.indices": matrix.indices}
    return {**places, f"{name}.data": matrix.data} if values else places


def _matrix(name: str, arrays: Arrays, shape: tuple[int, int]) -> sp.csr_array:
    indices = arrays[f"{name}.indices"]
    ones = np.broadcast_to(np.float32(1), indices.shape)  # no memory for what is known
    return checked_csr(arrays.get(f"{name}.data", ones), indices, arrays[f"{name}.indptr"], shape)


def _same(one: sp.csr_array, other: sp.csr_array) -> bool:
    pairs = ((one.indptr, other.indptr), (one.indices, other.indices), (one.data, other.data))
    return all(a is b or np.array_equal(a, b) for a, b in pairs)


def _texts(what: str, arrays: Arrays) -> tuple[str, ...] | None:
    if what not in arrays:
        return None
    blob, ends = arrays[what].tobytes(), arrays[f"{what}.ends"].tolist()
    return tuple(blob[start:end].decode() for start, end in pairwise([0, *ends]))


def checked_csr(
    data: NDArray[Any], indices: NDArray[Any], indptr: NDArray[Any], shape: tuple[int, int]
) -> sp.csr_array:
    """A sparse matrix from arrays of an untrusted file.

    SciPy's own check passes a matrix whose last row starts at 0, whatever the others say, and then crashes on it.
    """
    if not (data.ndim == indices.ndim == indptr.ndim == 1 and indices.dtype.kind in "iu" and indptr.dtype.kind in "iu"):
        raise FewnodeError("not a sparse matrix")
    if indptr.size != shape[0] + 1 or data.size != indices.size or data.dtype.kind not in "biuf":
        raise FewnodeError(f"{indptr.size - 1} rows, expected {shape[0]}; {indices.size} places, {data.size} values")
    starts = indptr.astype(np.int64)
    if starts[0] != 0 or starts[-1] != indices.size or (np.diff(starts) < 0).any():
        raise FewnodeError("the starts of the rows do not ascend from 0 to the number of values")
    if indices.size and not 0 <= indices.min() <= indices.max() < shape[1]:
        raise FewnodeError(f"a place outside of the {shape[1]} columns")
    with np.errstate(over="ignore"):  # what becomes infinite is refused where the graph is made
        return sp.csr_array((data.astype(np.float32, copy=False), indices, indptr), shape=shape)
