"""Edges with weights and kinds as relations, and what a graph makes of their sum."""

import numpy as np
import pytest
import scipy.sparse as sp
from pydantic import ValidationError

from fewnode.errors import FewnodeError
from fewnode.graph import Graph, Relation
from fewnode.relations import EdgeRows, Scaling, read_relations

EDGES = np.array([[0, 1, 2, 0], [1, 2, 3, 3]])
WEIGHT = np.array([1.0, 2.0, 3.0, 2.0])


def weighted(**rules: object) -> Graph:
    return read_relations(EdgeRows(EDGES, WEIGHT), 4, **rules)[0]  # type: ignore[arg-type]


def typed(names: tuple[str, ...], kind: list[int], directed: object = False, **rows: object) -> Graph:
    found = EdgeRows(EDGES, kind=np.array(kind), names=names, **rows)  # type: ignore[arg-type]
    return read_relations(found, 4, directed=directed)[0]  # type: ignore[arg-type]


def test_weights_have_mean_one_and_degrees_count_neighbours() -> None:
    graph = weighted()
    [relation] = graph.relations
    assert (relation.name, relation.directed, relation.weighted, relation.n_edges) == ("edges", False, True, 4)
    assert graph.adj[0, 1] == graph.adj[1, 0] == 0.5
    assert graph.degree.tolist() == [2, 2, 2, 2]
    np.testing.assert_allclose(graph.strength, [1.5, 1.5, 2.5, 2.5])
    assert weighted(directed=True).adj[1, 0] == 0.5
    assert weighted(directed=True).adj[0, 1] == 0


def test_without_weights_a_graph_is_the_plain_one() -> None:
    plain = Graph.from_edges(EDGES, 4)
    assert plain.unweighted is plain
    for graph in (weighted(), typed(("pays", "owns"), [0, 0, 1, 1])):
        assert (graph.unweighted.relations, graph.unweighted.weighted) == ((), False)
        assert (graph.unweighted.adj.toarray() == plain.adj.toarray()).all()


def test_repeated_edges_add_up_or_count_once() -> None:
    edges, weight = np.array([[0, 1, 0, 2, 2], [1, 0, 1, 3, 2]]), np.array([1.0, 2.0, 4.0, 7.0, 9.0])
    weight[3] = 21
    summed, facts = read_relations(EdgeRows(edges, weight), 4, scale="none")
    assert facts.repeated == 2
    assert [summed.adj[0, 1], summed.adj[2, 3]] == [0.5, 1.5]  # 1 + 2 + 4 and 21
    plain, facts = read_relations(EdgeRows(edges), 4)
    assert facts.repeated == 2
    assert [plain.adj[0, 1], plain.adj[2, 3]] == [1, 1]
    one_way = read_relations(EdgeRows(edges, weight), 4, directed=True, scale="none")[0]
    np.testing.assert_allclose([one_way.adj[1, 0], one_way.adj[0, 1]], [15 / 28, 6 / 28], rtol=1e-6)  # 5, 2 and 21


def test_an_edge_of_weight_zero_is_none() -> None:
    graph, facts = read_relations(EdgeRows(EDGES, np.array([0.0, 1, 1, 2])), 4)
    assert (graph.n_edges, facts.zero) == (3, 1)


@pytest.mark.parametrize("bad", [-1.0, np.nan, np.inf])
def test_what_is_no_weight_is_refused(bad: float) -> None:
    with pytest.raises(FewnodeError, match=r"edge 2: its weight is .*, expected a number from 0 on"):
        read_relations(EdgeRows(EDGES, np.array([1.0, 1, bad, 1])), 4)
    adj = sp.csr_array(np.array([[0, bad], [0, 0]], np.float32))
    with pytest.raises(FewnodeError, match=r"the weight of edge 1 - 0 is .*, expected a number above 0"):
        Graph(adj, np.zeros((2, 0), np.float32))
    with pytest.raises(FewnodeError, match="relation 'pays': the weight"):
        Relation("pays", adj)


# --- kinds --------------------------------------------------------------------------------------------------------


def test_kinds_are_relations_and_their_sum_counts_every_edge_once() -> None:
    edges = np.concatenate([EDGES, EDGES[:, :1]], axis=1)
    rows = EdgeRows(edges, kind=np.array([0, 0, 1, 1, 1]), names=("pays", "owns"))
    graph = read_relations(rows, 4, directed={"owns"})[0]
    assert [(r.name, r.directed, r.n_edges, r.weighted) for r in graph.relations] == [
        ("pays", False, 2, False),
        ("owns", True, 3, False),
    ]
    assert (graph.adj.toarray() == Graph.from_edges(EDGES, 4).adj.toarray()).all()
    assert not graph.directed
    every = read_relations(rows, 4, directed=True)[0]
    assert (every.adj.toarray() == Graph.from_edges(EDGES, 4, directed=True).adj.toarray()).all()


def test_each_kind_has_its_own_edges_whatever_the_others_have() -> None:
    both = np.concatenate([EDGES, EDGES[::-1]], axis=1)
    rows = EdgeRows(both, np.tile(WEIGHT, 2), np.repeat([0, 1], 4), ("pays", "paid by"))
    graph = read_relations(rows, 4, directed=True)[0]
    assert [(relation.name, relation.n_edges) for relation in graph.relations] == [("pays", 4), ("paid by", 4)]
    assert not graph.directed  # each edge was given both ways
    np.testing.assert_allclose(graph.adj.toarray(), weighted().adj.toarray())


def test_an_unknown_relation_is_named() -> None:
    with pytest.raises(FewnodeError, match=r"unknown relation 'own' .did you mean 'owns'"):
        typed(("pays", "owns"), [0, 0, 1, 1], directed=["own"])
    with pytest.raises(FewnodeError, match="no kinds of edges"):
        read_relations(EdgeRows(EDGES), 4, directed=["owns"])


# --- scales -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["none", "log"])
def test_a_scale_keeps_the_order_has_mean_one_and_can_be_stored(kind: str) -> None:
    amounts = np.random.default_rng(0).lognormal(0, 2, 500)
    scaling = Scaling.learn(amounts, kind)
    weights = scaling.apply(amounts)
    assert weights.mean() == pytest.approx(1)
    assert (np.diff(weights[np.argsort(amounts)]) >= 0).all()
    assert (weights > 0).all()
    assert Scaling.model_validate_json(scaling.model_dump_json()) == scaling
    np.testing.assert_allclose(scaling.invert(weights), amounts)
    again = Scaling.learn(weights)
    assert (again.kind, again.mean) == ("none", 1)  # what was scaled keeps its bits


@pytest.mark.parametrize("change", [{"kind": "x"}, {"mean": 0}, {"unit": "a"}, {"unit": None}])
def test_a_stored_scale_may_come_from_anybody(change: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Scaling.model_validate({"kind": "log", **change})
