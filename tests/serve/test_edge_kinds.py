"""Kinds of edges in the service: what a node's neighbourhood tells of them, and new nodes with kinds and weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fewnode.dataset import Dataset
from fewnode.model.estimator import Estimator
from graphs import planted_kinds
from service import InProcess, Local


@pytest.fixture(name="kinds", scope="module")
def _kinds() -> Dataset:
    return planted_kinds()


@pytest.fixture(name="model", scope="module")
def _model(kinds: Dataset) -> Estimator:
    return Estimator("gpn-plus", way=3, shot=3, rank=32).fit(kinds)


@pytest.fixture(name="typed")
def _typed(opened: Callable[[Estimator, Dataset], InProcess], model: Estimator, kinds: Dataset) -> InProcess:
    return opened(model, kinds)


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
    typed: InProcess, opened: Callable[[Estimator, Dataset], InProcess], model: Estimator, kinds: Dataset
) -> None:
    pays = {"node": "node-7", "kind": "pays", "weight": 2.5, "way": "to"}
    assert attach(typed, pays, {"node": "node-8", "kind": "owns"}, {"node": "node-9", "kind": "knows"}).status == 200
    found = opened(model, kinds).ask("/api/nodes/new").json["neighbours"]
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
