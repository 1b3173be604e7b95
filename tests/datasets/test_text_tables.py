"""CSV and JSON lines as people write them: separators, encodings, line ends, stray quotes, no header."""

from __future__ import annotations

import csv
import gzip
import io
import itertools
from pathlib import Path
from typing import Any

import pytest

from fewnode.datasets import text_tables
from fewnode.datasets.arrow import Dialect, need_columns, read_table
from fewnode.errors import FewnodeError


def read(folder: Path, blob: bytes, name: str = "t.csv", **dialect: Any) -> dict[str, list[str | None]]:
    (folder / name).write_bytes(gzip.compress(blob) if name.endswith(".gz") else blob)
    table = read_table(folder / name, "test", dialect=Dialect(**dialect))
    return {column: table.texts(column).to_pylist() for column in table.header}


def refusal(folder: Path, blob: bytes, name: str = "t.csv", **dialect: Any) -> str:
    with pytest.raises(FewnodeError) as caught:
        read(folder, blob, name, **dialect)
    assert "\n" not in str(caught.value)
    return str(caught.value).removeprefix(f"{folder / name}: ")


TEXT = "id,label\na,ü\nb,ö\n"
COLUMNS = {"id": ["a", "b"], "label": ["ü", "ö"]}

# --- separators ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mark", ",;\t|")
@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
def test_separators_are_recognised(tmp_path: Path, mark: str, name: str) -> None:
    assert read(tmp_path, TEXT.replace(",", mark).encode(), name) == COLUMNS
    assert read(tmp_path, TEXT.replace(",", mark).encode(), name, separator=mark) == COLUMNS


def test_a_separator_that_is_given_wins(tmp_path: Path) -> None:
    assert read(tmp_path, b"a;b,c\n1;2,5\n", separator=";") == {"a": ["1"], "b,c": ["2,5"]}
    assert read(tmp_path, b"a b\n1 2\n", separator="space") == {"a": ["1"], "b": ["2"]}
    assert read(tmp_path, b"a;b\n1;2\n", "t.tsv", separator=";") == {"a": ["1"], "b": ["2"]}
    assert read(tmp_path, b"a;b\n1;2\n", "t.tsv") == {"a;b": ["1;2"]}
    assert "say which with --separator" in refusal(tmp_path, b"a;b,c\n1;2,5\n")


def test_one_column_where_others_are_wanted_asks_for_the_separator() -> None:
    with pytest.raises(FewnodeError, match=r"there are a:b; if it holds several columns, say .* with --separator$"):
        need_columns("t", ["a:b"], ["b"])


# --- encodings ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.jsonl"])
def test_encodings_with_a_mark_are_recognised(tmp_path: Path, encoding: str, name: str) -> None:
    text = '{"id": "a", "label": "ü"}\n{"id": "b", "label": "ö"}\n' if "jsonl" in name else TEXT
    assert read(tmp_path, text.encode(encoding), name) == COLUMNS
    assert read(tmp_path, text.encode(encoding), name, encoding=encoding) == COLUMNS


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16-le", "utf-16-be", "mac_roman", "utf8"])
@pytest.mark.parametrize("name", ["t.csv", "t.jsonl"])
def test_encodings_that_are_given(tmp_path: Path, encoding: str, name: str) -> None:
    text = '{"id": "a", "label": "ü"}\r\n{"id": "b", "label": "ö"}' if "jsonl" in name else TEXT.replace("\n", "\r")
    assert read(tmp_path, text.encode(encoding), name, encoding=encoding) == COLUMNS


def test_a_large_table_in_another_encoding(tmp_path: Path) -> None:
    text = "id;label\n" + "".join(f"{i};ü€{i}\n" for i in range(100_000))
    found = read(tmp_path, text.encode("utf-16"))
    assert found["label"] == [f"ü€{i}" for i in range(100_000)]


NOT_UTF8 = "not UTF-8; say which it is, such as --encoding latin-1"


@pytest.mark.parametrize(
    ("blob", "encoding", "message"),
    [
        (TEXT.encode("latin-1"), None, f"line 2: {NOT_UTF8}"),
        (b"id,label\n" + b"a,b\n" * 50_000 + b"c,\xfc\n", None, f"line 50002: {NOT_UTF8}"),
        ("\ufefflabel,id\n".encode() + b"\xfc,b\n", None, f"line 2: {NOT_UTF8}"),
        (b"l\xfc,id\na,b\n", None, f"line 1: {NOT_UTF8}"),
        (b"id,label\na,\x81\n", "cp1252", "line 2: not CP1252; say which it is, such as --encoding utf-8"),
        (b"id,label\n" + b"a,b\n" * 50_000 + b"c,\x81\n", "cp1252",
         "line 50002: not CP1252; say which it is, such as --encoding utf-8"),
        (TEXT.encode("utf-16") + b"x", None, "line 4: not UTF-16; say which it is, such as --encoding latin-1"),
        (TEXT.encode("utf-16-le"), None, "line 1: a zero byte, expected text; is it --encoding utf-16?"),
        (TEXT.encode("utf-16-le"), "utf-16",
         "no mark of UTF-16 at its start; say --encoding utf-16-le or utf-16-be"),
        (TEXT.encode("utf-16"), "latin-1", "begins with the mark of UTF-16, not latin-1; leave --encoding out"),
        (TEXT.encode("utf-8-sig"), "utf-16", "begins with the mark of UTF-8, not utf-16; leave --encoding out"),
    ],
    ids=itertools.count(),
)  # fmt: skip
def test_what_is_not_in_the_encoding_is_told_with_its_line(
    tmp_path: Path, blob: bytes, encoding: str | None, message: str
) -> None:
    assert refusal(tmp_path, blob, encoding=encoding) == message


# --- lines --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    ["a,b\n1,2\n3,4\n", "a,b\n1,2\n3,4", "a,b\r\n1,2\r\n3,4\r\n", "a,b\r1,2\r3,4\r", "a,b\r1,2\r\n3,4\n\r\n\r\n\n\r",
     "a,b\r\r\n1,2\r\r\n3,4\r\r\n", "a,b\n\n\n1,2\n\n3,4\n\n\n", '"a","b"\n"1","2"\n"3",4\n'],
    ids=itertools.count(),
)  # fmt: skip
@pytest.mark.parametrize("block", [16, 1 << 20])
def test_lines_end_as_on_any_machine(tmp_path: Path, text: str, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_tables, "BLOCK", block)
    assert read(tmp_path, text.encode()) == {"a": ["1", "3"], "b": ["2", "4"]}


@pytest.mark.parametrize("text", ["a,b", "a,b\n", "a,b\r\n\r\n", "\ufeffa,b"])
def test_a_header_alone_is_a_table_without_rows(tmp_path: Path, text: str) -> None:
    assert read(tmp_path, text.encode()) == {"a": [], "b": []}


@pytest.mark.parametrize(
    ("blob", "message"),
    [
        (b"", "line 1 is empty, expected a header with the column names"),
        (b"\na,b\n1,2\n", "line 1 is empty, expected a header with the column names"),
        (b"  \n", "line 1 is empty, expected a header with the column names"),
        (b"a,b\n1,2\n3\0,4\n", "line 3: a zero byte, expected text; is it --encoding utf-16?"),
        (b"a,b\n1,2,\n", "line 2: 3 cells, expected 2"),
        (b"a,b\n1,2\n  \n", "line 3: 1 cells, expected 2"),
        (b"a,b,b\n1,2,3\n", "column 'b' is there twice; rename one"),
        (b"a,,\n1,,\n", "several columns without a name; name them"),
    ],
)
def test_what_is_no_table_is_told_with_its_line(tmp_path: Path, blob: bytes, message: str) -> None:
    assert refusal(tmp_path, blob) == message


# --- quotes -------------------------------------------------------------------------------------------------------

EDGES = [f"{i},{i + 1}" for i in range(5000)]


def edges(**changed: str) -> bytes:
    rows = list(EDGES)
    for row, text in changed.items():
        rows[int(row[1:])] = text
    return "\n".join(["source,target", *rows, ""]).encode()


@pytest.mark.parametrize(
    "changed",
    [
        {"_1000": '"1000,1001', "_4000": '"4000,4001'},
        {"_1000": '"1000,1001', "_4000": '4000",4001'},
        {"_1000": '1000,"1001', "_4000": '4000,4001"'},
        {"_1000": '1000,"1001', "_4999": '4999,5000"'},
        {"_1000": '1000,"1001'},
    ],
)
@pytest.mark.parametrize("block", [1 << 10, 1 << 24])
def test_stray_quotes_swallow_no_rows(
    tmp_path: Path, changed: dict[str, str], block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_tables, "BLOCK", block)
    message = refusal(tmp_path, edges(**changed))
    assert message.startswith("line 1002: a quoted cell does not end on this line; is a quote missing?")


def test_cells_of_several_lines_are_read_if_that_is_said(tmp_path: Path) -> None:
    blob = b'a,"b\nc"\n1,"x\n\ny"\n2,z\n'
    assert read(tmp_path, blob, multiline=True) == {"a": ["1", "2"], "b\nc": ["x\n\ny", "z"]}
    message = refusal(tmp_path, blob.replace(b'"b\nc"', b"b"))
    assert message == (
        "line 2: a quoted cell does not end on this line; is a quote missing? (--multiline if cells have several lines)"
    )
    # even then the quotes have to fit
    message = refusal(tmp_path, edges(_1000='"1000,1001', _4000='"4000,4001'), multiline=True)
    assert message == "line 1002: a quoted cell does not end on this line; is a quote missing?"


def test_quotes_within_a_cell_and_quotes_that_are_doubled(tmp_path: Path) -> None:
    assert read(tmp_path, b'a,b\n5" pipe,"say ""so"""\n"x, y",6\' 3"\n') == {
        "a": ['5" pipe', "x, y"],
        "b": ['say "so"', "6' 3\""],
    }


def test_rows_that_are_lost_without_a_reason_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_tables, "rows", lambda *_, **__: iter([(1, ["a", "b"])]))
    assert refusal(tmp_path, b'a,b\n1,"x\ny"\n') == "1 rows on 3 lines; is a quote missing?"


# --- no header ----------------------------------------------------------------------------------------------------


def test_without_a_header_the_first_line_is_a_row(tmp_path: Path) -> None:
    assert read(tmp_path, b"x;y\ny;z\n", header=False) == {"column 1": ["x", "y"], "column 2": ["y", "z"]}
    assert read(tmp_path, b"x,x\n", header=False) == {"column 1": ["x"], "column 2": ["x"]}
    assert read(tmp_path, b"x,x", header=False) == {"column 1": ["x"], "column 2": ["x"]}
    assert refusal(tmp_path, b"", header=False) == "line 1 is empty, expected the first row"
    assert refusal(tmp_path, b"x,y\nz\n", header=False) == "line 2: 1 cells, expected 2"


# --- width --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mark", ",;")
def test_too_many_columns_are_refused_before_they_are_read(tmp_path: Path, mark: str) -> None:
    wide = mark.join(map(str, range(100_000))).encode()
    assert refusal(tmp_path, b"\n".join([wide] * 4)).startswith("line 1: over 10,000 columns; a column can hold a")
    assert refusal(tmp_path, b"x" + wide, separator=mark).startswith("line 1: over 10,000 columns")
    assert len(read(tmp_path, mark.join(map(str, range(2000))).encode() + b"\n")) == 2000


def test_a_long_row_does_not_decide_the_separator(tmp_path: Path) -> None:
    assert read(tmp_path, b"a;b\n1;" + b"," * (1 << 21) + b"\n")["a"] == ["1"]


# --- JSON lines ---------------------------------------------------------------------------------------------------


def test_json_values_as_they_are_written(tmp_path: Path) -> None:
    blob = (
        b'{"a": NaN, "b": 12345678901234567890.25, "c": [0.10, -2, 1e3]}\n{"a": "NaN", "b": Infinity, "c": [null, 1]}'
    )
    assert read(tmp_path, blob, "t.jsonl") == {
        "a": [None, "NaN"],
        "b": ["12345678901234567890.25", "Infinity"],
        "c": ["[0.10, -2, 1e3]", "[null, 1]"],
    }
    table = read_table(tmp_path / "t.jsonl", "test")
    assert table.labels("a").to_pylist() == [None, None]
    assert table.is_vector("c")


def test_a_list_of_numbers_in_json_is_a_vector(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text('{"v": [0.5, 2]}\n{"v": [3, 4e-1]}\n')
    table = read_table(tmp_path / "t.jsonl", "test")
    assert table.vectors("v").tolist() == [[0.5, 2], [3, pytest.approx(0.4)]]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"a": 1, "b": 2, "a": 1}', "line 2: key 'a' is there twice"),
        (b'{"a": {"b": 1, "b": 1}}', "line 2: key 'b' is there twice"),
        (b'{"a": "x\0"}', "line 2: a zero byte, expected text; is it --encoding utf-16?"),
    ],
)
def test_json_that_says_two_things_is_refused(tmp_path: Path, line: bytes, message: str) -> None:
    assert refusal(tmp_path, b'{"a": 0}\n' + line + b"\n", "t.jsonl") == message


def test_what_excel_writes_in_germany(tmp_path: Path) -> None:
    text = io.StringIO()
    csv.writer(text, delimiter=";").writerows([["Name", "Größe", "Art"], ["Fuß", "1.234,5", "NA"], ["Zäh", "2,5", "x"]])
    (tmp_path / "t.csv").write_bytes(text.getvalue().encode("cp1252"))
    table = read_table(tmp_path / "t.csv", "nodes", dialect=Dialect(encoding="cp1252"))
    assert table.texts("Name").to_pylist() == ["Fuß", "Zäh"]
    assert table.numbers("Größe").tolist() == [1234.5, 2.5]
    assert table.labels("Art").to_pylist() == [None, "x"]
