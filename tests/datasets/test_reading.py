"""Tables from files of every format: the same columns come out, and nothing in a file is trusted."""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import json
import os
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fewnode import extend, read_tables
from fewnode.errors import FewnodeError
from fewnode.tables import files, plain

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
        read_tables(*pair, text=["title"], numeric=["size"]) for pair in ((nodes, str(edges)), (NODES, EDGES))
    )
    assert data.sha256 == expected.sha256
    assert data.node_names == expected.node_names
    assert data.name == "n"
    assert data.encoding == expected.encoding


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("n.csv", b"", "line 1 is empty, expected a header"),
        ("n.csv", b"id,label\na,x\nb\n", "line 3: 1 cells, expected 2"),
        ("n.csv", b'id,label\na,"x\ny"\nb,x,y\n', "line 3: 3 cells, expected 2"),
        ("n.csv", b'id,label\na,"x\ny"\nb,x\n', r"data row 1: a quoted cell .* is a quote missing\? \(`multiline` if"),
        ("n.csv", b"id,label\na,x\nb,\xff\n", "line 3: not UTF-8; say which it is, such as `encoding` latin-1"),
        ("n.csv", "id,label\n".encode("utf-16-le"), "line 1: a zero byte, expected text; is it `encoding` utf-16"),
        ("n.csv", b'id,label\na,"x\nb,y\n', r"line 2: a quoted cell does not end on this line; is a quote missing\?"),
        ("n.tsv", b"id,label\na,b\n", r"no column 'label' \(did you mean 'id,label'\?\)"),
        ("n.jsonl", b"", "no row in it"),
        ("n.jsonl", b'{"id": "a"}\n{"id": \n', "line 2: not JSON"),
        ("n.jsonl", b'{"id": "a"}\n\n["b"]\n', "line 3: found a list, expected an object"),
        ("n.jsonl", b'{"id": "\xff"}\n', "line 1: not UTF-8; say which it is"),
        ("n.jsonl", b'{"id": "\\ud800"}\n', "line 1, column 'id': expected text, a number or a list"),
        ("n.jsonl", b'{"id": {"a": 1}}\n', "line 1, column 'id': expected text, a number or a list"),
        ("n.jsonl", b'{"id": ' + b"[" * 10**6 + b"]" * 10**6 + b"}\n", "line 1: not JSON"),
        ("n.parquet", b"PAR1 nothing of the kind PAR1", "not a readable Parquet file"),
        ("n.parquet", b"", "not a readable Parquet file"),
        ("n.csv.gz", b"id,label\n", "the gzip file is cut short or damaged"),
        ("n.xlsx", b"PK", r"unknown kind of table '\.xlsx', expected \.csv, \.tsv"),
    ],
    ids=itertools.count(),
)  # fmt: skip
def test_bad_files_are_refused_with_the_place(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(FewnodeError, match=message) as caught:
        read_tables(tmp_path / name, EDGES, label="label")
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
            read_tables(tmp_path / name, EDGES)
    with pytest.raises(FewnodeError, match="the nodes table cannot be read"):
        read_tables(7, EDGES)
    with pytest.raises(FewnodeError, match="the nodes table cannot be read"):
        read_tables(pd.DataFrame({"id": ["a", 1]}), EDGES)


@pytest.mark.parametrize("keep", [0.1, 0.5, 0.99])
@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_a_cut_gzip_is_refused(tmp_path: Path, keep: float, kind: str) -> None:
    columns = {"id": [f"node{i**3}" for i in range(5000)], "label": ["x"] * 5000}
    path = write(tmp_path / f"n.{kind}.gz", columns)
    path.write_bytes(path.read_bytes()[: int(keep * path.stat().st_size)])
    with pytest.raises(FewnodeError, match="cut short or damaged"):
        read_tables(path, EDGES)


def test_a_damaged_parquet_is_read_or_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "n.parquet", NODES)
    whole = path.read_bytes()
    refused = []
    for place in range(0, len(whole), 23):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0xA5]) + whole[place + 1 :])
        try:
            read_tables(path, EDGES, unknown_ends="drop")
        except FewnodeError as error:
            refused.append(str(error))
    assert refused
    assert not any("\n" in message for message in refused)


def test_bytes_in_a_parquet_file_that_are_no_text_are_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": pa.array([b"a", b"\xff"])}), tmp_path / "n.parquet")
    with pytest.raises(FewnodeError, match="not a readable Parquet file"):
        read_tables(tmp_path / "n.parquet", EDGES)
    pq.write_table(pa.table({"id": ["a", "bbb"]}), tmp_path / "m.parquet", compression="none", use_dictionary=False)
    blob = (tmp_path / "m.parquet").read_bytes()
    (tmp_path / "m.parquet").write_bytes(blob.replace(b"bbb", b"b\xffb"))
    with pytest.raises(FewnodeError, match="not a readable Parquet file"):
        read_tables(tmp_path / "m.parquet", EDGES)


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_a_gzip_bomb_is_refused_while_it_inflates(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain, "FREE_BYTES", 1 << 20)
    line = b'{"id": "a", "label": "b"}\n' if kind == "jsonl" else b"id,label\n"
    path = tmp_path / f"n.{kind}.gz"
    path.write_bytes(gzip.compress(line * 500_000))
    assert path.stat().st_size < 40_000
    with pytest.raises(FewnodeError, match="inflates to over 100 times its size, refused"):
        read_tables(path, EDGES)


def test_a_parquet_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One string of a megabyte, told ten thousand times, is a small file."""
    monkeypatch.setattr(files, "FREE_BYTES", 1 << 18)
    repeated = pa.DictionaryArray.from_arrays(pa.array(np.zeros(10_000, np.int32)), pa.array(["x" * 2**20]))
    for kind in (pa.string(), pa.large_string()):
        column = repeated.cast(pa.dictionary(pa.int32(), kind))
        pq.write_table(pa.table({"id": column}), tmp_path / "n.parquet")
        assert (tmp_path / "n.parquet").stat().st_size < 200_000
        with pytest.raises(FewnodeError, match="inflates to over 100 times its size, refused"):
            read_tables(tmp_path / "n.parquet", EDGES)


def test_json_with_a_key_of_its_own_in_every_row_is_refused(tmp_path: Path) -> None:
    (tmp_path / "n.jsonl").write_text("\n".join(json.dumps({f"key{i}": i}) for i in range(2000)))
    with pytest.raises(FewnodeError, match="line 1001: over 1000 different keys"):
        read_tables(tmp_path / "n.jsonl", EDGES)


def test_what_is_no_file_goes_by_its_role() -> None:
    frame = pd.DataFrame({"a": [1, 2, 3], " b": [4, 5, 6]})
    one = {"s": ["2"], "t": ["2"]}
    for source in (frame, frame[1:], frame[1::2], pa.table(frame[:2]), MappingProxyType({"a": [2], " b": [2]})):
        assert read_tables(source, one).info["columns"] == {"a": "id", "b": "numeric"}
    assert read_tables(frame.set_index("a"), one, id="a").info["columns"] == {"b": "numeric", "a": "id"}
    with pytest.raises(FewnodeError, match="the nodes table: column 'a' is there twice; rename one"):
        read_tables(frame.rename(columns={" b": "a "}), one)
    with pytest.raises(FewnodeError, match=r"^the edges table cannot be read \("):
        read_tables(frame, 7)


def test_a_query_is_a_table() -> None:
    duckdb = pytest.importorskip("duckdb")
    nodes = duckdb.sql("SELECT 'n' || i AS id, i AS size FROM range(3) t(i)")
    data = read_tables(nodes, duckdb.sql("SELECT 'n0' AS s, 'n1' AS t"))
    assert (data.node_names, data.graph.n_edges) == (("n0", "n1", "n2"), 1)


def test_repeated_rows_count_once_if_they_say_the_same(tmp_path: Path) -> None:
    (tmp_path / "n.csv").write_text("id,label,size\na,x,1\nb,y,2\na,x,1\nc,x,3\na,x,1\n")
    data = read_tables(tmp_path / "n.csv", {"s": ["a"], "t": ["c"]})
    assert (data.node_names, data.y.tolist(), data.info["repeated_rows"]) == (("a", "b", "c"), [0, 1, 0], 2)
    (tmp_path / "n.csv").write_text("id,label,size\na,x,1\nb,y,2\na,x,1\nb,y,3\n")
    with pytest.raises(FewnodeError, match="data row 4, column 'id': node 'b' is in data row 2 already"):
        read_tables(tmp_path / "n.csv", {"s": ["a"], "t": ["b"]})


def test_dates_are_their_age_in_days() -> None:
    nodes = {"id": list("abcd"), "seen": ["2024-03-01", "2024-02-29 08:00", None, "2024-01-31"]}
    data = read_tables(nodes, {"s": ["a"], "t": ["b"]})
    ages = np.array([0, 1, 30])
    expected = (ages - ages.mean()) / ages.std()
    np.testing.assert_allclose(data.graph.x[[0, 1, 3], 0], expected, rtol=1e-5)
    more = extend(data, {"id": ["e"], "seen": ["2024-02-29"]})
    assert more.graph.x[4, 0] == data.graph.x[1, 0]
    by_day = read_tables({**nodes, "seen": ["01.03.2024", "29.02.2024", None, "31.01.2024"]}, {"s": ["a"], "t": ["b"]})
    np.testing.assert_allclose(by_day.graph.x, data.graph.x)
    unsure = {**nodes, "seen": ["01/03/2024", "02/03/2024", None, "03/01/2024"]}
    assert "day or the month" in read_tables(unsure, {"s": ["a"], "t": ["b"]}).info["why"]["seen"]
    with pytest.raises(
        FewnodeError, match="data row 1, column 'seen': the dates may begin with the day or with the month"
    ):
        read_tables(unsure, {"s": ["a"], "t": ["b"]}, numeric="seen")


def test_more_than_half_of_the_edges_are_never_dropped() -> None:
    edges = {"txid": ["1", "2", "3"], "payer": ["a", "b", "c"], "payee": ["b", "c", "d"]}
    with pytest.raises(FewnodeError, match="3 of 3 edges have an end that is no node, as '1', '2'") as caught:
        read_tables({"id": list("abcd")}, edges, unknown_ends="drop")
    assert "is 'txid' to 'payer' the right pair of columns" in str(caught.value)


def test_what_a_killed_import_left_behind_is_cleared_away(tmp_path: Path) -> None:
    (tmp_path / ".fewnode-tables").mkdir()
    (tmp_path / ".fewnode-tables" / "t1").write_text("half of a table")
    nodes = tmp_path / "n.jsonl"
    nodes.write_text('{"id": "a"}\n{"id": "b"}\n')
    read_tables(nodes, {"s": ["a"], "t": ["b"]}, memory="1G", room=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["n.jsonl"]
