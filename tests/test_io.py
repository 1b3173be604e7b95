import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from fewnode.errors import FewnodeError
from fewnode.graph import ClassSplit, Dataset, Graph
from fewnode.io import (
    Stream,
    atomic_write,
    bare,
    checked_csr,
    csv_text,
    exclusive,
    load_dataset,
    map_safetensors,
    read_safetensors,
    read_table,
    readable,
    save_dataset,
    write_safetensors,
    write_text,
)


@pytest.fixture
def dense(star: Graph) -> Dataset:
    return Dataset(star, np.array([0, -1, 1, 1]), ClassSplit((0,), (), (1,)), ("ä,b", 'q"'), ("α", "b", "", "\n"))


def same(one: Dataset, other: Dataset) -> bool:
    names = [(d.class_names, d.node_names, d.feature_names, d.name, d.info, d.encoding, d.split) for d in (one, other)]
    return one.sha256 == other.sha256 and names[0] == names[1]


def test_a_dataset_comes_back_as_it_was(planted: Dataset, dense: Dataset, tmp_path: Path) -> None:
    for i, data in enumerate((planted, dense)):
        save_dataset(data, tmp_path / str(i))
        again = load_dataset(tmp_path / str(i))
        assert same(again, data)
        assert sp.issparse(again.graph.x) == sp.issparse(data.graph.x)


def test_no_names_at_all_come_back(tmp_path: Path) -> None:
    empty = Dataset(Graph.from_edges(np.zeros((2, 0), int), 0), np.zeros(0, int), ClassSplit((), (), ()), (), (), ())
    save_dataset(empty, tmp_path / "d")
    assert same(load_dataset(tmp_path / "d"), empty)


def test_a_dataset_is_never_overwritten(dense: Dataset, tmp_path: Path) -> None:
    save_dataset(dense, tmp_path / "d")
    with pytest.raises(FewnodeError, match="there is a dataset already"):
        save_dataset(dense, tmp_path / "d")


def test_every_flipped_bit_and_every_truncation_is_noticed(dense: Dataset, tmp_path: Path) -> None:
    save_dataset(dense, tmp_path / "d")
    for path in sorted((tmp_path / "d").iterdir()):
        good = path.read_bytes()
        for place in range(0, len(good) * 8, 7):
            bad = bytearray(good)
            bad[place // 8] ^= 1 << place % 8
            path.write_bytes(bad)
            with pytest.raises(FewnodeError):
                load_dataset(tmp_path / "d")
        for length in range(0, len(good), 11):
            path.write_bytes(good[:length])
            with pytest.raises(FewnodeError):
                load_dataset(tmp_path / "d")
        path.write_bytes(good)
    assert same(load_dataset(tmp_path / "d"), dense)


def test_a_missing_or_strange_file_is_named(dense: Dataset, tmp_path: Path) -> None:
    save_dataset(dense, tmp_path / "d")
    (tmp_path / "d" / "dataset.safetensors").unlink()
    with pytest.raises(FewnodeError, match=r"dataset\.safetensors: no such file"):
        load_dataset(tmp_path / "d")
    os.mkfifo(tmp_path / "d" / "dataset.safetensors")
    with pytest.raises(FewnodeError, match="not a regular file"):
        load_dataset(tmp_path / "d")


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


def test_what_a_kill_left_is_swept_away_by_the_next_write(tmp_path: Path) -> None:
    for name in (".a.0123abcd.fewnode-part", ".b.0123abcd.fewnode-part"):
        (tmp_path / name).write_text("half")
    write_text(tmp_path / "a", "whole")
    assert sorted(p.name for p in tmp_path.iterdir()) == [".b.0123abcd.fewnode-part", "a"]
    with exclusive(tmp_path):
        pass
    assert sorted(p.name for p in tmp_path.iterdir()) == [".lock", "a"]


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


def test_a_manifest_is_short(dense: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_dataset(dense, tmp_path / "d")
    monkeypatch.setattr("fewnode.io.MAX_BRACKETS", 3)
    with pytest.raises(FewnodeError, match="more than 3 lists and tables"):
        load_dataset(tmp_path / "d")
    monkeypatch.setattr("fewnode.io.MAX_MANIFEST_BYTES", 100)
    with pytest.raises(FewnodeError, match="larger than 0 kB"):
        load_dataset(tmp_path / "d")


def test_a_stream_has_what_it_announced(tmp_path: Path) -> None:
    short = Stream(np.dtype(np.float32), (3, 2), iter([np.zeros((2, 2))]))
    with pytest.raises(FewnodeError, match=r"x has 16 bytes, 24 were announced"):
        write_safetensors(tmp_path / "x.safetensors", {"x": short})
    assert list(tmp_path.iterdir()) == []


def test_a_sparse_matrix_is_lists_of_whole_numbers() -> None:
    data, places, starts = np.ones(2), np.array([0, 1]), np.array([0, 2])
    assert checked_csr(data, places, starts, (1, 2)).nnz == 2
    for odd in ((data[None], places, starts), (data, places + 0.5, starts), (data, places, starts[None])):
        with pytest.raises(FewnodeError, match="not a sparse matrix"):
            checked_csr(*odd, (1, 2))


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


def test_tables(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text('\ufeffclass,node\r\n"a, b",x\r\n\r\n c , y \r\n')
    assert read_table(path, ["node", "class"]) == [(2, ["x", "a, b"]), (4, ["y", "c"])]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"nodes,class\n", "line 1: column 'node' is missing"),
        (b"", "line 1: column 'node' is missing"),
        (b"node,class\nx\n", "line 2: 1 cells, expected 2"),
        (b"node,class\n\xff,x\n", "byte 11 is not UTF-8"),
        (b"node,class\n" + b"x" * 200_000 + b",a\n", "line 2: field larger than field limit"),
    ],
)
def test_a_broken_table_is_named_with_its_place(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "t.csv").write_bytes(content)
    with pytest.raises(FewnodeError, match=message):
        read_table(tmp_path / "t.csv", ["node", "class"])


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
    [(_, (_, found))] = read_table(tmp_path / "t.csv", ["node", "class"])
    assert bare(found) == cell
