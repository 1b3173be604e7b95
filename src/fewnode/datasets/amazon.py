"""Amazon-Clothing and Amazon-Electronics (section 5.1, appendix A.1): products, linked as shoppers link them.

Built from SNAP's `meta_*.json.gz`. In spite of the name a line there is a Python literal: `{'asin': 'B000GDAOUC',
'related': {'also_viewed': ['B003LY5T9O']}, 'categories': [['Clothing, Shoes & Jewelry', …, 'Shoelaces']],
'description': 'White Athletic Lace', …}`. Lines of JSON with the same fields are read too.

The class is the last name of the first category path. A product without a description is no node: of the 9,360 nodes
in the authors' test file, none is without attributes.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fewnode.dataset import Dataset
from fewnode.datasets.dump import Entry, Format, build_from_dump, field_of, list_field, required_id, short, text_field
from fewnode.datasets.lines import find_raw
from fewnode.datasets.literal import BadLineError, parse_record

_CUT_OUT = object()


def _patterns(quote: bytes, texts: bytes) -> dict[str, tuple[bytes, re.Pattern[bytes]]]:
    """How `related` and `description` begin, and what they are if there is nothing odd about them.

    Not odd are ids of plain ASCII, and a text of ASCII with common escapes that begins with a letter or a digit.
    """
    name = rb"Q[ !#-&(-\[\]-~]*+Q"
    ids = rb"\[(?:%b(?:, (?=Q)|(?=\])))*+\]" % name
    related = rb"QrelatedQ: \{(?:%b: %b(?:, (?=Q)|(?=\})))*+\}" % (name, ids)
    description = rb"QdescriptionQ: (?:%b)" % texts
    return {
        field: (quote + field.encode() + quote, re.compile(pattern.replace(b"Q", quote)))
        for field, pattern in (("related", related), ("description", description))
    }


_SINGLE = rb"'\w[ -&(-\[\]-~]*+(?:\\[nrt'\"\\][ -&(-\[\]-~]*+)*+'"
_DOUBLE = rb'"\w[ !#-\[\]-~]*+(?:\\[nrt"\\][ !#-\[\]-~]*+)*+"'
_CUTS = {b"'": _patterns(b"'", _SINGLE + b"|" + _DOUBLE), b'"': _patterns(b'"', _DOUBLE)}


def build_amazon_clothing(raw: Path) -> Dataset:
    """Products of Clothing, Shoes and Jewelry; an edge where one was also viewed with the other."""
    return _build("amazon-clothing", raw, "meta_Clothing_Shoes_and_Jewelry.json", "also_viewed")


def build_amazon_electronics(raw: Path) -> Dataset:
    """Products of Electronics; an edge where one was bought together with the other."""
    return _build("amazon-electronics", raw, "meta_Electronics.json", "bought_together")


def _build(name: str, raw: Path, file_name: str, relation: str) -> Dataset:
    return build_from_dump(name, find_raw(raw, file_name), Format(_first_look, _links(relation), _text))


def _first_look(line: bytes) -> Entry:
    record = _parse(line, "related", "description")
    if record.get("related") is not _CUT_OUT:
        related = field_of(record, "related", dict) or {}
        for relation in related:
            list_field(related, relation)
    has_text = record.get("description") is _CUT_OUT or text_field(record, "description") is not None
    return Entry(required_id(record, "asin"), _label(record), has_text)


def _parse(line: bytes, *cut: str) -> dict[str, Any]:
    """The record, perhaps with `_CUT_OUT` in place of the fields `cut`, which are then as they should be.

    Ids and descriptions are most of a file, and to make strings of them takes most of the time. So they are matched,
    which checks them, and cut out of the line. Whether what was cut out really was the field, and not part of some
    text, the rest tells: it must have the mark -1 in that field.
    """
    patterns = _CUTS.get(line[1:2], _CUTS[b"'"])
    rest = line
    marked = []
    for name in cut:
        key, pattern = patterns[name]
        start = rest.find(key)
        if start >= 0 and (match := pattern.match(rest, start)):
            rest = b"%b%b: -1%b" % (rest[:start], key, rest[match.end() :])
            marked.append(name)
    if marked:
        try:
            record = parse_record(rest)
        except BadLineError:
            return parse_record(line)
        if [record.get(name) for name in marked] == [-1] * len(marked):
            record.update(dict.fromkeys(marked, _CUT_OUT))
            return record
    return parse_record(line)


def _label(record: dict[str, Any]) -> str | None:
    paths = record.get("categories")
    if not paths:
        return None
    if not isinstance(paths, list) or not isinstance(paths[0], list):
        raise BadLineError("wrong type")
    name = paths[0][-1] if paths[0] else None
    if name is not None and not isinstance(name, str):
        raise BadLineError("wrong type")
    return short(name) if name else None


def _links(relation: str) -> Callable[[bytes], tuple[str, list[str]]]:
    def links(line: bytes) -> tuple[str, list[str]]:
        record = parse_record(line)
        return required_id(record, "asin"), list_field(field_of(record, "related", dict) or {}, relation)

    return links


def _text(line: bytes) -> str:
    return html.unescape(text_field(_parse(line, "related"), "description") or "")
