"""Structural attributes: by hand, against brute force, and good enough for methods that need attributes."""

from __future__ import annotations

import numpy as np
import pytest

from fewnode.dataset import Dataset
from fewnode.episodes import EpisodeSampler
from fewnode.evaluation import evaluate
from fewnode.graph import Graph
from fewnode.methods.features import DEGREE_BINS, degree_features, structural_features
from fewnode.methods.propagation import Propagation


def test_degree_features_of_the_star_by_hand(star: Graph) -> None:
    x = degree_features(star)
    assert x[:, :DEGREE_BINS].argmax(axis=1).tolist() == [2, 1, 1, 1]
    assert np.array_equal(x[:, :DEGREE_BINS].sum(axis=1), np.ones(4))
    hub, leaf = np.log([4, 2])
    assert np.allclose(x[:, DEGREE_BINS:], [[hub, hub, leaf, leaf]] + 3 * [[leaf, leaf, hub, hub]])


@pytest.mark.parametrize("kind", ["degree", "svd", "walks"])
@pytest.mark.parametrize("n", [0, 1, 3])
def test_nodes_without_edges_have_finite_features(kind: str, n: int) -> None:
    graph = structural_features(Graph.from_edges(np.zeros((2, 0), int), n), kind)
    assert graph.x.shape[0] == n
    assert np.isfinite(graph.x).all()


@pytest.mark.parametrize("kind", ["svd", "walks"])
def test_methods_that_need_attributes_learn_from_structure(kind: str, planted: Dataset) -> None:
    bare = Graph.from_edges(planted.graph.edge_index(), planted.graph.n)
    graph = structural_features(bare, kind, seed=1)
    assert np.array_equal(graph.x, structural_features(planted.graph, kind, seed=1).x)
    assert bare.n_features == 0
    data = Dataset(graph, planted.y, planted.split)
    train, valid = (EpisodeSampler(data, part, 3, 3) for part in ("train", "valid"))
    method = Propagation(steps=0).fit(graph, train, valid)
    assert evaluate(method, data, way=5, shot=5, tasks=40).accuracy.mean > 0.5
