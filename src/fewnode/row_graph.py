"""Rows of numbers without a graph: each row becomes a node, joined to the rows that are nearest to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors

from fewnode.column_blocks import Block
from fewnode.dataset import ClassSplit, Dataset
from fewnode.graph import Graph

Rows = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class RowGraph:
    """A graph of rows, and where another row would be in it."""

    data: Dataset
    search: NearestNeighbors
    mean: Rows
    scale: Rows

    @classmethod
    def of(cls, x: Rows, neighbours: int) -> RowGraph:
        """Columns count the same, whatever their unit; each row is joined to so many others at most."""
        mean, spread = x.mean(axis=0), x.std(axis=0)
        scale = np.where(spread > 0, spread, 1.0)
        rows = (x - mean) / scale
        count = min(neighbours, len(rows) - 1)
        search = NearestNeighbors(n_neighbors=max(1, count)).fit(rows)
        near = search.kneighbors(None, count, return_distance=False) if count else np.zeros((len(rows), 0), int)
        edges = np.stack([np.repeat(np.arange(len(rows)), near.shape[1]), near.ravel()])
        attributes = rows.astype(np.float32)
        block = (Block("vector", 0, x.shape[1], "rows"),)
        graph = Graph.from_edges(edges, len(rows), attributes, blocks=block)
        unknown = np.full(len(rows), -1)
        return cls(Dataset(graph, unknown, ClassSplit((), (), ()), name="rows"), search, mean, scale)

    def carried(self, x: Rows, values: Rows) -> Rows:
        """`values` of the known rows at other rows: the mean over the nearest ones, the nearer the more.

        A row that is known has its own value. Each row is answered on its own.
        """
        distance, near = self.search.kneighbors((x - self.mean) / self.scale)
        same = distance <= 1e-12
        weight = np.where(same.any(axis=1, keepdims=True), same, 1 / np.maximum(distance, 1e-12))
        weight /= weight.sum(axis=1, keepdims=True)
        found: Any = np.einsum("ij,ijc->ic", weight, values[near])
        return np.asarray(found, np.float64)
