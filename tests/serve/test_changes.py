"""A dataset as requests have changed it keeps what its edges and classes say."""

from __future__ import annotations

import numpy as np
import pytest

from fewnode.dataset import Dataset
from fewnode.serve.changes import BaseDataset
from fewnode.serve.state import State
from fewnode.tables.read import read_tables

EDGES = {
    "source": list("abca"),
    "target": list("bcdd"),
    "amount": [1, 2, 3, 2],
    "sort": ["pays", "pays", "owns", "owns"],
}


@pytest.fixture(name="data")
def _data() -> Dataset:
    nodes = {"id": list("abcd"), "label": ["x|y", "x", "y", ""], "size": [1.0, 2, 3, 5], "kind": ["p", "p", "q", "q"]}
    return read_tables(nodes, EDGES, weight="amount", relation="sort", label_separator="|", kind="kind", numeric="size")


def test_weights_kinds_and_classes_stay(data: Dataset) -> None:
    state = State(
        nodes={"e": {"row": {"size": 4.0, "label": "y|x", "kind": "q"}}, "b": {"row": {"size": 1.0, "kind": "p"}}},
        removed=frozenset("c"),
        edges={("a", "e"): True, ("a", "d"): False},
    )
    after = BaseDataset(data).changed(state)
    assert after.node_names == ("a", "b", "d", "e")
    assert [(r.name, r.n_edges) for r in after.graph.relations] == [("pays", 1), ("owns", 0), ("edges", 1)]
    assert after.graph.relations[0].adj[0, 1] == data.graph.relations[0].adj[0, 1]
    members = {name: set(after.members(c).tolist()) for c, name in enumerate(after.class_names)}
    assert members == {"x": {0, 1, 3}, "y": {0, 3}}
    assert after.y.tolist() == [-1, 0, -1, -1]  # b was replaced by a row without a class, and keeps its own
    assert after.kind is not None
    assert [after.kind_names[k] for k in after.kind] == ["p", "p", "q", "q"]


def test_nothing_changed_is_the_same(data: Dataset) -> None:
    assert BaseDataset(data).changed(State()) is data
    back = BaseDataset(data).changed(State(edges={("a", "c"): True}))
    np.testing.assert_array_equal(back.graph.relations[0].adj.toarray(), data.graph.relations[0].adj.toarray())
    assert [r.name for r in back.graph.relations] == ["pays", "owns", "edges"]
