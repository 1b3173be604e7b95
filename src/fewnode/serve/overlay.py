"""What differs from a network that was embedded as a whole: nodes that came, went or changed, and the rows near them.

Never changed, as everything that requests see: a change makes another one. Nodes have the rows of the embedded network
as their numbers, and those that came later the numbers behind them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeAlias

import numpy as np

from fewnode.graph import Attributes, Graph, Ints
from fewnode.represent.new_rows import Kept, Neighbourhood, StoredViews
from fewnode.represent.sources import STRUCTURE
from fewnode.serve.layered import Layered
from fewnode.vectors import Floats

Arcs: TypeAlias = Mapping[int, Ints]
HUB = 64
"""A node of more neighbours keeps its row until all are embedded again: one edge is nothing to it."""


class ChangedNode(NamedTuple):
    """A node that is new, or near a change."""

    near: Ints
    """Its neighbours."""
    kept: Mapping[Kept, Floats]
    """As that of `StoredViews`, of this node."""
    z: Floats


@dataclass(frozen=True, eq=False)
class EmbeddedNetwork:
    """A graph, z of all its nodes, and what rows of new ones are made from."""

    graph: Graph
    """Every edge leads both ways."""
    z: Floats
    views: StoredViews

    def near(self, node: int) -> Ints:
        adj = self.graph.adj
        found: Ints = adj.indices[adj.indptr[node] : adj.indptr[node + 1]].astype(np.int64)
        return found


class Change(NamedTuple):
    """What is to change, by numbers of nodes. Arcs are added to, and taken from, the neighbours of their first end."""

    gone: list[int]
    said: Mapping[int, Attributes]
    """Attributes of nodes that are new or replaced, a row each."""
    added: list[tuple[int, int]]
    removed: list[tuple[int, int]]


@dataclass(frozen=True, eq=False)
class Overlay:
    """Nodes that differ from those of an embedded network."""

    network: EmbeddedNetwork
    nodes: Layered[int, ChangedNode] = field(default_factory=Layered)
    gone: frozenset[int] = frozenset()
    size: int = 0
    """Numbers of nodes that came later."""
    drift: float = 0.0
    """The share of its neighbourhood that has changed since all nodes were embedded, on the mean of all nodes."""

    @property
    def end(self) -> int:
        """The first number that is free."""
        return self.network.graph.n + self.size

    def near(self, node: int) -> Ints:
        return self.nodes[node].near if node in self.nodes else self.network.near(node)

    def rows(self, nodes: Iterable[int]) -> Floats:
        """z of these nodes; nothing else is touched."""
        found, own = list(nodes), self.nodes
        old = np.array([0 if node in own else node for node in found], np.int64)
        z = self.network.z[old]
        for i, node in enumerate(found):
            if node in own:
                z[i] = own[node].z
        return z

    def changed(self, change: Change) -> Overlay:
        """The overlay after a change; nodes that it touches, and their neighbours, get new rows."""
        near, count = self._rewired(change)
        new = [node for node in change.said if node >= self.end]
        nodes = self.nodes.updated({node: self._as_it_was(node, near.get(node)) for node in near})
        after = replace(self, nodes=nodes, gone=self.gone | set(change.gone), size=self.size + len(new))
        around = {int(v) for node in change.said for v in after.near(node)}
        affected = [node for node in {*change.said, *near, *around} if node not in after.gone]
        affected = [node for node in affected if node in change.said or after.near(node).size <= HUB]
        drift = sum(times / (1 + after.near(node).size) for node, times in count.items() if node not in after.gone)
        drift += sum(1.0 for node in change.said if node not in count)
        drift = self.drift + drift / max(1, self.network.graph.n)
        return replace(after, drift=drift) if not affected else replace(after._remade(affected, change), drift=drift)

    def _rewired(self, change: Change) -> tuple[dict[int, Ints], dict[int, int]]:
        """The neighbours of every node where they change, and how many of them do."""
        near: dict[int, Ints] = {node: np.zeros(0, np.int64) for node in change.said if node >= self.end}
        count: dict[int, int] = {}
        taken = [(int(u), node) for node in change.gone for u in self.near(node)]
        for arcs, adding in ((taken, False), (change.removed, False), (change.added, True)):
            for node, other in arcs:
                now = near[node] if node in near else self.near(node)
                rest = now[now != other]
                near[node] = np.append(rest, other) if adding else rest
                count[node] = count.get(node, 0) + 1
        return near, count

    def _as_it_was(self, node: int, near: Ints | None) -> ChangedNode:
        """The node with other neighbours, and its row as it was; that of a new one is not known yet."""
        around = self.near(node) if near is None else near
        if node in self.nodes:
            return self.nodes[node]._replace(near=around)
        views, old = self.network.views, node < self.network.graph.n
        kept = {name: all_rows[node] if old else _zeros(all_rows) for name, all_rows in views.kept.items()}
        return ChangedNode(around, kept, self.network.z[node] if old else np.zeros(self.network.z.shape[1], np.float32))

    def _remade(self, affected: list[int], change: Change) -> Overlay:
        """With new rows of the affected nodes."""
        views = self.network.views
        others = {int(v) for node in affected for v in self.near(node)}.difference(affected)
        every = [*affected, *others]
        place = {node: i for i, node in enumerate(every)}
        near = [np.array([place[v] for v in self.near(node).tolist()], np.int64) for node in affected]
        degree = np.array([self.near(node).size for node in every], np.int64)
        rows = self._kept(every)
        for node, x in change.said.items():
            for name, said in views.said(x).items():
                rows[name][place[node]] = said[0]
        new = np.array([node in change.said and node not in self._known(change) for node in affected])
        if STRUCTURE in rows:
            for i in np.flatnonzero(new).tolist():
                rows[STRUCTURE][i] = views.placed(rows[STRUCTURE][near[i]])
        kept, z = views.made(Neighbourhood(near, degree), rows, new)
        made = {
            node: ChangedNode(self.near(node), {name: h[i] for name, h in kept.items()}, z[i])
            for i, node in enumerate(affected)
        }
        return replace(self, nodes=self.nodes.updated(made))

    def _known(self, change: Change) -> set[int]:
        """Nodes that are replaced, and not new: they keep their place in the structure."""
        return {node for node in change.said if node < self.network.graph.n or bool(self.nodes[node].z.any())}

    def _kept(self, nodes: list[int]) -> dict[Kept, Floats]:
        """What is kept of these nodes, a row each."""
        own = {i: self.nodes[node] for i, node in enumerate(nodes) if node in self.nodes}
        old = np.array([0 if i in own else node for i, node in enumerate(nodes)], np.int64)
        found = {name: rows[old] for name, rows in self.network.views.kept.items()}
        for name, rows in found.items():
            for i, node in own.items():
                rows[i] = node.kept[name]
        return found


def _zeros(rows: Floats) -> Floats:
    return np.zeros(rows.shape[1], np.float32)
