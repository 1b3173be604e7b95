"""Files that users exchange: numbers and text only, a checksum on everything, every write atomic.

A dataset or a model is a directory with one JSON manifest and one safetensors file. The manifest holds the
SHA-256 of the tensors and of itself, and must equal, byte for byte, what we would write for its content. So a
flipped bit in either file is an error and never a silently different model.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from fewnode._system import memory
from fewnode._system.files import atomic_write, one_line, read_text, readable, write_text
from fewnode._system.files import exclusive as exclusive
from fewnode.column_blocks import Block
from fewnode.dataset import ClassSplit, Dataset
from fewnode.errors import FewnodeError
from fewnode.formats.manifest import DatasetManifest, check_manifest
from fewnode.formats.packing import graph_arrays, graph_of, memberships_of, pack_names, unpack_names

MAX_MANIFEST_BYTES = 1 << 25
MAX_HEADER_BYTES = 1 << 20
MAX_TENSORS = 1000
"""Of a safetensors file: a thousand tensors are described in a tenth of that header."""
MAX_BRACKETS = 100_000
"""Lists and tables in a manifest: each takes thirty times the memory that its text does."""

TYPES = {"F64": "f8", "I64": "i8", "U64": "u8", "F32": "f4", "I32": "i4", "U32": "u4", "U8": "u1", "BOOL": "?"}
"""The types of safetensors that are written here; wider ones first, so that each lies at a multiple of its width."""


# --- a directory of manifest and tensors --------------------------------------------------------------------------


def write_record(
    directory: Path,
    kind: str,
    meta: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
) -> None:
    """Write `kind`.safetensors, and then `kind`.json: with it the record is whole."""
    digest = write_safetensors(directory / f"{kind}.safetensors", arrays)
    files = {f"{kind}.safetensors": digest}
    manifest = {**meta, "format": f"fewnode-{kind}-1", "sha256": files}
    manifest["sha256"] = {**files, "manifest": hashlib.sha256(canonical(manifest).encode()).hexdigest()}
    write_text(directory / f"{kind}.json", canonical(manifest))


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


def read_record(directory: Path, kind: str, check: bool = True) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The manifest and the tensors (memory-mapped) of a directory that `write_record` wrote.

    Without `check` the tensors are not read through to compare their checksum.
    """
    meta = _read_manifest(directory / f"{kind}.json", f"fewnode-{kind}-1")
    path = directory / f"{kind}.safetensors"
    with readable(path) as file:
        if check and hashlib.file_digest(file, "sha256").hexdigest() != meta["sha256"].get(path.name):
            raise FewnodeError(f"{path}: damaged, its SHA-256 is not the one in {kind}.json")
    return meta, map_safetensors(path)


def map_safetensors(path: Path) -> dict[str, NDArray[Any]]:
    """The arrays of a safetensors file, where they are on the disk; `memory.keep` can let go of them."""
    with _checked_safetensors(path) as file:
        names = list(file.keys())
        blob = memory.map_file(path)
        start = 8 + int(blob[:8].view("<u8")[0])
        header = json.loads(blob[8:start].tobytes())
        found = {}
        for name in names:
            low, high = header[name]["data_offsets"]
            found[name] = blob[start + low : start + high].view(TYPES[header[name]["dtype"]])
            found[name] = found[name].reshape(header[name]["shape"])
        return found


def read_safetensors(path: Path) -> tuple[dict[str, str], dict[str, NDArray[Any]]]:
    """The header's strings and the arrays."""
    with _checked_safetensors(path) as file:
        return file.metadata() or {}, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118


@contextmanager
def _checked_safetensors(path: Path) -> Iterator[Any]:
    """The file, its header checked by its library, after what that may ask for was bounded by us."""
    with readable(path) as file:
        size = int.from_bytes(file.read(8), "little")
    if size > MAX_HEADER_BYTES:
        raise FewnodeError(f"{path}: not a safetensors file, or one with a header beyond {MAX_HEADER_BYTES >> 20} MB")
    try:
        with safe_open(path, framework="np") as tensors:
            if len(tensors.keys()) > MAX_TENSORS:
                raise FewnodeError(f"{path}: {len(tensors.keys()):,} tensors, expected at most {MAX_TENSORS:,}")
            yield tensors
    except (SafetensorError, ValueError, TypeError, KeyError) as error:
        raise FewnodeError(f"{path}: not a readable safetensors file ({one_line(error)})") from None


def canonical(meta: Mapping[str, Any]) -> str:
    """A manifest's only way to be written."""
    return json.dumps(meta, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"


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


# --- datasets -----------------------------------------------------------------------------------------------------


def save_dataset(data: Dataset, directory: Path) -> None:
    if (directory / "dataset.json").exists():
        raise FewnodeError(f"{directory}: there is a dataset already; choose another --out")
    graph = data.graph
    arrays, relations = graph_arrays(graph)
    arrays["y"] = data.y
    for what, names in (("node_names", data.node_names), ("feature_names", data.feature_names), ("texts", data.texts)):
        if names is not None:
            arrays |= pack_names(what, names)
    more: dict[str, Any] = {"relations": relations} if relations else {}
    if data.labels is not None:
        arrays |= {"labels.indptr": data.labels.indptr, "labels.indices": data.labels.indices}
    if data.kind is not None:
        arrays["kind"] = data.kind
        more["kind_names"] = list(data.kind_names)
    meta = {
        "name": data.name,
        "x_shape": list(graph.x.shape),
        "class_names": list(data.class_names),
        "split": {part: list(data.split.part(part)) for part in ("train", "valid", "test")},
        "info": data.info,
        "encoding": data.encoding,
        **more,
    }
    write_record(directory, "dataset", {**meta, **stored_blocks(graph.blocks)}, arrays)


def stored_blocks(blocks: Sequence[Block]) -> dict[str, Any]:
    """What a manifest says of blocks of attributes: nothing if there are none."""
    return {"blocks": [asdict(block) for block in blocks]} if blocks else {}


def load_dataset(directory: Path, check: bool = True) -> Dataset:
    """The dataset of a directory, memory-mapped. Without `check` it is one that this user has just opened elsewhere."""
    meta, arrays = read_record(directory, "dataset", check)
    try:
        check_manifest(DatasetManifest, meta)
        n, width = meta["x_shape"]
        return Dataset(
            graph=replace(
                graph_of(arrays, (n, width), meta.get("relations", ()), directory.resolve()),
                blocks=tuple(Block(**block) for block in meta.get("blocks", ())),
            ),
            y=arrays["y"],
            split=ClassSplit(**{part: tuple(ids) for part, ids in meta["split"].items()}),
            class_names=tuple(meta["class_names"]),
            node_names=unpack_names("node_names", arrays),
            feature_names=unpack_names("feature_names", arrays),
            texts=unpack_names("texts", arrays),
            name=meta["name"],
            info=meta["info"],
            encoding=meta["encoding"],
            labels=memberships_of(arrays, n, len(meta["class_names"])),
            kind=arrays.get("kind"),
            kind_names=tuple(meta.get("kind_names", ())),
        )
    except FewnodeError as error:
        raise FewnodeError(f"{directory}: {error}") from None
    except (KeyError, ValueError, TypeError) as error:
        raise FewnodeError(f"{directory}: not a complete dataset ({one_line(error)})") from None


def need_shapes(state: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Refuse arrays of a file that are not exactly those, of these shapes."""
    if odd := sorted(state.keys() ^ shapes.keys()):
        raise ValueError(f"tensor {odd[0]!r} is {'missing' if odd[0] in shapes else 'not one of the method'}")
    for name, shape in shapes.items():
        if tuple(state[name].shape) != shape:
            raise ValueError(f"tensor {name!r} is {tuple(state[name].shape)}, expected {shape}")
