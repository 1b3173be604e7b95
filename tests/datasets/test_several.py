"""Several tables of nodes and edges from Python, missing values, vectors, and what `extend` makes of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from fewnode.dataset import Dataset
from fewnode.errors import FewnodeError
from fewnode.tables.extend import extend
from fewnode.tables.read import read_tables
from fewnode.tables.report import report, warnings_of

NODES = {"id": list("abcd"), "label": list("xyxy"), "size": [1.0, 2.0, 3.0, 4.0]}
ONE, OTHER = {"s": ["a"], "t": ["b"]}, {"u": ["c", "a"], "v": ["d", "b"], "amount": [5, 6]}


def pairs(data: Dataset) -> set[tuple[int, int]]:
    return {(int(i), int(j)) for i, j in data.graph.edge_index().T if i < j}


# --- several tables -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("edges", "kinds"),
    [
        ([ONE, OTHER], [None, None]),
        ((ONE, pa.table(OTHER)), [None, None]),
        ({"pays": ONE, "owns": OTHER}, ["pays", "owns"]),
        ({"pays": pd.DataFrame(ONE), "owns": pa.table(OTHER)}, ["pays", "owns"]),
        ([ONE, {"owns": OTHER}], [None, "owns"]),
        ([{"owns": ONE}, {"owns": OTHER}], ["owns", "owns"]),
    ],
)
def test_all_tables_of_edges_are_used(edges: Any, kinds: list[str | None]) -> None:
    data = read_tables(NODES, edges)
    assert pairs(data) == {(0, 1), (2, 3)}
    assert [(table["kind"], table["rows"]) for table in data.info["edges"]] == list(zip(kinds, (1, 2), strict=True))
    assert data.info["edges"][1]["columns"] == {"u": "source", "v": "target", "amount": "not used"}
    names = [kind or "edges" for kind in kinds]
    assert data.info["repeated_edges"] == (1 if len(set(names)) == 1 else 0)
    assert [each.name for each in data.graph.relations] == (list(dict.fromkeys(names)) if any(kinds) else [])
    assert data.info["warnings"] == []


@pytest.mark.parametrize(
    "edges",
    [
        ONE,
        {name: pd.Series(cells) for name, cells in ONE.items()},
        {name: pa.array(cells) for name, cells in ONE.items()},
        {name: pa.chunked_array([cells]) for name, cells in ONE.items()},
        {name: np.array(cells) for name, cells in ONE.items()},
    ],
    ids=["lists", "series", "arrays", "chunked", "numpy"],
)
def test_a_mapping_of_columns_is_one_table(edges: Any) -> None:
    data = read_tables(nodes=NODES, edges=edges)
    assert (pairs(data), data.info["edges"][0]["kind"]) == ({(0, 1)}, None)


def test_no_table_at_all_is_refused() -> None:
    with pytest.raises(FewnodeError, match="no table of edges"):
        read_tables(NODES, [])
    with pytest.raises(FewnodeError, match="no table of nodes"):
        read_tables([], ONE)


def test_files_of_one_name_are_told_with_their_folders(tmp_path: Path) -> None:
    for folder, rows in (("jan", "a,b\n"), ("feb", "b,c\n")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "edges.csv").write_text("from,to\n" + rows)
    data = read_tables(NODES, [tmp_path / "jan" / "edges.csv", tmp_path / "feb" / "edges.csv"])
    assert [table["file"] for table in data.info["edges"]] == [str(tmp_path / m / "edges.csv") for m in ("jan", "feb")]


def test_a_node_in_two_tables_is_named_with_both() -> None:
    with pytest.raises(FewnodeError, match="the nodes 2 table: data row 2, column 'id': node 'b' is in the nodes 1 "):
        read_tables([NODES, {"id": ["e", "b"]}], ONE)


def test_a_column_that_a_table_lacks_is_missing_there() -> None:
    more = {"name": ["e", "f"], "size": [7.0, 9.0], "age": [1, 3], "text": ["red fox", "red den"]}
    nodes = [{**NODES, "name": ["Ann", "Bob", "Cid", "Dan"]}, more]
    data = read_tables(nodes, ONE, numeric=["size", "age"], category=["name"])
    assert data.node_names == tuple("abcdef")
    assert data.info["missing"] == {"size": 0, "age": 4, "name": 2}
    assert [table["columns"].get("name") for table in data.info["nodes"]] == ["category", "id"]
    assert data.info["labels"]["unknown"] == 2
    x = data.graph.x.toarray()
    names = list(data.feature_names or ())
    assert x[:, names.index("age (number)")].tolist() == [0, 0, 0, 0, -1, 1]
    assert x[:, names.index("age (missing)")].tolist() == [1, 1, 1, 1, 0, 0]
    later = extend(data, {"id": ["g"], "size": [1.0], "name": ["Ann"]})  # age was missing in a table, so it may be
    assert later.graph.x.toarray()[6, names.index("age (missing)")] == 1
    assert "in none of the tables, so missing: age\n" in report(later, latest=True)
    assert "age 4: the mean and a flag" in report(data)
    with pytest.raises(FewnodeError, match="no column 'size'"):
        extend(data, {"id": ["g"], "age": [1], "name": ["Ann"]})


# --- missing numbers ----------------------------------------------------------------------------------------------


def test_only_what_was_missing_at_first_has_a_flag() -> None:
    data = read_tables({**NODES, "age": [1.0, None, 3.0, 5.0]}, ONE)
    assert data.feature_names == ("size (number)", "age (number)", "age (missing)")
    np.testing.assert_array_equal(data.graph.x[:, 2], [0, 1, 0, 0])
    more = extend(data, {"id": ["e"], "size": [None], "age": ["NA"]})
    np.testing.assert_array_equal(more.graph.x[4], [0, 0, 1])
    assert more.info["extended"][0]["missing"] == {"size": 1, "age": 1}
    assert "missing   size 1: the mean, age 1 (1 'NA'): the mean and a flag\n" in report(more)


def test_later_tables_are_read_as_the_first_unless_told_otherwise(tmp_path: Path) -> None:
    (tmp_path / "n.csv").write_text("id;label;size\na;NA;1,500\nb;x;unknown\nc;x;2,500\n")
    (tmp_path / "m.csv").write_text("id;label;size\nd;NA;1,500\ne;unknown;9,000\n")
    data = read_tables(tmp_path / "n.csv", ONE, decimal=",", missing="unknown")
    more = extend(data, tmp_path / "m.csv")
    np.testing.assert_array_equal(more.graph.x[0], more.graph.x[3])
    assert more.y.tolist() == [-1, 0, 0, -1, -1]
    other = extend(data, tmp_path / "m.csv", missing=("",))
    assert other.class_names == ("x", "NA", "unknown")


def test_only_cells_of_the_new_nodes_are_warned_of() -> None:
    data = read_tables({"id": list("abcd"), "label": ["x", "y", "x|y", "x"]}, ONE)
    assert "several classes: 1, as 'x|y'" in data.info["warnings"][0]
    more = extend(data, {"id": ["e"], "label": ["x"]})
    assert more.info["extended"][0]["warnings"] == []
    assert "'x|y'" in warnings_of(more.info)
    assert warnings_of(more.info, latest=True) == ""


# --- vectors ------------------------------------------------------------------------------------------------------


def with_vectors(vectors: Any, **options: Any) -> Dataset:
    cells = pa.array(vectors, pa.list_(pa.float64()))
    return read_tables(pa.table({"id": list("abcd"), "v": cells}), ONE, **options)


def test_a_block_is_centred_and_divided_by_one_number() -> None:
    vectors = np.random.default_rng(0).normal(3, 2, (4, 5)) * [1, 1, 1, 1, 100]
    data = with_vectors(vectors.tolist())
    assert data.feature_names == tuple(f"v[{i}]" for i in range(5))
    assert isinstance(data.graph.x, np.ndarray)
    centred = vectors - vectors.mean(axis=0)
    np.testing.assert_allclose(data.graph.x, centred / centred.std(), rtol=1e-5, atol=1e-5)


def test_a_rotated_block_is_the_rotated_encoding() -> None:
    rng = np.random.default_rng(1)
    vectors, rotation = rng.normal(size=(4, 6)), np.linalg.qr(rng.normal(size=(6, 6)))[0]
    plain, turned = with_vectors(vectors.tolist()), with_vectors((vectors @ rotation).tolist())
    np.testing.assert_allclose(turned.graph.x, plain.graph.x @ rotation, atol=1e-5)


def test_a_vector_of_one_number_is_encoded_as_the_number() -> None:
    column = with_vectors([[size] for size in NODES["size"]])
    np.testing.assert_allclose(column.graph.x, read_tables(NODES, ONE, numeric=["size"]).graph.x, rtol=1e-6)


def test_vectors_later_must_be_as_long() -> None:
    data = with_vectors([[1, 2], None, [3, 4], [5, 9]])
    assert data.feature_names == ("v[0]", "v[1]", "v (missing)")
    np.testing.assert_array_equal(data.graph.x[1], [0, 0, 1])
    more = extend(data, {"id": ["e", "f"], "v": ["[1, 2]", ""]})
    np.testing.assert_array_equal(more.graph.x[4:], data.graph.x[:2])
    for vectors in (["[1, 2, 3]"], ["[1]"]):
        with pytest.raises(FewnodeError, match=r"data row 1, column 'v': a vector of . numbers, expected 2"):
            extend(data, {"id": ["e"], "v": vectors})
    with pytest.raises(FewnodeError, match="the vector is too far from the mean"):
        extend(with_vectors([[1e-30, 0]] * 3 + [[0, 0]]), {"id": ["e"], "v": [[3e38, 1.0]]})
    none = extend(data, {"id": ["e"], "v": pa.array([None], pa.string())})
    np.testing.assert_array_equal(none.graph.x[4], [0, 0, 1])


def test_vectors_that_never_vary_say_nothing() -> None:
    data = with_vectors([[0.1, 0.7]] * 4)
    assert not data.graph.x.any()
    assert not extend(data, {"id": ["e"], "v": [[5.0, 6.0]]}).graph.x[4].any()
    with pytest.raises(FewnodeError, match="a vector of 3 numbers, expected 2"):
        extend(data, {"id": ["e"], "v": [[5.0, 6.0, 7.0]]})


def test_a_named_vector_without_any_is_refused_and_so_is_one_of_a_length_beyond_all_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(FewnodeError, match="column 'v' has vectors of 0 numbers, expected 1 to"):
        with_vectors([None] * 4, vector=["v"])
    monkeypatch.setattr("fewnode.tables.encode.MAX_LENGTH", 2)
    with pytest.raises(FewnodeError, match="column 'v' has vectors of 3 numbers, expected 1 to 2"):
        with_vectors([[1, 2, 3]] * 4)


# --- encodings and accounts of strangers --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "forged",
    [
        {"numeric": [["size", [float("inf"), 1.0]]]},
        {"numeric": [["size", [0.0, -1.0]]]},
        {"numeric": [["size", ["x", 1.0]]]},
        {"numeric": [[5, [0.0, 1.0]]]},
        {"numeric": [["size", [0.0, 1.0]], ["size", [0.0, 1.0]]]},
        {"category": [["c", "pq"]]},
        {"category": [["c", ["p", "p"]]]},
        {"vocabulary": [1]},
        {"vector": [["v", {"mean": [], "deviation": 1.0}]]},
        {"vector": [["v", {"mean": [float("nan")], "deviation": 1.0}]]},
        {"vector": [["v", {"mean": [[1.0]], "deviation": 1.0}]]},
        {"vector": [["v", {"mean": [1.0], "deviation": None}]]},
        {"flags": ["nobody"]},
        {"flags": ["size", "size"]},
        {"flags": 3},
        {"dates": {"nobody": "year first"}},
    ],
    ids=str,
)
def test_a_forged_encoding_is_refused(forged: dict[str, Any]) -> None:
    data = read_tables({"id": ["a", "b"], "size": [1, 2]}, ONE)
    assert data.encoding is not None
    stored = {**data.encoding, "encoding": {**data.encoding["encoding"], **forged}}
    with pytest.raises(FewnodeError, match="the stored encoding of its columns is not one that fewnode wrote"):
        extend(replace(data, encoding=stored), {"id": ["c"], "size": [1]})


@pytest.mark.parametrize(
    ("forged", "message"),
    [
        ({"encoding": {}}, r"the stored encoding has 0 attributes and the graph 1"),
        ({"spec": {"missing": [3]}}, "not one that fewnode wrote"),
        ({"spec": {"decimal": "x"}}, "not one that fewnode wrote"),
        ({"spec": {"id": ["x"]}}, "not one that fewnode wrote"),
        ({"spec": {"label": 3}}, "not one that fewnode wrote"),
        ({"optional": 3}, "not one that fewnode wrote"),
    ],
)
def test_a_forged_dataset_is_not_extended(forged: dict[str, Any], message: str) -> None:
    data = read_tables(NODES, ONE)
    data.encoding.update(forged)  # type: ignore[union-attr]
    with pytest.raises(FewnodeError, match=message):
        extend(data, {"id": ["e"], "size": [1]})


@pytest.mark.parametrize(
    "forged", [{"nodes": [3]}, {"extended": [3]}, {"extended": {"a": 1}}, {"notes": 3}, {"skipped": 3}]
)
def test_a_forged_account_is_refused_in_a_sentence(forged: dict[str, Any]) -> None:
    data = read_tables(NODES, ONE)
    data.info.update(forged)
    with pytest.raises(FewnodeError, match="is not what fewnode wrote"):
        report(data)
    with pytest.raises(FewnodeError, match="is not what fewnode wrote"):
        warnings_of({"warnings": 3})
