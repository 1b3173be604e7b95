"""Nodes and edges that come, change and go over HTTP: what the service then knows is what a new import would give."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fewnode.dataset import Dataset
from fewnode.graph import Graph
from fewnode.tables.extend import extend
from fewnode.tables.read import read_tables
from service import Local, save_run

KINDS = ("bank", "shop", "farm", "port", "mill", "mine", "club", "lab", "inn", "zoo")


def accounts(n: int = 200) -> tuple[dict[str, list[Any]], dict[str, list[str]]]:
    """Two tables as somebody may have them: text, numbers, a category, a vector, a column of no use."""
    rng = np.random.default_rng(0)
    kinds = [KINDS[i % 10] for i in range(n)]
    nodes: dict[str, list[Any]] = {
        "account": [f"A{i}" for i in range(n)],
        "kind": list(kinds),
        "about": [f"{kind} {kind}s number {i % 7}" for i, kind in enumerate(kinds)],
        "balance": [None if i % 7 == 6 else 1000.0 * KINDS.index(kind) + i for i, kind in enumerate(kinds)],
        "country": [("FR", "DE", "IT")[i % 3] for i in range(n)],
        "face": [rng.normal(KINDS.index(kind), 0.1, 3).round(3).tolist() for kind in kinds],
        "opened": [f"key-{i:04}" for i in range(n)],
    }
    ends = rng.integers(0, n, (2, 4 * n))
    ends[1, : 3 * n] = (ends[0] + 10 * rng.integers(1, n // 10, 4 * n))[: 3 * n] % n  # most are among one kind
    ends = ends[:, ends[0] != ends[1]]
    return nodes, {"from": [f"A{i}" for i in ends[0]], "to": [f"A{i}" for i in ends[1]]}


@pytest.fixture(scope="module")
def tables() -> Dataset:
    nodes, edges = accounts()
    split = {"train": KINDS[4:8], "valid": KINDS[1:4], "test": ["bank", "inn", "zoo"]}
    roles = {"text": ["about"], "numeric": ["balance"], "category": ["country"], "vector": ["face"]}
    return read_tables(nodes=nodes, edges=edges, id="account", label="kind", split=split, **roles)


@pytest.fixture(scope="module")
def table_run(tables: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_run(tables, tmp_path_factory.mktemp("tables"), "propagation", steps=1)


Start = Callable[..., Local]


@pytest.fixture
def start(run_dir: Path, table_run: Path, tmp_path: Path) -> Iterator[Start]:
    started: list[Local] = []

    def again(of_tables: bool = True) -> Local:
        for old in started:
            old.close()
        started.append(Local(table_run if of_tables else run_dir, tmp_path / "state.sqlite"))
        return started[-1]

    yield again
    for old in started:
        old.close()


def data_of(local: Local) -> Dataset:
    return local.service.session.now.network.data


def same(one: Dataset, other: Dataset) -> None:
    """The same nodes, attributes, classes and edges, in whatever order the nodes are."""
    assert sorted(one.node_names or ()) == sorted(other.node_names or ())
    order = [other.node(name) for name in one.node_names or ()]
    dense = [x.toarray() if hasattr(x, "toarray") else x for x in (one.graph.x, other.graph.x)]
    assert np.array_equal(dense[0], dense[1][order])
    assert [one.class_names[c] if c >= 0 else None for c in one.y] == [
        other.class_names[c] if c >= 0 else None for c in other.y[order]
    ]
    assert (one.graph.adj != other.graph.adj[order][:, order]).nnz == 0


ROW = {"about": "a port of many ports", "balance": 3100, "country": "FR", "face": [3.0, 3.1, 2.9]}


def test_a_row_over_http_is_a_row_of_a_table(start: Start, tables: Dataset) -> None:
    """Text, numbers in their own unit, categories and vectors; the same bits as `data extend` gives."""
    local = start()
    for name, nodes in {"port": ["A3", "A13"], "bank": ["A0", "A10"]}.items():
        local.ask(f"/api/classes/{name}", {"support": nodes}, "PUT")
    rows = [
        {"node": "new", "row": ROW, "edges": ["A3", "newer"]},
        {
            "node": "newer",
            "row": {"account": "newer", "balance": "1200.5", "kind": "bank", "country": "n/a", "opened": "x"},
        },
        {"node": "newest"},
    ]
    answer = local.ask("/api/nodes", {"nodes": rows, "threshold": 0.2})
    assert answer.status == 200, answer.json
    assert [result["node"] for result in answer.json["results"]] == ["new", "newer", "newest"]
    assert answer.json["results"][0]["class"] == "port"
    assert answer.json["missing"] == {"newer": ["about", "country", "face"], "newest": list(ROW)}
    assert (answer.json["unknown"], answer.json["unused"]) == ({}, ["opened"])
    table = {
        "account": ["new", "newer", "newest"],
        "about": [ROW["about"], None, None],
        "balance": [3100, 1200.5, None],
        "country": ["FR", None, None],
        "face": [[3.0, 3.1, 2.9], None, None],
        "kind": [None, "bank", None],
    }
    expected = extend(tables, table, {"from": ["new", "new"], "to": ["A3", "newer"]})
    same(data_of(local), expected)
    before = local.ask("/api/classify", {"nodes": ["new", "newer"]}).json
    local = start()
    same(data_of(local), expected)
    assert local.ask("/api/classify", {"nodes": ["new", "newer"]}).json == before


def test_a_category_that_nobody_knows_is_named(start: Start) -> None:
    answer = start().ask("/api/nodes", {"nodes": [{"node": "new", "row": {**ROW, "country": "XX"}}]}).json
    assert answer["unknown"] == {"new": {"country": "XX"}}
    assert answer["missing"] == {}


@pytest.mark.parametrize(
    ("row", "told"),
    [
        (
            {"contry": "FR"},
            "unknown column 'contry' (did you mean 'country'?); there are about, balance, country, face",
        ),
        ({"balance (number)": 0.3}, "unknown column 'balance (number)'"),
        ({"account": "other"}, "its column 'account' says 'other'"),
        (
            {"balance": "much"},
            "node 'new': column 'balance': 'much' cannot be read as a number; send it as a JSON number",
        ),
        ({"balance": "1,234"}, "column 'balance': '1,234' cannot be read as a number"),
        ({"balance": True}, "column 'balance': found True, expected a number"),
        ({"balance": [1.0]}, "column 'balance': found [1.0], expected a number"),
        ({"balance": 1e300}, "node 'new': column 'balance': 1e+300 is too far from the mean"),
        ({"country": ["FR"]}, "expected text, a finite number, true, false, null or a list of numbers"),
        ({"country": [1.0]}, "column 'country': found [1.0], expected text"),
        ({"face": [1.0, 2.0]}, "column 'face': found [1.0, 2.0], expected a list of 3 numbers"),
        ({"face": 3}, "column 'face': found 3, expected a list of 3 numbers"),
        ({"face": "[1, 2]"}, "column 'face': found [1.0, 2.0], expected a list of 3 numbers"),
        ({"about": {"a": 1}}, "expected text, a finite number"),
    ],
)
def test_a_row_that_does_not_fit_is_refused_by_name(start: Start, row: dict[str, Any], told: str) -> None:
    local = start()
    version = local.ask("/api/classes").json["version"]
    answer = local.ask("/api/nodes", {"nodes": [{"node": "fine"}, {"node": "new", "row": row}]})
    assert answer.status == 422
    assert told in answer.json["error"]
    assert local.ask("/api/classes").json["version"] == version
    assert local.ask("/api/nodes/fine").status == 404


def test_text_means_the_same_whatever_others_wrote(start: Start) -> None:
    """1.5 and 1,5 are both numbers by themselves; read as one column, neither mark would fit both."""
    local = start()
    for name, text in {"one": "1.5", "two": "1,5", "three": "[1, 2, 3]"}.items():
        column = "face" if name == "three" else "balance"
        assert local.ask("/api/nodes", {"nodes": [{"node": name, "row": {column: text}}]}).status == 200
    data = data_of(start())
    column = (data.feature_names or ()).index("balance (number)")
    one, two = (data.graph.x[data.node(name), column] for name in ("one", "two"))
    assert one == two != 0


def test_each_dataset_takes_nodes_in_its_own_way(start: Start) -> None:
    local = start()
    answer = local.ask("/api/nodes", {"nodes": [{"node": "new", "attributes": {"balance (number)": 1}}]})
    assert (answer.status, 'give a "row" as they have it: there are about' in answer.json["error"]) == (422, True)
    local = start(of_tables=False)
    answer = local.ask("/api/nodes", {"nodes": [{"node": "new", "row": {"a": 1}}]})
    assert (answer.status, "was not imported from tables" in answer.json["error"]) == (422, True)
    answer = local.ask("/api/nodes", {"nodes": [{"node": "new", "attributes": {"0": 1, "no such": 1}}]})
    assert (answer.status, "unknown attribute 'no such'" in answer.json["error"]) == (422, True)
    assert local.ask("/api/nodes/new").status == 404


def test_a_node_is_replaced(start: Start, tables: Dataset) -> None:
    """One that was attached, and one of the dataset: its row, its edges, or both; what is left out stays."""
    local = start()
    local.ask("/api/nodes", {"nodes": [{"node": "new", "row": {"balance": 1}, "edges": ["A1", "A2"]}]})
    for name in ("new", "A5"):
        around = local.ask(f"/api/nodes/{name}").json["neighbours_total"]
        answer = local.ask(f"/api/nodes/{name}", {"row": ROW}, "PUT")
        assert (answer.status, answer.json["missing"]) == (200, {})
        assert local.ask(f"/api/nodes/{name}").json["neighbours_total"] == around > 1
        assert local.ask(f"/api/nodes/{name}", {"edges": ["A7", "A8"]}, "PUT").status == 200
        about = local.ask(f"/api/nodes/{name}").json
        assert sorted(near["node"] for near in about["neighbours"]) == ["A7", "A8"]
    assert local.ask("/api/nodes/A5").json["class"] == "mine", "its class stays unless the row says another"
    local.ask("/api/nodes/A5", {"row": {**ROW, "kind": "farm"}}, "PUT")
    data = data_of(local)
    same(data, data_of(start()))
    assert data.class_names[data.y[data.node("A5")]] == "farm"
    assert np.array_equal(data.graph.x[[data.node("new")]].toarray(), data.graph.x[[data.node("A5")]].toarray())
    assert data.graph.n == tables.graph.n + 1


def test_true_is_not_1(start: Start) -> None:
    """To Python they are equal: the change was answered for, and not made."""
    local = start()
    first = local.ask("/api/nodes/new", {"row": {"kind": True, "country": True}}, "PUT").json
    second = local.ask("/api/nodes/new", {"row": {"kind": 1, "country": 1}}, "PUT").json
    assert first["version"] != second["version"]
    assert local.ask("/api/nodes/new").json["class"] == "1"
    assert start().ask("/api/nodes/new").json["class"] == "1"


def test_a_node_that_is_not_there_is_attached_by_put(start: Start) -> None:
    local = start()
    assert local.ask("/api/nodes/new", {"row": ROW, "edges": ["A1"]}, "PUT").status == 200
    assert local.ask("/api/nodes/new").json["degree"] == 1
    assert local.ask("/api/nodes/a%09b", {"row": ROW}, "PUT").status == 422


def test_a_node_is_deleted(start: Start, tables: Dataset) -> None:
    local = start()
    local.ask("/api/nodes", {"nodes": [{"node": "new", "row": ROW, "edges": ["A1"]}]})
    local.ask("/api/classes/mine", {"support": ["new", "A1"]}, "PUT")
    for name in ("new", "A1"):
        refused = local.ask(f"/api/nodes/{name}", method="DELETE")
        assert (refused.status, refused.json["error"]) == (409, f"node '{name}' is a support node of class 'mine'")
    local.ask("/api/classes/mine", {"support": ["A2"]}, "PUT")
    for name in ("new", "A1"):
        assert local.ask(f"/api/nodes/{name}", method="DELETE").status == 200
        assert local.ask(f"/api/nodes/{name}").status == 404
        assert local.ask(f"/api/nodes/{name}", method="DELETE").status == 404
    assert local.ask("/api/classify", {"nodes": ["A1"]}).status == 422
    rest = [i for i, name in enumerate(tables.node_names or ()) if name != "A1"]
    names = tuple(tables.node_name(i) for i in rest)
    graph = Graph(tables.graph.adj[rest][:, rest], tables.graph.x[rest])
    expected = replace(tables, graph=graph, y=tables.y[rest], node_names=names)
    same(data_of(local), expected)
    local = start()
    same(data_of(local), expected)
    local.ask("/api/nodes", {"nodes": [{"node": "A1", "edges": ["A2"]}]})
    assert local.ask("/api/nodes/A1").json["degree"] == 1, "it comes back as a new node, without its old edges"
    assert start().ask("/api/nodes/A1").json["degree"] == 1
    assert local.ask("/api/model").json["data"] == {**local.ask("/api/model").json["data"], "nodes": 200, "attached": 1}


def test_edges_come_and_go(start: Start, tables: Dataset) -> None:
    local = start()
    first = tables.node_name(int(tables.graph.adj[[0]].indices[0]))
    new = next(name for name in tables.node_names or () if not tables.graph.adj[0, tables.node(name)] and name != "A0")
    edges = {"add": [{"source": new, "target": "A0"}, {"source": "A0", "target": first}]}
    answer = local.ask("/api/edges", {**edges, "remove": []}).json
    assert (answer["added"], answer["removed"], len(answer["unchanged"])) == (1, 0, 1)
    answer = local.ask("/api/edges", {"remove": [{"source": first, "target": "A0"}]}).json
    assert (answer["added"], answer["removed"], answer["unchanged"]) == (0, 1, [])
    data = data_of(local)
    assert (data.graph.adj[0, data.node(new)], data.graph.adj[data.node(first), 0]) == (1, 0)
    assert (data.graph.adj != data.graph.adj.T).nnz == 0
    same(data, data_of(start()))
    local = start()
    back = {"add": [{"source": "A0", "target": first}], "remove": [{"source": "A0", "target": new}]}
    assert local.ask("/api/edges", back).status == 200
    same(data_of(local), tables)
    assert local.store.read().edges == {}
    for bad in (
        {"add": [{"source": "A0", "target": "A0"}]},
        {"add": [{"source": "A0", "target": "?"}]},
        {**back, "remove": back["add"]},
    ):
        assert local.ask("/api/edges", bad).status == 422, bad


def test_edges_of_a_directed_network_have_a_direction(planted: Dataset, tmp_path: Path) -> None:
    index = planted.graph.edge_index()[:, ::2]
    graph = Graph.from_edges(index, planted.graph.n, planted.graph.x, directed=True)
    local = Local(save_run(replace(planted, graph=graph), tmp_path, "propagation", steps=1), tmp_path / "state.sqlite")
    local.ask("/api/nodes", {"nodes": [{"node": "new", "edges": ["node-1"]}, {"node": "newer", "edges": ["new"]}]})
    data = data_of(local)
    one, new, newer = data.node("node-1"), data.node("new"), data.node("newer")
    assert (data.graph.adj[new, one], data.graph.adj[one, new], data.graph.adj[newer, new]) == (1, 0, 1)
    local.ask("/api/nodes/new", {"edges": ["node-2"]}, "PUT")
    adj = data_of(local).graph.adj
    assert (adj[new, one], adj[new, data.node("node-2")], adj[newer, new]) == (0, 1, 1), "those that lead from it stay"
    local.ask("/api/edges", {"remove": [{"source": "new", "target": "newer"}]})
    assert data_of(local).graph.adj[newer, new] == 0
    local.close()


def test_what_cannot_be_answered_is_not_attached(planted: Dataset, tmp_path: Path) -> None:
    """A threshold needs a model that can tell strangers: refused, and nothing is kept."""
    local = Local(save_run(planted, tmp_path, "sgc"), tmp_path / "state.sqlite")
    for name, node in {"a": "node-1", "b": "node-2"}.items():
        local.ask(f"/api/classes/{name}", {"support": [node]}, "PUT")
    assert local.ask("/api/nodes", {"nodes": [{"node": "new"}], "threshold": 0.7}).status == 422
    assert local.ask("/api/nodes/new").status == 404
    local.close()


def test_a_stranger_among_attached_nodes_is_told(start: Start) -> None:
    local = start()
    local.ask("/api/classes/port", {"support": ["A3", "A13", "A23"]}, "PUT")
    local.ask("/api/classes/bank", {"support": ["A0", "A10", "A20"]}, "PUT")
    body = {"nodes": [{"node": "new", "row": ROW, "edges": ["A3", "A13"]}]}
    answer = local.ask("/api/nodes", body).json
    again = local.ask("/api/classify", {"nodes": ["new"]}).json
    assert answer["results"] == again["results"]
    assert 0 <= answer["results"][0]["member"] <= 1
    forced = local.ask("/api/nodes/new", {"closed_set": True}, "PUT").json
    assert forced["results"][0]["class"] == "port"
