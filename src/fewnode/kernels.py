"""Loops over sparse rows on the CPU, compiled once and kept: torch's own copy rows before they multiply them.

A matrix is `start, stop, indices, values`: the entries of row i are start[i] to stop[i], so that taking some rows of a
matrix is taking some of its starts and stops. Loops run in one thread and in a fixed order: same input, same bits.
Row numbers are cast to unsigned, or each access would ask whether they count from the end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[Any]
F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """Machine code for the loops of a function, kept on disk where there is a place to write to."""
    try:
        return cast(F, njit(cache=True)(function))
    except RuntimeError:  # nowhere to write to, as in a read-only container: every process compiles for itself
        return cast(F, njit(function))


@compiled
def multiply(start: Array, stop: Array, indices: Array, values: Array, dense: Array) -> Array:
    """sparse @ dense."""
    width = dense.shape[1]
    out = np.zeros((start.size, width), dense.dtype)
    for i in range(start.size):
        total = out[i]
        for e in range(start[i], stop[i]):
            value, row = values[e], dense[np.uint64(indices[e])]
            for c in range(width):
                total[c] += value * row[c]
    return out


@compiled
def multiply_transposed(start: Array, stop: Array, indices: Array, values: Array, dense: Array, columns: int) -> Array:
    """sparse.T @ dense, where the sparse matrix has so many columns."""
    width = dense.shape[1]
    out = np.zeros((columns, width), dense.dtype)
    for i in range(start.size):
        row = dense[i]
        for e in range(start[i], stop[i]):
            value, total = values[e], out[np.uint64(indices[e])]
            for c in range(width):
                total[c] += value * row[c]
    return out


@compiled
def pack(start: Array, stop: Array, indices: Array, values: Array) -> tuple[Array, Array, Array]:
    """The rows side by side: `indptr, indices, values` of them alone."""
    indptr = np.zeros(start.size + 1, start.dtype)
    for i in range(start.size):
        indptr[i + 1] = indptr[i] + stop[i] - start[i]
    column, value = np.empty(indptr[-1], indices.dtype), np.empty(indptr[-1], values.dtype)
    for i in range(start.size):
        shift = indptr[i] - start[i]
        for e in range(start[i], stop[i]):
            column[e + shift], value[e + shift] = indices[e], values[e]
    return indptr, column, value


@compiled
def renumber(
    start: Array, stop: Array, indices: Array, values: Array, place: Array
) -> tuple[Array, Array, Array, Array]:
    """The rows, packed, with columns numbered in the order of their first appearance; and those columns.

    `place` has room for each column and holds -1 throughout, before and after, so that the cost is that of the rows.
    """
    indptr, local, value = pack(start, stop, indices, values)
    columns = np.empty(min(local.size, place.size), np.int64)
    seen = 0
    for e in range(local.size):
        column = np.uint64(local[e])
        if place[column] < 0:
            place[column] = seen
            columns[seen] = column
            seen += 1
        local[e] = place[column]
    for c in range(seen):
        place[columns[c]] = -1
    return indptr, local, value, columns[:seen].copy()


@compiled
def aggregate(start: Array, stop: Array, indices: Array, s_i: Array, s: Array, a: Array) -> tuple[Array, Array, Array]:
    """Eqs. (6)-(7) for rows with own scores s_i: the new scores, and the top and the total of each softmax."""
    out, top, total = np.zeros_like(s_i), np.zeros_like(s_i), np.zeros_like(s_i)
    low = s.dtype.type(0.2)
    for i in range(s_i.size):
        mine, most = a[0] * s_i[i], s.dtype.type(-np.inf)
        for e in range(start[i], stop[i]):
            most = max(most, mine + a[1] * s[np.uint64(indices[e])])
        most = most if most > 0 else low * most  # LeakyReLU rises, so the largest stays the largest
        weights, sums = s.dtype.type(0), s.dtype.type(0)
        for e in range(start[i], stop[i]):
            s_j = s[np.uint64(indices[e])]
            raw = mine + a[1] * s_j
            weight = np.exp((raw if raw > 0 else low * raw) - most)
            weights += weight
            sums += weight * s_j
        out[i], top[i], total[i] = sums / weights, most, weights
    return out, top, total


@compiled
def aggregate_gradient(
    start: Array,
    stop: Array,
    indices: Array,
    s_i: Array,
    s: Array,
    a: Array,
    forward: tuple[Array, Array, Array],
    gradient: Array,
) -> tuple[Array, Array, Array]:
    """The derivatives of `aggregate` by s_i, s and a. Weights are computed anew: they take less time than memory."""
    out, top, total = forward
    by_i, by_s, by_a = np.zeros_like(s_i), np.zeros_like(s), np.zeros(2, np.float64)
    one, low = s.dtype.type(1), s.dtype.type(0.2)
    for i in range(s_i.size):
        mine, share = a[0] * s_i[i], gradient[i] / total[i]
        by_mine, by_a1 = s.dtype.type(0), s.dtype.type(0)
        for e in range(start[i], stop[i]):
            j = np.uint64(indices[e])
            raw = mine + a[1] * s[j]
            slope = one if raw > 0 else low
            weight = share * np.exp(slope * raw - top[i])
            by_raw = weight * (s[j] - out[i]) * slope
            by_s[j] += weight + a[1] * by_raw
            by_mine += by_raw
            by_a1 += by_raw * s[j]
        by_i[i] = a[0] * by_mine
        by_a[0] += by_mine * s_i[i]
        by_a[1] += by_a1
    return by_i, by_s, by_a.astype(s.dtype)
