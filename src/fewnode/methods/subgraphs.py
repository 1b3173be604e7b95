"""Small subgraphs around nodes, as dense tensors, and mixtures of two of them: what COSMIC contrasts."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from fewnode.engine.sparse import CSR, taken
from fewnode.engine.visits import most_visited
from fewnode.graph import Graph, Ints
from fewnode.methods.linear import undirected
from fewnode.represent.diffusion import random_walk

RETURN = 0.15
"""Of personalised PageRank, by which the nodes of a subgraph are chosen."""
TOLERANCE = 1e-4
"""Of visits over degree: how far walks are followed."""
ROWS = 512
"""Subgraphs whose edges are in memory at a time, densely."""
CONCENTRATION = 10.0
"""Of the Beta distribution that shares of a mixture are drawn from."""


class Parts(NamedTuple):
    """Subgraphs of equal size, filled up: X W, edges, which places hold a node, and the mean of attributes."""

    xw: Float[Tensor, "b s h"]
    adj: Float[Tensor, "b s s"]
    there: Float[Tensor, "b s"]
    mean: Float[Tensor, "b d"]

    def joined(self, others: Parts) -> Parts:
        return Parts(*(torch.cat(pair) for pair in zip(self, others, strict=True)))

    def mixed(self, other: Ints, rng: np.random.Generator) -> Parts:
        """Each with another, in shares drawn from Beta(10 sigmoid(-cosine of mean attributes), 1)."""
        unit = F.normalize(self.mean)
        likeness = torch.sigmoid(-(unit * unit[other]).sum(dim=1)).numpy()
        b, s = self.there.shape
        rows, edges = (
            torch.from_numpy(rng.beta(CONCENTRATION * likeness[:, None, None], 1.0, size).astype(np.float32))
            for size in ((b, s, 1), (b, s, s))
        )
        at = torch.from_numpy(other)
        xw, adj = (own.index_select(0, at).lerp(own, share) for share, own in ((rows, self.xw), (edges, self.adj)))
        return Parts(xw, adj, torch.maximum(self.there, self.there[other]), self.mean)


def normalised(adj: Tensor) -> Tensor:
    """D^-1/2 (A + I) D^-1/2 of each of several dense matrices."""
    closed = adj + torch.eye(adj.shape[1])
    scale = closed.sum(dim=2) ** -0.5
    return scale[:, :, None] * closed * scale[:, None, :]


class Subgraphs:
    """Of each node itself and the nodes that random walks from it visit most, by visits over degree."""

    def __init__(self, graph: Graph, size: int) -> None:
        both = undirected(graph)
        self.adj, self.n, count = both.adj, graph.n, min(size, graph.n) - 1
        walk, degree = random_walk(both), both.strength.astype(np.float64)
        others = most_visited(walk.indptr, walk.indices, walk.data, degree, RETURN, TOLERANCE, count)
        self.place = np.column_stack([np.arange(graph.n), others])

    def edges(self, place: Ints) -> Float[Tensor, "b s s"]:
        """Of the nodes at these places among each other, densely."""
        b, s = place.shape
        arcs = self.adj[np.maximum(place, 0).reshape(-1)].tocoo()
        row, column = arcs.coords
        key = (np.arange(b)[:, None] * self.n + place).reshape(-1)
        order = np.argsort(key, kind="stable")
        wanted = row // s * self.n + column
        at = order[np.minimum(np.searchsorted(key[order], wanted), key.size - 1)]
        hit = (key[at] == wanted) & (place.reshape(-1)[row] >= 0) & (place.reshape(-1)[at] >= 0)
        found = np.zeros((b, s, s), np.float32)
        found[row[hit] // s, row[hit] % s, at[hit] % s] = arcs.data[hit]
        return torch.from_numpy(found)

    def of(self, nodes: Ints, x: CSR | Tensor, weight: Tensor) -> Parts:
        place = self.place[nodes]
        b, s = place.shape
        held = place >= 0
        seen, at = np.unique(np.maximum(place, 0), return_inverse=True)  # subgraphs share nodes: X W once for each
        rows, first = taken(x, seen), np.arange(b * s)
        placed = CSR(first, first + held.reshape(-1), at.reshape(-1), np.ones(b * s, np.float32), (b * s, seen.size))
        there = torch.from_numpy(held.astype(np.float32))
        share = (there / there.sum(dim=1, keepdim=True)).reshape(-1).numpy()
        mean = sp.csr_array((share, at.reshape(-1), np.arange(0, b * s + 1, s)), shape=(b, seen.size))
        dense = mean @ (rows.scipy if isinstance(rows, CSR) else rows.numpy())
        means = torch.from_numpy(np.asarray(dense.todense() if sp.issparse(dense) else dense))
        return Parts((placed @ (rows @ weight)).reshape(b, s, -1), self.edges(place), there, means)

    @cached_property
    def central(self) -> CSR:
        """Row i is the row of node i in Â of its subgraph."""
        parts = []
        for first in range(0, self.n, ROWS):
            place = self.place[first : first + ROWS]
            values = normalised(self.edges(place))[:, 0].numpy()
            row, at = np.nonzero(place >= 0)
            entries = (values[row, at], (row, place[row, at]))
            parts.append(sp.csr_array(entries, shape=(len(place), self.n)))
        return CSR.of(sp.vstack(parts, format="csr"), torch.float32)
