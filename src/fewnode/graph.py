"""What a method sees (section 3): an attributed network G = (A, X). Labels are not in it, so no method can peek."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeAlias, TypeGuard

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from fewnode import memory
from fewnode.column_blocks import KINDS as KINDS
from fewnode.column_blocks import SAMPLE as SAMPLE
from fewnode.column_blocks import Block as Block
from fewnode.column_blocks import check_blocks
from fewnode.column_blocks import dense_blocks as dense_blocks
from fewnode.errors import FewnodeError

Ints: TypeAlias = NDArray[np.int64]
Attributes: TypeAlias = sp.csr_array | NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Graph:
    """An attributed network G = (A, X).

    `adj[i, j] = 1` says that node i aggregates from node j: an edge j -> i. There are no self-loops and
    no duplicates in it. An undirected graph has a symmetric `adj`. `x` is float32, sparse or dense.

    >>> graph = Graph.from_edges([[0, 0, 0], [1, 2, 3]], n=4)
    >>> print(graph)
    4 nodes, 3 edges, 0 attributes
    >>> graph.degree.tolist()
    [3, 1, 1, 1]
    """

    adj: sp.csr_array
    x: Attributes
    home: Path | None = None
    """The dataset directory it is mapped from; what is computed of it once may be kept there."""
    blocks: tuple[Block, ...] = ()
    """Which columns of `x` belong together, from left to right. Of columns in none of them nothing is known."""

    def __post_init__(self) -> None:
        n, columns = self.adj.shape
        if n != columns:
            raise FewnodeError(f"the adjacency matrix is {n} x {columns}, expected a square one")
        if self.x.shape[0] != n:
            raise FewnodeError(f"{self.x.shape[0]} rows of attributes for {n} nodes")
        check_blocks(self.blocks, self.x.shape[1])
        object.__setattr__(self, "adj", _frozen(self.adj))
        object.__setattr__(self, "x", _frozen(self.x))
        seen = 0
        for values in memory.chunks(self.x.data if is_sparse(self.x) else self.x):
            finite = np.isfinite(values)
            if not finite.all():
                row = _row_of(self.x, seen + int(np.argmin(finite)))
                raise FewnodeError(f"attribute of node {row} is NaN or infinite")
            seen += values.size

    @classmethod
    def from_edges(
        cls,
        edge_index: ArrayLike,
        n: int,
        x: Attributes | None = None,
        *,
        directed: bool = False,
        blocks: Iterable[Block] = (),
    ) -> Graph:
        """A graph from a 2 x E array of node ids, source above target.

        Self-loops and repeated edges are dropped; unless `directed`, every edge counts both ways. `blocks` says which
        columns of `x` belong together.
        """
        edges = np.asarray(edge_index)
        if edges.ndim != 2 or edges.shape[0] != 2 or not np.issubdtype(edges.dtype, np.integer):
            raise FewnodeError(f"edges are {edges.dtype} {edges.shape}, expected integers of shape (2, E)")
        outside = (edges < 0) | (edges >= n)
        if outside.any():
            place = int(np.argmax(outside.any(axis=0)))
            bad = edges[:, place][outside[:, place]][0]
            raise FewnodeError(f"edge {place}: node {bad} is out of range, expected 0 to {n - 1}")
        source, target = edges[:, edges[0] != edges[1]].astype(np.int32)
        if not directed:
            source, target = np.concatenate([source, target]), np.concatenate([target, source])
        adj = sp.coo_array((np.ones(source.size, np.float32), (target, source)), shape=(n, n)).tocsr()
        adj.sum_duplicates()
        adj.data[:] = 1  # what was given twice was summed
        return cls(adj, no_attributes(n) if x is None else x, blocks=tuple(blocks))

    @property
    def n(self) -> int:
        """How many nodes there are."""
        return int(self.adj.shape[0])

    @property
    def n_features(self) -> int:
        return int(self.x.shape[1])

    @cached_property
    def degree(self) -> Ints:
        """deg(i), the in-degree: how many nodes i aggregates from, itself not counted."""
        return np.diff(self.adj.indptr).astype(np.int64)  # type: ignore[no-any-return]

    @cached_property
    def directed(self) -> bool:
        from fewnode.engine import loops  # numba takes half a second to import

        return not loops.symmetric(self.adj.indptr, self.adj.indices)

    @property
    def n_edges(self) -> int:
        """Undirected edges count once."""
        return int(self.adj.nnz) if self.directed else int(self.adj.nnz) // 2

    def __str__(self) -> str:
        return f"{self.n:,} nodes, {self.n_edges:,} edges, {self.n_features:,} attributes"

    def edge_index(self) -> Ints:
        """Every arc as 2 x E, source above target, as PyG has it (an undirected edge is two arcs)."""
        target = np.repeat(np.arange(self.n), np.diff(self.adj.indptr))
        return np.stack([self.adj.indices.astype(np.int64), target])


def is_sparse(x: Attributes) -> TypeGuard[sp.csr_array]:
    return bool(sp.issparse(x))


def no_attributes(n: int) -> sp.csr_array:
    return sp.csr_array((n, 0), dtype=np.float32)


def _frozen(matrix: Attributes) -> Attributes:
    """The same numbers as canonical float32, read-only. Memory is shared where it can be; the caller's stays writable.

    Indices are int32 where they fit: that is what the compiled loops take, and equal graphs get equal bytes.
    """
    if is_sparse(matrix):
        csr = sp.csr_array(matrix)
        if not csr.has_canonical_format:
            csr = csr.copy()
            csr.sum_duplicates()
        index = np.int32 if max(csr.nnz, *csr.shape) < 2**31 else np.int64
        types = ((csr.data, np.float32), (csr.indices, index), (csr.indptr, index))
        parts = [array.astype(dtype, copy=False).view() for array, dtype in types]
        for part in parts:
            part.flags.writeable = False
        frozen = sp.csr_array(tuple(parts), shape=csr.shape)
        frozen.has_canonical_format = True
        return frozen
    dense = np.ascontiguousarray(matrix, dtype=np.float32).view()
    dense.flags.writeable = False
    return dense


def _row_of(x: Attributes, flat: int) -> int:
    """The row that the flat-th stored value of x is in."""
    if is_sparse(x):
        return int(np.searchsorted(x.indptr, flat, side="right")) - 1
    return flat // max(1, int(x.shape[1]))
