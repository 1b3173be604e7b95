"""Which nodes are most similar to a node: by attributes, or by where random walks from it end."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from fewnode.graph import Attributes, Ints, is_sparse
from fewnode.represent.attributes import unit_rows

Similarities: TypeAlias = NDArray[np.float32]
"""A row for each of some nodes, a column for every node."""


def cosines(x: Attributes, nodes: Ints) -> Similarities:
    """Of these nodes' rows of X with all rows."""
    rows = unit_rows(x)
    if is_sparse(rows):
        found: Similarities = (rows[nodes] @ rows.T.tocsr()).toarray()  # most pairs have few columns in common
        return found
    return np.ascontiguousarray((rows @ rows[nodes].T).T, np.float32)


def personalised_pagerank(matrix: sp.csr_array, nodes: Ints, alpha: float, terms: int) -> Similarities:
    """Where walks over M from each node are, if they return to it with probability alpha: alpha Σ (1 - alpha)^k M^k."""
    start = np.zeros((matrix.shape[0], nodes.size), np.float32)
    start[nodes, np.arange(nodes.size)] = 1
    h = start
    for _ in range(terms):
        h = (1 - alpha) * (matrix @ h) + alpha * start
    return np.ascontiguousarray(h.T)


def most_similar(similarities: Similarities, nodes: Ints, count: int) -> Ints:
    """The `count` nodes with the highest similarity to each, the highest first, without itself. Overwrites them."""
    similarities[np.arange(nodes.size), nodes] = -np.inf
    lowest_first = np.negative(similarities, out=similarities)
    found = np.argpartition(lowest_first, count - 1, axis=1)[:, :count]
    order = np.argsort(np.take_along_axis(lowest_first, found, axis=1), axis=1, kind="stable")
    return np.take_along_axis(found, order, axis=1).astype(np.int64)
