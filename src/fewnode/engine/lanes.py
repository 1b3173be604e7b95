"""Vector code for sparse rows: what numba's own loops leave on the table, a factor of 1.6 in a training episode.

A product of sparse and dense rows is bound by memory. Three things help, none of which a plain loop gets:

1. *Sums stay in registers.* Left to itself, the compiler reads and writes each sum anew for every entry, because it
   cannot know that the dense matrices do not overlap. `_Lanes` writes the loop in LLVM's own terms: 32 columns of a row
   are two vectors of 16 numbers, kept in registers from the first entry to the last.
2. *Memory is asked for in advance.* Rows lie scattered. `prefetch` names the row that is needed some entries later, so
   that it arrives while others are being summed.
3. *Every width has its code.* `ladder` puts a row together from vectors of 32, 16, 8, 4, 2 and 1 columns. However wide
   a matrix is, each column is summed in the same order and rounded alike: blocks of columns have the bits of the whole.

`loops.py` uses `gather` and `scatter`; nothing else needs to know what is in here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import njit, types
from numba.core import cgutils as numba_cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

cgutils: Any = numba_cgutils
Array = NDArray[Any]
AHEAD, LINE = 8, 16
"""Rows and entries whose memory is asked for in advance, and the numbers of four bytes that come at once."""
LANES = 16
"""Numbers in a vector."""


def compiled(function: Callable[..., Any]) -> Any:
    """Machine code for the loops of a function, kept on disk where there is a place to write to.

    Without the interpreter's lock, so that Python threads run it side by side: numba's own `parallel=True` aborts the
    process when two threads call it at once (its `workqueue` layer) or a forked child does (its `omp` layer). Sums may
    be reordered to be vectorised: by the compiler, hence the same every time. A division by zero gives what NumPy says:
    Python's error for it would be asked about at every single division, and none would be vectorised.
    """
    options: dict[str, Any] = {
        "nogil": True,
        "error_model": "numpy",
        "no_cfunc_wrapper": True,
        "fastmath": {"reassoc", "contract"},
    }
    try:
        return njit(cache=True, **options)(function)
    except RuntimeError:  # nowhere to write to, as in a read-only container: every process compiles for itself
        return njit(**options)(function)


def inlined(function: Callable[..., Any]) -> Any:
    """For small functions that compiled ones call: part of each caller, or each would be compiled and kept alone."""
    return njit(inline="always")(function)


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

    def total(self) -> None:
        """out[i] = value · Σ dense[index], where `values` has one for each row, not for each entry."""
        self._total([self.vector([0.0] * self.lanes)] * self.parts)

    def closed_total(self) -> None:
        """out[i] = value · (dense[i] + Σ dense[index])"""
        self._total([self.builder.load(place, align=self.align) for place in self.row(self.DENSE, self.i)])

    def _total(self, starts: list[Any]) -> None:
        sums = [cgutils.alloca_once_value(self.builder, start) for start in starts]
        long = ir.IntType(64)
        with cgutils.for_range_slice(self.builder, self.first, self.last, long(1), long) as (e, _):
            for total, place in zip(sums, self.row(self.DENSE, self.index(e)), strict=True):
                row = self.builder.load(place, align=self.align)
                self.builder.store(self.builder.fadd(self.builder.load(total), row), total)
        factor = self.repeated(self.i)
        for total, place in zip(sums, self.row(self.OUT, self.i), strict=True):
            self.builder.store(self.builder.fmul(factor, self.builder.load(total)), place, align=self.align)

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

    @contextmanager
    def entries(self) -> Iterator[tuple[Any, Any]]:
        """A loop over them: the number of each, and a vector that repeats its value."""
        long = ir.IntType(64)
        with cgutils.for_range_slice(self.builder, self.first, self.last, long(1), long) as (e, _):
            yield e, self.repeated(e)

    def repeated(self, place: Any) -> Any:
        """A vector of one value."""
        short = ir.IntType(32)
        value = self.builder.load(self.builder.gep(self.arrays[1].data, [place]))
        none, zeros = self.vector(ir.Undefined), ir.VectorType(short, self.lanes)([0] * self.lanes)
        return self.builder.shuffle_vector(self.builder.insert_element(none, value, short(0)), none, zeros)

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


def ladder(what: Callable[[_Lanes], None]) -> Any:
    """A compiled function that does `what` for all columns of row i: 32 columns at a time, the rest by halves."""
    by_32 = _in_lanes(what, LANES, 2)
    by_16, by_8, by_4, by_2, by_1 = (_in_lanes(what, lanes) for lanes in (16, 8, 4, 2, 1))

    @inlined
    def row(first: int, last: int, indices: Array, values: Array, dense: Array, out: Array, i: int) -> None:
        c, width = 0, dense.shape[1]
        while c + 32 <= width:
            by_32(first, last, indices, values, dense, out, i, c)
            c += 32
        if width & 16:
            by_16(first, last, indices, values, dense, out, i, c)
            c += 16
        if width & 8:
            by_8(first, last, indices, values, dense, out, i, c)
            c += 8
        if width & 4:
            by_4(first, last, indices, values, dense, out, i, c)
            c += 4
        if width & 2:
            by_2(first, last, indices, values, dense, out, i, c)
            c += 2
        if width & 1:
            by_1(first, last, indices, values, dense, out, i, c)

    return row


gather = ladder(_Lanes.gather)
"""Row i of sparse @ dense."""
total = ladder(_Lanes.total)
"""Of dense the rows that sparse row i names, added up and multiplied by one number."""
closed_total = ladder(_Lanes.closed_total)
"""The rows that sparse row i names, and row i itself, added up and multiplied by one number."""
scatter = ladder(_Lanes.scatter)
"""What row i of a sparse matrix adds to sparse.T @ dense."""
