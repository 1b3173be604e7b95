"""Small networks for journeys in Python, made by public names alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

import fewnode
from fewnode import ClassSplit, Dataset, Graph, Relation

Ints = NDArray[np.int64]

CLASSES, SIZE = 15, 30
SPLIT = ClassSplit(tuple(range(5)), tuple(range(5, 10)), tuple(range(10, 15)))
Y = np.repeat(np.arange(CLASSES), SIZE)


def part_of_debian() -> Dataset:
    """Of each section of the embedded network the two dozen packages that most others need."""
    data = fewnode.load("debian")
    hubs_first = np.argsort(-data.graph.degree, kind="stable")
    kept = np.sort(np.concatenate([hubs_first[data.y[hubs_first] == c][:24] for c in range(len(data.class_names))]))
    x = data.graph.x[kept]
    words = np.flatnonzero(np.bincount(x.indices, minlength=x.shape[1]) > 2)
    names, features = (
        tuple(known[i] for i in of) for known, of in ((data.node_names, kept), (data.feature_names, words))
    )
    graph = Graph(data.graph.adj[kept][:, kept], x[:, words])
    return replace(data, graph=graph, y=data.y[kept], node_names=names, feature_names=features)


def opposites() -> Dataset:
    """Neighbours are mostly of two other classes, and nodes are dense numbers that tell little by themselves."""
    rng = np.random.default_rng(0)
    target = np.repeat(np.arange(Y.size), 6)
    neighbours = (Y[target] + rng.choice([1, 2, 0], target.size, p=[0.5, 0.3, 0.2])) % CLASSES
    source = neighbours * SIZE + rng.integers(0, SIZE, target.size)
    numbers = rng.normal(size=(CLASSES, 12))[Y] + rng.normal(0, 1.5, (Y.size, 12))
    return Dataset(Graph.from_edges(np.stack([target, source]), Y.size, numbers.astype(np.float32)), Y, SPLIT)


def kinds() -> Dataset:
    """Edges of three kinds that lead one way, and no attributes: one kind tells, and is heavier."""
    rng = np.random.default_rng(1)

    def relation(name: str, target: Ints, source: Ints, weight: float) -> Relation:
        apart = target != source
        weights = weight * rng.lognormal(0, 0.5, target.size)
        adj = sp.coo_array((weights[apart], (target[apart], source[apart])), shape=(Y.size, Y.size))
        return Relation(name, adj.tocsr().astype(np.float32), directed=True)

    own, any_node = np.arange(Y.size).repeat(2), rng.integers(0, Y.size, (4, 6 * Y.size))
    near = Y[own] * SIZE + rng.integers(0, SIZE, own.size)
    relations = [relation("owns", own, near, 4.0), relation("pays", *any_node[:2], 1.0)]
    relations.append(relation("knows", *any_node[2:], 1.0))
    return Dataset(Graph.from_relations(relations, directed=False), Y, SPLIT)


def without_base(data: Dataset) -> Dataset:
    return replace(data, split=ClassSplit((), (), tuple(range(len(data.class_names)))))
