"""Graphs that the tests share."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from fewnode.dataset import ClassSplit, Dataset
from fewnode.episodes import EpisodeSampler
from fewnode.graph import Block, Graph
from fewnode.relations import EdgeRows, read_relations


def fitted_method(method: Any, data: Dataset, way: int, shot: int, query: int | None = None) -> Any:
    """The method alone, without what an `Estimator` learns beside it: half the time where only accuracy counts."""
    train, valid = (EpisodeSampler(data, part, way, shot, query) for part in ("train", "valid"))
    return method.fit(data.graph, train, valid)


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
    return read_relations(rows, plain.n, plain.x, directed=plain.directed, scale="none")[0]


def planted_edges(signal: str, seed: int = 0, classes: int = 15, size: int = 24, noise: int = 30) -> Dataset:
    """Classes that only the `weights` of edges tell apart, only one `relation` of five, or only their `direction`.

    Each node has four edges to landmarks of its class and `noise` edges to any. Without knowing which, as
    `graph.unweighted` does not, the four are hard to see. Landmarks have no class, and nobody has attributes.
    """
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(np.arange(classes), size))
    n, marks = y.size, 4 * classes
    node, other = np.repeat(np.arange(n), 4), np.repeat(np.arange(n), noise)
    own, strange = n + 4 * y[node] + rng.integers(0, 4, node.size), n + rng.integers(0, marks, other.size)
    kind = np.r_[np.full(node.size, 2), rng.choice([0, 1, 3, 4], other.size)]
    edges, names = np.stack([np.r_[node, other], np.r_[own, strange]]), tuple("abcde")
    if signal == "weights":
        rows = EdgeRows(edges, np.where(kind == 2, 20.0, 1.0) * rng.lognormal(0, 0.3, kind.size))
    elif signal == "relation":
        rows = EdgeRows(edges, kind=kind, names=names)
    else:  # a node points to what is its own, and anything points to it
        rows = EdgeRows(np.where(kind == 2, edges, edges[::-1]), kind=np.zeros(kind.size, int), names=("a",))
    graph = read_relations(rows, n + marks, directed=signal == "direction")[0]
    if signal == "direction":
        graph = Graph.from_relations(graph.relations, directed=False)
    third = classes // 3
    split = ClassSplit(*(tuple(range(k * third, (k + 1) * third)) for k in range(3)))
    return Dataset(graph, np.r_[y, np.full(marks, -1)], split, name=signal)


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


TOPICS = {
    "mail": "mail send receive filter inbox spam delivery message",
    "vpn": "vpn tunnel encrypted private gateway secure remote traffic",
    "games": "game play level score arcade puzzle player adventure",
    "music": "music audio sound song track tune album listen",
}


def worded(size: int = 25, seed: int = 0) -> Dataset:
    """Nodes with texts of four topics, mostly linked within them; the classes are given, but base classes are none."""
    rng = np.random.default_rng(seed)
    topics = [words.split() for words in TOPICS.values()]
    every = sorted({word for words in topics for word in words})
    y = np.repeat(np.arange(4), size)
    x = np.zeros((y.size, len(every)), np.float32)
    for node, c in enumerate(y):
        for word in [*rng.choice(topics[c], 4, replace=False), *rng.choice(every, 2)]:
            x[node, every.index(word)] += 1
    near = np.concatenate([y.repeat(2) * size + rng.integers(0, size, 2 * y.size), rng.integers(0, y.size, y.size)])
    edges = np.stack([np.concatenate([np.arange(y.size).repeat(2), np.arange(y.size)]), near])
    graph = Graph.from_edges(edges, y.size, sp.csr_array(x), blocks=(Block("words", 0, len(every)),))
    names = tuple(f"n{i}" for i in range(y.size))
    return Dataset(graph, y, ClassSplit((), (), ()), tuple(TOPICS), names, tuple(every), name="worded")


def planted_kinds(seed: int = 0) -> Dataset:
    """The planted network, its edges of three kinds: `pays` has a direction and weights, `owns` a direction."""
    data, rng = planted(seed=seed), np.random.default_rng(seed)
    edges = data.graph.edge_index()
    edges = edges[:, edges[0] < edges[1]]
    kind = rng.integers(0, 3, edges.shape[1])
    turned = np.where(rng.random(kind.size) < 0.5, edges, edges[::-1])
    weight = np.where(kind == 0, rng.lognormal(0, 0.7, kind.size), 1.0)
    rows = EdgeRows(turned, weight, kind, ("pays", "owns", "knows"))
    graph = read_relations(rows, data.graph.n, data.graph.x, directed=("pays", "owns"))[0]
    return Dataset(graph, data.y, data.split, data.class_names, data.node_names, name="kinds")


def predictions_of(
    model: Any, data: Any, support: Any, labels: Any, query: Any, explain: bool = False, **how: Any
) -> Any:
    """The answers about some nodes, from a support set that is read for them alone."""
    from fewnode.nodes import as_dataset  # most tests need no answers
    from fewnode.recognition.classes import Given

    network, several = as_dataset(data), how.pop("multi_label", False)
    question = model.question(network, Given.of_support(network, support, labels, several=several), several)
    return question.judge(query, explain=explain, **how)
