"""A column of cells as texts, labels, numbers, dates and vectors; what is missing is known from what is written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fewnode.errors import FewnodeError
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
        """As `texts`, but words for a missing value, such as NA, are null as well: they are no class."""
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
        cells = self._with_points(labels)
        expected = f"a number ({EMPTY}, or name what stands for that with --missing)"
        bad = None if _casts(cells) else _first_failure(cells, _casts)
        if bad is not None:
            raise self.fault(bad, f"found {cells[bad].as_py()!r:.60}, expected {expected}")
        values: NDArray[np.float64] = pc.cast(cells, pa.float64()).to_numpy()
        if (odd := np.isinf(values)).any():
            row = int(odd.argmax())
            raise self.fault(row, f"{values[row]} is no finite number; {EMPTY}")
        return values

    @property
    def is_numeric(self) -> bool:
        """Whether there are numbers in the column, and else nothing but missing values."""
        return not self.is_list and self.labels.null_count < len(self) and bool(self._marks(self.labels))

    def not_numbers(self) -> tuple[int, str]:
        """How many cells are neither a number nor missing, and the first of them: few may be words for "missing"."""
        odd = self.labels.filter(self._odd(self.labels)[1]).drop_null()
        return len(odd), str(odd[0].as_py()) if len(odd) else ""

    def _odd(self, labels: pa.ChunkedArray) -> tuple[str, pa.ChunkedArray]:
        """The decimal mark that most cells agree with, and which of them are no numbers by it."""
        marks = [self.spec.decimal] if self.spec.decimal else list(_NUMBER)
        odd = [(mark, pc.invert(_match(labels, _NUMBER[mark]))) for mark in marks]
        return min(odd, key=lambda each: pc.sum(each[1]).as_py() or 0)

    def _marks(self, labels: pa.ChunkedArray) -> list[str]:
        """The decimal marks with which all of the cells are numbers; one that was given is the only one asked for."""
        if self.spec.decimal is None and _casts(labels):
            return ["."]
        marks = [self.spec.decimal] if self.spec.decimal else list(_NUMBER)
        return [mark for mark in marks if pc.all(_match(labels, _NUMBER[mark])).as_py() is not False]

    def _with_points(self, labels: pa.ChunkedArray) -> pa.ChunkedArray:
        """The numbers as Arrow reads them: with a decimal point, and nothing between thousands."""
        marks = self._marks(labels)
        if len(marks) > 1 or (marks == ["."] and self._may_be_thousands(labels)):
            row = int(pc.index(pc.match_substring(labels, "," if len(marks) > 1 else "."), True).as_py())
            raise self.fault(
                row, f"{labels[row].as_py()!r} may be a fraction or thousands; say --decimal , or --decimal ."
            )
        if not marks:
            mark, odd = self._odd(labels)
            if mark == ".":
                return labels  # the cell that is no number is named where it is converted
            row = int(pc.index(odd, True).as_py())
            raise self.fault(row, f"found {labels[row].as_py()!r}, expected a number, as most cells of the column")
        other = "." if marks[0] == "," else ","
        return pc.replace_substring(pc.replace_substring(labels, other, ""), marks[0], ".")

    def _may_be_thousands(self, labels: pa.ChunkedArray) -> bool:
        """Whether whole numbers stand beside some that have a point before three digits, as `950` and `1.200`.

        Fractions are seldom all of three digits. If all cells have them, it makes no difference: numbers are scaled.
        """
        if self.spec.decimal is not None or not pc.all(_match(labels, _GROUPED)).as_py():
            return False
        pointed = pc.sum(pc.match_substring(labels, ".")).as_py() or 0
        return bool(FEWEST_POINTS <= pointed < len(labels) - labels.null_count)

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
            odd = pc.invert(
                _match(self.labels, _PARTS[order].replace("?P<y>", "").replace("?P<m>", "").replace("?P<d>", ""))
            )
            row = int(pc.index(odd, True).as_py()) if pc.any(odd).as_py() else 0
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
        if not known.size:
            return np.zeros((len(cells), 0), np.float32)
        vectors = None
        for low in range(0, known.size, SLICE):
            rows = known[low : low + SLICE]
            block = self._vector_block(cells.take(pa.array(rows)).combine_chunks(), rows, vectors)
            if vectors is None:
                vectors = np.full((len(cells), block.shape[1]), np.nan, np.float32)
            vectors[rows] = block
        return vectors  # type: ignore[return-value]

    def _vector_block(self, cells: pa.Array, rows: NDArray[np.int64], before: Vectors | None) -> Vectors:
        if not self.is_list:
            if pc.any(odd := pc.invert(_match(cells, _VECTOR))).as_py():
                row = int(pc.index(odd, True).as_py())
                what = f"found {cells[row].as_py()[:60]!r}, expected numbers such as [0.1, 0.2]"
                raise self.fault(int(rows[row]), what)
            cells = pc.split_pattern_regex(pc.utf8_trim(cells, "[], \t"), r"\s*,\s*|\s+")
        lengths = pc.list_value_length(cells)
        width = before.shape[1] if before is not None else lengths[0].as_py()
        if pc.any(odd := pc.not_equal(lengths, width or -1)).as_py():
            row = int(pc.index(odd, True).as_py())
            expected = f"{width} as before" if width else "at least one"
            raise self.fault(int(rows[row]), f"a vector of {lengths[row]} numbers, expected {expected}")
        flat = cells.flatten()
        bad = _first_failure(flat, _casts) if not _casts(flat) else None
        if bad is None:
            with np.errstate(over="ignore"):
                numbers = pc.cast(flat, pa.float64(), safe=False).to_numpy(zero_copy_only=False).astype(np.float32)
            if np.isfinite(numbers).all():
                return np.asarray(numbers.reshape(len(cells), width))
            bad = int(np.argmin(np.isfinite(numbers)))
        what = f"number {bad % width + 1} of the vector is {str(flat[bad].as_py())[:40]!r}, expected a finite number"
        raise self.fault(int(rows[bad // width]), what)


@lru_cache(maxsize=8)
def _value_set(words: frozenset[str]) -> pa.Array:
    return pa.array(sorted(words), TEXT)


def as_cells(values: pa.ChunkedArray | pa.Array) -> pa.ChunkedArray:
    """An Arrow column with texts of one type."""
    chunked = values if isinstance(values, pa.ChunkedArray) else pa.chunked_array([values])
    kind = chunked.type
    is_text = pa.types.is_string(kind) or pa.types.is_string_view(kind) or pa.types.is_null(kind)
    return pc.cast(chunked, TEXT) if is_text else chunked


def _casts(cells: pa.ChunkedArray) -> bool:
    try:
        pc.cast(cells, pa.float64(), safe=False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return False
    return True


def _match(cells: pa.ChunkedArray, pattern: str) -> pa.ChunkedArray:
    return pc.match_substring_regex(cells, pattern)


def _first_failure(cells: pa.ChunkedArray, works: Callable[[pa.ChunkedArray], bool]) -> int:
    """The first row that does not work, by halving: Arrow's own messages do not say which it is."""
    low, high = 0, len(cells)
    while high - low > 1:
        middle = (low + high) // 2
        if works(cells[low:middle]):
            low = middle
        else:
            high = middle
    return low
