"""Networks in .npz files: what they hold comes out, what else is in the file stays unread, and no claim is believed."""

import io
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from fewnode.dataset import ClassSplit
from fewnode.errors import FewnodeError, UnusedInput
from fewnode.formats.npz import read_dataset_npz

X = sp.csr_array(np.array([[1, 0, 2.5], [0, 0, 0], [0, 3, 0], [1, 1, 1]], np.float32))


def parts(what: str, matrix: sp.csr_array) -> dict[str, Any]:
    return {
        f"{what}_data": matrix.data,
        f"{what}_indices": matrix.indices,
        f"{what}_indptr": matrix.indptr,
        f"{what}_shape": np.array(matrix.shape),
    }


def own(**arrays: Any) -> dict[str, Any]:
    x = {} if "x" in arrays else parts("x", X)
    return {"edge_index": np.array([[0, 1, 2], [1, 0, 1]]), "y": np.array([0, 1, 1, -1]), **x} | arrays


def write(path: Path, arrays: dict[str, Any]) -> Path:
    np.savez_compressed(path, **{name: array for name, array in arrays.items() if array is not None})
    return path


@pytest.mark.parametrize("memory", [False, True])
@pytest.mark.parametrize("more", [{}, parts("x", X) | {"x": None}, {"node_names": np.array(list("wxyz")), "x": None}])
def test_without_labels_all_are_unknown(tmp_path: Path, more: dict[str, Any], memory: bool) -> None:
    path = write(tmp_path / "net.npz", {"edge_index": own()["edge_index"], "x": X.toarray()} | more)
    data = read_dataset_npz(path, room=tmp_path if memory else None)
    assert data.y.tolist() == [-1] * 4
    assert data.split == ClassSplit((), (), ())
    assert data.graph.n_edges == 2
    alone = write(tmp_path / "alone.npz", {"edge_index": own()["edge_index"]})
    assert read_dataset_npz(alone).graph.n == 3


@pytest.mark.parametrize("memory", [False, True])
def test_arrays_that_are_not_used_are_named(tmp_path: Path, memory: bool) -> None:
    path = write(tmp_path / "net.npz", own(colour=np.ones(4), shape=np.ones(2)))
    with pytest.warns(UnusedInput, match=r"not used: .*net.npz: colour, shape"):
        data = read_dataset_npz(path, room=tmp_path if memory else None)
    assert data.info["unused"] == ["colour", "shape"]
    both = write(tmp_path / "both.npz", own(**parts("x", X), x=X.toarray()))
    with pytest.raises(FewnodeError, match=r"both\.npz: attributes are there twice, as 'x' and as 'x_indptr'"):
        read_dataset_npz(both, room=tmp_path if memory else None)


def test_our_layout_by_hand(tmp_path: Path) -> None:
    split = {"train_classes": [1], "valid_classes": [], "test_classes": [0]}
    names = {"class_names": ["a", "b"], "node_names": list("wxyz"), "vocab": ["u", "v", "w"], "info": "from nowhere"}
    data = read_dataset_npz(write(tmp_path / "net.npz", own(**split, **names)))
    assert data.name == "net"
    assert data.y.tolist() == [0, 1, 1, -1]
    assert data.split == ClassSplit((1,), (), (0,))
    assert (data.class_names, data.node_names, data.feature_names) == (("a", "b"), tuple("wxyz"), ("u", "v", "w"))
    assert data.info == {"source": "net.npz", "note": "from nowhere"}
    assert data.graph.n_edges == 2
    np.testing.assert_array_equal(data.graph.x.toarray(), X.toarray())
    assert read_dataset_npz(tmp_path / "net.npz", directed=True).graph.n_edges == 3


class Trap:
    """Running any code from a file would set this off."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (pytest.fail, ("unpickled",))


@pytest.mark.parametrize("memory", [False, True])
@pytest.mark.parametrize("name", ["y", "edge_index", "class_names", "train_classes"])
def test_an_array_of_python_objects_is_refused_by_name(tmp_path: Path, name: str, memory: bool) -> None:
    path = write(tmp_path / "net.npz", own() | {name: np.array([Trap(), Trap()], dtype=object)})
    with pytest.raises(FewnodeError, match=rf"net\.npz: array '{name}'"):
        read_dataset_npz(path, room=tmp_path if memory else None)


def test_arrays_that_are_not_needed_are_not_read(tmp_path: Path) -> None:
    path = write(tmp_path / "a.npz", own(huge=np.zeros(80 << 20, np.uint8)))
    with pytest.warns(UnusedInput, match="huge"):
        assert read_dataset_npz(path).graph.n == 4
    path = write(tmp_path / "b.npz", own(x=np.zeros((4, 10 << 20), np.uint8), edge_index=np.zeros((2, 5 << 20), int)))
    with pytest.raises(FewnodeError, match="claims to inflate to 120 MB, refused"):
        read_dataset_npz(path)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        (own(edge_index=None), "array 'edge_index' is missing"),
        (own(y=None, x_shape=np.array([5_000_000_000, 3])), "x_shape says 5000000000 rows for 4 labels"),
        (
            {"edge_index": np.array([[0], [9_000_000]])},
            "an edge has node 9000000, and no array .y, x, node_names.",
        ),
        (own(edge_index=np.array([[0], [4_000_000_000]])), "node 4000000000 is out of range"),
        (own(y=np.array([0, 1, 4_000_000_000, 1])), "label of node 2 is 4000000000, far more than there are nodes"),
        (own(y=np.array([0.5, 1, 1, 1])), "labels are float64"),
        (own(y=np.zeros((2, 2), int)), "expected integers, one a node"),
        (own(train_classes=[4_000_000_000], valid_classes=[], test_classes=[]), "class 4000000000 in the split"),
        (own(train_classes=[-1], valid_classes=[], test_classes=[]), "class -1 in the split is out of range"),
        (own(x=np.zeros(4)), "attributes are float64"),
        (own(x=np.full((4, 1), 1e300)), "NaN or infinite"),
        (own(x_shape=np.array([4, 2])), "a place outside of the 2 columns"),
        (own(x_shape=np.array([5, 3])), "x_shape says 5 rows for 4 labels"),
        (own(x_shape=np.array([4])), "not the expected layout"),
        (own(x_data=None), "not the expected layout"),
        (own(x_indptr=np.array([0, 9, 9, 9, 6])), "do not ascend from 0"),
        (own(x_indptr=np.array([0, 1])), "1 rows, expected 4"),
        (own(node_names=["a"] * 4), "'a' is given twice"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(tmp_path: Path, arrays: dict[str, Any], message: str) -> None:
    with pytest.raises(FewnodeError, match=rf"net\.npz: .*({message})"):
        read_dataset_npz(write(tmp_path / "net.npz", arrays))


def test_headers_that_lie_are_refused(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    np.save(buffer, np.zeros(3))
    with zipfile.ZipFile(tmp_path / "net.npz", "w") as archive:
        archive.writestr("y.npy", buffer.getvalue().replace(b"(3,)", b"(9,)"))
    with pytest.raises(FewnodeError, match=r"array 'y' claims 72 bytes, but stores 24"):
        read_dataset_npz(tmp_path / "net.npz")


@pytest.mark.filterwarnings("ignore::fewnode.errors.UnusedInput")
@given(st.data())
@settings(max_examples=150, deadline=None)
def test_damaged_bytes_give_a_network_or_one_error(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("npz")
    np.savez(folder / "net.npz", **data.draw(st.sampled_from([own(), own(x=X.toarray())])))
    blob = bytearray((folder / "net.npz").read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        blob[data.draw(st.integers(0, len(blob) - 1))] = data.draw(st.integers(0, 255))
    (folder / "net.npz").write_bytes(blob[: data.draw(st.integers(0, len(blob)))] if data.draw(st.booleans()) else blob)
    try:
        read_dataset_npz(folder / "net.npz")
    except FewnodeError as error:
        message = str(error)
        assert "\n" not in message


@pytest.mark.parametrize(("number", "error"), [(22, FewnodeError), (5, OSError)])
def test_a_place_before_the_file_is_damage_and_a_broken_disk_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, error: type[Exception]
) -> None:
    """Found by fuzzing: a zip file can send its reader to a negative place."""

    def broken(*_: object) -> None:
        raise OSError(number, "as the system says it")

    np.savez(tmp_path / "d.npz", **own())
    monkeypatch.setattr("zipfile.ZipFile.infolist", broken)
    with pytest.raises(error, match="as the system says it"):
        read_dataset_npz(tmp_path / "d.npz")


def test_an_array_that_ends_early_is_refused(tmp_path: Path) -> None:
    """Its header and the directory agree on a size that the packed bytes do not have."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<i8", "fortran_order": False, "shape": (100_000,)})
    with zipfile.ZipFile(tmp_path / "short.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("y.npy", header.getvalue() + bytes(80))
    blob = (tmp_path / "short.npz").read_bytes()
    real, claimed = (struct.pack("<I", len(header.getvalue()) + size) for size in (80, 800_000))
    (tmp_path / "short.npz").write_bytes(blob.replace(real, claimed))
    with pytest.raises(FewnodeError, match=r"short\.npz: not a readable \.npz file"):
        read_dataset_npz(tmp_path / "short.npz")


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("write", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("kind", [np.float32, np.float64, None])
def test_what_stays_in_the_file_is_the_same_network(tmp_path: Path, directed: bool, write: Any, kind: Any) -> None:
    rng = np.random.default_rng(0)
    edges = rng.integers(0, 50, (2, 300))  # repetitions and self-loops among them
    x = parts("x", sp.random_array((50, 7), density=0.2, format="csr", rng=rng)) if kind is None else {}
    x |= {} if kind is None else {"x": rng.normal(size=(50, 7)).astype(kind)}
    write(tmp_path / "net.npz", edge_index=edges, y=rng.integers(-1, 4, 50), **x)
    plain = read_dataset_npz(tmp_path / "net.npz", directed=directed)
    mapped = read_dataset_npz(tmp_path / "net.npz", directed=directed, room=tmp_path)
    assert (mapped.sha256, mapped.info, mapped.split) == (plain.sha256, plain.info, plain.split)
    wrong = {"edge_index": np.array([[0, 1], [2, 50]]), "y": np.zeros(50, int)}
    write(tmp_path / "wrong.npz", **wrong)
    with pytest.raises(FewnodeError, match="node 50 is out of range"):
        read_dataset_npz(tmp_path / "wrong.npz", room=tmp_path)
