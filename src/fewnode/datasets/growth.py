"""New edges for a graph that is there: of its relations, on the scales that its weights were brought to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from fewnode.adjacency import Relation
from fewnode.edges.relations import UNNAMED, EdgeFacts, EdgeRows, adjacency, summed
from fewnode.edges.scaling import Scaling
from fewnode.errors import FewnodeError, closest
from fewnode.graph import Attributes, Graph

DAMAGED = "how its edges were read is not what fewnode wrote"


@dataclass(frozen=True)
class EdgeMemory:
    """How the edges of a dataset were read, so that later ones are read the same way."""

    weight: str | None = None
    relation: str | None = None
    scalings: Mapping[str, Scaling] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any] | None) -> EdgeMemory:
        """What `to_json` gave; it may come from anybody."""
        if stored is None:
            return cls()
        try:
            columns = stored["weight"], stored["relation"]
            if all(column is None or isinstance(column, str) for column in columns):
                scalings = {str(name): Scaling.from_json(scaling) for name, scaling in stored["scalings"].items()}
                return cls(*columns, scalings)
        except (KeyError, TypeError, ValueError, AttributeError):
            pass
        raise FewnodeError(DAMAGED)


def grown(
    graph: Graph, n: int, x: Attributes, rows: EdgeRows, memory: EdgeMemory, directed: bool, owner: str
) -> tuple[Graph, EdgeFacts]:
    """The graph with `n` nodes in all, their attributes `x`, and more edges; what became of those."""
    if not graph.relations:
        if not rows.is_plain:
            raise FewnodeError(f"{owner} has neither weights nor kinds of edges, so new edges cannot have them")
        every = np.concatenate([graph.edge_index(), rows.edge_index], axis=1)
        new = Graph.from_edges(every, n, x, directed=directed)
        arcs = new.adj.nnz - graph.adj.nnz
        return new, EdgeFacts(repeated=rows.proper - (arcs if directed else arcs // 2))
    facts = EdgeFacts()
    parts = _by_relation(graph, rows, owner)
    relations = []
    for relation in graph.relations:
        scaling = memory.scalings.get(relation.name, Scaling("none"))
        relations.append(_grown(relation, n, parts[relation.name], scaling, facts))
    one_way = None if not graph.adj.nnz else graph.directed  # relations of a direction may have a sum without one
    return Graph.from_relations(relations, x, directed=one_way), facts


def _by_relation(graph: Graph, rows: EdgeRows, owner: str) -> dict[str, EdgeRows]:
    """The new edges of each relation."""
    names = [relation.name for relation in graph.relations]
    if rows.kind is None:
        if len(names) > 1 and UNNAMED not in names and len(rows):
            raise FewnodeError(f"{owner} has several kinds of edges: say which the new ones are, {', '.join(names)}")
        own = UNNAMED if UNNAMED in names else names[0]
        rows = replace(rows, kind=np.zeros(len(rows), np.int64), names=(own,))
    if unknown := [name for name in rows.names if name not in names]:
        raise FewnodeError(
            f"unknown relation {unknown[0]!r}{closest(unknown[0], names)}; {owner} has {', '.join(names)}"
        )
    found = {}
    for name in names:
        chosen = rows.kind == (rows.names.index(name) if name in rows.names else -1)
        found[name] = EdgeRows(rows.edge_index[:, chosen], None if rows.weight is None else rows.weight[chosen])
    return found


def _grown(relation: Relation, n: int, rows: EdgeRows, scaling: Scaling, facts: EdgeFacts) -> Relation:
    """The relation with more edges. Old ones that none repeats keep their weights, bit by bit."""
    new = summed(rows, n, relation.directed)
    facts.repeated += rows.proper - new.nnz
    facts.zero += int((new.data == 0).sum())
    new.eliminate_zeros()
    start = np.pad(relation.adj.indptr, (0, n - relation.adj.shape[0]), mode="edge")
    old = sp.csr_array((relation.adj.data, relation.adj.indices, start), shape=(n, n))
    if not new.nnz:
        return Relation(relation.name, old, relation.directed)
    source, target = new.tocoo().coords
    weight = np.asarray(old[target, source], np.float64)  # 0 where there is no edge yet
    facts.repeated += int(np.count_nonzero(weight))
    amounts = np.ones(new.nnz) if rows.weight is None else new.data + scaling.invert(weight)
    more = adjacency(new, scaling.apply(amounts), relation.directed)
    kept = old - old.multiply(more.astype(bool))
    return Relation(relation.name, (kept + more).tocsr(), relation.directed)


def emptied(graph: Graph) -> Graph:
    """The same relations and attributes, but no node."""
    none = sp.csr_array((0, 0), dtype=np.float32)
    relations = tuple(Relation(each.name, none, each.directed) for each in graph.relations)
    return Graph(none, graph.x[:0], relations=relations)
