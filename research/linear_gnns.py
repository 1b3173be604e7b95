"""Linear GNNs in closed form, as GraphAny has them (Zhao et al., ICLR 2025, section 3.1)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp
from scipy.special import softmax

import fewnode
from probe import attributes, undirected

CHANNELS = {"x": (0, False), "sgc1": (1, False), "sgc2": (2, False), "hgc1": (1, True), "hgc2": (2, True)}
"""Linear, LinearSGC1, LinearSGC2, LinearHGC1 and LinearHGC2: steps of the filter, and whether it is I - P or P."""
RANK_TOLERANCE = 1e-6


class LinearGNNs:
    """Ŷ = F F_L^+ Y_L for each of several filters F = M X, and the mean of their answers. P is D^-1 A.

    It is not GraphAny itself. There an attention over five answers, learned on another network, weighs them for each
    node; here each of the `channels` counts alike. github.com/DeepGraphLearning/GraphAny, configs/model.yaml, too,
    lets three channels answer. Answers of a regression are no probabilities: the softmax of them, times `sharpness`,
    is given for such.
    """

    needs_base = False

    def __init__(self, channels: Sequence[str] = ("x", "sgc1", "sgc2"), sharpness: float = 10.0) -> None:
        self.channels, self.sharpness = tuple(channels), sharpness
        if not self.channels or not set(self.channels) <= set(CHANNELS):
            raise fewnode.FewnodeError(f"channels are {list(channels)}, expected some of {', '.join(CHANNELS)}")

    def fit(self, graph, train, valid):
        """There is nothing to learn."""
        return self

    def predict_proba(self, graph: fewnode.Graph, task: fewnode.Task) -> np.ndarray:
        x, adj = attributes(graph).astype(np.float64), undirected(graph).astype(np.float64)
        degree = adj.sum(axis=1)
        walk = sp.csr_array(sp.diags_array(1 / np.where(degree > 0, degree, 1)) @ adj)
        answers = [linear_gnn(x, walk, *CHANNELS[name], task) for name in self.channels]
        return softmax(self.sharpness * np.mean(answers, axis=0), axis=1).astype(np.float32)


def linear_gnn(x: sp.csr_array, walk: sp.csr_array, steps: int, high_pass: bool, task: fewnode.Task) -> np.ndarray:
    """Ŷ of the queries: Eqs. (2)-(3). Least squares on the labelled rows, of least norm among equals."""

    def filtered(h, matrix):
        for _ in range(steps):
            h = h - matrix @ h if high_pass else matrix @ h
        return h

    marks = np.zeros((x.shape[0], task.support.size))
    marks[task.support, np.arange(task.support.size)] = 1
    labelled = (x.T @ filtered(marks, walk.T)).T  # the rows of F = M X alone: F is not formed
    weight = np.linalg.pinv(labelled, rcond=RANK_TOLERANCE) @ np.eye(task.n_way)[task.support_y]
    return filtered(x @ weight, walk)[task.query]
