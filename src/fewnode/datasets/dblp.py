"""DBLP (section 5.1, appendix A.1): papers that cite each other, classified by their venue.

Built from the AMiner citation network, version 11 (`dblp_papers_v11.txt`), a JSON object a line: `{"id": "100001334",
"venue": {"raw": "Lecture Notes in Computer Science", …}, "year": 2014, "references": ["1535888970", …],
"indexed_abstract": {"IndexLength": 58, "InvertedIndex": {"word": [0, 7], …}}, …}`.

Venues stay that span at least 20 years, counted over all their papers, and have 100 to 1000 papers with an abstract.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fewnode.dataset import Dataset
from fewnode.datasets.dump import Entry, Format, build_from_dump, field_of, list_field, required_id, short, text_field
from fewnode.datasets.lines import find_raw
from fewnode.datasets.literal import BadLineError, parse_record

MIN_YEARS = 20


def build_dblp(raw: Path) -> Dataset:
    """The network from `dblp_papers_v11.txt` or a folder that has it."""
    path = find_raw(raw, "dblp_papers_v11.txt")
    return build_from_dump("dblp", path, Format(_first_look, _references, _abstract, MIN_YEARS))


def _first_look(line: bytes) -> Entry:
    record = parse_record(line)
    list_field(record, "references")
    return Entry(required_id(record, "id"), _venue(record), bool(_inverted_index(record)), _year(record))


def _venue(record: dict[str, Any]) -> str | None:
    venue = field_of(record, "venue", dict) or {}
    name = text_field(venue, "raw") or text_field(venue, "name")
    return short(name) if name else None


def _year(record: dict[str, Any]) -> int | None:
    year = record.get("year")
    if year is None:
        return None
    if isinstance(year, str) and year.strip().isdecimal():
        raise BadLineError("number as text")
    if not isinstance(year, int) or isinstance(year, bool):
        raise BadLineError("wrong type")
    if not 1000 <= year <= 9999:
        raise BadLineError("number too large" if year > 9999 else "number too small")
    return year


def _inverted_index(record: dict[str, Any]) -> dict[str, list[Any]]:
    """Where each word of the abstract stands; empty where there is no abstract."""
    index = field_of(field_of(record, "indexed_abstract", dict) or {}, "InvertedIndex", dict) or {}
    if not all(isinstance(places, list) for places in index.values()):
        raise BadLineError("wrong type")
    return index


def _references(line: bytes) -> tuple[str, list[str]]:
    record = parse_record(line)
    return required_id(record, "id"), list_field(record, "references")


def _abstract(line: bytes) -> str:
    """The words of the abstract, each as often as it stands there; a bag of words does not need their order."""
    index = _inverted_index(parse_record(line))
    return " ".join(word for word, places in index.items() for _ in places)
