"""Raw dumps: a line gives the record that Python would read; what is broken is told apart, counted and never held."""

import ast
import gzip
import json
import tracemalloc
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fewnode.datasets import lines
from fewnode.datasets.lines import Skipped, find_raw, pick, stream_lines
from fewnode.datasets.literal import BadLineError, parse_record
from fewnode.errors import FewnodeError

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.tuples(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner, inner),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), VALUES, max_size=4))
@settings(deadline=None)
def test_a_literal_reads_as_python_reads_it(record: dict[str, Any]) -> None:
    assert parse_record(repr(record).encode()) == record


@given(st.text(alphabet="'\"\\nx41u0{}[]:, ab\t\u00e9", max_size=30), st.sampled_from("'\""))
@settings(max_examples=400, deadline=None)
def test_odd_quotes_and_escapes_are_read_or_refused_as_python_does(body: str, quote: str) -> None:
    text = f"{{'k': {quote}{body}{quote}, 'n': [1, 2.5]}}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            expected = ast.literal_eval(text)
        except (ValueError, SyntaxError):
            with pytest.raises(BadLineError):
                parse_record(text.encode())
            return
    if isinstance(expected, dict):
        assert parse_record(text.encode()) == expected


@given(
    st.dictionaries(st.text(), st.none() | st.booleans() | st.integers() | st.text() | st.lists(st.text())),
    st.booleans(),
)
@settings(deadline=None)
def test_json_reads_as_json(record: dict[str, Any], ascii_only: bool) -> None:
    assert parse_record(json.dumps(record, ensure_ascii=ascii_only).encode()) == record


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        (b"", "empty line"),
        (b" \r", "empty line"),
        (b"{'a': 'b\0'}", "NUL byte"),
        (b"{'a': '\xff'}", "not UTF-8"),
        (b"\xef\xbb\xbf{'a': 1}", "byte-order mark"),
        (b"{'a': 'it's'}", "wrong quote"),
        (b"{'a': 'b\", 'c': 1}", "wrong quote"),
        (b"{'a': 'b', 'c': 'd", "cut line"),
        (b"{'a': ['b', 'c'", "cut line"),
        (b"{'a': {'b': 1}", "cut line"),
        (b"{'a': 1} and more", "trailing garbage"),
        (b'{"a": 1}, {"a": 2}]', "trailing garbage"),
        (b"{'a': nan}", "NaN or infinity"),
        (b'{"a": NaN}', "NaN or infinity"),
        (b'{"a": -Infinity}', "NaN or infinity"),
        (b"{'a': inf, 'b': 'c\"'}", "NaN or infinity"),
        (b"{'a': %s}" % (b"9" * 5000), "number too large"),
        (b"{'a': __import__('os').getcwd()}", "neither JSON nor a Python literal"),
        (b"{'a': 1 + 1}", "neither JSON nor a Python literal"),
        (b"{'a': " + b"1+" * 50_000 + b"1}", "neither JSON nor a Python literal"),
        (b"{'a': " + b"-" * 100_000 + b"1}", "neither JSON nor a Python literal"),
        (b"{'a': " + b"(" * 1000 + b")" * 1000 + b"}", "neither JSON nor a Python literal"),
        (b"{'a': " + b"[" * 1000 + b"]" * 1000 + b"}", "nested too deep"),
        (b'{"a": ' * 1000 + b"0" + b"}" * 1000, "nested too deep"),
        (b"{'a': " + b"[" * 100 + b"]" * 100 + b", 'b': []}", "nested too deep"),
        (b"{'b': [[], {}], 'a': " + b"[" * 100 + b"]" * 100 + b"}", "nested too deep"),
        (b"[1, 2]", "not a record"),
        (b"'text'", "not a record"),
        (b"{'a', 'b'}", "not a record"),
        (b"plain text", "neither JSON nor a Python literal"),
    ],
)
def test_damage_is_told_apart(line: bytes, kind: str) -> None:
    with pytest.raises(BadLineError, match=f"^{kind}$"):
        parse_record(line)


@pytest.mark.parametrize(
    ("line", "record"),
    [
        (rb"""{'a': 'caf\xe9 \u2019 \'"\\ \N{BULLET} \/ \0 \101', "b": "it's"}""", None),
        (b"{u'a': None, 'b': True, 'c': (1, 2), 'd': 'x' 'y'}\r", None),
        (b"{'a': '%s'}" % (b"[{" * 500), None),
        (b"{'a': %s, 'b': [%s]}" % (b"[" * 99 + b"]" * 99, b"[], {}, " * 99), None),
        (b'{"a": "it\'s \\/ \\ud83d\\ude00", "b": null}', {"a": "it's / \U0001f600", "b": None}),
        (b"  {'a': 1}  ", {"a": 1}),
    ],
)
def test_what_is_odd_but_right_is_read(line: bytes, record: dict[str, Any] | None) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert parse_record(line) == (record or ast.literal_eval(line.decode().strip()))


# --- lines --------------------------------------------------------------------------------------------------------


def write(path: Path, content: bytes, pack: Callable[[bytes], bytes] = bytes) -> Path:
    path.write_bytes(pack(content))
    return path


@given(st.lists(st.binary(max_size=20).filter(lambda line: b"\n" not in line)), st.integers(1, 12), st.booleans())
@settings(deadline=None)
def test_lines_are_what_is_between_line_feeds_however_they_are_read(
    tmp_path_factory: pytest.TempPathFactory, content: list[bytes], chunk: int, packed: bool
) -> None:
    path = write(
        tmp_path_factory.mktemp("lines") / "dump",
        b"#" + b"\n".join(content) + b"\n",
        gzip.compress if packed else bytes,
    )
    expected = [b"#" + content[0], *content[1:]] if content else [b"#"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "CHUNK", chunk)
        patch.setattr(lines, "MAX_LINE", 12)
        assert list(stream_lines(path)) == [line if len(line) <= 12 else None for line in expected]


def test_the_mark_that_begins_a_file_is_dropped_and_a_last_line_needs_no_line_feed(tmp_path: Path) -> None:
    assert list(stream_lines(write(tmp_path / "a", b"\xef\xbb\xbfone\n\ntwo"))) == [b"one", b"", b"two"]
    assert list(stream_lines(write(tmp_path / "b", b""))) == []
    members = gzip.compress(b"one\ntw") + gzip.compress(b"o\n")
    assert list(stream_lines(write(tmp_path / "c", members))) == [b"one", b"two"]


def test_a_line_beyond_the_limit_is_never_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "MAX_LINE", 1 << 21)
    path = tmp_path / "dump"
    with path.open("wb") as file:
        file.write(b"first\n")
        file.truncate(200 << 20)
        file.seek(0, 2)
        file.write(b"\nlast\n")
    tracemalloc.start()
    try:
        assert list(stream_lines(path)) == [b"first", None, b"last"]
        assert tracemalloc.get_traced_memory()[1] < 10 << 20
    finally:
        tracemalloc.stop()


def test_gzip_that_is_cut_or_damaged_or_a_bomb_is_refused(tmp_path: Path) -> None:
    packed = gzip.compress("\n".join(str(i * i) for i in range(10_000)).encode())
    damaged = bytearray(packed)
    damaged[len(packed) // 2] ^= 0xFF
    for content in (packed[:-1], packed[: len(packed) // 2], packed[:12], bytes(damaged), packed + b"more"):
        with pytest.raises(FewnodeError, match=r"dump: gzip data is cut or damaged after"):
            list(stream_lines(write(tmp_path / "dump", content)))
    with pytest.raises(FewnodeError, match="inflates to over 100 times its size, refused"):
        list(stream_lines(write(tmp_path / "bomb", bytes(70 << 20), lambda plain: gzip.compress(plain, 1))))


def test_pick_takes_what_is_there() -> None:
    assert list(pick("abcdef", [0, 2, 5])) == ["a", "c", "f"]
    assert list(pick("abc", [1, 7])) == ["b"]
    assert list(pick("abc", [])) == []


def test_a_dump_is_found_in_a_folder_or_one_below_it_packed_or_not(tmp_path: Path) -> None:
    with pytest.raises(FewnodeError, match=r"neither a\.json nor a\.json\.gz is in it"):
        find_raw(tmp_path, "a.json")
    with pytest.raises(FewnodeError, match="no such file or folder"):
        find_raw(tmp_path / "b", "a.json")
    (tmp_path / "below").mkdir()
    below = write(tmp_path / "below" / "a.json.gz", b"")
    assert find_raw(tmp_path, "a.json") == below
    above = write(tmp_path / "a.json", b"")
    assert find_raw(tmp_path, "a.json") == above
    assert find_raw(below, "a.json") == below


def test_one_percent_may_be_skipped_and_more_is_refused_with_the_first_three_places() -> None:
    skipped = Skipped(Path("dump"))
    for number in range(199, 0, -2):
        skipped.add(number, "cut line")
    skipped.add(0, "NUL byte")
    skipped.check(10_100)
    assert skipped.as_counts() == {"NUL byte": 1, "cut line": 100}
    expected = (
        r"^dump: 101 of 10,099 lines cannot be used, more than 1%; the first: line 1: NUL byte; line 2: cut line; "
    )
    with pytest.raises(FewnodeError, match=expected + "line 4: cut line$"):
        skipped.check(10_099)
