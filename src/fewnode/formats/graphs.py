"""A dataset from a GraphML or GML file, through NetworkX: what it has of nodes and edges is read as tables are.

Nothing in a file is trusted. GraphML is XML, but only what it needs of it: a file with a DOCTYPE, hence with entities
of its own or references to other files, is refused before anything of it is read.
"""

from __future__ import annotations

import codecs
import io
import re
import warnings
from collections import Counter
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any
from xml.parsers import expat

import pyarrow as pa

from fewnode._system.files import one_line
from fewnode.dataset import Dataset
from fewnode.errors import FewnodeError
from fewnode.tables.files import NamedTable
from fewnode.tables.plain import PIECE, inflated
from fewnode.tables.read import read_tables

MAX_BYTES = 1 << 25
"""Of a file: all of it is held as Python objects, which takes twenty times the room."""
MAX_ELEMENTS = 1 << 20
"""Nodes, edges and what they carry, of which each becomes an object or two."""
MAX_DEFAULTS = 1 << 26
"""Characters that defaults add to all nodes or edges together."""
MAX_DEPTH = 64
MAX_CELLS = 1 << 25
"""Of a table: each attribute that is anywhere is a column."""


def read_graph(path: Path, *, progress: Any = lambda done, total: None, **options: Any) -> Dataset:
    """A dataset from a GraphML or GML file, which may end in .gz; `options` are those of `read_tables`.

    Edges have a direction if the file says so, and weights if they have an attribute `weight`. What GML calls the
    label of a node is its name.
    """
    try:
        import networkx
    except ModuleNotFoundError:
        raise FewnodeError(f"{path}: GraphML and GML are read by NetworkX: pip install networkx") from None
    blob = b"".join(islice(inflated(path), MAX_BYTES // PIECE + 1))
    if len(blob) > MAX_BYTES:
        raise FewnodeError(f"{path}: over {MAX_BYTES >> 20} MB of text; save it as tables of nodes and edges")
    is_gml = path.name.lower().removesuffix(".gz").endswith(".gml")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that a type is not declared, which text needs not
            if is_gml:
                graph = networkx.parse_gml(_gml(blob), label=None)
            else:
                count = _count_nodes(path, blob)
                graph = networkx.read_graphml(io.BytesIO(blob))
                if len(graph) > count:  # NetworkX makes nodes of ends that are none
                    raise FewnodeError(f"{path}: {len(graph) - count:,} ends of edges are no nodes of the file")
    except (networkx.NetworkXError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        what = "GML" if is_gml else "GraphML"
        raise FewnodeError(f"{path}: not readable as {what} ({one_line(error)})") from None
    nodes, edges, unused = _tables(path, graph, is_gml)
    if "weight" not in options and "weight" in edges.data.column_names and options.get("relation") != "weight":
        options["weight"] = "weight"
    own = {"source": "source", "target": "target", "id": "id", "name": path.name.split(".")[0]}
    data = read_tables(nodes, edges, progress=progress, **{**own, "directed": graph.is_directed(), **options})
    return replace(data, info={**data.info, "unused": unused}) if unused else data


def _gml(blob: bytes) -> str:
    """The text of a GML file without comments. Edges may be there twice, as some tools write them."""
    text = blob.decode("utf-16" if blob.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig")
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    return re.sub(r"\bgraph\s*\[", "graph [ multigraph 1 ", "\n".join(lines), count=1)


def _count_nodes(path: Path, blob: bytes) -> int:
    """How many nodes a GraphML file has, if a parser that makes nothing of it finds neither fault nor too much."""
    parser, counts, in_default = expat.ParserCreate(), Counter[str](), [False]

    def fault(what: str) -> FewnodeError:
        return FewnodeError(f"{path}: line {parser.CurrentLineNumber}: {what}")

    def refuse(*_: Any) -> None:
        raise fault("a DOCTYPE, which may refer to other files; take it out")

    def start(tag: str, _: Any) -> None:
        name = tag.rpartition(":")[2]
        counts[name] += 1
        counts["elements"] += 1
        counts["open"] += 1
        in_default[0] = name == "default"
        if counts["elements"] > MAX_ELEMENTS:
            raise fault(f"over {MAX_ELEMENTS:,} elements; save it as tables of nodes and edges")
        if counts["open"] > MAX_DEPTH:
            raise fault(f"elements within elements, over {MAX_DEPTH} deep")
        if name in ("hyperedge", "port"):
            raise fault(f"<{name}> is not read: expected nodes, and edges with two ends")
        if counts["graph"] > 1:
            raise fault("a second graph, expected one")

    def characters(text: str) -> None:
        counts["characters"] += in_default[0] * len(text)

    def end(_: str) -> None:
        counts["open"] -= 1
        in_default[0] = False

    parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = refuse
    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = start, end, characters
    try:
        parser.Parse(blob, True)
    except (expat.ExpatError, ValueError, LookupError) as error:  # an encoding that expat does not have
        raise fault(f"not XML ({one_line(error)})") from None
    rows = max(counts["node"], counts["edge"])
    if rows * counts["characters"] > MAX_DEFAULTS or rows * counts["default"] > MAX_DEFAULTS >> 4:
        raise FewnodeError(f"{path}: defaults of over {MAX_DEFAULTS >> 20} MB in all; write them out")
    return counts["node"]


def _tables(path: Path, graph: Any, is_gml: bool) -> tuple[NamedTable, NamedTable, list[str]]:
    """The nodes and the edges as tables of text. Lists within a node or an edge are not read."""
    unused = dict[str, None]()

    def table(what: str, rows: list[tuple[dict[str, Any], dict[str, Any]]]) -> NamedTable:
        if not rows:
            raise FewnodeError(f"{path}: no {what} in it")
        columns, usual = dict[str, list[str | None]](), graph.graph.get(f"{what}_default", {})
        for place, (cells, attributes) in enumerate(rows):
            for key, value in {**usual, **attributes}.items():
                if isinstance(value, (dict, list, tuple)):
                    unused[f"{what} attribute {key!r}"] = None
                else:
                    cells[f"{key} (data)" if key in cells else str(key)] = value
            for name, value in cells.items():
                if name not in columns and (len(columns) + 1) * len(rows) > MAX_CELLS:
                    raise FewnodeError(f"{path}: over {len(columns):,} different attributes of {what}s, too many")
                column = columns.setdefault(name, [None] * len(rows))
                column[place] = str(value).lower() if isinstance(value, bool) else None if value is None else str(value)
        arrays = {name: pa.array(column, pa.large_string()) for name, column in columns.items()}
        return NamedTable(f"{path}, {what}s", pa.table(arrays))

    labels = Counter(str(attributes.get("label", "")) for _, attributes in graph.nodes(data=True))
    by_label = is_gml and "" not in labels and max(labels.values(), default=2) == 1
    names, nodes = {}, []
    for node, attributes in graph.nodes(data=True):
        names[node] = attributes["label"] if by_label else node
        own = {"name of node" if is_gml and key == "label" else key: value for key, value in attributes.items()}
        own.pop("name of node" if by_label else "", None)
        nodes.append(({"id": names[node]}, own))
    edges = [
        ({"source": names[source], "target": names[target]}, attributes)
        for source, target, attributes in graph.edges(data=True)
    ]
    return table("node", nodes), table("edge", edges), list(unused)
