"""Attributes made from the structure alone, for networks that have none and methods that need some."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp

from fewnode.embedding.attributes import unit_rows
from fewnode.embedding.directions import leading_rows
from fewnode.engine.sparse import normalised
from fewnode.errors import FewnodeError, closest
from fewnode.graph import Attributes, Graph
from fewnode.methods.walks import Walks

DEGREE_BINS = 20
"""Degrees 0, 1, 2-3, 4-7 … and from 2^18 on."""
RANK, ROUNDS = 128, 4


def structural_features(graph: Graph, kind: str, seed: int = 0) -> Graph:
    """A graph whose attributes are made from its structure; those it has are not looked at.

    `degree` has the same columns and means the same in every network, so what is learned from it carries over.
    `svd` and `walks` are coordinates within this one network: a model that learned from them is of no use elsewhere.
    """
    make: dict[str, Callable[[Graph, int], Attributes]] = {
        "degree": lambda graph, _: degree_features(graph),
        "svd": svd_features,
        "walks": lambda graph, seed: Walks(seed=seed).vectors(graph),  # DeepWalk's, as they are
    }
    if kind not in make:
        raise FewnodeError(f"unknown features {kind!r}{closest(kind, make)}; known are {', '.join(make)}")
    return Graph(graph.adj, make[kind](graph, seed), relations=graph.relations)


def degree_features(graph: Graph) -> Attributes:
    """The in-degree as one of `DEGREE_BINS`, doubling in width, and four local statistics, in this order:

    log(1 + in-degree), log(1 + out-degree), mean and maximum of log(1 + in-degree) over the nodes that a node
    aggregates from (0 without any).
    """
    incoming, outgoing = graph.degree, np.bincount(graph.adj.indices, minlength=graph.n)
    bins = np.eye(DEGREE_BINS, dtype=np.float32)[np.minimum(np.frexp(incoming)[1], DEGREE_BINS - 1)]
    level = np.log1p(incoming)
    around = sp.csr_array((level[graph.adj.indices], graph.adj.indices, graph.adj.indptr), graph.adj.shape)
    mean = around.sum(axis=1) / np.maximum(incoming, 1)
    top = around.max(axis=1).toarray() if graph.adj.nnz else np.zeros(graph.n)
    local = np.stack([level, np.log1p(outgoing), mean, top], axis=1)
    return np.concatenate([bins, local.astype(np.float32)], axis=1)


def svd_features(graph: Graph, seed: int) -> Attributes:
    """Rows of U S, the leading singular vectors and values of Â, scaled to length 1.

    Without that scaling a few nodes outweigh all others: singular vectors of a sparse graph are near zero but for a
    handful of rows.
    """
    adj = normalised(graph, np.float32)
    return unit_rows(leading_rows(adj, RANK, seed, not graph.directed, ROUNDS).whole())
