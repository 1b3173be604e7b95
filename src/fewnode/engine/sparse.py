"""Sparse matrices whose rows can be taken without a copy, and Â = D^-1/2 (A + I) D^-1/2."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray

from fewnode.engine import loops
from fewnode.graph import Attributes, Graph, is_sparse

WIDE = 256
"""Columns from which it is quicker to transpose a sparse matrix than to add to rows that lie far apart."""
PANEL, OFTEN = 128, 16
"""Columns of a very wide dense matrix that are copied side by side, so that a cache holds them; it pays if each of its
rows is read as often as that."""


@dataclass(frozen=True, eq=False)
class CSR:
    """Row i is the entries start[i] to stop[i]: rows can be taken without a copy. On the CPU."""

    start: NDArray[Any]
    stop: NDArray[Any]
    indices: NDArray[Any]
    values: NDArray[Any]
    shape: tuple[int, int]

    @classmethod
    def of(cls, matrix: sp.csr_array, dtype: DTypeLike | None = None) -> CSR:
        values = matrix.data if dtype is None else matrix.data.astype(dtype, copy=False)
        return cls(matrix.indptr[:-1], matrix.indptr[1:], matrix.indices, values, matrix.shape)

    @cached_property
    def arrays(self) -> loops.Sparse:
        """The arrays for `loops`, all read-only, or each loop would be compiled once more for those that are not."""
        return _fixed(self.start), _fixed(self.stop), _fixed(self.indices), _fixed(self.values)

    def rows(self, nodes: NDArray[Any]) -> CSR:
        """Some rows, not moved in memory."""
        return CSR(self.start[nodes], self.stop[nodes], self.indices, self.values, (nodes.size, self.shape[1]))

    def copied(self, nodes: NDArray[Any]) -> CSR:
        """Some rows, copied side by side: what is read twice would miss the cache twice if it were scattered."""
        indptr, indices, values = loops.pack(*self.arrays, nodes)
        return CSR(indptr[:-1], indptr[1:], indices, values, (nodes.size, self.shape[1]))

    def count(self, nodes: NDArray[Any]) -> int:
        """How many entries those rows have."""
        return int((self.stop[nodes] - self.start[nodes]).sum())

    @cached_property
    def scipy(self) -> sp.csr_array:
        """On the same memory, if no row was left out."""
        indptr, indices, values = np.append(self.start, self.stop[-1:]), self.indices, self.values
        whole = indptr.size > 1 and indptr[0] == 0 and indptr[-1] == indices.size
        if not whole or not np.array_equal(self.start[1:], self.stop[:-1]):
            indptr, indices, values = loops.pack(*self.arrays, np.arange(self.shape[0]))
        return sp.csr_array((values, indices, indptr), shape=self.shape)

    def multiply(self, dense: NDArray[Any]) -> NDArray[Any]:
        """self @ dense."""
        step, out = dense.shape[1], np.empty((self.shape[0], dense.shape[1]), dense.dtype)
        if step >= 2 * WIDE and int((self.stop - self.start).sum()) >= OFTEN * dense.shape[0]:
            step = PANEL
        for first in range(0, dense.shape[1], max(1, step)):
            part = slice(first, first + step)
            panel = dense if step == dense.shape[1] else np.ascontiguousarray(dense[:, part])
            self.multiply_into(panel, out[:, part])
        return out

    def multiply_into(self, dense: NDArray[Any], out: NDArray[Any]) -> None:
        """out = self @ dense. Blocks of columns have the bits of the whole, whatever their width."""
        loops.multiply(*self.arrays, dense, out)

    def multiply_transposed(self, dense: NDArray[Any]) -> NDArray[Any]:
        """self.T @ dense, without a gradient."""
        if dense.shape[1] >= WIDE:
            return CSR.of(self.scipy.T.tocsr()).multiply(dense)
        out = np.zeros((self.shape[1], dense.shape[1]), dense.dtype)
        loops.add_transposed(*self.arrays, dense, out)
        return out


def _fixed(array: NDArray[Any]) -> NDArray[Any]:
    view = array.view()
    view.flags.writeable = False
    return view


def normalised(graph: Graph, dtype: type[np.floating[Any]] = np.float64) -> sp.csr_array:
    """Â = D^-1/2 (A + I) D^-1/2 (Kipf & Welling), D the in-degrees of A + I, or sums of weights where A has some."""
    index = graph.adj.indptr.dtype if graph.adj.nnz + graph.n < 2**31 else np.int64
    rows, weight = graph.adj.indptr.astype(index, copy=False), graph.adj.data if graph.weighted else None
    indptr, indices, values = loops.closed(rows, graph.adj.indices, weight, inverse_root(graph.strength, dtype))
    return sp.csr_array((values, indices, indptr), shape=graph.adj.shape)


def inverse_root(strength: NDArray[Any], dtype: type[np.floating[Any]] = np.float32) -> NDArray[Any]:
    """D^-1/2 of A + I, from the sums of rows of A."""
    return np.asarray((strength + 1.0) ** -0.5, dtype)


def operand(matrix: Attributes, dtype: DTypeLike = np.float32) -> CSR | NDArray[Any]:
    """A sparse or dense matrix as products read it, on the same memory where that can be."""
    return CSR.of(matrix, dtype) if is_sparse(matrix) else matrix.astype(dtype, copy=False)
