"""What the service answers: the same as `fewnode predict`, for registered classes and for those of a request."""

from __future__ import annotations

import csv
import gzip
import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fewnode.estimator import load_model
from fewnode.graph import Dataset, Graph
from fewnode.predictions import Predictions, read_support
from fewnode.serve.app import PACKED
from service import Local, save_run

SUPPORT = {"first": ["node-0", "node-1", "node-2"], "second": ["node-3", "node-4"], "<b>third": ["node-5"]}
NODES = ["node-10", "node-20", "node-30"]


def rows(data: Dataset, support: dict[str, list[str]]) -> tuple[list[int], list[str]]:
    given = [(data.node(node), label) for label, nodes in support.items() for node in nodes]
    return [node for node, _ in given], [label for _, label in given]


def same(answer: dict[str, Any], expected: Predictions) -> None:
    """To the last bit: service and command line are one code path."""
    columns = [expected.classes.index(name) for name in answer["classes"]]
    got = np.array([result["probabilities"] for result in answer["results"]], np.float32)
    assert np.array_equal(got, expected.probability[:, columns])
    assert [[near["node"] for near in result["nearest"]] for result in answer["results"]] == expected.nearest
    beta = {node: weight for weights in answer["beta"].values() for node, weight in weights.items()}
    assert expected.why is not None
    assert [np.float32(beta[node]) for node, _ in expected.support] == expected.why.beta.tolist()


@pytest.mark.parametrize("open_set", [False, True])
@pytest.mark.parametrize("mode", ["inductive", "transductive"])
def test_answers_are_those_of_predict(local: Local, run_dir: Path, planted: Dataset, mode: str, open_set: bool) -> None:
    asked = [planted.node(node) for node in NODES]
    given = rows(planted, SUPPORT)
    expected = Predictions.of(load_model(run_dir), planted, *given, asked, True, mode == "transductive", open_set)
    body = {"nodes": NODES, "mode": mode, "open_set": open_set}
    same(local.ask("/api/classify", {**body, "support": SUPPORT}).json, expected)
    for name, nodes in SUPPORT.items():
        assert local.ask(f"/api/classes/{name}", {"support": nodes}, "PUT").status == 200
    same(local.ask("/api/classify", body).json, expected)
    familiar = [result["familiar"] for result in local.ask("/api/classify", body).json["results"]]
    assert not open_set or familiar == pytest.approx([sum(row[:3]) for row in expected.probability.tolist()], abs=1e-6)


def test_all_nodes_are_counted_and_the_surest_are_shown(local: Local, run_dir: Path, planted: Dataset) -> None:
    answer = local.ask("/api/classify", {"all": True, "support": SUPPORT, "limit": 4}).json
    expected = Predictions.of(load_model(run_dir), planted, *rows(planted, SUPPORT), range(planted.graph.n))
    assert answer["counts"] == {name: expected.labels.count(name) for name in answer["classes"]}
    shown = [result["node"] for result in answer["results"] if result["class"] == "first"]
    assert 0 < len(shown) <= 4
    assert not set(shown) & set(SUPPORT["first"])
    sure = [max(result["probabilities"]) for result in answer["results"] if result["class"] == "first"]
    assert sure == sorted(sure, reverse=True)
    left = [p for p, node in zip(expected.probability, expected.nodes, strict=True) if node not in shown]
    others = [max(p) for p in left if p.argmax() == expected.classes.index("first")]
    assert sorted(others)[-4] <= sure[0]
    stranger = local.ask("/api/classify", {"all": True, "support": SUPPORT, "open_set": True, "limit": 2}).json
    assert sum(stranger["counts"].values()) <= planted.graph.n
    assert all(result["class"] in SUPPORT for result in stranger["results"])


def test_a_node_is_shown_with_its_words_and_neighbours(local: Local, planted: Dataset) -> None:
    found = local.ask("/api/nodes?search=DE-1&limit=3").json
    assert found["total"] == sum("de-1" in name for name in planted.node_names or ())
    assert len(found["nodes"]) == 3
    assert local.ask("/api/nodes?search=node-7").json["nodes"][0]["node"] == "node-7"
    assert local.ask("/api/nodes?search=nothing").json == {"total": 0, "offset": 0, "nodes": []}
    about = local.ask("/api/nodes/node-7").json
    assert about["class"] == planted.class_names[planted.y[7]]
    assert about["neighbours_total"] == about["degree"] == planted.graph.degree[7]
    assert {near["node"] for near in about["neighbours"]} == {
        planted.node_name(v) for v in planted.graph.adj[[7]].indices
    }
    for i, j in about["links"]:
        u, v = (planted.node(about["neighbours"][k]["node"]) for k in (i, j))
        assert planted.graph.adj[u, v] == 1
    assert 0 < len(about["words"]) <= 12
    assert all(0 <= x <= 1 for x in about["position"])
    assert local.ask("/api/nodes/nobody").status == 404


def test_the_map_has_every_node_or_a_sample(local: Local, planted: Dataset) -> None:
    whole = local.ask("/api/map").json
    assert whole["shown"] == whole["total"] == planted.graph.n == len(whole["x"]) == len(whole["y"])
    assert [whole["class_names"][c] for c in whole["class"]] == [
        planted.class_names[planted.y[planted.node(name)]] for name in whole["nodes"]
    ]
    assert local.ask("/api/map?limit=7").json["shown"] == 7
    local.ask("/api/classes/one", {"support": ["node-7"]}, "PUT")
    place = whole["nodes"].index("node-7")
    only = local.ask("/api/classes/one").json
    assert only["support"] == [{"node": "node-7", "beta": 1.0}]
    assert only["position"] == pytest.approx([whole["x"][place], whole["y"][place]], abs=1e-3)


def test_a_long_answer_is_packed_for_those_who_can_unpack(local: Local) -> None:
    plain = local.ask("/openapi.json")
    packed = local.ask("/openapi.json", Accept_Encoding="gzip")
    assert len(plain.body) > PACKED
    assert packed.headers["content-encoding"] == "gzip"
    assert gzip.decompress(packed.body) == plain.body
    assert "content-encoding" not in local.ask("/api/model", Accept_Encoding="gzip").headers


def test_suggestions_are_new_nodes(local: Local) -> None:
    body = {"count": 3, "support": SUPPORT, "exclude": ["node-8"]}
    found = local.ask("/api/suggest", body).json["nodes"]
    names = [node["node"] for node in found]
    assert len(names) == 3
    assert not set(names) & {"node-8", *SUPPORT["first"]}
    assert all(node["class"] in SUPPORT and "stands for" in node["why"] for node in found)
    again = local.ask("/api/suggest", {**body, "exclude": names}).json["nodes"]
    assert not set(names) & {node["node"] for node in again}


def test_progress_is_accuracy_on_nodes_that_are_not_shown(local: Local, planted: Dataset) -> None:
    assert local.ask("/api/progress", {}).status == 422
    for name in ("class k", "class l"):
        members = np.flatnonzero(planted.y == planted.class_names.index(name))
        local.ask(f"/api/classes/{name}", {"support": [f"node-{i}" for i in members[:3]]}, "PUT")
    found = local.ask("/api/progress", {}).json
    assert found["nodes"] == 2 * (24 - 3)
    assert found["accuracy"] > 0.8
    assert found["per_class"]["class k"]["nodes"] == 21
    wrong = {"truth": {"class k": [f"node-{i}" for i in members]}}
    assert local.ask("/api/progress", wrong).json["accuracy"] < found["accuracy"]


def test_a_new_node_is_classified_as_if_it_had_always_been_there(local: Local, run_dir: Path, planted: Dataset) -> None:
    twin = planted.node("node-10")
    words = planted.graph.x[[twin]]
    attributes = {str(j): float(v) for j, v in zip(words.indices, words.data, strict=True)}
    edges = [planted.node_name(int(v)) for v in planted.graph.adj[[twin]].indices]
    for name, nodes in SUPPORT.items():
        local.ask(f"/api/classes/{name}", {"support": nodes}, "PUT")
    before = local.ask("/api/model").json
    body = {"nodes": [{"node": "new", "attributes": {**attributes, "no such word": 1.0}, "edges": edges}]}
    answer = local.ask("/api/nodes", body).json
    assert answer["unknown_attributes"] == ["no such word"]
    edge_index = np.array([[planted.graph.n] * len(edges), [planted.node(end) for end in edges]])
    x = np.concatenate([planted.graph.x.toarray(), words.toarray()])
    every = np.concatenate([planted.graph.edge_index(), edge_index], axis=1)
    graph = Graph.from_edges(every, planted.graph.n + 1, type(planted.graph.x)(x))
    names = (*(planted.node_names or ()), "new")
    larger = replace(planted, graph=graph, y=np.append(planted.y, -1), node_names=names)
    same(answer, Predictions.of(load_model(run_dir), larger, *rows(larger, SUPPORT), [planted.graph.n], True))
    after = local.ask("/api/model").json
    assert after["data"]["nodes"] == before["data"]["nodes"] + 1
    assert after["version"] != before["version"]
    assert local.ask("/api/nodes/new").json["class"] is None
    assert local.ask("/api/nodes", body).status == 422
    assert "not in the network" in local.ask("/api/nodes", {"nodes": [{"node": "x", "edges": ["?"]}]}).json["error"]


def test_tables_go_back_into_predict(local: Local, planted: Dataset, tmp_path: Path) -> None:
    for name, nodes in SUPPORT.items():
        local.ask(f"/api/classes/{name}", {"support": nodes}, "PUT")
    table = local.ask("/api/export/support.csv")
    assert table.headers["content-type"].startswith("text/csv")
    (tmp_path / "support.csv").write_bytes(table.body)
    assert read_support(tmp_path / "support.csv", planted) == rows(planted, SUPPORT)
    local.ask("/api/classes/=HYPERLINK(1)", {"support": ["node-9"]}, "PUT")
    assert "node-9,'=HYPERLINK(1)\n" in local.ask("/api/export/support.csv").body.decode()
    labels = list(csv.reader(io.StringIO(local.ask("/api/export/labels.csv").body.decode())))
    assert len(labels) == 1 + planted.graph.n
    assert labels[0] == ["node", "label", "<b>third", "'=HYPERLINK(1)", "first", "second"]


def test_a_method_without_prototypes_classifies_and_says_what_it_cannot(planted: Dataset, tmp_path: Path) -> None:
    local = Local(save_run(planted, tmp_path, "sgc"), tmp_path / "state.sqlite")
    about = local.ask("/api/model").json
    assert about["modes"] == ["inductive"]
    assert not any(about[what] for what in ("open_set", "explains", "suggests", "map"))
    answer = local.ask("/api/classify", {"nodes": NODES, "support": SUPPORT}).json
    assert answer["beta"] == {}
    assert np.allclose([sum(result["probabilities"]) for result in answer["results"]], 1, atol=1e-5)
    for path, more in (
        ("/api/classify", {"nodes": NODES, "mode": "transductive"}),
        ("/api/classify", {"nodes": NODES, "open_set": True}),
        ("/api/suggest", {}),
    ):
        refused = local.ask(path, {"support": SUPPORT, **more})
        assert (refused.status, refused.json["error"].split()[0]) == (422, "sgc")
    assert local.ask("/api/map").status == 422
    assert local.ask("/api/classes/one", {"support": ["node-7"]}, "PUT").json["position"] is None
    assert local.ask("/api/nodes/node-7").json["position"] is None
    local.close()
