"""Logistic regression, on propagated attributes and on whatever vectors nodes have: what a practitioner tries first.

A linear model with an L2 penalty has its weights in the span of the rows that it is trained on. A task has few labelled
rows, so each node needs a handful of coordinates: M X is never formed, only M (X V).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from fewnode.embedding.attributes import inverse_document_frequency, need_attributes, scale
from fewnode.engine.sparse import normalised
from fewnode.episodes import EpisodeSampler, Task
from fewnode.errors import FewnodeError
from fewnode.formats.directory import need_shapes
from fewnode.graph import Attributes, Graph, Ints, is_sparse
from fewnode.vectors import Probabilities

MAX_STEPS = 1000
RANK_TOLERANCE = 1e-6
"""Directions shorter than this share of the longest are rounding errors of float32 attributes."""
COLUMNS = 256
"""Of M X that are in memory at a time."""
Floats = NDArray[np.float64]


class Logistic:
    """SGC (Wu et al., ICML 2019): softmax(Â^steps X W + b), trained on the support set alone.

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
        if task.n_way == 1 or task.query.size == 0:
            return np.ones((task.query.size, task.n_way), np.float32)
        h = coordinates(*self._read(graph), task.support)
        return logistic(h[task.support], task.support_y, h[task.query], self.c)

    def _read(self, graph: Graph) -> tuple[Attributes, Filter, Rescaling]:
        if self._seen is None or self._seen[0] is not graph:
            x, filtered = scale(graph.x, self.scaling, self.idf_), Filter(normalised(graph), self.steps)
            self._seen = (graph, x, filtered, Rescaling.of(x, filtered, self.centre))
        return self._seen[1:]

    def state(self) -> dict[str, NDArray[Any]]:
        return {} if self.idf_ is None else {"idf": self.idf_}

    def restore(self, n_features: int, state: Mapping[str, NDArray[Any]]) -> Logistic:
        """Become the method that gave `state`."""
        self._check()
        need_shapes(state, {"idf": (n_features,)} if "idf" in self.scaling else {})
        self.idf_, self._seen = (np.asarray(state["idf"]) if "idf" in self.scaling else None), None
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
    `embedding.diffusion.centred` does, for rows that are never formed. An empty row stays empty.
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


# --- the regression -----------------------------------------------------------------------------------------------


def logistic_heads(z: NDArray[np.floating[Any]], tasks: Sequence[Task], c: float) -> list[Probabilities]:
    """Multinomial logistic regression on each task's rows of z, along the directions that its support spans."""
    answers = []
    for task in tasks:
        rows = z[task.support].astype(np.float64)
        along = np.linalg.qr(rows.T)[0] if rows.shape[1] > rows.shape[0] else np.eye(rows.shape[1])
        answers.append(logistic(rows @ along, task.support_y, z[task.query].astype(np.float64) @ along, c))
    return answers


def logistic(rows: Floats, y: Ints, query: Floats, c: float) -> Probabilities:
    """P(class) of the query rows, by the W, b that minimise c Σ s_i loss_i + |W|² / 2 on the others.

    s makes classes count alike. Intercepts are not penalised.
    """
    from scipy.optimize import minimize  # a fifth of a second

    k, n_way = rows.shape[0], int(y.max()) + 1
    x, truth = np.column_stack([rows, np.ones(k)]), np.eye(n_way)[y]
    c = c / 2 if n_way == 2 else c  # as scikit-learn, which penalises the difference of the two vectors
    s, penalty = c * k / n_way / truth.sum(axis=0)[y], np.append(np.ones(rows.shape[1]), 0)[:, None]

    def loss_and_slope(flat: Floats) -> tuple[float, Floats]:
        w = flat.reshape(-1, n_way)
        score = x @ w
        score -= score.max(axis=1, keepdims=True)
        odds = np.exp(score)
        total = odds.sum(axis=1, keepdims=True)
        loss = s @ (np.log(total[:, 0]) - (score * truth).sum(axis=1)) + (penalty * w * w).sum() / 2
        return float(loss), (x.T @ (s[:, None] * (odds / total - truth)) + penalty * w).ravel()

    exact = {"maxiter": 5000, "maxfun": 20_000, "ftol": 1e-15, "gtol": 1e-7, "maxcor": 30}
    found = minimize(loss_and_slope, np.zeros(x.shape[1] * n_way), jac=True, method="L-BFGS-B", options=exact)
    asked = np.column_stack([query, np.ones(len(query))])
    return softmax(asked @ found.x.reshape(-1, n_way)).astype(np.float32)


def softmax(score: Floats) -> Floats:
    found = np.exp(score - score.max(axis=-1, keepdims=True))
    return np.asarray(found / found.sum(axis=-1, keepdims=True))
