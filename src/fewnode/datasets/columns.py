"""The columns of a table as texts, labels, numbers and vectors; what is missing is known from what is written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fewnode.datasets.scratch import Scratch
from fewnode.errors import FewnodeError
from fewnode.machine import memory
from fewnode.machine.delimited import AS_USUAL, Dialect

TEXT = pa.large_string()
SLICE = 1 << 14
"""Vectors written as text are taken apart so many rows at a time: the parts are larger than the numbers."""

Choose: TypeAlias = Callable[[list[str]], Sequence[str]]
"""Given the header, the columns that are wanted; only those are kept in memory."""

_NUMBER = {
    ".": r"^[+-]?((\d+|[1-9]\d{0,2}(,\d{3})+)(\.\d*)?|\.\d+)([eE][+-]?\d+)?$",
    ",": r"^[+-]?((\d+|[1-9]\d{0,2}(\.\d{3})+)(,\d*)?|,\d+)([eE][+-]?\d+)?$",
}
"""Numbers by their decimal mark; the other mark may stand between thousands. `1,234` is both."""

_VECTOR = r"(?i)^\[[\s\d.,eE+-]*((nan|null|none|[+-]?inf(inity)?)[\s\d.,eE+-]*)*\]$"
_GROUPED = r"^[+-]?(0|[1-9]\d{0,2}(\.\d{3})?)$"
FEWEST_POINTS = 2
"""Cells with a point that make one doubt whether it is a decimal one."""


@dataclass(frozen=True)
class Table:
    """Columns of equal length and the name they go by in messages."""

    name: str
    data: pa.Table
    header: tuple[str, ...] = ()
    """Every column of the source, also those that were not chosen."""
    dialect: Dialect = AS_USUAL
    """How its numbers are written and what stands for a missing value."""
    disk: Scratch | None = None
    """Where copies of its columns go, if they do not fit into memory."""

    def __len__(self) -> int:
        return int(self.data.num_rows)

    def fault(self, row: int, column: str, what: str) -> FewnodeError:
        """An error at a place; rows are counted from 1 and the header is none."""
        return FewnodeError(f"{self.name}: data row {row + 1}, column {column!r}: {what}")

    # --- text -----------------------------------------------------------------------------------------------------

    def texts(self, column: str) -> pa.ChunkedArray:
        """The cells as trimmed text; blank ones are null. A float such as 7.0 reads 7: pandas makes those of ids."""
        cells = self._decoded(column)
        if pa.types.is_floating(cells.type):
            cells = self._whole(column, cells)
        if is_list(cells.type):
            cells = pc.binary_join(self._cast(column, cells, pa.list_(TEXT), "text"), pa.scalar(" ", TEXT))
        if not pa.types.is_integer(cells.type):
            cells = self._cast(column, cells, TEXT, "UTF-8 text")
        return self.each_piece(_trimmed, cells)

    def labels(self, column: str) -> pa.ChunkedArray:
        """As `texts`, but words for a missing value, such as NA, are null as well: they are no class."""
        return self.each_piece(lambda texts: pc.if_else(self._are_missing(texts), None, texts), self.texts(column))

    def each_piece(self, made: Callable[..., pa.Array], *columns: pa.ChunkedArray) -> pa.ChunkedArray:
        """`made` of the columns, cell by cell; on the disk, a piece at a time, if that is where the table is."""
        if self.disk is None:
            return made(*columns)
        first = made(*(column[:0].combine_chunks() for column in columns))
        parts = (
            made(*(column[piece].combine_chunks() for column in columns)) for piece in self.disk.pieces(len(columns[0]))
        )
        return self.disk.column(first.type, parts)

    def missing_tokens(self, column: str) -> dict[str, int]:
        """The words for a missing value that are in the column, and how often; empty cells are not among them."""
        texts = self.texts(column)
        counts = pc.value_counts(texts.filter(self._are_missing(texts)))
        return {str(each["values"]): int(each["counts"]) for each in counts.to_pylist()}

    # --- numbers --------------------------------------------------------------------------------------------------

    def numbers(self, column: str, remedy: str | None = None) -> NDArray[np.float64]:
        """The cells as numbers, NaN where they are empty or say that a value is missing. Infinity is refused.

        The decimal mark is that of the dialect, or the one that all cells agree with.
        """
        cells = self._decoded(column)
        if not is_number(cells.type):
            cells = self._with_points(column, self.labels(column))
        empty = "leave the cell empty if it is unknown"
        expected = (
            f"a number; {remedy}" if remedy else f"a number ({empty}, or name what stands for that with --missing)"
        )
        values: NDArray[np.float64] = self._cast(column, cells, pa.float64(), expected).to_numpy()
        if (bad := np.isinf(values)).any():
            row = int(bad.argmax())
            raise self.fault(row, column, f"{values[row]} is no finite number; {remedy or empty}")
        return values

    def is_numeric(self, column: str) -> bool:
        """Whether there are numbers in the column, and else nothing but missing values."""
        cells = self._decoded(column)
        if is_number(cells.type):
            return not pa.types.is_boolean(cells.type)
        if not _is_text(cells.type):
            return False
        labels = self.labels(column)
        return labels.null_count < len(labels) and bool(self._marks(labels))

    def not_numbers(self, column: str) -> tuple[int, str]:
        """How many cells are neither a number nor missing, and the first of them: few may be words for "missing"."""
        labels = self.labels(column)
        odd = labels.filter(self._odd(labels)[1]).drop_null()
        return len(odd), str(odd[0].as_py()) if len(odd) else ""

    def _odd(self, labels: pa.ChunkedArray) -> tuple[str, pa.ChunkedArray]:
        """The decimal mark that most cells agree with, and which of them are no numbers by it."""
        marks = [self.dialect.decimal] if self.dialect.decimal else list(_NUMBER)
        found = [(mark, pc.invert(_match(labels, _NUMBER[mark]))) for mark in marks]
        return min(found, key=lambda each: pc.sum(each[1]).as_py() or 0)

    def _marks(self, labels: pa.ChunkedArray) -> list[str]:
        """The decimal marks with which all of the cells are numbers; one that was given is the only one asked for."""
        if self.dialect.decimal is None and _casts(labels):
            return ["."]
        marks = [self.dialect.decimal] if self.dialect.decimal else list(_NUMBER)
        return [mark for mark in marks if pc.all(_match(labels, _NUMBER[mark])).as_py() is not False]

    def _with_points(self, column: str, labels: pa.ChunkedArray) -> pa.ChunkedArray:
        """The numbers as Arrow reads them: with a decimal point, and nothing between thousands."""
        marks = self._marks(labels)
        if len(marks) > 1 or (marks == ["."] and self._may_be_thousands(labels)):
            row = int(pc.index(pc.match_substring(labels, "," if len(marks) > 1 else "."), True).as_py())
            raise self.fault(
                row, column, f"{labels[row].as_py()!r} may be a fraction or thousands; say --decimal , or --decimal ."
            )
        if not marks:
            mark, odd = self._odd(labels)
            if mark == ".":
                return labels  # the cell that is no number is named where it is converted
            row = _first(odd)
            raise self.fault(
                row, column, f"found {labels[row].as_py()!r}, expected a number, as most cells of the column"
            )
        other = "." if marks[0] == "," else ","
        return pc.replace_substring(pc.replace_substring(labels, other, ""), marks[0], ".")

    def _may_be_thousands(self, labels: pa.ChunkedArray) -> bool:
        """Whether whole numbers stand beside some that have a point before three digits, as `950` and `1.200`.

        Fractions are seldom all of three digits. If all cells have them, it makes no difference: numbers are scaled.
        """
        if self.dialect.decimal is not None or not pc.all(_match(labels, _GROUPED)).as_py():
            return False
        pointed = pc.sum(pc.match_substring(labels, ".")).as_py() or 0
        return bool(FEWEST_POINTS <= pointed < len(labels) - labels.null_count)

    # --- vectors --------------------------------------------------------------------------------------------------

    def is_vector(self, column: str) -> bool:
        """Whether the cells are lists of numbers, or text such as `[0.1, 0.2]`."""
        cells = self._decoded(column)
        if is_list(cells.type):
            return is_number(cells.type.value_type) and not pa.types.is_boolean(cells.type.value_type)
        if not _is_text(cells.type):
            return False
        labels = self.labels(column)
        return labels.null_count < len(labels) and bool(pc.all(_match(labels, _VECTOR)).as_py())

    def vectors(self, column: str) -> NDArray[np.float32]:
        """A vector for each row, all of one length and all numbers finite."""
        cells = self._decoded(column)
        if not is_list(cells.type):
            cells = self.labels(column)
        elif not is_number(cells.type.value_type):
            raise self.fault(0, column, f"found {cells.type}, expected lists of numbers")
        if cells.null_count:
            raise self.fault(_first(pc.is_null(cells)), column, "empty, expected a vector in every row")
        found = np.empty((0, 0), np.float32)
        for start in range(0, len(cells), SLICE):
            block = self._vector_block(column, cells[start : start + SLICE].combine_chunks(), start, found.shape[1])
            if not start:
                shape = len(cells), block.shape[1]
                found = np.empty(shape, np.float32) if self.disk is None else self.disk.array(shape)
            found[start : start + len(block)] = block
            memory.keep()
        return found

    def _vector_block(self, column: str, cells: pa.Array, start: int, width: int) -> NDArray[np.float32]:
        """Some of the rows as vectors; `width` is 0 if these are the first rows."""
        if not is_list(cells.type):
            if pc.any(odd := pc.invert(_match(cells, _VECTOR))).as_py():
                row = _first(odd)
                what = f"found {cells[row].as_py()[:60]!r}, expected numbers such as [0.1, 0.2]"
                raise self.fault(start + row, column, what)
            cells = pc.split_pattern_regex(pc.utf8_trim(cells, "[], \t"), r"\s*,\s*|\s+")
        lengths = pc.list_value_length(cells)
        width = width or lengths[0].as_py()
        if pc.any(odd := pc.not_equal(lengths, width or -1)).as_py():
            row = _first(odd)
            expected = f"{width} as in data row 1" if width else "at least one"
            raise self.fault(start + row, column, f"a vector of {lengths[row]} numbers, expected {expected}")
        flat = cells.flatten()
        bad = _first_failure(flat, _casts) if not _casts(flat) else None
        if bad is None:
            with np.errstate(over="ignore"):
                numbers = pc.cast(flat, pa.float64(), safe=False).to_numpy(zero_copy_only=False).astype(np.float32)
            if np.isfinite(numbers).all():
                return np.asarray(numbers.reshape(len(cells), width))
            bad = int(np.argmin(np.isfinite(numbers)))
        what = f"number {bad % width + 1} of the vector is {str(flat[bad].as_py())[:40]!r}, expected a finite number"
        raise self.fault(start + bad // width, column, what)

    # --- cells ----------------------------------------------------------------------------------------------------

    def _decoded(self, column: str) -> pa.ChunkedArray:
        cells = self.data.column(column)
        return pc.cast(cells, cells.type.value_type) if pa.types.is_dictionary(cells.type) else cells

    def _are_missing(self, texts: pa.ChunkedArray) -> pa.ChunkedArray:
        return pc.is_in(texts, value_set=pa.array(sorted(self.dialect.missing_words), TEXT))

    def _whole(self, column: str, cells: pa.ChunkedArray) -> pa.ChunkedArray:
        """Floats as whole numbers, if all are. Where the type cannot tell neighbours apart, they are no ids."""
        wide = pc.cast(cells, pa.float64())
        wide = pc.if_else(pc.is_nan(wide), None, wide)
        if pc.any(pc.not_equal(pc.floor(wide), wide)).as_py():
            return pc.if_else(pc.is_null(wide), None, cells)
        digits = {16: 11, 32: 24, 64: 53}[cells.type.bit_width]
        inexact = pc.greater_equal(pc.abs(wide), 2.0**digits)
        if pc.any(inexact).as_py():
            row = _first(inexact)
            what = (
                f"{wide[row].as_py():.0f} as {cells.type} may be one of several numbers (beyond 2^{digits} not all fit)"
            )
            raise self.fault(row, column, f"{what}; store the column as integers or text")
        return pc.cast(wide, pa.int64())

    def _cast(self, column: str, cells: pa.ChunkedArray, kind: pa.DataType, expected: str) -> pa.ChunkedArray:
        def converted(part: pa.ChunkedArray) -> pa.ChunkedArray | None:
            try:
                values = pc.cast(part, kind, safe=not is_number(cells.type))
                values.validate(full=True)  # a Parquet file may say UTF-8 and hold something else
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
                return None
            return values

        values = converted(cells)
        if values is None:
            row = _first_failure(cells, lambda part: converted(part) is not None)
            found = repr(cells[row].as_py())[:60] if kind == pa.float64() else f"{cells.type}"
            raise self.fault(row, column, f"found {found}, expected {expected}")
        return values


def _trimmed(cells: pa.ChunkedArray) -> pa.ChunkedArray:
    texts = pc.utf8_trim_whitespace(pc.cast(cells, TEXT))
    return pc.if_else(pc.equal(texts, ""), None, texts)


def is_number(kind: pa.DataType) -> bool:
    return any(
        test(kind) for test in (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal)
    )


def _is_text(kind: pa.DataType) -> bool:
    strings = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return any(test(kind) for test in (*strings, pa.types.is_binary, pa.types.is_large_binary))


def is_list(kind: pa.DataType) -> bool:
    return any(test(kind) for test in (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list))


def _casts(cells: pa.ChunkedArray) -> bool:
    try:
        pc.cast(cells, pa.float64(), safe=False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return False
    return True


def _match(cells: pa.ChunkedArray, pattern: str) -> pa.ChunkedArray:
    return pc.match_substring_regex(cells, pattern)


def _first(found: pa.ChunkedArray) -> int:
    return int(pc.index(found, True).as_py())


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
