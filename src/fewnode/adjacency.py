"""Edges as matrices: relations, their weights checked once, and the sum of them that a graph's `adj` is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from fewnode._system import memory
from fewnode.errors import FewnodeError


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
        check_weights(self.adj, f"relation {self.name!r}: ")

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


def check_relations(relations: Sequence[Relation]) -> None:
    """Refuse none at all, and a name that two of them have."""
    if not relations:
        raise FewnodeError("no relation, expected at least one")
    names = [relation.name for relation in relations]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise FewnodeError(f"relation {twice!r} is there twice")


def total(relations: Sequence[Relation], directed: bool) -> sp.csr_array:
    """The sum of relations, both ways unless `directed`; its mean weight is 1, and so is every one if none has any."""
    parts = [relation.adj if directed else relation.both_ways for relation in relations]
    adj = parts[0] if len(parts) == 1 else _summed(parts)
    if not any(relation.weighted for relation in relations):
        return ones_like(adj)
    if len(parts) > 1 or parts[0] is not relations[0].adj:
        adj = sp.csr_array((adj.data / adj.data.mean(dtype=np.float64), adj.indices, adj.indptr), adj.shape)
    return adj


def _summed(parts: Sequence[sp.csr_array]) -> sp.csr_array:
    """Two by two: rows that are sorted are merged, which is faster than to sort all entries anew."""
    left = list(parts)
    while len(left) > 1:
        left = [sum(left[i + 1 : i + 2], start=left[i]) for i in range(0, len(left), 2)]
    return sp.csr_array(left[0])


def ones_like(adj: sp.csr_array) -> sp.csr_array:
    """The same edges without weights, in no more memory than one number."""
    return sp.csr_array((np.broadcast_to(np.float32(1), adj.indices.shape), adj.indices, adj.indptr), adj.shape)


def all_ones(adj: sp.csr_array) -> bool:
    if adj.data.strides == (0,):  # one number for all, as a file without weights is opened
        return adj.nnz == 0 or bool(adj.data[0] == 1)
    return all(bool((part == 1).all()) for part in memory.chunks(adj.data))


def check_weights(adj: sp.csr_array, place: str = "") -> None:
    """Refuse what is no weight; a zero would be an edge to the degree and none to the sum."""
    if all_ones(adj):
        return
    odd = ~(np.isfinite(adj.data) & (adj.data > 0))
    if odd.any():
        at = int(np.argmax(odd))
        source, target = int(adj.indices[at]), row_of(adj, at)
        raise FewnodeError(
            f"{place}the weight of edge {source} - {target} is {adj.data[at]}, expected a number above 0"
        )


def frozen(matrix: sp.csr_array) -> sp.csr_array:
    """The same numbers as canonical float32, read-only. Memory is shared where it can be; the caller's stays writable.

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
    found = sp.csr_array(tuple(parts), shape=csr.shape)
    found.has_canonical_format = True
    return found


def row_of(matrix: sp.csr_array, place: int) -> int:
    """The row that a stored value is in."""
    return int(np.searchsorted(matrix.indptr, place, side="right")) - 1


def read_only(x: Any) -> Any:
    """The same numbers as float32, read-only; memory is shared where it can be."""
    if sp.issparse(x):
        return frozen(x)
    dense = np.ascontiguousarray(x, dtype=np.float32).view()
    dense.flags.writeable = False
    return dense
