"""The authors' published layout: SciPy writes it here, we read it, with each file there and missing."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from fewnode.errors import FewnodeError
from fewnode.formats.published import EXPECTED, Expected, blob_id
from fewnode.formats.sources import import_dataset, load

PUBLISHED = Path(__file__).parents[3] / "shared" / "data" / "few_shot_data"
EACH = 10


def part(nodes: np.ndarray[Any, Any], classes: np.ndarray[Any, Any], width: int = 5) -> dict[str, Any]:
    x = sp.csc_array((np.arange(nodes.size * width).reshape(nodes.size, width) % 7) * 1.0)
    return {"Index": nodes[None, :].astype(np.int64), "Label": classes[:, None].astype(float), "Attributes": x}


def publish(folder: Path, name: str = "Net", train: int = 7, test: int = 3) -> Path:
    """A ring of nodes, `EACH` of every class, numbered so that classes are spread over the nodes."""
    n = (train + test) * EACH
    nodes = np.random.default_rng(1).permutation(n)
    classes = np.repeat(np.random.default_rng(2).permutation(train + test), EACH)
    ring = "".join(f"{i}\t{(i + 1) % n}\n{(i + 1) % n}\t{i}\n" for i in range(n))
    (folder / f"{name}_network").write_text(ring)
    for kind, rows in (("train", slice(0, train * EACH)), ("test", slice(train * EACH, n))):
        scipy.io.savemat(folder / f"{name}_{kind}.mat", part(nodes[rows], classes[rows]))
    return folder


@pytest.fixture
def published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of files that count as published."""
    publish(tmp_path)
    blobs = {path.name: blob_id(path.read_bytes()) for path in tmp_path.glob("*.mat")}
    known = Expected(nodes=90, edges=100, attributes=5, classes=10, split=(5, 2, 3), published="Net", blobs=blobs)
    monkeypatch.setitem(EXPECTED, "net", known)
    return tmp_path


def test_both_files_give_every_node_its_class_and_attributes(published: Path) -> None:
    data = import_dataset(published, name="net")
    assert (data.graph.n, data.graph.n_edges, data.graph.n_features) == (100, 100, 5)
    train, test = (scipy.io.loadmat(published / f"Net_{kind}.mat") for kind in ("train", "test"))
    for mat in (train, test):
        nodes = mat["Index"].ravel()
        assert [int(data.class_names[c]) for c in data.y[nodes]] == mat["Label"].ravel().tolist()
        np.testing.assert_array_equal(data.graph.x[nodes].toarray(), mat["Attributes"].toarray())
    assert {int(data.class_names[c]) for c in data.split.test} == set(test["Label"].ravel())
    assert (len(data.split.train), len(data.split.valid)) == (5, 2)
    assert (data.info["notes"], data.info["difference"]["nodes"]) == ([], 10)
    assert load(published).sha256 == data.sha256  # the only network needs no name
    splits = [import_dataset(published, seed=seed).split for seed in range(4)]
    assert len({split.test for split in splits}) == 1
    assert len({split.train for split in splits}) > 1


@pytest.mark.parametrize(("missing", "left"), [("train", 3), ("test", 7)])
def test_without_a_file_its_nodes_are_unlabelled_and_the_rest_is_dealt(
    published: Path, missing: str, left: int
) -> None:
    (published / f"Net_{missing}.mat").unlink()
    data = import_dataset(published)
    assert (int((data.y >= 0).sum()), len(data.class_names)) == (left * EACH, left)
    assert data.graph.x[data.y < 0].nnz == 0
    assert f"Net_{missing}.mat is not there" in data.info["notes"][0]
    assert len(data.split.train + data.split.valid + data.split.test) == left


def test_the_network_alone_is_still_read(published: Path) -> None:
    for kind in ("train", "test"):
        (published / f"Net_{kind}.mat").unlink()
    data = import_dataset(published)
    assert (data.graph.n, data.graph.n_features, set(data.y.tolist())) == (100, 0, {-1})
    assert len(data.info["notes"]) == 2


def test_a_file_that_nobody_published_is_not_opened(tmp_path: Path) -> None:
    with pytest.raises(FewnodeError, match=r"Net_train\.mat: not a file that the authors published"):
        import_dataset(publish(tmp_path))


def test_which_network_is_meant_must_be_clear(tmp_path: Path) -> None:
    with pytest.raises(FewnodeError, match=r"no network in it, expected files dataset\.json or NAME_network"):
        import_dataset(tmp_path)
    publish(publish(tmp_path, "One"), "Two")
    with pytest.raises(FewnodeError, match="several networks, choose one by name: One, Two"):
        import_dataset(tmp_path)
    with pytest.raises(FewnodeError, match=r"no Tow_network \(did you mean 'Two'\?\); there are One, Two"):
        import_dataset(tmp_path, name="Tow")


@pytest.mark.parametrize("text", ["", "0 1\n", "0\t1\t2\n", "0\t-1\n", "a\tb\n", "0\t1\n\t\n", "0\t99999999999\n"])
def test_a_network_that_is_not_pairs_of_numbers_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "Net_network").write_text(text)
    with pytest.raises(FewnodeError, match="Net"):
        import_dataset(tmp_path)


@pytest.mark.skipif(not PUBLISHED.exists(), reason="the published files are not there")
def test_the_published_files() -> None:
    data = import_dataset(PUBLISHED, name="Amazon_clothing")
    assert (data.graph.n, data.graph.n_edges, data.graph.n_features) == (24919, 91680, 9034)
    assert ((data.y >= 0).sum(), len(data.class_names), len(data.info["notes"])) == (9360, 20, 1)
    labelled = np.load(PUBLISHED.parent / "amazon_clothing_test20.npz")
    np.testing.assert_array_equal(np.array(data.class_names, int), labelled["class_ids"])
    np.testing.assert_array_equal(data.y[labelled["node_ids"]], labelled["y"])
    np.testing.assert_array_equal(data.graph.x[labelled["node_ids"]].data, labelled["x_data"])
    electronics = import_dataset(PUBLISHED, name="amazon-electronics").graph
    assert (electronics.n, electronics.n_edges) == (42318, 43556)
