"""Table columns as node attributes: words are counted, numbers standardised, categories one-hot, vectors kept whole.

What was learned from the first table (vocabulary, mean and deviation, category names) is an `Encoding`. It is kept
with the dataset as plain JSON values, so that a node that comes later gets the attributes it would have had.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse as sp
from numpy.typing import NDArray

from fewnode.column_blocks import Block
from fewnode.datasets.arrow import TEXT
from fewnode.datasets.bag import STOP_WORDS, choose_vocabulary
from fewnode.datasets.bag import encode as count_words
from fewnode.datasets.scratch import Scratch
from fewnode.datasets.standardise import (
    MAX_LENGTH,
    Rows,
    VectorScale,
    mean_and_deviation,
    missing_rows,
    scale_vectors,
    standardise,
    vector_scale,
)
from fewnode.errors import FewnodeError
from fewnode.graph import Attributes, no_attributes
from fewnode.machine import memory

ROLES = ("text", "numeric", "category", "vector")
MAX_CATEGORIES = 10_000

Part: TypeAlias = Callable[[slice], Any]
"""Some columns of the attributes, of the rows that are asked for."""


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
    """How columns become attributes: words, numbers, categories, vectors, then flags of what is missing."""

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
            numeric[name] = mean_and_deviation(values)
            flags += [name] * bool(np.isnan(values).any())
        for name in columns["vector"]:
            block = table.vectors(name)
            vector[name] = vector_scale(table, name, block)
            flags += [name] * bool(missing_rows(block).any())
        return cls(
            text=tuple(columns["text"]),
            vocabulary=words.choose(documents(table, columns["text"])) if columns["text"] else (),
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

    @property
    def blocks(self) -> tuple[Block, ...]:
        """Which attributes belong together: words, numbers (with categories), each vector, flags."""
        numbers = len(self.numeric) + sum(map(len, self.category.values()))
        widths = [("words", "words", len(self.vocabulary)), ("numbers", "numbers", numbers)]
        widths += [("vector", name, len(scale.mean)) for name, scale in self.vector.items()]
        widths.append(("numbers", "missing", len(self.flags)))
        ends = np.cumsum([width for *_, width in widths]).tolist()
        found = zip(widths, ends, strict=True)
        return tuple(Block(kind, end - width, end, name) for (kind, name, width), end in found if width)

    def encode(self, table: Rows, disk: Scratch | None = None) -> tuple[Attributes, dict[str, int]]:
        """The attributes of each row, and how many cells of each column were empty or of an unknown category.

        Attributes are dense if all columns are numbers or vectors and sparse otherwise, whatever the rows say. With
        `disk` they are made there, some rows at a time.
        """
        parts, unknown = self._parts(table, disk)
        n, width, sparse = len(table), sum(self.counts.values()), bool(self.text or self.category)
        if not parts:
            return no_attributes(n), unknown
        if disk is None:
            return _side_by_side([part(slice(0, n)) for part in parts], sparse), unknown
        blocks = (_side_by_side([part(rows) for part in parts], sparse) for rows in disk.pieces(n))
        return disk.sparse(blocks, (n, width)) if sparse else disk.dense(blocks, (n, width)), unknown

    def _parts(self, table: Rows, disk: Scratch | None) -> tuple[list[Part], dict[str, int]]:
        """What gives some of the columns of given rows, from left to right.

        A column is read as a whole first, since its cells tell together how they are written.
        """
        parts: list[Part] = []
        unknown: dict[str, int] = {}
        flags: dict[str, NDArray[np.bool_]] = {}
        held = disk.held if disk else lambda array: array
        if self.text:
            cells = [table.labels(column) for column in self.text]
            parts.append(lambda rows: count_words(_joined([each[rows] for each in cells]), self.vocabulary))
        for name, (mean, deviation) in self.numeric.items():
            values = table.numbers(name)
            flags[name] = np.isnan(values)
            parts.append(partial(_column, held(standardise(table, name, values, mean, deviation))))
        for name, categories in self.category.items():
            codes = pc.fill_null(pc.index_in(table.labels(name), value_set=pa.array(categories, TEXT)), -1).to_numpy()
            unknown[name] = int((codes < 0).sum())
            parts.append(partial(_one_hot, held(codes), len(categories)))
        for name, scale in self.vector.items():
            vectors = table.vectors(name)
            flags[name] = missing_rows(vectors)
            parts.append(partial(scale_vectors, table, name, vectors, scale))
        unknown |= {name: int(missing.sum()) for name, missing in flags.items()}
        parts += [partial(_column, held(flags[name].astype(np.float32))) for name in self.flags]
        return parts, {name: unknown[name] for name in self.columns if name in unknown}

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


def documents(table: Rows, columns: Sequence[str]) -> Iterator[str]:
    """The text of each row, its columns one after another."""
    return _joined([table.labels(column) for column in columns])


def _joined(cells: Sequence[pa.ChunkedArray]) -> Iterator[str]:
    """A slice at a time: Python strings are large."""
    for start in range(0, len(cells[0]), 1 << 14):
        parts = [column[start : start + (1 << 14)].to_pylist() for column in cells]
        for row in zip(*parts, strict=True):
            yield "\n".join(cell for cell in row if cell)
        memory.keep()


def _categories(table: Rows, column: str) -> tuple[str, ...]:
    values = pc.unique(table.labels(column)).drop_null()
    if len(values) > MAX_CATEGORIES:
        raise FewnodeError(
            f"{table.name}: column {column!r} has {len(values):,} distinct values, too many for categories; is it text?"
        )
    return tuple(sorted(values.to_pylist()))


def _column(values: NDArray[np.float32], rows: slice) -> NDArray[np.float32]:
    return values[rows, None]


def _one_hot(codes: NDArray[np.int32], width: int, rows: slice) -> sp.csr_array:
    """A 1 in the column of the row's category; a row without one, or with one never seen before, has none."""
    column = codes[rows]
    known = column >= 0
    ends = np.append(0, np.cumsum(known))
    return sp.csr_array((np.ones(int(ends[-1]), np.float32), column[known], ends), shape=(len(column), width))


def _side_by_side(blocks: Sequence[Any], sparse: bool) -> Attributes:
    if sparse:
        return sp.hstack([sp.csr_array(block) for block in blocks], format="csr")
    return np.concatenate(blocks, axis=1)
