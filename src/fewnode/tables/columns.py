"""A column of cells as texts, labels, numbers, dates and vectors; what is missing is known from what is written."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from tokenize import TokenError
from typing import Any, TypeAlias
from zipfile import BadZipFile

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fewnode._system.files import one_line, readable
from fewnode.errors import FewnodeError
from fewnode.interchange import plain_array
from fewnode.tables.plain import TEXT
from fewnode.tables.spec import ImportSpec

Vectors: TypeAlias = NDArray[np.float32]
"""A row each; NaN where there is none."""
Fault: TypeAlias = Callable[[int, str], FewnodeError]
"""An error at a row of the column."""

SLICE = 1 << 14
"""Vectors written as text are taken apart so many rows at a time: the parts are larger than the numbers."""
_NUMBER = {
    ".": r"^[+-]?((\d+|[1-9]\d{0,2}(,\d{3})+)(\.\d*)?|\.\d+)([eE][+-]?\d+)?$",
    ",": r"^[+-]?((\d+|[1-9]\d{0,2}(\.\d{3})+)(,\d*)?|,\d+)([eE][+-]?\d+)?$",
}
"""Numbers by their decimal mark; the other mark may stand between thousands. `1,234` is both."""
_SPECIAL = r"^(?i)[+-]?(nan|inf(inity)?)$"
_VECTOR = r"(?i)^\[[\s\d.,eE+-]*((nan|null|none|[+-]?inf(inity)?)[\s\d.,eE+-]*)*\]$"
_GROUPED = r"^[+-]?(0|[1-9]\d{0,2}(\.\d{3})?)$"
FEWEST_POINTS = 2
"""Cells with a point that make one doubt whether it is a decimal one."""
_DATE = r"^\d{1,4}[-./]\d{1,2}[-./]\d{1,4}([ T].*)?$"
_PARTS = {
    "year first": r"^(?P<y>\d{4})[-./](?P<m>\d{1,2})[-./](?P<d>\d{1,2})(?:[ T].*)?$",
    "day first": r"^(?P<d>\d{1,2})[-./](?P<m>\d{1,2})[-./](?P<y>\d{4})(?:[ T].*)?$",
    "month first": r"^(?P<m>\d{1,2})[-./](?P<d>\d{1,2})[-./](?P<y>\d{4})(?:[ T].*)?$",
}
"""How dates are written. That a day comes first is known where one is beyond the 12th."""
EMPTY = "leave the cell empty if it is unknown"
DAMAGED = (ValueError, OSError, EOFError, SyntaxError, TokenError, TypeError, ArithmeticError, BadZipFile)
"""What NumPy raises at bytes that are not its own."""
NAMELESS = "vectors"
"""The column of an array that has no name."""


@dataclass(frozen=True)
class Column:
    """Cells and how they are written: texts as they are in the file, or lists of numbers."""

    cells: pa.ChunkedArray
    fault: Fault
    spec: ImportSpec = ImportSpec()  # noqa: RUF009  # nothing is said

    def __len__(self) -> int:
        return len(self.cells)

    @property
    def is_list(self) -> bool:
        return bool(pa.types.is_large_list(self.cells.type) or pa.types.is_list(self.cells.type))

    @cached_property
    def texts(self) -> pa.ChunkedArray:
        """The cells as trimmed text; blank ones are null."""
        if self.is_list:
            return pc.binary_join(pc.cast(self.cells, pa.list_(TEXT)), pa.scalar(" ", TEXT))
        texts = pc.utf8_trim_whitespace(self.cells)
        return pc.if_else(pc.equal(texts, ""), None, texts)

    @cached_property
    def labels(self) -> pa.ChunkedArray:
        """Texts where words for a missing value, such as NA, are null as well: they are no class."""
        return pc.if_else(self._are_missing, None, self.texts)

    @cached_property
    def _are_missing(self) -> pa.ChunkedArray:
        return pc.is_in(self.texts, value_set=_value_set(self.spec.missing_words))

    def missing_words(self) -> dict[str, int]:
        """The words for a missing value that are in the column, and how often; empty cells are not among them."""
        if self.is_list:
            return {}
        counts = pc.value_counts(self.texts.filter(self._are_missing))
        return {str(each["values"]): int(each["counts"]) for each in counts.to_pylist()}

    # --- numbers --------------------------------------------------------------------------------------------------

    @cached_property
    def numbers(self) -> NDArray[np.float64]:
        """The cells as numbers, NaN where they are empty or say that a value is missing. Infinity is refused.

        The decimal mark is that of the spec, or the one that all cells agree with. Truth is 1.
        """
        labels = self.labels
        if pc.all(pc.is_in(labels, value_set=pa.array(["true", "false", None], TEXT))).as_py():
            labels = pc.replace_substring(pc.replace_substring(labels, "true", "1"), "false", "0")
        mark, odd = self._reading(labels)
        if (row := first_row(odd)) is not None:
            told = f"found {labels[row].as_py()!r:.60}, expected a number"
            more = f" ({EMPTY}, or name what stands for that with `missing`)" if mark == "." else ", as most cells"
            raise self.fault(row, told + more)
        other = "." if mark == "," else ","
        cells = pc.replace_substring(pc.replace_substring(labels, other, ""), mark, ".")
        values: NDArray[np.float64] = pc.cast(pc.replace_substring_regex(cells, r"^\+", ""), pa.float64()).to_numpy()
        if (infinite := np.isinf(values)).any():
            row = int(infinite.argmax())
            raise self.fault(row, f"{values[row]} is no finite number; {EMPTY}")
        return values

    @property
    def is_numeric(self) -> bool:
        """Whether there are numbers in the column, and else nothing but missing values."""
        return not self.is_list and self.labels.null_count < len(self) and self.not_numbers()[0] == 0

    def not_numbers(self) -> tuple[int, str]:
        """How many cells are neither a number nor missing, and the first of them: few may be words for "missing"."""
        odd = self.labels.filter(min(self._odd(self.labels).values(), key=_count)).drop_null()
        return len(odd), str(odd[0].as_py()) if len(odd) else ""

    def _odd(self, labels: pa.ChunkedArray) -> dict[str, pa.ChunkedArray]:
        """By each decimal mark that may be meant, which cells are no numbers."""
        if self.spec.decimal is None:
            with suppress(pa.ArrowInvalid):
                pc.cast(labels, pa.float64())
                return {".": pc.is_in(labels, value_set=pa.array([], TEXT))}
        marks = [self.spec.decimal] if self.spec.decimal else [".", ","]
        return {mark: pc.invert(_match(labels, f"{_NUMBER[mark]}|{_SPECIAL}")) for mark in marks}

    def _reading(self, labels: pa.ChunkedArray) -> tuple[str, pa.ChunkedArray]:
        """The decimal mark that most cells agree with, and which of them are no numbers by it.

        Refused if all numbers may be fractions as well as thousands: `1,234`; or `950` beside `1.200`. Fractions are
        seldom all of three digits; if all cells have them, it makes no difference, as numbers are scaled.
        """
        odd = self._odd(labels)
        fit, unsure = [mark for mark in odd if not _count(odd[mark])], None
        if len(fit) > 1:
            unsure = ","
        elif fit == ["."] and self.spec.decimal is None and pc.all(_match(labels, _GROUPED)).as_py():
            pointed = _count(pc.match_substring(labels, "."))
            unsure = "." if FEWEST_POINTS <= pointed < len(labels) - labels.null_count else None
        if unsure and (row := first_row(pc.match_substring(labels, unsure))) is not None:
            told = f"{labels[row].as_py()!r} may be a fraction or thousands; say `decimal` , or `decimal` ."
            raise self.fault(row, told)
        mark = min(odd, key=lambda mark: _count(odd[mark]))
        return mark, odd[mark]

    # --- dates ----------------------------------------------------------------------------------------------------

    @cached_property
    def date_orders(self) -> list[str]:
        """How the dates are written: two ways if days and months look alike, none if other cells are there."""
        if self.is_list or self.labels.null_count == len(self) or not pc.all(_match(self.labels, _DATE)).as_py():
            return []
        return [order for order in _PARTS if (days := self._days(order)) is not None and not np.isnan(days).all()]

    def ages(self, order: str) -> NDArray[np.float64]:
        """The age of each date in days, up to what all of them have in common; NaN where there is none."""
        days = self._days(order)
        if days is None:
            row = first_row(pc.is_null(pc.extract_regex(self.labels, _PARTS[order]))) or 0
            raise self.fault(row, f"found {self.labels[row].as_py()!r:.60}, expected a date, {order}")
        return -days

    def _days(self, order: str) -> NDArray[np.float64] | None:
        """Days since 1970, or None if a cell is no date of this order."""
        parts = pc.extract_regex(self.labels, _PARTS[order])
        if parts.null_count > self.labels.null_count:
            return None
        year, month, day = (
            pc.fill_null(pc.cast(pc.struct_field(parts, part), pa.int64()), 1).to_numpy() for part in "ymd"
        )
        if not ((month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)).all():
            return None
        months = (year - 1970).astype("M8[Y]").astype("M8[M]") + (month - 1)
        days = (months.astype("M8[D]") + (day - 1)).astype(np.int64).astype(float)
        days[np.asarray(pc.is_null(self.labels))] = np.nan
        return days  # type: ignore[no-any-return]

    # --- vectors --------------------------------------------------------------------------------------------------

    @property
    def is_vector(self) -> bool:
        """Whether the cells are lists of numbers, or text such as `[0.1, 0.2]`."""
        if self.is_list:
            return True
        return self.labels.null_count < len(self) and bool(pc.all(_match(self.labels, _VECTOR)).as_py())

    def vectors(self) -> Vectors:
        """A vector for each row, all of one length and all numbers finite; NaN where there is none."""
        cells = self.cells if self.is_list else self.labels
        known = np.flatnonzero(np.asarray(pc.is_valid(cells)))
        vectors = np.zeros((len(cells), 0), np.float32)
        for low in range(0, known.size, SLICE):
            rows = known[low : low + SLICE]
            lists = cells.take(pa.array(rows)).combine_chunks()
            if not self.is_list:
                if (odd := first_row(pc.invert(_match(lists, _VECTOR)))) is not None:
                    what = f"found {lists[odd].as_py()[:60]!r}, expected numbers such as [0.1, 0.2]"
                    raise self.fault(int(rows[odd]), what)
                lists = pc.split_pattern_regex(pc.utf8_trim(lists, "[], \t"), r"\s*,\s*|\s+")
            lengths, first = pc.list_value_length(lists), not vectors.shape[1]
            width = lengths[0].as_py() if first else vectors.shape[1]
            if (odd := first_row(pc.not_equal(lengths, width or -1))) is not None:
                expected = f"{width} as before" if width else "at least one"
                raise self.fault(int(rows[odd]), f"a vector of {lengths[odd]} numbers, expected {expected}")
            numbers = _single(lists.flatten())
            if (odd := first_row(pa.array(~np.isfinite(numbers)))) is not None:
                found = str(lists.flatten()[odd].as_py())[:40]
                what = f"number {odd % width + 1} of the vector is {found!r}, expected a finite number"
                raise self.fault(int(rows[odd // width]), what)
            vectors = np.full((len(cells), width), np.nan, np.float32) if first else vectors
            vectors[rows] = numbers.reshape(len(rows), width)
        return vectors


@lru_cache(maxsize=8)
def _value_set(words: frozenset[str]) -> pa.Array:
    return pa.array(sorted(words), TEXT)


def as_cells(values: pa.ChunkedArray | pa.Array) -> pa.ChunkedArray:
    """An Arrow column with texts of one type."""
    chunked = values if isinstance(values, pa.ChunkedArray) else pa.chunked_array([values])
    kind = chunked.type
    is_text = pa.types.is_string(kind) or pa.types.is_string_view(kind) or pa.types.is_null(kind)
    return pc.cast(chunked, TEXT) if is_text else chunked


def _match(cells: pa.ChunkedArray, pattern: str) -> pa.ChunkedArray:
    return pc.match_substring_regex(cells, pattern)


def _count(mask: pa.ChunkedArray) -> int:
    return pc.sum(mask).as_py() or 0


def first_row(mask: pa.ChunkedArray) -> int | None:
    """The first row of those, or none."""
    row = int(pc.index(mask, True).as_py())
    return None if row < 0 else row


def _single(numbers: pa.Array) -> Vectors:
    """In single precision; what is no number is NaN."""
    if not pa.types.is_floating(numbers.type):
        is_text = pa.types.is_large_string(numbers.type) or pa.types.is_string(numbers.type)
        fit = pc.if_else(_match(numbers, _NUMBER["."]), numbers, None) if is_text else numbers
        numbers = pc.cast(pc.replace_substring_regex(fit, r"^\+", "") if is_text else fit, pa.float64(), safe=False)
    with np.errstate(over="ignore"):
        return np.asarray(numbers.to_numpy(zero_copy_only=False)).astype(np.float32)


# --- vectors beside a table: arrays or .npy files with a row for each node -----------------------------------------


def read_vectors(given: Any, files: Sequence[str] = ()) -> dict[str, Vectors]:
    """The matrices by the names of their columns: a file goes by its name. `given` is a matrix, a file, or several."""
    if isinstance(given, Mapping):
        return {str(name): _matrix(source, f"vectors {str(name)!r}") for name, source in given.items()}
    if isinstance(given, (str, os.PathLike)):
        given = [given]
    if isinstance(given, (list, tuple)) and given and all(isinstance(each, (str, os.PathLike)) for each in given):
        files, given = [*files, *map(str, given)], None
    paths = [Path(each) for each in files]
    if twice := next((path for path in paths if sum(path.stem == other.stem for other in paths) > 1), None):
        raise FewnodeError(f"{twice}: two files of vectors are called {twice.stem!r}; rename one")
    matrices = {path.stem: read_npy(path) for path in paths}
    return matrices if given is None else {**matrices, NAMELESS: _matrix(given, NAMELESS)}


def read_npy(path: Path) -> Vectors:
    """A matrix of numbers from an .npy file; Python objects are never loaded."""
    with readable(path):
        try:
            matrix = np.load(path, mmap_mode="r")
        except DAMAGED as error:
            raise FewnodeError(f"{path}: not a readable .npy file, or cut short ({one_line(error)})") from None
    if not isinstance(matrix, np.ndarray):
        raise FewnodeError(f"{path}: several arrays, expected an .npy file of one")
    return _matrix(matrix, str(path))


def _matrix(source: Any, what: str) -> Vectors:
    if isinstance(source, (str, os.PathLike)):
        return read_npy(Path(source))
    try:
        matrix = np.asarray(plain_array(source))
    except (TypeError, ValueError) as error:
        raise FewnodeError(f"{what}: no matrix ({one_line(error)})") from None
    if matrix.ndim != 2 or matrix.dtype.kind not in "biuf":
        raise FewnodeError(f"{what}: found {matrix.dtype} {matrix.shape}, expected numbers, a row for each node")
    with np.errstate(over="ignore"):  # what becomes infinite is refused with its row
        single: Vectors = matrix.astype(np.float32)
    return single
