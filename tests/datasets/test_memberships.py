"""Several classes a node, classes that are part of others, and kinds of nodes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fewnode.dataset import Dataset
from fewnode.errors import FewnodeError
from fewnode.formats.directory import load_dataset, save_dataset
from fewnode.tables.extend import extend
from fewnode.tables.read import read_tables
from fewnode.tables.report import report

EDGES = {"s": list("abca"), "t": list("bcdd")}
SIZES = [1.0, 2.0, 3.0, 4.0]


def nodes(*labels: str | None) -> dict[str, Any]:
    return {"id": list("abcdefgh")[: len(labels)], "label": list(labels), "size": SIZES[: len(labels)]}


def members(data: Dataset) -> dict[str, set[str]]:
    names = data.node_names or ()
    return {name: {names[i] for i in data.members(c)} for c, name in enumerate(data.class_names)}


def test_several_classes_are_written_and_read(tmp_path: Path) -> None:
    data = read_tables(nodes("x|y", "x", None, "y"), EDGES, label_separator="|")
    save_dataset(data, tmp_path / "d")
    back = load_dataset(tmp_path / "d")
    assert (back.sha256, members(back)) == (data.sha256, members(data))


def test_new_nodes_may_be_in_several_classes(tmp_path: Path) -> None:
    data = read_tables(nodes("x/1|y", "x/1", None, "y"), EDGES, label_separator="|", hierarchy="/")
    save_dataset(data, tmp_path / "d")
    more = extend(load_dataset(tmp_path / "d"), {"id": ["e", "f"], "label": ["x/2|z", "y"], "size": [1, 2]})
    assert members(more)["x"] == {"a", "b", "e"}
    assert members(more)["z"] == {"e"}
    assert more.y.tolist()[-2:] == [-1, more.class_names.index("y")]
    assert more.info["extended"][0]["new_classes"] == ["x/2", "z"]
    first = read_tables(nodes("x", "y", "x", "y"), EDGES, label_separator="|")
    assert members(extend(first, {"id": ["e"], "label": ["x|y"], "size": [1]}))["y"] == {"b", "d", "e"}


@pytest.mark.parametrize("change", [{"decimal": 5}, {"label_separator": 1}])
def test_stored_rules_may_come_from_anybody(change: dict[str, Any]) -> None:
    data = read_tables(nodes("x", "y", "x", "y"), EDGES, label_separator="|")
    assert data.encoding is not None
    with pytest.raises(FewnodeError):
        extend(replace(data, encoding={**data.encoding, "spec": change}), {"id": ["e"], "label": ["x"], "size": [1]})


# --- kinds of nodes -----------------------------------------------------------------------------------------------

USERS = {"id": list("ab"), "label": ["x", "y"], "age": [20.0, 40.0]}
ITEMS = {"sku": list("cd"), "price": [5.0, 7.0], "title": ["red fox", "red den"]}


def test_tables_with_names_are_kinds_of_nodes() -> None:
    data = read_tables({"user": USERS, "item": ITEMS}, EDGES, numeric=["age", "price"])
    assert (data.kind_names, data.kind.tolist()) == (("user", "item"), [0, 0, 1, 1])
    names = list(data.feature_names or ())
    x = data.graph.x.toarray() if hasattr(data.graph.x, "toarray") else data.graph.x
    assert x[:, names.index("kind=user")].tolist() == [1, 1, 0, 0]
    assert x[:, names.index("age (number)")].tolist() == [-1, 1, 0, 0]  # zero, and no part of the mean
    assert data.claimable_mask.tolist() == [True, True, False, False]
    assert data.info["columns"]["kind"] == "category"
    text = report(data)
    assert "kinds of nodes    user (2), item (2)" in text
    more = extend(data, {"item": {"sku": ["e"], "price": [5.0]}}, id="sku")
    assert more.kind.tolist() == [0, 0, 1, 1, 1]
    with pytest.raises(FewnodeError, match="what kind of nodes are these"):
        extend(data, {"sku": ["e"], "price": [5.0]}, id="sku")


def test_what_a_kind_of_node_does_not_have_is_not_missing_there() -> None:
    data = read_tables({"user": {**USERS, "age": [20.0, None]}, "item": ITEMS}, EDGES, numeric=["age", "price"])
    assert data.info["missing"] == {"age": 1, "price": 0, "kind": 0}
    assert [name for name in data.feature_names or () if "missing" in name] == ["age (missing)"]
    flag = data.graph.x[:, [list(data.feature_names or ()).index("age (missing)")]].toarray().ravel()
    assert flag.tolist() == [0, 1, 0, 0]


def test_a_column_may_say_the_kind() -> None:
    data = read_tables({"id": list("abcd"), "label": list("xyxy"), "sort": ["p", "q", "q", "p"]}, EDGES, kind="sort")
    assert (data.kind_names, data.kind.tolist()) == (("p", "q"), [0, 1, 1, 0])
    more = extend(data, {"id": ["e"], "sort": ["r"]})
    assert (more.kind_names, more.kind.tolist()) == (("p", "q", "r"), [0, 1, 1, 0, 2])
    np.testing.assert_array_equal(data.claimable_mask, True)
    with pytest.raises(FewnodeError, match="no column 'sorts'"):
        read_tables({"id": list("abcd"), "sort": ["p", "q", "q", "p"]}, EDGES, kind="sorts")
    with pytest.raises(FewnodeError, match="leave out one of them"):
        read_tables({"user": USERS}, {"s": ["a"], "t": ["b"]}, kind="age")
