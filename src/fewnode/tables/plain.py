"""The file of a table as plain UTF-8: inflated, decoded, its lines counted; and JSON lines as columns.

Nothing in a file is trusted: one that inflates beyond all proportion is refused while it inflates.
"""

from __future__ import annotations

import codecs
import gzip
import io
import json
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa

from fewnode._system.files import one_line, readable
from fewnode.errors import FewnodeError

TEXT = pa.large_string()
MAX_INFLATION = 100
FREE_BYTES = 64 << 20
"""What inflates to more than this and `MAX_INFLATION` times its file is a bomb; tables shrink 3 to 30 times."""
MAX_LINE = 32 << 20
MAX_KEYS = 1000
"""JSON lines with more columns than this are no table, and every row would get a cell in each."""
PIECE = 1 << 20
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # begins as UTF-16 does, so it is asked for first
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


class PlainText:
    """A file of text in UTF-8 with line ends of one kind: itself if that is what it is, else a copy at `copy`."""

    def __init__(self, path: Path, encoding: str | None, copy: Path) -> None:
        self.path, self.place, self.encoding = path, path.resolve(), _encoding_of(path, encoding)
        self.lines = self._ends = 0
        """Lines that are not blank, and line ends, so far."""
        is_plain = path.suffix.lower() != ".gz" and self.encoding.startswith("utf-8")
        if not is_plain or not self._counted(inflated(path)):
            self.place, self.lines, self._ends = copy, 0, 0
            with copy.open("wb") as out:
                self._counted(self._decoded(out))

    def _counted(self, blobs: Iterable[bytes]) -> bool:
        """Count the lines; a zero byte is no text. Whether all of them end in one way."""
        last = b"\n"
        for blob in blobs:
            if b"\0" in blob:
                line = self._ends + blob.count(b"\n", 0, blob.index(b"\0")) + 1
                raise FewnodeError(f"{self.path}: line {line}: a zero byte, expected text; is it `encoding` utf-16?")
            if b"\r" in blob:
                return False
            ends = np.frombuffer(last + blob, np.uint8) == ord("\n")
            self.lines += int(np.count_nonzero(ends[:-1] & ~ends[1:]))
            self._ends += int(np.count_nonzero(ends[1:]))
            last = blob[-1:]
        return True

    def _decoded(self, out: BinaryIO) -> Iterator[bytes]:
        decoder = io.IncrementalNewlineDecoder(codecs.getincrementaldecoder(self.encoding)(), translate=True)
        try:
            for blob in chain(inflated(self.path), [b""]):
                if text := decoder.decode(blob, final=not blob).encode():
                    out.write(text)
                    yield text
        except UnicodeError:
            raise self.undecodable(self._ends + 1) from None

    def __iter__(self) -> Iterator[str]:
        with self.place.open("rb") as file:
            number = 0
            while line := file.readline(MAX_LINE + 1):
                number += 1
                if len(line) > MAX_LINE:
                    raise FewnodeError(f"{self.path}: line {number} is longer than {MAX_LINE >> 20} MB")
                try:
                    yield line.decode("utf-8-sig" if number == 1 else "utf-8")
                except UnicodeError:
                    raise self.undecodable(number) from None

    def undecodable(self, line: int) -> FewnodeError:
        known = self.encoding.removesuffix("-sig").upper()
        other = "latin-1" if known.startswith("UTF") else "utf-8"
        return FewnodeError(f"{self.path}: line {line}: not {known}; say which it is, such as `encoding` {other}")


def inflated(path: Path) -> Iterator[bytes]:
    """The bytes of a file, inflated if its name ends in .gz, up to what the bytes read so far may inflate to."""
    with readable(path) as file:
        source: Any = gzip.GzipFile(fileobj=file) if path.suffix.lower() == ".gz" else file
        size = 0
        try:
            while blob := source.read(PIECE):
                size += len(blob)
                if size > max(FREE_BYTES, MAX_INFLATION * file.tell()):
                    raise FewnodeError(f"{path}: inflates to over {MAX_INFLATION} times its size, refused")
                yield blob
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            what = f"the gzip file is cut short or damaged ({one_line(error)}); fetch it again"
            raise FewnodeError(f"{path}: {what}") from None


def _encoding_of(path: Path, given: str | None) -> str:
    """The encoding whose mark the file begins with, else the given one, else UTF-8."""
    start = next(inflated(path), b"")
    marked = next((encoding for mark, encoding in _MARKS if start.startswith(mark)), None)
    if given is None:
        return marked or "utf-8"
    name = codecs.lookup(given).name
    if marked is None and name in ("utf-16", "utf-32"):
        raise FewnodeError(f"{path}: no mark of {name.upper()} at its start; say `encoding` {name}-le or {name}-be")
    if marked is not None and not name.startswith(family := marked.removesuffix("-sig")):
        raise FewnodeError(f"{path}: begins with the mark of {family.upper()}, not {given}; leave `encoding` out")
    return marked or name


# --- JSON lines ---------------------------------------------------------------------------------------------------


class _Number(str):
    """A number as it is written: an id may have more digits than a float."""


def read_json_lines(text: PlainText) -> pa.Table:
    """Parsed by Python, which keeps the digits of numbers, sees keys that are there twice and nesting without end."""
    batches: list[pa.Table] = []
    rows: list[Mapping[str, str | None]] = []
    names: dict[str, None] = {}
    for number, line in enumerate(text, 1):
        if line.strip():
            rows.append(_row(f"{text.path}: line {number}", line))
            names.update(dict.fromkeys(rows[-1]))
        if len(names) > MAX_KEYS:
            raise FewnodeError(f"{text.path}: line {number}: over {MAX_KEYS} different keys, expected a table")
        if len(rows) == 1 << 14:
            batches.append(pa.Table.from_pylist(rows, _schema(names)))
            rows = []
    if not names:
        raise FewnodeError(f"{text.path}: no row in it")
    return pa.concat_tables([*batches, pa.Table.from_pylist(rows, _schema(names))], promote_options="default")


def _schema(names: Iterable[str]) -> pa.Schema:
    return pa.schema([(name, TEXT) for name in names])


def _row(place: str, line: str) -> dict[str, str | None]:
    name: Any = None
    try:
        row = _DECODER.decode(line)
        if not isinstance(row, dict):
            kind = type(row).__name__.lstrip("_").lower()
            raise FewnodeError(f"{place}: found a {kind}, expected an object on each line")
        for name, value in row.items():
            if type(value) is not str or "\\u" in line:
                _cell(name)
                row[name] = _cell(value)
        return row
    except (ValueError, RecursionError, TypeError) as error:
        if name is None:
            raise FewnodeError(f"{place}: not JSON ({one_line(error)})") from None
        raise FewnodeError(f"{place}, column {name!r}: expected text, a number or a list of them") from None


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    row = dict(pairs)
    if len(row) < len(pairs):
        [(twice, _)] = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"key {twice!r} is there twice")
    return row


_DECODER = json.JSONDecoder(
    object_pairs_hook=_without_repeats,
    parse_int=_Number,
    parse_float=_Number,
    parse_constant=lambda name: None if name == "NaN" else _Number(name),
)


def _cell(value: Any) -> str | None:
    """A JSON value as the cell of a text table: a list of numbers in brackets, other lists with spaces between."""
    if isinstance(value, str):
        value.encode()  # half of a surrogate pair is JSON, but no text
        return str(value)
    if value is None:
        return None
    if isinstance(value, list):
        if value and all(item is None or type(item) is _Number for item in value):
            return f"[{', '.join('null' if item is None else str(item) for item in value)}]"
        return " ".join(cell for cell in map(_cell, value) if cell is not None)
    if isinstance(value, dict):
        raise TypeError
    return str(value).lower()
