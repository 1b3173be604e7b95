"""A planted network whose nodes are in one, two or three classes, and one with two kinds of nodes."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from fewnode.class_labels import only_class
from fewnode.dataset import ClassSplit, Dataset
from fewnode.graph import Graph

CLASSES = 12


def planted_multi_label(seed: int = 0, n: int = 480, words: int = 10) -> Dataset:
    """Each class has words of its own; a node uses those of its classes, and is linked to nodes that share a class."""
    rng = np.random.default_rng(seed)
    several = rng.choice([1, 2, 3], n, p=[0.5, 0.35, 0.15])
    member = np.zeros((n, CLASSES), bool)
    for node, count in enumerate(several):
        member[node, rng.choice(CLASSES, count, replace=False)] = True
    chance = np.where(member.repeat(words, axis=1), 0.4, 0.02)
    x = (rng.random(chance.shape) < chance).astype(np.float32)
    shared = member.astype(int) @ member.T
    edges = np.argwhere(np.triu(rng.random((n, n)) < np.where(shared > 0, 0.05, 0.002), 1)).T
    labels = sp.csr_array(member)
    return Dataset(
        Graph.from_edges(edges, n, sp.csr_array(x)),
        only_class(labels),
        ClassSplit((0, 1, 2, 3), (4, 5, 6), (7, 8, 9, 10, 11)),
        class_names=tuple(f"class {c}" for c in "abcdefghijkl"),
        node_names=tuple(f"node-{i}" for i in range(n)),
        name="several",
        labels=labels,
    )


def with_words(data: Dataset, words: int = 30) -> Dataset:
    """The same and nodes of a second kind, none of which has a label."""
    n = data.graph.n
    x = sp.vstack([data.graph.x, sp.csr_array(np.full((words, data.graph.n_features), 0.1, np.float32))], format="csr")
    edges = np.concatenate([data.graph.edge_index(), [np.arange(words), n + np.arange(words)]], axis=1)
    empty = sp.csr_array((words, len(data.class_names)), dtype=bool)
    return Dataset(
        Graph.from_edges(edges, n + words, x),
        np.append(data.y, np.full(words, -1)),
        data.split,
        class_names=data.class_names,
        node_names=(*(data.node_names or ()), *(f"word-{i}" for i in range(words))),
        name="kinds",
        labels=None if data.labels is None else sp.csr_array(sp.vstack([data.labels, empty])),
        kind=np.repeat([0, 1], [n, words]),
        kind_names=("paper", "word"),
    )
