"""When edges were: dates and times as seconds, and what a half-life leaves of their weights."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fewnode.datasets.arrow import Table, is_number
from fewnode.errors import FewnodeError

Seconds = NDArray[np.float64]

UNITS = {"s": 1, "min": 60, "h": 3600, "d": 86400, "w": 7 * 86400, "y": 365.25 * 86400}
AS_DATES = "a date such as 2024-01-31, 2024-01-31T12:00 or 31.01.2024, or Unix seconds"
DAY_FIRST = r"(\d{1,2})\.(\d{1,2})\.(\d{4})"
"""With dots the day comes first, everywhere. With slashes it depends on the country, so those are refused."""
NUMBER = r"-?\d+(\.\d+)?"
MILLISECONDS = 1e11
"""Numbers beyond this are no seconds: as such they are after the year 5000."""


CALENDAR = (1900_01_01, 2100_12_31)
"""Whole numbers between these are dates without marks, `20240131`: as seconds all of them are in the year 1970."""
LIKELY = (datetime(1990, 1, 1, tzinfo=UTC).timestamp(), datetime(2100, 1, 1, tzinfo=UTC).timestamp())
"""Times of a column of numbers beyond these may be years, days or steps of something else."""
LATEST = 1e21
"""No number beyond this is a time, in whatever unit."""
MOST_HALVES = 60
"""Half-lives after which a weight is as good as none; more would be lost in rounding."""


class TimeRules(NamedTuple):
    """Which column says when an edge was, and what follows from it."""

    column: str
    half_life: str | None = None
    """`30d`: an edge that is 30 days older weighs half."""
    before: str | None = None
    """A date: later edges, and those of that day, are left out."""

    @property
    def does_nothing(self) -> str | None:
        """A remark, if nothing follows from when an edge was."""
        if self.half_life is not None or self.before is not None:
            return None
        ways = "--half-life 30d makes old edges count less, --before DATE leaves out new ones"
        return f"column {self.column!r} says when edges were, and nothing follows from it: {ways}"

    def checked(self) -> TimeRules:
        if self.half_life is not None:
            half_life_seconds(self.half_life)
        if self.before is not None:
            moment(self.before, "before")
        return self


def half_life_seconds(text: str) -> float:
    """`30d` as seconds.

    >>> half_life_seconds("1.5h")
    5400.0
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*", text)
    if match is None or match[2] not in UNITS or float(match[1]) <= 0:
        raise FewnodeError(f"half-life {text!r}: expected a number and one of {', '.join(UNITS)}, such as 30d")
    return float(match[1]) * UNITS[match[2]]


def moment(text: str, what: str) -> float:
    """A date or a time as seconds; without a zone it is UTC.

    >>> moment("31.01.2024 12:00", "before") == moment("2024-01-31T12:00Z", "before")
    True
    """
    try:
        return _seconds_of(text)
    except ValueError:
        raise FewnodeError(f"{what} {text!r}: expected {AS_DATES}") from None


def _seconds_of(text: str) -> float:
    if match := re.match(DAY_FIRST, text):
        text = f"{match[3]}-{match[2]:>02}-{match[1]:>02}{text[match.end() :]}"
    if re.fullmatch(NUMBER, text) and not _is_calendar(np.array([float(text)])):
        if not abs(float(text)) < LATEST:
            raise ValueError
        return float(_as_seconds(np.array([float(text)]))[0])
    found = datetime.fromisoformat(text)  # 20240131 among others
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


def times(table: Table, column: str) -> Seconds:
    """When each row was, in seconds since 1970. Dates are their midnight, and what has no zone is UTC."""
    cells = table.data.column(column)
    if pa.types.is_temporal(cells.type) and not pa.types.is_time(cells.type) and not pa.types.is_duration(cells.type):
        _need_all(table, column, pc.is_null(cells))
        ticks = pc.cast(pc.cast(cells, pa.timestamp("us", getattr(cells.type, "tz", None))), pa.int64()).to_numpy()
        return np.asarray(ticks / 1e6, np.float64)
    if is_number(cells.type):
        numbers = table.numbers(column, AS_DATES)
        _need_all(table, column, pa.array(np.isnan(numbers)))
        if (odd := np.abs(numbers) >= LATEST).any():
            row = int(np.argmax(odd))
            raise table.fault(row, column, f"found {numbers[row]:g}, expected {AS_DATES}")
        return _of_calendar(table, column, numbers) if _is_calendar(numbers) else _as_seconds(numbers)
    texts = table.labels(column)
    _need_all(table, column, pc.is_null(texts))
    codes = pc.dictionary_encode(texts).combine_chunks()
    distinct = codes.dictionary.to_pylist()
    found = np.empty(len(distinct))
    for i, text in enumerate(distinct):
        try:
            found[i] = _seconds_of(text)
        except (ValueError, OverflowError):
            row = int(pc.index(texts, text).as_py())
            raise table.fault(row, column, f"found {text[:40]!r}, expected {AS_DATES}") from None
    return np.asarray(found[codes.indices.to_numpy()])


def span(when: Seconds) -> str:
    """From which day to which, for people; nothing if there is no time.

    >>> span(np.array([0.0, 86400.0]))
    '1970-01-01 to 1970-01-02'
    """
    if not when.size:
        return ""
    first, last = (np.datetime64(int(end), "s").item() for end in (when.min(), when.max()))
    return " to ".join(f"{day:%Y-%m-%d}" if isinstance(day, datetime) else "far away" for day in (first, last))


def doubt(table: Table, column: str, when: Seconds) -> str | None:
    """A remark, if numbers are read as times at which hardly anybody has an edge."""
    if not when.size or LIKELY[0] <= when.max() < LIKELY[1]:
        return None
    cells = table.data.column(column)
    numbers = is_number(cells.type) or (not pa.types.is_temporal(cells.type) and _are_numbers(table.labels(column)))
    if not numbers or _is_calendar(table.numbers(column, AS_DATES)):
        return None
    instead = "if they are years, days or steps, write dates as 2024-01-31"
    return f"column {column!r}: its numbers are read as Unix seconds, {span(when)}; {instead}"


def _are_numbers(texts: pa.ChunkedArray) -> bool:
    return bool(pc.all(pc.match_substring_regex(texts, f"^(?:{NUMBER})$")).as_py())


def _is_calendar(numbers: Seconds) -> bool:
    low, high = CALENDAR
    return bool(numbers.size and ((numbers >= low) & (numbers <= high) & (numbers % 1 == 0)).all())


def _of_calendar(table: Table, column: str, numbers: Seconds) -> Seconds:
    """Numbers such as 20240131 as the midnight of that day."""
    distinct, place = np.unique(numbers, return_inverse=True)
    found = np.empty(distinct.size)
    for i, number in enumerate(distinct.astype(np.int64).tolist()):
        try:
            found[i] = _seconds_of(str(number))
        except ValueError:
            raise table.fault(int(np.argmax(place == i)), column, f"found {number}, expected {AS_DATES}") from None
    return found[place]


def _need_all(table: Table, column: str, missing: pa.Array) -> None:
    if pc.any(missing).as_py():
        row = int(pc.index(missing, True).as_py())
        raise table.fault(row, column, f"empty, expected {AS_DATES}; fill it, or leave the row out")


def _as_seconds(numbers: Seconds) -> Seconds:
    """Unix seconds, or milliseconds and less where they are too large for that."""
    top = float(np.abs(numbers).max(initial=0))
    unit = 1.0
    while top / unit > MILLISECONDS:
        unit *= 1000
    return numbers / unit


def fades(when: Seconds, half_life: float, now: float) -> Seconds:
    """What is left of each weight: half for each half-life before `now`, all of what is later."""
    return np.asarray(0.5 ** np.minimum(np.maximum(now - when, 0) / half_life, MOST_HALVES))
