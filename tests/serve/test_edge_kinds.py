"""Kinds of edges in the service: what a node's neighbourhood tells of them, and what the page draws."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from fewnode.dataset import Dataset
from graphs import planted_kinds
from service import Local, save_run


@pytest.fixture(name="kinds", scope="module")
def _kinds() -> Dataset:
    return planted_kinds()


@pytest.fixture(name="typed_run", scope="module")
def _typed_run(kinds: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_run(kinds, tmp_path_factory.mktemp("kinds"), "gpn-plus", rank=32)


@pytest.fixture(name="typed")
def _typed(typed_run: Path, tmp_path: Path) -> Iterator[Local]:
    found = Local(typed_run, tmp_path / "state.sqlite")
    yield found
    found.close()


def test_neighbours_come_with_kinds_ways_and_weights(typed: Local, kinds: Dataset) -> None:
    about = typed.ask("/api/nodes/node-7").json
    node = kinds.node("node-7")
    ways: set[str | None] = set()
    for near in about["neighbours"]:
        other = kinds.node(near["node"])
        expected = set()
        for relation in kinds.graph.relations:
            come, lead = relation.adj[node, other], relation.adj[other, node]
            if come or lead:
                way = None if not relation.directed else "both" if come and lead else "from" if come else "to"
                weight = round(float(max(come, lead)), 4) if relation.name == "pays" else None
                expected.add((relation.name, way, weight))
        assert {(e["kind"], e["way"], e["weight"]) for e in near["edges"]} == expected != set()
        ways |= {e["way"] for e in near["edges"]}
    assert len(ways) > 1
    assert len(about["neighbours"]) == np.count_nonzero(kinds.graph.adj[[node]].toarray())


def edges_of(local: Local, node: str) -> dict[str, list[tuple[str, str | None, float | None]]]:
    found = local.ask(f"/api/nodes/{node}").json["neighbours"]
    return {near["node"]: [(e["kind"], e["way"], e["weight"]) for e in near["edges"]] for near in found}


def test_a_new_node_comes_with_kinds_weights_and_ways(typed_run: Path, tmp_path: Path) -> None:
    local = Local(typed_run, tmp_path / "state.sqlite")
    edges = [
        {"node": "node-7", "kind": "pays", "weight": 2.5, "way": "to"},
        {"node": "node-8", "kind": "owns"},
        {"node": "node-9", "kind": "knows"},
    ]
    assert local.ask("/api/nodes", {"nodes": [{"node": "new", "attributes": {}, "edges": edges}]}).status == 200
    expected = {
        "node-7": [("pays", "to", 2.5)],
        "node-8": [("owns", "from", None)],
        "node-9": [("knows", None, None)],
    }
    assert edges_of(local, "new") == expected
    local.close()
    again = Local(typed_run, tmp_path / "state.sqlite")
    assert edges_of(again, "new") == expected
    again.close()


REFUSED = {
    "unknown kind 'pay'": {"kind": "pay"},
    "give its kind; there are pays, owns, knows": {},
    "edges of kind 'knows' have no weights": {"kind": "knows", "weight": 2.0},
    "its edge to 'node-2': give its kind": {"weight": 2.0},
    "weight": {"kind": "pays", "weight": -1.0},
}


@pytest.mark.parametrize("why", REFUSED)
def test_what_the_network_cannot_hold_is_refused(typed: Local, why: str) -> None:
    answer = typed.ask("/api/nodes", {"nodes": [{"node": "new", "edges": [{"node": "node-2", **REFUSED[why]}]}]})
    assert 400 <= answer.status < 500
    assert why in answer.body.decode()


def test_a_plain_network_refuses_kinds(local: Local) -> None:
    body = {"nodes": [{"node": "new", "edges": [{"node": "node-2", "kind": "pays"}]}]}
    assert "neither weights nor kinds" in local.ask("/api/nodes", body).body.decode()
