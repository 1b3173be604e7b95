"""Linear models of attributes that were filtered over the graph, solved in the span of the labelled rows.

A linear model with an L2 penalty, or of least norm, has its weights in the span of the rows that it is trained on. A
task has few labelled rows, so each node needs a handful of coordinates: M X is never formed, only M (X V).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor

from fewnode.errors import FewnodeError
from fewnode.graph import Attributes, Graph, Ints, is_sparse
from fewnode.represent.attributes import inverse_document_frequency, need_attributes, scale
from fewnode.storage.checkpoint import need_shapes

MAX_STEPS = 1000
RANK_TOLERANCE = 1e-6
"""Directions shorter than this share of the longest are rounding errors of float32 attributes."""
COLUMNS = 256
"""Of M X that are in memory at a time."""
Floats = NDArray[np.float64]


class Filter(NamedTuple):
    """M = P^steps or, with `high_pass`, (I - P)^steps, for a propagation matrix P of the graph."""

    matrix: sp.csr_array
    steps: int
    high_pass: bool = False

    def __call__(self, h: Floats) -> Floats:
        for _ in range(self.steps):
            h = h - self.matrix @ h if self.high_pass else self.matrix @ h
        return h

    @property
    def transposed(self) -> Filter:
        return self._replace(matrix=self.matrix.T)


def coordinates(x: Attributes, filtered: Filter, support: Ints, rescaling: Rescaling | None = None) -> Floats:
    """Every node's row of M X, rescaled, along orthonormal directions V that span those of the support: n x rank."""
    marks = np.zeros((x.shape[0], support.size))
    marks[support, np.arange(support.size)] = 1
    rows = (x.T @ filtered.transposed(marks)).T
    if rescaling is not None:
        rows = rescaling.scale[support, None] * rows - rescaling.shift[support, None] * rescaling.mean
    _, size, directions = np.linalg.svd(rows, full_matrices=False)
    kept = directions[size > RANK_TOLERANCE * max(float(size.max(initial=0)), 1e-30)]
    found: Floats = filtered(np.asarray(x @ kept.T, np.float64))
    if rescaling is not None:
        found = rescaling.scale[:, None] * found - rescaling.shift[:, None] * (rescaling.mean @ kept.T)
    return found


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


def row_lengths(x: Attributes, filtered: Filter) -> Floats:
    """The length of every row of M X, from a few of its columns at a time."""
    squares = np.zeros(x.shape[0])
    columns = x.tocsc() if is_sparse(x) else x
    for first in range(0, x.shape[1], COLUMNS):
        part = columns[:, first : first + COLUMNS]
        squares += np.square(filtered(np.asarray(part.todense() if is_sparse(part) else part, np.float64))).sum(axis=1)
    return np.sqrt(squares)


def undirected(graph: Graph) -> Graph:
    """Every edge both ways."""
    return Graph(graph.adj.maximum(graph.adj.T), graph.x) if graph.directed else graph


def one_hot(y: Ints) -> Floats:
    """A row for each label."""
    return np.eye(int(y.max()) + 1)[y]


class ScaledAttributes:
    """Attributes as a method reads them. How rare an attribute is, is learned from the network of `fit`."""

    _seen: tuple[Graph, Attributes] | None = None

    def __init__(self, scaling: str) -> None:
        self.scaling = scaling

    def fit(self, graph: Graph) -> ScaledAttributes:
        need_attributes(graph)
        self.idf_ = inverse_document_frequency(graph.x) if "idf" in self.scaling else None
        self._seen = None
        self.of(graph)  # an unknown scaling is refused here
        return self

    def of(self, graph: Graph) -> Attributes:
        if self._seen is None or self._seen[0] is not graph:
            self._seen = (graph, scale(graph.x, self.scaling, self.idf_))
        return self._seen[1]

    def state(self) -> dict[str, Tensor]:
        return {} if self.idf_ is None else {"idf": torch.from_numpy(self.idf_)}

    def restore(self, n_features: int, state: Mapping[str, Tensor]) -> ScaledAttributes:
        """Become what gave `state`."""
        need_shapes(state, {"idf": (n_features,)} if "idf" in self.scaling else {})
        self.idf_ = state["idf"].numpy() if "idf" in self.scaling else None
        self._seen = None
        return self


def check_steps(steps: int) -> None:
    if not 0 <= steps <= MAX_STEPS:
        raise FewnodeError(f"{steps} steps, expected 0 to {MAX_STEPS}")
