"""Small tables that people open in a spreadsheet: read by column, and written without a cell that is a formula."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from fewnode.errors import FewnodeError
from fewnode.machine.delimited import column_names, first_lines, recognise_separator, rows
from fewnode.machine.files import MAX_TABLE_BYTES, read_text


def read_table(path: Path, columns: Sequence[str], exact: str = "") -> list[tuple[int, list[str]]]:
    """The named columns of a CSV file as (line number, values), blank lines left out.

    Spaces around a value do not count, but for the column `exact`.
    """
    header, table = _opened(path)
    if missing := [name for name in columns if name not in header]:
        told = f"{path}: line 1: column {missing[0]!r} is missing; the header is {','.join(header)!r}"
        raise FewnodeError(f"{told}, expected {','.join(columns)!r}")
    places = [header.index(name) for name in columns]
    there = [(line, row) for line, row in table if any(map(str.strip, row))]
    kept = header.index(exact) if exact else None
    return [(line, [row[at] if at == kept else row[at].strip() for at in places]) for line, row in there]


def other_columns(path: Path, columns: Sequence[str]) -> list[str]:
    """The columns of a CSV file beside those that are named."""
    return [name for name in _opened(path)[0] if name not in columns]


def _opened(path: Path) -> tuple[list[str], Iterator[tuple[int, list[str]]]]:
    """The names of the columns, and the rows below with their line numbers."""
    lines = io.StringIO(read_text(path, MAX_TABLE_BYTES), newline="")
    separator = recognise_separator(str(path), first_lines(lines))
    lines.seek(0)
    table = rows(str(path), lines, separator)
    return list(column_names(str(path), next(table, (1, []))[1])), table


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
