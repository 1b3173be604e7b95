"""Raw dumps, line by line: any size in constant memory, plain or gzip; what is broken is counted and passed over."""

from __future__ import annotations

import gzip
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from heapq import nsmallest
from io import BufferedReader
from pathlib import Path
from typing import TypeVar

from fewnode.errors import FewnodeError
from fewnode.formats.npz import MAX_INFLATION, is_bomb
from fewnode.machine.files import one_line, readable

MAX_LINE = 16 << 20
CHUNK = 1 << 20
MAX_BROKEN = 0.01

T = TypeVar("T")
_GZIP = b"\x1f\x8b"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def find_raw(raw: Path, name: str) -> Path:
    """The dump that a user means: `raw` itself if it is a file, else `name` or `name`.gz in that folder or in one of
    the folders in it."""
    if raw.is_file():
        return raw
    if not raw.is_dir():
        raise FewnodeError(f"{raw}: no such file or folder")
    for folder in (raw, *sorted(path for path in raw.iterdir() if path.is_dir())):
        for path in (folder / name, folder / f"{name}.gz"):
            if path.is_file():
                return path
    raise FewnodeError(f"{raw}: neither {name} nor {name}.gz is in it")


def is_gzip(path: Path) -> bool:
    with readable(path) as file:
        return file.read(len(_GZIP)) == _GZIP


def chunks(path: Path) -> Iterator[bytes]:
    """The content of a file in pieces of about `CHUNK` bytes, inflated if it is gzip."""
    with readable(path) as file:
        if is_gzip(path):
            yield from _inflated(path, file)
        else:
            while chunk := file.read(CHUNK):
                yield chunk


def _inflated(path: Path, file: BufferedReader) -> Iterator[bytes]:
    """A bomb is refused after the first 64 MB, a stream that is cut or damaged when that shows."""
    total = 0
    try:
        with gzip.GzipFile(fileobj=file) as stream:
            while chunk := stream.read(CHUNK):
                total += len(chunk)
                if is_bomb(total, file.tell()):
                    raise FewnodeError(f"{path}: inflates to over {MAX_INFLATION} times its size, refused")
                yield chunk
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise FewnodeError(f"{path}: gzip data is cut or damaged after {total:,} bytes ({one_line(error)})") from None


def stream_lines(path: Path) -> Iterator[bytes | None]:
    """Every line without its line feed; None for one longer than `MAX_LINE`, of which no more than that is ever held.

    A byte-order mark that begins the file is dropped: some editors write one.
    """
    held = b""
    too_long = False
    for position, chunk in enumerate(chunks(path)):
        first, *others = (chunk if position else chunk.removeprefix(_BYTE_ORDER_MARK)).split(b"\n")
        held = b"" if too_long else held + first
        if len(held) > MAX_LINE:
            held, too_long = b"", True
        if others:
            yield None if too_long else held
            yield from others[:-1]
            held, too_long = others[-1], False
    if held or too_long:
        yield None if too_long else held


def pick(items: Iterable[T], numbers: Iterable[int]) -> Iterator[T]:
    """The items with these numbers, which count from 0 and ascend; what is beyond the end is left out."""
    wanted = iter(numbers)
    number = next(wanted, None)
    if number is None:
        return
    for i, item in enumerate(items):
        if i == number:
            yield item
            number = next(wanted, None)
            if number is None:
                return


@dataclass
class Skipped:
    """What was passed over in a dump, counted by kind. Up to 1 % is normal in data of this size, more is not."""

    path: Path
    unit: str = "line"
    counts: Counter[str] = field(default_factory=Counter)
    places: list[tuple[int, str]] = field(default_factory=list)

    def add(self, number: int, kind: str) -> None:
        """`number` counts from 0, as lines do in this module; messages count from 1."""
        self.counts[kind] += 1
        self.places.append((number, kind))
        if len(self.places) > 100:
            self.places = nsmallest(3, self.places)

    def check(self, total: int) -> None:
        """Refuse a dump of `total` lines if too many of them were passed over."""
        if self.counts.total() > MAX_BROKEN * total:
            first = "; ".join(f"{self.unit} {number + 1}: {kind}" for number, kind in nsmallest(3, self.places))
            what = f"{self.counts.total():,} of {total:,} {self.unit}s cannot be used, more than {MAX_BROKEN:.0%}"
            raise FewnodeError(f"{self.path}: {what}; the first: {first}")

    def as_counts(self) -> dict[str, int]:
        """Kinds and how many of each, by name."""
        return dict(sorted(self.counts.items()))
