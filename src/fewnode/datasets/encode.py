"""Table columns as node attributes: words are counted, numbers standardised, categories one-hot, vectors kept whole.

What was learned from the first table (vocabulary, mean and deviation, category names) is an `Encoding`. It is kept
with the dataset as plain JSON values, so that a node that comes later gets the attributes it would have had.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse as sp
from numpy.typing import NDArray

from fewnode.datasets.arrow import TEXT
from fewnode.datasets.bag import STOP_WORDS, choose_vocabulary
from fewnode.datasets.bag import encode as count_words
from fewnode.errors import FewnodeError
from fewnode.graph import Attributes, no_attributes

ROLES = ("text", "numeric", "category", "vector")
MAX_CATEGORIES = 10_000
MAX_LENGTH = 65_536
"""Of a vector: more numbers than this in a cell are no embedding."""


class Rows(Protocol):
    """What an encoding needs of a table, or of several that are read as one."""

    @property
    def name(self) -> str: ...
    def __len__(self) -> int: ...
    def texts(self, column: str) -> pa.ChunkedArray: ...
    def numbers(self, column: str) -> NDArray[np.float64]: ...
    def vectors(self, column: str) -> NDArray[np.float64]: ...
    def fault(self, row: int, column: str, what: str) -> FewnodeError: ...


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


class VectorScale(NamedTuple):
    """A block of vectors is centred and divided by one number: directions in it mean something, single columns not."""

    mean: tuple[float, ...]
    deviation: float


@dataclass(frozen=True)
class Encoding:
    """How columns become attributes: words, numbers, categories, vectors, and flags of what is missing, in this order."""

    text: tuple[str, ...] = ()
    vocabulary: tuple[str, ...] = ()
    numeric: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Mean and standard deviation of each column; 0 for one that never varied and so taught nothing."""
    category: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    vector: Mapping[str, VectorScale] = field(default_factory=dict)
    flags: tuple[str, ...] = ()
    """Columns of numbers or vectors that had missing values when they were learned: that may mean something too."""

    @classmethod
    def learn(cls, table: Rows, roles: Mapping[str, str], words: Words) -> Encoding:
        """The encoding of columns in the given roles, from all rows of a table."""
        columns = {role: [name for name, given in roles.items() if given == role] for role in ROLES}
        numeric, vector, flags = {}, {}, []
        for name in columns["numeric"]:
            values = table.numbers(name)
            numeric[name] = _mean_and_deviation(values)
            flags += [name] * bool(np.isnan(values).any())
        for name in columns["vector"]:
            block = table.vectors(name)
            vector[name] = _vector_scale(table, name, block)
            flags += [name] * bool(_missing_rows(block).any())
        return cls(
            text=tuple(columns["text"]),
            vocabulary=words.choose(_documents(table, columns["text"])) if columns["text"] else (),
            numeric=numeric,
            category={name: _categories(table, name) for name in columns["category"]},
            vector=vector,
            flags=tuple(flags),
        )

    @property
    def counts(self) -> dict[str, int]:
        """How many attributes there are of each kind."""
        return {
            "words": len(self.vocabulary),
            "numbers": len(self.numeric),
            "categories": sum(map(len, self.category.values())),
            "in vectors": sum(len(scale.mean) for scale in self.vector.values()),
            "missing flags": len(self.flags),
        }

    @property
    def columns(self) -> list[str]:
        return [*self.text, *self.numeric, *self.category, *self.vector]

    @property
    def feature_names(self) -> tuple[str, ...]:
        return (
            *self.vocabulary,
            *(f"{name} (number)" for name in self.numeric),
            *(f"{name}={value}" for name, values in self.category.items() for value in values),
            *(f"{name}[{i}]" for name, scale in self.vector.items() for i in range(len(scale.mean))),
            *(f"{name} (missing)" for name in self.flags),
        )

    def encode(self, table: Rows) -> tuple[Attributes, dict[str, int]]:
        """The attributes of each row, and how many cells of each column were empty or of an unknown category.

        Attributes are dense if all columns are numbers or vectors and sparse otherwise, whatever the rows say.
        """
        unknown: dict[str, int] = {}
        blocks: list[Any] = []
        flags = np.zeros((len(table), len(self.flags)), np.float32)
        if self.text:
            blocks.append(count_words(_documents(table, self.text), self.vocabulary))
        for name, (mean, deviation) in self.numeric.items():
            values = table.numbers(name)
            missing = np.isnan(values)
            blocks.append(_standardised(table, name, values, mean, deviation)[:, None])
            unknown[name] = self._flag(flags, name, missing)
        for name, categories in self.category.items():
            block, unknown[name] = _one_hot(table.texts(name), categories)
            blocks.append(block)
        for name, scale in self.vector.items():
            vectors = table.vectors(name)
            blocks.append(_scaled(table, name, vectors, scale))
            unknown[name] = self._flag(flags, name, _missing_rows(vectors))
        blocks += [flags] if self.flags else []
        if not blocks:
            return no_attributes(len(table)), unknown
        if self.text or self.category:
            return sp.hstack([sp.csr_array(block) for block in blocks], format="csr"), unknown
        return np.concatenate(blocks, axis=1), unknown

    def _flag(self, flags: NDArray[np.float32], name: str, missing: NDArray[np.bool_]) -> int:
        if name in self.flags:
            flags[:, self.flags.index(name)] = missing
        return int(missing.sum())

    def to_json(self) -> dict[str, Any]:
        return {
            "text": {"columns": list(self.text), "vocabulary": list(self.vocabulary)},
            "numeric": [{"column": name, "mean": m, "deviation": d} for name, (m, d) in self.numeric.items()],
            "category": [{"column": name, "values": list(values)} for name, values in self.category.items()],
            "vector": [{"column": name, "mean": list(m), "deviation": d} for name, (m, d) in self.vector.items()],
            "flags": list(self.flags),
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Encoding:
        """The encoding that a dataset brings along, which may come from anybody: every value is checked."""
        try:
            found = cls(
                text=_strings(stored["text"]["columns"]),
                vocabulary=_strings(stored["text"]["vocabulary"]),
                numeric={
                    _string(each["column"]): (_finite(each["mean"]), _finite(each["deviation"], least=0))
                    for each in stored["numeric"]
                },
                category={_string(each["column"]): _strings(each["values"]) for each in stored["category"]},
                vector={
                    _string(each["column"]): VectorScale(_vector(each["mean"]), _finite(each["deviation"], least=0))
                    for each in stored["vector"]
                },
                flags=_strings(stored["flags"]),
            )
            columns = found.columns
            if len({*columns}) == len(columns) and {*found.flags} <= {*found.numeric, *found.vector}:
                return found
        except (KeyError, TypeError, ValueError):
            pass
        raise FewnodeError("the stored encoding of its columns is not one that fewnode wrote")


def _string(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _strings(values: object) -> tuple[str, ...]:
    """Distinct strings."""
    if not isinstance(values, list) or len(set(map(_string, values))) < len(values):
        raise TypeError
    return tuple(values)


def _finite(value: object, least: float = -math.inf) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError
    if not math.isfinite(value) or value < least:
        raise ValueError
    return float(value)


def _vector(values: object) -> tuple[float, ...]:
    if not isinstance(values, list) or not 0 < len(values) <= MAX_LENGTH:
        raise TypeError
    return tuple(map(_finite, values))


def _documents(table: Rows, columns: Sequence[str]) -> Iterator[str]:
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


def _standardised(
    table: Rows, column: str, values: NDArray[np.float64], mean: float, deviation: float
) -> NDArray[np.float32]:
    """(value - mean) / deviation; a missing value counts as the mean."""
    if deviation == 0:
        return np.zeros(len(values), np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = np.where(np.isnan(values), 0, (values - mean) / deviation).astype(np.float32)
    if not np.isfinite(scaled).all():
        row = int(np.argmin(np.isfinite(scaled)))
        raise table.fault(row, column, f"{values[row]:g} is too far from the mean {mean:g} to be standardised")
    return scaled


def _missing_rows(vectors: NDArray[np.float64]) -> NDArray[np.bool_]:
    """A row of NaN is a cell without a vector: one with some numbers only is refused where the table is read."""
    return np.isnan(vectors[:, :1]).any(axis=1)


def _vector_scale(table: Rows, column: str, vectors: NDArray[np.float64]) -> VectorScale:
    known = vectors[~_missing_rows(vectors)]
    if not 0 < vectors.shape[1] <= MAX_LENGTH:
        raise FewnodeError(
            f"{table.name}: column {column!r} has vectors of {vectors.shape[1]:,} numbers, expected 1 to {MAX_LENGTH:,}"
        )
    if not len(known):
        return VectorScale((0.0,) * vectors.shape[1], 0.0)
    largest = float(np.abs(known).max())
    if largest == 0:
        return VectorScale((0.0,) * vectors.shape[1], 0.0)
    scaled = known / largest  # squares of numbers beyond 1e154 would be infinite
    mean = scaled.mean(axis=0)
    deviation = float(np.sqrt(np.square(scaled - mean).mean()))
    return VectorScale(tuple((mean * largest).tolist()), deviation * largest if deviation > 1e-12 else 0.0)


def _scaled(table: Rows, column: str, vectors: NDArray[np.float64], scale: VectorScale) -> NDArray[np.float32]:
    """(vector - mean) / deviation, one deviation for all its numbers; a missing vector counts as the mean."""
    missing = _missing_rows(vectors)
    if missing.all():  # of new rows without any vector the length is not known
        return np.zeros((len(vectors), len(scale.mean)), np.float32)
    if vectors.shape[1] != len(scale.mean):
        row = int((~missing).argmax())
        raise table.fault(row, column, f"a vector of {vectors.shape[1]:,} numbers, expected {len(scale.mean):,}")
    if scale.deviation == 0:
        return np.zeros(vectors.shape, np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = ((vectors - np.array(scale.mean)) / scale.deviation).astype(np.float32)
    scaled[missing] = 0
    if not np.isfinite(scaled).all():
        row = int(np.argmin(np.isfinite(scaled).all(axis=1)))
        raise table.fault(row, column, "the vector is too far from the mean to be scaled")
    return scaled


def _categories(table: Rows, column: str) -> tuple[str, ...]:
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
