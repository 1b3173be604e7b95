"""Tables of nodes and edges as a dataset: values by hand, every format alike, and every way to get it wrong."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from fewnode.datasets import arrow
from fewnode.datasets.arrow import Table, read_table
from fewnode.datasets.encode import Encoding, Words
from fewnode.datasets.splits import choose_split
from fewnode.datasets.tables import read_tables
from fewnode.errors import FewnodeError
from fewnode.graph import ClassSplit, Dataset
from fewnode.io import load_dataset, save_dataset

NODES = {
    "id": ["007", "fox", "ünde", "owl"],
    "label": ["bird", None, "plant", "bird"],
    "title": ["red den", "red fox, red den", None, "blue owl"],
    "body": ["owl", "a fox", "blue", "owl"],
    "size": ["1", "3", None, "5"],
    "kind": ["x", "y", "x", None],
}
EDGES = {"source": ["007", "fox", "owl", "fox", "owl"], "target": ["fox", "007", "owl", "ünde", "fox"]}
ROLES = {"text": ["title", "body"], "numeric": ["size"], "categorical": ["kind"]}
WORDS = Words(min_count=1, max_share=1, stop_words=())


def read(nodes: Any = NODES, edges: Any = EDGES, **options: Any) -> Dataset:
    return read_tables(edges, nodes, **{**ROLES, "words": WORDS, **options})


def write_csv(path: Path, columns: dict[str, list[Any]], delimiter: str = ",") -> Path:
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter)
    writer.writerows([list(columns), *(["" if c is None else c for c in row] for row in zip(*columns.values()))])  # noqa: B905
    path.write_bytes(gzip.compress(text.getvalue().encode()) if path.suffix == ".gz" else text.getvalue().encode())
    return path


def write(path: Path, columns: dict[str, list[Any]]) -> Path:
    if ".jsonl" in path.name:
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        blob = "\n".join(json.dumps({k: v for k, v in row.items() if v is not None}) for row in rows).encode()
        path.write_bytes(gzip.compress(blob) if path.suffix == ".gz" else blob)
    elif path.suffix == ".parquet":
        pq.write_table(pa.table(columns), path)
    else:
        write_csv(path, columns, "\t" if ".tsv" in path.name else ",")
    return path


def dense(data: Dataset) -> np.ndarray:
    return data.graph.x.toarray() if sp.issparse(data.graph.x) else data.graph.x


# --- what comes out -----------------------------------------------------------------------------------------------


def test_values_by_hand() -> None:
    data = read()
    assert data.node_names == ("007", "fox", "ünde", "owl")
    assert data.class_names == ("bird", "plant")
    assert data.y.tolist() == [0, -1, 1, 0]
    assert data.feature_names == ("blue", "den", "fox", "owl", "red", "size (number)", "kind=x", "kind=y")
    # sizes 1, 3, 5: mean 3, deviation sqrt(8/3)
    high = 2 / np.sqrt(8 / 3)
    expected = [
        [0, 1, 0, 1, 1, -high, 1, 0],
        [0, 1, 2, 0, 2, 0, 0, 1],
        [1, 0, 0, 0, 0, 0, 1, 0],
        [1, 0, 0, 2, 0, high, 0, 0],
    ]
    np.testing.assert_allclose(dense(data), expected, rtol=1e-6)
    assert sp.issparse(data.graph.x)
    expected_adj = [[0, 1, 0, 0], [1, 0, 1, 1], [0, 1, 0, 0], [0, 1, 0, 0]]
    np.testing.assert_array_equal(data.graph.adj.toarray(), expected_adj)


def test_what_was_understood_is_kept() -> None:
    info = read().info
    assert info["columns"] == {
        "id": "id", "label": "label", "title": "text", "body": "text", "size": "numeric", "kind": "categorical",
    }  # fmt: skip
    assert info["missing"] == {"size": 1, "kind": 1}
    assert (info["edge_rows"], info["self_loops"], info["repeated_edges"], info["unknown_ends"]) == (5, 1, 1, 0)
    assert info["attributes"] == {"words": 5, "numbers": 1, "categories": 2}
    json.dumps(info, allow_nan=False)


def test_directed_edges_keep_their_direction() -> None:
    data = read(directed=True)
    expected = [[0, 1, 0, 0], [1, 0, 0, 1], [0, 1, 0, 0], [0, 0, 0, 0]]  # row: the node that aggregates
    np.testing.assert_array_equal(data.graph.adj.toarray(), expected)
    assert data.info["repeated_edges"] == 0


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "tsv", "jsonl", "jsonl.gz", "parquet"])
def test_every_format_gives_the_same(tmp_path: Path, suffix: str) -> None:
    nodes, edges = write(tmp_path / f"n.{suffix}", NODES), write(tmp_path / f"e.{suffix}", EDGES)
    data, expected = read(nodes, str(edges)), read()
    assert data.sha256 == expected.sha256
    assert data.node_names == expected.node_names
    assert data.name == "n"
    assert data.encoding == expected.encoding


def test_frames_and_arrow_tables_give_the_same() -> None:
    typed = {**NODES, "size": [1, 3, None, 5]}
    frame = pd.DataFrame(typed).astype({"kind": "category"})
    for nodes, edges in [(frame, pd.DataFrame(EDGES)), (frame.set_index("id"), EDGES), (pa.table(typed), EDGES)]:
        assert read(nodes, edges).sha256 == read().sha256
    filtered = pd.concat([frame[:1], frame])[1:]  # its index is no 0, 1, 2 …, and not an attribute
    assert read_tables(EDGES, filtered).graph.n_features == read_tables(EDGES, typed).graph.n_features


def test_ids_may_be_numbers_of_any_kind() -> None:
    nodes = pa.table({"id": pa.array([4_000_000_000, 2, 3]), "label": [1.0, None, 2.0]})
    edges = pd.DataFrame({"a": [4e9, 3.0, np.nan], "b": [2, 2, 2]})
    data = read_tables(edges, nodes, unknown_ends="drop")
    assert data.node_names == ("4000000000", "2", "3")
    assert (data.graph.n_edges, data.info["unknown_ends"]) == (2, 1)
    assert data.class_names == ("1", "2")
    assert data.y.tolist() == [0, -1, 1]


def test_cells_and_header_are_trimmed(tmp_path: Path) -> None:
    (tmp_path / "n.csv").write_bytes(b"\xef\xbb\xbfid , label\r\n a, x \r\nb,  \r\n\r\n")
    (tmp_path / "e.csv").write_text("from, to\na , b\n")
    data = read_tables(tmp_path / "e.csv", tmp_path / "n.csv")
    assert (data.node_names, data.class_names, data.y.tolist()) == (("a", "b"), ("x",), [0, -1])
    assert data.graph.n_edges == 1


def test_quoted_cells_may_hold_lines_and_delimiters(tmp_path: Path) -> None:
    (tmp_path / "n.csv").write_text('id,text\na,"red, ""fox""\nden"\nb,den\n')
    data = read_tables({"s": ["a"], "t": ["b"]}, tmp_path / "n.csv", text="text", words=WORDS)
    assert data.feature_names == ("den", "fox", "red")
    np.testing.assert_array_equal(dense(data), [[1, 1, 1], [1, 0, 0]])


def test_number_classes_keep_their_order() -> None:
    nodes = {"id": list("abcd"), "label": ["10", "9", "2", "2"]}
    assert read_tables({"s": ["a"], "t": ["b"]}, nodes).class_names == ("2", "9", "10")


def test_only_numeric_columns_are_dense_and_none_is_none() -> None:
    edges = {"s": ["a"], "t": ["b"]}
    data = read_tables(edges, {"id": ["a", "b"], "p": [1, 3], "q": [7, 7]})
    np.testing.assert_allclose(data.graph.x, [[-1, 0], [1, 0]])
    assert isinstance(data.graph.x, np.ndarray)
    assert read_tables(edges, {"id": ["a", "b"]}).graph.n_features == 0


def test_a_list_of_words_is_text() -> None:
    nodes = pa.table({"id": ["a", "b"], "tags": [["red", "fox"], None]})
    data = read_tables({"s": ["a"], "t": ["b"]}, nodes, text=["tags"], words=WORDS)
    np.testing.assert_array_equal(dense(data), [[1, 1], [0, 0]])


def test_vocabulary_options_are_obeyed() -> None:
    assert read(words=Words(size=2, min_count=2, max_share=1)).feature_names[:-3] == ("blue", "den")
    assert read(words=Words(min_count=2, max_share=0.4)).feature_names[:-3] == ()
    assert "owl" not in (read(words=Words(min_count=1, max_share=1, stop_words={"owl"})).feature_names or ())
    with pytest.raises(FewnodeError, match="expected at least 1 and 0 to 1"):
        Words(min_count=0)


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
        "": list(range(n)),
    }
    data = read_tables({"s": ["k1"], "t": ["k2"]}, nodes, id="key")
    assert data.info["columns"] == {
        "key": "id", "class": "label", "summary": "text", "year": "numeric", "arch": "categorical", "url": "ignored",
        "nothing": "ignored", "flag": "categorical", "": "ignored",
    }  # fmt: skip
    assert data.info["guessed"]["url"] == "300 distinct values of 1.0 words"
    assert "summary" not in read_tables({"s": ["k1"], "t": ["k2"]}, nodes, id="key", numeric=["year"]).info["guessed"]


def test_a_dataset_comes_back_from_disk_with_its_encoding(tmp_path: Path) -> None:
    data = read()
    save_dataset(data, tmp_path / "d")
    back = load_dataset(tmp_path / "d")
    assert (back.encoding, back.info, back.sha256) == (data.encoding, data.info, data.sha256)


cells = st.none() | st.sampled_from(["", "red fox", "den", "ü", "NULL"]) | st.text("ab \n\"',;\t", max_size=6)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(cells, cells, st.none() | st.floats(-1e300, 1e300)), min_size=1, max_size=12))
def test_a_row_alone_is_encoded_as_among_the_others(rows: list[tuple[Any, Any, Any]]) -> None:
    columns = {name: list(values) for name, values in zip("tcn", zip(*rows, strict=True), strict=True)}
    data = pa.table({"t": pa.array(columns["t"], pa.string()), "c": pa.array(columns["c"], pa.string()),
                     "n": pa.array(columns["n"], pa.float64())})  # fmt: skip
    table = Table("table", data)
    learned = Encoding.learn(table, {"t": "text", "c": "categorical", "n": "numeric"}, WORDS)
    together, unknown = learned.encode(table)
    again = Encoding.from_json(json.loads(json.dumps(learned.to_json())))
    assert again == learned
    assert together.shape == (len(rows), len(learned.feature_names))
    assert np.isfinite(together.data).all()
    assert sum(unknown.values()) == sum(not (c or "").strip() for c in columns["c"]) + columns["n"].count(None)
    for i in range(len(rows)):
        alone, _ = again.encode(Table("table", data.slice(i, 1)))
        np.testing.assert_array_equal(alone.toarray(), together[[i]].toarray())


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(cells, cells), min_size=1, max_size=8))
def test_what_csv_writes_is_read_back(rows: list[tuple[Any, Any]]) -> None:
    columns = {name: list(values) for name, values in zip("ab", zip(*rows, strict=True), strict=True)}
    path = Path("/dev/shm" if os.path.isdir("/dev/shm") else "/tmp") / f"fewnode-{os.getpid()}.csv"  # noqa: S108
    try:
        table = read_table(write_csv(path, columns), "test")
    finally:
        path.unlink()
    for name, values in columns.items():
        assert table.texts(name).to_pylist() == [(value or "").strip() or None for value in values]


# --- class splits -------------------------------------------------------------------------------------------------

Y = np.repeat(np.arange(12), np.arange(5, 17))
NAMES = tuple("abcdefghijkl")


def test_counts_deal_as_shares_do_and_leave_the_rest_out() -> None:
    assert choose_split(Y, NAMES, "3,2,2", seed=4) == ClassSplit.random(Y, (3, 2, 2), seed=4)
    few = choose_split(Y, NAMES, "2,1,1", seed=4)
    assert list(map(len, (few.train, few.valid, few.test))) == [2, 1, 1]
    assert min(few.train + few.valid + few.test) >= 5  # classes 0 to 4 have under ten nodes
    assert choose_split(Y, NAMES, "2,1,1", seed=4) == few != choose_split(Y, NAMES, "2,1,1", seed=5)
    assert len(choose_split(Y, NAMES, "12,0,0", min_nodes=1).train) == 12
    with pytest.raises(FewnodeError, match=r"split 4,2,2: only 7 classes have 10 nodes or more"):
        choose_split(Y, NAMES, "4,2,2")


@pytest.mark.parametrize(
    "split", ["", "a/b/c", "50/50", "1,2", "1,2,3,4", "-1,2,3", "1.5,2,3", "0/0/0", "nan/1/1", "inf/1/1"]
)
def test_a_split_that_is_none_is_refused(split: str) -> None:
    with pytest.raises(
        FewnodeError, match="expected three shares such as 50/20/30 or three class counts such as 40,17,20"
    ):
        choose_split(Y, NAMES, split)


def test_three_lists_may_hold_small_classes(tmp_path: Path) -> None:
    (tmp_path / "test").write_text("l\n\n a \n")
    lists = {"train": ["c", "b"], "valid": ("d",), "test": tmp_path / "test"}
    assert choose_split(Y, NAMES, lists) == ClassSplit((1, 2), (3,), (0, 11))


@pytest.mark.parametrize(
    ("lists", "message"),
    [
        ({"train": ["a"], "valid": ["b"]}, "expected train, valid and test"),
        ({"train": ["a"], "valid": ["b"], "test": ["bird"]}, "test class 1: no node is of class 'bird'"),
        ({"train": ["a", "b"], "valid": ["b"], "test": ["c"]}, "valid class 1: class 'b' is at train class 2 already"),
        ({"train": [], "valid": ["b"], "test": ["c"]}, "train classes: no class in it"),
    ],
)
def test_lists_that_do_not_fit_are_refused(lists: dict[str, list[str]], message: str) -> None:
    with pytest.raises(FewnodeError, match=message):
        choose_split(Y, NAMES, lists)


def test_a_wrong_name_in_a_list_file_is_found(tmp_path: Path) -> None:
    (tmp_path / "test.txt").write_text("games\n\nnett\n")
    lists = {"train": ["net"], "valid": ["web"], "test": tmp_path / "test.txt"}
    with pytest.raises(FewnodeError, match=r"test\.txt: line 3: no node is of class 'nett' \(did you mean 'net'\?\)"):
        choose_split(Y, ("games", "net", "web"), lists)


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
        ({}, {}, {"text": ["kind"]}, "column 'kind' is given as text and as categorical"),
        ({}, {}, {"unknown_ends": "keep"}, "expected refuse or drop"),
        ({"id": ["a", "b", "a", "c"]}, {}, {}, "data row 3, column 'id': node 'a' is in data row 1 already"),
        ({"id": ["a", "b", " ", "c"]}, {}, {}, "data row 3, column 'id': empty, expected a node id"),
        ({"size": ["1", "NaN", "2", "3"]}, {}, {}, "data row 2, column 'size': nan is no finite number; leave"),
        ({"size": [1.0, 2.0, 3.0, float("inf")]}, {}, {}, "data row 4, column 'size': inf is no finite number"),
        ({"size": ["1", "2", "1e999", "3"]}, {}, {}, "data row 3, column 'size': inf is no finite number"),
        ({"size": ["1", "2", "3", "4 kB"]}, {}, {}, "data row 4, column 'size': found '4 kB', expected a number"),
        ({"size": ["1", "x", "3", "y"]}, {}, {}, "data row 2, column 'size': found 'x', expected a number"),
        ({}, {"target": ["fox", "007", "owl", "cat", "dog"]}, {},
         "data row 4, column 'target': node 'cat' is not in the nodes table; 2 such edges"),
        ({}, {"source": ["007", None, "owl", "fox", "owl"]}, {},
         "data row 2, column 'source': empty, expected a node id; 1 such edges"),
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
    assert (data.info["unknown_ends"], data.graph.n_edges) == (2, 3)


def test_edges_need_two_columns() -> None:
    with pytest.raises(FewnodeError, match="one column 'ends', expected two"):
        read(edges={"ends": ["007"]})


def test_too_many_categories_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fewnode.datasets.encode.MAX_CATEGORIES", 1)
    with pytest.raises(FewnodeError, match="column 'kind' has 2 distinct values, too many for categories; is it text"):
        read()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("n.csv", b"", "line 1 is empty, expected a header"),
        ("n.csv", b"id,label\n", "no node in it"),
        ("n.csv", b"id,label,label\n", "column 'label' is there twice"),
        ("n.csv", b"id,label\na,x\nb\n", "line 3: 1 cells, expected 2"),
        ("n.csv", b'id,label\na,"x\ny"\nb,x,y\n', "line 4: 3 cells, expected 2"),
        ("n.csv", b"id,label\na,x\nb,\xff\n", "line 3: byte 3 is not UTF-8"),
        ("n.csv", "id,label\n".encode("utf-16"), "line 1: byte 1 is not UTF-8; save the table as UTF-8"),
        ("n.csv", b'id,label\na,"x\nb,y\n', r"line 3: unexpected end of data; is a quote missing\?"),
        ("n.tsv", b"id,label\na,b\n", r"no column 'label' \(did you mean 'id,label'\?\)"),
        ("n.jsonl", b"", "no row in it"),
        ("n.jsonl", b'{"id": "a"}\n{"id": \n', "line 2: not JSON"),
        ("n.jsonl", b'{"id": "a"}\n\n["b"]\n', "line 3: found a list, expected an object"),
        ("n.jsonl", b'{"id": "\xff"}\n', "line 1: byte 9 is not UTF-8"),
        ("n.jsonl", b'{"id": "\\ud800"}\n', "line 1, column 'id': expected text, a number or a list"),
        ("n.jsonl", b'{"id": {"a": 1}}\n', "line 1, column 'id': expected text, a number or a list"),
        ("n.jsonl", b'{"id": ' + b"[" * 10**6 + b"]" * 10**6 + b"}\n", "line 1: not JSON"),
        ("n.jsonl", b'{"id": ' + b"1" * 5000 + b"}\n", "line 1: not JSON"),
        ("n.parquet", b"PAR1 nothing of the kind PAR1", "not a readable Parquet file"),
        ("n.parquet", b"", "not a readable Parquet file"),
        ("n.csv.gz", b"id,label\n", "the gzip file is cut short or damaged"),
        ("n.xlsx", b"PK", r"unknown kind of table '\.xlsx', expected \.csv, \.tsv"),
        ("n", b"id,label\n", "unknown kind of table ''"),
    ],
)  # fmt: skip
def test_bad_files_are_refused_with_the_place(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(FewnodeError, match=message) as caught:
        read_tables(EDGES, tmp_path / name, label="label")
    assert str(caught.value).startswith(str(tmp_path / name))
    assert "\n" not in str(caught.value)


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "directory.csv").mkdir()
    os.mkfifo(tmp_path / "fifo.csv")
    os.mkfifo(tmp_path / "fifo.parquet")
    for name, message in [("absent.csv", "no such file"), ("directory.csv", "not a regular file"),
                          ("fifo.csv", "not a regular file"), ("fifo.parquet", "not a regular file"),
                          ("absent.xlsx", "no such file")]:  # fmt: skip
        with pytest.raises(FewnodeError, match=f"{name}: {message}"):
            read_tables(EDGES, tmp_path / name)
    with pytest.raises(FewnodeError, match="the nodes table cannot be read"):
        read_tables(EDGES, 7)
    with pytest.raises(FewnodeError, match="the nodes table cannot be read"):
        read_tables(EDGES, pd.DataFrame({"id": ["a", 1]}))


@pytest.mark.parametrize("keep", [0.1, 0.5, 0.99])
@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_a_cut_gzip_is_refused(tmp_path: Path, keep: float, kind: str) -> None:
    columns = {"id": [f"node{i**3}" for i in range(5000)], "label": ["x"] * 5000}
    path = write(tmp_path / f"n.{kind}.gz", columns)
    path.write_bytes(path.read_bytes()[: int(keep * path.stat().st_size)])
    with pytest.raises(FewnodeError, match="cut short or damaged"):
        read_tables(EDGES, path)


def test_a_cut_parquet_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "n.parquet", NODES)
    whole = path.read_bytes()
    for end in range(0, len(whole), 97):
        path.write_bytes(whole[:end])
        with pytest.raises(FewnodeError, match="not a readable Parquet file"):
            read_tables(EDGES, path)


def test_bytes_in_a_parquet_file_that_are_no_text_are_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": pa.array([b"a", b"\xff"])}), tmp_path / "n.parquet")
    with pytest.raises(FewnodeError, match="data row 2, column 'id': found binary, expected UTF-8 text"):
        read_tables(EDGES, tmp_path / "n.parquet")
    pq.write_table(pa.table({"id": ["a", "bbb"]}), tmp_path / "m.parquet", compression="none", use_dictionary=False)
    blob = (tmp_path / "m.parquet").read_bytes()
    (tmp_path / "m.parquet").write_bytes(blob.replace(b"bbb", b"b\xffb"))
    with pytest.raises(FewnodeError, match=r"data row 2, column 'id': found .*string, expected UTF-8 text"):
        read_tables(EDGES, tmp_path / "m.parquet")


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_a_gzip_bomb_is_refused_while_it_inflates(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow, "FREE_BYTES", 1 << 20)
    line = b'{"id": "a", "label": "b"}\n' if kind == "jsonl" else b"id,label\n"
    path = tmp_path / f"n.{kind}.gz"
    path.write_bytes(gzip.compress(line * 500_000))
    assert path.stat().st_size < 40_000
    with pytest.raises(FewnodeError, match="inflates to over 100 times its size, refused"):
        read_tables(EDGES, path)


def test_a_parquet_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One string of a megabyte, told ten thousand times, is a small file."""
    monkeypatch.setattr(arrow, "FREE_BYTES", 1 << 20)
    repeated = pa.DictionaryArray.from_arrays(pa.array(np.zeros(10_000, np.int32)), pa.array(["x" * 2**20]))
    for kind in (pa.string(), pa.large_string()):
        column = repeated.cast(pa.dictionary(pa.int32(), kind))
        pq.write_table(pa.table({"id": column}), tmp_path / "n.parquet")
        assert (tmp_path / "n.parquet").stat().st_size < 200_000
        with pytest.raises(FewnodeError, match="inflates to over 100 times its size, refused"):
            read_tables(EDGES, tmp_path / "n.parquet")


def test_a_long_line_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow, "MAX_LINE", 100)
    (tmp_path / "n.jsonl").write_text(json.dumps({"id": "x" * 200}))
    with pytest.raises(FewnodeError, match="line 1 is longer than"):
        read_tables(EDGES, tmp_path / "n.jsonl")


def test_many_rows_of_json_with_late_columns(tmp_path: Path) -> None:
    rows = [{"id": i, "label": "x"} for i in range(70_000)] + [{"id": -1, "size": 3}]
    (tmp_path / "n.jsonl").write_text("\n".join(map(json.dumps, rows)))
    data = read_tables({"s": ["1"], "t": ["-1"]}, tmp_path / "n.jsonl", numeric=["size"])
    assert (data.graph.n, data.info["missing"]) == (70_001, {"size": 70_000})
