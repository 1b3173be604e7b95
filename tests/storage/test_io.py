import csv
import fcntl
import hashlib
import io
import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from safetensors.numpy import load_file, save_file

from fewnode._system.files import atomic_write, exclusive, readable, write_text
from fewnode._system.sheets import bare, csv_text, harmless, read_table
from fewnode.dataset import ClassSplit, Dataset
from fewnode.errors import FewnodeError
from fewnode.formats.directory import (
    TYPES,
    checked_csr,
    load_dataset,
    map_safetensors,
    read_record,
    read_safetensors,
    save_dataset,
    write_safetensors,
)
from fewnode.graph import Graph


@pytest.fixture
def dense(star: Graph) -> Dataset:
    return Dataset(star, np.array([0, -1, 1, 1]), ClassSplit((0,), (), (1,)), ("ä,b", 'q"'), ("α", "b", "", "\n"))


def same(one: Dataset, other: Dataset) -> bool:
    names = [(d.class_names, d.node_names, d.feature_names, d.name, d.info, d.encoding, d.split) for d in (one, other)]
    return one.sha256 == other.sha256 and names[0] == names[1]


def test_all_that_a_dataset_says_of_itself_comes_back(star: Graph, tmp_path: Path) -> None:
    told: dict[str, Any] = {"feature_names": ("f", "g"), "name": "n", "info": {"a": [1]}, "encoding": {"b": 2}}
    data = Dataset(star, np.array([0, 1, 2, 2]), ClassSplit((0,), (1,), (2,)), ("a", "b", "c"), None, **told)
    save_dataset(data, tmp_path / "d")
    again = load_dataset(tmp_path / ".." / tmp_path.name / "d")
    assert same(again, data)
    assert again.graph.home == tmp_path / "d"
    assert again.graph.adj.data.dtype == np.float32
    meta = json.loads((tmp_path / "d" / "dataset.json").read_text())
    assert (meta["x_shape"], meta["split"]) == ([4, 2], {"train": [0], "valid": [1], "test": [2]})


def test_a_dataset_is_never_overwritten(dense: Dataset, tmp_path: Path) -> None:
    save_dataset(dense, tmp_path / "d")
    with pytest.raises(FewnodeError) as error:
        save_dataset(dense, tmp_path / "d")
    assert str(error.value) == f"{tmp_path / 'd'}: there is a dataset already; choose another directory"


def test_damage_is_named_with_its_file(dense: Dataset, tmp_path: Path) -> None:
    save_dataset(dense, tmp_path)
    path = tmp_path / "dataset.safetensors"
    path.write_bytes(path.read_bytes()[:-1] + b"\x01")
    for read in (load_dataset, lambda directory: read_record(directory, "dataset")):
        with pytest.raises(FewnodeError) as error:
            read(tmp_path)
        assert str(error.value) == f"{path}: damaged, its SHA-256 is not the one in dataset.json"
    assert load_dataset(tmp_path, check=False).graph.n == 4, "who has just read them through need not do it again"


def canonical(meta: dict[str, Any]) -> str:
    return json.dumps(meta, indent=1, ensure_ascii=False) + "\n"


def sealed(meta: dict[str, Any]) -> str:
    """A manifest with the checksum of itself."""
    own = hashlib.sha256(canonical(meta).encode()).hexdigest()
    return canonical({**meta, "sha256": {**meta["sha256"], "manifest": own}})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "3\n",
        "[]\n",
        "{}\n",
        '{\n "sha256": 3\n}\n',
        canonical({"format": "fewnode-thing-1", "sha256": {}}),
        sealed({"format": "fewnode-thing-1", "sha256": {}}).replace("thing-1", "thing-2"),
        sealed({"format": "fewnode-thing-1", "sha256": {}}).replace("\n ", "\n  "),
        sealed({"format": "fewnode-thing-1", "sha256": {}})[:-1],
        pytest.param("[" * 99_999, id="deep"),
    ],
)
def test_a_manifest_is_as_it_was_written(tmp_path: Path, text: str) -> None:
    path = tmp_path / "thing.json"
    path.write_text(text)
    with pytest.raises(FewnodeError) as error:
        read_record(tmp_path, "thing")
    assert str(error.value) == f"{path}: damaged or edited by hand; its checksum does not match"


def test_tensors_come_back_by_name(tmp_path: Path) -> None:
    path = tmp_path / "t.safetensors"
    arrays = {name: np.array([[0, 1, 1], [1, 0, 1]]).astype(code) for name, code in TYPES.items()}
    arrays |= {"alone": np.array(3.5), "none": np.zeros((2, 0), np.int32)}
    write_safetensors(path, arrays)
    found = map_safetensors(path)
    assert sorted(found) == sorted(arrays)
    for name, array in arrays.items():
        assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape)
        assert np.array_equal(found[name], array)
        assert not found[name].flags.writeable
    assert {name: array.tolist() for name, array in load_file(path).items()} == {
        n: a.tolist() for n, a in arrays.items()
    }
    save_file({"x": arrays["F32"]}, path, metadata={"step": "3"})
    assert read_safetensors(path)[0] == {"step": "3"}


def test_only_files_are_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for path, message in (
        (tmp_path, "not a regular file"),
        (tmp_path / "file" / "below", "no such file"),
        (tmp_path / "nul\0", "no such file"),
    ):
        with pytest.raises(FewnodeError, match=message), readable(path):
            pass


def test_only_files_are_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", "."):
        with pytest.raises(FewnodeError, match="not a regular file"), atomic_write(tmp_path / name):
            pass
    assert (tmp_path / "pipe").is_fifo()


def test_only_what_nobody_writes_to_is_swept_away(tmp_path: Path) -> None:
    target = tmp_path / ("n" * 70)
    start = f".{'n' * 60}"
    left, held, other = (tmp_path / f"{start}.{end}" for end in ("0.fewnode-part", "1.fewnode-part", "2.part"))
    left.write_text("half")
    other.write_text("of somebody else")
    os.mkfifo(tmp_path / f"{start}.pipe.fewnode-part")
    with held.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        write_text(target, "whole")
    assert not left.exists()
    assert other.exists()
    assert held.exists()
    write_text(target, "again")
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == sorted([other.name, target.name])


def test_a_file_is_synced_and_then_its_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[tuple[bool, int]] = []
    monkeypatch.setattr(
        "os.fsync", lambda file: synced.append((stat.S_ISDIR(os.fstat(file).st_mode), os.fstat(file).st_ino))
    )
    before = os.listdir("/proc/self/fd")
    write_text(tmp_path / "new" / "file", "ä")
    assert synced == [(False, (tmp_path / "new" / "file").stat().st_ino), (True, (tmp_path / "new").stat().st_ino)]
    assert len(os.listdir("/proc/self/fd")) == len(before), "and all is closed again"
    assert (tmp_path / "new" / "file").read_bytes() == "ä".encode()


@pytest.mark.parametrize("read", [map_safetensors, read_safetensors])
def test_a_header_may_not_ask_for_much(tmp_path: Path, read: Callable[[Path], object]) -> None:
    path = tmp_path / "t.safetensors"
    many = ",".join(f'"{i}":{{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}' for i in range(1001))
    for header, message in (
        (b"\xff" * 8, "a header beyond 1 MB"),
        ((len(many) + 2).to_bytes(8, "little") + b"{" + many.encode() + b"}", "1,001 tensors, expected at most 1,000"),
        (b"\0" * 8, "not a readable safetensors file"),
        (b"", "not a readable safetensors file"),
    ):
        path.write_bytes(header)
        with pytest.raises(FewnodeError, match=message):
            read(path)


def matrix(**change: Any) -> sp.csr_array:
    """[[5, 0, 6], [0, 0, 0], [0, 7, 0]], or what becomes of it."""
    parts = {"data": np.array([5, 6, 7]), "indices": np.array([0, 2, 1]), "indptr": np.array([0, 2, 2, 3]), **change}
    return checked_csr(**{"shape": (3, 3), **parts})


ASCEND = "the starts of the rows do not ascend from 0 to the number of values"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"data": np.ones((1, 3))}, "not a sparse matrix"),
        ({"indices": np.array([[0, 2, 1]])}, "not a sparse matrix"),
        ({"indptr": np.array([[0, 2, 2, 3]])}, "not a sparse matrix"),
        ({"indices": np.array([0.0, 2, 1])}, "not a sparse matrix"),
        ({"indptr": np.array([0.0, 2, 2, 3])}, "not a sparse matrix"),
        ({"shape": (2, 3)}, "3 rows, expected 2; 3 places, 3 values"),
        ({"shape": (4, 3)}, "3 rows, expected 4; 3 places, 3 values"),
        ({"data": np.ones(2)}, "3 rows, expected 3; 3 places, 2 values"),
        ({"data": np.ones(4)}, "3 rows, expected 3; 3 places, 4 values"),
        ({"data": np.ones(3, complex)}, "3 rows, expected 3; 3 places, 3 values"),
        ({"indptr": np.array([1, 2, 2, 3])}, ASCEND),
        ({"indptr": np.array([-1, 2, 2, 3])}, ASCEND),
        ({"indptr": np.array([0, 2, 2, 2])}, ASCEND),
        ({"indptr": np.array([0, 2, 2, 4])}, ASCEND),
        ({"indptr": np.array([0, 2, 1, 3], np.uint64)}, ASCEND),
        ({"indptr": np.array([0, 5, 0, 3])}, ASCEND),
        ({"indices": np.array([0, 3, 1])}, "a place outside of the 3 columns"),
        ({"indices": np.array([-1, 2, 1])}, "a place outside of the 3 columns"),
    ],
)
def test_a_sparse_matrix_from_a_strange_file(change: dict[str, Any], said: str) -> None:
    with pytest.raises(FewnodeError) as error:
        matrix(**change)
    assert str(error.value) == said


def test_a_failed_write_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(ValueError, match="closed"), atomic_write(path) as file:  # noqa: PT012
        file.write(b"half")
        file.close()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_directory_has_one_writer(tmp_path: Path) -> None:
    with exclusive(tmp_path / "run"):  # noqa: SIM117
        with pytest.raises(FewnodeError, match="another process"), exclusive(tmp_path / "run"):
            pass
    with exclusive(tmp_path / "run"):
        pass


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_of_a_table_end_as_on_any_machine(tmp_path: Path, end: str) -> None:
    rows = [" x , node,class ", 'a,b,"two, words"', " , ,", "", "d,e,f"]
    (tmp_path / "t.csv").write_bytes(end.join(rows).encode())
    assert read_table(tmp_path / "t.csv", ["class", "x"]) == [(2, ["two, words", "a"]), (5, ["f", "d"])]
    assert read_table(tmp_path / "t.csv", ["x"])[1] == (5, ["d"])


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"nodes, class\n", "line 1: column 'node' is missing; the header is 'nodes,class', expected 'node,class'"),
        (b"node\n", "line 1: column 'class' is missing; the header is 'node', expected 'node,class'"),
        (b"", "line 1: column 'node' is missing; the header is '', expected 'node,class'"),
        (b"node,class,more\nx\n", "line 2: 1 cells, expected 3"),
        (b"node,class,more\nx,y,z\n\nz\n", "line 4: 1 cells, expected 3"),
        (b"node,class\nx,a, b\n", "line 2: 3 cells, expected 2"),
        (b'node,class\nx,a\n"y,b\nz,a\n"v,b\n', "line 3: a quoted cell does not end on this line; is a quote missing?"),
        (b'node,class\nx,a\n"y,b\nz,a\n', "line 3: a quoted cell does not end on this line; is a quote missing?"),
        (b'node,class\nx,"a\ny,b\nz,a"\n', "line 2: a quoted cell does not end on this line; is a quote missing?"),
        (b"node,class,class\nx,a,b\n", "column 'class' is there twice; rename one"),
        (b"node,class\n\xff,x\n", "line 2: byte 11 is not UTF-8; save it as UTF-8"),
        (b"node,class\n" + b"x" * 200_000 + b",a\n", "line 2: field larger than field limit (131072)"),
    ],
)
def test_a_broken_table_is_named_with_its_place(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    with pytest.raises(FewnodeError) as error:
        read_table(path, ["node", "class"])
    assert str(error.value) == f"{path}: {said}"


@pytest.mark.parametrize(
    ("cell", "written"),
    [
        ("plain", "plain"),
        ("a,b", '"a,b"'),
        ('say "so"', '"say ""so"""'),
        ("two\nlines", '"two\nlines"'),
        ("a\rb", '"a\rb"'),
        ("=1+1", "'=1+1"),
        ("'=1+1", "''=1+1"),
        ("'quoted'", "'quoted'"),
        ("-5", "-5"),
        ("-five, six", '"\'-five, six"'),
    ],
)
def test_a_cell_is_quoted_where_it_must_be_and_comes_back(tmp_path: Path, cell: str, written: str) -> None:
    text = csv_text([["node", "class"], ["x", cell]])
    assert text == f"node,class\nx,{written}\n"
    (tmp_path / "t.csv").write_bytes(text.encode())
    if len(cell.splitlines()) > 1:  # a quote that was lost looks like this
        with pytest.raises(FewnodeError, match="line 2: a quoted cell does not end on this line"):
            read_table(tmp_path / "t.csv", ["node", "class"])
        [_, [_, found]] = csv.reader(io.StringIO(text, newline=""))
    else:
        [(_, (_, found))] = read_table(tmp_path / "t.csv", ["node", "class"])
    assert bare(found) == cell


@pytest.mark.parametrize("first", "=+-@\t\r\n＝＋－＠")
def test_what_a_spreadsheet_would_compute_is_text(first: str) -> None:
    for cell in (f"{first}a", f"'{first}a", first):
        assert harmless(cell) == f"'{cell}"
        assert bare(harmless(cell)) == cell
    assert bare(f"{first}a") == f"{first}a"
    for cell in ("", "a", "a=b", "'", "'a'", "-5", "+1.5e-3", "-.5", "1", "'1"):
        assert harmless(cell) == bare(cell) == cell
