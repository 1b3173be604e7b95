"""The plain evidence of a graph: each node's own words and numbers, with their size kept, and how it is linked.

Compressed views are best at topics and places in a network. They lose rare words, the size of numbers, and degrees:
these stand here as they are, for whatever network, without any class known.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from fewnode.graph import Attributes, Block, Graph, Ints, all_ones, is_sparse, ones_like
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
        counts, columns = word_columns(graph)
        idf = np.log((1 + graph.n) / (1 + np.bincount(counts.indices, minlength=counts.shape[1]))) + 1
        values, row = np.log1p(counts.data) * idf[counts.indices], np.repeat(np.arange(graph.n), np.diff(counts.indptr))
        length = np.sqrt(np.bincount(row, weights=values**2, minlength=graph.n))
        values = (values / np.maximum(length, 1e-12)[row]).astype(np.float32)
        own, both = own_numbers(graph), ones_both_ways(graph)
        numbers = np.column_stack([*own, *link_numbers(graph, both)]).astype(np.float32)
        degree = np.asarray(both.sum(axis=1)).ravel()
        mean = sp.diags_array((1 / np.maximum(degree, 1)).astype(np.float32)) @ both @ numbers
        around = np.concatenate([numbers, mean, np.where(degree[:, None] > 0, numbers - mean, 0)], axis=1)
        root = sp.diags_array((1 / np.sqrt(np.maximum(degree, 1))).astype(np.float32))
        return cls(
            sp.csr_array((values, counts.indices, counts.indptr), counts.shape),
            columns,
            idf.astype(np.float32),
            unit_rows(numbers),
            sum(np.unique(column).size > 2 for column in own),
            0 < len(own) == graph.n_features,
            unit_rows(around.astype(np.float32)),
            vector_columns(graph),
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
        part = x[:, slice(*self.word_columns)]
        counts = np.log1p(part.toarray() if is_sparse(part) else part)
        rows = zip(y.tolist(), (counts * self.idf).astype(np.float32), strict=True)
        return {c: row for c, row in rows if row.any()}

    def diffused(self, columns: Floats) -> Floats:
        """Columns, a number a node each, after personalised PageRank: what a node's neighbours have counts, too."""
        h = columns
        for _ in range(STEPS):
            h = (1 - TELEPORT) * (self.walk @ h) + TELEPORT * columns
        return h


def word_columns(graph: Graph) -> tuple[sp.csr_array, tuple[int, int]]:
    """The columns of the attributes that count words, and where they are."""
    x = graph.x
    block = next((block for block in graph.blocks if block.kind == "words"), None)
    if block is not None:
        found, place = x[:, block.start : block.stop], (block.start, block.stop)
    elif not graph.blocks and counts(x):
        found, place = x, (0, graph.n_features)
    else:
        found, place = sp.csr_array((graph.n, 0), dtype=np.float32), (0, 0)
    return sp.csr_array(found, dtype=np.float32), place


def vector_columns(graph: Graph) -> Floats:
    """Columns of vectors, centred, in rows of length 1."""
    blocks = [block for block in graph.blocks if block.kind == "vector" and not numeric_block(block)]
    parts = [graph.x[:, block.start : block.stop] for block in blocks]
    dense = [np.asarray(part.todense() if is_sparse(part) else part, np.float32) for part in parts]
    return np.concatenate([np.empty((graph.n, 0), np.float32), *(unit_rows(x - x.mean(axis=0)) for x in dense)], axis=1)


def counts(x: Attributes) -> bool:
    """Whether attributes of an unknown kind are counts: many, never negative, mostly zero."""
    if x.shape[1] <= MAX_NUMBERS:
        return False
    values = x.data if is_sparse(x) else x.ravel()
    filled = np.count_nonzero(values) / max(1, x.shape[0] * x.shape[1])
    return bool(filled < 0.5 and (values >= 0).all())


def own_numbers(graph: Graph) -> list[Floats]:
    """Numbers and categories among the attributes, each column standardised."""
    blocks = [(block.start, block.stop) for block in graph.blocks if numeric_block(block)]
    if not graph.blocks and 0 < graph.n_features <= MAX_NUMBERS:
        blocks = [(0, graph.n_features)]
    found: list[Floats] = []
    for low, high in blocks:
        part = graph.x[:, low:high]
        found += [scaled(column) for column in (part.toarray() if is_sparse(part) else part).T]
    return found


def numeric_block(block: Block) -> bool:
    return block.kind == "numbers" or (block.kind == "vector" and block.width <= MAX_NUMBERS)


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


def ones_both_ways(graph: Graph) -> sp.csr_array:
    """The adjacency matrix without weights and directions."""
    return ones_like(sp.csr_array(graph.adj + graph.adj.T))
