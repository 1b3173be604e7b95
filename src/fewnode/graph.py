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
from fewnode.errors import FewnodeError

Ints: TypeAlias = NDArray[np.int64]
Attributes: TypeAlias = sp.csr_array | NDArray[np.float32]

KINDS = ("words", "numbers", "vector")
SAMPLE = 1 << 22
"""Numbers of a dense matrix that are looked at to tell what it holds."""


@dataclass(frozen=True)
class Block:
    """Columns `start` to `stop` of the attributes are of one kind: counts of `words`, `numbers`, or a `vector`.

    Each number of a `numbers` block means something by itself. A `vector` has a meaning only as a whole: it is scaled
    by one factor, and turning it changes nothing.

    >>> Block("vector", 0, 384, "encoded text").width
    384
    """

    kind: str
    start: int
    stop: int
    name: str = ""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise FewnodeError(f"a block of kind {self.kind!r}, expected {', '.join(KINDS)}")
        if not 0 <= self.start < self.stop:
            raise FewnodeError(f"block {self.name!r} is columns {self.start} to {self.stop}, expected at least one")

    @property
    def width(self) -> int:
        return self.stop - self.start


def dense_blocks(x: NDArray[Any]) -> tuple[Block, ...]:
    """What dense attributes are if nobody says it: one vector, unless they look like counts.

    Counts are never negative and mostly zero; nothing is said about them. The first numbers decide.
    """
    sample = x.reshape(-1)[:SAMPLE]
    counts = np.count_nonzero(sample) < sample.size / 2 and not (sample < 0).any()
    return () if counts or not x.size else (Block("vector", 0, int(x.shape[1]), "x"),)


@dataclass(frozen=True, eq=False)
class Relation:
    """One kind of edge: `adj[i, j]` is the weight of an edge j -> i, and of j - i unless the relation is `directed`.

    Weights are scaled so that their mean is about 1; all are 1 if there are none.

    >>> from fewnode import Graph
    >>> pays = Relation("pays", sp.csr_array([[0, 0], [1.0, 0]]), directed=True)
    >>> owns = Relation("owns", sp.csr_array([[0, 1.0], [1.0, 0]]))
    >>> graph = Graph.from_relations([pays, owns])
    >>> [relation.name for relation in graph.relations], graph.n_edges
    (['pays', 'owns'], 1)
    """

    name: str
    adj: sp.csr_array
    directed: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "adj", frozen(self.adj))
        _check_weights(self.adj, f"relation {self.name!r}: ")

    @cached_property
    def weighted(self) -> bool:
        return not all_ones(self.adj)

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
        end = 0
        for block in self.blocks:
            if block.start < end:
                raise FewnodeError(f"block {block.name!r} begins at column {block.start}, expected {end} or later")
            end = block.stop
            if end > self.x.shape[1]:
                raise FewnodeError(f"block {block.name!r} ends at column {end}, but there are {self.x.shape[1]}")
        for relation in self.relations:
            if relation.adj.shape != self.adj.shape:
                shape = " x ".join(map(str, relation.adj.shape))
                raise FewnodeError(f"relation {relation.name!r} is {shape}, expected {n} x {n}")
        object.__setattr__(self, "adj", frozen(self.adj))
        _check_weights(self.adj)
        if is_sparse(self.x):
            object.__setattr__(self, "x", frozen(self.x))
        else:
            object.__setattr__(self, "x", np.ascontiguousarray(self.x, dtype=np.float32).view())
            self.x.flags.writeable = False
        seen = 0
        for values in memory.chunks(self.x.data if is_sparse(self.x) else self.x):
            finite = np.isfinite(values)
            if not finite.all():
                place = seen + int(np.argmin(finite))
                row = _row_of(self.x, place) if is_sparse(self.x) else place // max(1, self.n_features)
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
        names = [relation.name for relation in relations]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise FewnodeError(f"relation {twice!r} is there twice")
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
        """The graph without weights and relations. A plain graph is that itself."""
        return Graph(ones_like(self.adj), self.x) if self.weighted or self.relations else self

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


# --- matrices -----------------------------------------------------------------------------------------------------


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


def total(relations: Sequence[Relation], directed: bool) -> sp.csr_array:
    """The sum of relations, both ways unless `directed`; its mean weight is 1, and so is every one if none has any."""
    parts = [relation.adj if directed else relation.both_ways for relation in relations]
    is_sum = len(parts) > 1 or parts[0] is not relations[0].adj
    while len(parts) > 1:  # two by two: rows that are sorted are merged, which is faster than to sort all entries anew
        parts = [sum(parts[i + 1 : i + 2], start=parts[i]) for i in range(0, len(parts), 2)]
    adj = parts[0]
    if not any(relation.weighted for relation in relations):
        return ones_like(adj)
    if is_sum:
        adj = sp.csr_array((adj.data / adj.data.mean(dtype=np.float64), adj.indices, adj.indptr), adj.shape)
    return adj


def ones_like(adj: sp.csr_array) -> sp.csr_array:
    """The edges of a matrix without weights, in no more memory than one number."""
    return sp.csr_array((np.broadcast_to(np.float32(1), adj.indices.shape), adj.indices, adj.indptr), adj.shape)


def all_ones(adj: sp.csr_array) -> bool:
    if adj.data.strides == (0,):  # one number for all, as a file without weights is opened
        return adj.nnz == 0 or bool(adj.data[0] == 1)
    return all(bool((part == 1).all()) for part in memory.chunks(adj.data))


def _check_weights(adj: sp.csr_array, place: str = "") -> None:
    """Refuse what is no weight; a zero would be an edge to the degree and none to the sum."""
    if all_ones(adj):
        return
    odd = ~(np.isfinite(adj.data) & (adj.data > 0))
    if odd.any():
        at = int(np.argmax(odd))
        edge = f"{int(adj.indices[at])} - {_row_of(adj, at)}"
        raise FewnodeError(f"{place}the weight of edge {edge} is {adj.data[at]}, expected a number above 0")


def _row_of(matrix: sp.csr_array, place: int) -> int:
    """The row that a stored value is in."""
    return int(np.searchsorted(matrix.indptr, place, side="right")) - 1


def frozen(matrix: sp.csr_array) -> sp.csr_array:
    """A matrix as canonical float32, read-only. Memory is shared where it can be; the caller's stays writable.

    Indices are int32 where they fit: that is what the compiled loops take, and equal graphs get equal bytes.
    """
    csr = sp.csr_array(matrix)
    if not csr.has_canonical_format:
        csr = csr.copy()
        csr.sum_duplicates()
    index = np.int32 if max(csr.nnz, *csr.shape) < 2**31 else np.int64
    types = ((csr.data, np.float32), (csr.indices, index), (csr.indptr, index))
    parts = [array.astype(dtype, copy=False).view() for array, dtype in types]
    for part in parts:
        part.flags.writeable = False
    matrix = sp.csr_array(tuple(parts), shape=csr.shape)
    matrix.has_canonical_format = True
    return matrix
