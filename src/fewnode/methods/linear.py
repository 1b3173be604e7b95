"""Logistic regression on propagated attributes: what a practitioner tries first.

A linear model with an L2 penalty has its weights in the span of the rows that it is trained on. A task has few labelled
rows, so each node needs a handful of coordinates: M X is never formed, only M (X V).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor

from fewnode.engine.sparse import normalised
from fewnode.episodes import EpisodeSampler, Task
from fewnode.errors import FewnodeError
from fewnode.graph import Attributes, Graph, Ints, is_sparse
from fewnode.method import Probabilities
from fewnode.represent.attributes import inverse_document_frequency, need_attributes, scale
from fewnode.storage.checkpoint import need_shapes

MAX_STEPS = 1000
RANK_TOLERANCE = 1e-6
"""Directions shorter than this share of the longest are rounding errors of float32 attributes."""
COLUMNS = 256
"""Of M X that are in memory at a time."""
Floats = NDArray[np.float64]


class Logistic:
    """SGC (Wu et al., ICML 2019): softmax(Â^steps X W + b), trained on the support set alone, by scikit-learn.

    No base class is needed, and none is looked at. Rows of Â^steps X are brought to unit length: a few support nodes
    would else be told apart by how many neighbours they have. With `centre`, what all nodes have in common is taken
    off, as in `nearest-mean`. `c` is the inverse strength of the L2 penalty. Classes count alike, however many support
    nodes each has. How rare an attribute is, is learned from the network of `fit`.
    """

    _seen: tuple[Graph, Attributes, Filter, Rescaling] | None = None

    needs_base = False

    def __init__(self, steps: int = 2, scaling: str = "tf-idf", c: float = 1000.0, centre: bool = True) -> None:
        self.steps, self.scaling, self.c, self.centre = steps, scaling, c, centre

    def fit(self, graph: Graph, train: EpisodeSampler, valid: EpisodeSampler) -> Logistic:
        """Look at the attributes; no episode is looked at."""
        self._check()
        need_attributes(graph)
        self.idf_ = inverse_document_frequency(graph.x) if "idf" in self.scaling else None
        scale(graph.x[:1], self.scaling, self.idf_)  # an unknown scaling is refused here
        self._seen = None
        return self

    def _check(self) -> None:
        if not 0 <= self.steps <= MAX_STEPS:
            raise FewnodeError(f"{self.steps} steps, expected 0 to {MAX_STEPS}")
        if not 0 < self.c < math.inf:
            raise FewnodeError(f"c is {self.c}, expected a number above 0")

    def predict_proba(self, graph: Graph, task: Task) -> Probabilities:
        from sklearn.linear_model import LogisticRegression  # costs a second to import

        if task.n_way == 1 or task.query.size == 0:
            return np.ones((task.query.size, task.n_way), np.float32)
        h = coordinates(*self._read(graph), task.support)
        h = h if h.shape[1] else np.zeros((graph.n, 1))  # rows of the support may all be empty
        # newton-cg, for lbfgs stops three digits short of the optimum
        model = LogisticRegression(C=self.c, class_weight="balanced", solver="newton-cg", tol=1e-6, max_iter=1000)
        answers = model.fit(h[task.support], task.support_y).predict_proba(h[task.query])
        return np.asarray(answers, np.float32)

    def _read(self, graph: Graph) -> tuple[Attributes, Filter, Rescaling]:
        if self._seen is None or self._seen[0] is not graph:
            x, filtered = scale(graph.x, self.scaling, self.idf_), Filter(normalised(graph), self.steps)
            self._seen = (graph, x, filtered, Rescaling.of(x, filtered, self.centre))
        return self._seen[1:]

    def state(self) -> dict[str, Tensor]:
        return {} if self.idf_ is None else {"idf": torch.from_numpy(self.idf_)}

    def restore(self, n_features: int, state: Mapping[str, Tensor]) -> Logistic:
        """Become the method that gave `state`."""
        self._check()
        need_shapes(state, {"idf": (n_features,)} if "idf" in self.scaling else {})
        self.idf_ = state["idf"].numpy() if "idf" in self.scaling else None
        self._seen = None
        return self


class Filter(NamedTuple):
    """M = P^steps for a propagation matrix P of the graph."""

    matrix: sp.csr_array
    steps: int

    def __call__(self, h: Floats) -> Floats:
        for _ in range(self.steps):
            h = self.matrix @ h
        return h

    @property
    def transposed(self) -> Filter:
        return self._replace(matrix=self.matrix.T)


class Rescaling(NamedTuple):
    """Rows h of M X become scale h - shift mean.

    They are of unit length; if centred, that less their mean, and of unit length again. It is what
    `represent.diffusion.centred` does, for rows that are never formed. An empty row stays empty.
    """

    scale: Floats
    shift: Floats
    mean: Floats

    @classmethod
    def of(cls, x: Attributes, filtered: Filter, centre: bool) -> Rescaling:
        length = row_lengths(x, filtered)
        scale = np.where(length > 0, 1 / np.maximum(length, 1e-30), 0)
        known = int(np.count_nonzero(length))
        mean: Floats = x.T @ filtered.transposed(scale[:, None])[:, 0] / max(1, known)
        if not centre:
            return cls(scale, np.zeros_like(scale), mean)
        along = scale * filtered(np.asarray(x @ mean, np.float64)[:, None])[:, 0]
        left = np.sqrt(np.maximum(1 - 2 * along + mean @ mean, 0))  # the length of a unit row less the mean
        again = np.where((length > 0) & (left > RANK_TOLERANCE), 1 / np.maximum(left, RANK_TOLERANCE), 0)
        return cls(scale * again, again, mean)


def coordinates(x: Attributes, filtered: Filter, rescaling: Rescaling, support: Ints) -> Floats:
    """Every node's row of M X, rescaled, along orthonormal directions V that span those of the support: n x rank."""
    marks = np.zeros((x.shape[0], support.size))
    marks[support, np.arange(support.size)] = 1
    rows = (x.T @ filtered.transposed(marks)).T
    rows = rescaling.scale[support, None] * rows - rescaling.shift[support, None] * rescaling.mean
    _, size, directions = np.linalg.svd(rows, full_matrices=False)
    kept = directions[size > RANK_TOLERANCE * max(float(size.max(initial=0)), 1e-30)]
    h = filtered(np.asarray(x @ kept.T, np.float64))
    scaled: Floats = rescaling.scale[:, None] * h - rescaling.shift[:, None] * (rescaling.mean @ kept.T)
    return scaled


def row_lengths(x: Attributes, filtered: Filter) -> Floats:
    """The length of every row of M X, from a few of its columns at a time."""
    squares = np.zeros(x.shape[0])
    columns = x.tocsc() if is_sparse(x) else x
    for first in range(0, x.shape[1], COLUMNS):
        part = columns[:, first : first + COLUMNS]
        squares += np.square(filtered(np.asarray(part.todense() if is_sparse(part) else part, np.float64))).sum(axis=1)
    return np.sqrt(squares)
