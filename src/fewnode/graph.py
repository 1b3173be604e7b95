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

from fewnode._system import memory
from fewnode._system.kept import fingerprint
from fewnode.adjacency import (
    Relation,
    all_ones,
    check_relations,
    check_weights,
    frozen,
    ones_like,
    read_only,
    row_of,
    total,
)
from fewnode.column_blocks import KINDS as KINDS
from fewnode.column_blocks import Block, check_blocks
from fewnode.errors import FewnodeError

Ints: TypeAlias = NDArray[np.int64]
Attributes: TypeAlias = sp.csr_array | NDArray[np.float32]


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
        object.__setattr__(self, "adj", frozen(self.adj))
        object.__setattr__(self, "x", read_only(self.x))
        check_weights(self.adj)
        for relation in self.relations:
            if relation.adj.shape != self.adj.shape:
                shape = " x ".join(map(str, relation.adj.shape))
                raise FewnodeError(f"relation {relation.name!r} is {shape}, expected {n} x {n}")
        seen = 0
        for values in memory.chunks(self.x.data if is_sparse(self.x) else self.x):
            finite = np.isfinite(values)
            if not finite.all():
                place = seen + int(np.argmin(finite))
                row = row_of(self.x, place) if is_sparse(self.x) else place // max(1, self.n_features)
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
        check_relations(relations)
        if directed is None:
            directed = all(relation.directed for relation in relations)
        adj = total(relations, directed)
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
        return not all_ones(self.adj)

    @cached_property
    def unweighted(self) -> Graph:
        """The same nodes and neighbours, without weights and relations. A plain graph is that itself."""
        if not self.weighted and not self.relations:
            return self
        return Graph(ones_like(self.adj), self.x)

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

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of all that a method can see."""
        relations = [part for each in self.relations for part in (each.name, each.directed, each.adj)]
        return fingerprint(self.adj, self.x, self.blocks, *relations)

    def __deepcopy__(self, memo: object) -> Graph:
        return self  # nothing of it changes; scikit-learn copies what a grid search is given, for every fit

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


def is_sparse(x: Attributes) -> TypeGuard[sp.csr_array]:
    return bool(sp.issparse(x))


def no_attributes(n: int) -> sp.csr_array:
    return sp.csr_array((n, 0), dtype=np.float32)
