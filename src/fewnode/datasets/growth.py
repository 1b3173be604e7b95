"""New edges for a graph that is there: of its relations, on the scales that its weights were brought to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from fewnode.adjacency import Relation
from fewnode.datasets.times import TimeRules
from fewnode.edges.merging import EdgeRows, Merged, merge
from fewnode.edges.relations import REPEATED, UNNAMED, EdgeFacts
from fewnode.edges.scaling import Scaling, Weights
from fewnode.errors import FewnodeError, closest
from fewnode.graph import Attributes, Graph

DAMAGED = "how its edges were read is not what fewnode wrote"


@dataclass(frozen=True)
class EdgeMemory:
    """How the edges of a dataset were read, so that later ones are read the same way."""

    weight: str | None = None
    relation: str | None = None
    time: TimeRules | None = None
    now: float | None = None
    repeated: str | None = None
    scalings: Mapping[str, Scaling] | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "weight": self.weight,
            "relation": self.relation,
            "time": None if self.time is None else list(self.time),
            "now": self.now,
            "repeated": self.repeated,
            "scalings": {name: scaling.to_json() for name, scaling in (self.scalings or {}).items()},
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any] | None) -> EdgeMemory:
        """What `to_json` gave; it may come from anybody."""
        if stored is None:
            return cls()
        try:
            texts = (stored["weight"], stored["relation"], stored["repeated"], *(stored["time"] or ()))
            if not all(each is None or isinstance(each, str) for each in texts):
                raise FewnodeError(DAMAGED)
            time = None if stored["time"] is None else TimeRules(*stored["time"]).checked()
            now = None if stored["now"] is None else float(stored["now"])
            scalings = {str(name): Scaling.from_json(each) for name, each in stored["scalings"].items()}
            if stored["repeated"] in (None, *REPEATED) and (now is None or np.isfinite(now)):
                return cls(stored["weight"], stored["relation"], time, now, stored["repeated"], scalings)
        except (KeyError, TypeError, ValueError, AttributeError):
            pass
        raise FewnodeError(DAMAGED)


def grown(
    graph: Graph, n: int, x: Attributes, rows: EdgeRows, memory: EdgeMemory, directed: bool, owner: str
) -> tuple[Graph, EdgeFacts]:
    """The graph with `n` nodes in all, their attributes `x`, and more edges; what became of those."""
    if not graph.relations:
        if rows.kind is not None or rows.weight is not None or rows.fade is not None:
            raise FewnodeError(f"{owner} has neither weights nor kinds of edges, so new edges cannot have them")
        every = np.concatenate([graph.edge_index(), rows.edge_index], axis=1)
        new = Graph.from_edges(every, n, x, directed=directed)
        count = int((rows.edge_index[0] != rows.edge_index[1]).sum())
        arcs = new.adj.nnz - graph.adj.nnz
        return new, EdgeFacts(repeated=count - (arcs if directed else arcs // 2))
    facts = EdgeFacts()
    parts = _by_relation(graph, rows, owner)
    relations = [_grown(each, n, parts[each.name], memory, facts) for each in graph.relations]
    one_way = None if not graph.adj.nnz else graph.directed  # relations of a direction may have a sum without one
    return Graph.from_relations(relations, x, directed=one_way), facts


def _by_relation(graph: Graph, rows: EdgeRows, owner: str) -> dict[str, EdgeRows]:
    """The new edges of each relation; those of an inverse are turned round."""
    names = {each.name: (each.name, False) for each in graph.relations}
    names |= {each.inverse: (each.name, True) for each in graph.relations if each.inverse is not None}
    if rows.kind is None:
        if len(graph.relations) > 1 and UNNAMED not in names and len(rows):
            raise FewnodeError(f"{owner} has several kinds of edges: say which the new ones are, {', '.join(names)}")
        rows = replace(rows, kind=np.zeros(len(rows), np.int64), names=(graph.relations[0].name,))
    for name in rows.names:
        if name not in names:
            raise FewnodeError(f"unknown relation {name!r}{closest(name, names)}; {owner} has {', '.join(names)}")
    place = np.array([list(names).index(name) for name in rows.names] or [0])
    turned = np.array([names[name][1] for name in rows.names] or [False])
    kind = rows.kind if rows.kind is not None else np.zeros(0, np.int64)
    found = {}
    for relation in graph.relations:
        own = [i for i, name in enumerate(names) if names[name][0] == relation.name]
        chosen = np.isin(place[kind], own)
        edges = rows.edge_index[:, chosen]
        edges = np.where(turned[kind][chosen], edges[::-1], edges)
        weight, fade = (None if each is None else each[chosen] for each in (rows.weight, rows.fade))
        found[relation.name] = EdgeRows(edges, weight, fade=fade)
    return found


def _grown(relation: Relation, n: int, rows: EdgeRows, memory: EdgeMemory, facts: EdgeFacts) -> Relation:
    scaling = (memory.scalings or {}).get(relation.name, Scaling("none"))
    repeated = memory.repeated or ("once" if rows.weight is None and rows.fade is None else "sum")
    new = merge(rows, n, relation.directed, repeated)
    facts.repeated += int((rows.edge_index[0] != rows.edge_index[1]).sum()) - new.source.size
    facts.zero += int((new.amount == 0).sum())
    new = new.kept(new.amount > 0)
    old = relation.adj.tocoo()
    target, source = (ends.astype(np.int64) for ends in old.coords)
    once = np.ones(old.nnz, bool) if relation.directed else source < target
    before = Merged(source[once], target[once], old.data[once].astype(np.float64), np.ones(int(once.sum())))
    merged, weight, again = _added(before, new, scaling, repeated, n)
    facts.repeated += again
    return Relation(relation.name, merged.matrix(weight, n, relation.directed), relation.directed, relation.inverse)


def _added(old: Merged, new: Merged, scaling: Scaling, repeated: str, n: int) -> tuple[Merged, Weights, int]:
    """Edges of both, their weights, and how many new ones were there before. Old ones that none repeats keep theirs."""
    keys, others = old.source * n + old.target, new.source * n + new.target
    order = np.argsort(keys)
    place = np.searchsorted(keys[order], others)
    at = order[np.minimum(place, max(keys.size - 1, 0))] if keys.size else np.zeros(others.size, np.int64)
    met = (keys[at] == others) if keys.size else np.zeros(others.size, bool)
    weight, amount = old.amount.copy(), new.amount * new.fade
    if repeated == "once":
        weight[at[met]] = np.maximum(weight[at[met]], scaling.apply(amount[met]))
    else:
        weight[at[met]] = scaling.apply(scaling.invert(weight[at[met]]) + amount[met])
    more = new.kept(~met)
    ends = (np.concatenate([old.source, more.source]), np.concatenate([old.target, more.target]))
    weight = np.concatenate([weight, scaling.apply(more.amount) * more.fade])
    return Merged(*ends, weight, np.ones_like(weight)), weight, int(met.sum())


def emptied(graph: Graph) -> Graph:
    """The same relations and attributes, but no node."""
    none = sp.csr_array((0, 0), dtype=np.float32)
    relations = tuple(Relation(each.name, none, each.directed, each.inverse) for each in graph.relations)
    return Graph(none, graph.x[:0], relations=relations)
