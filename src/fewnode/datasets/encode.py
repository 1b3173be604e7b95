"""Table columns as node attributes: words are counted, numbers standardised, categories one-hot.

What was learned from the first table (vocabulary, mean and deviation, category names) is an `Encoding`. It is kept
with the dataset as plain JSON values, so that a node that comes later gets the attributes it would have had.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse as sp
from numpy.typing import NDArray

from fewnode.datasets.arrow import TEXT, Table, is_number
from fewnode.datasets.bag import STOP_WORDS, choose_vocabulary
from fewnode.datasets.bag import encode as count_words
from fewnode.errors import FewnodeError
from fewnode.graph import Attributes, no_attributes

ROLES = ("text", "numeric", "categorical")
MAX_CATEGORIES = 10_000
FEW = 100
"""A column of text with at most so many distinct values, each there twice on average, is taken for categories."""


@dataclass(frozen=True)
class Words:
    """Which words of the text columns become attributes: `read_tables(…, words=Words(size=500))`.

    >>> Words(min_count=2, max_share=1.0).choose(iter(["a small parser", "a fast parser", "fast"]))
    ('fast', 'parser')
    """

    size: int = 10_000
    min_count: int = 2
    """The fewest nodes that a word must be in."""
    max_share: float = 0.5
    """The largest share of nodes that a word may be in."""
    stop_words: Collection[str] = STOP_WORDS

    def __post_init__(self) -> None:
        if self.min_count < 1 or not 0 < self.max_share <= 1:
            raise FewnodeError(
                f"words of {self.min_count} nodes to a share of {self.max_share}: expected at least 1 and 0 to 1"
            )

    def choose(self, documents: Iterator[str]) -> tuple[str, ...]:
        return choose_vocabulary(
            documents,
            size=self.size,
            min_documents=self.min_count,
            max_share=self.max_share,
            stop_words=self.stop_words,
        )


@dataclass(frozen=True)
class Encoding:
    """How columns become attributes: first the words, then the numbers, then the categories."""

    text: tuple[str, ...] = ()
    vocabulary: tuple[str, ...] = ()
    numeric: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Mean and standard deviation of each column; 0 for one that never varied and so taught nothing."""
    categorical: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def learn(cls, table: Table, roles: Mapping[str, str], words: Words) -> Encoding:
        """The encoding of columns in the given roles, from all rows of a table."""
        columns = {role: [name for name, given in roles.items() if given == role] for role in ROLES}
        return cls(
            text=tuple(columns["text"]),
            vocabulary=words.choose(_documents(table, columns["text"])) if columns["text"] else (),
            numeric={name: _mean_and_deviation(table.numbers(name)) for name in columns["numeric"]},
            categorical={name: _categories(table, name) for name in columns["categorical"]},
        )

    @property
    def counts(self) -> dict[str, int]:
        """How many attributes there are of each kind."""
        categories = sum(len(values) for values in self.categorical.values())
        return {"words": len(self.vocabulary), "numbers": len(self.numeric), "categories": categories}

    @property
    def columns(self) -> list[str]:
        return [*self.text, *self.numeric, *self.categorical]

    @property
    def feature_names(self) -> tuple[str, ...]:
        categories = (f"{name}={value}" for name, values in self.categorical.items() for value in values)
        return (*self.vocabulary, *(f"{name} (number)" for name in self.numeric), *categories)

    def encode(self, table: Table) -> tuple[Attributes, dict[str, int]]:
        """The attributes of each row, and how many cells of each column were empty or of an unknown category.

        Attributes are dense if all columns are numeric and sparse otherwise, whatever the rows say.
        """
        unknown: dict[str, int] = {}
        blocks: list[Any] = []
        if self.text:
            blocks.append(count_words(_documents(table, self.text), self.vocabulary))
        if self.numeric:
            blocks.append(np.empty((len(table), len(self.numeric)), np.float32))
        for i, (name, (mean, deviation)) in enumerate(self.numeric.items()):
            blocks[-1][:, i], unknown[name] = _standardised(table, name, mean, deviation)
        for name, values in self.categorical.items():
            block, unknown[name] = _one_hot(table.texts(name), values)
            blocks.append(block)
        if not blocks:
            return no_attributes(len(table)), unknown
        if len(blocks) == 1:
            return blocks[0], unknown
        return sp.hstack([sp.csr_array(block) for block in blocks], format="csr"), unknown

    def to_json(self) -> dict[str, Any]:
        return {
            "text": {"columns": list(self.text), "vocabulary": list(self.vocabulary)},
            "numeric": [{"column": name, "mean": m, "deviation": d} for name, (m, d) in self.numeric.items()],
            "categorical": [{"column": name, "values": list(values)} for name, values in self.categorical.items()],
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Encoding:
        try:
            return cls(
                text=tuple(stored["text"]["columns"]),
                vocabulary=tuple(stored["text"]["vocabulary"]),
                numeric={
                    str(each["column"]): (float(each["mean"]), float(each["deviation"])) for each in stored["numeric"]
                },
                categorical={str(each["column"]): tuple(each["values"]) for each in stored["categorical"]},
            )
        except (KeyError, TypeError, ValueError):
            raise FewnodeError("the stored encoding of its columns is not one that fewnode wrote") from None


def _documents(table: Table, columns: Sequence[str]) -> Iterator[str]:
    """The text of each row, its columns one after another. A slice at a time: Python strings are large."""
    cells = [table.texts(column) for column in columns]
    for start in range(0, len(table), 1 << 14):
        parts = [column[start : start + (1 << 14)].to_pylist() for column in cells]
        for row in zip(*parts, strict=True):
            yield "\n".join(cell for cell in row if cell)


def _mean_and_deviation(values: NDArray[np.float64]) -> tuple[float, float]:
    known = values[~np.isnan(values)]
    largest = float(np.abs(known).max(initial=0))
    if largest == 0:
        return 0.0, 0.0
    scaled = known / largest  # squares of numbers beyond 1e154 would be infinite
    deviation = float(scaled.std())
    return float(scaled.mean()) * largest, deviation * largest if deviation > 1e-12 else 0.0


def _standardised(table: Table, column: str, mean: float, deviation: float) -> tuple[NDArray[np.float32], int]:
    """(value - mean) / deviation; a missing value counts as the mean. Also how many were missing."""
    values = table.numbers(column)
    missing = np.isnan(values)
    if deviation == 0:
        return np.zeros(len(values), np.float32), int(missing.sum())
    with np.errstate(over="ignore"):
        scaled = np.where(missing, 0, (values - mean) / deviation).astype(np.float32)
    if not np.isfinite(scaled).all():
        row = int(np.argmin(np.isfinite(scaled)))
        raise table.fault(row, column, f"{values[row]:g} is too far from the mean {mean:g} to be standardised")
    return scaled, int(missing.sum())


def _categories(table: Table, column: str) -> tuple[str, ...]:
    values = pc.unique(table.texts(column)).drop_null()
    if len(values) > MAX_CATEGORIES:
        raise FewnodeError(
            f"{table.name}: column {column!r} has {len(values):,} distinct values, too many for categories; is it text?"
        )
    return tuple(sorted(values.to_pylist()))


def _one_hot(cells: pa.ChunkedArray, values: Sequence[str]) -> tuple[sp.csr_array, int]:
    """A 1 in the column of the row's category; a row without one, or with one never seen before, has none."""
    column = pc.fill_null(pc.index_in(cells, value_set=pa.array(values, TEXT)), -1).to_numpy()
    known = column >= 0
    ends = np.append(0, np.cumsum(known))
    ones = np.ones(int(ends[-1]), np.float32)
    return sp.csr_array((ones, column[known], ends), shape=(len(cells), len(values))), int((~known).sum())


# --- which column is what -----------------------------------------------------------------------------------------


def guess_role(table: Table, column: str) -> tuple[str | None, str]:
    """What a column looks like, or None, and why."""
    kind = table.data.column(column).type
    if not column:
        return None, "no name"
    if is_number(kind) and not pa.types.is_boolean(kind):
        return "numeric", "numbers"
    if pa.types.is_temporal(kind) or pa.types.is_struct(kind) or pa.types.is_map(kind):
        return None, str(kind)
    cells = table.texts(column)
    if cells.null_count == len(cells):
        return None, "empty"
    if _are_numbers(cells):
        return "numeric", "numbers"
    distinct = len(pc.unique(cells).drop_null())
    if distinct <= FEW and 2 * distinct <= len(cells) - cells.null_count:
        return "categorical", f"{distinct} distinct values"
    length = 1 + pc.mean(pc.count_substring_regex(cells, r"\s+")).as_py()
    if length >= 2:
        return "text", f"{length:.1f} words a cell"
    return None, f"{distinct:,} distinct values of {length:.1f} words"


def _are_numbers(cells: pa.ChunkedArray) -> bool:
    try:
        pc.cast(cells, pa.float64())
    except pa.ArrowInvalid:
        return False
    return True
