"""DBLP: AMiner's format in, long-lived venues with citations and bags of words out."""

import json
from pathlib import Path
from typing import Any

import pytest

from fewnode.datasets import dblp
from fewnode.datasets.dblp import MIN_YEARS, build_dblp
from fewnode.datasets.dump import MAX_CLASS, MIN_CLASS
from fewnode.datasets.literal import BadLineError
from fewnode.errors import FewnodeError

Record = dict[str, Any]
FIRST = 1990


def paper(number: str, venue: str = "KDD", year: int = FIRST, cites: tuple[str, ...] = (), **fields: Any) -> Record:
    return {
        "id": number,
        "title": 'On it\'s "graphs"',
        "authors": [{"name": "A. Author", "id": "1"}],
        "venue": {"raw": venue, "id": "106296714"},
        "year": year,
        "n_citation": 3,
        "doc_type": "Conference",
        "references": list(cites),
        "indexed_abstract": {"IndexLength": 3, "InvertedIndex": {"Graphs": [0, 2], venue: [1]}},
        "fos": [{"name": "Computer science", "w": 0.4}],
    } | fields


def venue(name: str, n: int = MIN_CLASS, years: int = MIN_YEARS) -> list[Record]:
    """A star around paper `name`-0, whose first and last paper are `years` apart."""
    first = paper(f"{name}-0", name, FIRST + years)
    return [first, *(paper(f"{name}-{i}", name, FIRST, (f"{name}-0",)) for i in range(1, n))]


def write(folder: Path, records: list[Record], *lines: bytes) -> Path:
    path = folder / "dblp_papers_v11.txt"
    path.write_bytes(b"\n".join([*(json.dumps(record).encode() for record in records), *lines, b""]))
    return folder


def test_papers_become_nodes_references_edges_and_venues_classes(tmp_path: Path) -> None:
    kdd, www = venue("KDD"), venue("WWW")
    www[5]["references"] = ["KDD-2", "elsewhere"]
    data = build_dblp(write(tmp_path, [*kdd, *www]))
    assert data.name == "dblp"
    assert data.class_names == ("KDD", "WWW")
    assert (data.graph.n, data.graph.n_edges) == (200, 198)
    assert [data.node_name(i) for i in data.graph.adj[[data.node("WWW-5")]].indices] == ["KDD-2"]
    assert data.feature_names == ("kdd", "www")  # `graphs` is in more than half of the abstracts
    assert data.graph.x[[data.node("WWW-5")]].toarray().tolist() == [[0, 1]]
    assert data.info["expected"]["nodes"] == 40672
    assert data.info["difference"]["nodes"] == 200 - 40672


def test_a_word_counts_as_often_as_it_stands_in_the_abstract(tmp_path: Path) -> None:
    records = [*venue("KDD"), *venue("WWW")]
    for record in records[:3]:
        record["indexed_abstract"] = {"IndexLength": 4, "InvertedIndex": {"Deep,": [0, 3], "nets": [1], "deep": [2]}}
    data = build_dblp(write(tmp_path, records))
    assert data.feature_names == ("deep", "kdd", "nets", "www")
    assert data.graph.x[[data.node("KDD-1")]].toarray().tolist() == [[3, 0, 1, 0]]


def test_venues_too_young_too_small_or_too_large_go(tmp_path: Path) -> None:
    short, small = venue("Short", years=MIN_YEARS - 1), venue("Small", MIN_CLASS - 1)
    large, kept = venue("Large", MAX_CLASS + 1), venue("Kept")
    assert build_dblp(write(tmp_path, [*short, *small, *large, *kept])).class_names == ("Kept",)


def test_the_age_of_a_venue_counts_papers_that_are_no_nodes(tmp_path: Path) -> None:
    records = [*venue("KDD", years=0), paper("old", "KDD", FIRST - MIN_YEARS, indexed_abstract=None)]
    data = build_dblp(write(tmp_path, records))
    assert data.class_names == ("KDD",)
    assert "old" not in data.node_id


@pytest.mark.parametrize(
    "fields",
    [
        {"venue": None},
        {"venue": {}},
        {"venue": {"raw": ""}},
        {"indexed_abstract": None},
        {"indexed_abstract": {"IndexLength": 0, "InvertedIndex": {}}},
        {"indexed_abstract": {}},
        {"references": None},
    ],
)
def test_fields_that_many_papers_lack_are_not_damage(tmp_path: Path, fields: Record) -> None:
    records = venue("KDD", MIN_CLASS + 1)
    records[7] |= fields
    data = build_dblp(write(tmp_path, records))
    assert "KDD-7" not in data.node_id
    assert data.info["skipped"] == {}


def test_a_venue_may_have_a_name_and_no_raw_name(tmp_path: Path) -> None:
    records = venue("KDD", MIN_CLASS)
    records[4]["venue"] = {"name": "KDD"}
    assert "KDD-4" in build_dblp(write(tmp_path, records)).node_id


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        (json.dumps(paper("X")).encode()[:90], "cut line"),
        (json.dumps(paper("X") | {"year": "1999"}).encode(), "number as text"),
        (json.dumps(paper("X") | {"year": 1999.5}).encode(), "wrong type"),
        (json.dumps(paper("X") | {"year": True}).encode(), "wrong type"),
        (json.dumps(paper("X", year=4_000_000_000)).encode(), "number too large"),
        (json.dumps(paper("X", year=0)).encode(), "number too small"),
        (json.dumps(paper("X") | {"year": float("nan")}).encode(), "NaN or infinity"),
        (json.dumps(paper("X") | {"id": 4_000_000_000}).encode(), "wrong type"),
        (json.dumps(paper("X") | {"id": ""}).encode(), "missing field"),
        (json.dumps({k: v for k, v in paper("X").items() if k != "id"}).encode(), "missing field"),
        (json.dumps(paper("KDD-3", "WWW")).encode(), "duplicate id"),
        (json.dumps(paper("X") | {"venue": "KDD"}).encode(), "wrong type"),
        (json.dumps(paper("X", "K" * 2000)).encode(), "name too long"),
        (json.dumps(paper("X\ud800")).encode(), "not UTF-8"),
        (json.dumps(paper("X") | {"references": "Y"}).encode(), "wrong type"),
        (json.dumps(paper("X") | {"references": [1, 2]}).encode(), "wrong type"),
        (json.dumps(paper("X") | {"indexed_abstract": "text"}).encode(), "wrong type"),
        (json.dumps(paper("X") | {"indexed_abstract": {"InvertedIndex": {"a": 1}}}).encode(), "wrong type"),
    ],
)
def test_broken_lines_are_counted_by_kind(tmp_path: Path, line: bytes, kind: str) -> None:
    records = venue("KDD")
    clean = build_dblp(write(tmp_path, records))
    data = build_dblp(write(tmp_path, records, line))
    assert data.info["skipped"] == {kind: 1}
    assert (data.sha256, data.node_names) == (clean.sha256, clean.node_names)
    with pytest.raises(FewnodeError, match=f"2 of 102 lines cannot be used.*: line 101: {kind}; line 102: {kind}$"):
        build_dblp(write(tmp_path, records, line, line))


@pytest.mark.parametrize("year", [1000, 1999, 9999, None])
def test_years_of_four_digits_and_none_are_read(year: int | None) -> None:
    line = json.dumps(paper("X") | {"year": year}).encode()
    assert dblp._first_look(line) == ("X", "KDD", True, year)


@pytest.mark.parametrize(
    ("year", "kind"),
    [(999, "number too small"), (10_000, "number too large"), (" 1999 ", "number as text"), ("MCM", "wrong type")],
)
def test_other_years_are_refused(year: Any, kind: str) -> None:
    with pytest.raises(BadLineError) as caught:
        dblp._first_look(json.dumps(paper("X") | {"year": year}).encode())
    assert str(caught.value) == kind
