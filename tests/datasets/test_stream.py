import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

from fewnode.errors import FewnodeError
from fewnode.formats.npz import read_dataset_npz
from fewnode.formats.stream import import_stream
from fewnode.storage.io import load_dataset


def write(path: Path, compressed: bool = False, **arrays: object) -> Path:
    rng = np.random.default_rng(0)
    given = {
        "edge_index": rng.integers(0, 50, (2, 300)),  # repetitions and self-loops among them
        "y": rng.integers(-1, 4, 50),
        "x": rng.normal(size=(50, 7)),
        **arrays,
    }
    (np.savez_compressed if compressed else np.savez)(path, **{k: v for k, v in given.items() if v is not None})
    return path


@pytest.mark.parametrize("limit", [16, 1000, 1 << 30])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("compressed", [False, True])
def test_in_pieces_it_is_the_same_network(limit: int, directed: bool, compressed: bool, tmp_path: Path) -> None:
    path = write(tmp_path / "net.npz", compressed, train_classes=[0, 1], valid_classes=[2], test_classes=[3])
    found = import_stream(path, tmp_path / "d", limit, directed=directed)
    plain = read_dataset_npz(path, directed=directed)
    assert found.sha256 == plain.sha256
    assert (found.name, found.info, found.split) == (plain.name, plain.info, plain.split)
    assert load_dataset(tmp_path / "d").sha256 == plain.sha256


def test_sparse_attributes_or_none(tmp_path: Path) -> None:
    csr = {"x_data": np.ones(3), "x_indices": [0, 2, 1], "x_indptr": [0, 2, *[3] * 49], "x_shape": [50, 3]}
    for i, more in enumerate(({"x": None, **csr}, {"x": None})):
        path = write(tmp_path / f"{i}.npz", **more)
        assert import_stream(path, tmp_path / str(i), 1000).sha256 == read_dataset_npz(path).sha256


def test_what_the_file_and_the_caller_say_is_kept(tmp_path: Path) -> None:
    path = write(tmp_path / "net.npz", class_names=["ä", "b", "c", "d"], info="made here", x=np.ones((50, 7), np.uint8))
    (tmp_path / "new").mkdir()
    found = import_stream(path, tmp_path / "new" / "below" / "d", 1000, (50, 25, 25), 3, name="mine")
    assert found.class_names == ("ä", "b", "c", "d")
    assert (found.name, found.info) == ("mine", {"source": "net.npz", "note": "made here"})
    assert (found.graph.x == 1).all()
    assert found.graph.adj.indices.dtype == found.graph.adj.indptr.dtype == np.int32
    again = import_stream(path, tmp_path / "new" / "below" / "d", 1000, (50, 25, 25), 3)
    assert (again.name, [file.name for file in tmp_path.glob("new/*")]) == ("net", ["below"])


def test_classes_are_dealt_by_the_seed(tmp_path: Path) -> None:
    path = write(tmp_path / "net.npz")
    found = [import_stream(path, tmp_path / str(seed), 1000, (50, 25, 25), seed).split for seed in range(8)]
    assert found == [read_dataset_npz(path, (50, 25, 25), seed).split for seed in range(8)]
    assert len(set(found)) > 1


def test_classes_without_a_node_and_nodes_without_a_class(tmp_path: Path) -> None:
    parts = {"train_classes": [0], "valid_classes": [1], "test_classes": [5]}
    path = write(tmp_path / "net.npz", y=np.full(50, -1), **parts)
    assert import_stream(path, tmp_path / "d", 1000).class_names == tuple("012345")


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"edge_index": np.array([[0, 1], [2, 50]])}, "node 50.*out of range"),
        ({"edge_index": np.array([[0, -1], [2, 5]])}, "node -1.*out of range"),
        ({"edge_index": np.zeros((3, 2), int)}, "expected integers of shape"),
        ({"edge_index": np.zeros((2, 4))}, "expected integers"),
        ({"x": np.full((50, 2), np.nan)}, "number 0 of the attributes"),
        ({"x": np.zeros((49, 2))}, "50 rows"),
        ({"y": np.zeros((50, 2), int)}, "one a node"),
        ({"node_names": np.array(["a"] * 50)}, "node names"),
        ({"edge_index": None}, "'edge_index' is missing"),
        ({"y": None, "x": None}, "net.npz: no array says how many nodes there are"),
        ({"y": np.zeros(50)}, "labels are float64 .50,., expected integers, one a node"),
        ({"x": np.zeros((50, 2), complex)}, "net.npz: array 'x' holds complex128, expected numbers"),
        ({"x": np.array([["a", "b"]] * 50)}, "50 rows"),
        ({"x": np.asfortranarray(np.ones((50, 2)))}, "array 'x' is in Fortran order; save it in C order"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_written(arrays: dict[str, object], message: str, tmp_path: Path) -> None:
    path = write(tmp_path / "net.npz", **arrays)
    with pytest.raises(FewnodeError, match=message):
        import_stream(path, tmp_path / "d", 1000)
    assert not (tmp_path / "d" / "dataset.json").exists()


def test_an_array_that_ends_before_its_header_says_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "net.npz")
    with np.load(path) as whole:
        arrays = {name: whole[name] for name in whole.files}
    with zipfile.ZipFile(path, "w") as file:
        for name, array in arrays.items():
            out = io.BytesIO()
            np.save(out, array)
            file.writestr(f"{name}.npy", out.getvalue()[: -8 if name == "x" else None])
    with pytest.raises(FewnodeError, match=r"net\.npz: array 'x' is cut short"):
        import_stream(path, tmp_path / "d", 1000)


def test_a_cut_or_damaged_file_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "net.npz")
    blob = path.read_bytes()
    path.write_bytes(blob[: len(blob) // 2])
    with pytest.raises(FewnodeError, match=r"net\.npz: not a readable \.npz file \(.+\)"):
        import_stream(path, tmp_path / "a", 1000)
    path.write_bytes(blob.replace(blob[3000:3008], bytes(8), 1))
    with pytest.raises(FewnodeError):
        import_stream(path, tmp_path / "b", 1000)
    with pytest.raises(FewnodeError, match="no such file"):
        import_stream(tmp_path / "none.npz", tmp_path / "c", 1000)
