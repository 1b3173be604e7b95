"""Loops over sparse rows on the CPU, compiled once and kept: torch's own copy rows before they multiply them.

A matrix is `start, stop, indices, values`: the entries of row i are start[i] to stop[i], so that taking some rows of a
matrix is taking some of its starts and stops. Loops run in one thread and in a fixed order: same input, same bits.
Row numbers are cast to unsigned, or each access would ask whether they count from the end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import njit, types
from numba.extending import intrinsic
from numpy.typing import NDArray

Array = NDArray[Any]
Sparse = tuple[Array, Array, Array, Array]
AHEAD, LINE = 8, 16
"""Rows that `pack` asks for memory in advance, and the numbers of four bytes that come at once."""


def compiled(function: Callable[..., Any]) -> Any:
    """Machine code for the loops of a function, kept on disk where there is a place to write to.

    Without the interpreter's lock, so that Python threads run it side by side: numba's own `parallel=True` aborts the
    process when two threads call it at once (its `workqueue` layer) or a forked child does (its `omp` layer). Sums may
    be reordered to be vectorised: by the compiler, hence the same every time.
    """
    options: dict[str, Any] = {"nogil": True, "fastmath": {"reassoc", "contract"}}
    try:
        return njit(cache=True, **options)(function)
    except RuntimeError:  # nowhere to write to, as in a read-only container: every process compiles for itself
        return njit(**options)(function)


def _prefetch(typing: Any, array: Any, place: Any) -> Any:
    """Ask for the line of memory that array[place] is in, without waiting for it."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        data = context.make_array(array)(context, builder, arguments[0]).data
        line = builder.bitcast(builder.gep(data, [arguments[1]]), pointer)
        kind = ir.FunctionType(ir.VoidType(), [pointer, number, number, number])
        reading, often, of_data = number(0), number(3), number(1)
        builder.call(
            builder.module.declare_intrinsic("llvm.prefetch", [pointer], kind), [line, reading, often, of_data]
        )
        return context.get_dummy_value()

    return types.void(array, place), generate


prefetch: Any = intrinsic(_prefetch)


@compiled
def multiply(start: Array, stop: Array, indices: Array, values: Array, dense: Array) -> Array:
    """sparse @ dense. Four entries at a time: the row of the result is then read and written a quarter as often."""
    width = dense.shape[1]
    out = np.zeros((start.size, width), dense.dtype)
    for i in range(start.size):
        total, e = out[i], start[i]
        while e + 4 <= stop[i]:
            v_0, v_1, v_2, v_3 = values[e], values[e + 1], values[e + 2], values[e + 3]
            row_0, row_1 = dense[np.uint64(indices[e])], dense[np.uint64(indices[e + 1])]
            row_2, row_3 = dense[np.uint64(indices[e + 2])], dense[np.uint64(indices[e + 3])]
            for c in range(width):
                total[c] += v_0 * row_0[c] + v_1 * row_1[c] + v_2 * row_2[c] + v_3 * row_3[c]
            e += 4
        while e < stop[i]:
            value, row = values[e], dense[np.uint64(indices[e])]
            for c in range(width):
                total[c] += value * row[c]
            e += 1
    return out


@compiled
def multiply_transposed(start: Array, stop: Array, indices: Array, values: Array, dense: Array, columns: int) -> Array:
    """sparse.T @ dense, where the sparse matrix has so many columns."""
    width = dense.shape[1]
    out = np.zeros((columns, width), dense.dtype)
    for i in range(start.size):
        row, e = dense[i], start[i]
        while e + 4 <= stop[i]:
            v_0, v_1, v_2, v_3 = values[e], values[e + 1], values[e + 2], values[e + 3]
            out_0, out_1 = out[np.uint64(indices[e])], out[np.uint64(indices[e + 1])]
            out_2, out_3 = out[np.uint64(indices[e + 2])], out[np.uint64(indices[e + 3])]
            for c in range(width):
                out_0[c] += v_0 * row[c]
                out_1[c] += v_1 * row[c]
                out_2[c] += v_2 * row[c]
                out_3[c] += v_3 * row[c]
            e += 4
        while e < stop[i]:
            value, total = values[e], out[np.uint64(indices[e])]
            for c in range(width):
                total[c] += value * row[c]
            e += 1
    return out


@compiled
def closed(indptr: Array, indices: Array, scale: Array, low: int, high: int) -> tuple[Array, Array, Array]:
    """Rows of Â: a matrix of ones with the diagonal added, each entry times the scale of its row and of its column.

    From `low` to below `high`. Columns are sorted, before and after.
    """
    size = indptr[high] - indptr[low] + high - low
    out_indptr = np.empty(high - low + 1, indptr.dtype)
    out_indices, out_values = np.empty(size, indices.dtype), np.empty(size, scale.dtype)
    to = 0
    for i in range(low, high):
        out_indptr[i - low] = to
        placed = False
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            if not placed and j > i:
                out_indices[to], out_values[to] = i, scale[i] * scale[i]
                to, placed = to + 1, True
            out_indices[to], out_values[to] = j, scale[i] * scale[np.uint64(j)]
            to += 1
        if not placed:
            out_indices[to], out_values[to] = i, scale[i] * scale[i]
            to += 1
    out_indptr[high - low] = to
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
def sums(indptr: Array, indices: Array, amount: Array) -> Array:
    """For each row, the sum of the amounts of its columns."""
    out = np.zeros(indptr.size - 1, np.int64)
    for i in range(out.size):
        for e in range(indptr[i], indptr[i + 1]):
            out[i] += amount[np.uint64(indices[e])]
    return out


@compiled
def count(start: Array, stop: Array, nodes: Array) -> int:
    """How many entries there are in the rows of the nodes."""
    total = 0
    for node in nodes:
        total += stop[node] - start[node]
    return total


@compiled
def pack(start: Array, stop: Array, indices: Array, values: Array, nodes: Array) -> tuple[Array, Array, Array]:
    """The rows of the nodes side by side: `indptr, indices, values` of them alone.

    They lie scattered, and to wait for each takes longer than to copy it: each is asked for `AHEAD` rows before.
    """
    indptr = np.zeros(nodes.size + 1, start.dtype)
    for i, node in enumerate(nodes):
        indptr[i + 1] = indptr[i] + stop[node] - start[node]
    column, value = np.empty(indptr[-1], indices.dtype), np.empty(indptr[-1], values.dtype)
    for i, node in enumerate(nodes):
        later = nodes[min(i + AHEAD, nodes.size - 1)]
        for place in range(start[later], stop[later], LINE):
            prefetch(indices, place)
            prefetch(values, place)
        shift = indptr[i] - start[node]
        for e in range(start[node], stop[node]):
            column[e + shift], value[e + shift] = indices[e], values[e]
    return indptr, column, value


@compiled
def hashed(word: np.uint64) -> np.uint64:
    """64 bits that look random (SplitMix64)."""
    word = word + np.uint64(0x9E3779B97F4A7C15)
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


@compiled
def pack_some(
    start: Array, stop: Array, indices: Array, values: Array, nodes: Array, fanout: int, seed: int
) -> tuple[Array, Array, Array]:
    """As `pack`, with at most `fanout` neighbours of a node, chosen alike, and the node itself if it is in its row.

    A neighbour's value is multiplied by how many it stands for, so that the expected product with anything is that
    of the whole rows. The choice is a function of (seed, node) alone.
    """
    indptr = np.zeros(nodes.size + 1, np.int64)
    for i, node in enumerate(nodes):
        indptr[i + 1] = indptr[i] + min(stop[node] - start[node], fanout + 1)
    column, value = np.empty(indptr[-1], indices.dtype), np.empty(indptr[-1], values.dtype)
    to = 0
    for i, node in enumerate(nodes):
        left = 0
        for e in range(start[node], stop[node]):
            left += indices[e] != node
        need = min(left, fanout)
        scale = values.dtype.type(left / need) if need else values.dtype.type(1)
        word = hashed(np.uint64(seed) ^ hashed(np.uint64(node)))
        for e in range(start[node], stop[node]):
            own = indices[e] == node
            if not own:
                word = hashed(word)
                taken = (word >> np.uint64(11)) * 2.0**-53 * left < need
                left -= 1
                need -= taken
            if own or taken:
                column[to], value[to] = indices[e], values[e] if own else values[e] * scale
                to += 1
        indptr[i + 1] = to
    return indptr, column[:to], value[:to]


@compiled
def renumber(local: Array, nodes: Array, place: Array) -> tuple[Array, Array]:
    """Columns, and where the nodes are among them, after `local` is numbered anew: by first appearance of columns.

    `place` has room for each column and holds -1 throughout, before and after, so that the cost is that of `local`.
    """
    columns, own = np.empty(min(local.size, place.size), np.int64), np.empty(nodes.size, np.int64)
    seen = 0
    for e in range(local.size):
        column = np.uint64(local[e])
        if place[column] < 0:
            place[column] = seen
            columns[seen] = column
            seen += 1
        local[e] = place[column]
    for i, node in enumerate(nodes):
        own[i] = place[node]
    for c in range(seen):
        place[columns[c]] = -1
    return columns[:seen].copy(), own


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


@compiled
def prototype_loss(
    z: Array, importance: Array, segment: Array, task: Array, y: Array, n_way: int, n_tasks: int
) -> tuple[float, Array, Array]:
    """Eqs. (11)-(14) by squared distance, and the derivatives by z and by importance.

    The first rows of z are support nodes, of the classes `segment`; the others are queries.
    """
    k, width = importance.size, z.shape[1]
    top, total = np.full(n_way * n_tasks, -np.inf), np.zeros(n_way * n_tasks)
    for i in range(k):
        top[segment[i]] = max(top[segment[i]], importance[i])
    for i in range(k):
        total[segment[i]] += np.exp(importance[i] - top[segment[i]])
    beta, p = np.empty(k), np.zeros((n_way * n_tasks, width))
    for i in range(k):
        c = segment[i]
        beta[i] = np.exp(importance[i] - top[c]) / total[c]
        for d in range(width):
            p[c, d] += beta[i] * z[i, d]
    by_z, by_p, loss = np.zeros_like(z), np.zeros_like(p), 0.0
    share = np.empty(n_way)
    for q in range(y.size):
        row, first = k + q, task[q] * n_way
        nearest, sums = -np.inf, 0.0
        for c in range(n_way):
            share[c] = 0.0
            for d in range(width):
                share[c] -= (z[row, d] - p[first + c, d]) ** 2
            nearest = max(nearest, share[c])
        loss -= (share[y[q]] - nearest) / y.size
        for c in range(n_way):
            share[c] = np.exp(share[c] - nearest)
            sums += share[c]
        loss += np.log(sums) / y.size
        for c in range(n_way):
            pull = -2 * (share[c] / sums - (c == y[q])) / y.size
            for d in range(width):
                by_z[row, d] += pull * (z[row, d] - p[first + c, d])
                by_p[first + c, d] -= pull * (z[row, d] - p[first + c, d])
    by_beta, mean, by_importance = np.zeros(k), np.zeros(n_way * n_tasks), np.empty_like(importance)
    for i in range(k):
        for d in range(width):
            by_z[i, d] = beta[i] * by_p[segment[i], d]
            by_beta[i] += z[i, d] * by_p[segment[i], d]
        mean[segment[i]] += beta[i] * by_beta[i]
    for i in range(k):
        by_importance[i] = beta[i] * (by_beta[i] - mean[segment[i]])
    return loss, by_z, by_importance


@compiled
def dots(start: Array, stop: Array, indices: Array, values: Array, vector: Array) -> Array:
    """sparse @ vector."""
    out = np.empty(start.size, vector.dtype)
    for i in range(start.size):
        total = vector.dtype.type(0)
        for e in range(start[i], stop[i]):
            total += values[e] * vector[np.uint64(indices[e])]
        out[i] = total
    return out


@compiled
def spread(start: Array, stop: Array, indices: Array, values: Array, vector: Array, columns: int) -> Array:
    """sparse.T @ vector, as a column."""
    out = np.zeros((columns, 1), vector.dtype)
    for i in range(start.size):
        for e in range(start[i], stop[i]):
            out[np.uint64(indices[e]), 0] += values[e] * vector[i]
    return out


@compiled
def rectified(h: Array, bias: Array) -> Array:
    """ReLU(h + bias), in the same memory."""
    for i in range(h.shape[0]):
        for c in range(h.shape[1]):
            h[i, c] = max(h[i, c] + bias[c], h.dtype.type(0))
    return h


@compiled
def drop(h: Array, rate: float, seed: int) -> None:
    """Dropout, in the same memory; the number for each entry is a hash of its place (SplitMix64)."""
    if rate == 0:
        return
    scale, flat = h.dtype.type(1 / (1 - rate)), h.reshape(-1)
    limit = np.uint64(rate * 2.0**32)
    for i in range(flat.size):
        word = np.uint64(seed) + np.uint64(i) * np.uint64(0x9E3779B97F4A7C15)
        word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        kept = (word ^ (word >> np.uint64(31))) >> np.uint64(32) >= limit
        flat[i] = flat[i] * scale if kept else h.dtype.type(0)


@compiled
def matmul(h: Array, weight: Array) -> Array:
    """h @ weight, where h has many zeros and both are small."""
    out = np.zeros((h.shape[0], weight.shape[1]), h.dtype)
    for i in range(h.shape[0]):
        for j in range(h.shape[1]):
            if h[i, j] != 0:
                for c in range(weight.shape[1]):
                    out[i, c] += h[i, j] * weight[j, c]
    return out


@compiled
def matmul_gradient(h: Array, weight: Array, gradient: Array, scale: float) -> tuple[Array, Array]:
    """The derivatives of `matmul` by h, before ReLU and dropout, and by weight: where those gave 0, it is 0."""
    by_h, by_weight = np.zeros_like(h), np.zeros_like(weight)
    for i in range(h.shape[0]):
        for j in range(h.shape[1]):
            if h[i, j] > 0:
                total = h.dtype.type(0)
                for c in range(weight.shape[1]):
                    total += gradient[i, c] * weight[j, c]
                    by_weight[j, c] += h[i, j] * gradient[i, c]
                by_h[i, j] = total * scale
    return by_h, by_weight


@compiled
def column_sums(matrix: Array) -> Array:
    out = np.zeros(matrix.shape[1], matrix.dtype)
    for i in range(matrix.shape[0]):
        for c in range(matrix.shape[1]):
            out[c] += matrix[i, c]
    return out


# --- a whole episode ----------------------------------------------------------------------------------------------


@compiled
def neighbours(matrix: Sparse, nodes: Array, place: Array) -> tuple[Sparse, Array, Array]:
    """The rows of the nodes, numbered anew, the columns they have, and where the nodes are among those."""
    indptr, local, values = pack(*matrix, nodes)
    around, own = renumber(local, nodes, place)
    return (indptr[:-1], indptr[1:], local, values), around, own


@compiled
def episode(
    adj: Sparse,
    lean: tuple[Sparse, Sparse],
    place: Array,
    degree: tuple[Array, float],
    encoder: tuple[Array, Array, Array, Array],
    valuator: tuple[Array, Array, Array],
    task: tuple[Array, Array, Array, Array, Array, int, int],
    rate: float,
    seed: int,
) -> tuple[float, tuple[Array, Array, Array, Array], tuple[Array, Array, Array]]:
    """The loss of an episode by a GCN of two layers and a valuator of two, and the derivatives by their weights.

    The same steps as `GCN`, `Valuator` and `Networks.loss` take one by one. They are cheap enough for most of the time
    to pass between them.
    """
    first, first_bias, second, second_bias = encoder
    w, b, a = valuator
    support, query, segment, place_of, y, n_way, n_tasks = task

    # What both see: two hops. Their attributes lie scattered, so those that both need are fetched but once.
    outer, around, _ = neighbours(adj, np.concatenate((support, query)), place)
    inner, ball, _ = neighbours(lean[0], around, place)
    near, ring, own = neighbours(adj, support, place)
    far, disc, own_ring = neighbours(adj, ring, place)
    seen = np.concatenate((ball, disc))
    both, _ = renumber(seen, seen[:0], place)
    indptr, indices, values = pack(*lean[1], both)
    rows = (indptr[: ball.size], indptr[1 : ball.size + 1], indices, values)
    start, stop = indptr[seen[ball.size :]], indptr[seen[ball.size :] + 1]

    # The encoder (4.2).
    h = rectified(multiply(*inner, multiply(*rows, first)), first_bias)
    drop(h, rate, seed)
    z = rectified(multiply(*outer, matmul(h, second)), second_bias)

    # The valuator (4.3).
    s_0 = dots(start, stop, indices, values, w[:, 0])
    for i in range(s_0.size):
        s_0[i] = np.tanh(s_0[i] + b[0])
    found_1 = aggregate(far[0], far[1], far[2], s_0[own_ring], s_0, a[0])
    s_1 = found_1[0]
    found_2 = aggregate(near[0], near[1], near[2], s_1[own], s_1, a[1])
    centre, importance = np.empty_like(found_2[0]), np.empty_like(found_2[0])
    for i in range(support.size):
        centre[i] = np.log(degree[0][support[i]] + degree[1])
        importance[i] = 1 / (1 + np.exp(-centre[i] * found_2[0][i]))

    # Prototypes (4.4), and from there back through the valuator and the encoder.
    loss, by_z, by_s = prototype_loss(z, importance, segment, place_of, y, n_way, n_tasks)

    for i in range(support.size):
        by_s[i] *= centre[i] * importance[i] * (1 - importance[i])
    by_own, by_1, by_a1 = aggregate_gradient(near[0], near[1], near[2], s_1[own], s_1, a[1], found_2, by_s)
    for i in range(own.size):
        by_1[own[i]] += by_own[i]
    by_own, by_0, by_a0 = aggregate_gradient(far[0], far[1], far[2], s_0[own_ring], s_0, a[0], found_1, by_1)
    for i in range(own_ring.size):
        by_0[own_ring[i]] += by_own[i]
    for i in range(s_0.size):
        by_0[i] *= 1 - s_0[i] * s_0[i]
    by_w = spread(start, stop, indices, values, by_0, w.shape[0])

    for i in range(z.shape[0]):
        for c in range(z.shape[1]):
            by_z[i, c] *= z[i, c] > 0
    by_h, by_second = matmul_gradient(h, second, multiply_transposed(*outer, by_z, h.shape[0]), 1 / (1 - rate))
    by_first = multiply_transposed(*rows, multiply_transposed(*inner, by_h, ball.size), first.shape[0])
    by_encoder = by_first, column_sums(by_h), by_second, column_sums(by_z)
    by_a = np.empty_like(a)
    by_a[0], by_a[1] = by_a0, by_a1
    return loss, by_encoder, (by_w, column_sums(by_0.reshape(-1, 1)), by_a)
