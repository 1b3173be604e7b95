"""Graphs that the tests share."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from fewnode.dataset import ClassSplit, Dataset
from fewnode.graph import Graph
from fewnode.relations import EdgeRows, EdgeRules, read_relations


def star() -> Graph:
    """Four nodes, node 0 in the middle, two attributes: small enough to compute with by hand."""
    x = np.array([[1, 0], [0, 1], [1, 1], [2, 0]], np.float32)
    return Graph.from_edges([[0, 0, 0], [1, 2, 3]], 4, x)


def random_graph(seed: int) -> Graph:
    """2 to 30 nodes, sparse or dense attributes, directed or not, isolated nodes and hubs among them."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(2, 31)), int(rng.integers(1, 9))
    edges = rng.integers(0, n, (2, int(rng.integers(0, 4 * n))))
    if rng.random() < 0.3:  # a hub
        edges = np.concatenate([edges, np.stack([np.zeros(n, int), np.arange(n)])], axis=1)
    x = (rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.4)).astype(np.float32)
    return Graph.from_edges(edges, n, sp.csr_array(x) if rng.random() < 0.7 else x, directed=bool(rng.random() < 0.3))


def weighted_graph(seed: int) -> Graph:
    """A random graph whose edges have weights."""
    plain, rng = random_graph(seed), np.random.default_rng(seed)
    rows = EdgeRows(plain.edge_index(), rng.lognormal(0, 1, plain.adj.nnz))
    return read_relations(rows, plain.n, plain.x, EdgeRules(plain.directed, "none", "once"))[0]


def planted(classes: int = 15, size: int = 24, seed: int = 0) -> Dataset:
    """Classes that words and edges both tell apart, but neither perfectly."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(classes), size)
    n, words = y.size, 6 * classes
    same = (y[:, None] * size + rng.integers(0, size, (n, 3))).ravel()
    other = rng.integers(0, n, n)
    edges = np.stack([np.r_[np.repeat(np.arange(n), 3), np.arange(n)], np.r_[same, other]])
    topical = y[:, None] * 6 + rng.integers(0, 6, (n, 4))
    noise = rng.integers(0, words, (n, 4))
    column = np.concatenate([topical, noise], axis=1)
    x = sp.csr_array((np.ones(column.size, np.float32), (np.repeat(np.arange(n), 8), column.ravel())), (n, words))
    order = rng.permutation(n)
    graph = Graph.from_edges(np.argsort(order)[edges], n, x[order])
    split = ClassSplit(tuple(range(5)), tuple(range(5, 10)), tuple(range(10, classes)))
    names = tuple(f"class {chr(97 + c)}" for c in range(classes))
    return Dataset(graph, y[order], split, names, tuple(f"node-{i}" for i in range(n)), name="planted")
