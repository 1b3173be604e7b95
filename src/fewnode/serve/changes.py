"""A dataset as requests have changed it: nodes attached, replaced and deleted, edges added and removed.

It is always made of the dataset and the whole state, so a restart finds what the last request left.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from fewnode.dataset import UNKNOWN, Dataset
from fewnode.errors import FewnodeError
from fewnode.graph import Attributes, Graph, is_sparse
from fewnode.serve.rows import reader_of
from fewnode.serve.state import Edge, State


class BaseDataset:
    """The dataset that the service was started with, and what follows from it for changes."""

    def __init__(self, data: Dataset) -> None:
        self.data, self.reader = data, reader_of(data)
        self.numbered = data.node_names is None
        self.directed = bool(data.encoding.get("directed")) if data.encoding else data.graph.directed
        self.names = data.node_names or tuple(map(str, range(data.graph.n)))

    @cached_property
    def row(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.names)}

    def form(self, name: str) -> str:
        """The one form of a name: where nodes have none but their number, 01 is 1."""
        return str(int(name)) if self.numbered and name.isdecimal() else name

    def edge(self, source: str, target: str) -> Edge:
        """The one form of an edge."""
        return (source, target) if self.directed or source <= target else (target, source)

    def has_edge(self, edge: Edge, state: State) -> bool:
        """Whether the dataset has the edge, and both of its ends are still there."""
        source, target = (-1 if name in state.removed else self.row.get(name, -1) for name in edge)
        return min(source, target) >= 0 and linked(self.data.graph, source, target)

    def changed(self, state: State) -> Dataset:
        """The dataset with all changes of a state; what they contradict is an error."""
        data = self.data
        if not state.changes_network:
            return data
        if unknown := sorted(state.removed - self.row.keys()):
            raise FewnodeError(f"node {unknown[0]!r} was removed, but was never there")
        kept = np.array([name not in state.removed for name in self.names])
        names = [name for name in self.names if name not in state.removed]
        if not names and not state.nodes:
            raise FewnodeError("no node would be left")
        place = {name: i for i, name in enumerate(names)}
        adj, x, y, class_names = data.graph.adj[kept][:, kept], data.graph.x[kept], data.y[kept], data.class_names
        if state.nodes:
            new_x, new_y, class_names = self.reader.encoded(state.nodes)
            source = list(range(len(names)))  # row of the node in the old attributes, or behind them in the new ones
            for i, name in enumerate(state.nodes):
                if name in place:
                    source[place[name]] = len(names) + i
                else:
                    place[name] = len(source)
                    source.append(len(names) + i)
            x = _stacked(x, new_x)[source]
            known = np.concatenate([y, new_y])[source]
            y = np.where(known == UNKNOWN, np.append(y, np.full(len(source) - len(y), UNKNOWN)), known)
        graph = self._rewired(adj, x, place, state.edges)
        return replace(data, graph=graph, y=y, class_names=class_names, node_names=tuple(place))

    def _rewired(self, adj: sp.csr_array, x: Attributes, place: Mapping[str, int], edges: Mapping[Edge, bool]) -> Graph:
        n = len(place)
        for edge in edges:
            for name in edge:
                if name not in place:
                    raise FewnodeError(f"edge {edge[0]!r} - {edge[1]!r}: {name!r} is not in the network")
        old = adj.tocoo()
        source, target = old.coords[1].astype(np.int64), old.coords[0].astype(np.int64)
        ends = np.array([(place[s], place[t]) for s, t in edges], np.int64).reshape(-1, 2)
        added = ends[np.fromiter(edges.values(), bool, len(edges))]
        gone = ends[~np.fromiter(edges.values(), bool, len(edges))]
        gone = gone if self.directed else np.concatenate([gone, gone[:, ::-1]])
        left = ~np.isin(source * n + target, gone[:, 0] * n + gone[:, 1])
        every = np.stack([np.append(source[left], added[:, 0]), np.append(target[left], added[:, 1])])
        return Graph.from_edges(every, n, x, directed=self.directed, blocks=self.data.graph.blocks)


def linked(graph: Graph, source: int, target: int) -> bool:
    adj = graph.adj
    return bool(np.isin(source, adj.indices[adj.indptr[target] : adj.indptr[target + 1]]))


def _stacked(above: Attributes, below: Attributes) -> Attributes:
    if is_sparse(above):
        return sp.vstack([above, sp.csr_array(below)], format="csr")
    return np.concatenate([above, below.toarray() if is_sparse(below) else below])
