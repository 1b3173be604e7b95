"""What the service answers: the same as `fewnode predict`, for registered classes and for those of a request."""

from __future__ import annotations

import csv
import gzip
import io
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import numpy as np
import pytest

from fewnode.dataset import Dataset
from fewnode.graph import Graph
from fewnode.model.estimator import load_model
from fewnode.recognition.answers import NONE, Answers
from fewnode.recognition.classes import read_support
from fewnode.service.http import PACKED
from graphs import predictions_of
from service import Local, save_run

SUPPORT = {"first": ["node-0", "node-1", "node-2"], "second": ["node-3", "node-4"], "<b>third": ["node-5"]}
NODES = ["node-10", "node-20", "node-30"]


def rows(data: Dataset, support: dict[str, list[str]]) -> tuple[list[int], list[str]]:
    given = [(data.node(node), label) for label, nodes in support.items() for node in nodes]
    return [node for node, _ in given], [label for _, label in given]


def same(answer: dict[str, Any], expected: Answers) -> None:
    """To the last bit: service and command line are one code path."""
    assert (answer["classes"], answer["closed_set"]) == (expected.classes, expected.closed_set)
    for field in ("probability", "probabilities", "member"):
        assert np.array_equal([result[field] for result in answer["results"]], getattr(expected, field))
    taken = [NONE if result["class"] is None else result["class"] for result in answer["results"]]
    assert taken == expected.labels


HOW: list[dict[str, Any]] = [{}, {"closed_set": True}, {"threshold": 0.9}, {"threshold": 0.01}]


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("mode", ["inductive", "transductive"])
def test_answers_are_those_of_predict(
    local: Local, run_dir: Path, planted: Dataset, mode: str, how: dict[str, Any]
) -> None:
    asked = [planted.node(node) for node in NODES]
    given = rows(planted, SUPPORT)
    expected = predictions_of(
        load_model(run_dir), planted, *given, asked, True, transductive=mode == "transductive", **how
    )
    body = {"nodes": NODES, "mode": mode, **how}
    same(local.ask("/api/classify", {**body, "support": SUPPORT}).json, expected)
    for name, nodes in SUPPORT.items():
        assert local.ask(f"/api/classes/{name}", {"support": nodes}, "PUT").status == 200
    same(local.ask("/api/classify", body).json, expected)


def test_all_nodes_are_counted_and_the_surest_are_shown(local: Local, run_dir: Path, planted: Dataset) -> None:
    body = {"all": True, "support": SUPPORT, "limit": 4, "threshold": 0.02}
    answer = local.ask("/api/classify", body).json
    given = rows(planted, SUPPORT)
    expected = predictions_of(load_model(run_dir), planted, *given, range(planted.graph.n), threshold=0.02)
    assert answer["counts"] == {name: expected.labels.count(name) for name in answer["classes"]}
    shown = [result["node"] for result in answer["results"] if result["class"] == "first"]
    assert 0 < len(shown) <= 4
    assert not set(shown) & set(SUPPORT["first"])
    sure = [result["probability"] for result in answer["results"] if result["class"] == "first"]
    assert sure == sorted(sure, reverse=True)
    others = zip(expected.labels, expected.probability.tolist(), expected.nodes, strict=True)
    left = [p for label, p, node in others if label == "first" and node not in {*shown, *SUPPORT["first"]}]
    assert max(left, default=0) <= sure[-1]
    usual = local.ask("/api/classify", {"all": True, "support": SUPPORT}).json
    assert sum(usual["counts"].values()) < planted.graph.n, "most nodes are in none of them, unless they have to"
    forced = local.ask("/api/classify", {"all": True, "support": SUPPORT, "closed_set": True, "limit": 2}).json
    assert sum(forced["counts"].values()) == planted.graph.n


def test_a_node_is_shown_with_its_words_and_neighbours(local: Local, planted: Dataset) -> None:
    found = local.ask("/api/search?search=DE-1&limit=3").json
    assert found["total"] == sum("de-1" in name for name in planted.node_names or ())
    assert len(found["nodes"]) == 3
    assert local.ask("/api/search?search=node-7").json["nodes"][0]["node"] == "node-7"
    assert local.ask("/api/search?search=nothing").json == {"total": 0, "offset": 0, "nodes": []}
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


def test_a_long_answer_is_packed_for_those_who_can_unpack(local: Local) -> None:
    plain = local.ask("/openapi.json")
    packed = local.ask("/openapi.json", Accept_Encoding="gzip")
    assert len(plain.body) > PACKED
    assert packed.headers["content-encoding"] == "gzip"
    assert gzip.decompress(packed.body) == plain.body
    assert "content-encoding" not in local.ask("/api/model", Accept_Encoding="gzip").headers


def register(local: Local, classes: dict[str, list[str]]) -> None:
    for name, nodes in classes.items():
        assert local.ask(f"/api/classes/{quote(name, safe='')}", {"support": nodes}, "PUT").status == 200


def of_class(data: Dataset, name: str) -> list[str]:
    return [data.node_name(int(i)) for i in np.flatnonzero(data.y == data.class_names.index(name))]


def table(local: Local, **how: Any) -> list[dict[str, str]]:
    text = local.ask(f"/api/export/labels.csv?{urlencode(how)}").body.decode()
    return list(csv.DictReader(io.StringIO(text)))


@pytest.mark.parametrize("how", [{}, {"closed_set": True}, {"threshold": 0.9}, {"mode": "transductive"}])
def test_what_is_claimed_is_checked_by_every_known_label(local: Local, planted: Dataset, how: dict[str, Any]) -> None:
    """A claimed node that the data knows as something else is wrong, though nobody named that something else."""
    called = {"mine": "class k", "class x": "class l"}
    register(local, {name: of_class(planted, kind)[:3] for name, kind in called.items()})
    found = local.ask(f"/api/trust?{urlencode(how)}").json["classes"]
    given = {node for kind in called.values() for node in of_class(planted, kind)[:3]}
    rows = [row for row in table(local, **how) if row["node"] not in given]
    truth = {row["node"]: planted.class_names[planted.y[planted.node(row["node"])]] for row in rows}
    for name, kind in called.items():
        own = [row["node"] for row in rows if row["label"] == name]
        good, known = sum(truth[node] == kind for node in own), found[name]["known"]
        assert (known["compared_with"], found[name]["claimed"]) == (kind, len(own) + 3)
        assert (known["precision"] is None) == (len(own) < 10)
        if known["precision"]:
            assert (known["precision"]["value"], known["precision"]["n"]) == (good / len(own), len(own))
        assert (known["recall"]["value"], known["recall"]["n"]) == (good / 21, 21)


def test_what_the_data_calls_a_class(planted: Dataset, tmp_path: Path) -> None:
    """Where most examples have no label the name speaks; of fewer than ten nodes nothing is said."""
    y = planted.y.copy()
    y[np.flatnonzero(y == planted.class_names.index("class k"))[:15]] = -1
    local = Local(save_run(replace(planted, y=y), tmp_path, "propagation"), tmp_path / "state.sqlite")
    hidden, members = of_class(planted, "class k"), of_class(planted, "class l")
    register(local, {"new": hidden[:3], "one": members[:3], "two": members[3:6]})
    found = local.ask("/api/trust?closed_set=true").json["classes"]
    assert found["new"]["known"] is None
    assert [found[name]["known"]["compared_with"] for name in ("one", "two")] == ["class l", "class l"]
    assert [found[name]["known"]["recall"] for name in ("one", "two")] == [None, None], "they share its members"
    register(local, {"new": hidden[:16]})
    known = local.ask("/api/trust?closed_set=true").json["classes"]["new"]["known"]
    assert (known["compared_with"], known["recall"]) == ("class k", None)
    local.close()


def test_a_new_node_is_classified_as_if_it_had_always_been_there(local: Local, run_dir: Path, planted: Dataset) -> None:
    twin = planted.node("node-10")
    words = planted.graph.x[[twin]]
    attributes = {str(j): float(v) for j, v in zip(words.indices, words.data, strict=True)}
    edges = [planted.node_name(int(v)) for v in planted.graph.adj[[twin]].indices]
    for name, nodes in SUPPORT.items():
        local.ask(f"/api/classes/{name}", {"support": nodes}, "PUT")
    before = local.ask("/api/model").json
    body = {"nodes": [{"node": "new", "attributes": attributes, "edges": edges}]}
    answer = local.ask("/api/nodes", body).json
    edge_index = np.array([[planted.graph.n] * len(edges), [planted.node(end) for end in edges]])
    x = np.concatenate([planted.graph.x.toarray(), words.toarray()])
    every = np.concatenate([planted.graph.edge_index(), edge_index], axis=1)
    graph = Graph.from_edges(every, planted.graph.n + 1, type(planted.graph.x)(x))
    names = (*(planted.node_names or ()), "new")
    larger = replace(planted, graph=graph, y=np.append(planted.y, -1), node_names=names)
    same(answer, predictions_of(load_model(run_dir), larger, *rows(larger, SUPPORT), [planted.graph.n], True))
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
    assert read_support(tmp_path / "support.csv", planted)[:2] == rows(planted, SUPPORT)
    local.ask("/api/classes/=HYPERLINK(1)", {"support": ["node-9"]}, "PUT")
    assert "node-9,'=HYPERLINK(1)\n" in local.ask("/api/export/support.csv").body.decode()
    labels = list(csv.reader(io.StringIO(local.ask("/api/export/labels.csv").body.decode())))
    assert len(labels) == 1 + planted.graph.n
    assert labels[0] == ["node", "label", "probability", "<b>third", "'=HYPERLINK(1)", "first", "second", "member"]


@pytest.mark.parametrize("mode", ["inductive", "transductive"])
@pytest.mark.parametrize(("how", "alone"), [*((how, False) for how in HOW), ({}, True)])
def test_the_table_says_what_the_page_says(
    local: Local, planted: Dataset, mode: str, how: dict[str, Any], alone: bool
) -> None:
    """Of every node: the same label, the same probabilities, the same `member`."""
    given = of_class(planted, "class k")[:3]
    register(local, {"first": given} if alone else SUPPORT)
    names = list(planted.node_names or ())
    if mode == "inductive":
        answer = local.ask("/api/classify", {"nodes": names, "mode": mode, **how}).json
    else:
        answer = local.ask("/api/classify", {"all": True, "limit": 3, "mode": mode, **how}).json
    said = {row["node"]: row for row in table(local, mode=mode, **how)}
    assert list(said) == names
    assert answer["results"] or how == {"threshold": 0.9}
    for result in answer["results"]:
        row = said[result["node"]]
        assert row["label"] == (result["class"] or NONE)
        assert row["probability"] == f"{result['probability']:.6f}"
        assert row["member"] == f"{result['member']:.6f}"
        shown = dict(zip(answer["classes"], result["probabilities"], strict=True))
        assert {name: row[name] for name in shown} == {name: f"{p:.6f}" for name, p in shown.items()}
    if mode == "inductive" and not how:
        assert NONE in {row["label"] for row in said.values()}, "a node may be in none of the classes"
    if alone:
        assert {row["label"] for row in said.values()} == {"first", NONE}
        others = [float(row["first"]) for node, row in said.items() if node not in given]
        assert len({p for p in others if 0 < p < 1}) > 50, "more like these, and not 1.000000 for every node"
    counts = local.ask("/api/classify", {"all": True, "mode": mode, **how}).json["counts"]
    assert counts == {name: sum(row["label"] == name for row in said.values()) for name in answer["classes"]}


def test_a_method_without_prototypes_classifies_and_says_what_it_cannot(planted: Dataset, tmp_path: Path) -> None:
    local = Local(save_run(planted, tmp_path, "sgc"), tmp_path / "state.sqlite")
    about = local.ask("/api/model").json
    assert about["modes"] == ["inductive"]
    assert not any(about[what] for what in ("open_set", "explains", "suggests", "map"))
    answer = local.ask("/api/classify", {"nodes": NODES, "support": SUPPORT}).json
    assert answer["closed_set"]
    assert "cannot tell whether a node is in none of the classes" in answer["note"]
    assert {result["member"] for result in answer["results"]} == {None}
    alone = local.ask("/api/classify", {"nodes": NODES, "support": {"first": SUPPORT["first"]}})
    assert (alone.status, "one class alone" in alone.json["error"]) == (422, True)
    assert np.allclose([sum(result["probabilities"]) for result in answer["results"]], 1, atol=1e-5)
    for path, more in (
        ("/api/classify", {"nodes": NODES, "mode": "transductive"}),
        ("/api/classify", {"nodes": NODES, "threshold": 0.7}),
    ):
        refused = local.ask(path, {"support": SUPPORT, **more})
        assert (refused.status, "sgc" in refused.json["error"]) == (422, True)
    assert local.ask("/api/map.bin").status == 422
    assert local.ask("/api/classes/one", {"support": ["node-7"]}, "PUT").json["position"] is None
    assert local.ask("/api/nodes/node-7").json["position"] is None
    local.close()


def test_no_two_columns_of_a_table_have_one_name(local: Local) -> None:
    names = ["node", "label", "p(node)", "member", "probability", "p(p(node))", "nearest"]
    register(local, {name: [f"node-{i}"] for i, name in enumerate(names)})
    header = local.ask("/api/export/labels.csv").body.decode().splitlines()[0].split(",")
    assert len(set(header)) == len(header) == len(names) + 4
