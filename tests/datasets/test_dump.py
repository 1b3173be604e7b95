"""A network from a dump of any format: each step by hand, at both sides of each limit."""

from __future__ import annotations

import gzip
import io
import itertools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from fewnode.dataset import ClassSplit
from fewnode.datasets import dump
from fewnode.datasets.dump import Entry, Format, build_from_dump, linked_core
from fewnode.datasets.expected import Expected
from fewnode.datasets.lines import stream_lines
from fewnode.datasets.literal import BadLineError
from fewnode.errors import FewnodeError
from fewnode.graph import Graph


def first_look(line: bytes) -> Entry:
    try:
        record = json.loads(line)
    except ValueError:
        raise BadLineError("cut line") from None
    return Entry(record["id"], record.get("label"), "text" in record, record.get("year"))


def links(line: bytes) -> tuple[str, list[str]]:
    return first_look(line).id, json.loads(line)["links"]


def text(line: bytes) -> str:
    return str(json.loads(line)["text"])


LAYOUT = Format(first_look, links, text)


@pytest.fixture(autouse=True)
def small_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Classes of 10 to 12 nodes, a network in which every third class is for test, and half of the lines broken."""
    monkeypatch.setattr("fewnode.datasets.lines.MAX_BROKEN", 0.5)
    monkeypatch.setattr(dump, "MIN_CLASS", 10)
    monkeypatch.setattr(dump, "MAX_CLASS", 12)
    monkeypatch.setitem(dump.EXPECTED, "tiny", Expected(nodes=50, edges=45, attributes=4, classes=3, split=(1, 1, 1)))


def group(label: str, n: int = 10, **fields: Any) -> list[dict[str, Any]]:
    """A star around `label` 0."""
    record = {"label": label, "text": f"{label} text"} | fields
    return [record | {"id": f"{label} {i}", "links": [f"{label} 0"] if i else []} for i in range(n)]


def write(path: Path, records: list[dict[str, Any]], *lines: bytes, packed: bool = False) -> Path:
    blob = b"".join(line + b"\n" for line in (*(json.dumps(record).encode() for record in records), *lines))
    path.write_bytes(gzip.compress(blob) if packed else blob)
    return path


@pytest.mark.parametrize("packed", [False, True])
def test_a_network_by_hand(tmp_path: Path, packed: bool) -> None:
    records = [*group("owl"), *group("ant"), *group("fox"), *group("rare", 9), *group("many", 13)]
    records += [{"id": "nobody", "links": ["owl 0"]}, {"id": "mute", "label": "owl", "links": ["owl 0"]}]
    records[3] |= {"links": ["nobody", "fox 2", "rare 1", "owl 3"], "text": "zebra zebra owl"}
    records[4] |= {"text": "zebra"}
    path = write(tmp_path / "dump", records, b"{", packed=packed)
    data = build_from_dump("tiny", path, LAYOUT)
    assert data.name == "tiny"
    assert data.class_names == ("ant", "fox", "owl")
    assert data.node_names == tuple(f"{label} {i}" for label in ("owl", "ant", "fox") for i in range(10))
    assert data.y.tolist() == [2] * 10 + [0] * 10 + [1] * 10
    edges = {tuple(sorted(data.node_names[i] for i in pair)) for pair in data.graph.edge_index().T.tolist()}
    stars = {(f"{label} 0", f"{label} {i}") for label in ("owl", "ant", "fox") for i in range(1, 10)}
    assert edges == stars - {("owl 0", "owl 3")} | {("fox 2", "owl 3")}
    assert data.feature_names == ("ant", "fox", "owl", "zebra")  # `text` is in more than half
    assert data.graph.x[[3, 4, 12]].toarray().tolist() == [[0, 0, 1, 2], [0, 0, 0, 1], [1, 0, 0, 0]]
    assert data.split == ClassSplit(train=(2,), valid=(1,), test=(0,))
    assert data.info == {
        "source": "dump",
        "records": 55,
        "skipped": {"cut line": 1},
        "expected": {"nodes": 50, "edges": 45, "attributes": 4, "classes": 3, "split": [1, 1, 1]},
        "difference": {"nodes": -20, "edges": -18, "attributes": 0, "classes": 0, "split": [0, 0, 0]},
    }


def test_there_are_as_many_attributes_as_expected(tmp_path: Path) -> None:
    records = [
        record | {"text": f"{record['label']} a1 b2 c3"} for name in ("x1", "x2", "x3") for record in group(name)
    ]
    for record in records[:20]:
        record["text"] = record["text"].replace("a1", "z9").replace("b2", "y8")
    assert build_from_dump("tiny", write(tmp_path / "dump", records), LAYOUT).feature_names == ("a1", "b2", "x1", "x2")


@pytest.mark.parametrize(("records", "count"), [([], "0"), (group("owl", 9), "9"), (group("owl", 13), "13")])
def test_a_dump_without_a_class_of_the_right_size_is_refused(tmp_path: Path, records: Any, count: str) -> None:
    path = write(tmp_path / "dump", records)
    for layout in (LAYOUT, Format(first_look, links, text, min_years=5)):
        with pytest.raises(FewnodeError) as caught:
            build_from_dump("tiny", path, layout)
        assert str(caught.value) == f"{path}: {count} records, but no class has 10 to 12 linked nodes"


def test_nodes_without_any_link_are_no_network(tmp_path: Path) -> None:
    path = write(tmp_path / "dump", [record | {"links": []} for record in group("owl", 12)])
    with pytest.raises(FewnodeError, match="12 records, but no class has 10 to 12 linked nodes"):
        build_from_dump("tiny", path, LAYOUT)


def changed_after_a_pass(content: bytes) -> Callable[[Path], Iterator[bytes | None]]:
    """Reads a dump which, when it is read again, has other content."""
    passes = itertools.count()

    def read(path: Path) -> Iterator[bytes | None]:
        if next(passes):
            path.write_bytes(content)
        yield from stream_lines(path)

    return read


def test_a_dump_that_changes_is_refused_with_what_is_wrong_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "dump"
    for content, how in ((b"", "cut"), (b"{\n" * 12, "cut line")):
        write(path, group("owl"))
        monkeypatch.setattr(dump, "stream_lines", changed_after_a_pass(content))
        with pytest.raises(FewnodeError) as caught:
            build_from_dump("tiny", path, LAYOUT)
        assert str(caught.value) == f"{path}: changed while it was read ({how}); is it being written?"


@pytest.mark.parametrize("good", [3, 13])  # ten texts are read for the words, and once more to count them
def test_a_text_that_cannot_be_read_again_is_refused_with_the_file(tmp_path: Path, good: int) -> None:
    path, seen = write(tmp_path / "dump", group("owl")), itertools.count()

    def some(line: bytes) -> str:
        if next(seen) == good:
            raise BadLineError("cut line")
        return text(line)

    with pytest.raises(FewnodeError) as caught:
        build_from_dump("tiny", path, Format(first_look, links, some))
    assert str(caught.value) == f"{path}: changed while it was read (cut line); is it being written?"


@pytest.mark.parametrize("packed", [False, True])
def test_only_a_compressed_file_is_copied_and_then_it_is_not_read_again(
    tmp_path: Path, packed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, passes = write(tmp_path / "dump", group("owl"), packed=packed), []

    def read_once(path: Path) -> Iterator[bytes | None]:
        passes.append(path)
        yield from stream_lines(path)
        if packed:
            path.unlink()

    monkeypatch.setattr(dump, "stream_lines", read_once)
    assert build_from_dump("tiny", path, LAYOUT).graph.n == 10
    assert len(passes) == (1 if packed else 2)


def test_a_class_name_is_kept_to_its_last_character(tmp_path: Path) -> None:
    path = write(tmp_path / "dump", [*group("owl\0"), *group("owl")])
    assert build_from_dump("tiny", path, LAYOUT).class_names == ("owl", "owl\0")


# --- step by step -------------------------------------------------------------------------------------------------


def test_the_first_pass_notes_every_line_and_copies_those_that_can_be_nodes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dump, "MAX_CLASS", 2)
    many = group("owl", 4, year=1990)
    old = {"id": "old", "label": "owl", "year": 1950}
    lines = [json.dumps(record).encode() for record in (*many, old, {"id": "nobody"}, many[0], *group("ant", 1))]
    path = write(tmp_path / "dump", [], *lines, b"{", b"")
    copy = io.BytesIO()
    index, skipped = dump._read_index(path, LAYOUT, copy)
    assert index.classes.tolist() == [0, 0, 0, 0, -1, -1, -1, 1, -1, -1]
    assert (index.names, index.sizes) == ({"owl": 0, "ant": 1}, [5, 1])
    assert index.years[0] == (1950, 1990)
    assert skipped.as_counts() == {"cut line": 2, "duplicate id": 1}
    assert copy.read().split(b"\n") == [*lines[:2], b"", b"", b"", b"", b"", lines[7], b"", b"", b""]


def test_too_long_a_line_is_no_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fewnode.datasets.lines.MAX_LINE", 300)
    monkeypatch.setattr("fewnode.datasets.lines.CHUNK", 100)
    path = write(tmp_path / "dump", [group("owl", 1, text="x" * 400)[0], *group("ant", 1)])
    copy = io.BytesIO()
    index, skipped = dump._read_index(path, LAYOUT, copy)
    assert (index.classes.tolist(), skipped.as_counts()) == ([-1, 0], {"longer than 16 MB": 1})
    assert copy.read().startswith(b'\n{"label": "ant"')


def test_an_id_that_is_there_again_is_found_whatever_it_is(tmp_path: Path) -> None:
    records = [{"id": f"node {i}"} for i in range(5000)]
    index, skipped = dump._read_index(write(tmp_path / "dump", [*records, *records]), LAYOUT, None)
    assert (len(index.classes), skipped.as_counts()) == (10_000, {"duplicate id": 5000})


def test_keys_that_were_there_before_are_found_in_order() -> None:
    keys = np.array([5, 0, 5, 0, 7, 5, 1, 1], np.uint64)
    assert dump._repeated(keys).tolist() == [2, 5, 7]
    many = np.tile(np.arange(1, 1001, dtype=np.uint64), 3)
    assert dump._repeated(many).tolist() == list(range(1000, 3000))
    assert dump._repeated(keys[:0]).tolist() == []


def test_classes_of_the_right_size_and_age_are_candidates() -> None:
    index = dump._Index()
    for label, n, years in (("a", 10, 5), ("b", 9, 5), ("c", 12, 5), ("d", 13, 5), ("e", 10, 4), ("f", 10, 9)):
        for i in range(n):
            index.add(Entry(f"{label}{i}", label, True, 2000 + (years if i == 1 else 0)))
    index.add(Entry("mute", "a", False, 2000))
    index.add(Entry("nobody", None, True))
    index.add(Entry("mute too", "last", False))
    numbers, y = dump._candidates(index, 0)
    assert y.dtype == np.int64
    assert y.tolist() == [0] * 10 + [2] * 12 + [4] * 10 + [5] * 10
    assert numbers.tolist() == [*range(10), *range(19, 31), *range(44, 64)]
    assert sorted(set(dump._candidates(index, 5)[1].tolist())) == [0, 2, 5]


def test_links_are_read_and_the_lines_put_aside() -> None:
    given: list[bytes] = []

    def read(line: bytes) -> tuple[str, list[str]]:
        given.append(line)
        return [("a b", ["c", "zoo", "a b"]), ("c", []), ("d", ["c", "a b"]), ("e", ["zoo"])][len(given) - 1]

    aside = io.BytesIO()
    lines = [b"first  \n", b"\nsecond", b"third X\n", None]
    names, adj = dump._read_links(Path("dump"), Format(first_look, read, text), lines, aside)
    assert given == [*lines[:3], b""]
    assert names == ["a b", "c", "d", "e"]
    assert adj.toarray().tolist() == [[0, 1, 1, 0], [1, 0, 1, 0], [1, 1, 0, 0], [0, 0, 0, 0]]
    assert aside.getvalue() == b"first  \n\nsecond\nthird X\n\n"


def test_texts_are_read_from_the_start_each_time() -> None:
    aside = io.BytesIO(b'{"text": "a"}\n{"text": "b"}\n{"text": "c"}\n')
    for _ in range(2):
        assert list(dump._texts(Path("dump"), LAYOUT, np.array([0, 2]), aside)) == ["a", "c"]

    def damaged(line: bytes) -> str:
        raise BadLineError("NUL byte")

    with pytest.raises(FewnodeError) as caught:
        list(dump._texts(Path("dump"), Format(first_look, links, damaged), np.array([0]), aside))
    assert str(caught.value) == "dump: changed while it was read (NUL byte); is it being written?"


def test_nodes_and_classes_go_until_nothing_changes() -> None:
    y = np.array([0, 0, 1, 1, 2, 2, 2])
    adj = Graph.from_edges(np.array([[0, 1, 2, 4], [1, 2, 5, 5]]), 7).adj
    # 3 and 6 have no neighbour; without 3 its class is too small, and so 2 goes; 0, 1, 4 and 5 still have one
    assert linked_core(adj, y, 2).tolist() == [0, 1, 4, 5]
    assert linked_core(adj, y, 3).tolist() == []
    assert linked_core(sp.csr_array((0, 0)), y[:0], 1).tolist() == []


# --- fields -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("value", "found"), [("a", "a"), (" a ", " a "), ("", None), (" \t", None), (None, None)])
def test_a_text_that_is_blank_is_none(value: str | None, found: str | None) -> None:
    assert dump.text_field({"name": value}, "name") == found
    assert dump.text_field({}, "name") is None


@pytest.mark.parametrize("name", ["a" * 1000, "ü", "\ud7ff", "\ue000", "é\U0001f600"])
def test_names_that_can_be_kept(name: str) -> None:
    assert dump.short(name) == dump.required_id({"id": name}, "id") == name


@pytest.mark.parametrize(
    ("name", "kind"), [("a" * 1001, "name too long"), ("a\ud800", "not UTF-8"), ("\udfffa", "not UTF-8")]
)
def test_names_that_cannot_be_kept(name: str, kind: str) -> None:
    with pytest.raises(BadLineError) as caught:
        dump.required_id({"id": name}, "id")
    assert str(caught.value) == kind


@pytest.mark.parametrize("value", [7, ["a"], {}, True])
def test_a_field_of_the_wrong_type_is_refused(value: Any) -> None:
    for read, given in ((dump.text_field, value), (dump.list_field, "a"), (dump.list_field, ["a", value])):
        with pytest.raises(BadLineError) as caught:
            read({"name": given}, "name")
        assert str(caught.value) == "wrong type"
    with pytest.raises(BadLineError) as caught:
        dump.required_id({"name": value}, "id")
    assert str(caught.value) == "missing field"


def test_a_list_that_is_not_there_is_empty() -> None:
    assert dump.list_field({"name": ["a", ""]}, "name") == ["a", ""]
    assert dump.list_field({"name": None}, "name") == dump.list_field({}, "name") == []
