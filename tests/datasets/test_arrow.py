"""Tables from files of every format: the same columns come out, and nothing in a file is trusted."""

from __future__ import annotations

import csv
import errno
import gzip
import io
import json
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fewnode.datasets import arrow
from fewnode.datasets.arrow import read_table
from fewnode.datasets.tables import read_tables
from fewnode.errors import FewnodeError

NODES = {
    "id": ["007", "fox", "ünde", "owl"],
    "label": ["bird", None, "plant", "bird"],
    "title": ["red den", "red fox, red den", None, 'a "blue" owl'],
    "size": ["1", "3", None, "5"],
}
EDGES = {"source": ["007", "fox", "owl", "fox", "owl"], "target": ["fox", "007", "owl", "ünde", "fox"]}


def write_csv(path: Path, columns: dict[str, list[Any]], delimiter: str = ",") -> Path:
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter)
    writer.writerows([list(columns), *(["" if c is None else c for c in row] for row in zip(*columns.values()))])  # noqa: B905
    path.write_bytes(gzip.compress(text.getvalue().encode()) if path.suffix == ".gz" else text.getvalue().encode())
    return path


def write(path: Path, columns: dict[str, list[Any]]) -> Path:
    if ".jsonl" in path.name:
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        blob = "\n".join(json.dumps({k: v for k, v in row.items() if v is not None}) for row in rows).encode()
        path.write_bytes(gzip.compress(blob) if path.suffix == ".gz" else blob)
    elif path.suffix == ".parquet":
        pq.write_table(pa.table(columns), path)
    else:
        write_csv(path, columns, "\t" if ".tsv" in path.name else ",")
    return path


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "tsv", "jsonl", "jsonl.gz", "parquet"])
def test_every_format_gives_the_same(tmp_path: Path, suffix: str) -> None:
    nodes, edges = write(tmp_path / f"n.{suffix}", NODES), write(tmp_path / f"e.{suffix}", EDGES)
    data, expected = (
        read_tables(*pair, text=["title"], numeric=["size"]) for pair in ((str(edges), nodes), (EDGES, NODES))
    )
    assert data.sha256 == expected.sha256
    assert data.node_names == expected.node_names
    assert data.name == "n"
    assert data.encoding == expected.encoding


cells = st.none() | st.sampled_from(["", "red fox", "den", "ü", "NULL"]) | st.text("ab \n\"',;\t", max_size=6)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(cells, cells), min_size=1, max_size=8))
def test_what_csv_writes_is_read_back(rows: list[tuple[Any, Any]]) -> None:
    columns = {name: list(values) for name, values in zip("ab", zip(*rows, strict=True), strict=True)}
    with tempfile.TemporaryDirectory() as folder:
        table = read_table(write_csv(Path(folder) / "t.csv", columns), "test")
    for name, values in columns.items():
        assert table.texts(name).to_pylist() == [(value or "").strip() or None for value in values]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("n.csv", b"", "line 1 is empty, expected a header"),
        ("n.csv", b"id,label\n", "no node in it"),
        ("n.csv", b"id,label,label\n", "column 'label' is there twice"),
        ("n.csv", b"id,label\na,x\nb\n", "line 3: 1 cells, expected 2"),
        ("n.csv", b'id,label\na,"x\ny"\nb,x,y\n', "line 4: 3 cells, expected 2"),
        ("n.csv", b"id,label\na,x\nb,\xff\n", "line 3: byte 3 is not UTF-8"),
        ("n.csv", "id,label\n".encode("utf-16"), "line 1: byte 1 is not UTF-8; save the table as UTF-8"),
        ("n.csv", b'id,label\na,"x\nb,y\n', r"line 3: unexpected end of data; is a quote missing\?"),
        ("n.tsv", b"id,label\na,b\n", r"no column 'label' \(did you mean 'id,label'\?\)"),
        ("n.jsonl", b"", "no row in it"),
        ("n.jsonl", b'{"id": "a"}\n{"id": \n', "line 2: not JSON"),
        ("n.jsonl", b'{"id": "a"}\n\n["b"]\n', "line 3: found a list, expected an object"),
        ("n.jsonl", b'{"id": "\xff"}\n', "line 1: byte 9 is not UTF-8"),
        ("n.jsonl", b'{"id": "\\ud800"}\n', "line 1, column 'id': expected text, a number or a list"),
        ("n.jsonl", b'{"\\ud800": 1}\n', r"line 1, column '\\ud800': expected text, a number or a list"),
        ("n.jsonl", b'{"id": ' + b"[" * 600 + b"]" * 600 + b"}\n", "line 1, column 'id': expected text"),
        ("n.jsonl", b'{"id": {"a": 1}}\n', "line 1, column 'id': expected text, a number or a list"),
        ("n.jsonl", b'{"id": ' + b"[" * 10**6 + b"]" * 10**6 + b"}\n", "line 1: not JSON"),
        ("n.jsonl", b'{"id": ' + b"1" * 5000 + b"}\n", "line 1: not JSON"),
        ("n.parquet", b"PAR1 nothing of the kind PAR1", "not a readable Parquet file"),
        ("n.parquet", b"", "not a readable Parquet file"),
        ("n.csv.gz", b"id,label\n", "the gzip file is cut short or damaged"),
        ("n.xlsx", b"PK", r"unknown kind of table '\.xlsx', expected \.csv, \.tsv"),
        ("n", b"id,label\n", "unknown kind of table ''"),
    ],
)  # fmt: skip
def test_bad_files_are_refused_with_the_place(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(FewnodeError, match=message) as caught:
        read_tables(EDGES, tmp_path / name, label="label")
    assert str(caught.value).startswith(str(tmp_path / name))
    assert "\n" not in str(caught.value)


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "directory.csv").mkdir()
    os.mkfifo(tmp_path / "fifo.csv")
    os.mkfifo(tmp_path / "fifo.parquet")
    for name, message in [("absent.csv", "no such file"), ("directory.csv", "not a regular file"),
                          ("fifo.csv", "not a regular file"), ("fifo.parquet", "not a regular file"),
                          ("absent.xlsx", "no such file")]:  # fmt: skip
        with pytest.raises(FewnodeError, match=f"{name}: {message}"):
            read_tables(EDGES, tmp_path / name)
    with pytest.raises(FewnodeError, match="the nodes table cannot be read"):
        read_tables(EDGES, 7)
    with pytest.raises(FewnodeError, match="the nodes table cannot be read"):
        read_tables(EDGES, pd.DataFrame({"id": ["a", 1]}))


@pytest.mark.parametrize("keep", [0.1, 0.5, 0.99])
@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_a_cut_gzip_is_refused(tmp_path: Path, keep: float, kind: str) -> None:
    columns = {"id": [f"node{i**3}" for i in range(5000)], "label": ["x"] * 5000}
    path = write(tmp_path / f"n.{kind}.gz", columns)
    path.write_bytes(path.read_bytes()[: int(keep * path.stat().st_size)])
    with pytest.raises(FewnodeError, match="cut short or damaged"):
        read_tables(EDGES, path)


def test_a_cut_parquet_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "n.parquet", NODES)
    whole = path.read_bytes()
    for end in range(0, len(whole), 97):
        path.write_bytes(whole[:end])
        with pytest.raises(FewnodeError, match="not a readable Parquet file"):
            read_tables(EDGES, path)


def test_a_broken_disk_is_no_broken_parquet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> Any:
        raise OSError(errno.EIO, "Input/output error")

    path = write(tmp_path / "n.parquet", NODES)
    monkeypatch.setattr(pq, "read_schema", fail)
    with pytest.raises(OSError, match="Input/output error"):
        read_tables(EDGES, path)


def test_a_damaged_parquet_is_read_or_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "n.parquet", NODES)
    whole = path.read_bytes()
    refused = []
    for place in range(0, len(whole), 23):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0xA5]) + whole[place + 1 :])
        try:
            read_tables(EDGES, path, unknown_ends="drop")
        except FewnodeError as error:
            refused.append(str(error))
    assert refused
    assert not any("\n" in message for message in refused)


def test_bytes_in_a_parquet_file_that_are_no_text_are_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": pa.array([b"a", b"\xff"])}), tmp_path / "n.parquet")
    with pytest.raises(FewnodeError, match="data row 2, column 'id': found large_binary, expected UTF-8 text"):
        read_tables(EDGES, tmp_path / "n.parquet")
    pq.write_table(pa.table({"id": ["a", "bbb"]}), tmp_path / "m.parquet", compression="none", use_dictionary=False)
    blob = (tmp_path / "m.parquet").read_bytes()
    (tmp_path / "m.parquet").write_bytes(blob.replace(b"bbb", b"b\xffb"))
    with pytest.raises(FewnodeError, match=r"data row 2, column 'id': found .*string, expected UTF-8 text"):
        read_tables(EDGES, tmp_path / "m.parquet")


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_a_gzip_bomb_is_refused_while_it_inflates(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow, "FREE_BYTES", 1 << 20)
    line = b'{"id": "a", "label": "b"}\n' if kind == "jsonl" else b"id,label\n"
    path = tmp_path / f"n.{kind}.gz"
    path.write_bytes(gzip.compress(line * 500_000))
    assert path.stat().st_size < 40_000
    with pytest.raises(FewnodeError, match="inflates to over 100 times its size, refused"):
        read_tables(EDGES, path)


def test_a_parquet_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One string of a megabyte, told ten thousand times, is a small file."""
    monkeypatch.setattr(arrow, "FREE_BYTES", 1 << 20)
    repeated = pa.DictionaryArray.from_arrays(pa.array(np.zeros(10_000, np.int32)), pa.array(["x" * 2**20]))
    for kind in (pa.string(), pa.large_string()):
        column = repeated.cast(pa.dictionary(pa.int32(), kind))
        pq.write_table(pa.table({"id": column}), tmp_path / "n.parquet")
        assert (tmp_path / "n.parquet").stat().st_size < 200_000
        with pytest.raises(FewnodeError, match="inflates to over 100 times its size, refused"):
            read_tables(EDGES, tmp_path / "n.parquet")


def test_a_long_line_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow, "MAX_LINE", 100)
    (tmp_path / "n.jsonl").write_text(json.dumps({"id": "x" * 200}))
    with pytest.raises(FewnodeError, match="line 1 is longer than"):
        read_tables(EDGES, tmp_path / "n.jsonl")


def test_json_with_a_key_of_its_own_in_every_row_is_refused(tmp_path: Path) -> None:
    (tmp_path / "n.jsonl").write_text("\n".join(json.dumps({f"key{i}": i}) for i in range(2000)))
    with pytest.raises(FewnodeError, match="line 1001: over 1000 different keys"):
        read_tables(EDGES, tmp_path / "n.jsonl")


def test_many_rows_of_json_with_late_columns(tmp_path: Path) -> None:
    rows = [{"id": i, "label": "x"} for i in range(20_000)] + [{"id": -1, "size": 3}]
    (tmp_path / "n.jsonl").write_text("\n".join(map(json.dumps, rows)))
    data = read_tables({"s": ["1"], "t": ["-1"]}, tmp_path / "n.jsonl", numeric=["size"])
    assert (data.graph.n, data.info["missing"]) == (20_001, {"size": 20_000})
