"""What COSMIC contrasts: of each node a small subgraph, the nodes that random walks from it visit most."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

import fewnode
from probe import undirected

RETURN, TOLERANCE, ROWS = 0.15, 1e-4, 512
"""Of personalised PageRank; of visits over degree; nodes whose walks are in memory at a time."""


class Subgraphs(NamedTuple):
    """A row for each node: the nodes of its subgraph, itself first, then -1; and the edges among them."""

    nodes: np.ndarray
    adj: np.ndarray


@lru_cache(maxsize=1)  # fitting and answering read the same graph
def subgraphs(graph: fewnode.Graph, size: int) -> Subgraphs:
    adj = undirected(graph)
    degree = adj.sum(axis=1).astype(np.float64)
    degree = np.where(degree > 0, degree, 1)
    walk = sp.csr_array(sp.diags_array(1 / degree) @ adj)
    size = min(size, graph.n)
    nodes, dense = np.full((graph.n, size), -1), np.zeros((graph.n, size, size), np.float32)
    for first in range(0, graph.n, ROWS):
        rows = np.arange(first, min(first + ROWS, graph.n))
        nodes[rows] = most_visited(visits(walk, degree, rows) @ sp.diags_array(1 / degree), rows, size)
        dense[rows] = edges_among(adj, nodes[rows])
    return Subgraphs(nodes, dense)


def visits(walk: sp.csr_array, degree: np.ndarray, rows: np.ndarray) -> sp.csr_array:
    """How often walks that begin at each of the rows visit each node, if they return with probability 0.15.

    What is still to be spread from a node is pushed on while it is at least `TOLERANCE` times its degree (Andersen,
    Chung & Lang, FOCS 2006).
    """
    n = walk.shape[0]
    left = sp.csr_array((np.ones(rows.size), rows, np.arange(rows.size + 1)), shape=(rows.size, n))
    counted = sp.csr_array((rows.size, n))
    while left.nnz:
        pushed = left.copy()
        pushed.data *= left.data >= TOLERANCE * degree[left.indices]
        pushed.eliminate_zeros()
        if pushed.nnz == 0:
            break
        counted = counted + RETURN * pushed
        left = left - pushed + (1 - RETURN) * (pushed @ walk)
    return sp.csr_array(counted + RETURN * left)


def most_visited(score: sp.csr_array, rows: np.ndarray, size: int) -> np.ndarray:
    """Each node, and the others with the highest scores; -1 where walks reach no more."""
    nodes = np.full((rows.size, size), -1)
    nodes[:, 0] = rows
    for i, row in enumerate(rows):
        part = slice(score.indptr[i], score.indptr[i + 1])
        others, scores = score.indices[part], score.data[part]
        others, scores = others[others != row], scores[others != row]
        best = others[np.lexsort((others, -scores))[: size - 1]]
        nodes[i, 1 : 1 + best.size] = best
    return nodes


def edges_among(adj: sp.csr_array, nodes: np.ndarray) -> np.ndarray:
    dense = np.zeros((*nodes.shape, nodes.shape[1]), np.float32)
    for i, row in enumerate(nodes):
        here = row[row >= 0]
        dense[i, : here.size, : here.size] = adj[here][:, here].toarray()
    return dense
