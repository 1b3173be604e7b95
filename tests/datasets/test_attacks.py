"""Files made to take long, to take memory, or to end in a traceback: one line each, soon."""

from __future__ import annotations

import gzip
import io
import resource
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fewnode._system.files import exclusive
from fewnode.errors import FewnodeError
from fewnode.formats.sources import import_dataset, load
from fewnode.tables.read import read_tables

EDGES = np.array([[0, 1, 2], [1, 2, 3]])
PLAIN: dict[str, Any] = {"edge_index": EDGES, "y": np.array([0, 1, 1, -1])}


def saved(path: Path, **arrays: Any) -> None:
    np.savez_compressed(path, **arrays)


def header(shape: str, dtype: str = "<i8") -> bytes:
    text = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}"
    text += " " * (63 - (len(text) + 10) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()


def with_member(path: Path, name: str, blob: bytes, **arrays: Any) -> None:
    saved(path, **arrays)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(f"{name}.npy", blob)


def crowded(path: Path, comment: bytes = b"", count: int = 20_000) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for i in range(count):
            archive.writestr(f"a{i}", b"")
        archive.comment = comment


def names(*codes: int) -> np.ndarray[Any, Any]:
    return np.array(codes, "<u4").view("<U1")


def repeated(path: Path) -> None:
    blob = io.BytesIO()
    np.save(blob, np.array([1, 1, 1, 1]))
    with pytest.warns(UserWarning, match="Duplicate"):
        with_member(path, "y", blob.getvalue(), **PLAIN)


def surrogates(key: str, *codes: int) -> Callable[[Path], None]:
    return lambda path: saved(path, **PLAIN, **{key: names(*codes)})


ATTACKS: dict[str, Callable[[Path], None]] = {
    "members without number": crowded,
    "more members than a short record can count": lambda path: crowded(path, count=70_000),
    "members before a comment": lambda path: crowded(path, b"x" * 65_535),
    "members that are there twice": repeated,
    "rows without columns": lambda path: with_member(path, "x", header("(100000000, 0)", "<f4"), edge_index=EDGES),
    "names without letters": lambda path: with_member(path, "node_names", header("(100000000,)", "<U0"), **PLAIN),
    "a shape of truth": lambda path: with_member(path, "x", header("(True,)") + bytes(8), **PLAIN),
    "a shape below zero": lambda path: with_member(path, "x", header("(-1, -8)") + bytes(64), **PLAIN),
    "an infinite edge": lambda path: saved(path, **PLAIN | {"edge_index": np.array([[0, np.inf], [1, 0]])}),
    "an infinite class": lambda path: saved(path, **PLAIN, train_classes=np.array([np.inf])),
    "an infinite width": lambda path: saved(
        path,
        **PLAIN,
        x_data=np.ones(0),
        x_indices=EDGES[0, :0],
        x_indptr=np.zeros(5, int),
        x_shape=np.array([4, np.inf]),
    ),
    "half of a character in a class": surrogates("class_names", 0xD800, 97),
    "half of a character in a node": surrogates("node_names", 97, 98, 99, 0xDFFF),
    "half of a character in a note": surrogates("info", 0xD800),
    "a character beyond the last": surrogates("class_names", 97, 0x110000),
}


@pytest.mark.parametrize("name", ATTACKS)
@pytest.mark.parametrize("in_pieces", [False, True])
def test_a_hostile_npz_is_refused_in_one_line(tmp_path: Path, name: str, in_pieces: bool) -> None:
    path = tmp_path / "net.npz"
    ATTACKS[name](path)
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(FewnodeError) as refused:
        import_dataset(path, room=tmp_path if in_pieces else None)
    assert str(refused.value).isprintable()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - most < 200 << 10


def test_defaults_of_graphml_that_fill_the_memory_are_refused(tmp_path: Path) -> None:
    keys = "".join(
        f'<key id="k{i}" for="node" attr.name="k{i}" attr.type="string"><default>{"x" * 10_000}</default></key>'
        for i in range(200)
    )
    nodes = "".join(f'<node id="{i}"/>' for i in range(5_000))
    path = tmp_path / "net.graphml"
    path.write_text(
        f'<graphml>{keys}<graph edgedefault="directed">{nodes}<edge source="0" target="1"/></graph></graphml>'
    )
    with pytest.raises(FewnodeError, match="defaults"):
        load(path)


def test_a_lock_that_is_a_symbolic_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / ".lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FewnodeError, match="symbolic link"), exclusive(tmp_path / "d"):
        pass
    assert not (tmp_path / "elsewhere").exists()


def gzip_bomb(path: Path) -> Path:
    with gzip.open(path, "wb") as file:
        file.write(b"id,label\n" if ".csv" in path.name else b"")
        for _ in range(100):
            file.write(b"a," + b"x" * (1 << 20) + b"\n" if ".csv" in path.name else b'{"id": "a"}\n' * 90_000)
    return path


def long_line(path: Path) -> Path:
    path.write_bytes(b"id,label\na," + b"x" * (40 << 20) + b"\n")
    return path


def one_text_told_often(path: Path) -> Path:
    told = pa.DictionaryArray.from_arrays(pa.array(np.zeros(100_000, np.int32)), pa.array(["x" * 2**20]))
    pq.write_table(pa.table({"id": told}), path)
    return path


def rows_of_nothing(path: Path) -> Path:
    pq.write_table(pa.table({"id": pa.array(np.zeros(50_000_000, np.int8))}), path)
    return path


def many_columns(path: Path) -> Path:
    path.write_text(",".join(f"c{i}" for i in range(100_000)) + "\n")
    return path


TABLES: dict[str, Callable[[Path], Path]] = {
    "bomb.csv.gz": gzip_bomb,
    "bomb.jsonl.gz": gzip_bomb,
    "long.csv": long_line,
    "often.parquet": one_text_told_often,
    "nothing.parquet": rows_of_nothing,
    "columns.csv": many_columns,
}


@pytest.mark.parametrize("name", TABLES)
def test_a_hostile_table_is_refused_in_one_line(tmp_path: Path, name: str) -> None:
    path = TABLES[name](tmp_path / name)
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(FewnodeError) as refused:
        read_tables(path, {"s": ["a"], "t": ["a"]})
    assert str(refused.value).isprintable()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - most < 300 << 10
