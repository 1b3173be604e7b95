"""Tables from files of every format: the same columns come out, and nothing in a file is trusted."""

from __future__ import annotations

import csv
import errno
import gzip
import io
import itertools
import json
import os
import tempfile
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fewnode.datasets import arrow, decoding, text_tables
from fewnode.datasets.arrow import TEXT, Dialect, Table, need_columns, read_table
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
        read_tables(*pair, text=["title"], numeric=["size"]) for pair in ((nodes, str(edges)), (NODES, EDGES))
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
        table = read_table(write_csv(Path(folder) / "t.csv", columns), "test", dialect=Dialect(",", multiline=True))
    for name, values in columns.items():
        assert table.texts(name).to_pylist() == [(value or "").strip() or None for value in values]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("n.csv", b"", "line 1 is empty, expected a header"),
        ("n.csv", b"id,label\n", "no node in it"),
        ("n.csv", b"id,label,label\n", "column 'label' is there twice"),
        ("n.csv", b"id,label\na,x\nb\n", "line 3: 1 cells, expected 2"),
        ("n.csv", b'id,label\na,"x\ny"\nb,x,y\n', r"line 2: a quoted cell .* is a quote missing\? \(--multiline if"),
        ("n.csv", b"id,label\na,x\nb,\xff\n", "line 3: not UTF-8; say which it is, such as --encoding latin-1"),
        ("n.csv", "id,label\n".encode("utf-16-le"), "line 1: a zero byte, expected text; is it --encoding utf-16"),
        ("n.csv", b'id,label\na,"x\nb,y\n', r"line 2: a quoted cell does not end on this line; is a quote missing\?"),
        ("n.tsv", b"id,label\na,b\n", r"no column 'label' \(did you mean 'id,label'\?\)"),
        ("n.jsonl", b"", "no row in it"),
        ("n.jsonl", b'{"id": "a"}\n{"id": \n', "line 2: not JSON"),
        ("n.jsonl", b'{"id": "a"}\n\n["b"]\n', "line 3: found a list, expected an object"),
        ("n.jsonl", b'{"id": "\xff"}\n', "line 1: not UTF-8; say which it is"),
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


def test_a_cut_parquet_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "n.parquet", NODES)
    whole = path.read_bytes()
    for end in range(0, len(whole), 97):
        path.write_bytes(whole[:end])
        with pytest.raises(FewnodeError, match="not a readable Parquet file"):
            read_tables(path, EDGES)


def test_a_broken_disk_is_no_broken_parquet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> Any:
        raise OSError(errno.EIO, "Input/output error")

    path = write(tmp_path / "n.parquet", NODES)
    monkeypatch.setattr(pq, "read_schema", fail)
    with pytest.raises(OSError, match="Input/output error"):
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
    with pytest.raises(FewnodeError, match="data row 2, column 'id': found large_binary, expected UTF-8 text"):
        read_tables(tmp_path / "n.parquet", EDGES)
    pq.write_table(pa.table({"id": ["a", "bbb"]}), tmp_path / "m.parquet", compression="none", use_dictionary=False)
    blob = (tmp_path / "m.parquet").read_bytes()
    (tmp_path / "m.parquet").write_bytes(blob.replace(b"bbb", b"b\xffb"))
    with pytest.raises(FewnodeError, match=r"data row 2, column 'id': found .*string, expected UTF-8 text"):
        read_tables(tmp_path / "m.parquet", EDGES)


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_a_gzip_bomb_is_refused_while_it_inflates(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "FREE_BYTES", 1 << 20)
    line = b'{"id": "a", "label": "b"}\n' if kind == "jsonl" else b"id,label\n"
    path = tmp_path / f"n.{kind}.gz"
    path.write_bytes(gzip.compress(line * 500_000))
    assert path.stat().st_size < 40_000
    with pytest.raises(FewnodeError, match="inflates to over 100 times its size, refused"):
        read_tables(path, EDGES)


def test_a_parquet_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One string of a megabyte, told ten thousand times, is a small file."""
    monkeypatch.setattr(decoding, "FREE_BYTES", 1 << 20)
    repeated = pa.DictionaryArray.from_arrays(pa.array(np.zeros(10_000, np.int32)), pa.array(["x" * 2**20]))
    for kind in (pa.string(), pa.large_string()):
        column = repeated.cast(pa.dictionary(pa.int32(), kind))
        pq.write_table(pa.table({"id": column}), tmp_path / "n.parquet")
        assert (tmp_path / "n.parquet").stat().st_size < 200_000
        with pytest.raises(FewnodeError, match="inflates to over 100 times its size, refused"):
            read_tables(tmp_path / "n.parquet", EDGES)


def test_a_long_line_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "MAX_LINE", 100)
    (tmp_path / "n.jsonl").write_text(json.dumps({"id": "x" * 200}))
    with pytest.raises(FewnodeError, match="line 1 is longer than"):
        read_tables(tmp_path / "n.jsonl", EDGES)


def test_json_with_a_key_of_its_own_in_every_row_is_refused(tmp_path: Path) -> None:
    (tmp_path / "n.jsonl").write_text("\n".join(json.dumps({f"key{i}": i}) for i in range(2000)))
    with pytest.raises(FewnodeError, match="line 1001: over 1000 different keys"):
        read_tables(tmp_path / "n.jsonl", EDGES)


def test_many_rows_of_json_with_late_columns(tmp_path: Path) -> None:
    rows = [{"id": i, "label": "x"} for i in range(20_000)] + [{"id": -1, "size": 3}]
    (tmp_path / "n.jsonl").write_text("\n".join(map(json.dumps, rows)))
    packed = read_table(tmp_path / "n.jsonl", "nodes").data["id"]
    assert [len(chunk) for chunk in packed.chunks] == [16_384, 3617]  # Python's rows are large, and not all held
    data = read_tables(tmp_path / "n.jsonl", {"s": ["1"], "t": ["-1"]}, numeric=["size"])
    assert (data.graph.n, data.info["missing"]) == (20_001, {"size": 20_000})


# --- word for word ------------------------------------------------------------------------------------------------


def refusal(path: Path, content: bytes) -> str:
    """What is said about a file, after its name."""
    path.write_bytes(content)
    with pytest.raises(FewnodeError) as caught:
        read_table(path, "test")
    name, message = str(caught.value).split(": ", 1)
    assert name == str(path)
    return message


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("n.csv", b"", "line 1 is empty, expected a header with the column names"),
        ("n.csv", b",,\n", "line 1 is empty, expected a header with the column names"),
        ("n.csv", b"a,b,a\n", "column 'a' is there twice; rename one"),
        ("n.csv", b"a,b\n1,2\n\n3\n", "line 4: 1 cells, expected 2"),
        ("n.tsv", b"a\tb\n1\t2\t3\n", "line 2: 3 cells, expected 2"),
        ("n.tsv", b'a\tb\n1,\t"2\n', "line 2: a quoted cell does not end on this line; is a quote missing?"),
        ("n.csv", b'a,b\n"1","2\n', "line 2: a quoted cell does not end on this line; is a quote missing?"),
        ("n.csv", b'a,b\n"1"x,2\n3,"\n', "line 2: ',' expected after '\"'"),
        ("n.csv", b'a,b\n"x,y\n' + b"1,2\n" * 500_000,
         "line 2: a quoted cell does not end on this line; is a quote missing?"),
        ("n.jsonl", b"\n \n", "no row in it"),
        ("n.jsonl", b'{"a": 1, " a": 2}\n', "column 'a' is there twice; rename one"),
        ("n.jsonl", b'\n{"a"}\n', "line 2: not JSON (Expecting ':' delimiter: line 1 column 5 (char 4))"),
        ("n.jsonl", b'{"a": 1}\n7\n', "line 2: found a int, expected an object on each line"),
        ("n.jsonl", b'{"a": 1}\n{"a": [{}]}\n', "line 2, column 'a': expected text, a number or a list of them"),
        ("n.jsonl", b'{"a": 1}\n{"a": "\xff"}\n', "line 2: not UTF-8; say which it is, such as --encoding latin-1"),
        ("n.jsonl", b'{"a": 1}\n{"a": 1, "b": 2, "a": 1}\n', "line 2: key 'a' is there twice"),
        ("n.xlsx.gz", b"", f"unknown kind of table '.xlsx.gz', expected {arrow.FORMATS}"),
        ("n.csv.gz", gzip.compress(b"a,b\n")[:-4],
         "the gzip file is cut short or damaged (Compressed file ended before the end-of-stream marker was reached); "
         "fetch it again"),
    ],
    ids=itertools.count(),
)  # fmt: skip
def test_what_is_wrong_is_said_in_these_words(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    assert refusal(tmp_path / name, content) == message


def test_only_the_first_line_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    mark = b"\xef\xbb\xbf"
    (tmp_path / "n.jsonl").write_bytes(mark + b'{"a": 1}\n{"a": 2}\n')
    assert read_table(tmp_path / "n.jsonl", "test").texts("a").to_pylist() == ["1", "2"]
    for start in (b'{"a": 1}\n', b'{"a": 1}\n{"a": 2}\n'):
        message = refusal(tmp_path / "n.jsonl", start + mark + b'{"a": 3}\n')
        assert message.startswith(f"line {start.count(10) + 1}: not JSON (Expecting value")


@pytest.mark.parametrize("place", range(7))
def test_the_first_cell_that_is_no_number_is_named(place: int) -> None:
    long = "x" * 100
    table = Table("t", pa.table({"a": [*(str(i) for i in range(place)), *([long] * (7 - place))]}))
    found = (
        f"found {repr(long)[:60]}, expected a number (leave the cell empty if it is unknown, or name what stands for"
    )
    found += " that with --missing)"
    with pytest.raises(FewnodeError) as caught:
        table.numbers("a")
    assert str(caught.value) == f"t: data row {place + 1}, column 'a': {found}"


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (pa.array([[{"b": 1}]]), "found list<element: struct<b: int64>>, expected text"),
        (pa.array([{"b": 1}]), "found struct<b: int64>, expected UTF-8 text"),
    ],
)
def test_cells_that_are_no_text_are_refused(cells: Any, message: str) -> None:
    with pytest.raises(FewnodeError) as caught:
        Table("t", pa.table({"a": cells})).texts("a")
    assert str(caught.value).replace("item:", "element:") == f"t: data row 1, column 'a': {message}"


def test_a_number_that_is_not_finite_is_refused_where_it_stands() -> None:
    with pytest.raises(FewnodeError) as caught:
        Table("t", pa.table({"a": [1.0, None, float("-inf"), float("nan")]})).numbers("a")
    problem = "-inf is no finite number; leave the cell empty if it is unknown"
    assert str(caught.value) == f"t: data row 3, column 'a': {problem}"


@pytest.mark.parametrize(
    ("count", "shown"),
    [(2, "c0, c1"), (12, ", ".join(f"c{i}" for i in range(12))), (13, ", ".join(f"c{i}" for i in range(12)) + " …")],
)
def test_a_missing_column_is_told_with_the_first_twelve_that_there_are(count: int, shown: str) -> None:
    header = [f"c{i}" for i in range(count)]
    assert need_columns("t", header, ["c1", "c0", "c1"]) == ["c1", "c0"]
    with pytest.raises(FewnodeError) as caught:
        need_columns("t", header, ["c1", "zebra"])
    assert str(caught.value) == f"t: no column 'zebra'; there are {shown}"


def test_long_column_names_are_shown_up_to_forty_characters_and_near_ones_are_proposed() -> None:
    with pytest.raises(FewnodeError) as caught:
        need_columns("t", ["label", "x" * 41], ["lable"])
    assert str(caught.value) == f"t: no column 'lable' (did you mean 'label'?); there are label, {'x' * 40}"


# --- what is read -------------------------------------------------------------------------------------------------


SUFFIXES = ".csv .CSV .csv.gz .CSV.GZ .tsv .tsv.gz .tab .tab.gz .jsonl .jsonl.gz .ndjson .ndjson.gz .parquet .pq .PQ"


@pytest.mark.parametrize("suffix", SUFFIXES.split())
@pytest.mark.parametrize("given", [str, Path])
def test_every_suffix_is_known_and_only_chosen_columns_are_kept(tmp_path: Path, suffix: str, given: type) -> None:
    path, plain = tmp_path / f"n{suffix}", suffix.lower().removesuffix(".gz")
    if plain in (".parquet", ".pq"):
        pq.write_table(pa.table({" a": ["007", None], "b ": ["x", "y"], "c": ["1", "2"]}), path)
    else:
        tab = "\t" if plain in (".tsv", ".tab") else ","
        text = f" a{tab}b {tab}c\n007{tab}x{tab}1\n{tab}y{tab}2\n"
        if plain in (".jsonl", ".ndjson"):
            text = '{" a": "007", "b ": "x"}\n{"b ": "y", "c": 2}\n'
        path.write_bytes(gzip.compress(text.encode()) if suffix.lower().endswith(".gz") else text.encode())
    table = read_table(given(path), "test", lambda header: header[1::-1])
    assert (table.name, table.header, len(table)) == (str(path), ("a", "b", "c"), 2)
    assert table.data.column_names == ["b", "a"]
    assert table.data.schema.types == [TEXT, TEXT]
    assert [table.texts(name).to_pylist() for name in "ba"] == [["x", "y"], ["007", None]]
    assert read_table(path, "test").data.column_names == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("cells", "texts"),
    [
        ([7.0, None, float("nan"), -0.0], ["7", None, None, "0"]),
        ([1.5, 2.0], ["1.5", "2"]),
        ([2.0**53 - 1], ["9007199254740991"]),
        ([2.0**53, 0.5], ["9.007199254740992e+15", "0.5"]),
        (pa.array([None, None], pa.float64()), [None, None]),
        (pa.array([7, None], pa.float32()), ["7", None]),
        ([True, None], ["true", None]),
        (["", " ", " a b\t", None], [None, None, "a b", None]),
        ([["a", "b"], [], None], ["a b", None, None]),
        (pa.array([[1, 2], [3]], pa.large_list(pa.int8())), ["1 2", "3"]),
        (pa.array(["a", "b", "a"]).dictionary_encode(), ["a", "b", "a"]),
        (pa.array([2.0**52, 4.0]).dictionary_encode(), ["4503599627370496", "4"]),
        ([b"a", b"\xc3\xbc"], ["a", "ü"]),
    ],
    ids=itertools.count(),
)
def test_cells_of_every_type_as_text(cells: Any, texts: list[str | None]) -> None:
    column = Table("t", pa.table({"a": cells})).texts("a")
    assert (column.type, column.to_pylist()) == (TEXT, texts)


@pytest.mark.parametrize(
    ("cells", "numbers"),
    [
        (["1", " 2.5 ", "", None], [1, 2.5, np.nan, np.nan]),
        ([1, None], [1, np.nan]),
        ([2**53 + 1], [2.0**53]),
        ([True, False, None], [1, 0, np.nan]),
        (pa.array([1, 2]).dictionary_encode(), [1, 2]),
        (pa.array([1, None], pa.decimal128(5, 1)), [1, np.nan]),
    ],
    ids=itertools.count(),
)
def test_cells_of_every_type_as_numbers(cells: Any, numbers: list[float]) -> None:
    values = Table("t", pa.table({"a": cells})).numbers("a")
    assert values.dtype == np.float64
    np.testing.assert_array_equal(values, numbers)


def test_what_is_no_file_goes_by_its_role(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": [1, 2, 3], " b": [4, 5, 6]})
    for source in (frame, frame[1:], frame[::2], pa.table(frame[:2]), MappingProxyType({"a": [1], " b": [2]})):
        table = read_table(source, "nodes", lambda header: header[1:])
        assert (table.name, table.header, table.data.column_names) == ("the nodes table", ("a", "b"), ["b"])
    assert read_table(frame.set_index("a"), "nodes").header == ("b", "a")
    with pytest.raises(FewnodeError) as caught:
        read_table(frame.rename(columns={" b": "a "}), "edges")
    assert str(caught.value) == "the edges table: column 'a' is there twice; rename one"
    with pytest.raises(FewnodeError, match=r"^the edges table cannot be read \(Expected pandas DataFrame, .*\)$"):
        read_table(7, "edges")


def test_json_values_become_cells(tmp_path: Path) -> None:
    lines = ['{"a": [1, null, "X", [true, 2.5]], "b": null}', "", '{"b": "\\u00fc", "a": []}', '{"a": false, "b": 1e5}']
    (tmp_path / "n.jsonl").write_text("\n".join(lines))
    data = read_table(tmp_path / "n.jsonl", "test").data
    assert data.to_pydict() == {"a": ["1 X true 2.5", "", "false"], "b": [None, "ü", "1e5"]}


def test_a_quote_that_is_closed_and_words_for_nothing_are_text(tmp_path: Path) -> None:
    (tmp_path / "n.csv").write_text('a,b\n"x"y,NA\nnull,nan\n')
    table = read_table(tmp_path / "n.csv", "test")
    assert [table.texts(name).to_pylist() for name in "ab"] == [["xy", "null"], ["NA", "nan"]]


def test_a_row_may_be_longer_than_a_megabyte(tmp_path: Path) -> None:
    (tmp_path / "n.csv").write_text(f"a,b\n{'x' * (3 << 20)},y\n")
    assert read_table(tmp_path / "n.csv", "test").texts("a")[0].as_py() == "x" * (3 << 20)


def test_rows_may_have_lines_wherever_arrow_cuts_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_tables, "BLOCK", 64)
    (tmp_path / "n.csv").write_text('a,b\n"x\n,\ny",z\n' * 50)
    table = read_table(tmp_path / "n.csv", "test", dialect=Dialect(multiline=True))
    assert table.texts("a").to_pylist()[::2] == ["x\n,\ny"] * 50
    message = refusal(tmp_path / "n.csv", (tmp_path / "n.csv").read_bytes())
    assert message.startswith("line 2: a quoted cell does not end on this line; is a quote missing? (--multiline")
    message = refusal(tmp_path / "n.csv", b"a,b\n" + b"x" * 1000 + b",y\n")
    assert message.startswith("not a readable table (straddling object straddles two block boundaries")


# --- limits -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["n.csv", "n.csv.gz"])
def test_a_text_may_inflate_to_the_limit(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = b"a,b\n" + b"1,2\n" * 1000
    packed = gzip.compress(text) if name.endswith(".gz") else text
    (tmp_path / name).write_bytes(packed)
    monkeypatch.setattr(decoding, "MAX_INFLATION", 0)
    monkeypatch.setattr(decoding, "FREE_BYTES", len(text))
    assert len(read_table(tmp_path / name, "test")) == 1000
    monkeypatch.setattr(decoding, "FREE_BYTES", len(text) - 1)
    assert refusal(tmp_path / name, packed) == "inflates to over 0 times its size, refused"
    monkeypatch.setattr(decoding, "MAX_INFLATION", 100)  # a larger file may inflate to more
    assert len(read_table(tmp_path / name, "test")) == 1000


@pytest.mark.parametrize(
    ("column", "size"),
    [
        (pa.array(range(100)), 8 * 100 + 13),
        (pa.array(["aa", "bbb", None, "aa"] * 25), 32 * 25 + 7 * 25),
        (pa.array([b"aa", b"bbb"] * 25), 16 * 25 + 5 * 25),
        (pa.array([None] * 100, pa.string()), 800),
    ],
    ids=itertools.count(),
)
def test_a_parquet_file_may_inflate_to_the_limit(
    tmp_path: Path, column: pa.Array, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "n.parquet"
    pq.write_table(pa.table({"a": column, "large": ["x" * 1000] * len(column)}), path)
    monkeypatch.setattr(decoding, "MAX_INFLATION", 0)
    monkeypatch.setattr(decoding, "FREE_BYTES", size / 4)
    assert len(read_table(path, "test", lambda _: ["a"])) == len(column)
    monkeypatch.setattr(decoding, "FREE_BYTES", (size - 1) / 4)
    with pytest.raises(FewnodeError) as caught:
        read_table(path, "test", lambda _: ["a"])
    assert str(caught.value) == f"{path}: inflates to over 0 times its size, refused"
    monkeypatch.setattr(decoding, "MAX_INFLATION", 100)  # a larger file may inflate to more
    assert len(read_table(path, "test", lambda _: ["a"])) == len(column)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (pa.string(), TEXT),
        (pa.large_string(), TEXT),
        (pa.binary(), pa.large_binary()),
        (pa.large_binary(), pa.large_binary()),
        (pa.int16(), pa.int16()),
    ],
    ids=str,
)
def test_text_and_bytes_of_a_parquet_file_may_be_long(tmp_path: Path, kind: pa.DataType, expected: pa.DataType) -> None:
    cells = pa.array([7, None, 7], pa.int16()) if kind == pa.int16() else pa.array(["a", None, "a"], kind)
    pq.write_table(pa.table({"a": cells}), tmp_path / "n.parquet")
    column = read_table(tmp_path / "n.parquet", "test").data["a"]
    assert (column.type, column.to_pylist()) == (expected, cells.to_pylist())


def test_a_parquet_file_of_many_batches_and_of_none(tmp_path: Path) -> None:
    n = 100_000
    pq.write_table(pa.table({"a": range(n), " b": [str(i) for i in range(n)]}), tmp_path / "n.parquet")
    data = read_table(tmp_path / "n.parquet", "test").data
    assert data["a"].to_pylist() == list(range(n))
    assert data["b"].to_pylist() == [str(i) for i in range(n)]
    pq.write_table(pa.table({"a": [], " b": []}), tmp_path / "none.parquet")
    table = read_table(tmp_path / "none.parquet", "test", lambda _: ["b"])
    assert (len(table), table.header, table.data.column_names) == (0, ("a", "b"), ["b"])


def test_what_is_wrong_with_a_parquet_file_is_said(tmp_path: Path) -> None:
    message = refusal(tmp_path / "n.parquet", b"PAR1 nothing of the kind")
    assert message.startswith("not a readable Parquet file (Parquet magic bytes not found in footer.")
    pq.write_table(pa.table({"a": [1], " a": [2]}), tmp_path / "n.parquet")
    message = refusal(tmp_path / "n.parquet", (tmp_path / "n.parquet").read_bytes())
    assert message == "column 'a' is there twice; rename one"


def test_a_line_and_the_keys_may_reach_their_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "MAX_LINE", 1 << 20)
    monkeypatch.setattr(text_tables, "MAX_KEYS", 3)
    path = tmp_path / "n.jsonl"
    first = b'{"a": 1, "b": 2, "c": 3}\n'
    path.write_bytes(first + b'{"a": "%b"}\n' % (b"x" * ((1 << 20) - 11)))
    assert read_table(path, "test").header == ("a", "b", "c")
    assert refusal(path, first + b'{"a": "%b"}\n' % (b"x" * ((1 << 20) - 10))) == "line 2 is longer than 1 MB"
    assert refusal(path, first + b'{"d": 1}\n') == "line 2: over 3 different keys, expected a table"
