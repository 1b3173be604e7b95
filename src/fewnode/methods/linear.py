"""Logistic regression, on propagated attributes and on whatever vectors nodes have: what a practitioner tries first.

A linear model with an L2 penalty has its weights in the span of the rows that it is trained on. A task has few labelled
rows, so each node needs a handful of coordinates: M X is never formed, only M (X V).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from fewnode._system.kept import Kept
from fewnode.embedding.attributes import inverse_document_frequency, need_attributes, scale
from fewnode.engine.sparse import normalised
from fewnode.episodes import Task, TaskSampler
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


@dataclass(eq=False)
class Logistic:
    """SGC (Wu et al., ICML 2019): softmax(Â^steps X W + b), trained on the support set alone.

    No base class is needed, and none is looked at. Rows of Â^steps X are brought to unit length: a few support nodes
    would else be told apart by how many neighbours they have. With `centre`, what all nodes have in common is taken
    off, as in `nearest-mean`. `c` is the inverse strength of the L2 penalty. Classes count alike, however many support
    nodes each has. How rare an attribute is, is learned from the network of `fit`.
    """

    needs_base = False

    steps: int = 2
    scaling: str = "tf-idf"
    c: float = 1000.0
    centre: bool = True
    _kept: Kept = field(default_factory=lambda: Kept(1), init=False, repr=False)

    def fit(self, graph: Graph, train: TaskSampler, valid: TaskSampler) -> Logistic:
        """Look at the attributes; no episode is looked at."""
        self._check()
        need_attributes(graph)
        self.idf_, self._kept = inverse_document_frequency(graph.x) if "idf" in self.scaling else None, Kept(1)
        scale(graph.x[:1], self.scaling, self.idf_)  # an unknown scaling is refused here
        return self

    def _check(self) -> None:
        if not 0 <= self.steps <= MAX_STEPS:
            raise FewnodeError(f"{self.steps} steps, expected 0 to {MAX_STEPS}")
        if not 0 < self.c < math.inf:
            raise FewnodeError(f"c is {self.c}, expected a number above 0")

    def predict_proba(self, graph: Graph, task: Task) -> Probabilities:
        def made() -> SmoothRows:
            return SmoothRows.of(normalised(graph), self.steps, scale(graph.x, self.scaling, self.idf_), self.centre)

        h = self._kept(graph.fingerprint, made).coordinates(task.support)
        return logistic(h[task.support], task.support_y, h[task.query], self.c)

    def state(self) -> dict[str, NDArray[Any]]:
        return {} if self.idf_ is None else {"idf": self.idf_}

    def restore(self, n_features: int, state: Mapping[str, NDArray[Any]]) -> Logistic:
        """Become the method that gave `state`."""
        self._check()
        need_shapes(state, {"idf": (n_features,)} if "idf" in self.scaling else {})
        self.idf_, self._kept = (np.asarray(state["idf"]) if "idf" in self.scaling else None), Kept(1)
        return self


@dataclass(frozen=True, eq=False)
class SmoothRows:
    """Rows h of M X for M = Â^steps, as scale h - shift mean: of unit length; if centred, less their mean, and again.

    It is what `embedding.diffusion.centred` does, for rows that are never formed. An empty row stays empty.
    """

    a_hat: sp.csr_array
    steps: int
    x: Attributes
    scale: Floats
    shift: Floats
    mean: Floats

    @classmethod
    def of(cls, a_hat: sp.csr_array, steps: int, x: Attributes, centre: bool) -> SmoothRows:
        squares, columns = np.zeros(x.shape[0]), x.tocsc() if is_sparse(x) else x
        for first in range(0, x.shape[1], COLUMNS):
            part = columns[:, first : first + COLUMNS]
            dense = np.asarray(part.todense() if is_sparse(part) else part, np.float64)
            squares += np.square(_diffused(a_hat, dense, steps)).sum(axis=1)
        length = np.sqrt(squares)
        unit = np.where(length > 0, 1 / np.maximum(length, 1e-30), 0)
        mean: Floats = x.T @ _diffused(a_hat.T, unit, steps) / max(1, int(np.count_nonzero(length)))
        if not centre:
            return cls(a_hat, steps, x, unit, np.zeros_like(unit), mean)
        along = unit * _diffused(a_hat, np.asarray(x @ mean, np.float64), steps)
        left = np.sqrt(np.maximum(1 - 2 * along + mean @ mean, 0))  # the length of a unit row less the mean
        again = np.where((length > 0) & (left > RANK_TOLERANCE), 1 / np.maximum(left, RANK_TOLERANCE), 0)
        return cls(a_hat, steps, x, unit * again, again, mean)

    def coordinates(self, support: Ints) -> Floats:
        """Every node's row along orthonormal directions V that span those of the support: n x rank."""
        marks = np.zeros((self.x.shape[0], support.size))
        marks[support, np.arange(support.size)] = 1
        rows = (self.x.T @ _diffused(self.a_hat.T, marks, self.steps)).T
        rows = self.scale[support, None] * rows - self.shift[support, None] * self.mean
        _, size, directions = np.linalg.svd(rows, full_matrices=False)
        kept = directions[size > RANK_TOLERANCE * max(float(size.max(initial=0)), 1e-30)]
        h = _diffused(self.a_hat, np.asarray(self.x @ kept.T, np.float64), self.steps)
        along: Floats = self.scale[:, None] * h - self.shift[:, None] * (self.mean @ kept.T)
        return along


def _diffused(a_hat: sp.csr_array, h: Floats, steps: int) -> Floats:
    for _ in range(steps):
        h = a_hat @ h
    return h


# --- the regression -----------------------------------------------------------------------------------------------


def logistic_heads(z: NDArray[np.floating[Any]], tasks: Sequence[Task], c: float) -> list[Probabilities]:
    """Multinomial logistic regression on each task's rows of z, along the directions that its support spans."""
    answers = []
    for task in tasks:
        rows, query = z[task.support].astype(np.float64), z[task.query].astype(np.float64)
        along = np.linalg.qr(rows.T)[0] if rows.shape[1] > rows.shape[0] else np.eye(rows.shape[1])
        answers.append(logistic(rows @ along, task.support_y, query @ along, c))
    return answers


def logistic(rows: Floats, y: Ints, query: Floats, c: float) -> Probabilities:
    """P(class) of the query rows, learned from the others with L2 penalty 1/c; classes count alike."""
    from sklearn.linear_model import LogisticRegression  # a second to import

    n_way = int(y.max()) + 1
    if n_way == 1 or len(query) == 0:
        return np.ones((len(query), n_way), np.float32)
    if rows.shape[1] == 0:  # nothing is known of any of them
        rows, query = np.zeros((len(rows), 1)), np.zeros((len(query), 1))
    model = LogisticRegression(C=c, class_weight="balanced", tol=1e-12, max_iter=5000).fit(rows, y)
    return np.asarray(model.predict_proba(query), np.float32)
