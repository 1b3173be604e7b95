"""Receptive fields: what an episode can see of a graph, and nothing more.

Two layers look two hops far. A hub of degree 22,000 costs its own row and nothing more: P = Â X holds its
neighbourhood already summed.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from fewnode.engine import loops
from fewnode.engine.sparse import CSR, normalised, operand
from fewnode.graph import Attributes, Graph

Nodes = NDArray[np.int64]
Rows = CSR | NDArray[Any]


class Hop(NamedTuple):
    """One step outwards from some nodes: Â into them, from the nodes `around`, among which they have the places `own`.

    `around` is None where it is all nodes.
    """

    matrix: CSR
    around: Nodes | None
    own: Nodes


class ReceptiveFields:
    """A graph as the engine reads it: Â, attributes X, and P = Â X where it is wanted.

    `nodes` are always the rows that are wanted, or None for all of them.
    """

    def __init__(self, adj: CSR, x: Rows, degree: NDArray[np.floating[Any]]) -> None:
        self.adj, self.x, self.degree = adj, x, degree
        self.n, self.n_features = x.shape

    @classmethod
    def of(
        cls, graph: Graph, x: Attributes | None = None, dtype: type[np.floating[Any]] = np.float32
    ) -> ReceptiveFields:
        """Of a graph in memory, with attributes `x`, such as scaled ones, in place of its own."""
        adj = CSR.of(normalised(graph, dtype))
        return cls(adj, operand(graph.x if x is None else x, dtype), graph.degree.astype(dtype))

    @cached_property
    def p(self) -> Rows:
        """P = Â X, which no parameter enters: once a graph, sparse where X is sparse."""
        return CSR.of(self.adj.scipy @ self.x.scipy) if isinstance(self.x, CSR) else self.adj.multiply(self.x)

    @cached_property
    def place(self) -> NDArray[np.int32]:
        """Room for `loops.renumber`: nodes, and hubs once more."""
        return np.full(2 * self.n, -1, np.int32)

    @cached_property
    def everyone(self) -> Nodes:
        return np.arange(self.n)

    def hop(self, nodes: Nodes | None, adj: CSR | None = None, *, in_order: bool = False) -> Hop:
        """The closed neighbourhood of the nodes, numbered anew: by first appearance, or about in their own order."""
        adj = self.adj if adj is None else adj
        if nodes is None:
            return Hop(adj, None, self.everyone)
        rows = adj.copied(nodes)
        around, own = loops.renumber(rows.indices, nodes, self.place, in_order)
        return Hop(CSR(*rows.arrays, (nodes.size, around.size)), around, own)

    def reach(self, nodes: Nodes | None, adj: CSR | None = None, *, in_order: bool = False) -> Hop:
        """One hop, as `hop` makes it, or all nodes once the arcs outnumber them: then numbering does not pay."""
        adj = self.adj if adj is None else adj
        if nodes is not None and adj.count(nodes) >= self.n:
            return Hop(adj.rows(nodes), None, nodes)
        return self.hop(nodes, adj, in_order=in_order)

    def two_layers(self, nodes: Nodes | None, *, copied: bool = False) -> tuple[Rows, CSR | None, CSR, Nodes]:
        """What two GCN layers read of these nodes: rows, a hop for each layer, and the nodes between the layers.

        The first hop is None where the rows are those of P. Sparse rows are `copied` side by side if they are to be
        read several times.
        """
        outer = self.reach(nodes)
        hidden = self.everyone if outer.around is None else outer.around
        if outer.around is None or not isinstance(self.x, CSR):
            return *self.propagated(outer.around), outer.matrix, hidden
        x, adj = self.lean
        inner = self.reach(outer.around, adj, in_order=True)
        if inner.around is not None:
            x = x.copied(inner.around) if copied else x.rows(inner.around)
        return x, inner.matrix, outer.matrix, hidden

    def features(self, nodes: Nodes | None) -> Rows:
        """Rows of X."""
        if nodes is None:
            return self.x
        return self.x.rows(nodes) if isinstance(self.x, CSR) else self.x[nodes]

    def propagated(self, nodes: Nodes | None) -> tuple[Rows, CSR | None]:
        """Rows, and the hop after W, that give Â X W: for some nodes (Â X) W, for all Â (X W), which is narrower."""
        if nodes is None:
            return self.x, self.adj
        return (self.p.copied(nodes) if isinstance(self.p, CSR) else self.p[nodes]), None

    @cached_property
    def lean(self) -> tuple[CSR, CSR]:
        """X with a row of P added for each hub, and Â whose hubs see that row instead of their neighbours.

        Hubs are nodes whose neighbours have twice as many attributes, all together, as there are columns.
        """
        normal, rows = self.adj.scipy, self.x.scipy  # type: ignore[union-attr]
        own = np.diff(rows.indptr)
        many = np.flatnonzero(np.diff(normal.indptr) * own.max(initial=0) >= 2 * self.n_features)
        near = normal[many]
        seen = sp.csr_array((own[near.indices], near.indices, near.indptr), shape=near.shape).sum(axis=1)
        hubs = many[seen >= 2 * self.n_features]
        if hubs.size == 0:
            return self.x, self.adj  # type: ignore[return-value]
        x = CSR.of(sp.vstack([rows, normal[hubs] @ rows], format="csr"))
        adj, added = self.adj, np.arange(hubs.size)
        start, stop = adj.start.copy(), adj.stop.copy()
        start[hubs], stop[hubs] = added + adj.values.size, added + adj.values.size + 1
        indices = np.concatenate([adj.indices, (added + self.n).astype(adj.indices.dtype)])
        values = np.concatenate([adj.values, np.ones(hubs.size, adj.values.dtype)])
        return x, CSR(start, stop, indices, values, (self.n, self.n + hubs.size))
