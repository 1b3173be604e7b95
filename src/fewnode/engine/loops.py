"""Loops over sparse rows on the CPU, compiled once and kept: torch's own copy rows before they multiply them.

A matrix is `start, stop, indices, values`: the entries of row i are start[i] to stop[i], so that taking some rows of a
matrix is taking some of its starts and stops. Loops run in one thread and in a fixed order: same input, same bits.
Row numbers are cast to unsigned, or each access would ask whether they count from the end.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewnode.engine.lanes import AHEAD, LINE, closed_total, compiled, gather, inlined, prefetch, scatter, total

Array = NDArray[Any]
Sparse = tuple[Array, Array, Array, Array]
BUCKETS = 1024
"""Parts that `roughly_sorted` puts numbers into."""
FAR = 1 << 23
"""Numbers of a dense matrix beyond which no cache is taken to hold it."""


@inlined
def fetch(indices: Array, values: Array, first: int, last: int) -> None:
    """Ask for the entries of a row that is needed soon: rows lie scattered, and to wait for each would take longest."""
    for place in range(first, last, LINE):
        prefetch(indices, place)
        prefetch(values, place)


@inlined
def need_rows(dense: Array) -> None:
    """Vectors are loaded from where the columns of a row lie side by side."""
    if dense.size and dense.shape[1] > 1 and dense.strides[1] != dense.itemsize:
        raise ValueError("the columns of a row must lie side by side")


@compiled
def multiply(start: Array, stop: Array, indices: Array, values: Array, dense: Array, out: Array) -> Array:
    """out = sparse @ dense; a dense row that no cache holds is asked for `AHEAD` entries before it is added."""
    need_rows(dense)
    need_rows(out)
    stride, final, far = dense.strides[0] // dense.itemsize, indices.size - 1, dense.size > FAR
    for i in range(start.size):
        later = min(i + AHEAD, start.size - 1)
        fetch(indices, values, start[later], stop[later])
        if far:
            for e in range(start[i], stop[i]):
                row = np.int64(indices[min(e + AHEAD, final)]) * stride
                for column in range(0, dense.shape[1], LINE):
                    prefetch(dense, row + column)
        gather(start[i], stop[i], indices, values, dense, out, i)
    return out


@compiled
def add_neighbours(indptr: Array, indices: Array, factor: Array, own: bool, dense: Array, out: Array) -> None:
    """out[i] = factor[i] · (dense[i] if `own` + Σ of the dense rows that row i names): Â and D^-1 A without values."""
    need_rows(dense)
    need_rows(out)
    stride, last, far = dense.strides[0] // dense.itemsize, indices.size - 1, dense.size > FAR
    for i in range(indptr.size - 1):
        if far:
            for e in range(indptr[i], indptr[i + 1]):
                row = np.int64(indices[min(e + AHEAD, last)]) * stride
                for column in range(0, dense.shape[1], LINE):
                    prefetch(dense, row + column)
        if own:
            closed_total(indptr[i], indptr[i + 1], indices, factor, dense, out, i)
        else:
            total(indptr[i], indptr[i + 1], indices, factor, dense, out, i)


@compiled
def add_transposed(start: Array, stop: Array, indices: Array, values: Array, dense: Array, out: Array) -> None:
    """out += sparse.T @ dense."""
    need_rows(dense)
    need_rows(out)
    for i in range(start.size):
        later = min(i + AHEAD, start.size - 1)
        fetch(indices, values, start[later], stop[later])
        scatter(start[i], stop[i], indices, values, dense, out, i)


@compiled
def closed(indptr: Array, indices: Array, weight: Array | None, scale: Array) -> tuple[Array, Array, Array]:
    """Â: a matrix with ones added as its diagonal, each entry times the scale of its row and of its column.

    Entries are ones if `weight` is None. Columns are sorted, before and after.
    """
    n = indptr.size - 1
    out_indptr = np.empty(n + 1, indptr.dtype)
    out_indices, out_values = np.empty(indices.size + n, indices.dtype), np.empty(indices.size + n, scale.dtype)
    to = 0
    for i in range(n):
        out_indptr[i] = to
        placed = False
        for e in range(indptr[i], indptr[i + 1] + 1):
            last = e == indptr[i + 1]
            if not placed and (last or indices[e] > i):
                out_indices[to], out_values[to] = i, scale[i] * scale[i]
                to, placed = to + 1, True
            if not last:
                j = indices[e]
                out_indices[to], out_values[to] = j, scale[i] * scale[np.uint64(j)]
                if weight is not None:
                    out_values[to] *= weight[e]
                to += 1
    out_indptr[n] = to
    return out_indptr, out_indices, out_values


@compiled
def symmetric(indptr: Array, indices: Array) -> bool:
    """Whether the transpose has the same entries; columns are sorted. Row j has to name i when i, in order, names j."""
    n = indptr.size - 1
    at = indptr[:-1].copy()
    for i in range(n):
        for e in range(indptr[i], indptr[i + 1]):
            j = np.uint64(indices[e])
            if at[j] == indptr[j + np.uint64(1)] or indices[at[j]] != i:
                return False
            at[j] += 1
    return True


@compiled
def same_label(indptr: Array, indices: Array, y: Array) -> tuple[int, int]:
    """How many arcs join nodes of the same label, and how many join nodes that have labels (from 0)."""
    same, known = 0, 0
    for i in range(indptr.size - 1):
        if y[i] >= 0:
            for e in range(indptr[i], indptr[i + 1]):
                other = y[np.uint64(indices[e])]
                known += other >= 0
                same += other == y[i]
    return same, known


@compiled
def count_arcs(source: Array, target: Array, count: Array) -> None:
    """Add the arcs to the number of those of their target's row; self-loops do not count."""
    for e in range(source.size):
        count[target[e]] += source[e] != target[e]


@compiled
def place_arcs(source: Array, target: Array, at: Array, low: int, indices: Array) -> None:
    """Write each source into the row of its target, where `at` says, if that is one of the rows from `low` on."""
    for e in range(source.size):
        row = target[e] - low
        if 0 <= row < at.size and source[e] != target[e]:
            indices[at[row]] = source[e]
            at[row] += 1


@compiled
def sort_rows(indptr: Array, indices: Array) -> Array:
    """Sort each row, drop what is in it twice, and move the rows together, in place; the new `indptr`."""
    out, to = np.zeros_like(indptr), 0
    for i in range(indptr.size - 1):
        row = np.sort(indices[indptr[i] : indptr[i + 1]])
        for k in range(row.size):
            if k == 0 or row[k] != row[k - 1]:
                indices[to] = row[k]
                to += 1
        out[i + 1] = to
    return out


@compiled
def pack(start: Array, stop: Array, indices: Array, values: Array, nodes: Array) -> tuple[Array, Array, Array]:
    """The rows of the nodes side by side: `indptr, indices, values` of them alone.

    They lie scattered, and to wait for each takes longer than to copy it.
    """
    indptr = np.zeros(nodes.size + 1, start.dtype)
    for i, node in enumerate(nodes):
        indptr[i + 1] = indptr[i] + stop[node] - start[node]
    size = np.int64(indptr[-1])
    column, value = np.empty(size, indices.dtype), np.empty(size, values.dtype)
    for i, node in enumerate(nodes):
        later = nodes[min(i + AHEAD, nodes.size - 1)]
        fetch(indices, values, start[later], stop[later])
        shift = indptr[i] - start[node]
        for e in range(start[node], stop[node]):
            column[e + shift], value[e + shift] = indices[e], values[e]
    return indptr, column, value


STEP = np.uint64(0x9E3779B97F4A7C15)


@inlined
def word(counter: np.uint64) -> np.uint64:
    """64 random bits (SplitMix64); a stream is the words of counter, counter + STEP, counter + 2 STEP …"""
    bits = (counter ^ (counter >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


@inlined
def hashed(key: np.uint64) -> np.uint64:
    """64 bits that look random: the first word of the stream that starts at the key, as in `gpn.splitmix`."""
    return np.uint64(word(key + STEP))


@inlined
def roughly_sorted(columns: Array, size: int) -> Array:
    """Numbers below `size` in ascending parts, so that rows that lie together are read together."""
    shift = 0
    while size >> shift > BUCKETS:
        shift += 1
    at = np.zeros(BUCKETS + 1, np.int64)
    for column in columns:
        at[(column >> shift) + 1] += 1
    for bucket in range(BUCKETS):
        at[bucket + 1] += at[bucket]
    out = np.empty(columns.size, np.int64)
    for column in columns:
        bucket = column >> shift
        out[at[bucket]] = column
        at[bucket] += 1
    return out


@compiled
def renumber(local: Array, nodes: Array, place: Array, in_order: bool = False) -> tuple[Array, Array]:
    """Columns, and where the nodes are among them, after `local` is numbered anew: by first appearance, or by column.

    `place` has room for each column and holds -1 throughout, before and after, so that the cost is that of `local`.
    """
    columns, own = np.empty(min(local.size, place.size), np.int64), np.empty(nodes.size, np.int64)
    seen = 0
    for e in range(local.size):
        column = np.uint64(local[e])
        if place[column] < 0:
            place[column] = 0
            columns[seen] = column
            seen += 1
    columns = roughly_sorted(columns[:seen], place.size) if in_order else columns[:seen].copy()
    for c in range(seen):
        place[columns[c]] = c
    for e in range(local.size):
        local[e] = place[np.uint64(local[e])]
    for i, node in enumerate(nodes):
        own[i] = place[node]
    for c in range(seen):
        place[columns[c]] = -1
    return columns, own
