"""Amazon-Clothing, Amazon-Electronics and DBLP from dumps of one record a line (section 5.1, appendix A.1).

A record with a label and a text can be a node. Classes of 100 to 1000 nodes stay, nodes without an edge go, and as the
one can undo the other both are repeated until nothing changes. Attributes are a bag of words. What is needed of the
records waits in a temporary database on the disk until it is known which classes stay.
"""

from __future__ import annotations

import html
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import numpy as np
from pydantic import BaseModel, Field, StringConstraints

from fewnode.dataset import ClassSplit, Dataset
from fewnode.errors import FewnodeError
from fewnode.formats.published import EXPECTED
from fewnode.graph import Graph
from fewnode.paper.records import BadRecordError, counted, find_raw, parse, read_lines
from fewnode.tables.words import choose_vocabulary, encode

MIN_CLASS, MAX_CLASS = 100, 1000
MAX_SKIPPED = 1_000_000
"""Broken lines after which no more are read: these are too many of any dump."""

Name = Annotated[str, StringConstraints(max_length=1000)]
Id = Annotated[Name, StringConstraints(min_length=1)]
LinkedText: TypeAlias = tuple[str, str | None, int | None, str | None, str]
"""A record's id, label, year, text and links; without a label or a text it is no node."""


class Product(BaseModel, strict=True):
    """A line of SNAP's `meta_*.json.gz`. In spite of the name it is a Python literal: `{'asin': 'B000GDAOUC',
    'related': {'also_viewed': ['B003LY5T9O']}, 'categories': [['Clothing, Shoes & Jewelry', …, 'Shoelaces']],
    'description': 'White Athletic Lace', …}`. Lines of JSON with the same fields are read too.
    """

    asin: Id
    categories: list[list[Name]] | None = None
    related: dict[str, list[str]] | None = None
    description: str | None = None

    def linked(self, relation: str) -> LinkedText:
        """The class is the last name of the first category path. A product without a description is no node: of the
        9,360 nodes in the authors' test file, none is without attributes."""
        path = self.categories[0] if self.categories else []
        text = html.unescape(self.description) if self.description and not self.description.isspace() else None
        links = "\n".join((self.related or {}).get(relation, []))
        return self.asin, (path[-1] or None) if path else None, None, text, links


class Venue(BaseModel, strict=True):
    raw: Name | None = None
    name: Name | None = None


class Abstract(BaseModel, strict=True):
    InvertedIndex: dict[str, list[int]] | None = None


class Paper(BaseModel, strict=True):
    """A line of the AMiner citation network, version 11: `{"id": "100001334", "venue": {"raw": "KDD", …}, "year": 2014,
    "references": ["1535888970", …], "indexed_abstract": {"InvertedIndex": {"word": [0, 7], …}, …}, …}`.
    """

    id: Id
    venue: Venue | None = None
    year: Annotated[int, Field(ge=1000, le=9999)] | None = None
    references: list[str] | None = None
    indexed_abstract: Abstract | None = None

    def linked(self) -> LinkedText:
        """Each word as often as it stands in the abstract; a bag of words does not need their order."""
        names = (self.venue.raw, self.venue.name) if self.venue else ()
        label = next((name for name in names if name and not name.isspace()), None)
        index = (self.indexed_abstract.InvertedIndex if self.indexed_abstract else None) or {}
        text = " ".join(word for word, places in index.items() for _ in places) if label and index else None
        return self.id, label, self.year, text, "\n".join(self.references or [])


_CLOTHING = "meta_Clothing_Shoes_and_Jewelry"
DUMPS: dict[str, tuple[str, Callable[[bytes | None], LinkedText], int]] = {
    "amazon-clothing": (f"{_CLOTHING}.json", lambda line: parse(line, Product).linked("also_viewed"), 0),
    "amazon-electronics": ("meta_Electronics.json", lambda line: parse(line, Product).linked("bought_together"), 0),
    "dblp": ("dblp_papers_v11.txt", lambda line: parse(line, Paper).linked(), 20),
}
"""The file that each network is made from, how a line of it is read, and how many years a class must span."""


_CANDIDATES = """
SELECT id, label, text, links FROM record WHERE text IS NOT NULL AND label IN (
  SELECT label FROM record GROUP BY label
  HAVING count(text) BETWEEN ? AND ? AND coalesce(max(year) - min(year), 0) >= ?
) ORDER BY rowid
"""


def build_linked_texts(name: str, raw: Path) -> Dataset:
    """The network called `name` in `expected.toml`, with as many attributes and class shares as it has there."""
    file_name, read, min_years = DUMPS[name]
    path = find_raw(raw, file_name)
    expected, skipped, total = EXPECTED[name], list[tuple[int, str]](), 0
    try:
        with closing(sqlite3.connect("")) as database:  # on the disk, and gone when it is closed
            database.execute("PRAGMA cache_size = -65536")
            database.execute("CREATE TABLE record (id TEXT UNIQUE, label TEXT, year INT, text TEXT, links TEXT)")
            for line in read_lines(path):
                try:
                    if not database.execute("INSERT OR IGNORE INTO record VALUES (?, ?, ?, ?, ?)", read(line)).rowcount:
                        raise BadRecordError("duplicate id")
                except BadRecordError as error:
                    skipped.append((total, str(error)))
                total += 1
                if len(skipped) > MAX_SKIPPED:
                    break
            kinds = counted(path, skipped, total)
            nodes = database.execute(_CANDIDATES, (MIN_CLASS, MAX_CLASS, min_years)).fetchall()
    except sqlite3.OperationalError as error:
        raise OSError(f"temporary database: {error}") from error  # the disk is full
    row = {node[0]: i for i, node in enumerate(nodes)}
    ends = [(i, row[other]) for i, node in enumerate(nodes) for other in node[3].split("\n") if other in row]
    adj = Graph.from_edges(np.array(ends, np.int64).reshape(-1, 2).T, len(nodes)).adj
    names, y = np.unique(np.array([node[1] for node in nodes], dtype=object), return_inverse=True)
    kept = np.arange(y.size)
    while kept.size:  # dropping a class can isolate a node, and dropping a node can shrink a class
        fit = (np.diff(adj[kept][:, kept].indptr) > 0) & (np.bincount(y[kept])[y[kept]] >= MIN_CLASS)
        if fit.all():
            break
        kept = kept[fit]
    if not kept.size:
        raise FewnodeError(f"{path}: {total:,} records, but no class has {MIN_CLASS} to {MAX_CLASS} linked nodes")
    documents = [nodes[i][2] for i in kept.tolist()]
    vocabulary = choose_vocabulary(documents, size=expected.attributes)
    graph = Graph(adj[kept][:, kept], encode(documents, vocabulary))
    classes, labels = np.unique(names[y[kept]], return_inverse=True)
    split = ClassSplit.random(labels, expected.split, seed=0)
    info: dict[str, Any] = {"source": path.name, "records": total, "skipped": kinds, **expected.compare(graph, split)}
    node_names = tuple(nodes[i][0] for i in kept.tolist())
    return Dataset(graph, labels, split, tuple(classes.tolist()), node_names, vocabulary, name, info)
