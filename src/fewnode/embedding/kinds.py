"""Views over weights, kinds and directions of edges, beside those of the plain union.

The most alike relation need not be the useful one, and most often none is: nothing is expected of these views before
known classes show what they are worth. Most are read along the leading directions only, so that they cost little.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from fewnode.embedding.diffusion import Diffusion, Operators, operators, random_walk, sparse_operators
from fewnode.engine import loops
from fewnode.engine.sparse import normalised
from fewnode.errors import FewnodeError
from fewnode.graph import Graph, Ints, Relation, total
from fewnode.vectors import Floats

NARROW = 64
"""Directions of a source that these views are read along."""
FEW_RELATIONS = 5
"""So many relations have views of their own."""
NEAR, FAR = (6, 0.5), (10, 0.15)
BY_WEIGHT = {
    "near by weight": Diffusion(*NEAR, over=("weighted",)),
    "far by weight": Diffusion(*FAR, over=("weighted",)),
}
BY_DIRECTION = {
    "sources": Diffusion(1, over=("in",)),
    "targets": Diffusion(1, over=("out",)),
    "other targets of its sources": Diffusion(1, over=("out", "in")),
    "other sources of its targets": Diffusion(1, over=("in", "out")),
}
BY_ODDS = {
    "near by odds": Diffusion(*NEAR, over=("odds",)),
    "far by odds": Diffusion(*FAR, over=("odds",)),
}
BY_RELATION = {
    f"{name} in relation {i + 1}": Diffusion(*shape, over=(f"relation {i}",))
    for i in range(FEW_RELATIONS)
    for name, shape in (("near", NEAR), ("far", FAR))
}
KIND_VIEWS: dict[str, Diffusion] = {**BY_WEIGHT, **BY_DIRECTION, **BY_ODDS, **BY_RELATION}
LOOPLESS = ("walk", "in", "out")
"""Matrices without self-loops: a node without edges has zeros."""
LEAST = 0.01
"""What an edge counts at least, where one of usual odds counts 1."""
ALIKE = 3
"""Relations that have views of their own for what they join; the others of `FEW_RELATIONS` have them for their size."""
SPOILT = 0.75
"""Where edges join two of one class so much less often than by odds, useless relations hide the structure."""


@dataclass(frozen=True)
class LearnedRelations:
    """What known classes taught about the relations of a graph; nothing where there are no such classes."""

    odds: tuple[float, ...] = ()
    """How much likelier the edges of a relation join two nodes of one class than chance; a number a relation."""
    chosen: tuple[int, ...] = ()
    """The places of those with views of their own."""
    in_structure: bool = False
    """Whether a node's place in the structure is read by odds, and not over all edges alike."""

    @classmethod
    def of(cls, graph: Graph, members: Sequence[Ints]) -> LearnedRelations:
        """Of a graph with several relations. `members` are those of each known class."""
        if len(graph.relations) < 2:
            return cls()
        met = [meetings(relation.adj, members) for relation in graph.relations]
        odds = tuple(same_class_odds(same, known, members) for same, known in met)
        same, known = (np.array(each, np.float64) for each in zip(*met, strict=True))
        pull = np.array([_pull(each) for each in odds])
        share, by_odds = same.sum() / max(1, known.sum()), (pull * same).sum() / max(1e-12, (pull * known).sum())
        return cls(odds, _chosen(graph, odds), bool(share < SPOILT * by_odds))

    def structure(self, graph: Graph) -> Graph:
        """The graph that a node's place in the structure is read from."""
        return _by_odds(graph, self.checked(graph).odds) if self.in_structure else both_ways(graph)

    def checked(self, graph: Graph) -> LearnedRelations:
        """For this graph: as learned, or all relations alike if nothing was. A kind that came later is a usual one."""
        count = len(graph.relations)
        if not self.odds:
            return LearnedRelations((1.0,) * count, _chosen(graph, (1.0,) * count))
        if len(self.odds) > count:
            raise FewnodeError(f"the model knows {len(self.odds)} kinds of edges, this network has {count}")
        usual = float(np.median(self.odds))
        return replace(self, odds=(*self.odds, *[usual] * (count - len(self.odds))))


NOTHING_LEARNED = LearnedRelations()


def _chosen(graph: Graph, odds: Sequence[float]) -> tuple[int, ...]:
    """The relations that join two of one class most often, then the largest: which is useful is not known from that."""
    places = range(len(graph.relations))
    size = [relation.adj.nnz for relation in graph.relations]
    alike = sorted(places, key=lambda i: (-odds[i], -size[i], i))[:ALIKE]
    return tuple(sorted(places, key=lambda i: (i not in alike, -size[i], i))[:FEW_RELATIONS])


def kind_views(graph: Graph) -> list[str]:
    """The names of the views that this graph can have."""
    found = [*BY_WEIGHT] if graph.weighted else []
    found += [*BY_DIRECTION] if _has_directions(graph) else []
    if len(graph.relations) > 1:
        found += [*BY_ODDS, *list(BY_RELATION)[: 2 * len(graph.relations)]]
    return found


def _has_directions(graph: Graph) -> bool:
    if graph.relations:
        return any(relation.directed for relation in graph.relations)
    return graph.directed


def operators_of(graph: Graph, learned: LearnedRelations) -> Operators:
    """The matrices of the plain union, and those of weights, directions, odds and relations."""
    learned, union = learned.checked(graph), both_ways(graph)
    more: dict[str, Callable[[], sp.csr_array]] = {
        "weighted": lambda: normalised(union),
        "in": lambda: random_walk(_arcs(graph)),
        "out": lambda: random_walk(_bare(_arcs(graph).adj.T.tocsr())),
        "odds": lambda: normalised(_by_odds(graph, learned.odds)),
    }
    for i, place in enumerate(learned.chosen):
        more[f"relation {i}"] = lambda place=place: normalised(_bare(graph.relations[place].both_ways))  # type: ignore[misc]
    return {**operators(union.unweighted), **sparse_operators(more)}


def both_ways(graph: Graph) -> Graph:
    """The plain union: every edge leads both ways, whatever its direction. An undirected graph is that itself.

    A node is like those that it points to, and like those that point to it. Directions have views of their own.
    """
    if not graph.directed:
        return graph
    relations = graph.relations or (Relation("edges", graph.adj, directed=True),)
    return _bare(total(relations, directed=False))


def _bare(adj: sp.csr_array) -> Graph:
    return Graph(adj, sp.csr_array((adj.shape[0], 0), dtype=np.float32))


def _arcs(graph: Graph) -> Graph:
    """Edges of a direction alone."""
    if not graph.relations:
        return _bare(graph.adj)
    directed = [relation for relation in graph.relations if relation.directed]
    return _bare(sum((each.adj for each in directed[1:]), start=directed[0].adj).tocsr())


def _by_odds(graph: Graph, odds: Sequence[float]) -> Graph:
    """The union, each relation by its odds, with mean weight 1 as that of the self-loops."""
    parts = [each.both_ways * np.float32(_pull(o)) for each, o in zip(graph.relations, odds, strict=True)]
    adj = sum(parts[1:], start=parts[0]).tocsr()
    adj.data /= max(float(adj.data.mean(dtype=np.float64)), 1e-12) if adj.nnz else 1
    return _bare(adj)


def _pull(odds: float) -> float:
    """What an edge counts: nothing much if it is no likelier than chance to join two of one class."""
    return max(odds - 1, LEAST)


# --- width --------------------------------------------------------------------------------------------------------


def is_narrow(diffusion: Diffusion) -> bool:
    """Whether it is read along the leading directions alone: one of many such views. By odds there are two."""
    return diffusion.over[0] not in ("closed", "walk", "odds")


def width_of(diffusion: Diffusion, width: int) -> int:
    """Columns of a view of a source with so many."""
    return min(width, NARROW) if is_narrow(diffusion) else width


def narrowed(z: Floats, diffusion: Diffusion) -> Floats:
    """What a view is made from: all directions, or the leading ones where it is one beside the plain ones."""
    return np.ascontiguousarray(z[:, : width_of(diffusion, z.shape[1])])


def without_edges(h: Floats, diffusion: Diffusion) -> Floats:
    """What a diffusion makes of nodes that have no edge."""
    return np.zeros_like(h) if set(diffusion.over) & set(LOOPLESS) else h


MOST_ODDS, IMAGINED = 100.0, 10.0
"""Odds are between this and its inverse; and so many edges are imagined that join two of one class by chance."""


def meetings(adj: sp.csr_array, members: Sequence[Ints]) -> tuple[int, int]:
    """How many arcs join two of one class, and two of any known classes."""
    y = np.full(adj.shape[0], -1)
    for c, nodes in enumerate(members):
        y[nodes] = c
    same, known = loops.same_label(adj.indptr, adj.indices, y)
    return int(same), int(known)


def same_class_odds(same: int, known: int, members: Sequence[Ints]) -> float:
    """Capped; 1 if unknown. Chance is how often two known nodes are of one class."""
    sizes = np.array([nodes.size for nodes in members], np.float64)
    chance = float(np.clip(((sizes / max(1, sizes.sum())) ** 2).sum(), 1e-6, 0.5))
    share = (same + IMAGINED * chance) / (known + IMAGINED)
    odds = share / (1 - min(share, 0.999)) / (chance / (1 - chance))
    return float(np.float32(np.clip(odds, 1 / MOST_ODDS, MOST_ODDS)))
