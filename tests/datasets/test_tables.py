"""Tables of nodes and edges as a dataset: values by hand, every format alike, and every way to get it wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import strategies as st

from fewnode.dataset import Dataset
from fewnode.errors import FewnodeError
from fewnode.formats.directory import load_dataset, save_dataset
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


def test_what_was_understood_is_kept() -> None:
    info = read().info
    assert info["columns"] == {
        "id": "id", "label": "label", "title": "text", "body": "text", "size": "numeric", "kind": "category",
    }  # fmt: skip
    assert info["missing"] == {"size": 1, "kind": 1}
    (edges,) = info["edges"]
    assert (edges["rows"], edges["self_loops"], info["repeated_edges"], edges["unknown_ends"]) == (5, 1, 1, 0)
    assert edges["columns"] == {"source": "source", "target": "target"}
    assert info["attributes"] == {"words": 5, "numbers": 1, "categories": 2, "in vectors": 0, "missing flags": 1}
    assert info["labels"] == {"unknown": 1, "empty": 1, "words": {}}
    assert info["warnings"] == []
    json.dumps(info, allow_nan=False)


def test_directed_edges_keep_their_direction() -> None:
    data = read(directed=True)
    expected = [[0, 1, 0, 0], [1, 0, 0, 1], [0, 1, 0, 0], [0, 0, 0, 0]]  # row: the node that aggregates
    np.testing.assert_array_equal(data.graph.adj.toarray(), expected)
    assert data.info["repeated_edges"] == 0


def test_frames_and_arrow_tables_give_the_same() -> None:
    typed = {**NODES, "size": [1, 3, None, 5]}
    frame = pd.DataFrame(typed).astype({"kind": "category"})
    for nodes, edges in [(frame, pd.DataFrame(EDGES)), (frame.set_index("id"), EDGES), (pa.table(typed), EDGES)]:
        assert read(nodes, edges).sha256 == read().sha256
    filtered = pd.concat([frame[:1], frame])[1:]  # its index is no 0, 1, 2 …, and not an attribute
    assert read_tables(filtered, EDGES).graph.n_features == read_tables(typed, EDGES).graph.n_features


def test_ids_may_be_numbers_of_any_kind() -> None:
    nodes = pa.table({"id": pa.array([4_000_000_000, 2, 3]), "label": [1.0, None, 2.0]})
    edges = pd.DataFrame({"a": [4e9, 3.0, np.nan], "b": [2, 2, 2]})
    data = read_tables(nodes, edges, unknown_ends="drop")
    assert data.node_names == ("4000000000", "2", "3")
    assert (data.graph.n_edges, data.info["edges"][0]["unknown_ends"]) == (2, 1)
    assert data.class_names == ("1", "2")
    assert data.y.tolist() == [0, -1, 1]
    halves = read_tables({"id": ["x", "y"], "label": [1.5, 2.0]}, {"a": ["x"], "b": ["y"]})
    assert halves.class_names == ("1.5", "2")


def test_labels_and_header_are_trimmed(tmp_path: Path) -> None:
    (tmp_path / "n.csv").write_bytes(b"\xef\xbb\xbfid , label\r\na, x \r\nb,  \r\n\r\n")
    (tmp_path / "e.csv").write_text("from, to\na,b\n")
    data = read_tables(tmp_path / "n.csv", tmp_path / "e.csv")
    assert (data.node_names, data.class_names, data.y.tolist()) == (("a", "b"), ("x",), [0, -1])
    assert data.graph.n_edges == 1


def test_quoted_cells_may_hold_lines_and_delimiters(tmp_path: Path) -> None:
    (tmp_path / "n.csv").write_text('id,text\na,"red, ""fox""\nden"\nb,den\n')
    data = read_tables(tmp_path / "n.csv", {"s": ["a"], "t": ["b"]}, text="text", multiline=True, **WORDS)
    assert data.feature_names == ("den", "fox", "red")
    np.testing.assert_array_equal(dense(data), [[1, 1, 1], [1, 0, 0]])


def test_quoted_cells_may_hold_delimiters_and_quotes(tmp_path: Path) -> None:
    (tmp_path / "n.csv").write_text('id,text\na,"red, ""fox"" den"\nb,den\n')
    data = read_tables(tmp_path / "n.csv", {"s": ["a"], "t": ["b"]}, text="text", **WORDS)
    assert data.feature_names == ("den", "fox", "red")
    np.testing.assert_array_equal(dense(data), [[1, 1, 1], [1, 0, 0]])


def test_number_classes_keep_their_order() -> None:
    nodes = {"id": list("abcd"), "label": ["10", "9", "2", "2"]}
    assert read_tables(nodes, {"s": ["a"], "t": ["b"]}).class_names == ("2", "9", "10")


def test_only_numeric_columns_are_dense_and_none_is_none() -> None:
    edges = {"s": ["a"], "t": ["b"]}
    data = read_tables({"id": ["a", "b"], "p": [1, 3], "q": [7, 7]}, edges)
    np.testing.assert_allclose(data.graph.x, [[-1, 0], [1, 0]])
    assert isinstance(data.graph.x, np.ndarray)
    assert read_tables({"id": ["a", "b"]}, edges).graph.n_features == 0


def test_a_list_of_words_is_text() -> None:
    nodes = pa.table({"id": ["a", "b"], "tags": [["red", "fox"], None]})
    data = read_tables(nodes, {"s": ["a"], "t": ["b"]}, text=["tags"], **WORDS)
    np.testing.assert_array_equal(dense(data), [[1, 1], [0, 0]])


def test_vocabulary_options_are_obeyed() -> None:
    assert read(vocabulary=2, min_count=2, max_share=1).feature_names[:-4] == ("blue", "den")
    assert read(min_count=2, max_share=0.4).feature_names[:-4] == ()
    assert "owl" not in (read(min_count=1, max_share=1, stop_words={"owl"}).feature_names or ())
    with pytest.raises(FewnodeError, match="expected at least 1, 0 to 1"):
        read(min_count=0)


def test_columns_are_guessed_by_what_is_in_them() -> None:
    n = 300
    nodes = {
        "key": [f"k{i}" for i in range(n)],
        "class": ["a", "b", "c"] * 100,
        "summary": [f"the package number {i} of many" for i in range(n)],
        "year": [str(1900 + i) if i % 7 else "" for i in range(n)],
        "arch": ["all", "any", ""] * 100,
        "url": [f"http://x.org/{i}" for i in range(n)],
        "nothing": [""] * n,
        "flag": [True, False, None] * 100,
        "seen": pa.array([1_700_000_000] * n, pa.timestamp("s")),
        "": list(range(n)),
    }
    data = read_tables(nodes, {"s": ["k1"], "t": ["k2"]}, id="key")
    assert data.info["columns"] == {
        "key": "id", "class": "label", "summary": "text", "year": "numeric", "arch": "category", "url": "not used",
        "nothing": "not used", "flag": "category", "seen": "numeric", "": "not used",
    }  # fmt: skip
    assert data.info["why"]["url"] == "300 distinct values of 1.0 words; --text or --category uses it"
    assert data.info["why"]["seen"] == "dates, as their age in days"
    named = read_tables(nodes, {"s": ["k1"], "t": ["k2"]}, id="key", numeric=["year"], only=True)
    assert named.info["why"]["summary"] == "other columns were named"


def test_a_dataset_comes_back_from_disk_with_its_encoding(tmp_path: Path) -> None:
    data = read()
    save_dataset(data, tmp_path / "d")
    back = load_dataset(tmp_path / "d")
    assert (back.encoding, back.info, back.sha256) == (data.encoding, data.info, data.sha256)


cells = st.none() | st.sampled_from(["", "red fox", "den", "ü", "NULL"]) | st.text("ab \n\"',;\t", max_size=6)


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


def test_unknown_ends_can_be_dropped() -> None:
    data = read(edges={**EDGES, "target": ["fox", "cat", None, "owl", "007"]}, unknown_ends="drop")
    assert (data.info["edges"][0]["unknown_ends"], data.graph.n_edges) == (2, 3)


def test_edges_need_two_columns() -> None:
    with pytest.raises(FewnodeError, match="one column 'ends', expected two"):
        read(edges={"ends": ["007"]})


def test_too_many_categories_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fewnode.tables.encode.MAX_CATEGORIES", 1)
    with pytest.raises(FewnodeError, match="column 'kind' has 2 distinct values, too many for categories; is it text"):
        read()
