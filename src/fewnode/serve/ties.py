"""Edges of a kind and with a weight, as requests give them: checked, kept as they were given, put into the graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from fewnode.adjacency import Relation
from fewnode.dataset import Dataset
from fewnode.edges.scaling import Scaling
from fewnode.errors import FewnodeError, closest
from fewnode.graph import Graph
from fewnode.serve.state import Tie
from fewnode.tables.read import Imported


def tie_of(data: Dataset, source: str, target: str, kind: str | None, weight: float | None) -> tuple[Tie, float]:
    """The one form of an edge of a kind, and its amount. What the network cannot hold is refused."""
    relation = _relation(data.graph, kind)
    if weight is not None and not relation.weighted:
        raise FewnodeError(f"edges of kind {relation.name!r} have no weights; leave out the weight")
    ends = (source, target) if relation.directed else (min(source, target), max(source, target))
    if ends[0] == ends[1]:
        raise FewnodeError(f"an edge from {source!r} to itself says nothing")
    usual = float(_scaling(data, relation).invert(np.ones(1))[0])
    return (*ends, relation.name), float(usual if weight is None else weight)


def _relation(graph: Graph, kind: str | None) -> Relation:
    if not graph.relations:
        raise FewnodeError("the network has neither weights nor kinds of edges, so new edges cannot have them")
    relations = {relation.name: relation for relation in graph.relations}
    if kind is None:
        if len(relations) > 1:
            raise FewnodeError(f"an edge with a weight needs a kind: {', '.join(relations)}")
        return graph.relations[0]
    if kind not in relations:
        raise FewnodeError(f"unknown kind of edge {kind!r}{closest(kind, relations)}; there are {', '.join(relations)}")
    return relations[kind]


def _scaling(data: Dataset, relation: Relation) -> Scaling:
    return Imported.of(data).scaling(relation.name) if data.encoding else Scaling("none")


def tied(graph: Graph, data: Dataset, ties: Mapping[Tie, float], place: Mapping[str, int]) -> Graph:
    """The graph with these edges as they are to be: of the amount given, or gone where that is 0."""
    directed = graph.directed if graph.adj.nnz else None
    found = []
    for relation in graph.relations:
        own = {tie[:2]: amount for tie, amount in ties.items() if tie[2] == relation.name}
        found.append(replace(relation, adj=_changed(relation, data, own, place)) if own else relation)
    if unknown := {tie[2] for tie in ties} - {relation.name for relation in found}:
        raise FewnodeError(f"an edge is of kind {min(unknown)!r}, which is not in the network")
    made = Graph.from_relations(found, graph.x, directed=directed)
    return replace(made, home=graph.home, blocks=graph.blocks)


def _changed(
    relation: Relation, data: Dataset, own: Mapping[tuple[str, str], float], place: Mapping[str, int]
) -> sp.csr_array:
    for name in (name for ends in own for name in ends):
        if name not in place:
            raise FewnodeError(f"an edge of kind {relation.name!r} leads to {name!r}, which is not in the network")
    source, target = np.array([[place[name] for name in ends] for ends in own], np.int64).T
    amount = np.fromiter(own.values(), np.float64, len(own))
    weight = np.where(amount > 0, _scaling(data, relation).apply(amount), 0) if relation.weighted else amount > 0
    if not relation.directed:
        source, target = np.concatenate([source, target]), np.concatenate([target, source])
        weight = np.concatenate([weight, weight])
    old, n = relation.adj.tocoo(), relation.adj.shape[0]
    row, column = (ends.astype(np.int64) for ends in old.coords)
    left = ~np.isin(row * n + column, target * n + source)
    come = weight > 0
    values = np.concatenate([old.data[left], np.maximum(weight[come], np.finfo(np.float32).tiny).astype(np.float32)])
    ends = np.concatenate([row[left], target[come]]), np.concatenate([column[left], source[come]])
    return sp.coo_array((values, ends), shape=(n, n)).tocsr()
