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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
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
    """A file of text in UTF-8 with line ends of one kind: itself if that is what it is, else a copy in `folder`."""

    def __init__(self, path: Path, encoding: str | None, copy: Path) -> None:
        self.path, self.encoding = path, _encoding_of(path, encoding)
        self.place, is_plain = path.resolve(), self.encoding.startswith("utf-8") and path.suffix.lower() != ".gz"
        self._start()
        if is_plain:
            with readable(path) as file:
                while (blob := file.read(PIECE)) and (is_plain := b"\r" not in blob):
                    self._look(blob)
        if not is_plain:
            self.place = copy
            self._start()
            with copy.open("wb") as out, open_bytes(path) as stream:
                decoded = io.TextIOWrapper(stream, self.encoding, newline=None)
                try:
                    while text := decoded.read(PIECE):
                        self._look(blob := text.encode())
                        out.write(blob)
                except UnicodeError:
                    raise self.undecodable(self._ends + 1) from None

    def _start(self) -> None:
        self.lines, self.longest, self._ends, self._after_end, self._length = 0, 0, 0, True, 0

    def _look(self, blob: bytes) -> None:
        """Count the lines that are not blank; refuse what is no text, and lines without end."""
        if b"\0" in blob:
            line = self._ends + blob.count(b"\n", 0, blob.index(b"\0")) + 1
            raise FewnodeError(f"{self.path}: line {line}: a zero byte, expected text; is it --encoding utf-16?")
        ends = np.frombuffer(blob, np.uint8) == ord("\n")
        self.lines += int(self._after_end and not ends[0]) + int(np.count_nonzero(ends[:-1] & ~ends[1:]))
        places = np.flatnonzero(ends)
        if places.size:
            self.longest = max(self.longest, self._length + int(places[0]), int(np.diff(places).max(initial=0)))
        self._length = len(blob) - 1 - int(places[-1]) if places.size else self._length + len(blob)
        self.longest = max(self.longest, self._length)
        self._ends, self._after_end = self._ends + places.size, bool(ends[-1])
        if self.longest > MAX_LINE:
            raise FewnodeError(f"{self.path}: line {self._ends + 1} is longer than {MAX_LINE >> 20} MB")

    def __iter__(self) -> Iterator[str]:
        with self.place.open("rb") as file:
            for number, line in enumerate(file, 1):
                try:
                    yield line.decode("utf-8-sig" if number == 1 else "utf-8")
                except UnicodeError:
                    raise self.undecodable(number) from None

    def undecodable(self, line: int) -> FewnodeError:
        known = self.encoding.removesuffix("-sig").upper()
        other = "latin-1" if known.startswith("UTF") else "utf-8"
        return FewnodeError(f"{self.path}: line {line}: not {known}; say which it is, such as --encoding {other}")


class _Inflating(io.RawIOBase):
    """The bytes of a file, inflated if its name ends in .gz, up to what the bytes read so far may inflate to."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self._path, self._file, self._size = path, file, 0
        self._source: Any = gzip.GzipFile(fileobj=file) if path.suffix.lower() == ".gz" else file

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            blob = self._source.read(len(buffer))
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise FewnodeError(
                f"{self._path}: the gzip file is cut short or damaged ({one_line(error)}); fetch it again"
            ) from None
        self._size += len(blob)
        if self._size > max(FREE_BYTES, MAX_INFLATION * self._file.tell()):
            raise FewnodeError(f"{self._path}: inflates to over {MAX_INFLATION} times its size, refused")
        buffer[: len(blob)] = blob
        return len(blob)


@contextmanager
def open_bytes(path: Path) -> Iterator[io.BufferedReader]:
    with readable(path) as file:
        yield io.BufferedReader(_Inflating(path, file), PIECE)


def _encoding_of(path: Path, given: str | None) -> str:
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


# --- JSON lines ---------------------------------------------------------------------------------------------------


class _Number(str):
    """A number as it is written: an id may have more digits than a float."""


def read_json_lines(text: PlainText) -> pa.Table:
    """Parsed by Python, which keeps the digits of numbers, sees keys that are there twice and nesting without end."""
    batches: list[pa.Table] = []
    lines: list[dict[str, str | None]] = []
    names: dict[str, None] = {}
    for number, line in enumerate(text, 1):
        if line.strip():
            lines.append(_object(text.path, number, line))
            names.update(dict.fromkeys(lines[-1]))
        if len(names) > MAX_KEYS:
            raise FewnodeError(f"{text.path}: line {number}: over {MAX_KEYS} different keys, expected a table")
        if len(lines) == 1 << 14:
            batches.append(_columns(lines, names))
            lines = []
    if not names:
        raise FewnodeError(f"{text.path}: no row in it")
    return pa.concat_tables([*batches, _columns(lines, names)], promote_options="default")


def _columns(lines: Sequence[Mapping[str, str | None]], names: Iterable[str]) -> pa.Table:
    return pa.table({name: pa.array([line.get(name) for line in lines], TEXT) for name in names})


def _object(path: Path, number: int, line: str) -> dict[str, str | None]:
    try:
        row = _DECODER.decode(line)
    except FewnodeError as error:
        raise FewnodeError(f"{path}: line {number}: {error}") from None
    except (ValueError, RecursionError) as error:
        raise FewnodeError(f"{path}: line {number}: not JSON ({one_line(error)})") from None
    if not isinstance(row, dict):
        raise FewnodeError(
            f"{path}: line {number}: found a {type(row).__name__.lstrip('_').lower()}, expected an object on each line"
        )
    for name, value in row.items():
        if type(value) is not str or "\\u" in line:
            try:
                _cell(name)
                row[name] = _cell(value)
            except (TypeError, UnicodeError, RecursionError):
                raise FewnodeError(
                    f"{path}: line {number}, column {name!r}: expected text, a number or a list of them"
                ) from None
    return row


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        [(twice, _)] = Counter(name for name, _ in pairs).most_common(1)
        raise FewnodeError(f"key {twice!r} is there twice")
    return found


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
