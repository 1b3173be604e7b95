"""Methods on networks whose classes only the weights of edges tell apart."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from fewnode.evaluation import evaluate
from fewnode.methods.table import build_method
from graphs import fitted_method, planted_edges, planted_kinds


@pytest.mark.parametrize("method", ["gpn-plus", "deepwalk"])
def test_weights_are_worth_fifteen_points(method: str) -> None:
    data = planted_edges("weights")
    scores = []
    for graph in (data.graph, data.graph.unweighted):
        network = replace(data, graph=graph)
        model = fitted_method(build_method(method, 0, {}), network, 5, 5, 5)
        scores.append(evaluate(model, network, 5, 5, 5, tasks=30).accuracy.mean)
    assert scores[0] > scores[1] + 0.15


def test_the_degree_of_the_paper_can_be_a_sum_of_weights() -> None:
    """On a graph without weights both are the same; with weights they are not, in either engine alike."""
    data = planted_kinds()
    answers = {}
    for engine, weighted in itertools.product(("compiled", "reference"), (False, True)):
        for plain in (False, True):
            network = replace(data, graph=data.graph.unweighted) if plain else data
            distance = "sqeuclidean" if engine == "compiled" else "euclidean"
            options = {"weighted_degree": weighted, "distance": distance, "episodes": 10}
            method = fitted_method(build_method("gpn", 0, options), network, 3, 3)
            answers[engine, weighted, plain] = method.embed(network.graph).importance
    for engine in ("compiled", "reference"):
        assert np.array_equal(answers[engine, False, True], answers[engine, True, True])
        assert not np.allclose(answers[engine, False, False], answers[engine, True, False])
