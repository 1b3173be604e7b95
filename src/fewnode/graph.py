"""What a method sees (section 3): an attributed network G = (A, X). Labels are not in it, so no method can peek."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias, TypeGuard

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
class Relation:
    """One kind of edge: `adj[i, j]` is the weight of an edge j -> i, and of j - i unless the relation is `directed`.

    Weights are scaled so that their mean is about 1; all are 1 if there are none.

    >>> pays = Relation("pays", sp.csr_array([[0, 0], [1.0, 0]]), directed=True)
    >>> owns = Relation("owns", sp.csr_array([[0, 1.0], [1.0, 0]]))
    >>> graph = Graph.from_relations([pays, owns])
    >>> [relation.name for relation in graph.relations], graph.n_edges
    (['pays', 'owns'], 1)
    """

    name: str
    adj: sp.csr_array
    directed: bool = False
    inverse: str | None = None
    """The name of the relation that has the same edges the other way round, and is not stored a second time."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "adj", _frozen(self.adj))
        _check_weights(self.adj, f"relation {self.name!r}: ")

    @cached_property
    def weighted(self) -> bool:
        return not _all_ones(self.adj)

    @property
    def n_edges(self) -> int:
        """Undirected edges count once."""
        return int(self.adj.nnz) if self.directed else int(self.adj.nnz) // 2

    @property
    def both_ways(self) -> sp.csr_array:
        """The matrix without directions; what is there both ways is added."""
        return (self.adj + self.adj.T).tocsr() if self.directed else self.adj


@dataclass(frozen=True, eq=False)
class Graph:
    """An attributed network G = (A, X).

    `adj[i, j]` says that node i aggregates from node j: an edge j -> i. It is 1, or the weight of the edge. There are
    no self-loops and no duplicates in it. An undirected graph has a symmetric `adj`. `x` is float32, sparse or dense.

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
    relations: tuple[Relation, ...] = ()
    """The kinds of edges, whose sum `adj` is. A plain graph, without kinds or weights, has none."""

    def __post_init__(self) -> None:
        n, columns = self.adj.shape
        if n != columns:
            raise FewnodeError(f"the adjacency matrix is {n} x {columns}, expected a square one")
        if self.x.shape[0] != n:
            raise FewnodeError(f"{self.x.shape[0]} rows of attributes for {n} nodes")
        check_blocks(self.blocks, self.x.shape[1])
        object.__setattr__(self, "adj", _frozen(self.adj))
        object.__setattr__(self, "x", _frozen(self.x))
        _check_weights(self.adj)
        for relation in self.relations:
            if relation.adj.shape != self.adj.shape:
                shape = " x ".join(map(str, relation.adj.shape))
                raise FewnodeError(f"relation {relation.name!r} is {shape}, expected {n} x {n}")
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
        edges = checked_edges(edge_index, n)
        source, target = edges[:, edges[0] != edges[1]].astype(np.int32)
        if not directed:
            source, target = np.concatenate([source, target]), np.concatenate([target, source])
        adj = sp.coo_array((np.ones(source.size, np.float32), (target, source)), shape=(n, n)).tocsr()
        adj.sum_duplicates()
        adj.data[:] = 1  # what was given twice was summed
        return cls(adj, no_attributes(n) if x is None else x, blocks=tuple(blocks))

    @classmethod
    def from_relations(
        cls, relations: Sequence[Relation], x: Attributes | None = None, *, directed: bool | None = None
    ) -> Graph:
        """A graph whose `adj` is the sum of its relations, both ways unless all of them are `directed`.

        Its mean weight is 1, as that of the self-loops in Â. Without weights every edge counts 1, however many
        relations have it. With `directed=False` all count both ways in `adj`, whatever direction relations have.
        """
        if not relations:
            raise FewnodeError("no relation, expected at least one")
        names = [name for each in relations for name in (each.name, each.inverse) if name is not None]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise FewnodeError(f"relation {twice!r} is there twice")
        if directed is None:
            directed = all(relation.directed for relation in relations)
        parts = [each.adj if directed and each.inverse is None else each.both_ways for each in relations]
        adj = parts[0] if len(parts) == 1 else _summed(parts)
        if not any(relation.weighted for relation in relations):
            adj = sp.csr_array((np.broadcast_to(np.float32(1), adj.indices.shape), adj.indices, adj.indptr), adj.shape)
        elif len(parts) > 1 or parts[0] is not relations[0].adj:
            adj = sp.csr_array((adj.data / adj.data.mean(dtype=np.float64), adj.indices, adj.indptr), adj.shape)
        return cls(adj, no_attributes(adj.shape[0]) if x is None else x, relations=tuple(relations))

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
    def weighted(self) -> bool:
        """Whether an edge has a weight other than 1."""
        return not _all_ones(self.adj)

    @cached_property
    def unweighted(self) -> Graph:
        """The same nodes and neighbours, without weights and relations. A plain graph is that itself."""
        if not self.weighted and not self.relations:
            return self
        ones = np.broadcast_to(np.float32(1), self.adj.indices.shape)
        return Graph(sp.csr_array((ones, self.adj.indices, self.adj.indptr), self.adj.shape), self.x)

    @property
    def strength(self) -> NDArray[np.float64]:
        """The sum of the weights of a node's edges; its degree, if edges have no weights."""
        if not self.weighted:
            return self.degree.astype(np.float64)
        row = np.repeat(np.arange(self.n), self.degree)
        return np.asarray(np.bincount(row, weights=self.adj.data, minlength=self.n), np.float64)

    @cached_property
    def directed(self) -> bool:
        """Whether an edge of `adj` does not go both ways, or not with the same weight."""
        from fewnode.engine import loops  # numba takes half a second to import

        if not loops.symmetric(self.adj.indptr, self.adj.indices):
            return True
        return self.weighted and not np.allclose(self.adj.T.tocsr().data, self.adj.data, rtol=1e-5)

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


def checked_edges(edge_index: ArrayLike, n: int) -> NDArray[Any]:
    """A 2 x E array whose numbers are all those of nodes."""
    edges = np.asarray(edge_index)
    if edges.ndim != 2 or edges.shape[0] != 2 or not np.issubdtype(edges.dtype, np.integer):
        raise FewnodeError(f"edges are {edges.dtype} {edges.shape}, expected integers of shape (2, E)")
    outside = (edges < 0) | (edges >= n)
    if outside.any():
        place = int(np.argmax(outside.any(axis=0)))
        bad = edges[:, place][outside[:, place]][0]
        raise FewnodeError(f"edge {place}: node {bad} is out of range, expected 0 to {n - 1}")
    return edges


def _summed(parts: Sequence[sp.csr_array]) -> sp.csr_array:
    every = [part.tocoo() for part in parts]
    row, column, weight = (
        np.concatenate(each) for each in zip(*((m.coords[0], m.coords[1], m.data) for m in every), strict=True)
    )
    total = sp.coo_array((weight, (row, column)), shape=parts[0].shape).tocsr()
    total.sum_duplicates()
    return total


def _all_ones(adj: sp.csr_array) -> bool:
    if adj.data.strides == (0,):  # one number for all, as a file without weights is opened
        return adj.nnz == 0 or bool(adj.data[0] == 1)
    return all(bool((part == 1).all()) for part in memory.chunks(adj.data))


def _check_weights(adj: sp.csr_array, place: str = "") -> None:
    """Refuse what is no weight; a zero would be an edge to the degree and none to the sum."""
    if _all_ones(adj):
        return
    odd = ~(np.isfinite(adj.data) & (adj.data > 0))
    if odd.any():
        at = int(np.argmax(odd))
        source, target = int(adj.indices[at]), _row_of(adj, at)
        raise FewnodeError(
            f"{place}the weight of edge {source} - {target} is {adj.data[at]}, expected a number above 0"
        )


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
