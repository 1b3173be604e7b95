"""Tables of text: how one is written, and its rows with their lines."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from fewnode.errors import FewnodeError

MAX_COLUMNS = 10_000
SEPARATORS = ",;\t|"
"""Those that are recognised."""

_LOST_QUOTE = "a quoted cell does not end on this line; is a quote missing?"


def first_lines(lines: Iterable[str]) -> list[str]:
    """The first line, and some of those after it that are not too long to look at."""
    found: list[str] = []
    for line in islice(lines, 20):
        if found and sum(map(len, found)) + len(line) > 1 << 20:
            break
        found.append(line)
    return found


def check_width(name: str, lines: Sequence[str], separators: str) -> None:
    """Refuse a first line of too many columns before there is a string for each."""
    if lines and max(map(lines[0].count, separators)) >= MAX_COLUMNS:
        raise FewnodeError(f"{name}: line 1: over {MAX_COLUMNS:,} columns; a column can hold a vector of numbers")


def recognise_separator(name: str, lines: Sequence[str]) -> str:
    """The character that cuts all of the first lines into the same number of cells; a comma if none does.

    A text that holds another one is no reason to doubt, unless every line and the header hold it equally often.
    """
    check_width(name, lines, SEPARATORS)
    samples = {mark: _cells(lines, mark) for mark in SEPARATORS}
    wide = [mark for mark, sample in samples.items() if sample and len(sample[0]) > 1]
    fitting = [mark for mark in wide if len(set(map(len, samples[mark]))) == 1]
    whole = [mark for mark in fitting if not any('"' in cell for row in samples[mark] for cell in row)]
    fitting = whole or fitting  # what cuts through quoted cells is not the separator
    if len(fitting) > 1:
        ways = " and ".join(f"{len(samples[mark][0])} columns by {mark!r}" for mark in fitting)
        raise FewnodeError(f"{name}: it reads as {ways}; say which with --separator")
    return (fitting or wide or [","])[0]


def _cells(lines: Sequence[str], separator: str) -> list[list[str]]:
    """The cells of each row, blank ones left out; none if these are no rows."""
    try:
        return [row for row in csv.reader(lines, delimiter=separator) if row]
    except csv.Error:
        return []


def rows(
    name: str, lines: Iterable[str], separator: str, *, multiline: bool = False, remedy: str = ""
) -> Iterator[tuple[int, list[str]]]:
    """The cells of each row and the line it is on, blank lines included. Strict, and slower than Arrow.

    A cell that goes on in the next line is refused unless `multiline`: two stray quotes would swallow all between.
    """
    reader = csv.reader(_of_sane_width(name, lines, separator), delimiter=separator, strict=True)
    width = last = 0
    try:
        for row in reader:
            if reader.line_num > last + 1 and not multiline:
                raise FewnodeError(f"{name}: line {last + 1}: {_LOST_QUOTE}{remedy}")
            last = reader.line_num
            width = width or len(row)
            if row and len(row) != width:
                raise FewnodeError(f"{name}: line {last}: {len(row)} cells, expected {width}")
            yield last, row
    except csv.Error as error:
        lost = reader.line_num > last + 1 or "end of data" in str(error)
        raise FewnodeError(f"{name}: line {last + 1}: {_LOST_QUOTE if lost else error}") from None


def _of_sane_width(name: str, lines: Iterable[str], separator: str) -> Iterator[str]:
    """No row has a million cells and no text a million commas: such a line would be taken apart in gigabytes."""
    for number, line in enumerate(lines, 1):
        if line.count(separator) > 100 * MAX_COLUMNS:
            raise FewnodeError(f"{name}: line {number}: over {100 * MAX_COLUMNS:,} separators {separator!r}")
        yield line


def column_names(name: str, header: Iterable[object]) -> list[str]:
    """The names without spaces around them, none of them twice and not too many."""
    names = [str(column).strip() for column in header]
    if len(names) > MAX_COLUMNS:
        raise FewnodeError(
            f"{name}: {len(names):,} columns, expected at most {MAX_COLUMNS:,}; a column can hold a vector"
        )
    if twice := [column for column, count in Counter(names).items() if count > 1]:
        which = (
            f"column {twice[0]!r} is there twice; rename one"
            if twice[0]
            else "several columns without a name; name them"
        )
        raise FewnodeError(f"{name}: {which}")
    return names
