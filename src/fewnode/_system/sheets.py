"""Small tables that people open in a spreadsheet: how one is written, its rows by column, cells that are no formula.

Large tables are read by `tables`; these are lists of nodes, classes and answers.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from io import StringIO
from itertools import islice
from pathlib import Path

from fewnode._system.files import MAX_TABLE_BYTES, read_text
from fewnode.errors import FewnodeError

MAX_COLUMNS = 10_000
SEPARATORS = ",;\t|"
"""Separators that are recognised."""
LOST_QUOTE = "a quoted cell does not end on this line; is a quote missing?"
TOO_WIDE = f"over {MAX_COLUMNS:,} columns; a column can hold a vector of numbers"
Rows = Iterator[tuple[int, list[str]]]
"""The number of the line that each is on, and its cells."""


def read_table(path: Path, columns: Sequence[str], exact: str = "") -> list[tuple[int, list[str]]]:
    """The named columns of a CSV file as (line number, values), blank lines left out.

    Spaces around a value do not count, but for the column `exact`.
    """
    header, table = _opened(path)
    if missing := [name for name in columns if name not in header]:
        raise FewnodeError(
            f"{path}: line 1: column {missing[0]!r} is missing; the header is {','.join(header)!r}, "
            f"expected {','.join(columns)!r}"
        )
    places = {name: header.index(name) for name in columns}
    return [
        (line, [row[at] if name == exact else row[at].strip() for name, at in places.items()])
        for line, row in table
        if any(map(str.strip, row))
    ]


def other_columns(path: Path, columns: Sequence[str]) -> list[str]:
    """The columns of a CSV file beside those that are named."""
    return [name for name in _opened(path)[0] if name not in columns]


def _opened(path: Path) -> tuple[list[str], Rows]:
    """The names of the columns, and the rows below."""
    name, lines = str(path), StringIO(read_text(path, MAX_TABLE_BYTES), newline="")
    separator = recognise_separator(name, first_lines(lines))
    lines.seek(0)
    table = rows(name, lines, separator)
    return column_names(name, next(table, (1, []))[1]), table


# --- how a table of text is written -------------------------------------------------------------------------------


def first_lines(lines: Iterable[str]) -> list[str]:
    """The first line, and some of those after it that are not too long to look at."""
    found: list[str] = []
    for line in islice(lines, 20):
        if found and sum(map(len, found)) + len(line) > 1 << 20:
            break
        found.append(line)
    return found


def recognise_separator(name: str, lines: Sequence[str]) -> str:
    """The character that cuts all of the first lines into the same number of cells; a comma if none does.

    A text that holds another one is no reason to doubt, unless every line and the header hold it equally often.
    """
    if lines and max(map(lines[0].count, SEPARATORS)) >= MAX_COLUMNS:
        raise FewnodeError(f"{name}: line 1: {TOO_WIDE}")
    samples: dict[str, list[list[str]]] = {}
    for mark in SEPARATORS:
        try:
            sample = [row for row in csv.reader(lines, delimiter=mark) if row]
        except csv.Error:
            continue
        if sample and len(sample[0]) > 1:
            samples[mark] = sample
    fitting = [mark for mark, sample in samples.items() if len(set(map(len, sample))) == 1]
    whole = [mark for mark in fitting if not any('"' in cell for row in samples[mark] for cell in row)]
    fitting = whole or fitting  # what cuts through quoted cells is not the separator
    if len(fitting) > 1:
        ways = " and ".join(f"{len(samples[mark][0])} columns by {mark!r}" for mark in fitting)
        raise FewnodeError(f"{name}: it reads as {ways}; say which with `separator`")
    return (fitting or [*samples, ","])[0]


def rows(name: str, lines: Iterable[str], separator: str, *, multiline: bool = False, remedy: str = "") -> Rows:
    """The cells of each row and the line it is on, blank lines included.

    A cell that goes on in the next line is refused unless `multiline`: two stray quotes would swallow all between. A
    line of a million separators would be taken apart in gigabytes.
    """

    def sane() -> Iterator[str]:
        for number, line in enumerate(lines, 1):
            if line.count(separator) > 100 * MAX_COLUMNS:
                raise FewnodeError(f"{name}: line {number}: over {100 * MAX_COLUMNS:,} separators {separator!r}")
            yield line

    reader = csv.reader(sane(), delimiter=separator, strict=True)
    width = last = 0
    try:
        for row in reader:
            if reader.line_num > last + 1 and not multiline:
                raise FewnodeError(f"{name}: line {last + 1}: {LOST_QUOTE}{remedy}")
            last, width = reader.line_num, width or len(row)
            if row and len(row) != width:
                raise FewnodeError(f"{name}: line {last}: {len(row)} cells, expected {width}")
            yield last, row
    except csv.Error as error:
        lost = reader.line_num > last + 1 or "end of data" in str(error)
        raise FewnodeError(f"{name}: line {last + 1}: {LOST_QUOTE if lost else error}") from None


def column_names(name: str, header: Iterable[object]) -> list[str]:
    """The names without spaces around them, none of them twice and not too many."""
    names = [str(column).strip() for column in header]
    if len(names) > MAX_COLUMNS:
        raise FewnodeError(f"{name}: {TOO_WIDE}")
    if names.count("") > 1:
        raise FewnodeError(f"{name}: several columns without a name; name them")
    if len(set(names)) < len(names):
        twice = next(column for i, column in enumerate(names) if column in names[:i])
        raise FewnodeError(f"{name}: column {twice!r} is there twice; rename one")
    return names


# --- cells that a spreadsheet takes as they are -------------------------------------------------------------------

_FORMULA, _NUMBER = re.compile(r"'*[=+\-@\t\r\n＝＋－＠]"), re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
"""What a spreadsheet takes for a formula (also behind apostrophes, so that one can be taken off again), unless it is
a number."""
_SPECIAL = re.compile('[,"\r\n]')


def csv_text(rows: Sequence[Sequence[str]]) -> str:
    """CSV in which no text of a user's is a formula to a spreadsheet.

    Python's own writer leaves a carriage return without quotes, behind which readers see a new row.
    """
    return "".join(",".join(_quoted(harmless(cell)) for cell in row) + "\n" for row in rows)


def _quoted(cell: str) -> str:
    return '"' + cell.replace('"', '""') + '"' if _SPECIAL.search(cell) else cell


def harmless(cell: str) -> str:
    """The cell behind an apostrophe, which spreadsheets take for "text", if it could be a formula."""
    return f"'{cell}" if _FORMULA.match(cell) and not _NUMBER.fullmatch(cell) else cell


def bare(cell: str) -> str:
    """The cell that `harmless` was given."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell
