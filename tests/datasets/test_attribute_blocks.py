"""Which attributes belong together, whichever way a network comes in, and that a vector is scaled as a whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from fewnode.column_blocks import Block
from fewnode.dataset import ClassSplit, Dataset
from fewnode.errors import FewnodeError
from fewnode.formats.directory import load_dataset, save_dataset
from fewnode.formats.npz import read_dataset_npz
from fewnode.graph import Graph
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


def test_a_network_without_blocks_has_the_identity_it_always_had() -> None:
    graph, split = Graph.from_edges([[0], [1]], 2, np.ones((2, 2), np.float32)), ClassSplit((), (), ())
    plain = Dataset(graph, np.array([-1, -1]), split)
    told = Dataset(Graph(graph.adj, graph.x, blocks=(Block("vector", 0, 2),)), plain.y, split)
    assert plain.sha256 == "3bbd1d4bc8e311aa44f7e43882320f74c89a2240b54212f4e95467c37aaedc73"
    assert told.sha256 != plain.sha256


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


def test_a_stranger_cannot_write_blocks_that_cannot_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = Dataset.from_scipy(RING, np.ones((4, 2)))
    forged = {"kind": "vector", "start": 0, "stop": 9, "name": "x"}
    monkeypatch.setattr("fewnode.formats.directory.asdict", lambda block: forged)
    save_dataset(data, tmp_path / "d")
    with pytest.raises(FewnodeError, match="d: block 'x' ends at column 9, but there are 2"):
        load_dataset(tmp_path / "d")


# --- dense matrices -----------------------------------------------------------------------------------------------


def test_a_dense_matrix_is_a_vector_unless_it_looks_like_counts_or_is_told() -> None:
    vectors, counts = np.array([[0.5, -1.0]] * 4), np.eye(4)
    assert Dataset.from_scipy(RING, vectors).graph.blocks == (Block("vector", 0, 2, "x"),)
    assert Dataset.from_scipy(RING, counts).graph.blocks == ()
    assert Dataset.from_scipy(RING, -counts).graph.blocks == (Block("vector", 0, 4, "x"),)
    assert Dataset.from_scipy(RING, sp.csr_array(vectors)).graph.blocks == ()
    assert Dataset.from_scipy(RING).graph.blocks == ()
    told = (Block("numbers", 0, 2, "age and size"),)
    assert Dataset.from_scipy(RING, vectors, blocks=told).graph.blocks == told
    assert Dataset.from_scipy(RING, vectors, blocks=()).graph.blocks == ()


def test_attributes_of_networkx_are_numbers_or_vectors() -> None:
    network = nx.path_graph(3)
    for i in network:
        network.nodes[i].update(age=i, v=[i, 1.0], size=2.0 * i)
    data = Dataset.from_networkx(network, None, ["age", "v", "size"])
    assert data.graph.blocks == (
        Block("numbers", 0, 1, "age"),
        Block("vector", 1, 3, "v"),
        Block("numbers", 3, 4, "size"),
    )


def test_blocks_go_to_pyg_and_back() -> None:
    pytest.importorskip("torch_geometric")
    data = tables()
    assert Dataset.from_pyg(data.to_pyg()).graph.blocks == data.graph.blocks
    dense = Dataset.from_scipy(RING, np.array([[0.5, -1.0]] * 4))
    bare = dense.to_pyg()
    del bare.attribute_blocks
    assert Dataset.from_pyg(bare).graph.blocks == dense.graph.blocks


@pytest.mark.parametrize("x", [np.eye(3), np.eye(3) - 0.5, np.zeros((3, 0))])
def test_an_npz_file_read_whole_or_in_pieces(tmp_path: Path, x: np.ndarray[Any, Any]) -> None:
    path = tmp_path / "n.npz"
    np.savez(path, edge_index=np.array([[0, 1], [1, 2]]), y=np.zeros(3, int), x=x)
    whole, pieces = read_dataset_npz(path), read_dataset_npz(path, room=tmp_path)
    assert whole.graph.blocks == pieces.graph.blocks == ((Block("vector", 0, 3, "x"),) if (x < 0).any() else ())
    assert whole.sha256 == pieces.sha256


# --- scaling ------------------------------------------------------------------------------------------------------


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**31), stretch=st.sampled_from([0.01, 1.0, 1000.0]))
def test_turning_vectors_turns_their_block_and_nothing_else(seed: int, stretch: float) -> None:
    rng = np.random.default_rng(seed)
    vectors = (rng.normal(size=(20, 5)) * rng.exponential(size=5) + rng.normal(size=5)) * stretch
    turn = np.linalg.qr(rng.normal(size=(5, 5)))[0]
    nodes = {"id": [f"n{i}" for i in range(20)], "v": vectors.tolist()}
    edges = {"source": ["n0"], "target": ["n1"]}
    plain = read_tables(nodes, edges, vector="v").graph.x
    turned = read_tables({**nodes, "v": (vectors @ turn).tolist()}, edges, vector="v").graph.x
    np.testing.assert_allclose(turned, plain @ turn, atol=1e-4)
    np.testing.assert_allclose(np.square(plain).mean(), 1, rtol=1e-4)
