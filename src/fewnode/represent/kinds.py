"""Views over weights, kinds and directions of edges, beside those of the plain union.

The most alike relation need not be the useful one, and most often none is: nothing is expected of these views before
known classes show what they are worth. They are read along the leading directions only, so that they cost little.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import scipy.sparse as sp
import torch
from jaxtyping import Float
from torch import Tensor

from fewnode.engine.sparse import normalised
from fewnode.graph import Graph, Ints
from fewnode.represent.diffusion import Diffusion, Operators, random_walk

NARROW = 64
"""Directions of a source that these views are read along."""
FEW_RELATIONS = 5
"""So many relations have a view of their own each, the largest."""
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
MOST_ODDS, IMAGINED = 10.0, 10.0


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


def operators_of(graph: Graph, odds: Sequence[float]) -> Operators:
    """The matrices of the plain union, and those of weights, directions, odds and relations."""
    largest = sorted(range(len(graph.relations)), key=lambda i: (-graph.relations[i].adj.nnz, i))[:FEW_RELATIONS]
    more: dict[str, Callable[[], sp.csr_array]] = {
        "weighted": lambda: normalised(graph),
        "in": lambda: random_walk(_arcs(graph)),
        "out": lambda: random_walk(_bare(_arcs(graph).adj.T.tocsr())),
        "odds": lambda: normalised(_by_odds(graph, odds)),
    }
    for i, place in enumerate(largest):
        more[f"relation {i}"] = lambda place=place: normalised(_bare(graph.relations[place].both_ways))  # type: ignore[misc]
    return Operators(graph.unweighted, more)


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
    parts = [each.both_ways * np.float32(o) for each, o in zip(graph.relations, odds, strict=True)]
    adj = sum(parts[1:], start=parts[0]).tocsr()
    adj.data /= max(float(adj.data.mean(dtype=np.float64)), 1e-12) if adj.nnz else 1
    return _bare(adj)


def same_class_odds(graph: Graph, members: Sequence[Ints]) -> list[float]:
    """How much likelier an edge of each relation is to join two of one class than chance is, capped; 1 if unknown."""
    y = np.full(graph.n, -1)
    for c, nodes in enumerate(members):
        y[nodes] = c
    sizes = np.bincount(y[y >= 0]).astype(np.float64) if (y >= 0).any() else np.ones(1)
    chance = float(np.clip(((sizes / sizes.sum()) ** 2).sum(), 1e-6, 0.5))
    found = []
    for relation in graph.relations:
        row = np.repeat(np.arange(graph.n), np.diff(relation.adj.indptr))
        one, other = y[row], y[relation.adj.indices]
        known = (one >= 0) & (other >= 0)
        share = ((one == other)[known].sum() + IMAGINED * chance) / (known.sum() + IMAGINED)
        odds = share / (1 - min(share, 0.999)) / (chance / (1 - chance))
        found.append(float(np.float32(np.clip(odds, 1 / MOST_ODDS, MOST_ODDS))))
    return found


def narrowed(z: Float[Tensor, "n d"], diffusion: Diffusion) -> Float[Tensor, "n d"]:
    """What a view is made from: all directions, or the leading ones where it is one beside the plain ones."""
    return z[:, :NARROW].contiguous() if diffusion.over and z.shape[1] > NARROW else z


def without_edges(h: Float[Tensor, "k d"], diffusion: Diffusion) -> Float[Tensor, "k d"]:
    """What a diffusion makes of nodes that have no edge."""
    return torch.zeros_like(h) if set(diffusion.matrices) & set(LOOPLESS) else h
