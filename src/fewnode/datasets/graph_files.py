"""GraphML and GML files as a table of nodes and one of edges. Nothing in them is trusted.

GraphML is XML, but only what it needs of it: a file with a DOCTYPE, hence with entities of its own or references to
other files, is refused before anything of it is read.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.parsers import expat

import pyarrow as pa

from fewnode.datasets.arrow import NamedTable
from fewnode.datasets.columns import TEXT
from fewnode.datasets.decoding import encoding_of, lines_of, open_bytes
from fewnode.errors import FewnodeError

MAX_DEPTH = 64
MAX_COLUMNS = 1000
MAX_CELL = 1 << 24
PIECE = 1 << 16
MAX_DEFAULTS = 1 << 26
"""Characters that defaults add to all nodes or edges together."""

Cells = dict[str, str]


@dataclass
class GraphFile:
    """What a file has of a network: cells of each node and each edge, by the names of their columns."""

    nodes: list[Cells] = field(default_factory=list)
    edges: list[Cells] = field(default_factory=list)
    directed: bool = False
    unused: list[str] = field(default_factory=list)

    def tables(self, path: Path) -> tuple[NamedTable, NamedTable]:
        for what, rows in (("node", self.nodes), ("edge", self.edges)):
            if not rows:
                raise FewnodeError(f"{path}: no {what} in it")
        return NamedTable(f"{path}, nodes", _table(path, self.nodes)), NamedTable(
            f"{path}, edges", _table(path, self.edges)
        )


def read_graph_file(path: Path, encoding: str | None = None) -> GraphFile:
    """The nodes and edges of a GraphML or GML file, which may end in .gz."""
    if path.name.lower().removesuffix(".gz").endswith(".gml"):
        return _read_gml(path, encoding)
    return _GraphML(path).read()


def _table(path: Path, rows: list[Cells]) -> pa.Table:
    names = dict.fromkeys(name for row in rows for name in row)
    if len(names) > MAX_COLUMNS:
        raise FewnodeError(f"{path}: over {MAX_COLUMNS} different attributes, expected a table")
    return pa.table({name: pa.array([row.get(name) for row in rows], TEXT) for name in names})


# --- GraphML ------------------------------------------------------------------------------------------------------


class _GraphML:
    """A reader that is told of each element as it is parsed."""

    def __init__(self, path: Path) -> None:
        self.path, self.found = path, GraphFile()
        self.keys: dict[str, tuple[str, str]] = {}
        self.defaults: dict[str, str] = {}
        self.row: Cells | None = None
        self.key: str | None = None
        self.text: list[str] = []
        self.open: list[str] = []
        self.size = 0
        self.parser = expat.ParserCreate(namespace_separator=" ")
        self.parser.StartDoctypeDeclHandler = self._refuse
        self.parser.EntityDeclHandler = self._refuse
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._characters

    def read(self) -> GraphFile:
        with open_bytes(self.path) as stream:
            try:
                while blob := stream.read(PIECE):
                    self.parser.Parse(blob, False)
                self.parser.Parse(b"", True)
            except expat.ExpatError as error:
                place = f"line {error.lineno}, column {error.offset + 1}"
                raise FewnodeError(f"{self.path}: {place}: not XML ({expat.errors.messages[error.code]})") from None
            except (ValueError, LookupError) as error:  # an encoding that expat does not have
                raise FewnodeError(f"{self.path}: not readable as XML ({str(error)[:100]})") from None
        for rows, kind in ((self.found.nodes, "node"), (self.found.edges, "edge")):
            usual = {
                name: self.defaults[key]
                for key, (name, own) in self.keys.items()
                if own == kind and key in self.defaults
            }
            if len(rows) * sum(map(len, usual.values())) > MAX_DEFAULTS or len(rows) * len(usual) > MAX_DEFAULTS >> 4:
                raise FewnodeError(f"{self.path}: defaults of over {MAX_DEFAULTS >> 20} MB in all; write them out")
            for row in rows if usual else ():
                row.update({name: value for name, value in usual.items() if name not in row})
        return self.found

    def _refuse(self, *_: Any) -> None:
        raise self._fault("a DOCTYPE, which may refer to other files; take it out")

    def _fault(self, what: str) -> FewnodeError:
        return FewnodeError(f"{self.path}: line {self.parser.CurrentLineNumber}: {what}")

    def _start(self, tag: str, given: dict[str, str]) -> None:
        name = tag.rpartition(" ")[2]
        if len(self.open) >= MAX_DEPTH:
            raise self._fault(f"elements within elements, over {MAX_DEPTH} deep")
        if not self.open and name != "graphml":
            raise self._fault(f"found <{name[:40]}>, expected <graphml>")
        if name in ("hyperedge", "port"):
            raise self._fault(f"<{name}> is not read: expected nodes, and edges with two ends")
        if name == "graph":
            if "graph" in self.open:
                raise self._fault("a graph within a node, expected one graph")
            self.found.directed = given.get("edgedefault") == "directed"
        self.open.append(name)
        if name == "key" and "id" in given:
            self.keys[given["id"]] = given.get("attr.name") or given["id"], given.get("for", "all")
        if name == "node":
            self.row = {"id": self._need(given, "id", name)}
            self.found.nodes.append(self.row)
        if name == "edge":
            self.row = {end: self._need(given, end, name) for end in ("source", "target")}
            self.found.edges.append(self.row)
        if name in ("data", "default"):
            self.key = given.get("key", "") if name == "data" else None
            self.text, self.size = [], 0

    def _need(self, given: dict[str, str], what: str, name: str) -> str:
        if what not in given:
            raise self._fault(f"<{name}> without {what!r}")
        return given[what]

    def _characters(self, text: str) -> None:
        if self.open and self.open[-1] in ("data", "default"):
            self.size += len(text)
            if self.size > MAX_CELL:
                raise self._fault(f"a value of over {MAX_CELL >> 20} MB")
            self.text.append(text)

    def _end(self, tag: str) -> None:
        name = self.open.pop()
        if name == "default" and self.open[-1:] == ["key"] and self.keys:
            self.defaults[list(self.keys)[-1]] = "".join(self.text).strip()
        if name in ("node", "edge"):
            self.row = None
        if name == "data" and self.row is not None:
            column = self.keys.get(self.key or "", (self.key or "", ""))[0]
            if column in self.row:
                column = f"{column} (data)"  # an attribute called as the id or the ends are
            self.row[column] = "".join(self.text).strip()


# --- GML ----------------------------------------------------------------------------------------------------------

_TOKEN = re.compile(r'\s*(?:#[^\n]*\n\s*)*("(?:[^"]*)"|\[|\]|[^\s\[\]"]+)')


def _read_gml(path: Path, encoding: str | None) -> GraphFile:
    """`graph [ node [ id 1 label "a" ] edge [ source 1 target 2 ] ]`. Lists within a node or an edge are not read."""
    found, nested = GraphFile(), dict[str, None]()
    open_: list[str] = []
    row: Cells = {}
    key: str | None = None
    for number, word in _tokens(path, encoding):
        if word == "[":
            if key is None or len(open_) >= MAX_DEPTH:
                raise FewnodeError(f"{path}: line {number}: '[' without a key before it, or too deep")
            open_.append(key)
            if open_ in (["graph", "node"], ["graph", "edge"]):
                row = {}
                (found.nodes if key == "node" else found.edges).append(row)
            elif len(open_) == 3 and open_[1] in ("node", "edge"):
                nested[f"{open_[1]} attribute {key!r}"] = None
            key = None
        elif word == "]":
            if key is not None or not open_:
                raise FewnodeError(f"{path}: line {number}: ']' where {'a value' if key else 'nothing'} was to end")
            _check_gml(path, number, open_, row)
            open_.pop()
        elif key is None:
            key = word
        else:
            value = html.unescape(word[1:-1]) if word.startswith('"') else word
            if open_ == ["graph"] and key == "directed":
                found.directed = value == "1"
            elif open_ in (["graph", "node"], ["graph", "edge"]):
                row[key] = value
            key = None
    if open_ or key is not None:
        raise FewnodeError(f"{path}: ends within {' '.join(open_) or key}; is it cut short?")
    found.unused = list(nested)
    return _by_name(found)


def _tokens(path: Path, encoding: str | None) -> Iterator[tuple[int, str]]:
    """Words, brackets and quoted texts, each with its line; a text may go over several lines."""
    rest, first = "", 1
    for number, line in enumerate(lines_of(path, encoding_of(path, encoding)), 1):
        if not rest:
            first = number
            line = line if not line.lstrip().startswith("#") else ""
        rest += line
        if rest.count('"') % 2:
            if len(rest) > MAX_CELL:
                raise FewnodeError(f"{path}: line {first}: a quote that is never closed")
            continue
        at = 0
        while match := _TOKEN.match(rest, at):
            yield first, match[1]
            at = match.end()
        if rest[at:].strip():
            raise FewnodeError(f"{path}: line {first}: {rest[at:].strip()[:40]!r} is not GML")
        rest = ""
    if rest:
        raise FewnodeError(f"{path}: line {first}: a quote that is never closed")


def _check_gml(path: Path, number: int, open_: list[str], row: Cells) -> None:
    needed = {"node": ("id",), "edge": ("source", "target")}.get(open_[-1], ()) if open_[:-1] == ["graph"] else ()
    for name in needed:
        if name not in row:
            raise FewnodeError(f"{path}: line {number}: {open_[-1]} without {name!r}")


def _by_name(found: GraphFile) -> GraphFile:
    """Nodes under their labels, which GML has for names, if no two have the same."""
    labels = [row.get("label", "") for row in found.nodes]
    if not all(labels) or len(set(labels)) < len(labels):
        for row in found.nodes:
            if "label" in row:
                row["name of node"] = row.pop("label")
        return found
    name = {row["id"]: row["label"] for row in found.nodes}
    nodes = [{"id": row["label"], **{k: v for k, v in row.items() if k not in ("id", "label")}} for row in found.nodes]
    ends = ("source", "target")
    edges = [{**row, **{end: name.get(row[end], row[end]) for end in ends}} for row in found.edges]
    return GraphFile(nodes, edges, found.directed, found.unused)
