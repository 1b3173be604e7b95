"""A dataset from a GraphML or GML file, through NetworkX: what it has of nodes and edges is read as tables are.

Nothing in a file is trusted. GraphML is XML, but only what it needs of it: a file with a DOCTYPE, hence with entities
of its own or references to other files, is refused before anything of it is read.
"""

from __future__ import annotations

import io
import re
import warnings
from collections import Counter
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from xml.parsers import expat

import pyarrow as pa

from fewnode._system.files import one_line
from fewnode.dataset import Dataset
from fewnode.errors import FewnodeError
from fewnode.tables.files import NamedTable
from fewnode.tables.plain import TEXT, PlainText, open_bytes
from fewnode.tables.read import read_tables

MAX_BYTES = 1 << 25
"""Of a file: all of it is held as Python objects, which takes twenty times the room."""
MAX_ELEMENTS = 1 << 20
"""Nodes, edges and what they carry, of which each becomes an object or two."""
MAX_DEFAULTS = 1 << 26
"""Characters that defaults add to all nodes or edges together."""
MAX_DEPTH = 64
MAX_COLUMNS = 1000


def read_graph(path: Path, *, progress: Any = lambda done, total: None, **options: Any) -> Dataset:
    """A dataset from a GraphML or GML file, which may end in .gz; `options` are those of `read_tables`.

    Edges have a direction if the file says so, and weights if they have an attribute `weight`. What GML calls the
    label of a node is its name.
    """
    try:
        import networkx
    except ModuleNotFoundError:
        raise FewnodeError(f"{path}: GraphML and GML are read by NetworkX: pip install networkx") from None
    is_gml = path.name.lower().removesuffix(".gz").endswith(".gml")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that a type is not declared, which text needs not
            if is_gml:
                graph = networkx.parse_gml(_gml(path, options.get("encoding")), label=None)
            else:
                blob, count = _checked_xml(path)
                graph = networkx.read_graphml(io.BytesIO(blob))
        if not is_gml and len(graph) > count:  # NetworkX makes nodes of ends that are none
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


def _tables(path: Path, graph: Any, is_gml: bool) -> tuple[NamedTable, NamedTable, list[str]]:
    """The nodes and the edges as tables of text. Lists within a node or an edge are not read."""
    unused = dict[str, None]()

    def cells(what: str, own: dict[str, Any], data: dict[str, Any]) -> dict[str, Any]:
        for key, value in {**usual[what], **data}.items():
            if isinstance(value, (dict, list, tuple)):
                unused[f"{what} attribute {key!r}"] = None
            else:
                own[f"{key} (data)" if key in own else str(key)] = (
                    str(value).lower() if value is True or value is False else value
                )
        return own

    usual = {what: graph.graph.get(f"{what}_default", {}) for what in ("node", "edge")}
    labels = Counter(str(data.get("label", "")) for _, data in graph.nodes(data=True))
    by_label = is_gml and "" not in labels and max(labels.values(), default=2) == 1
    names = {node: data["label"] if by_label else node for node, data in graph.nodes(data=True)}
    nodes = []
    for node, data in graph.nodes(data=True):
        more = {"name of node" if is_gml and key == "label" else key: value for key, value in data.items()}
        more.pop("name of node" if by_label else "", None)
        nodes.append(cells("node", {"id": names[node]}, more))
    edges = [
        cells("edge", {"source": names[one], "target": names[other]}, data)
        for one, other, data in graph.edges(data=True)
    ]
    for what, rows in (("node", nodes), ("edge", edges)):
        if not rows:
            raise FewnodeError(f"{path}: no {what} in it")
    return (
        NamedTable(f"{path}, nodes", _table(path, nodes)),
        NamedTable(f"{path}, edges", _table(path, edges)),
        list(unused),
    )


def _table(path: Path, rows: list[dict[str, Any]]) -> pa.Table:
    names = dict.fromkeys(name for row in rows for name in row)
    if len(names) > MAX_COLUMNS:
        raise FewnodeError(f"{path}: over {MAX_COLUMNS} different attributes, expected a table")
    return pa.table(
        {
            name: pa.array([None if (cell := row.get(name)) is None else str(cell) for row in rows], TEXT)
            for name in names
        }
    )


def _need_small(path: Path, size: int) -> None:
    if size > MAX_BYTES:
        raise FewnodeError(f"{path}: over {MAX_BYTES >> 20} MB of text; save it as tables of nodes and edges")


def _gml(path: Path, encoding: str | None) -> str:
    """The text of a GML file, in which edges may be there twice, as some tools write them."""
    with TemporaryDirectory() as folder:
        text = PlainText(path, encoding, Path(folder) / "graph")
        _need_small(path, text.place.stat().st_size)
        lines = [line for line in text if not line.lstrip().startswith("#")]
    return re.sub(r"\bgraph\s*\[", "graph [ multigraph 1 ", "".join(lines), count=1)


def _checked_xml(path: Path) -> tuple[bytes, int]:
    """The bytes of a GraphML file and how many nodes it has, if a parser that makes nothing of it finds no fault."""
    with open_bytes(path) as stream:
        blob: bytes = stream.read(MAX_BYTES + 1)
    _need_small(path, len(blob))
    parser, counts, depth = expat.ParserCreate(namespace_separator=" "), Counter[str](), [0, 0]

    def fault(what: str) -> FewnodeError:
        return FewnodeError(f"{path}: line {parser.CurrentLineNumber}: {what}")

    def refuse(*_: Any) -> None:
        raise fault("a DOCTYPE, which may refer to other files; take it out")

    def start(tag: str, _: Any) -> None:
        name = tag.rpartition(" ")[2]
        depth[0] += 1
        counts[name] += 1
        counts["elements"] += 1
        if counts["elements"] > MAX_ELEMENTS:
            raise fault(f"over {MAX_ELEMENTS:,} elements; save it as tables of nodes and edges")
        if depth[0] > MAX_DEPTH:
            raise fault(f"elements within elements, over {MAX_DEPTH} deep")
        if depth[0] == 1 and name != "graphml":
            raise fault(f"found <{name[:40]}>, expected <graphml>")
        if name in ("hyperedge", "port"):
            raise fault(f"<{name}> is not read: expected nodes, and edges with two ends")
        if name == "graph" and counts["graph"] > 1:
            raise fault("a second graph, expected one")
        depth[1] = int(name == "default")

    def end(_: str) -> None:
        depth[0], depth[1] = depth[0] - 1, 0

    def characters(text: str) -> None:
        counts["characters"] += depth[1] * len(text)

    parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = refuse
    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = start, end, characters
    try:
        parser.Parse(blob, True)
    except expat.ExpatError as error:
        place = f"line {error.lineno}, column {error.offset + 1}"
        raise FewnodeError(f"{path}: {place}: not XML ({expat.errors.messages[error.code]})") from None
    except (ValueError, LookupError) as error:  # an encoding that expat does not have
        raise FewnodeError(f"{path}: not readable as XML ({str(error)[:100]})") from None
    rows = max(counts["node"], counts["edge"])
    if rows * counts["characters"] > MAX_DEFAULTS or rows * counts["default"] > MAX_DEFAULTS >> 4:
        raise FewnodeError(f"{path}: defaults of over {MAX_DEFAULTS >> 20} MB in all; write them out")
    return blob, counts["node"]
