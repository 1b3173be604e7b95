"""Label spreading: Zhou et al., Learning with local and global consistency (NIPS 2004)."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

import fewnode
from probe import undirected

ERROR = 1e-9


def similarity(graph: fewnode.Graph) -> sp.csr_array:
    """S = D^-1/2 A D^-1/2, without self-loops."""
    adj = undirected(graph)
    degree = adj.sum(axis=1)
    scale = sp.diags_array(1 / np.sqrt(np.where(degree > 0, degree, 1)))
    return scale @ adj @ scale


def spread(s: sp.csr_array, seeds: np.ndarray, alpha: float) -> np.ndarray:
    """Where F ← α S F + (1 - α) Y comes to rest: (1 - α) (I - α S)^-1 Y."""
    if not 0 <= alpha < 1:
        raise fewnode.FewnodeError(f"alpha is {alpha}, expected 0 to below 1")
    f, left = seeds, 1.0
    while left > ERROR:
        f, left = alpha * (s @ f) + (1 - alpha) * seeds, alpha * left
    return f


def shares(f: np.ndarray) -> np.ndarray:
    """Rows that sum to 1. What is below zero counts as nothing; a row of nothing is the same for each class."""
    f = np.maximum(f, 0)
    total = f.sum(axis=1, keepdims=True)
    return np.where(total > 0, f / np.where(total > 0, total, 1), 1 / f.shape[1]).astype(np.float32)


class LabelSpreading:
    """It reads the graph alone. A node that no label reaches is in each class with the same probability.

    The paper takes α = 0.99 for 8 to 100 labels; with fewer 0.9 is better.
    """

    needs_base = False

    def __init__(self, alpha: float = 0.9) -> None:
        self.alpha = alpha

    def fit(self, graph, train, valid):
        """There is nothing to learn."""
        return self

    def predict_proba(self, graph: fewnode.Graph, task: fewnode.Task) -> np.ndarray:
        seeds = np.zeros((graph.n, task.n_way))
        seeds[task.support, task.support_y] = 1
        return shares(spread(similarity(graph), seeds, self.alpha)[task.query])
