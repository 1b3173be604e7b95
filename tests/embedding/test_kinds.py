"""What known classes teach about relations: useless ones cost nothing, and a model refuses relations it never saw."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fewnode.dataset import ClassSplit, Dataset
from fewnode.errors import FewnodeError
from fewnode.evaluation import evaluate
from fewnode.graph import Graph, Relation
from fewnode.methods.plus import GPNPlus
from fewnode.model.estimator import Estimator
from graphs import fitted_method, planted, planted_edges, planted_kinds


def with_useless(data: Dataset, count: int) -> Dataset:
    """The same network with random relations before its own edges, each larger than those."""
    rng, graph = np.random.default_rng(0), data.graph
    useless = [
        Relation(f"useless {i}", Graph.from_edges(rng.integers(0, graph.n, (2, 2 * graph.n_edges)), graph.n).adj)
        for i in range(count)
    ]
    return replace(data, graph=Graph.from_relations([*useless, Relation("own", graph.adj)], graph.x))


@pytest.mark.parametrize("count", [3, pytest.param(10, marks=pytest.mark.check)])
@pytest.mark.parametrize("attributes", [True, False])
def test_useless_relations_cost_nothing(attributes: bool, count: int) -> None:
    data = planted()
    if not attributes:
        data = replace(data, graph=Graph(data.graph.adj, data.graph.x[:, :0]))
    scores = []
    for network in (data, with_useless(data, count)):
        model = fitted_method(GPNPlus(rank=64), network, 5, 5)
        scores.append(evaluate(model, network, 5, 5, 5, tasks=40).accuracy.mean)
    assert scores[1] > scores[0] - 0.02


@pytest.fixture(name="of_three", scope="module")
def _of_three() -> tuple[Dataset, Estimator]:
    """A network with three kinds of edges, and a model of it."""
    data = with_useless(planted(), 2)
    return data, Estimator("gpn-plus", way=5, shot=5, query=5, rank=32).fit(data)


def test_a_model_of_other_relations_says_so(of_three: tuple[Dataset, Estimator]) -> None:
    with pytest.raises(FewnodeError, match="knows 3 kinds of edges, this network has 2"):
        of_three[1].predict_proba(with_useless(planted(), 1).graph, [0, 50], ["a", "b"], [1])


def test_a_kind_of_edge_that_came_later_is_a_usual_one(of_three: tuple[Dataset, Estimator]) -> None:
    data, model = of_three
    later = Relation("later", Graph.from_edges([[0], [1]], data.graph.n).adj)
    graph = Graph.from_relations([*data.graph.relations, later], data.graph.x)
    assert np.isfinite(model.predict_proba(graph, [0, 50], ["a", "b"], [1])).all()


@pytest.mark.parametrize(("signal", "said"), [("relation", False), (None, True)])
def test_kinds_that_known_classes_do_not_gain_by_are_named(signal: str | None, said: bool) -> None:
    data = planted_kinds() if signal is None else planted_edges(signal)
    method = fitted_method(GPNPlus(rank=64), data, 5, 5)
    assert bool(method.unused_kinds(data.graph)) == said


def test_without_known_classes_directions_change_nothing() -> None:
    """Views of directions are not used then, and those of the plain union read every edge both ways."""
    data = planted()
    edges = data.graph.edge_index()
    one_way = Graph.from_edges(edges[:, edges[0] < edges[1]], data.graph.n, data.graph.x, directed=True)
    assert one_way.directed
    assert not data.graph.directed
    known = replace(data, y=np.full_like(data.y, -1), split=ClassSplit((), (), ()))
    z = [Estimator("gpn-plus").fit(replace(known, graph=graph)).embedding(graph) for graph in (data.graph, one_way)]
    assert (z[0] == z[1]).all()
