"""What the service answers: the same as `fewnode predict`, for registered classes and for those of a request."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import numpy as np
import pytest

from fewnode.dataset import Dataset
from fewnode.graph import Graph
from fewnode.model.model_files import load_model
from fewnode.recognition.answers import NONE, Answers
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
