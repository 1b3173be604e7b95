"""Vectors beside a table: files and arrays with a row for each node."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from fewnode.dataset import Dataset
from fewnode.errors import FewnodeError
from fewnode.graph import Block
from fewnode.tables.extend import extend
from fewnode.tables.read import read_tables

NODES = {"id": ["a", "b", "c"], "size": [1.0, 2.0, 3.0]}
EDGES = {"s": ["a"], "t": ["b"]}
V = np.array([[1.0, 0.0], [0.0, 2.0], [3.0, 3.0]])


def read(vectors: Any, **options: Any) -> Dataset:
    return read_tables(NODES, EDGES, vectors=vectors, **options)


@pytest.mark.parametrize(
    "form",
    [
        lambda path: V,
        lambda path: torch.from_numpy(V),
        lambda path: {"vectors": V.astype(np.float16)},
        lambda path: path,
        lambda path: {"vectors": path},
    ],
)
def test_every_form_gives_what_a_column_would(form: Any, tmp_path: Path) -> None:
    path = tmp_path / "vectors.npy"
    np.save(path, np.asfortranarray(V))
    data = read(form(path))
    as_column = read_tables({**NODES, "vectors": V.tolist()}, EDGES)
    assert data.feature_names == as_column.feature_names
    assert data.graph.blocks == (Block("numbers", 0, 1, "numbers"), Block("vector", 1, 3, "vectors"))
    np.testing.assert_array_equal(data.graph.x, as_column.graph.x)
    assert data.info["columns"] == {"id": "id", "size": "numeric", "vectors": "vector"}
    assert data.info["why"]["vectors"] == "beside the table"


def test_new_nodes_bring_theirs_as_a_file_or_as_a_column() -> None:
    data = read(V)
    beside = extend(data, {"id": ["d"], "size": [2.0]}, vectors=[[3.0, 3.0]])
    column = extend(data, {"id": ["d"], "size": [2.0], "vectors": [[3.0, 3.0]]})
    for more in (beside, column):
        np.testing.assert_array_equal(np.asarray(more.graph.x)[3, 1:], np.asarray(data.graph.x)[2, 1:])
    with pytest.raises(FewnodeError, match="no column 'vectors'"):
        extend(data, {"id": ["d"], "size": [2.0]})
    with pytest.raises(FewnodeError, match=r"the nodes table has no vectors 'vector' \(did you mean 'vectors'\?\)"):
        extend(data, {"id": ["d"], "size": [2.0]}, vectors={"vector": [[3.0, 3.0]]})


@pytest.mark.parametrize(
    ("vectors", "problem"),
    [
        (V[:2], "vectors: 2 vectors for the 3 nodes of the nodes table; expected one for each row, in the same order"),
        ({"size": V}, "the nodes table: there is a column 'size' already"),
        (V[:, 0], "vectors: found float64 (3,), expected numbers, a row for each node"),
        ([[1.0], [1.0, 2.0], [1.0]], "vectors: no matrix"),
        ({"v": [[1, np.inf], [1, 2], [1, 2]]}, "data row 1, column 'v': number 2 of the vector is 'inf'"),
        (np.zeros((3, 0)), "data row 1, column 'vectors': a vector of 0 numbers, expected at least one"),
    ],
)
def test_vectors_that_do_not_fit(vectors: Any, problem: str) -> None:
    with pytest.raises(FewnodeError) as caught:
        read(vectors)
    assert problem in str(caught.value)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "v.npy"
    np.save(path, V)
    whole = path.read_bytes()
    objects = tmp_path / "objects.npy"
    np.save(objects, np.array([[{}]], object), allow_pickle=True)
    (tmp_path / "other").mkdir()
    np.save(tmp_path / "other" / "v.npy", V)
    for name, content, problem in (
        ("cut.npy", whole[:-8], "not a readable .npy file"),
        ("header.npy", b"\x93NUMPY\x01\x00v\x00" + b"{'shape': (".ljust(118), "not a readable .npy file"),
        ("none.npy", b"hello, world", "not a readable .npy file"),
        ("objects.npy", objects.read_bytes(), "not a readable .npy file"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(FewnodeError) as caught:
            read(tmp_path / name)
        assert str(caught.value).startswith(f"{tmp_path / name}: ")
        assert problem in str(caught.value)
    with pytest.raises(FewnodeError, match="no such file"):
        read(tmp_path / "missing.npy")
    with pytest.raises(FewnodeError, match="two files of vectors are called 'v'; rename one"):
        read([path, tmp_path / "other" / "v.npy"])
