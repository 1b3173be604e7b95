"""Correct and Smooth: Huang et al., Combining label propagation and simple models (ICLR 2021)."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

import fewnode
from label_spreading import shares, similarity, spread
from probe import attributes, idf, linear_head, normalised

COLUMNS = 512
"""Of Â² X that are in memory at a time."""
SHORT = 1e-6


class CorrectAndSmooth:
    """The errors of a simple model on the support are spread (`correct`), then its corrected answers are (`smooth`).

    The simple model is logistic regression on rows of Â² X, tf-idf, at length 1 and centred. Errors are scaled as the
    paper's autoscale does. The paper tunes both strengths for each network; there is nothing to tune them by here.
    """

    needs_base = False

    def __init__(self, correct: float = 0.5, smooth: float = 0.5, c: float = 1000.0) -> None:
        self.correct, self.smooth, self.c = correct, smooth, c

    def fit(self, graph, train, valid):
        self.idf_ = idf(graph)
        return self

    def predict_proba(self, graph: fewnode.Graph, task: fewnode.Task) -> np.ndarray:
        return self.predict_tasks(graph, [task])[0]

    def predict_tasks(self, graph: fewnode.Graph, tasks: list[fewnode.Task]) -> list[np.ndarray]:
        rows, s = PropagatedRows(graph, attributes(graph, self.idf_)), similarity(graph)
        return [self._answer(rows, s, task) for task in tasks]

    def _answer(self, rows: PropagatedRows, s: sp.csr_array, task: fewnode.Task) -> np.ndarray:
        y, n = np.eye(task.n_way)[task.support_y], s.shape[0]
        everyone = fewnode.Task(task.support, task.support_y, np.arange(n))
        z = linear_head(rows.along_span_of(task.support), everyone, self.c).astype(np.float64)
        error = np.zeros_like(z)
        error[task.support] = y - z[task.support]
        size = np.abs(error[task.support]).sum(axis=1).mean()
        moved = spread(s, error, self.correct)
        length = np.abs(moved).sum(axis=1, keepdims=True)
        z += np.where(length > SHORT, size * moved / np.maximum(length, SHORT), 0)
        z[task.support] = y
        return shares(spread(s, z, self.smooth)[task.query])


class PropagatedRows:
    """Rows of Â² X at length 1, less their mean, at length 1 again; they are never formed, for they are dense.

    Row i is scale_i (Â² X)_i - shift_i mean.
    """

    def __init__(self, graph: fewnode.Graph, x: sp.csr_array) -> None:
        self.adj, self.x = normalised(graph.adj).astype(np.float64), x.astype(np.float64)
        squares, columns = np.zeros(graph.n), sp.csc_array(self.x)
        for first in range(0, x.shape[1], COLUMNS):
            part = self.adj @ (self.adj @ columns[:, first : first + COLUMNS].toarray())
            squares += np.square(part).sum(axis=1)
        known = squares > 0
        scale = np.where(known, 1 / np.sqrt(np.where(known, squares, 1)), 0)
        self.mean = self.x.T @ (self.adj.T @ (self.adj.T @ scale)) / max(1, known.sum())
        along = scale * (self.adj @ (self.adj @ (self.x @ self.mean)))
        left = np.sqrt(np.maximum(1 - 2 * along + self.mean @ self.mean, 0))
        self.shift = np.where(known & (left > SHORT), 1 / np.maximum(left, SHORT), 0)
        self.scale = scale * self.shift

    def along_span_of(self, nodes: np.ndarray) -> np.ndarray:
        """Every row, along orthonormal directions that span those of some nodes: all that a linear model needs."""
        rows = (self.adj[nodes] @ self.adj @ self.x).toarray()
        rows = self.scale[nodes, None] * rows - self.shift[nodes, None] * self.mean
        span = np.linalg.qr(rows.T)[0]
        h = self.adj @ (self.adj @ (self.x @ span))
        return self.scale[:, None] * h - self.shift[:, None] * (self.mean @ span)
