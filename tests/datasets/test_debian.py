"""The built-in network is as it is stated to be."""

import numpy as np

from fewnode.dataset import ClassSplit, Dataset
from fewnode.formats.sources import load_debian
from fewnode.graph import Graph


def test_the_built_in_network_is_as_stated() -> None:
    data = load_debian()
    assert load_debian() is data
    assert data.name == "debian"
    assert (data.graph.n, data.graph.n_edges, len(data.class_names), data.graph.n_features) == (61646, 315039, 54, 8000)
    assert not data.graph.directed
    assert data.graph.degree.min() > 0
    assert data.class_sizes.min() >= 30
    assert data.split == ClassSplit.random(data.y, seed=0)
    assert tuple(map(len, (data.split.train, data.split.valid, data.split.test))) == (27, 11, 16)
    for names in (data.node_names, data.feature_names, data.class_names):
        assert names == tuple(sorted(set(names or ())))


def test_the_relations_of_the_built_in_network() -> None:
    """All edges are of one, and without them the network is the one that published figures are of."""
    data = load_debian()
    assert [(r.name, r.n_edges, r.directed) for r in data.graph.relations] == [
        ("Depends", 267_391, True),
        ("Recommends", 29_066, True),
        ("Suggests", 23_361, True),
    ]
    every = Graph.from_relations(data.graph.relations, directed=False).adj
    assert np.array_equal(every.indices, data.graph.adj.indices)
    plain = Dataset(Graph(data.graph.adj, data.graph.x), data.y, data.split, data.class_names)
    assert plain.sha256 == "6e0dc43bf76c75ef06bb8ce5848fb758550dc8227084b11116cc7e2fca934149"
    numpy, python = data.node("python3-numpy"), data.node("python3")
    assert data.graph.relations[0].adj[python, numpy] == 1  # numpy depends on python
    assert data.graph.relations[0].adj[numpy, python] == 0
