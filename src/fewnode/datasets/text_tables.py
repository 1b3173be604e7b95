"""CSV and JSON lines as Arrow columns of text, so that a node id of 007 stays 007."""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv

from fewnode.datasets.columns import TEXT, Choose
from fewnode.datasets.decoding import Watched, encoding_of, lines_of, open_bytes
from fewnode.datasets.scratch import Scratch
from fewnode.errors import FewnodeError
from fewnode.machine.delimited import Dialect, check_width, column_names, first_lines, recognise_separator, rows
from fewnode.machine.files import one_line

MAX_KEYS = 1000
"""JSON lines with more columns than this are no table, and every row would get a cell in each."""

BLOCK = 16 << 20
"""Arrow parses so much of a CSV file at a time; one row must fit."""


def read_csv(path: Path, choose: Choose, dialect: Dialect, disk: Scratch | None = None) -> pa.Table:
    """The chosen columns, read by Arrow; where it fails, or sees fewer rows than lines, Python finds the place.

    With `disk` they are written there, block by block.
    """
    encoding = encoding_of(path, dialect.encoding)
    first = first_lines(lines_of(path, encoding))
    separator = dialect.delimiter or recognise_separator(str(path), first)
    names = column_names(str(path), _header(path, first, separator, dialect))
    chosen = list(choose(names))
    with open_bytes(path) as stream:
        watched = Watched(stream, encoding)
        try:
            options = (
                io.BufferedReader(watched, 1 << 20),
                pyarrow.csv.ReadOptions(
                    use_threads=False,  # one that still holds our stream when Python ends would abort the process
                    block_size=BLOCK,
                    column_names=names,
                    skip_rows_after_names=int(dialect.header),
                ),
                pyarrow.csv.ParseOptions(delimiter=separator, newlines_in_values=dialect.multiline),
                pyarrow.csv.ConvertOptions(column_types=dict.fromkeys(chosen, TEXT), include_columns=chosen),
            )
            data = pyarrow.csv.read_csv(*options) if disk is None else _on_disk(disk, *options)
        except (pa.ArrowInvalid, UnicodeError) as error:
            _check_rows(path, encoding, separator, dialect)
            raise FewnodeError(f"{path}: not a readable table ({one_line(error)})") from None
    swallowed = watched.lines - data.num_rows - dialect.header
    if swallowed or watched.quotes % 2 or watched.has_nul:
        _check_rows(path, encoding, separator, dialect)
        if swallowed and not dialect.multiline:
            raise FewnodeError(f"{path}: {data.num_rows:,} rows on {watched.lines:,} lines; is a quote missing?")
    return data


def _on_disk(disk: Scratch, *options: Any) -> pa.Table:
    with pyarrow.csv.open_csv(*options) as reader:
        return disk.table(reader.schema, reader)


def _header(path: Path, first: Sequence[str], separator: str, dialect: Dialect) -> list[str]:
    """The names in the first line, or one for each cell of it."""
    check_width(str(path), first, separator)
    _, row = next(_rows(path, first, separator, dialect), (1, []))
    if not any(map(str.strip, row)):
        expected = "a header with the column names" if dialect.header else "the first row"
        raise FewnodeError(f"{path}: line 1 is empty, expected {expected}")
    return row if dialect.header else [f"column {i}" for i in range(1, len(row) + 1)]


def _rows(path: Path, lines: Iterable[str], separator: str, dialect: Dialect) -> Iterator[tuple[int, list[str]]]:
    remedy = " (--multiline if cells have several lines)"
    return rows(str(path), lines, separator, multiline=dialect.multiline, remedy=remedy)


def _check_rows(path: Path, encoding: str, separator: str, dialect: Dialect) -> None:
    """Read all of it by Python, which says on which line something is wrong."""
    for _ in _rows(path, lines_of(path, encoding), separator, dialect):
        pass


# --- JSON lines ---------------------------------------------------------------------------------------------------


class _Number(str):
    """A number as it is written: an id may have more digits than a float."""


def read_json_lines(path: Path, choose: Choose, dialect: Dialect) -> pa.Table:
    """Parsed by Python: Arrow's parser overflows the stack on deep nesting and turns dates into times."""
    batches: list[pa.Table] = []
    rows: list[dict[str, str | None]] = []
    names: dict[str, None] = {}
    for number, line in enumerate(lines_of(path, encoding_of(path, dialect.encoding)), 1):
        if line.strip():
            rows.append(_object(path, number, line))
            if not rows[-1].keys() <= names.keys():
                names.update(dict.fromkeys(rows[-1]))
        if len(names) > MAX_KEYS:
            raise FewnodeError(f"{path}: line {number}: over {MAX_KEYS} different keys, expected a table")
        if len(rows) == 1 << 14:
            batches.append(_columns(rows, names))
            rows = []
    data = pa.concat_tables([*batches, _columns(rows, names)], promote_options="default")
    if not names:
        raise FewnodeError(f"{path}: no row in it")
    data = data.rename_columns(column_names(str(path), data.column_names))
    return data.select(list(choose(data.column_names)))


def _object(path: Path, number: int, line: str) -> dict[str, str | None]:
    try:
        row = _DECODER.decode(line)
    except FewnodeError as error:
        raise FewnodeError(f"{path}: line {number}: {error}") from None
    except (ValueError, RecursionError) as error:
        raise FewnodeError(f"{path}: line {number}: not JSON ({one_line(error)})") from None
    if not isinstance(row, dict):
        raise FewnodeError(f"{path}: line {number}: found a {type(row).__name__}, expected an object on each line")
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
        if all(map(_is_number, value)) and value:
            return f"[{', '.join('null' if item is None else str(item) for item in value)}]"
        return " ".join(cell for cell in map(_cell, value) if cell is not None)
    if isinstance(value, dict):
        raise TypeError
    return str(value).lower()


def _is_number(value: Any) -> bool:
    return value is None or type(value) in (int, _Number)


def _columns(rows: Sequence[Mapping[str, str | None]], names: Iterable[str]) -> pa.Table:
    return pa.table({name: pa.array([row.get(name) for row in rows], TEXT) for name in names})
