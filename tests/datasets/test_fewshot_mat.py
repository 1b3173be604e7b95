"""The authors' published layout: SciPy writes it here, we read it, with each file there, missing and damaged."""

import io
import struct
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from fewnode.dataset import ClassSplit
from fewnode.datasets import fewshot_mat, import_dataset, load
from fewnode.datasets.fewshot_mat import Part, read_mat, read_network, read_published
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
    assert (data.name, data.info["source"], data.info["notes"]) == ("Amazon_clothing", "Amazon_clothing_network", [])
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


def refusal(call: Callable[..., object], *given: object, **options: Any) -> str:
    """What the user is told."""
    with pytest.raises(FewnodeError) as caught:
        call(*given, **options)
    return str(caught.value)


def test_which_network_is_meant_must_be_clear(tmp_path: Path) -> None:
    nothing = f"{tmp_path}: no network in it, expected files dataset.json or NAME_network"
    assert refusal(read_published, tmp_path) == nothing
    publish(publish(tmp_path, "One"), "Two")
    assert refusal(read_published, tmp_path) == f"{tmp_path}: several networks, choose one by name: One, Two"
    unknown = f"{tmp_path}: no Tow_network (did you mean 'Two'?); there are One, Two"
    assert refusal(read_published, tmp_path, "Tow") == unknown


def test_without_more_said_the_first_deal_and_edges_both_ways(tmp_path: Path) -> None:
    publish(tmp_path)
    (tmp_path / "Net_network").write_text("".join(f"{i}\t{i + 1}\n" for i in range(99)))
    data = read_published(tmp_path)
    assert (data.name, data.info) == ("Net", {"source": "Net_network", "notes": []})
    assert not data.graph.directed
    assert data.split == ClassSplit(train=(0, 2, 3, 5, 9), valid=(6, 7), test=(1, 4, 8))
    directed = read_published(tmp_path, directed=True)
    assert directed.graph.directed
    assert directed.graph.edge_index()[:, 0].tolist() == [0, 1]
    (tmp_path / "Net_test.mat").unlink()
    assert read_published(tmp_path).split == ClassSplit(train=(1, 2, 3, 6), valid=(0,), test=(4, 5))
    assert read_published(tmp_path, seed=1).split == ClassSplit(train=(0, 2, 4, 5), valid=(6,), test=(1, 3))


def test_classes_go_by_their_ids_in_the_files(tmp_path: Path) -> None:
    (tmp_path / "Net_network").write_text("0\t1\n1\t2\n")
    scipy.io.savemat(tmp_path / "Net_train.mat", describe(np.arange(3), np.array([70, 7, 70])))
    data = read_published(tmp_path)
    assert (data.class_names, data.y.tolist()) == (("7", "70"), [1, 0, 1])


def test_the_third_share_is_not_taken_from_the_training_classes(tmp_path: Path) -> None:
    split = read_published(publish(tmp_path), fractions=(1, 6, 9)).split
    assert [len(part) for part in (split.train, split.valid, split.test)] == [1, 6, 3]


# --- files that do not fit ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["", "0\n1\n", "0\t1\t2\n", "0\tx\n", "0 1\n", "0\t-1\n", "0\t1.5\n", "0\t99999999999999999999\n", "0\té\n"]
)
def test_a_network_that_is_not_pairs_of_numbers_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "Net_network").write_text(text)
    with pytest.raises(FewnodeError, match="Net_network: expected two node numbers"):
        read_network(tmp_path / "Net_network")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected two node numbers and a tab in each line (loadtxt: input contained no data: "),
        ("0\t1\n#\n", "expected two node numbers and a tab in each line ("),
        ("0\té\n", "expected two node numbers and a tab in each line ('ascii' codec can't decode byte 0xc3"),
        ("0\t1\t2\n", "expected two node numbers a line, from 0"),
        ("0\t-1\n", "expected two node numbers a line, from 0"),
    ],
)
def test_what_is_wrong_with_a_network_is_said(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "Net_network").write_text(text)
    assert refusal(read_network, tmp_path / "Net_network").startswith(f"{tmp_path / 'Net_network'}: {message}")


def test_one_edge_is_a_network(tmp_path: Path) -> None:
    (tmp_path / "Net_network").write_text("0\t1\n")
    assert read_network(tmp_path / "Net_network").tolist() == [[0], [1]]
    data = read_published(tmp_path)
    assert (data.graph.n, data.graph.n_edges) == (2, 1)


def test_ten_in_eleven_node_numbers_may_be_missing_and_a_thousand_more(tmp_path: Path) -> None:
    path = tmp_path / "Net_network"
    path.write_text("0\t1020\n")
    assert read_published(tmp_path).graph.n == 1021
    path.write_text("0\t1021\n")
    message = f"{path}: node 1021 among 2 nodes, expected numbers from 0 without large gaps"
    assert refusal(read_published, tmp_path) == message


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
        ({"Label": np.where(NODES < 69, 11, 8)}, "class 8 is in both train.mat and test.mat$"),
        ({"Index": 100 + np.where(NODES < 69, NODES, 30)}, "node 130 is described twice$"),
        ({"Index": NODES - 0.5 * (NODES == 9)}, r"Index holds 8\.5, expected whole numbers from 0$"),
        ({"Index": np.where(NODES < 69, NODES, 2**31)}, "Index holds 2147483648, expected whole numbers from 0$"),
        ({"Label": np.where(NODES < 69, 1, np.inf)}, "Label holds inf, expected whole numbers from 0$"),
        ({"Label": CLASSES[:69]}, "70 nodes in Index, 69 in Label, 70 x 5 Attributes$"),
        ({"Attributes": np.ones((69, 5))}, "70 nodes in Index, 70 in Label, 69 x 5 Attributes$"),
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


def element(kind: int, content: bytes, order: str = "<") -> bytes:
    return struct.pack(f"{order}II", kind, len(content)) + content + bytes(-len(content) % 8)


def packed(kind: int, content: bytes, order: str = "<") -> bytes:
    """Up to four bytes in the tag itself, the type and the size in half of it each."""
    return struct.pack(f"{order}I", len(content) << 16 | kind) + content.ljust(4, b"\0")


def variable(name: bytes, shape: tuple[int, ...], *numbers: bytes, order: str = "<", flags: int = 6) -> bytes:
    """A variable of doubles (6), or of what `flags` says."""
    head = element(6, struct.pack(f"{order}II", flags, 0), order)
    head += element(5, struct.pack(f"{order}{len(shape)}i", *shape), order)
    return element(14, head + (packed if len(name) <= 4 else element)(1, name, order) + b"".join(numbers), order)


def mat_file(*elements: bytes, order: str = "<") -> bytes:
    return bytes(124) + (b"\x00\x01IM" if order == "<" else b"\x01\x00MI") + b"".join(elements)


def three(order: str = "<", kind: int = 9, code: str = "d") -> list[bytes]:
    """Index, Label and Attributes (dense, column by column) of two nodes."""

    def numbers(*values: int) -> bytes:
        return element(kind, struct.pack(f"{order}{len(values)}{code}", *values), order)

    return [
        variable(b"Index", (1, 2), numbers(0, 7), order=order),
        variable(b"Label", (2, 1), numbers(3, 4), order=order),
        variable(b"Attributes", (2, 3), numbers(1, 2, 3, 4, 5, 6), order=order),
    ]


def read_bytes(folder: Path, content: bytes) -> Part:
    (folder / "a.mat").write_bytes(content)
    return read_mat(folder / "a.mat")


CODES = {1: "b", 2: "B", 3: "h", 4: "H", 5: "i", 6: "I", 7: "f", 9: "d", 12: "q", 13: "Q"}


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("kind", CODES)
def test_numbers_of_every_type_and_byte_order_are_read(tmp_path: Path, order: str, kind: int) -> None:
    part = read_bytes(tmp_path, mat_file(*three(order, kind, CODES[kind]), order=order))
    assert (part.nodes.tolist(), part.classes.tolist()) == ([0, 7], [3, 4])
    assert part.x.toarray().tolist() == [[1, 3, 5], [2, 4, 6]]
    assert (part.nodes.dtype, part.classes.dtype, part.x.dtype) == (np.int64, np.int64, np.float32)


def test_the_largest_node_number_and_what_is_in_a_tag_are_read(tmp_path: Path) -> None:
    label, flag = (
        variable(b"Label", (1, 1), packed(2, b"\x05")),
        variable(b"x", (1, 1), packed(2, b"\x01"), flags=0x209),
    )
    index = variable(b"Index", (1, 1), element(9, struct.pack("<d", 2**31 - 1)))
    part = read_bytes(tmp_path, mat_file(flag, index, label, variable(b"Attributes", (1, 2), packed(3, b"\7\0\x08\0"))))
    assert (part.nodes.tolist(), part.classes.tolist(), part.x.toarray().tolist()) == ([2**31 - 1], [5], [[7, 8]])


def test_a_sparse_matrix_may_have_room_for_more_values(tmp_path: Path) -> None:
    rows, starts = struct.pack("<4i", 1, 0, 99, 99), struct.pack("<4i", 0, 1, 1, 2)
    values = struct.pack("<4d", 8, 9, 99, 99)
    x = variable(b"Attributes", (2, 3), element(5, rows), element(5, starts), element(9, values), flags=5)
    part = read_bytes(tmp_path, mat_file(*three()[:2], x))
    assert part.x.toarray().tolist() == [[0, 0, 9], [8, 0, 0]]


@pytest.mark.parametrize("length", range(4))
def test_a_compressed_variable_may_stand_before_one_that_is_not(tmp_path: Path, length: int) -> None:
    """It is not filled up, so that what follows may begin anywhere."""
    first, *others = three()
    content = zlib.compress(first) + bytes(length)
    part = read_bytes(tmp_path, mat_file(struct.pack("<II", 15, len(content)) + content, *others))
    assert part.nodes.tolist() == [0, 7]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not a MATLAB 5 file"),
        (bytes(200), "not a MATLAB 5 file"),
        (mat_file(), "no numbers called 'Index' in it"),
        (mat_file(*three()[:2]), "no numbers called 'Attributes' in it"),
        (mat_file(*three())[:-1], "cut short or damaged"),
        (mat_file(*three())[:-9], "cut short or damaged"),
        (mat_file(element(9, bytes(8))), "holds something that is no variable"),
        (mat_file(variable(b"Index", (1, 1), element(8, bytes(8)))), "holds numbers of the unknown type 8"),
        (mat_file(variable(b"Index", (1, 1), packed(2, b"12345"))), "cut short or damaged"),
        (mat_file(variable(b"\xe9", (1, 1), flags=0x806)), "'é' holds complex numbers, expected real ones"),
        (
            mat_file(variable(b"Index", (1, 2), element(9, bytes(8)))),
            "not a readable MATLAB 5 file (cannot reshape array of size 1 into shape (1,2))",
        ),
        (
            mat_file(variable(b"Index", (1, 1), element(5, bytes(8)), element(5, bytes(8)), flags=5)),
            "not a readable MATLAB 5 file (not enough values to unpack (expected 3, got 2))",
        ),
    ],
    ids=range(12),
)
def test_what_is_wrong_with_a_mat_file_is_said(tmp_path: Path, content: bytes, message: str) -> None:
    assert refusal(read_bytes, tmp_path, content) == f"{tmp_path / 'a.mat'}: {message}"


def test_a_file_as_large_as_the_limit_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filler = variable(b"filler", (1, 1 << 17), element(9, bytes(1 << 20)))
    content = mat_file(*three(), filler)
    monkeypatch.setattr(fewshot_mat, "MAX_BYTES", len(content))
    assert read_bytes(tmp_path, content).nodes.tolist() == [0, 7]
    monkeypatch.setattr(fewshot_mat, "MAX_BYTES", len(content) - 1)
    assert refusal(read_bytes, tmp_path, content) == f"{tmp_path / 'a.mat'}: larger than 1 MB"


def test_variables_together_may_inflate_to_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inflated = sum(map(len, three()))
    shrunk = (zlib.compress(each) for each in three())
    content = mat_file(*(struct.pack("<II", 15, len(each)) + each for each in shrunk))
    monkeypatch.setattr(fewshot_mat, "MAX_INFLATION", 0)
    monkeypatch.setattr(fewshot_mat, "FREE_INFLATION", 2 * inflated)
    assert read_bytes(tmp_path, content).nodes.tolist() == [0, 7]
    monkeypatch.setattr(fewshot_mat, "FREE_INFLATION", 2 * inflated - 1)
    assert refusal(read_bytes, tmp_path, content) == f"{tmp_path / 'a.mat'}: inflates to over 0 times its size, refused"
    monkeypatch.setattr(fewshot_mat, "MAX_INFLATION", 2)  # a larger file may inflate to more
    assert read_bytes(tmp_path, content).nodes.tolist() == [0, 7]


def test_no_more_is_held_than_the_limits_allow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    large = zlib.compress(bytes(40 << 20))
    (tmp_path / "bomb.mat").write_bytes(mat_file(struct.pack("<II", 15, len(large)) + large))
    (tmp_path / "large.mat").write_bytes(b"")
    with (tmp_path / "large.mat").open("r+b") as file:
        file.truncate(40 << 20)
    monkeypatch.setattr(fewshot_mat, "FREE_INFLATION", 2 << 20)
    monkeypatch.setattr(fewshot_mat, "MAX_INFLATION", 1)
    monkeypatch.setattr(fewshot_mat, "MAX_BYTES", 1 << 20)
    for name, message in (
        ("bomb.mat", "inflates to over 1 times its size, refused"),
        ("large.mat", "larger than 1 MB"),
    ):
        tracemalloc.start()
        try:
            assert refusal(read_mat, tmp_path / name) == f"{tmp_path / name}: {message}"
            assert tracemalloc.get_traced_memory()[1] < 10 << 20
        finally:
            tracemalloc.stop()


def test_nodes_that_no_file_describes_have_no_attributes() -> None:
    one = Part(np.array([4, 1]), np.array([7, 7]), sp.csr_array(np.array([[1, 2], [3, 4]], np.float32)))
    x = fewshot_mat._attributes({"train": one}, 6)
    assert x is not None
    assert x.dtype == np.float32
    assert x.toarray().tolist() == [[0, 0], [3, 4], [0, 0], [0, 0], [1, 2], [0, 0]]
    assert fewshot_mat._attributes({}, 6) is None


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
