"""Edges with weights and kinds as relations, and what a graph makes of their sum."""

import numpy as np
import pytest
import scipy.sparse as sp

from fewnode.adjacency import Relation
from fewnode.edges.merging import EdgeRows
from fewnode.edges.relations import MOST, EdgeRules, edge_rows, read_relations, rewired
from fewnode.edges.scaling import Scaling
from fewnode.errors import FewnodeError
from fewnode.graph import Graph

EDGES = np.array([[0, 1, 2, 0], [1, 2, 3, 3]])
WEIGHT = np.array([1.0, 2.0, 3.0, 2.0])


def weighted(**rules: object) -> Graph:
    return read_relations(EdgeRows(EDGES, WEIGHT), 4, rules=EdgeRules(**rules))[0]  # type: ignore[arg-type]


def typed(names: tuple[str, ...], kind: list[int], directed: object = False, **rows: object) -> Graph:
    found = EdgeRows(EDGES, kind=np.array(kind), names=names, **rows)  # type: ignore[arg-type]
    return read_relations(found, 4, rules=EdgeRules(directed=directed))[0]  # type: ignore[arg-type]


def test_a_plain_graph_has_no_relations() -> None:
    plain = read_relations(EdgeRows(EDGES), 4)[0]
    ones = read_relations(edge_rows(EDGES, np.ones(4)), 4)[0]
    for graph in (plain, ones, Graph.from_edges(EDGES, 4)):
        assert (graph.relations, graph.weighted) == ((), False)
        assert graph.strength.tolist() == graph.degree.tolist()
        assert (graph.adj.toarray() == plain.adj.toarray()).all()


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


def test_repeated_edges_are_summed_counted_or_taken_once() -> None:
    edges, weight = np.array([[0, 1, 0, 2, 2], [1, 0, 1, 3, 2]]), np.array([1.0, 2.0, 4.0, 7.0, 9.0])

    def matrix(rows: EdgeRows, **rules: str) -> list[float]:
        graph, facts = read_relations(rows, 4, rules=EdgeRules(scale="none", **rules))
        assert facts.repeated == 2
        return [float(graph.adj[0, 1]), float(graph.adj[2, 3])]

    assert matrix(EdgeRows(edges, weight)) == [1, 1]  # 1 + 2 + 4 and 7
    np.testing.assert_allclose(matrix(EdgeRows(edges, weight), repeated="once"), [8 / 11, 14 / 11])
    assert matrix(EdgeRows(edges), repeated="count") == [1.5, 0.5]
    assert matrix(EdgeRows(edges)) == [1, 1]
    with pytest.raises(FewnodeError, match="counted or their weights are summed"):
        matrix(EdgeRows(edges, weight), repeated="count")


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


def test_old_edges_weigh_less() -> None:
    fade = np.array([1.0, 0.5, 0.25, 0.25])
    graph = read_relations(EdgeRows(EDGES, fade=fade), 4)[0]
    np.testing.assert_allclose([graph.adj[0, 1], graph.adj[1, 2], graph.adj[2, 3]], [2, 1, 0.5])


# --- kinds --------------------------------------------------------------------------------------------------------


def test_kinds_are_relations_and_their_sum_counts_every_edge_once() -> None:
    edges = np.concatenate([EDGES, EDGES[:, :1]], axis=1)
    rows = EdgeRows(edges, kind=np.array([0, 0, 1, 1, 1]), names=("pays", "owns"))
    graph = read_relations(rows, 4, rules=EdgeRules(directed={"owns"}))[0]
    assert [(r.name, r.directed, r.n_edges, r.weighted) for r in graph.relations] == [
        ("pays", False, 2, False),
        ("owns", True, 3, False),
    ]
    assert (graph.adj.toarray() == Graph.from_edges(EDGES, 4).adj.toarray()).all()
    assert not graph.directed
    every = read_relations(rows, 4, rules=EdgeRules(directed=True))[0]
    assert (every.adj.toarray() == Graph.from_edges(EDGES, 4, directed=True).adj.toarray()).all()


def test_the_sum_of_weighted_kinds_has_mean_one() -> None:
    graph = typed(("pays", "owns"), [0, 0, 1, 1], weight=WEIGHT)
    assert graph.adj.data.mean() == pytest.approx(1)
    assert [r.adj.data.mean() for r in graph.relations] == pytest.approx([1, 1])
    assert graph.adj[1, 2] == pytest.approx(4 / 3)  # 1 and 2 of mean 1.5, as all of them have mean 1


def test_an_inverse_is_stored_once() -> None:
    both = np.concatenate([EDGES, EDGES[::-1]], axis=1)
    rows = EdgeRows(both, np.tile(WEIGHT, 2), np.repeat([0, 1], 4), ("pays", "paid by"))
    for directed in (True, False):
        graph = read_relations(rows, 4, rules=EdgeRules(directed=directed))[0]
        [relation] = graph.relations
        assert (relation.name, relation.inverse, relation.directed) == ("pays", "paid by", directed)
        assert not graph.directed  # each edge was given both ways
        np.testing.assert_allclose(graph.adj.toarray(), weighted().adj.toarray())
    other = read_relations(EdgeRows(both[:, :7], kind=np.repeat([0, 1], 4)[:7], names=("pays", "paid by")), 4)[0]
    assert len(other.relations) == 2


def test_the_rarest_of_many_kinds_are_joined() -> None:
    count = MOST + 5
    n = 10 * count
    kind = np.repeat(np.arange(count), np.arange(count, 0, -1))
    edges = np.stack([np.arange(kind.size) % n, (np.arange(kind.size) * 7 + 1) % n])
    graph, facts = read_relations(EdgeRows(edges, kind=kind, names=tuple(f"kind {i}" for i in range(count))), n)
    assert len(graph.relations) == MOST
    assert graph.relations[-1].name == "other"
    assert facts.joined == [f"kind {i}" for i in range(MOST - 1, count)]
    assert sum(r.n_edges for r in graph.relations) <= kind.size


def test_an_unknown_relation_is_named() -> None:
    with pytest.raises(FewnodeError, match=r"unknown relation 'own' .did you mean 'owns'"):
        typed(("pays", "owns"), [0, 0, 1, 1], directed=["own"])
    with pytest.raises(FewnodeError, match="no kinds of edges"):
        read_relations(EdgeRows(EDGES), 4, rules=EdgeRules(directed=["owns"]))


def test_relations_of_one_name_or_another_size_are_refused() -> None:
    adj = Graph.from_edges(EDGES, 4).adj
    with pytest.raises(FewnodeError, match="relation 'a' is there twice"):
        Graph.from_relations([Relation("a", adj), Relation("a", adj)])
    with pytest.raises(FewnodeError, match="relation 'a' is 4 x 4, expected 2 x 2"):
        Graph(Graph.from_edges([[0], [1]], 2).adj, np.zeros((2, 0), np.float32), relations=(Relation("a", adj),))


# --- changes ------------------------------------------------------------------------------------------------------


def test_changed_edges_leave_the_others_as_they_were() -> None:
    graph = typed(("pays", "owns"), [0, 0, 1, 1], directed=["owns"], weight=WEIGHT)
    kept, x = np.array([True, True, True, False]), np.zeros((4, 0), np.float32)  # node 3 goes, another one comes
    added, gone = np.array([[0], [3]]), np.array([[1], [0]])
    after = rewired(graph, kept, x, added, gone, directed=False)
    assert [(r.name, r.n_edges) for r in after.relations] == [("pays", 1), ("owns", 0), ("edges", 1)]
    assert after.relations[0].adj[1, 2] == graph.relations[0].adj[1, 2]
    assert after.relations[2].adj[0, 3] == after.relations[2].adj[3, 0] == 1
    one = rewired(weighted(), kept, x, added, gone, directed=False)
    assert [(r.name, r.n_edges) for r in one.relations] == [("edges", 2)]
    plain = rewired(Graph.from_edges(EDGES, 4), kept, x, added, gone, directed=False)
    assert (plain.adj.toarray() == Graph.from_edges([[1, 0], [2, 3]], 4).adj.toarray()).all()
    assert plain.relations == ()


# --- scales -------------------------------------------------------------------------------------------------------


def test_heavy_tails_are_read_by_their_logarithm() -> None:
    rng = np.random.default_rng(0)
    assert Scaling.learn(rng.uniform(1, 5, 999)).kind == "none"
    assert Scaling.learn(rng.lognormal(0, 3, 999)).kind == "log"
    assert Scaling.learn(rng.lognormal(0, 3, 999), "none").kind == "none"
    with pytest.raises(FewnodeError, match="unknown scale 'lgo'"):
        Scaling.learn(np.ones(3), "lgo")


@pytest.mark.parametrize("kind", ["none", "log", "rank"])
def test_a_scale_keeps_the_order_has_mean_one_and_can_be_stored(kind: str) -> None:
    amounts = np.random.default_rng(0).lognormal(0, 2, 500)
    scaling = Scaling.learn(amounts, kind)
    weights = scaling.apply(amounts)
    assert weights.mean() == pytest.approx(1)
    assert (np.diff(weights[np.argsort(amounts)]) >= 0).all()
    assert (weights > 0).all()
    assert Scaling.from_json(scaling.to_json()) == scaling
    if kind != "rank":
        np.testing.assert_allclose(scaling.invert(weights), amounts)
    again = Scaling.learn(weights)
    assert (again.kind, again.mean) == ("none", 1)  # what was scaled keeps its bits


def test_equal_amounts_have_one_rank() -> None:
    amounts = np.array([1.0, 1, 1, 5, 9])
    weights = Scaling.learn(amounts, "rank").apply(amounts)
    assert weights[0] == weights[1] == weights[2] < weights[3] < weights[4]


@pytest.mark.parametrize("change", [{"kind": "x"}, {"mean": 0}, {"unit": "a"}, {"curve": [2, 1]}, {"curve": None}])
def test_a_stored_scale_may_come_from_anybody(change: dict[str, object]) -> None:
    with pytest.raises(FewnodeError, match="not one that fewnode wrote"):
        Scaling.from_json({**Scaling("log").to_json(), **change})
