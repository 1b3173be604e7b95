"""The plain evidence of a graph: each node's own words and numbers, with their size kept, and how it is linked.

Compressed views are best at topics and places in a network. They lose rare words, the size of numbers, and degrees:
these stand here as they are, for whatever network, without any class known.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from fewnode.graph import Attributes, Graph, Ints, all_ones, is_sparse, ones_like
from fewnode.vectors import Floats, unit_rows

MAX_NUMBERS = 64
"""Columns of a dense block without names up to which they are read one by one: more are a vector."""
STEPS, TELEPORT = 5, 0.5
"""Of the diffusion of a column: so many steps, and so much of it is given back at each."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """What is known of each node without any model. Rows are nodes."""

    words: sp.csr_array
    """Unit rows of tf-idf; without columns where there are no words."""
    word_columns: tuple[int, int]
    """Where these stand among the attributes."""
    idf: Floats
    numbers: Floats
    """Unit rows of standardised columns: numbers by quantile, categories, logarithms of degrees and sums of weights."""
    numeric: int
    """How many columns of numbers the nodes have themselves; categories are none."""
    plain: bool
    """Whether all attributes are such numbers and categories."""
    around: Floats
    """Unit rows of these, of their mean over the neighbours, and of how the node differs from that."""
    vectors: Floats
    """Unit rows of columns that mean something only together, from their mean; without columns where there are none."""
    walk: sp.csr_array
    """The symmetric normalised adjacency matrix, without self-loops."""

    @classmethod
    def of(cls, graph: Graph) -> Evidence:
        columns = column_kinds(graph)
        own = [scaled(column) for low, high in columns["numbers"] for column in dense(graph.x[:, low:high]).T]
        vectors = [dense(graph.x[:, low:high]) for low, high in columns["vector"]]
        place = (*columns["words"], (0, 0))[0]
        counts = sp.csr_array(graph.x[:, slice(*place)], dtype=np.float32)
        idf = np.log((1 + graph.n) / (1 + np.bincount(counts.indices, minlength=counts.shape[1]))) + 1
        values, row = np.log1p(counts.data) * idf[counts.indices], np.repeat(np.arange(graph.n), np.diff(counts.indptr))
        length = np.sqrt(np.bincount(row, weights=values**2, minlength=graph.n))
        values = (values / np.maximum(length, 1e-12)[row]).astype(np.float32)
        both = ones_like(sp.csr_array(graph.adj + graph.adj.T))  # without weights and directions
        numbers = np.column_stack([*own, *link_numbers(graph, both)]).astype(np.float32)
        degree = np.asarray(both.sum(axis=1)).ravel()
        mean = sp.diags_array((1 / np.maximum(degree, 1)).astype(np.float32)) @ both @ numbers
        around = np.concatenate([numbers, mean, np.where(degree[:, None] > 0, numbers - mean, 0)], axis=1)
        root = sp.diags_array((1 / np.sqrt(np.maximum(degree, 1))).astype(np.float32))
        return cls(
            sp.csr_array((values, counts.indices, counts.indptr), counts.shape),
            place,
            idf.astype(np.float32),
            unit_rows(numbers),
            sum(np.unique(column).size > 2 for column in own),
            0 < len(own) == graph.n_features,
            unit_rows(around.astype(np.float32)),
            np.concatenate([numbers[:, :0], *(unit_rows(x - x.mean(axis=0)) for x in vectors)], axis=1),
            sp.csr_array(root @ both @ root),
        )

    @property
    def n(self) -> int:
        return int(self.numbers.shape[0])

    @property
    def attributes(self) -> tuple[Attributes, ...]:
        """All that a node has itself, in unit rows."""
        return tuple(x for x in (self.words, self.numbers, self.vectors) if x.shape[1])

    def sentences(self, x: Attributes, y: Ints) -> dict[int, Floats]:
        """Rows of attributes that stand for classes, as tf-idf by their class; those without a word are left out."""
        counts = np.log1p(dense(x[:, slice(*self.word_columns)]))
        rows = zip(y.tolist(), (counts * self.idf).astype(np.float32), strict=True)
        return {c: row for c, row in rows if row.any()}

    def diffused(self, columns: Floats) -> Floats:
        """Columns, a number a node each, after personalised PageRank: what a node's neighbours have counts, too."""
        h = columns
        for _ in range(STEPS):
            h = (1 - TELEPORT) * (self.walk @ h) + TELEPORT * columns
        return h


def dense(x: Attributes) -> Floats:
    return np.asarray(x.toarray() if is_sparse(x) else x, np.float32)


def column_kinds(graph: Graph) -> dict[str, list[tuple[int, int]]]:
    """Where the columns of the attributes are that count words, are read one by one, or mean something together.

    Attributes of an unknown kind are numbers if they are few, and words if they are never negative and mostly zero.
    """
    x, found = graph.x, dict[str, list[tuple[int, int]]](words=[], numbers=[], vector=[])
    for block in graph.blocks:
        narrow = block.kind == "vector" and block.width <= MAX_NUMBERS
        found["numbers" if narrow else block.kind].append((block.start, block.stop))
    if not graph.blocks and 0 < graph.n_features <= MAX_NUMBERS:
        found["numbers"].append((0, graph.n_features))
    elif not graph.blocks and graph.n_features:
        values = x.data if is_sparse(x) else x.ravel()
        filled = np.count_nonzero(values) / max(1, x.shape[0] * x.shape[1])
        if filled < 0.5 and (values >= 0).all():
            found["words"].append((0, graph.n_features))
    return found


def scaled(column: Floats) -> Floats:
    """A number as the normal score of its quantile: heavy tails keep their order. A category as it is, from its mean.

    >>> scaled(np.array([1, 10, 100, 1000])).round(2).tolist()
    [-1.15, -0.32, 0.32, 1.15]
    """
    from scipy.special import ndtri

    values, ordered = column.astype(np.float64), np.sort(column.astype(np.float64))
    if ordered.size and np.all((ordered == ordered[0]) | (ordered == ordered[-1])):
        return np.asarray(values - values.mean(), np.float32)
    below, upto = np.searchsorted(ordered, values, "left"), np.searchsorted(ordered, values, "right")
    return np.asarray(ndtri((below + upto) / (2 * values.size)), np.float32)


def link_numbers(graph: Graph, both: sp.csr_array) -> list[Floats]:
    """Logarithms of in- and out-degree, and of the sums of weights, by kind of edge; each standardised.

    `both` are the edges both ways: as many as there are, if none is directed. To count them needs no compiled loop.
    """
    found: list[Floats] = []
    kinds = [(relation.adj, relation.directed) for relation in graph.relations]
    kinds = kinds or [(graph.adj, both.nnz != graph.adj.nnz or (graph.weighted and graph.directed))]
    for adj, directed in kinds:
        degrees = [np.diff(adj.indptr), *([np.bincount(adj.indices, minlength=graph.n)] if directed else [])]
        sums = [] if all_ones(adj) else [adj.sum(axis=1), *([adj.sum(axis=0)] if directed else [])]
        for amount in (*degrees, *sums):
            logarithm = np.log1p(np.ravel(amount).astype(np.float64))
            found.append(((logarithm - logarithm.mean()) / max(logarithm.std(), 1e-12)).astype(np.float32))
    return found
