"""What is diffused: blocks of attributes as coordinates, and the place of a node in the structure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fewnode.embedding.directions import Axes
from fewnode.embedding.projection import centred, mean_direction, sampled
from fewnode.embedding.tiles import Space, TiledMatrix, in_memory
from fewnode.graph import Attributes, Graph, is_sparse
from fewnode.vectors import Floats

STRUCTURE = "structure"


@dataclass(frozen=True, eq=False)
class AttributeSource:
    """Columns `start` to `stop` of the attributes: how they are scaled, the directions read along, and their mean."""

    name: str
    kind: str
    """The kind of a `Block`; empty if the graph does not say it."""
    start: int
    stop: int
    axes: Axes
    mean: Floats

    def read(self, x: Attributes) -> Floats:
        """Unit rows, from the mean. A node without any of these attributes has zeros."""
        return centred(self.axes.read(columns(x, self.start, self.stop)), self.mean)

    def tiles(self, x: Attributes, space: Space = in_memory) -> TiledMatrix:
        """Unit rows of all nodes, to be diffused."""
        return space(x.shape[0], self.mean.size).filled(lambda low, high: self.read(x[low:high]))


def attribute_sources(graph: Graph, rank: int, seed: int) -> list[AttributeSource]:
    """One for each block of attributes; one for all of them, if the graph does not tell blocks apart."""
    runs = list(_runs(graph))
    found = []
    for name, (kind, start, stop) in zip(source_names([kind for kind, *_ in runs]), runs, strict=True):
        part = columns(graph.x, start, stop)
        axes = read_along(part, kind, rank, seed)
        mean = mean_direction(axes.read(part[sampled(graph.n)]))
        found.append(AttributeSource(name, kind, start, stop, axes, mean))
    return found


def columns(x: Attributes, start: int, stop: int) -> Attributes:
    """Some columns of the attributes; all of them without a copy."""
    return x if (start, stop) == (0, x.shape[1]) else x[:, start:stop]


def source_names(kinds: Sequence[str]) -> list[str]:
    """`attributes`, or the kind of a block; the second of a kind is number 2.

    >>> source_names(["words", "vector", "vector"])
    ['words', 'vector', 'vector 2']
    """
    plain = [kind or "attributes" for kind in kinds]
    number = [plain[: i + 1].count(name) for i, name in enumerate(plain)]
    return [f"{name} {n}" if n > 1 else name for name, n in zip(plain, number, strict=True)]


def _runs(graph: Graph) -> Iterator[tuple[str, int, int]]:
    """Kind, start and stop of every run of columns; the kind is empty where the graph does not say it."""
    end = 0
    for block in graph.blocks:
        if block.start > end:
            yield "", end, block.start
        yield block.kind, block.start, block.stop
        end = block.stop
    if end < graph.n_features:
        yield "", end, graph.n_features


def read_along(x: Attributes, kind: str, rank: int, seed: int) -> Axes:
    """Counts and flags as logarithmic tf-idf; numbers in units of their deviation; a vector as a whole.

    Columns of an unknown kind are taken for numbers if they are hardly ever zero, else for counts. A vector means
    something as a whole: turned by a rotation it is the same, which a deviation of each column would not respect.
    """
    if kind == "vector":
        return Axes.of(x, "l2", rank, seed)
    filled = np.count_nonzero(x.data if is_sparse(x) else x) / max(1, x.shape[0] * x.shape[1])
    if kind == "words" or (kind == "" and (is_sparse(x) or filled < 0.5)):
        return Axes.of(x, "log-tf-idf", rank, seed)
    deviation = _deviation(x)
    return Axes.of(x, "tf-idf", rank, seed, (1 / np.where(deviation > 0, deviation, 1)).astype(np.float32))


def _deviation(x: Attributes) -> NDArray[np.float64]:
    if not is_sparse(x):
        return np.asarray(x.std(axis=0, dtype=np.float64))
    mean = np.asarray(x.mean(axis=0, dtype=np.float64)).ravel()
    square = np.asarray(x.multiply(x).mean(axis=0, dtype=np.float64)).ravel()
    found: NDArray[np.float64] = np.sqrt(np.maximum(square - mean**2, 0))
    return found
