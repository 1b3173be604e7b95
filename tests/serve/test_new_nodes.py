"""Nodes that come over HTTP: what the service then knows is what a new import would give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fewnode.dataset import Dataset
from fewnode.model.estimator import Estimator
from fewnode.tables.extend import extend
from fewnode.tables.read import read_tables
from graphs import planted_kinds
from service import InProcess, Local

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
def model(tables: Dataset) -> Estimator:
    return Estimator("propagation", way=3, shot=3, steps=1).fit(tables)


@pytest.fixture
def start(
    opened: Callable[[Estimator, Dataset], InProcess], model: Estimator, tables: Dataset
) -> Callable[[], InProcess]:
    return lambda: opened(model, tables)


Start = Callable[[], InProcess]


def data_of(local: InProcess) -> Dataset:
    return local.service.now.network.data


def same(one: Dataset, other: Dataset) -> None:
    """The same nodes, attributes, classes and edges."""
    assert (one.node_names, one.class_names, one.y.tolist()) == (other.node_names, other.class_names, other.y.tolist())
    dense = [x.toarray() if hasattr(x, "toarray") else x for x in (one.graph.x, other.graph.x)]
    assert np.array_equal(*dense)
    assert (one.graph.adj != other.graph.adj).nnz == 0


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
            "row": {"account": "newer", "balance": "1200,5", "kind": "bank", "country": "XX", "opened": "x"},
        },
        {"node": "newest"},
    ]
    answer = local.ask("/api/nodes", {"nodes": rows, "threshold": 0.2})
    assert answer.status == 200, answer.json
    assert [result["node"] for result in answer.json["results"]] == ["new", "newer", "newest"]
    assert answer.json["results"][0]["class"] == "port"
    assert answer.json["missing"] == {"newer": ["about", "face"], "newest": list(ROW)}
    assert (answer.json["unknown"], answer.json["unused"]) == ({"newer": {"country": "XX"}}, ["opened"])
    table = {
        "account": ["new", "newer", "newest"],
        "about": [ROW["about"], None, None],
        "balance": [3100, 1200.5, None],
        "country": ["FR", "XX", None],
        "face": [[3.0, 3.1, 2.9], None, None],
        "kind": [None, "bank", None],
    }
    expected = extend(tables, table, {"from": ["new", "new"], "to": ["A3", "newer"]})
    same(data_of(local), expected)
    before = local.ask("/api/classify", {"nodes": ["new", "newer"]}).json
    local = start()
    same(data_of(local), expected)
    assert local.ask("/api/classify", {"nodes": ["new", "newer"]}).json == before


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


def test_each_dataset_takes_nodes_in_its_own_way(start: Start, local: Local) -> None:
    tables = start()
    answer = tables.ask("/api/nodes", {"nodes": [{"node": "new", "attributes": {"balance (number)": 1}}]})
    assert (answer.status, 'give a "row" as they have it: there are about' in answer.json["error"]) == (422, True)
    answer = local.ask("/api/nodes", {"nodes": [{"node": "new", "row": {"a": 1}}]})
    assert (answer.status, "was not imported from tables" in answer.json["error"]) == (422, True)
    answer = local.ask("/api/nodes", {"nodes": [{"node": "new", "attributes": {"no such": 1}}]})
    assert (answer.status, "unknown attribute 'no such'" in answer.json["error"]) == (422, True)
    assert local.ask("/api/nodes/new").status == 404
    answer = local.ask("/api/nodes", {"nodes": [{"node": "new", "attributes": {"0": 1, "no such": 1}}]})
    assert (answer.status, answer.json["unused"]) == (200, ["no such"]), "what is not used is named"


# --- kinds, weights and ways of edges ---


@pytest.fixture(name="kinds", scope="module")
def _kinds() -> Dataset:
    return planted_kinds()


@pytest.fixture(name="kinds_model", scope="module")
def _kinds_model(kinds: Dataset) -> Estimator:
    return Estimator("gpn-plus", way=3, shot=3, rank=32).fit(kinds)


@pytest.fixture(name="typed")
def _typed(opened: Callable[[Estimator, Dataset], InProcess], kinds_model: Estimator, kinds: Dataset) -> InProcess:
    return opened(kinds_model, kinds)


def test_neighbours_come_with_kinds_ways_and_weights(typed: InProcess, kinds: Dataset) -> None:
    near, ways, node = typed.ask("/api/nodes/node-7").json["neighbours"], set[str | None](), kinds.node("node-7")
    for each in near:
        other = kinds.node(each["node"])
        expected = set()
        for relation in kinds.graph.relations:
            come, lead = relation.adj[node, other], relation.adj[other, node]
            if come or lead:
                way = None if not relation.directed else "both" if come and lead else "from" if come else "to"
                weight = round(float(max(come, lead)), 4) if relation.name == "pays" else None
                expected.add((relation.name, way, weight))
        assert {(e["kind"], e["way"], e["weight"]) for e in each["edges"]} == expected != set()
        ways |= {e["way"] for e in each["edges"]}
    assert len(ways) > 1
    assert len(near) == np.count_nonzero(kinds.graph.adj[[node]].toarray())


def attach(local: InProcess, *edges: dict[str, Any]) -> Any:
    return local.ask("/api/nodes", {"nodes": [{"node": "new", "edges": list(edges)}]})


def test_a_new_node_comes_with_kinds_weights_and_ways(
    typed: InProcess, opened: Callable[[Estimator, Dataset], InProcess], kinds_model: Estimator, kinds: Dataset
) -> None:
    pays = {"node": "node-7", "kind": "pays", "weight": 2.5, "way": "to"}
    assert attach(typed, pays, {"node": "node-8", "kind": "owns"}, {"node": "node-9", "kind": "knows"}).status == 200
    found = opened(kinds_model, kinds).ask("/api/nodes/new").json["neighbours"]
    edges = {each["node"]: [(e["kind"], e["way"], e["weight"]) for e in each["edges"]] for each in found}
    assert edges == {
        "node-7": [("pays", "to", 2.5)],
        "node-8": [("owns", "from", None)],
        "node-9": [("knows", None, None)],
    }


REFUSED = {
    "unknown kind 'pay'": {"kind": "pay"},
    "give its kind; there are pays, owns, knows": {},
    "edges of kind 'knows' have no weights": {"kind": "knows", "weight": 2.0},
    "its edge to 'node-2': give its kind": {"weight": 2.0},
    "weight": {"kind": "pays", "weight": -1.0},
}


def test_what_the_network_cannot_hold_is_refused(typed: InProcess, local: Local) -> None:
    for why, edge in REFUSED.items():
        answer = attach(typed, {"node": "node-2", **edge})
        assert (answer.status, why in answer.json["error"]) == (422, True), answer.body
    assert "neither weights nor kinds" in attach(local, {"node": "node-2", "kind": "pays"}).json["error"]
