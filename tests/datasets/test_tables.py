"""Tables of nodes and edges as a dataset: values by hand, every format alike, and every way to get it wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp

from fewnode.dataset import Dataset
from fewnode.errors import FewnodeError
from fewnode.tables.read import read_tables

NODES = {
    "id": ["007", "fox", "ünde", "owl"],
    "label": ["bird", None, "plant", "bird"],
    "title": ["red den", "red fox, red den", None, "blue owl"],
    "body": ["owl", "a fox", "blue", "owl"],
    "size": ["1", "3", None, "5"],
    "kind": ["x", "y", "x", None],
}
EDGES = {"source": ["007", "fox", "owl", "fox", "owl"], "target": ["fox", "007", "owl", "ünde", "fox"]}
ROLES = {"text": ["title", "body"], "numeric": ["size"], "category": ["kind"]}
WORDS: dict[str, Any] = {"min_count": 1, "max_share": 1.0, "stop_words": ()}


def read(nodes: Any = NODES, edges: Any = EDGES, **options: Any) -> Dataset:
    return read_tables(nodes, edges, **{**ROLES, **WORDS, "only": True, **options})


def dense(data: Dataset) -> np.ndarray:
    return data.graph.x.toarray() if sp.issparse(data.graph.x) else data.graph.x


# --- what comes out -----------------------------------------------------------------------------------------------


def test_values_by_hand() -> None:
    data = read()
    assert data.node_names == ("007", "fox", "ünde", "owl")
    assert data.class_names == ("bird", "plant")
    assert data.y.tolist() == [0, -1, 1, 0]
    words = ("blue", "den", "fox", "owl", "red")
    assert data.feature_names == (*words, "size (number)", "kind=x", "kind=y", "size (missing)")
    # sizes 1, 3, 5: mean 3, deviation sqrt(8/3)
    high = 2 / np.sqrt(8 / 3)
    expected = [
        [0, 1, 0, 1, 1, -high, 1, 0, 0],
        [0, 1, 2, 0, 2, 0, 0, 1, 0],
        [1, 0, 0, 0, 0, 0, 1, 0, 1],
        [1, 0, 0, 2, 0, high, 0, 0, 0],
    ]
    np.testing.assert_allclose(dense(data), expected, rtol=1e-6)
    assert sp.issparse(data.graph.x)
    expected_adj = [[0, 1, 0, 0], [1, 0, 1, 1], [0, 1, 0, 0], [0, 1, 0, 0]]
    np.testing.assert_array_equal(data.graph.adj.toarray(), expected_adj)


def test_frames_and_arrow_tables_give_the_same() -> None:
    typed = {**NODES, "size": [1, 3, None, 5]}
    frame = pd.DataFrame(typed).astype({"kind": "category"})
    for nodes, edges in [(frame, pd.DataFrame(EDGES)), (frame.set_index("id"), EDGES), (pa.table(typed), EDGES)]:
        assert read(nodes, edges).sha256 == read().sha256
    filtered = pd.concat([frame[:1], frame])[1:]  # its index is no 0, 1, 2 …, and not an attribute
    assert read_tables(filtered, EDGES).graph.n_features == read_tables(typed, EDGES).graph.n_features


# --- what users get wrong -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("nodes", "edges", "options", "message"),
    [
        ({}, {}, {"id": "idd"}, r"the nodes table: no column 'idd' \(did you mean 'id'\?\); there are id, label"),
        ({}, {}, {"label": "lable"}, r"no column 'lable' \(did you mean 'label'\?\)"),
        ({}, {}, {"numeric": ["sizes"]}, r"no column 'sizes' \(did you mean 'size'\?\)"),
        ({}, {}, {"source": "form"}, "the edges table: no column 'form'"),
        ({}, {}, {"source": "target"}, "column 'target' is both ends of an edge"),
        ({}, {}, {"numeric": ["label"]}, "column 'label' is the id or the label"),
        ({}, {}, {"text": ["id"]}, "column 'id' is the id or the label"),
        ({}, {}, {"text": ["kind"]}, "column 'kind' is given as text and as category"),
        ({}, {}, {"unknown_ends": "keep"}, "expected 'refuse' or 'drop'"),
        ({"id": ["a", "b", "a", "c"]}, {}, {}, "data row 3, column 'id': node 'a' is in data row 1 already"),
        ({"id": ["a", "b", " ", "c"]}, {}, {}, "data row 3, column 'id': empty, expected a node id"),
        ({"size": ["1", "-inf", "2", "3"]}, {}, {}, "data row 2, column 'size': -inf is no finite number; leave"),
        ({"size": [1.0, 2.0, 3.0, float("inf")]}, {}, {}, "data row 4, column 'size': inf is no finite number"),
        ({"size": ["1", "2", "1e999", "3"]}, {}, {}, "data row 3, column 'size': inf is no finite number"),
        ({"size": ["1", "2", "3", "4 kB"]}, {}, {}, "data row 4, column 'size': found '4 kB', expected a number"),
        ({"size": ["1", "x", "3", "y"]}, {}, {}, "data row 2, column 'size': found 'x', expected a number"),
        ({}, {"target": ["fox", "007", "owl", "cat", "dog"]}, {},
         "data row 4, column 'target': node 'cat' is not in the nodes table; 2 such edges"),
        ({}, {"source": ["007", None, "owl", "fox", "owl"]}, {},
         "data row 2, column 'source': empty, expected a node id; 1 such edge "),
        ({k: [] for k in NODES}, {}, {}, "the nodes table: no node in it"),
        ({}, {k: [] for k in EDGES}, {}, "the edges table: no edge in it"),
    ],
)  # fmt: skip
def test_bad_tables_are_refused_with_the_place(nodes: Any, edges: Any, options: Any, message: str) -> None:
    with pytest.raises(FewnodeError, match=message) as caught:
        read({**NODES, **nodes}, {**EDGES, **edges}, **options)
    assert "\n" not in str(caught.value)


def test_too_many_categories_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fewnode.tables.encode.MAX_CATEGORIES", 1)
    with pytest.raises(FewnodeError, match="column 'kind' has 2 distinct values, too many for categories; is it text"):
        read()
