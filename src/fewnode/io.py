"""Files that users exchange: numbers and text only, a checksum on everything, every write atomic.

A dataset or a model is a directory with one JSON manifest and one safetensors file. The manifest holds the
SHA-256 of the tensors and of itself, and must equal, byte for byte, what we would write for its content. So a
flipped bit in either file is an error and never a silently different model.
"""

from __future__ import annotations

import fcntl
import hashlib
import io
import json
import math
import os
import re
import secrets
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from torch import Tensor

from fewnode import memory
from fewnode.dataset import ClassSplit, Dataset
from fewnode.delimited import column_names, first_lines, recognise_separator, rows
from fewnode.errors import FewnodeError
from fewnode.manifest import DIGEST, check_dataset
from fewnode.packing import (
    graph_arrays,
    graph_of,
    memberships_of,
    pack_names,
    unpack_names,
)

MAX_MANIFEST_BYTES = 1 << 25
MAX_TABLE_BYTES = 1 << 28
MAX_HEADER_BYTES = 1 << 20
MAX_TENSORS = 1000
"""Of a safetensors file: a thousand tensors are described in a tenth of that header."""
MAX_BRACKETS = 100_000
"""Lists and tables in a manifest: each takes thirty times the memory that its text does."""

_TEMPORARY = ".fewnode-part"

TYPES = {"F64": "f8", "I64": "i8", "U64": "u8", "F32": "f4", "I32": "i4", "U32": "u4", "U8": "u1", "BOOL": "?"}
"""The types of safetensors that are written here; wider ones first, so that each lies at a multiple of its width."""


@dataclass(frozen=True, eq=False)
class Stream:
    """An array that is written piece by piece, because it is larger than memory may hold."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    pieces: Iterable[NDArray[Any]]

    @property
    def nbytes(self) -> int:
        return self.dtype.itemsize * math.prod(self.shape)


# --- atomic writes ------------------------------------------------------------------------------------------------


@contextmanager
def atomic_write(path: Path, mode: int = 0o666) -> Iterator[BinaryIO]:
    """A file that appears at `path` whole or not at all: temp file, fsync, rename, fsync of the directory.

    The temp file is locked while it is written, so that one without a lock is known to be what a kill left behind.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and not path.is_file():
        raise FewnodeError(f"{path}: not a regular file, so it is not replaced by one")
    _sweep(path.parent, path.name)
    temporary = path.with_name(f".{path.name[:60]}.{secrets.token_hex(4)}{_TEMPORARY}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield file
            file.flush()
            os.fsync(descriptor)
            os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    fsync_directory(path.parent)


def _sweep(directory: Path, name: str = "") -> None:
    """Remove temp files, of one target or of all, that nobody is writing to any more."""
    for entry in os.scandir(directory):
        if entry.name.endswith(_TEMPORARY) and entry.name.startswith(f".{name[:60]}") and entry.is_file():
            with suppress(OSError), open(entry.path, "rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.unlink(entry.path)


def fsync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def exclusive(directory: Path) -> Iterator[None]:
    """Hold a directory for this process alone; a second one is told so instead of mixing its files in.

    What a killed one left half-written, in the directory or in one below it, is cleared away. A directory that was made
    for what is then refused goes again.
    """
    made = missing(directory)
    directory.mkdir(parents=True, exist_ok=True)
    with open(directory / ".lock", "ab", opener=_without_waiting) as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise FewnodeError(f"{directory}: another process is writing to it") from None
        for below in (directory, *(path for path in directory.iterdir() if path.is_dir())):
            _sweep(below)
        try:
            yield
        except FewnodeError:
            if made and [path.name for path in directory.iterdir()] == [".lock"]:
                (directory / ".lock").unlink()
                remove_empty(made)
            raise


def missing(directory: Path) -> list[Path]:
    """The directories that have to be made for it to be there, the innermost first."""
    return [path for path in (directory, *directory.parents) if not path.exists()]


def remove_empty(directories: Sequence[Path]) -> None:
    for directory in directories:
        with suppress(OSError):
            directory.rmdir()


def write_text(path: Path, text: str) -> None:
    with atomic_write(path) as file:
        file.write(text.encode())


# --- a directory of manifest and tensors --------------------------------------------------------------------------


def write_record(
    directory: Path,
    kind: str,
    meta: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any] | Stream],
    texts: Mapping[str, str] | None = None,
) -> None:
    """Write `kind`.safetensors, texts for people beside it, and at last `kind`.json: with it the record is whole."""
    digest = write_safetensors(directory / f"{kind}.safetensors", arrays)
    for name, text in (texts or {}).items():
        write_text(directory / name, text)
    files = {f"{kind}.safetensors": digest}
    manifest = {**meta, "format": f"fewnode-{kind}-1", "sha256": files}
    manifest["sha256"] = {**files, "manifest": hashlib.sha256(_canonical(manifest).encode()).hexdigest()}
    write_text(directory / f"{kind}.json", _canonical(manifest))


def write_safetensors(path: Path, arrays: Mapping[str, NDArray[Any] | Stream]) -> str:
    """Arrays as a safetensors file, never all of it in memory, and the SHA-256 of the file."""
    order = sorted(arrays, key=lambda name: (-arrays[name].dtype.itemsize, name))
    names = {np.dtype(code): name for name, code in TYPES.items()}
    header, end = {}, 0
    for name in order:
        array = arrays[name]
        start, end = end, end + array.nbytes
        header[name] = {"dtype": names[array.dtype], "shape": list(array.shape), "data_offsets": [start, end]}
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    digest = hashlib.sha256()
    with atomic_write(path) as file:
        for blob in (len(text).to_bytes(8, "little"), text):
            digest.update(blob)
            file.write(blob)
        for name in order:
            array, written = arrays[name], 0
            for piece in array.pieces if isinstance(array, Stream) else memory.chunks(np.atleast_1d(array)):
                rows = np.ascontiguousarray(piece, dtype=array.dtype).reshape(-1).view(np.uint8)
                digest.update(rows.data)
                file.write(rows.data)
                written += rows.nbytes
            if written != array.nbytes:
                raise FewnodeError(f"{path}: {name} has {written} bytes, {array.nbytes} were announced")
    return digest.hexdigest()


def read_record(directory: Path, kind: str, check: bool = True) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The manifest and the tensors (memory-mapped) of a directory that `write_record` wrote.

    Without `check` the tensors are not read through to compare their checksum.
    """
    meta = _read_manifest(directory / f"{kind}.json", f"fewnode-{kind}-1")
    path = directory / f"{kind}.safetensors"
    DIGEST(meta["sha256"].get(path.name), f"{directory / kind}.json: the checksum of {path.name}")
    with readable(path) as file:
        if check and hashlib.file_digest(file, "sha256").hexdigest() != meta["sha256"][path.name]:
            raise FewnodeError(f"{path}: damaged, its SHA-256 is not the one in {kind}.json")
    return meta, map_safetensors(path)


def map_safetensors(path: Path) -> dict[str, NDArray[Any]]:
    """The arrays of a safetensors file, where they are on the disk; `memory.keep` can let go of them."""
    with _checked_safetensors(path, "np") as file:
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


def read_safetensors(path: Path) -> tuple[dict[str, str], dict[str, Tensor]]:
    """The header's strings and the tensors, memory-mapped."""
    with _checked_safetensors(path, "pt") as file:
        return file.metadata() or {}, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118


@contextmanager
def _checked_safetensors(path: Path, framework: str) -> Iterator[Any]:
    """The file, its header checked by its library, after what that may ask for was bounded by us."""
    with readable(path) as file:
        size = int.from_bytes(file.read(8), "little")
    if size > MAX_HEADER_BYTES:
        raise FewnodeError(f"{path}: not a safetensors file, or one with a header beyond {MAX_HEADER_BYTES >> 20} MB")
    try:
        with safe_open(path, framework=framework) as tensors:
            if len(tensors.keys()) > MAX_TENSORS:
                raise FewnodeError(f"{path}: {len(tensors.keys()):,} tensors, expected at most {MAX_TENSORS:,}")
            yield tensors
    except (SafetensorError, ValueError, TypeError, KeyError) as error:
        raise FewnodeError(f"{path}: not a readable safetensors file ({one_line(error)})") from None


def _canonical(meta: Mapping[str, Any]) -> str:
    return json.dumps(meta, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"


def _read_manifest(path: Path, expected: str) -> dict[str, Any]:
    text = read_text(path, MAX_MANIFEST_BYTES)
    if text.count("[") + text.count("{") > MAX_BRACKETS:
        raise FewnodeError(f"{path}: more than {MAX_BRACKETS:,} lists and tables, refused")
    try:
        meta = json.loads(text)
        intact = _canonical(meta) == text
        claimed = meta["sha256"].pop("manifest")
        intact &= hashlib.sha256(_canonical(meta).encode()).hexdigest() == claimed
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        intact = False
    if not intact:
        raise FewnodeError(f"{path}: damaged or edited by hand; its checksum does not match")
    if meta.get("format") != expected:
        raise FewnodeError(f"{path}: format {meta.get('format')!r}, expected {expected!r}")
    return dict(meta)


@contextmanager
def readable(path: Path) -> Iterator[BufferedReader]:
    """Open a regular file for reading, or say in one line why that cannot be.

    It is looked at once it is open: before, it could be exchanged for a pipe, at which one waits for ever.
    """
    try:
        file = open(path, "rb", opener=_without_waiting)  # noqa: SIM115
    except (FileNotFoundError, NotADirectoryError, ValueError):  # a NUL in a name is a ValueError
        raise FewnodeError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise FewnodeError(f"{path}: not a regular file") from None
    with file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise FewnodeError(f"{path}: not a regular file")
        yield file


def _without_waiting(path: str, flags: int) -> int:
    """Open as `open` does, but fail at a pipe that nobody is at the other end of."""
    return os.open(path, flags | os.O_NONBLOCK, 0o666)


def read_text(path: Path, limit: int) -> str:
    with readable(path) as file:
        if os.fstat(file.fileno()).st_size > limit:
            raise FewnodeError(f"{path}: larger than {limit >> 10:,} kB")
        blob = file.read(limit)
    try:
        return blob.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = blob.count(b"\n", 0, error.start) + 1
        raise FewnodeError(f"{path}: line {line}: byte {error.start} is not UTF-8; save it as UTF-8") from None


# --- datasets -----------------------------------------------------------------------------------------------------


def save_dataset(data: Dataset, directory: Path) -> None:
    if (directory / "dataset.json").exists():
        raise FewnodeError(f"{directory}: there is a dataset already; choose another --out")
    graph = data.graph
    arrays, relations = graph_arrays(graph)
    arrays["y"] = data.y
    for what, names in (("node_names", data.node_names), ("feature_names", data.feature_names)):
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
    write_record(directory, "dataset", meta, arrays)


def load_dataset(directory: Path, check: bool = True) -> Dataset:
    """The dataset of a directory, memory-mapped. Without `check` it is one that this user has just opened elsewhere."""
    meta, arrays = read_record(directory, "dataset", check)
    try:
        check_dataset(meta)
        n, width = meta["x_shape"]
        return Dataset(
            graph=graph_of(arrays, (n, width), meta.get("relations", ()), directory.resolve()),
            y=arrays["y"],
            split=ClassSplit(**{part: tuple(ids) for part, ids in meta["split"].items()}),
            class_names=tuple(meta["class_names"]),
            node_names=unpack_names("node_names", arrays),
            feature_names=unpack_names("feature_names", arrays),
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


# --- small tables -------------------------------------------------------------------------------------------------


def read_table(path: Path, columns: Sequence[str]) -> list[tuple[int, list[str]]]:
    """The named columns of a CSV file as (line number, values), blank lines left out."""
    lines = io.StringIO(read_text(path, MAX_TABLE_BYTES), newline="")
    separator = recognise_separator(str(path), first_lines(lines))
    lines.seek(0)
    table = rows(str(path), lines, separator)
    header = column_names(str(path), next(table, (1, []))[1])
    if missing := [name for name in columns if name not in header]:
        raise FewnodeError(f"{path}: line 1: column {missing[0]!r} is missing; the header is {','.join(header)!r}")
    places = [header.index(name) for name in columns]
    return [(line, [row[place].strip() for place in places]) for line, row in table if any(map(str.strip, row))]


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a text file that are not blank, with their numbers."""
    for number, line in enumerate(read_text(path, MAX_TABLE_BYTES).splitlines(), 1):
        if line.strip():
            yield number, line


def csv_text(rows: Sequence[Sequence[str]]) -> str:
    """CSV in which no text of a user's is a formula to a spreadsheet.

    Python's own writer leaves a carriage return without quotes, behind which readers see a new row.
    """
    return "".join(",".join(_quoted(harmless(cell)) for cell in row) + "\n" for row in rows)


def _quoted(cell: str) -> str:
    return '"' + cell.replace('"', '""') + '"' if _SPECIAL.search(cell) else cell


FORMULA = r"^'*[=+\-@\t\r\n＝＋－＠]"
NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
"""What a spreadsheet takes for a formula (also behind apostrophes, so that one can be taken off again), unless it is
a number. For Python and for Arrow."""
_FORMULA, _NUMBER, _SPECIAL = re.compile(FORMULA), re.compile(NUMBER), re.compile('[,"\r\n]')


def harmless(cell: str) -> str:
    """The cell behind an apostrophe, which spreadsheets take for "text", if it could be a formula."""
    return f"'{cell}" if _FORMULA.match(cell) and not _NUMBER.match(cell) else cell


def bare(cell: str) -> str:
    """The cell that `harmless` was given."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


def one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
