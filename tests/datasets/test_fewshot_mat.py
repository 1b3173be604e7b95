"""The authors' published layout: SciPy writes it here, we read it, with each file there, missing and damaged."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from fewnode.datasets import import_dataset, load
from fewnode.datasets.fewshot_mat import read_mat, read_network
from fewnode.errors import FewnodeError

PUBLISHED = Path(__file__).parents[3] / "shared" / "data" / "few_shot_data"
EACH = 10


def describe(nodes: np.ndarray[Any, Any], classes: np.ndarray[Any, Any], width: int = 5) -> dict[str, Any]:
    x = sp.csc_array((np.arange(nodes.size * width).reshape(nodes.size, width) % 7) * 1.0)
    return {"Index": nodes[None, :].astype(np.int64), "Label": classes[:, None].astype(float), "Attributes": x}


def publish(folder: Path, name: str = "Net", train: int = 7, test: int = 3) -> Path:
    """A ring of nodes, `EACH` of every class, numbered so that classes are spread over the nodes."""
    n = (train + test) * EACH
    nodes = np.random.default_rng(1).permutation(n)
    classes = np.repeat(np.random.default_rng(2).permutation(train + test), EACH)
    ring = "".join(f"{i}\t{(i + 1) % n}\n{(i + 1) % n}\t{i}\n" for i in range(n))
    (folder / f"{name}_network").write_text(ring)
    for part, rows in (("train", slice(0, train * EACH)), ("test", slice(train * EACH, n))):
        scipy.io.savemat(folder / f"{name}_{part}.mat", describe(nodes[rows], classes[rows]))
    return folder


def test_both_files_give_every_node_its_class_and_attributes(tmp_path: Path) -> None:
    data = import_dataset(publish(tmp_path), name="Net")
    assert (data.graph.n, data.graph.n_edges, data.graph.n_features) == (100, 100, 5)
    train, test = (scipy.io.loadmat(tmp_path / f"Net_{part}.mat") for part in ("train", "test"))
    for mat in (train, test):
        nodes = mat["Index"].ravel()
        assert [int(data.class_names[c]) for c in data.y[nodes]] == mat["Label"].ravel().tolist()
        np.testing.assert_array_equal(data.graph.x[nodes].toarray(), mat["Attributes"].toarray())
    assert {int(data.class_names[c]) for c in data.split.test} == set(test["Label"].ravel())
    assert (len(data.split.train), len(data.split.valid)) == (5, 2)
    assert data.info["notes"] == []
    assert load(tmp_path).sha256 == data.sha256  # the only network needs no name


def test_train_and_valid_classes_are_dealt_by_the_seed_and_test_classes_are_given(tmp_path: Path) -> None:
    publish(tmp_path)
    splits = [import_dataset(tmp_path, seed=seed).split for seed in range(4)]
    assert len({split.test for split in splits}) == 1
    assert len({split.train for split in splits}) > 1
    assert len(import_dataset(tmp_path, fractions=(1, 6, 9)).split.train) == 1


def test_a_network_of_the_paper_has_the_papers_split(tmp_path: Path) -> None:
    data = import_dataset(publish(tmp_path, "Amazon_clothing", 57, 20), name="amazon-clothing", fractions=(1, 1, 1))
    assert [len(part) for part in (data.split.train, data.split.valid, data.split.test)] == [40, 17, 20]
    assert data.info["difference"] == {
        "nodes": 770 - 24919,
        "edges": 770 - 91680,
        "attributes": 5 - 9034,
        "classes": 0,
        "split": [0, 0, 0],
    }


@pytest.mark.parametrize(("missing", "left"), [("train", 3), ("test", 7)])
def test_without_a_file_its_nodes_are_unlabelled_and_the_rest_is_dealt(tmp_path: Path, missing: str, left: int) -> None:
    whole = import_dataset(publish(tmp_path))
    lost = scipy.io.loadmat(tmp_path / f"Net_{missing}.mat")["Index"].ravel()
    (tmp_path / f"Net_{missing}.mat").unlink()
    data = import_dataset(tmp_path, fractions=(1, 0, 1))
    assert set(np.flatnonzero(data.y < 0)) == set(lost)
    assert not data.graph.x[lost].nnz
    assert data.graph.x.shape == whole.graph.x.shape
    assert len(data.class_names) == len(data.split.train) + len(data.split.test) == left
    assert data.info["notes"] == [
        f"Net_{missing}.mat is not there: the nodes it describes are unlabelled and without attributes"
    ]


def test_the_network_alone_is_still_read(tmp_path: Path) -> None:
    publish(tmp_path)
    for part in ("train", "test"):
        (tmp_path / f"Net_{part}.mat").unlink()
    data = import_dataset(tmp_path)
    assert (data.graph.n, data.graph.n_features, set(data.y.tolist())) == (100, 0, {-1})
    assert len(data.info["notes"]) == 2


def test_which_network_is_meant_must_be_clear(tmp_path: Path) -> None:
    with pytest.raises(FewnodeError, match="no network in it"):
        import_dataset(tmp_path)
    publish(publish(tmp_path, "One"), "Two")
    with pytest.raises(FewnodeError, match="several networks, choose one by name: One, Two"):
        import_dataset(tmp_path)
    with pytest.raises(FewnodeError, match=r"no Tow_network \(did you mean 'Two'\?\)"):
        import_dataset(tmp_path, name="Tow")


# --- files that do not fit ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["", "0\n1\n", "0\t1\t2\n", "0\tx\n", "0 1\n", "0\t-1\n", "0\t1.5\n", "0\t99999999999999999999\n", "0\té\n"]
)
def test_a_network_that_is_not_pairs_of_numbers_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "Net_network").write_text(text)
    with pytest.raises(FewnodeError, match="Net_network: expected two node numbers"):
        read_network(tmp_path / "Net_network")


def test_a_node_number_out_of_all_proportion_allocates_nothing(tmp_path: Path) -> None:
    with (publish(tmp_path) / "Net_network").open("a") as file:
        file.write("3\t4000000000\n")
    with pytest.raises(FewnodeError, match="node 4000000000 among 101 nodes"):
        import_dataset(tmp_path)


NODES = np.arange(70)
CLASSES = np.repeat(np.arange(7), EACH)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"Index": None}, "no numbers called 'Index'"),
        ({"Index": "text"}, "no numbers called 'Index'"),
        ({"Label": {"a": 1}}, "no numbers called 'Label'"),
        ({"Index": NODES[:60]}, "60 nodes in Index, 70 in Label, 70 x 5 Attributes"),
        ({"Index": NODES - 1}, "Index holds -1, expected whole numbers from 0"),
        ({"Index": NODES % 2}, "node 0 is described twice"),
        ({"Index": np.ones((7, 10))}, "Index is not a list of numbers"),
        ({"Index": sp.csc_array(np.ones((1, 70)))}, "Index is not a list of numbers"),
        ({"Label": CLASSES + 0.5}, r"Label holds 0\.5, expected whole numbers"),
        ({"Label": CLASSES * np.nan}, "Label holds nan"),
        ({"Label": CLASSES + 4e9}, r"Label holds 4000000000\.0"),
        ({"Attributes": np.ones((70, 4))}, "train.mat and test.mat have 4 and 5 attributes"),
        ({"Attributes": np.full((70, 5), np.nan)}, "NaN or infinite"),
        ({"Attributes": np.full((70, 5), 1e300)}, "NaN or infinite"),
        ({"Attributes": np.ones((70, 5, 2))}, "70 x 5 x 2 Attributes"),
        ({"Attributes": np.full((70, 5), 1j)}, "'Attributes' holds complex numbers"),
        ({"Label": CLASSES + 5}, "class . is in both train.mat and test.mat"),
    ],
)
def test_variables_that_do_not_fit_are_refused(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    publish(tmp_path)
    mat = scipy.io.loadmat(tmp_path / "Net_train.mat")
    mat = {k: v for k, v in (mat | change).items() if v is not None and not k.startswith("_")}
    scipy.io.savemat(tmp_path / "Net_train.mat", mat)
    with pytest.raises(FewnodeError, match=message):
        import_dataset(tmp_path)


def saved(**options: Any) -> bytes:
    buffer = io.BytesIO()
    extra = {"name": "text", "cell": np.array([1, "a"], dtype=object), "struct": {"a": [1]}, "big": np.zeros(99)}
    scipy.io.savemat(buffer, extra | describe(np.arange(6), np.arange(6)), **options)
    return buffer.getvalue()


@pytest.mark.parametrize("compressed", [False, True])
def test_other_variables_are_passed_over_and_compression_is_undone(tmp_path: Path, compressed: bool) -> None:
    path = tmp_path / "a.mat"
    path.write_bytes(saved(do_compression=compressed))
    part, mat = read_mat(path), scipy.io.loadmat(path)
    np.testing.assert_array_equal(part.nodes, mat["Index"].ravel())
    np.testing.assert_array_equal(part.classes, mat["Label"].ravel())
    np.testing.assert_array_equal(part.x.toarray(), mat["Attributes"].toarray())


def test_a_large_file_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fewnode.datasets.fewshot_mat.MAX_BYTES", 100)
    (tmp_path / "large.mat").write_bytes(saved())
    with pytest.raises(FewnodeError, match=r"large\.mat: larger than"):
        read_mat(tmp_path / "large.mat")


def test_a_compression_bomb_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "a.mat").open("wb") as file:
        scipy.io.savemat(file, {"Attributes": np.zeros((80 << 20,), np.uint8)}, do_compression=True)
    with pytest.raises(FewnodeError, match="inflates to over 100 times its size, refused"):
        read_mat(tmp_path / "a.mat")


@pytest.mark.parametrize(
    "content",
    [b"", b"MATLAB 5.0", bytes(200), saved()[:-9], saved()[:200]],
    ids=["empty", "short", "zeros", "cut", "no variable"],  # the file says when it was made, and a name must not change
)
def test_what_is_no_matlab_5_file_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.mat").write_bytes(content)
    with pytest.raises(FewnodeError, match=r"a\.mat: (not a|cut short)"):
        read_mat(tmp_path / "a.mat")


@given(st.data(), st.booleans())
@settings(max_examples=200, deadline=None)
def test_damaged_bytes_give_numbers_or_one_error(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, compressed: bool
) -> None:
    blob = bytearray(saved(do_compression=compressed))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(31, len(blob) // 4 - 1)) * 4
        blob[at : at + 4] = data.draw(
            st.binary(min_size=4, max_size=4) | st.sampled_from([b"\xff" * 4, b"\xff\xff\xff\x7f"])
        )
    path = tmp_path_factory.mktemp("mat") / "a.mat"
    path.write_bytes(blob)
    try:
        assert read_mat(path).x.shape[0] == 6
    except FewnodeError as error:
        message = str(error)
        assert message.startswith(f"{path}: ")


@pytest.mark.skipif(not PUBLISHED.exists(), reason="the published files are not there")
def test_the_published_files(tmp_path: Path) -> None:
    data = import_dataset(PUBLISHED, name="Amazon_clothing")
    assert (data.graph.n, data.graph.n_edges, data.graph.n_features) == (24919, 91680, 9034)
    assert (data.y >= 0).sum() == 9360
    assert len(data.class_names) == 20
    assert len(data.info["notes"]) == 1
    labelled = np.load(PUBLISHED.parent / "amazon_clothing_test20.npz")
    np.testing.assert_array_equal(np.array(data.class_names, int), labelled["class_ids"])
    np.testing.assert_array_equal(data.y[labelled["node_ids"]], labelled["y"])
    np.testing.assert_array_equal(data.graph.x[labelled["node_ids"]].data, labelled["x_data"])
    electronics = import_dataset(PUBLISHED, name="amazon-electronics").graph
    assert (electronics.n, electronics.n_edges) == (42318, 43556)
