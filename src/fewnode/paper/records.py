"""Raw dumps, read without trusting them: plain or gzip, any size by the line; what is broken is counted."""

from __future__ import annotations

import ast
import gzip
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, TypeVar

from pydantic import BaseModel, ValidationError

from fewnode._system.files import one_line, readable
from fewnode.errors import FewnodeError
from fewnode.formats.npz import MAX_INFLATION, is_bomb

MAX_LINE = 16 << 20
MAX_LITERAL = 1 << 18
MAX_BROKEN = 0.01
"""Up to this share of broken records is normal in data of this size, more is not."""

Record = TypeVar("Record", bound=BaseModel)


class BadRecordError(Exception):
    """A record that cannot be used; its text is the kind that records like it are counted as."""


def find_raw(raw: Path, name: str) -> Path:
    """`raw` itself if it is a file, else `name` or `name`.gz in that folder or in one of the folders in it."""
    if raw.is_file():
        return raw
    if not raw.is_dir():
        raise FewnodeError(f"{raw}: no such file or folder")
    for folder in (raw, *sorted(path for path in raw.iterdir() if path.is_dir())):
        for path in (folder / name, folder / f"{name}.gz"):
            if path.is_file():
                return path
    raise FewnodeError(f"{raw}: neither {name} nor {name}.gz is in it")


def _pieces(path: Path, read: Callable[[IO[bytes]], bytes]) -> Iterator[bytes]:
    """What `read` takes from the inflated file, again and again. A bomb is refused after the first 64 MB."""
    with readable(path) as file:
        packed = file.peek(2)[:2] == b"\x1f\x8b"
        stream: IO[bytes] = gzip.GzipFile(fileobj=file) if packed else file  # type: ignore[assignment]
        try:
            while piece := read(stream):
                if packed and is_bomb(stream.tell(), file.tell()):
                    raise FewnodeError(f"{path}: inflates to over {MAX_INFLATION} times its size, refused")
                yield piece
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            place = f"{stream.tell():,} bytes ({one_line(error)})"
            raise FewnodeError(f"{path}: gzip data is cut or damaged after {place}") from None


def read_lines(path: Path) -> Iterator[bytes | None]:
    """Every line; None for one longer than `MAX_LINE`, of which no more than that is ever held."""
    too_long = False
    for piece in _pieces(path, lambda stream: stream.readline(MAX_LINE)):
        if len(piece) == MAX_LINE and not piece.endswith(b"\n"):
            too_long = True
        else:
            yield None if too_long else piece
            too_long = False
    if too_long:
        yield None


def read_whole(path: Path, limit: int) -> bytearray:
    """All of a file that is read at once, if it is not larger than `limit` when it is inflated."""
    content = bytearray()
    for piece in _pieces(path, lambda stream: stream.read(1 << 20)):
        content += piece
        if len(content) > limit:
            raise FewnodeError(f"{path}: larger than {limit >> 20:,} MB")
    return content


def parse(line: bytes | None, kind: type[Record]) -> Record:
    """One line as a record: JSON, or a Python literal as `repr` writes it. `BadRecordError` says what is wrong.

    Python's own parser runs nothing of a literal, but its syntax tree takes hundreds of bytes for a character.
    """
    if line is None:
        raise BadRecordError(f"longer than {MAX_LINE >> 20} MB")
    if b"\0" in line:
        raise BadRecordError("NUL byte")
    try:
        text = line.decode("utf-8-sig").strip()
    except UnicodeDecodeError:
        raise BadRecordError("not UTF-8") from None
    if not text:
        raise BadRecordError("empty line")
    try:
        return kind.model_validate_json(text)
    except ValidationError as error:
        if not (wrong := fault(error)).startswith("Invalid JSON"):
            raise BadRecordError(wrong) from None
    with warnings.catch_warnings(), suppress(ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        warnings.simplefilter("ignore")  # an unknown escape such as \/ is kept as it is
        literal = ast.literal_eval(text if len(text) <= MAX_LITERAL else "")
        try:
            return kind.model_validate(literal)
        except ValidationError as error:
            raise BadRecordError(fault(error)) from None
    raise BadRecordError("neither JSON nor a Python literal")


def fault(error: ValidationError) -> str:
    """The first thing that is wrong and the field that it is in, without what stands there."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    if first["type"] == "model_type" and not first["loc"]:
        return "not a record"
    return ": ".join([*(str(name)[:40] for name in first["loc"][:1]), first["msg"]])


def counted(path: Path, skipped: Sequence[tuple[int, str]], total: int, unit: str = "line") -> dict[str, int]:
    """How many records, by number from 0 and kind, were skipped of each kind. A dump with too many is refused."""
    if len(skipped) > MAX_BROKEN * total:
        first = "; ".join(f"{unit} {number + 1}: {kind}" for number, kind in sorted(skipped)[:3])
        what = f"{len(skipped):,} of {total:,} {unit}s cannot be used, more than {MAX_BROKEN:.0%}"
        raise FewnodeError(f"{path}: {what}; the first: {first}")
    return dict(sorted(Counter(kind for _, kind in skipped).items()))
