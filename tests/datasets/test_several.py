"""Several tables of nodes and edges from Python, missing values, vectors, and what `extend` makes of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from fewnode.dataset import Dataset
from fewnode.errors import FewnodeError
from fewnode.tables.extend import extend
from fewnode.tables.read import read_tables
from fewnode.tables.report import report, warnings_of

NODES = {"id": list("abcd"), "label": list("xyxy"), "size": [1.0, 2.0, 3.0, 4.0]}
ONE, OTHER = {"s": ["a"], "t": ["b"]}, {"u": ["c", "a"], "v": ["d", "b"], "amount": [5, 6]}


# --- several tables -----------------------------------------------------------------------------------------------


def test_no_table_at_all_is_refused() -> None:
    with pytest.raises(FewnodeError, match="no table of edges"):
        read_tables(NODES, [])
    with pytest.raises(FewnodeError, match="no table of nodes"):
        read_tables([], ONE)


# --- vectors ------------------------------------------------------------------------------------------------------


def with_vectors(vectors: Any, **options: Any) -> Dataset:
    cells = pa.array(vectors, pa.list_(pa.float64()))
    return read_tables(pa.table({"id": list("abcd"), "v": cells}), ONE, **options)


def test_a_rotated_block_is_the_rotated_encoding() -> None:
    rng = np.random.default_rng(1)
    vectors, rotation = rng.normal(size=(4, 6)), np.linalg.qr(rng.normal(size=(6, 6)))[0]
    plain, turned = with_vectors(vectors.tolist()), with_vectors((vectors @ rotation).tolist())
    np.testing.assert_allclose(turned.graph.x, plain.graph.x @ rotation, atol=1e-5)


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
        {"numeric": {"size": [float("inf"), 1.0]}},
        {"numeric": {"size": [0.0, -1.0]}},
        {"numeric": {"size": ["x", 1.0]}},
        {"numeric": {5: [0.0, 1.0]}},
        {"category": {"c": "pq"}},
        {"category": {"c": ["p", "p"]}},
        {"vocabulary": [1]},
        {"vector": {"v": {"mean": [], "deviation": 1.0}}},
        {"vector": {"v": {"mean": [float("nan")], "deviation": 1.0}}},
        {"vector": {"v": {"mean": [[1.0]], "deviation": 1.0}}},
        {"vector": {"v": {"mean": [1.0], "deviation": None}}},
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
