"""Table columns as node attributes: words are counted, numbers standardised, categories one-hot, vectors kept whole.

What was learned from the first table (vocabulary, mean and deviation, category names) is an `Encoding`. It is kept
with the dataset, so that a node that comes later gets the attributes it would have had.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse as sp
from numpy.typing import NDArray
from pydantic import BaseModel, Field, FiniteFloat, model_validator

from fewnode.errors import FewnodeError
from fewnode.graph import Attributes, Block, no_attributes
from fewnode.tables.columns import Column, Fault, Vectors
from fewnode.tables.plain import TEXT
from fewnode.tables.roles import ColumnUse
from fewnode.tables.rows import Rows
from fewnode.tables.spec import ROLES
from fewnode.tables.words import choose_vocabulary
from fewnode.tables.words import encode as count_words

MAX_CATEGORIES = 10_000
MAX_LENGTH = 65_536
"""Of a vector: more numbers than this in a cell are no embedding."""
Distinct: TypeAlias = tuple[str, ...]
Scale: TypeAlias = tuple[FiniteFloat, Annotated[FiniteFloat, Field(ge=0)]]
"""Mean and standard deviation; 0 for a column that never varied and so taught nothing."""


class VectorScale(BaseModel, extra="forbid", frozen=True):
    """A block of vectors is centred and divided by one number: directions in it mean something, single columns not."""

    mean: Annotated[tuple[FiniteFloat, ...], Field(min_length=1, max_length=MAX_LENGTH)]
    deviation: Annotated[FiniteFloat, Field(ge=0)]


class Encoding(BaseModel, extra="forbid", frozen=True):
    """How columns become attributes: words, numbers, categories, vectors, then flags of what is missing."""

    text: Distinct = ()
    vocabulary: Distinct = ()
    numeric: dict[str, Scale] = {}
    dates: dict[str, str] = {}
    """Columns of `numeric` that are dates, and how these are written: their number is the age in days."""
    category: dict[str, Distinct] = {}
    vector: dict[str, VectorScale] = {}
    flags: Distinct = ()
    """Columns of numbers or vectors that had missing values when they were learned: that may mean something too."""

    @model_validator(mode="after")
    def _consistent(self) -> Encoding:
        names = [self.columns, self.vocabulary, self.flags, *self.category.values()]
        if any(len({*each}) < len(each) for each in names):
            raise ValueError("a name is there twice")
        if not {*self.flags} <= {*self.numeric, *self.vector} or not {*self.dates} <= {*self.numeric}:
            raise ValueError("a flag or a date of no column")
        return self

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
    def roles(self) -> dict[str, str]:
        """The role of each column, in the order of the attributes."""
        return {column: role for role in ROLES for column in getattr(self, role)}

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
        placed = zip(widths, ends, strict=True)
        return tuple(Block(kind, end - width, end, name) for (kind, name, width), end in placed if width)

    def encode(self, rows: Rows) -> tuple[Attributes, dict[str, int]]:
        """The attributes of each row, and how many cells of each column were empty or of an unknown category.

        Attributes are dense if all columns are numbers or vectors and sparse otherwise, whatever the rows say.
        """
        parts: list[Any] = []
        missing: dict[str, int] = {}
        flags: dict[str, NDArray[np.float32]] = {}
        if self.text:
            parts.append(count_words(documents([rows.column(name) for name in self.text]), self.vocabulary))
        for name, role in self.roles.items():
            if role == "text":
                continue
            column = rows.column(name)
            if role == "numeric":
                values = number_of(column, self.dates.get(name))
                gaps, part = np.isnan(values), _scaled(values[:, None], *self.numeric[name], column.fault)
            elif role == "vector":
                vectors = column.vectors()
                gaps, part = _missing_rows(vectors), scale_vectors(vectors, self.vector[name], column.fault)
            else:
                categories = pa.array(self.category[name], TEXT)
                codes = pc.fill_null(pc.index_in(column.labels, value_set=categories), -1).to_numpy()
                gaps, part = codes < 0, _one_hot(codes, len(categories))
            gaps = gaps & ~rows.lacking(name)
            missing[name] = int(gaps.sum())
            flags[name] = gaps.astype(np.float32)[:, None]
            parts.append(part)
        parts += [flags[name] for name in self.flags]
        if not parts:
            return no_attributes(len(rows)), missing
        if self.text or self.category:
            return sp.hstack([sp.csr_array(part) for part in parts], format="csr"), missing
        return np.concatenate(parts, axis=1), missing


def learn(rows: Rows, uses: Mapping[str, ColumnUse], words: Mapping[str, Any]) -> Encoding:
    """The encoding of the columns that are used, from all rows of a table. `words` says which words count."""
    numeric, vector, category, flags = {}, {}, {}, []
    for name in sorted(uses, key=lambda name: ROLES.index(uses[name].role) if uses[name].role in ROLES else 0):
        role, gaps = uses[name].role, np.zeros(1, bool)
        if role == "numeric":
            values = number_of(rows.column(name), uses[name].order)
            numeric[name], gaps = _mean_and_deviation(values), np.isnan(values)
        elif role == "vector":
            vectors = rows.column(name).vectors()
            vector[name], gaps = _vector_scale(name, vectors), _missing_rows(vectors)
        elif role == "category":
            values = pc.unique(rows.column(name).labels).drop_null()
            if len(values) > MAX_CATEGORIES:
                raise FewnodeError(
                    f"column {name!r} has {len(values):,} distinct values, too many for categories; is it text?"
                )
            category[name] = tuple(sorted(values.to_pylist()))
        if (gaps & ~rows.lacking(name)).any():
            flags.append(name)
    text = tuple(name for name, use in uses.items() if use.role == "text")
    return Encoding(
        text=text,
        vocabulary=choose_vocabulary(documents([rows.column(name) for name in text]), **words) if text else (),
        numeric=numeric,
        dates={name: use.order for name, use in uses.items() if use.order is not None},
        category=category,
        vector=vector,
        flags=tuple(flags),
    )


def number_of(column: Column, order: str | None) -> NDArray[np.float64]:
    """The numbers of a column; of dates that are written in this order, their age."""
    return column.numbers if order is None else column.ages(order)


def documents(columns: Sequence[Column]) -> Iterator[str]:
    """The text of each row, its columns one after another. A slice at a time: Python strings are large."""
    cells = [column.labels for column in columns]
    for start in range(0, len(cells[0]), 1 << 14):
        parts = [column[start : start + (1 << 14)].to_pylist() for column in cells]
        for row in zip(*parts, strict=True):
            yield "\n".join(cell for cell in row if cell)


def _one_hot(codes: NDArray[np.int32], width: int) -> sp.csr_array:
    """A 1 in the column of the row's category; a row without one, or with one never seen before, has none."""
    known = codes >= 0
    ends = np.append(0, np.cumsum(known))
    return sp.csr_array((np.ones(int(ends[-1]), np.float32), codes[known], ends), shape=(len(codes), width))


# --- centred and scaled: a number by its column, a vector as a whole ----------------------------------------------


def _mean_and_deviation(values: NDArray[np.float64]) -> tuple[float, float]:
    known = values[~np.isnan(values)]
    largest = float(np.abs(known).max(initial=0))
    if largest == 0:
        return 0.0, 0.0
    scaled = known / largest  # squares of numbers beyond 1e154 would be infinite
    deviation = float(scaled.std())
    return float(scaled.mean()) * largest, deviation * largest if deviation > 1e-12 else 0.0


def _missing_rows(vectors: Vectors) -> NDArray[np.bool_]:
    """A row of NaN is a cell without a vector: one with some numbers only is refused where the table is read."""
    return np.isnan(vectors[:, 0]) if vectors.shape[1] else np.ones(len(vectors), bool)


def _vector_scale(name: str, vectors: Vectors) -> VectorScale:
    length, known = vectors.shape[1], vectors[~_missing_rows(vectors)].astype(np.float64)
    if not 0 < length <= MAX_LENGTH:
        raise FewnodeError(f"column {name!r} has vectors of {length:,} numbers, expected 1 to {MAX_LENGTH:,}")
    mean = known.mean(axis=0)
    deviation = math.sqrt(np.square(known - mean).mean())
    rounding = 1e-6 * float(np.abs(known).max())  # single precision differs by that much where nothing varies
    return VectorScale(mean=tuple(mean.tolist()), deviation=deviation if deviation > rounding else 0.0)


def scale_vectors(vectors: Vectors, scale: VectorScale, fault: Fault) -> Vectors:
    """(vector - mean) / deviation, one deviation for all its numbers; a missing vector counts as the mean."""
    missing = _missing_rows(vectors)
    if missing.all():
        return np.zeros((len(vectors), len(scale.mean)), np.float32)
    if vectors.shape[1] != len(scale.mean):
        what = f"a vector of {vectors.shape[1]:,} numbers, expected {len(scale.mean):,}"
        raise fault(int((~missing).argmax()), what)
    return _scaled(vectors, np.array(scale.mean), scale.deviation, fault)


def _scaled(values: NDArray[Any], mean: Any, deviation: float, fault: Fault) -> NDArray[np.float32]:
    """(value - mean) / deviation of each row; NaN counts as the mean, and so does all where nothing ever varied."""
    if deviation == 0:
        return np.zeros(values.shape, np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = np.where(np.isnan(values), 0, (values - mean) / deviation).astype(np.float32)
    if (odd := ~np.isfinite(scaled).all(axis=1)).any():
        row = int(odd.argmax())
        found = f"{values[row, 0]:g} is too far from the mean {mean:g}" if isinstance(mean, float) else ""
        raise fault(row, found or "the vector is too far from the mean")
    return scaled
