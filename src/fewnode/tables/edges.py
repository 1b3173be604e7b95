"""Tables of edges: their ends joined to the rows of nodes, their weights and kinds, what is dropped and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fewnode.errors import FewnodeError
from fewnode.graph import Ints
from fewnode.relations import UNNAMED, EdgeRows, unfit
from fewnode.tables.columns import Column
from fewnode.tables.files import Database, Source, Table, literal, need_columns, title
from fewnode.tables.rows import OWN, Rows, named_tables
from fewnode.tables.spec import ImportSpec

EdgeSources: TypeAlias = Source | Mapping[str, Source] | Sequence[Source | Mapping[str, Source]]
"""One table of edges, one for each named kind of edge, or a list of such."""

ENDS = (("source", "target"), ("from", "to"), ("src", "dst"))
"""Columns that are found without being named, the first pair that is there."""
UNKNOWN_KIND = "unknown"
"""The relation of edges whose kind is an empty cell."""
FEW_EDGES = 10
"""Of a table with more of them, most having unknown ends, it is the columns that are wrong, not the edges."""
EDGE_BYTES = 150
"""Of memory for an edge with a weight or a kind while edges that are there twice are joined."""
INSTEAD = {"weight": "each of its edges weighs 1", "relation": f"its edges are of relation {UNNAMED!r}"}


class EdgeTable(NamedTuple):
    """A table of edges whose ends are in columns of its own.

    >>> from fewnode import read_tables
    >>> logins = EdgeTable({"day": [1, 2], "account": ["a", "b"], "device": ["d", "d"]}, "account", "device")
    >>> read_tables({"id": ["a", "b", "d"]}, {"uses": logins}).graph.n_edges
    2
    """

    table: Source
    source_column: str
    target_column: str


class Edges(NamedTuple):
    """Edges as rows of nodes with what is known of each, and what is to be told of each table."""

    rows: EdgeRows
    tables: list[dict[str, Any]]


NO_EDGES = Edges(EdgeRows(np.zeros((2, 0), np.int64)), [])


class Nodes(NamedTuple):
    """What the ends of edges are looked up in: the nodes of `owner`, whose tables have these headers."""

    ids: pa.Array
    owner: str
    headers: set[str]


def read_edges(database: Database, sources: EdgeSources, nodes: Nodes, spec: ImportSpec) -> Edges:
    """The edges of all tables. An end that is no node is refused or dropped."""
    given = named_tables(sources)
    if not given:
        raise FewnodeError("no table of edges, expected at least one")
    more = {column: use for use, column in (("weight", spec.weight), ("relation", spec.relation)) if column is not None}
    tables = [_read(database, *pair, f"{pair[0] or 'edges'} {i}" if given[1:] else "edges", nodes, spec, more)
              for i, pair in enumerate(given, 1)]  # fmt: skip
    every = [column for table in tables for column in table.header]
    need_columns(" and ".join(table.name for table in tables), every, more)
    kinds = spec.relation is not None or any(table.kind for table in tables)
    count = sum(table.rows for table in tables)
    if database.limit and (more or kinds) and count * EDGE_BYTES > database.limit:
        need = -(-count * EDGE_BYTES // 2**30)
        raise FewnodeError(
            f"{count:,} edges with weights or kinds take about {need} GB of memory; say `memory` {need}G or more"
        )

    def usual(table: Table) -> dict[str, str]:
        kind = {"relation": literal(table.kind or UNNAMED)} if kinds else {}
        return {"source": "NULL", "target": "NULL", **({"weight": "'1'"} if spec.weight else {}), **kind}

    rows = Rows.of(database, tables, spec, usual)
    edge_index = _places(rows, nodes)
    dropped, facts = np.asarray((edge_index < 0).any(axis=0)), rows.facts({})
    for i, (table, told) in enumerate(zip(tables, facts, strict=True)):
        part = slice(rows.starts[i], rows.starts[i + 1])
        unknown = dropped[part]
        names = _unknown_ends(rows, part, nodes, edge_index, unknown) if unknown.any() else []
        lacks = [
            use for use in more.values() if use not in table.uses.values() and not (use == "relation" and table.kind)
        ]
        told |= {
            "kind": table.kind,
            "unknown_ends": int(unknown.sum()),
            "unknown_names": names,
            "self_loops": int(((edge_index[0, part] == edge_index[1, part]) & ~unknown).sum()),
            "without": [f"no column {getattr(spec, use)!r}: {INSTEAD[use]}" for use in lacks],
        }
    weight = _weights(rows.column(f"{OWN}weight")) if spec.weight else None
    kind: Ints | None = None
    kind_names = dict.fromkeys(table.kind for table in tables if table.kind)
    if kinds:
        labels = pc.fill_null(rows.column(f"{OWN}relation").texts, UNKNOWN_KIND)
        kind_names = dict.fromkeys([*pc.unique(labels).to_pylist(), *kind_names])
        kind = pc.index_in(labels, value_set=pa.array(kind_names, labels.type)).to_numpy().astype(np.int64)
    edges = EdgeRows(edge_index, weight, kind, tuple(map(str, kind_names)))
    if dropped.any():
        left = ~dropped
        weight, kind = None if weight is None else weight[left], None if kind is None else kind[left]
        edges = replace(edges, edge_index=edge_index[:, left], weight=weight, kind=kind)
    for table in tables:
        database.ask(f"DROP TABLE {table.relation} CASCADE")
    return Edges(edges, facts)


def _read(
    database: Database,
    kind: str | None,
    source: Source,
    what: str,
    nodes: Nodes,
    spec: ImportSpec,
    more: Mapping[str, str],
) -> Table:
    named = [spec.source, spec.target]
    if isinstance(source, EdgeTable):
        source, *named = source

    def choose(header: list[str]) -> dict[str, str | None]:
        place, columns = title(source, what), [column for column in header if column not in more]
        if len(columns) < 2:
            found = f"one column {columns[0]!r}" if columns else "no column beside those of weight and kind"
            raise FewnodeError(f"{place}: {found}, expected two with the ends of each edge")
        pair = next((pair for pair in ENDS if set(pair) <= set(columns)), columns[:2])
        ends = [column or other for column, other in zip(named, pair, strict=True)]
        if ends[0] == ends[1]:
            raise FewnodeError(f"{place}: column {ends[0]!r} is both ends of an edge; name `source` and `target`")
        need_columns(place, columns, ends)
        return {ends[0]: "source", ends[1]: "target", **{c: use for c, use in more.items() if c in header}}

    table = database.read(source, what, choose, spec, not spec.no_header, kind)
    ends = [*table.uses][:2]
    is_text = str(source).lower().removesuffix(".gz").endswith((".csv", ".tsv", ".tab", ".txt"))
    unsure = is_text and not any(named) and not spec.no_header and tuple(ends) not in ENDS
    if unsure and pc.all(pc.is_in(pa.array(ends, nodes.ids.type), value_set=nodes.ids)).as_py():
        raise FewnodeError(  # the first edge would be lost as the names of the columns
            f"{table.name}: line 1: {ends[0]!r} and {ends[1]!r} are nodes, expected a header with the column names; "
            "`no_header` reads line 1 as an edge"
        )
    if kind is not None and "relation" in table.uses.values():
        raise FewnodeError(
            f"{table.name}: its edges are of kind {kind!r}, and column {spec.relation!r} says their kind too; "
            "leave out the one or the other"
        )
    return table


def _places(rows: Rows, nodes: Nodes) -> Ints:
    """The nodes at the ends of each edge, -1 for a name that is none."""
    database = rows.database
    names = database.register(pa.table({"name": nodes.ids, "place": np.arange(len(nodes.ids), dtype=np.int32)}))
    query = (
        f"SELECT e.row, s.place AS source, t.place AS target FROM {rows.relation} e "
        f"LEFT JOIN {names} s ON e.{database.key(f'{OWN}source')} = s.name "
        f"LEFT JOIN {names} t ON e.{database.key(f'{OWN}target')} = t.name"
    )
    edge_index = np.empty((2, len(rows)), np.int32 if database.limit else np.int64)
    for batch in pa.RecordBatchReader.from_stream(database.connection.sql(query)):
        row, *ends = (pc.fill_null(column, -1).to_numpy() for column in batch.columns)
        edge_index[:, row] = ends
    return edge_index


def _weights(column: Column) -> NDArray[np.float64]:
    weight = column.numbers
    odd = unfit(weight)
    if odd.any():
        row = int(np.argmax(odd))
        wrong = "is below 0" if weight[row] < 0 else "is too far from 1 to compute with"
        found = "empty" if np.isnan(weight[row]) else f"{weight[row]:g} {wrong}"
        raise column.fault(row, f"{found}, expected a weight from 0 on; fill it in, or leave the row out")
    return weight


def _unknown_ends(rows: Rows, part: slice, nodes: Nodes, edge_index: Ints, dropped: NDArray[np.bool_]) -> list[str]:
    """Three names of unknown ends, or as many as there are. Refused unless they are to be dropped, or if most are."""
    table, spec, count = rows.place(part.start)[0], rows.spec, int(dropped.sum())
    some, ends = np.flatnonzero(dropped)[:1000].tolist(), [*table.uses][:2]
    columns = ", ".join(map(rows.database.key, ends))
    cells = rows.database.ask(
        f"SELECT {columns} FROM {table.relation} WHERE rowid IN ({', '.join(map(str, some))}) ORDER BY rowid"
    )
    unknown = [
        (row, end, name)
        for row, pair in zip(some, cells, strict=True)
        for side, (end, name) in enumerate(zip(ends, pair, strict=True))
        if edge_index[side, part.start + row] < 0
    ]
    shown = list(dict.fromkeys(name for *_, name in unknown if name is not None and name.strip()))[:3]
    as_these = f"as {', '.join(map(repr, shown))}"
    if 2 * count > table.rows and (table.rows > FEW_EDGES or spec.unknown_ends == "drop"):
        raise FewnodeError(
            f"{table.name}: {count:,} of {table.rows:,} edges have an end that is no node, {as_these}; more than half "
            f"are never dropped: is {ends[0]!r} to {ends[1]!r} the right pair of columns, and `id` the column with "
            "their names?"
        )
    if spec.unknown_ends == "drop":
        return shown
    row, end, name = unknown[0]
    what = "empty, expected a node id" if name is None or not name.strip() else f"node {name!r} is not in {nodes.owner}"
    if name in nodes.headers:
        what += " but in its header line: if that line is a node, say `no_node_header`"
    several = f"{count:,} such edge{'s' * (count > 1)}{f', {as_these}' * (len(shown) > 1)}"
    raise table.fault(row, end, f"{what}; {several} (`unknown_ends` drop leaves them out)")
