"""Well-known networks through PyG's loaders: from raw files in their own formats, and without a network."""

from __future__ import annotations

import pickle
import socket
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import fewnode
from fewnode.errors import FewnodeError
from fewnode.formats.sources import PUBLIC

pytest.importorskip("torch_geometric")

EACH = 200
N = 3 * EACH


@pytest.fixture(autouse=True)
def _offline(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise socket.gaierror(-3, "Temporary failure in name resolution")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.fixture(name="network")
def _network() -> tuple[np.ndarray, sp.csr_matrix, np.ndarray]:
    """Edges, attributes and classes. PyG takes 500 nodes after the first ones for validation, so there are more."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(3), EACH)
    edges = np.stack([np.arange(N), y * EACH + rng.integers(0, EACH, N)])
    edges = edges[:, edges[0] != edges[1]]
    return edges, sp.csr_matrix(np.eye(3, dtype=np.float32)[y]), y


def write_planetoid(folder: Path, network: tuple[np.ndarray, sp.csr_matrix, np.ndarray]) -> None:
    """`ind.cora.*`: training nodes, all with labels, test nodes in an order of their own, and a graph of lists."""
    edges, x, y = network
    folder.mkdir(parents=True)
    test, one_hot = np.arange(N - 50, N), np.eye(3, dtype=np.int32)[y]
    shown = {"x": x[:9], "tx": x[-50:], "allx": x[:-50], "y": one_hot[:9], "ty": one_hot[-50:], "ally": one_hot[:-50]}
    shown["graph"] = {i: edges[1][edges[0] == i].tolist() for i in range(N)}
    for name, value in shown.items():
        (folder / f"ind.cora.{name}").write_bytes(pickle.dumps(value, protocol=2))
    (folder / "ind.cora.test.index").write_text("".join(f"{i}\n" for i in test))


def agrees(data: fewnode.Dataset, network: tuple[np.ndarray, sp.csr_matrix, np.ndarray]) -> None:
    edges, x, y = network
    assert np.array_equal(data.y, y)
    assert np.array_equal(data.graph.x if isinstance(data.graph.x, np.ndarray) else data.graph.x.toarray(), x.toarray())
    assert data.graph.n_edges == len({tuple(sorted(edge)) for edge in edges.T.tolist()})
    found = fewnode.recognise(data, {"first": [0, 1], "second": [EACH, EACH + 1]}, query=[3, EACH + 9])
    assert found.labels == ["first", "second"]


def test_cora_from_its_raw_files(network: tuple, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_planetoid(tmp_path / "fewnode" / "public" / "Cora" / "raw", network)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    data = fewnode.load("cora")
    agrees(data, network)
    assert data.name == "Cora"
    assert data.info["unused"] == ["train_mask", "val_mask", "test_mask"]


@pytest.mark.parametrize("name", PUBLIC)
def test_without_a_network_a_sentence_says_so(name: str, tmp_path: Path) -> None:
    with pytest.raises(FewnodeError, match=f"{name} could not be loaded .* put them below {tmp_path}"):
        fewnode.load(name, root=tmp_path)


def test_names_that_are_nearly_right_and_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FewnodeError, match="did you mean 'CoraFull'"):
        fewnode.load("coraful")
    monkeypatch.chdir(tmp_path)
    Path("Cora").write_text("x")
    with pytest.raises(FewnodeError, match="leave out root"):
        fewnode.load("Cora", root=tmp_path)
