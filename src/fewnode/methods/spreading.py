"""Labels that spread over the graph: label spreading, and Correct and Smooth on top of logistic regression.

Both answer for all nodes at once: a node's answer does not depend on which others are asked about.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import scipy.sparse as sp
from torch import Tensor

from fewnode.episodes import EpisodeSampler, Task
from fewnode.errors import FewnodeError
from fewnode.graph import Graph
from fewnode.method import Probabilities
from fewnode.methods.linear import Floats, one_hot, undirected
from fewnode.methods.logistic import Logistic
from fewnode.storage.checkpoint import need_shapes

TOLERANCE = 1e-6


def similarity(graph: Graph) -> sp.csr_array:
    """S = D^-1/2 A D^-1/2 without self-loops. An edge counts both ways: S has to be symmetric."""
    adj = undirected(graph).adj
    scale = 1 / np.sqrt(np.maximum(np.diff(adj.indptr), 1))
    values = np.repeat(scale, np.diff(adj.indptr)) * scale[adj.indices]
    return sp.csr_array((values, adj.indices, adj.indptr), adj.shape)


def spread(s: sp.csr_array, seeds: Floats, alpha: float) -> Floats:
    """(1 - α) (I - α S)^-1 Y: where F ← α S F + (1 - α) Y comes to rest. By conjugate gradients, column by column."""
    from scipy.sparse.linalg import cg  # takes a tenth of a second to import

    system = sp.eye_array(s.shape[0], format="csr") - alpha * s
    found = np.empty_like(seeds)
    for column in range(seeds.shape[1]):
        found[:, column], stopped = cg(system, (1 - alpha) * seeds[:, column], rtol=TOLERANCE, maxiter=10_000)
        if stopped:
            raise FewnodeError(f"spreading did not come to rest; try an alpha below {alpha}")
    return found


def check_alpha(name: str, alpha: float) -> None:
    if not 0 <= alpha < 1:
        raise FewnodeError(f"{name} is {alpha}, expected 0 to below 1")


class LabelSpreading:
    """Zhou et al., *Learning with local and global consistency* (NIPS 2004): F* = (I - αS)^-1 Y, rows made to sum to 1.

    It reads the graph alone. A node that no label reaches is in each class with the same probability.
    """

    _seen: tuple[Graph, sp.csr_array] | None = None

    needs_base = False

    def __init__(self, alpha: float = 0.9) -> None:
        self.alpha = alpha

    def fit(self, graph: Graph, train: EpisodeSampler, valid: EpisodeSampler) -> LabelSpreading:
        """There is nothing to learn."""
        check_alpha("alpha", self.alpha)
        return self

    def predict_proba(self, graph: Graph, task: Task) -> Probabilities:
        if self._seen is None or self._seen[0] is not graph:
            self._seen = (graph, similarity(graph))
        seeds = np.zeros((graph.n, task.n_way))
        seeds[task.support, task.support_y] = 1
        return _shares(spread(self._seen[1], seeds, self.alpha)[task.query])

    def state(self) -> dict[str, Tensor]:
        return {}

    def restore(self, n_features: int, state: Mapping[str, Tensor]) -> LabelSpreading:
        """Become the method that gave `state`."""
        check_alpha("alpha", self.alpha)
        need_shapes(state, {})
        return self


class CorrectAndSmooth:
    """Huang et al., *Combining label propagation and simple models out-performs graph neural networks* (ICLR 2021).

    The simple model is `Logistic`. Its errors on the support set are spread (`correct`, section 2.2, with the scaling
    that the paper calls autoscale), then the corrected probabilities are (`smooth`, section 2.3). The paper tunes both
    strengths for each network; there is nothing to tune them by here.
    """

    _seen: tuple[Graph, sp.csr_array] | None = None

    needs_base = False

    def __init__(
        self, correct: float = 0.5, smooth: float = 0.5, steps: int = 2, scaling: str = "tf-idf", c: float = 1000.0
    ) -> None:
        self.correct, self.smooth = correct, smooth
        self.steps, self.scaling, self.c = steps, scaling, c

    def fit(self, graph: Graph, train: EpisodeSampler, valid: EpisodeSampler) -> CorrectAndSmooth:
        self._check()
        self.base_ = Logistic(self.steps, self.scaling, self.c).fit(graph, train, valid)
        return self

    def _check(self) -> None:
        check_alpha("correct", self.correct)
        check_alpha("smooth", self.smooth)

    def predict_proba(self, graph: Graph, task: Task) -> Probabilities:
        if self._seen is None or self._seen[0] is not graph:
            self._seen = (graph, similarity(graph))
        s, y = self._seen[1], one_hot(task.support_y)
        z = self.base_.of_nodes(graph, task.support, task.support_y)
        error = np.zeros_like(z)
        error[task.support] = y - z[task.support]
        size = np.abs(error[task.support]).sum(axis=1).mean()
        spreading = spread(s, error, self.correct)
        length = np.abs(spreading).sum(axis=1, keepdims=True)
        corrected = z + np.where(length > TOLERANCE, size * spreading / np.maximum(length, TOLERANCE), 0)
        corrected[task.support] = y
        return _shares(spread(s, corrected, self.smooth)[task.query])

    def state(self) -> dict[str, Tensor]:
        return self.base_.state()

    def restore(self, n_features: int, state: Mapping[str, Tensor]) -> CorrectAndSmooth:
        """Become the method that gave `state`."""
        self._check()
        self.base_ = Logistic(self.steps, self.scaling, self.c).restore(n_features, state)
        return self


def _shares(f: Floats) -> Probabilities:
    """Rows that sum to 1. What is below zero counts as nothing; a row of nothing is the same for each class."""
    f = np.maximum(f, 0)
    total = f.sum(axis=1, keepdims=True)
    return np.where(total > 0, f / np.where(total > 0, total, 1), 1 / f.shape[1]).astype(np.float32)
