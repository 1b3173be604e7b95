"""Methods on networks whose classes only the weights of edges tell apart."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fewnode.estimator import Estimator
from fewnode.evaluation import evaluate
from graphs import planted_edges


@pytest.mark.parametrize("method", ["gpn-plus", "deepwalk"])
def test_weights_are_worth_fifteen_points(method: str) -> None:
    data = planted_edges("weights")
    scores = []
    for graph in (data.graph, data.graph.unweighted):
        network = replace(data, graph=graph)
        model = Estimator(method, way=5, shot=5, query=5).fit(network)
        scores.append(evaluate(model, network, tasks=30).accuracy.mean)
    assert scores[0] > scores[1] + 0.15
