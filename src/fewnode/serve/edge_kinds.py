"""The kinds, directions and weights of the edges between a node and its neighbours, as the page shows them."""

from __future__ import annotations

from typing import Any

from fewnode.adjacency import Relation
from fewnode.graph import Graph, Ints

WAYS = {(True, False): "from", (False, True): "to", (True, True): "both"}
"""Whether an edge leads from the neighbour, and whether one leads to it."""


def edges_between(graph: Graph, node: int, near: Ints) -> list[list[dict[str, Any]]]:
    """Of each neighbour, an entry for each kind of edge that joins it to the node; none in a plain network.

    `way` is `to` the neighbour, `from` it or `both`, and None where the kind has no direction. `weight` is the larger
    one of both ways, on the scale of the network (mean 1), and None where the kind has no weights.
    """
    found: list[list[dict[str, Any]]] = [[] for _ in range(near.size)]
    for relation in graph.relations:
        for place, entry in _of_kind(relation, node, near):
            found[place].append(entry)
    return found


def _of_kind(relation: Relation, node: int, near: Ints) -> list[tuple[int, dict[str, Any]]]:
    come = relation.adj[[node]][:, near].toarray()[0]
    lead = relation.adj[near][:, [node]].toarray()[:, 0]
    found = []
    for place, (one, other) in enumerate(zip(come.tolist(), lead.tolist(), strict=True)):
        if one or other:
            way = WAYS[bool(one), bool(other)] if relation.directed else None
            weight = round(max(one, other), 4) if relation.weighted else None
            found.append((place, {"kind": relation.name, "way": way, "weight": weight}))
    return found
