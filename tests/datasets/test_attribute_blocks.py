"""Which attributes belong together, whichever way a network comes in, and that a vector is scaled as a whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from fewnode.dataset import Dataset
from fewnode.errors import FewnodeError
from fewnode.formats.directory import load_dataset, save_dataset
from fewnode.formats.npz import read_dataset_npz
from fewnode.graph import Block
from fewnode.tables.extend import extend
from fewnode.tables.read import read_tables

NODES: dict[str, list[Any]] = {
    "id": ["a", "b", "c"],
    "text": ["red fox", "red den", "fox"],
    "size": [1.0, None, 5.0],
    "kind": ["p", "q", "p"],
    "v": [[1.0, 0.0], [0.0, 2.0], [3.0, 3.0]],
}
ROLES: dict[str, Any] = {"text": "text", "numeric": "size", "category": "kind", "vector": "v"}
EDGES = {"source": ["a", "b"], "target": ["b", "c"]}
RING = sp.csr_array(np.roll(np.eye(4), 1, axis=1))


def tables(nodes: dict[str, list[Any]] = NODES, roles: dict[str, Any] = ROLES) -> Dataset:
    return read_tables(nodes, EDGES, min_count=1, max_share=1, **roles)


def test_columns_of_tables_become_blocks_and_stay_so(tmp_path: Path) -> None:
    data = tables()
    blocks = (
        Block("words", 0, 3, "words"),
        Block("numbers", 3, 6, "numbers"),
        Block("vector", 6, 8, "v"),
        Block("numbers", 8, 9, "missing"),
    )
    assert data.graph.blocks == blocks
    save_dataset(data, tmp_path / "d")
    assert load_dataset(tmp_path / "d").graph.blocks == blocks
    assert load_dataset(tmp_path / "d").sha256 == data.sha256
    more = {"id": ["d"], "text": ["owl"], "size": [2.0], "kind": ["q"], "v": [[1.0, 1.0]]}
    assert extend(data, more).graph.blocks == extend(data, more, alone=True).graph.blocks == blocks


@pytest.mark.parametrize(
    ("blocks", "problem"),
    [
        ([("words", 0, 2), ("vector", 1, 3)], "block '' begins at column 1, expected 2 or later"),
        ([("vector", 1, 3), ("words", 0, 1)], "block '' begins at column 0, expected 3 or later"),
        ([("vector", 0, 5)], "block '' ends at column 5, but there are 4"),
        ([("vector", 2, 2)], "block '' is columns 2 to 2, expected at least one"),
        ([("vector", -1, 2)], "block '' is columns -1 to 2, expected at least one"),
        ([("sounds", 0, 2)], "a block of kind 'sounds', expected words, numbers, vector"),
    ],
)
def test_blocks_that_cannot_be(blocks: list[tuple[str, int, int]], problem: str) -> None:
    with pytest.raises(FewnodeError) as caught:
        Dataset.from_scipy(RING, np.ones((4, 4)), blocks=[Block(*block) for block in blocks])
    assert str(caught.value) == problem


# --- dense matrices -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("x", [np.eye(3), np.eye(3) - 0.5, np.zeros((3, 0))])
def test_an_npz_file_read_whole_or_in_pieces(tmp_path: Path, x: np.ndarray[Any, Any]) -> None:
    path = tmp_path / "n.npz"
    np.savez(path, edge_index=np.array([[0, 1], [1, 2]]), y=np.zeros(3, int), x=x)
    whole, pieces = read_dataset_npz(path), read_dataset_npz(path, room=tmp_path)
    assert whole.graph.blocks == pieces.graph.blocks == ((Block("vector", 0, 3, "x"),) if (x < 0).any() else ())
    assert whole.sha256 == pieces.sha256
