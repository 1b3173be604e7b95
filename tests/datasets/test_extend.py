"""New nodes later: the same encoding, the same classes, and nothing about the old nodes changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from fewnode.dataset import Dataset
from fewnode.errors import FewnodeError
from fewnode.graph import Graph
from fewnode.tables.extend import extend
from fewnode.tables.read import read_tables
from graphs import planted

NODES = {
    "id": ["a", "b", "c"],
    "label": ["x", "y", "x"],
    "text": ["red fox", "red den", "fox"],
    "size": [1.0, 3.0, 5.0],
    "kind": ["p", "q", "p"],
}
EDGES = {"source": ["a", "b"], "target": ["b", "c"]}
NEW = {
    "kind": ["q", "never seen", None],
    "id": ["d", "e", "f"],
    "label": ["y", "w", None],
    "text": ["fox owl fox", None, "den"],
    "size": [7.0, None, 3.0],
    "surplus": [1, 2, 3],
}


def tables(nodes: dict[str, list[Any]] = NODES, edges: dict[str, list[Any]] = EDGES, **options: Any) -> Dataset:
    roles = {"text": ["text"], "numeric": ["size"], "category": ["kind"]}
    return read_tables(
        nodes, edges, **{**roles, "min_count": 1, "max_share": 1, "split": "1,1,0", "min_nodes": 1, **options}
    )


def test_new_rows_by_hand() -> None:
    data = tables()
    more = extend(data, NEW, {"from": ["d", "e", "a", "d", "a"], "to": ["a", "d", "d", "d", "b"]})
    assert more.node_names == ("a", "b", "c", "d", "e", "f")
    assert (more.split, more.feature_names, more.encoding) == (data.split, data.feature_names, data.encoding)
    assert more.class_names == ("x", "y", "w")  # a new class is behind the known ones, and in no part of the split
    assert more.y.tolist() == [0, 1, 0, 1, 2, -1]
    assert data.feature_names == ("den", "fox", "red", "size (number)", "kind=p", "kind=q")
    z = 4 / np.sqrt(8 / 3)  # from the mean 3 of the old rows
    expected = [[0, 2, 0, z, 0, 1], [0, 0, 0, 0, 0, 0], [1, 0, 0, 0, 0, 0]]
    np.testing.assert_allclose(more.graph.x[[3, 4, 5]].toarray(), expected, rtol=1e-6)
    np.testing.assert_array_equal(more.graph.x[[0, 1, 2]].toarray(), data.graph.x.toarray())
    pairs = {frozenset(pair) for pair in more.graph.edge_index().T.tolist()}
    assert pairs == {frozenset(pair) for pair in ([0, 1], [1, 2], [0, 3], [3, 4])}
    (added,) = more.info["extended"]
    (edges,) = added["edges"]
    assert (edges["self_loops"], added["repeated_edges"], edges["unknown_ends"]) == (1, 2, 0)
    assert (added["columns"]["surplus"], added["why"]["surplus"]) == ("not used", "no attribute of the nodes table")
    assert (added["missing"], added["new_classes"]) == ({"size": 1, "kind": 2}, ["w"])
    assert data.graph.n == 3


@pytest.mark.parametrize(
    ("nodes", "edges", "message"),
    [
        ({"id": ["d", "b", "f"]}, None, "data row 2, column 'id': node 'b' is in old already, expected new nodes"),
        ({"size": [1.0, 1e300, 2.0]}, None, r"data row 2, column 'size': 1e\+300 is too far from the mean 3"),
        ({"size": ["1", "large", "2"]}, None, "data row 2, column 'size': found 'large', expected a number"),
        ({}, {"s": ["d", "e"], "t": ["a", "zoo"]}, "data row 2, column 't': node 'zoo' is not in old or the nodes"),
    ],
)  # fmt: skip
def test_rows_that_do_not_fit_are_refused(nodes: Any, edges: Any, message: str) -> None:
    with pytest.raises(FewnodeError, match=message):
        extend(tables(name="old"), {**NEW, **nodes}, edges)


def test_a_missing_column_is_named() -> None:
    with pytest.raises(FewnodeError, match=r"no column 'text' \(did you mean 'texts'\?\)"):
        extend(tables(), {"id": ["d"], "texts": ["red"], "size": [1], "kind": ["p"]})
    with pytest.raises(FewnodeError, match="no column 'class'"):
        extend(tables(), NEW, label="class")


def test_data_without_an_encoding_cannot_be_extended() -> None:
    with pytest.raises(FewnodeError, match="planted was not imported from tables"):
        extend(planted(), NEW)
    broken = Dataset(
        Graph.from_edges([[0], [1]], 2), np.zeros(2, int), tables().split, ("x", "y"), encoding={"text": 1}
    )
    with pytest.raises(FewnodeError, match="not one that fewnode wrote"):
        extend(broken, NEW)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 8), st.integers(1, 8), st.integers(0, 2**32))
def test_extending_equals_reading_all_at_once_where_the_first_rows_knew_everything(n: int, m: int, seed: int) -> None:
    """The new rows repeat the first ones, so vocabulary, categories, classes, mean and deviation are the same."""
    rng = np.random.default_rng(seed)
    words, kinds = ["red fox", "den", "fox fox den"], ["p", "q", None]
    first = {
        "id": [f"n{i}" for i in range(n)],
        "label": [["x", "y", None][i] for i in rng.integers(0, 3, n)],
        "text": [words[i] for i in rng.integers(0, 3, n)],
        "size": rng.normal(size=n).tolist(),
        "kind": [kinds[i] for i in rng.integers(0, 3, n)],
    }
    second = {key: [values[i % n] for i in range(m * n)] for key, values in first.items()}
    second["id"] = [f"m{i}" for i in range(m * n)]
    ends = rng.integers(0, n + m * n, (2, 20))
    every = [*first["id"], *second["id"]]
    old = (ends < n).all(axis=0)
    named = [[every[i] for i in side] for side in ends]
    edges = {"s": named[0], "t": named[1]}
    some = {key: [v for v, keep in zip(values, old, strict=True) if keep] for key, values in edges.items()}
    some = {key: [*values, "n0"] for key, values in some.items()}
    whole = tables({key: [*first[key], *second[key]] for key in first}, edges, split="1/0/0")
    grown = extend(tables(first, some, split="1/0/0"), second, edges)
    assert grown.node_names == whole.node_names
    assert grown.class_names == whole.class_names
    np.testing.assert_array_equal(grown.y, whole.y)
    np.testing.assert_array_equal(grown.graph.adj.toarray(), whole.graph.adj.toarray())
    assert sp.issparse(grown.graph.x)
    np.testing.assert_allclose(grown.graph.x.toarray(), whole.graph.x.toarray(), atol=1e-5)
