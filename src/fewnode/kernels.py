"""Loops over sparse rows on the CPU, compiled once and kept: torch's own copy rows before they multiply them.

A matrix is `start, stop, indices, values`: the entries of row i are start[i] to stop[i], so that taking some rows of a
matrix is taking some of its starts and stops. Loops run in one thread and in a fixed order: same input, same bits.
Row numbers are cast to unsigned, or each access would ask whether they count from the end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import njit, types
from numba.core import cgutils as numba_cgutils
from numba.extending import intrinsic, overload
from numpy.typing import NDArray

cgutils: Any = numba_cgutils
Array = NDArray[Any]
Sparse = tuple[Array, Array, Array, Array]
AHEAD, LINE = 8, 16
"""Rows and entries whose memory is asked for in advance, and the numbers of four bytes that come at once."""
LANES = 16
"""Numbers in a vector."""
SAFE = 40
"""Exponents up to this need no shift: neither they nor their sum overflow, nor vanish."""
BUCKETS = 1024
"""Parts that `roughly_sorted` puts numbers into."""


def compiled(function: Callable[..., Any]) -> Any:
    """Machine code for the loops of a function, kept on disk where there is a place to write to.

    Without the interpreter's lock, so that Python threads run it side by side: numba's own `parallel=True` aborts the
    process when two threads call it at once (its `workqueue` layer) or a forked child does (its `omp` layer). Sums may
    be reordered to be vectorised: by the compiler, hence the same every time. A division by zero gives what NumPy says:
    Python's error for it would be asked about at every single division, and none would be vectorised.
    """
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": {"reassoc", "contract"}}
    try:
        return njit(cache=True, **options)(function)
    except RuntimeError:  # nowhere to write to, as in a read-only container: every process compiles for itself
        return njit(**options)(function)


def _ask_for(builder: Any, place: Any) -> None:
    """Have the line of memory at that place brought, without waiting for it."""
    pointer, number = ir.IntType(8).as_pointer(), ir.IntType(32)
    kind = ir.FunctionType(ir.VoidType(), [pointer, number, number, number])
    reading, often, of_data = number(0), number(3), number(1)
    prefetch = builder.module.declare_intrinsic("llvm.prefetch", [pointer], kind)
    builder.call(prefetch, [builder.bitcast(place, pointer), reading, often, of_data])


def _prefetch(typing: Any, array: Any, place: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(array)(context, builder, arguments[0]).data
        _ask_for(builder, builder.gep(data, [arguments[1]]))
        return context.get_dummy_value()

    return types.void(array, place), generate


prefetch: Any = intrinsic(_prefetch)


@compiled
def fetch(indices: Array, values: Array, first: int, last: int) -> None:
    """Ask for the entries of a row that is needed soon: rows lie scattered, and to wait for each would take longest."""
    for place in range(first, last, LINE):
        prefetch(indices, place)
        prefetch(values, place)


class _Lanes:
    """Code for entries of a sparse row and columns of dense rows, which are vectors in registers.

    Left to itself, the compiler reads and writes each sum anew for every entry: it cannot know that the dense matrices
    do not overlap. The arguments are (first, last, indices, values, dense, out, i, column): entries first to last, row
    i, and `parts` times `lanes` columns from `column` on. However wide it is, each column is summed in the same order
    and rounded alike, so that blocks of columns have the bits of the whole.
    """

    DENSE, OUT = 2, 3

    def __init__(self, context: Any, builder: Any, signature: Any, arguments: Any, lanes: int, parts: int) -> None:
        self.context, self.builder, self.lanes, self.parts = context, builder, lanes, parts
        self.first, self.last, *arrays, self.i, self.column = arguments
        self.kinds = signature.args[2:6]
        self.arrays = [
            context.make_array(kind)(context, builder, array) for kind, array in zip(self.kinds, arrays, strict=True)
        ]
        number = self.kinds[self.DENSE].dtype
        self.vector, self.align = ir.VectorType(context.get_value_type(number), lanes), number.bitwidth // 8

    def gather(self) -> None:
        """out[i] = Σ value · dense[index]"""
        sums = [cgutils.alloca_once_value(self.builder, self.vector([0.0] * self.lanes)) for _ in range(self.parts)]
        with self.entries() as (e, value):
            for total, place in zip(sums, self.row(self.DENSE, self.index(e)), strict=True):
                self.add(value, self.builder.load(place, align=self.align), total)
        for total, place in zip(sums, self.row(self.OUT, self.i), strict=True):
            self.builder.store(self.builder.load(total), place, align=self.align)

    def scatter(self) -> None:
        """out[index] += value · dense[i]; rows of `out` are asked for some entries before."""
        rows = [self.builder.load(place, align=self.align) for place in self.row(self.DENSE, self.i)]
        size = self.builder.extract_value(self.arrays[0].shape, 0)
        with self.entries() as (e, value):
            later = self.builder.add(e, ir.IntType(64)(AHEAD))
            later = self.builder.select(self.builder.icmp_signed("<", later, size), later, e)
            for place in self.row(self.OUT, self.index(later)):
                _ask_for(self.builder, place)
            for row, place in zip(rows, self.row(self.OUT, self.index(e)), strict=True):
                self.add(value, row, place)

    def exchange(self) -> None:
        """out[index] and dense[i] each get value times the other: both steps at once, for each entry in turn."""
        rows = [self.builder.load(place, align=self.align) for place in self.row(self.DENSE, self.i)]
        sums = [cgutils.alloca_once_value(self.builder, row) for row in rows]
        with self.entries() as (e, value):
            for row, total, place in zip(rows, sums, self.row(self.OUT, self.index(e)), strict=True):
                self.add(value, self.builder.load(place, align=self.align), total)
                self.add(value, row, place)
        for total, place in zip(sums, self.row(self.DENSE, self.i), strict=True):
            self.builder.store(self.builder.load(total), place, align=self.align)

    @contextmanager
    def entries(self) -> Iterator[tuple[Any, Any]]:
        """A loop over them: the number of each, and a vector that repeats its value."""
        long, short = ir.IntType(64), ir.IntType(32)
        with cgutils.for_range_slice(self.builder, self.first, self.last, long(1), long) as (e, _):
            value = self.builder.load(self.builder.gep(self.arrays[1].data, [e]))
            none, zeros = self.vector(ir.Undefined), ir.VectorType(short, self.lanes)([0] * self.lanes)
            yield e, self.builder.shuffle_vector(self.builder.insert_element(none, value, short(0)), none, zeros)

    def index(self, e: Any) -> Any:
        found = self.builder.load(self.builder.gep(self.arrays[0].data, [e]))
        return self.context.cast(self.builder, found, self.kinds[0].dtype, types.int64)

    def row(self, which: int, row: Any) -> list[Any]:
        """Where the vectors of a row are."""
        kind, array, place = self.kinds[which], self.arrays[which], [row, self.column]
        first = cgutils.get_item_pointer(self.context, self.builder, kind, array, place, wraparound=False)
        each = [self.builder.gep(first, [ir.IntType(64)(part * self.lanes)]) for part in range(self.parts)]
        return [self.builder.bitcast(pointer, self.vector.as_pointer()) for pointer in each]

    def add(self, value: Any, factor: Any, to: Any) -> None:
        product = self.builder.fmul(value, factor, flags=("contract",))
        before = self.builder.load(to, align=self.align)
        self.builder.store(self.builder.fadd(before, product, flags=("contract",)), to, align=self.align)


def _in_lanes(what: Callable[[_Lanes], None], lanes: int, parts: int = 1) -> Any:
    """A function for compiled code."""

    def typed(
        typing: Any, first: Any, last: Any, indices: Any, values: Any, dense: Any, out: Any, i: Any, column: Any
    ) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            what(_Lanes(context, builder, signature, arguments, lanes, parts))
            return context.get_dummy_value()

        long = types.int64
        return types.void(long, long, indices, values, dense, out, long, long), generate

    return intrinsic(typed)


_gather_32, _scatter_32 = (_in_lanes(what, LANES, 2) for what in (_Lanes.gather, _Lanes.scatter))
_gather_16, _gather_8, _gather_4, _gather_2, _gather_1 = (_in_lanes(_Lanes.gather, lanes) for lanes in (16, 8, 4, 2, 1))
_scatter_16, _scatter_8, _scatter_4, _scatter_2, _scatter_1 = (
    _in_lanes(_Lanes.scatter, lanes) for lanes in (16, 8, 4, 2, 1)
)


exchange_32 = _in_lanes(_Lanes.exchange, LANES, 2)


@njit(inline="always")
def gather(first: int, last: int, indices: Array, values: Array, dense: Array, out: Array, i: int) -> None:
    """Row i of sparse @ dense: 32 columns at a time, the rest by halves."""
    c, width = 0, dense.shape[1]
    while c + 32 <= width:
        _gather_32(first, last, indices, values, dense, out, i, c)
        c += 32
    if width & 16:
        _gather_16(first, last, indices, values, dense, out, i, c)
        c += 16
    if width & 8:
        _gather_8(first, last, indices, values, dense, out, i, c)
        c += 8
    if width & 4:
        _gather_4(first, last, indices, values, dense, out, i, c)
        c += 4
    if width & 2:
        _gather_2(first, last, indices, values, dense, out, i, c)
        c += 2
    if width & 1:
        _gather_1(first, last, indices, values, dense, out, i, c)


@njit(inline="always")
def scatter(first: int, last: int, indices: Array, values: Array, dense: Array, out: Array, i: int) -> None:
    """What row i of a sparse matrix adds to sparse.T @ dense, likewise."""
    c, width = 0, dense.shape[1]
    while c + 32 <= width:
        _scatter_32(first, last, indices, values, dense, out, i, c)
        c += 32
    if width & 16:
        _scatter_16(first, last, indices, values, dense, out, i, c)
        c += 16
    if width & 8:
        _scatter_8(first, last, indices, values, dense, out, i, c)
        c += 8
    if width & 4:
        _scatter_4(first, last, indices, values, dense, out, i, c)
        c += 4
    if width & 2:
        _scatter_2(first, last, indices, values, dense, out, i, c)
        c += 2
    if width & 1:
        _scatter_1(first, last, indices, values, dense, out, i, c)


@compiled
def need_rows(dense: Array) -> None:
    """Vectors are loaded from where the columns of a row lie side by side."""
    if dense.shape[1] > 1 and dense.strides[1] != dense.itemsize:
        raise ValueError("the columns of a row must lie side by side")


@compiled
def multiply(start: Array, stop: Array, indices: Array, values: Array, dense: Array) -> Array:
    """sparse @ dense."""
    need_rows(dense)
    n = start.size
    out = np.empty((n, dense.shape[1]), dense.dtype)
    for i in range(n):
        later = min(i + AHEAD, n - 1)
        fetch(indices, values, start[later], stop[later])
        gather(start[i], stop[i], indices, values, dense, out, i)
    return out


@compiled
def multiply_transposed(start: Array, stop: Array, indices: Array, values: Array, dense: Array, columns: int) -> Array:
    """sparse.T @ dense, where the sparse matrix has so many columns."""
    need_rows(dense)
    n = start.size
    out = np.zeros((columns, dense.shape[1]), dense.dtype)
    for i in range(n):
        later = min(i + AHEAD, n - 1)
        fetch(indices, values, start[later], stop[later])
        scatter(start[i], stop[i], indices, values, dense, out, i)
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

    They lie scattered, and to wait for each takes longer than to copy it.
    """
    indptr = np.zeros(nodes.size + 1, start.dtype)
    for i, node in enumerate(nodes):
        indptr[i + 1] = indptr[i] + stop[node] - start[node]
    column, value = np.empty(indptr[-1], indices.dtype), np.empty(indptr[-1], values.dtype)
    for i, node in enumerate(nodes):
        later = nodes[min(i + AHEAD, nodes.size - 1)]
        fetch(indices, values, start[later], stop[later])
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
def roughly_sorted(columns: Array, size: int) -> Array:
    """The same numbers, all below `size`, in ascending parts: rows that lie together are then read together."""
    shift = 0
    while size >> shift > BUCKETS:
        shift += 1
    at = np.zeros(BUCKETS + 1, np.int64)
    for column in columns:
        at[(column >> shift) + 1] += 1
    at = np.cumsum(at)
    out = np.empty_like(columns)
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


def power(x: Any) -> Any:
    """e^x."""
    return np.exp(x)


def _power(x: Any) -> Any:
    """As `power` in compiled code: of single precision by a polynomial, which the compiler can work into its loops.

    e^x = 2^k e^f with a whole k and |f| < 0.35. 2^k is k in the exponent's bits, and e^f its Taylor series up to f^7.
    ln 2 is subtracted in two parts, of which the first, times k, needs no rounding (Cody & Waite, 1980).
    """

    def by_library(x: Any) -> Any:
        return np.exp(x)

    if x != types.float32:
        return by_library
    factors = tuple(np.float32(1 / math.factorial(i)) for i in range(7, -1, -1))
    per_octave, half, most = np.float32(1 / math.log(2)), np.float32(0.5), np.float32(87)
    coarse, fine = np.float32(0.693359375), np.float32(math.log(2) - 0.693359375)

    def by_polynomial(x: Any) -> Any:
        x = min(max(x, -most), most)
        k = np.floor(x * per_octave + half)
        f, total = (x - k * coarse) - k * fine, factors[0]
        for factor in factors[1:]:
            total = total * f + factor
        return total * np.int32((np.int32(k) + np.int32(127)) << np.int32(23)).view(np.float32)

    return by_polynomial


overload(power, inline="always")(_power)


@compiled
def squashed(x: Array, bias: float) -> Array:
    """tanh(x + bias), in the same memory. By an exponential: the library's own function takes six times as long."""
    one, two = x.dtype.type(1), x.dtype.type(2)
    for i in range(x.size):
        x[i] = one - two / (power(two * (x[i] + bias)) + one)
    return x


@compiled
def largest(x: Array) -> Any:
    """The largest magnitude."""
    found = x.dtype.type(0)
    for value in x:
        found = max(found, abs(value))
    return found


@compiled
def aggregate(start: Array, stop: Array, indices: Array, s_i: Array, s: Array, a: Array) -> tuple[Array, Array, Array]:
    """Eqs. (6)-(7) for rows with own scores s_i: the new scores, and what each softmax subtracts and its total."""
    out, top, total = np.zeros_like(s_i), np.zeros_like(s_i), np.zeros_like(s_i)
    low = s.dtype.type(0.2)
    bounded = abs(a[0]) * largest(s_i) + abs(a[1]) * largest(s) < SAFE
    for i in range(s_i.size):
        mine, most = a[0] * s_i[i], s.dtype.type(0)
        if not bounded:
            most = s.dtype.type(-np.inf)
            for e in range(start[i], stop[i]):
                most = max(most, mine + a[1] * s[np.uint64(indices[e])])
            most = most if most > 0 else low * most  # LeakyReLU rises, so the largest stays the largest
        weights, sums = s.dtype.type(0), s.dtype.type(0)
        for e in range(start[i], stop[i]):
            s_j = s[np.uint64(indices[e])]
            raw = mine + a[1] * s_j
            weight = power((raw if raw > 0 else low * raw) - most)
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
            weight = share * power(slope * raw - top[i])
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
    """sparse @ vector. Four sums side by side: one would wait for itself at every entry."""
    n = start.size
    out = np.empty(n, vector.dtype)
    for i in range(n):
        later = min(i + AHEAD, n - 1)
        fetch(indices, values, start[later], stop[later])
        e, total_0, total_1 = start[i], vector.dtype.type(0), vector.dtype.type(0)
        total_2, total_3 = total_0, total_1
        while e + 4 <= stop[i]:
            total_0 += values[e] * vector[np.uint64(indices[e])]
            total_1 += values[e + 1] * vector[np.uint64(indices[e + 1])]
            total_2 += values[e + 2] * vector[np.uint64(indices[e + 2])]
            total_3 += values[e + 3] * vector[np.uint64(indices[e + 3])]
            e += 4
        while e < stop[i]:
            total_0 += values[e] * vector[np.uint64(indices[e])]
            e += 1
        out[i] = (total_0 + total_1) + (total_2 + total_3)
    return out


@compiled
def spread(start: Array, stop: Array, indices: Array, values: Array, vector: Array, columns: int) -> Array:
    """sparse.T @ vector, as a column."""
    n = start.size
    out = np.zeros((columns, 1), vector.dtype)
    for i in range(n):
        later = min(i + AHEAD, n - 1)
        fetch(indices, values, start[later], stop[later])
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
def neighbours(matrix: Sparse, nodes: Array, place: Array, in_order: bool = False) -> tuple[Sparse, Array, Array]:
    """The rows of the nodes, numbered anew, the columns they have, and where the nodes are among those.

    In the order of their appearance or, where many are read after it, in their own order.
    """
    indptr, local, values = pack(*matrix, nodes)
    around, own = renumber(local, nodes, place, in_order)
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

    # What both see: two hops, and the attributes at their end, which stay where they are.
    outer, around, _ = neighbours(adj, np.concatenate((support, query)), place)
    inner, ball, _ = neighbours(lean[0], around, place, True)
    near, ring, own = neighbours(adj, support, place)
    far, disc, own_ring = neighbours(adj, ring, place, True)
    start, stop, indices, values = lean[1]
    rows, seen = (start[ball], stop[ball], indices, values), (start[disc], stop[disc], indices, values)

    # The encoder (4.2).
    h = rectified(multiply(*inner, multiply(*rows, first)), first_bias)
    drop(h, rate, seed)
    z = rectified(multiply(*outer, matmul(h, second)), second_bias)

    # The valuator (4.3).
    s_0 = squashed(dots(*seen, w[:, 0]), b[0])
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
    by_w = spread(*seen, by_0, w.shape[0])

    for i in range(z.shape[0]):
        for c in range(z.shape[1]):
            by_z[i, c] *= z[i, c] > 0
    by_h, by_second = matmul_gradient(h, second, multiply_transposed(*outer, by_z, h.shape[0]), 1 / (1 - rate))
    by_first = multiply_transposed(*rows, multiply_transposed(*inner, by_h, ball.size), first.shape[0])
    by_encoder = by_first, column_sums(by_h), by_second, column_sums(by_z)
    by_a = np.empty_like(a)
    by_a[0], by_a[1] = by_a0, by_a1
    return loss, by_encoder, (by_w, column_sums(by_0.reshape(-1, 1)), by_a)
