"""Numbers and vectors of a table, centred and scaled: a number by its column, a vector as a whole."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fewnode.errors import FewnodeError
from fewnode.machine import memory

Vectors: TypeAlias = NDArray[np.float32]
"""A row each; NaN where there is none."""

ALL = slice(0, None)

MAX_LENGTH = 65_536
"""Of a vector: more numbers than this in a cell are no embedding."""


class Rows(Protocol):
    """What an encoding needs of a table, or of several that are read as one."""

    @property
    def name(self) -> str: ...
    def __len__(self) -> int: ...
    def labels(self, column: str) -> pa.ChunkedArray: ...
    def numbers(self, column: str) -> NDArray[np.float64]: ...
    def vectors(self, column: str) -> Vectors: ...
    def fault(self, row: int, column: str, what: str) -> FewnodeError: ...


class VectorScale(NamedTuple):
    """A block of vectors is centred and divided by one number: directions in it mean something, single columns not."""

    mean: tuple[float, ...]
    deviation: float


def mean_and_deviation(values: NDArray[np.float64]) -> tuple[float, float]:
    known = values[~np.isnan(values)]
    largest = float(np.abs(known).max(initial=0))
    if largest == 0:
        return 0.0, 0.0
    scaled = known / largest  # squares of numbers beyond 1e154 would be infinite
    deviation = float(scaled.std())
    return float(scaled.mean()) * largest, deviation * largest if deviation > 1e-12 else 0.0


def standardise(
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


def missing_rows(vectors: Vectors) -> NDArray[np.bool_]:
    """A row of NaN is a cell without a vector: one with some numbers only is refused where the table is read."""
    found: NDArray[np.bool_] = np.isnan(vectors[:, 0]) if vectors.shape[1] else np.ones(len(vectors), bool)
    return found


def vector_scale(table: Rows, column: str, vectors: Vectors) -> VectorScale:
    length = vectors.shape[1]
    if not 0 < length <= MAX_LENGTH:
        raise FewnodeError(
            f"{table.name}: column {column!r} has vectors of {length:,} numbers, expected 1 to {MAX_LENGTH:,}"
        )
    total, squares, count, largest = np.zeros(length), 0.0, 0, 0.0
    for known in _known(vectors):
        total += known.sum(axis=0)
        count += len(known)
        largest = max(largest, float(np.abs(known).max(initial=0)))
    mean = total / count
    for known in _known(vectors):
        squares += float(np.square(known - mean).sum())
    deviation = math.sqrt(squares / (count * length))
    rounding = 1e-6 * largest  # single precision differs by that much where nothing varies
    return VectorScale(tuple(mean.tolist()), deviation if deviation > rounding else 0.0)


def _known(vectors: Vectors) -> Iterator[NDArray[np.float64]]:
    """Those that are there, some rows at a time: in double precision all of them would take twice the room."""
    for rows in memory.chunks(vectors):
        yield rows[~missing_rows(rows)].astype(np.float64)


def scale_vectors(table: Rows, column: str, vectors: Vectors, scale: VectorScale, rows: slice = ALL) -> Vectors:
    """(vector - mean) / deviation, one deviation for all its numbers; a missing vector counts as the mean."""
    chosen = vectors[rows]
    missing = missing_rows(chosen)
    if not missing.all() and chosen.shape[1] != len(scale.mean):
        row = rows.start + int((~missing).argmax())
        raise table.fault(row, column, f"a vector of {chosen.shape[1]:,} numbers, expected {len(scale.mean):,}")
    if missing.all() or scale.deviation == 0:
        return np.zeros((len(chosen), len(scale.mean)), np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        scaled: Vectors = ((chosen - np.array(scale.mean)) / scale.deviation).astype(np.float32)
    scaled[missing] = 0
    if not np.isfinite(scaled).all():
        row = rows.start + int(np.argmin(np.isfinite(scaled).all(axis=1)))
        raise table.fault(row, column, "the vector is too far from the mean to be scaled")
    return scaled
