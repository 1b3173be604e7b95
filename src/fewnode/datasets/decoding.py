"""The file of a table as text: inflated, decoded, line by line; nothing in it is trusted."""

from __future__ import annotations

import codecs
import gzip
import io
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from fewnode.errors import FewnodeError
from fewnode.machine.files import one_line, readable

MAX_INFLATION = 100
FREE_BYTES = 256 << 20
"""What inflates to more than this and `MAX_INFLATION` times its file is a bomb; tables shrink 3 to 30 times."""

MAX_LINE = 32 << 20

PIECE = 1 << 18
"""So many bytes are counted at a time: they fit into the processor's cache."""

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # begins as UTF-16 does, so it is asked for first
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)

_UNDECODABLE = "\udc80"
"""Stands for bytes that are no text in the encoding. No text holds half of a surrogate pair."""
codecs.register_error("fewnode-mark", lambda error: (_UNDECODABLE, error.end))  # type: ignore[attr-defined]


class Inflating(io.RawIOBase):
    """The bytes of a file, inflated if its name ends in .gz, up to what a table may inflate to."""

    def __init__(self, path: Path, file: io.BufferedReader) -> None:
        self._path = path
        self._source = gzip.GzipFile(fileobj=file) if path.suffix.lower() == ".gz" else file
        self._left = max(FREE_BYTES, MAX_INFLATION * os.fstat(file.fileno()).st_size)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            blob = self._source.read(len(buffer))
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise FewnodeError(
                f"{self._path}: the gzip file is cut short or damaged ({one_line(error)}); fetch it again"
            ) from None
        self._left -= len(blob)
        if self._left < 0:
            raise FewnodeError(f"{self._path}: inflates to over {MAX_INFLATION} times its size, refused")
        buffer[: len(blob)] = blob
        return len(blob)


class Watched(io.RawIOBase):
    """Text as UTF-8 for Arrow, which does not count what is counted here: quotes, and lines that are not empty."""

    def __init__(self, stream: io.BufferedReader, encoding: str) -> None:
        self._stream = stream
        self._text = None if encoding.startswith("utf-8") else io.TextIOWrapper(stream, encoding, newline="")
        self._after_end = True
        self.quotes = self.lines = 0
        self.has_nul = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        size = min(len(buffer), PIECE)
        blob = self._text.read(size // 4).encode() if self._text else self._stream.read(size)
        if not blob and not self._after_end:
            blob = b"\n"  # Arrow does not take a header alone without the end of its line
        if blob:
            self._count(blob)
        buffer[: len(blob)] = blob
        return len(blob)

    def _count(self, blob: bytes) -> None:
        self.quotes += blob.count(b'"')
        self.has_nul |= b"\0" in blob
        content = np.frombuffer(blob, np.uint8)
        ends = content == ord("\n")
        if b"\r" in blob:
            ends |= content == ord("\r")
        self.lines += int(self._after_end and not ends[0]) + int(np.count_nonzero(ends[:-1] > ends[1:]))
        self._after_end = bool(ends[-1])


@contextmanager
def open_bytes(path: Path) -> Iterator[io.BufferedReader]:
    with readable(path) as file:
        yield io.BufferedReader(Inflating(path, file), 1 << 20)


def encoding_of(path: Path, given: str | None) -> str:
    """The encoding whose mark the file begins with, else the given one, else UTF-8."""
    with open_bytes(path) as stream:
        start = stream.read(4)
    found = next((encoding for mark, encoding in _MARKS if start.startswith(mark)), None)
    if given is None:
        return found or "utf-8"
    name = codecs.lookup(given).name
    if found is None and name in ("utf-16", "utf-32"):
        raise FewnodeError(f"{path}: no mark of {name.upper()} at its start; say --encoding {name}-le or {name}-be")
    if found is not None and not name.startswith(family := found.removesuffix("-sig")):
        raise FewnodeError(f"{path}: begins with the mark of {family.upper()}, not {given}; leave --encoding out")
    return found or name


def lines_of(path: Path, encoding: str) -> Iterator[str]:
    """The lines with their ends, which may be those of any machine."""
    number = 0
    with open_bytes(path) as stream:
        text = io.TextIOWrapper(stream, encoding, "fewnode-mark", newline="")
        while line := text.readline(MAX_LINE):
            number += 1
            if len(line) == MAX_LINE:
                raise FewnodeError(f"{path}: line {number} is longer than {MAX_LINE >> 20} MB")
            if _UNDECODABLE in line:
                known = encoding.removesuffix("-sig").upper()
                other = "latin-1" if known.startswith("UTF") else "utf-8"
                raise FewnodeError(f"{path}: line {number}: not {known}; say which it is, such as --encoding {other}")
            if "\0" in line:
                raise FewnodeError(f"{path}: line {number}: a zero byte, expected text; is it --encoding utf-16?")
            yield line
