"""A dataset as requests have changed it: nodes attached, replaced and deleted, edges added and removed.

It is always made of the dataset and the whole state, so a restart finds what the last request left.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from fewnode.class_labels import UNKNOWN, as_members, only_class
from fewnode.dataset import Dataset
from fewnode.edges.relations import rewired
from fewnode.errors import FewnodeError
from fewnode.graph import Attributes, Graph, is_sparse
from fewnode.serve.rows import EncodedNodes, reader_of
from fewnode.serve.state import Edge, State
from fewnode.serve.ties import tied


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

    def joined(self, edge: Edge, state: State) -> bool:
        """Whether two nodes are joined in a state, by an edge of whatever kind."""
        turned = [edge] if self.directed else [edge, edge[::-1]]
        kinds = {
            (*pair, each.name): each
            for each in self.data.graph.relations
            for pair in (turned if each.directed else [(min(edge), max(edge))])
        }
        said = {tie: state.ties[tie] for tie in kinds if tie in state.ties}
        if any(amount > 0 for amount in said.values()):
            return True
        usual = self.has_edge(edge, state)
        if not said or edge in state.edges:
            return state.edges.get(edge, usual)
        left = {tie: each for tie, each in kinds.items() if tie not in said}
        return usual and any(_has(each.adj, self.row[s], self.row[t]) for (s, t, _), each in left.items())

    def changed(self, state: State) -> Dataset:
        """The dataset with all changes of a state; what they contradict is an error."""
        data = self._rebuilt(state)
        return relabelled(data, state.labels) if state.labels else data

    def _rebuilt(self, state: State) -> Dataset:
        """The same, with labels as the data has them."""
        data = self.data
        if not (state.nodes or state.removed or state.edges or state.ties):
            return data
        if unknown := sorted(state.removed - self.row.keys()):
            raise FewnodeError(f"node {unknown[0]!r} was removed, but was never there")
        kept = np.array([name not in state.removed for name in self.names])
        names = [name for name in self.names if name not in state.removed]
        if not names and not state.nodes:
            raise FewnodeError("no node would be left")
        place = {name: i for i, name in enumerate(names)}
        x, fields = data.graph.x[kept], _described(data, kept)
        if state.nodes:
            new = self.reader.encoded(state.nodes)
            source = list(range(len(names)))  # row of the node in the old attributes, or behind them in the new ones
            for i, name in enumerate(state.nodes):
                if name in place:
                    source[place[name]] = len(names) + i
                else:
                    place[name] = len(source)
                    source.append(len(names) + i)
            x = _stacked(x, new.x)[source]
            fields = _with_new(fields, new, np.array(source))
        graph = self._rewired(kept, x, place, state.edges)
        if state.ties:
            graph = tied(graph, data, state.ties, place)
        return replace(data, graph=graph, node_names=tuple(place), **fields)

    def _rewired(
        self, kept: NDArray[np.bool_], x: Attributes, place: Mapping[str, int], edges: Mapping[Edge, bool]
    ) -> Graph:
        for edge in edges:
            for name in edge:
                if name not in place:
                    raise FewnodeError(f"edge {edge[0]!r} - {edge[1]!r}: {name!r} is not in the network")
        ends = np.array([(place[s], place[t]) for s, t in edges], np.int64).reshape(-1, 2)
        wanted = np.fromiter(edges.values(), bool, len(edges))
        graph = rewired(self.data.graph, kept, x, ends[wanted].T, ends[~wanted].T, self.directed)
        return replace(graph, blocks=self.data.graph.blocks)


def _described(data: Dataset, kept: NDArray[np.bool_]) -> dict[str, Any]:
    """What a dataset says of the nodes that are kept."""
    labels, kind = (None if each is None else each[kept] for each in (data.labels, data.kind))
    names = {"class_names": data.class_names, "kind_names": data.kind_names}
    return {"y": data.y[kept], "labels": labels, "kind": kind, **names}


def _with_new(fields: Mapping[str, Any], new: EncodedNodes, source: NDArray[np.int64]) -> dict[str, Any]:
    """The same of all nodes, `source` being where each is among old and new ones.

    A node that was replaced by one without a class keeps its class.
    """
    y, more = fields["y"], source.size - fields["y"].size
    known = np.concatenate([y, new.y])[source]
    labels, kind = fields["labels"], fields["kind"]
    if labels is not None or new.labels is not None:
        width = len(new.class_names)
        members = [as_members(y, labels, width), as_members(new.y, new.labels, width)]
        every, own = sp.vstack(members, format="csr"), np.arange(source.size)
        empty = np.diff(every[source].indptr) == 0
        labels = every[np.where(empty & (own < y.size), own, source)]
        y = only_class(labels)
    else:
        y = np.where(known == UNKNOWN, np.append(y, np.full(more, UNKNOWN)), known)
    if kind is not None:
        kind = np.concatenate([kind, np.zeros(len(new.y), np.int64) if new.kind is None else new.kind])[source]
    names = {"class_names": new.class_names, "kind_names": new.kind_names or fields["kind_names"]}
    return {"y": y, "labels": labels, "kind": kind, **names}


def relabelled(data: Dataset, labels: Mapping[str, str | None]) -> Dataset:
    """The dataset with other labels of some nodes; a class that it does not have is a new one."""
    known = {name: i for i, name in enumerate(data.class_names)}
    for name in filter(None, labels.values()):
        known.setdefault(name, len(known))
    nodes = np.array([data.node(name) for name in labels], np.int64)
    ids = np.array([UNKNOWN if name is None else known[name] for name in labels.values()], np.int64)
    y, members = np.array(data.y), None
    y[nodes] = ids
    if data.labels is not None:
        other = sp.lil_array((data.graph.n, len(known)), dtype=bool)
        kept = np.setdiff1d(np.arange(data.graph.n), nodes)
        other[kept, : len(data.class_names)] = data.labels[kept]
        for node, c in zip(nodes.tolist(), ids.tolist(), strict=True):
            if c != UNKNOWN:
                other[node, c] = True
        members = other.tocsr()
    return replace(data, y=y, labels=members, class_names=tuple(known))


def linked(graph: Graph, source: int, target: int) -> bool:
    return _has(graph.adj, source, target)


def _has(adj: sp.csr_array, source: int, target: int) -> bool:
    return bool(np.isin(source, adj.indices[adj.indptr[target] : adj.indptr[target + 1]]))


def _stacked(above: Attributes, below: Attributes) -> Attributes:
    if is_sparse(above):
        return sp.vstack([above, sp.csr_array(below)], format="csr")
    return np.concatenate([above, below.toarray() if is_sparse(below) else below])
