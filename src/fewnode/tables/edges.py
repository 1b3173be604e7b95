"""Tables of edges: their ends joined to the rows of nodes, their weights and kinds, what is dropped and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fewnode.errors import FewnodeError
from fewnode.graph import Ints
from fewnode.relations import UNNAMED, EdgeRows, unfit
from fewnode.tables.columns import Column
from fewnode.tables.files import Database, Source, Table, need_columns, title
from fewnode.tables.rows import file_names, named_tables, need_exact
from fewnode.tables.spec import ImportSpec

EdgeSources: TypeAlias = Source | Mapping[str, Source] | Sequence[Source | Mapping[str, Source]]
"""One table of edges, one for each named kind of edge, or a list of such."""

ENDS = (("source", "target"), ("from", "to"), ("src", "dst"))
"""Columns that are found without being named, the first pair that is there."""
UNKNOWN_KIND = "unknown"
"""The relation of edges whose kind is an empty cell."""
UNUSED = "--weight or --relation uses it"
FEW_EDGES = 10
"""Of a table with more of them, most having unknown ends, it is the columns that are wrong, not the edges."""
REMEDY = "fill it in, or leave the row out"
EDGE_BYTES = 150
"""Of memory for an edge with a weight or a kind while edges that are there twice are joined."""


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


@dataclass(frozen=True)
class _Nodes:
    """What the ends of edges are looked up in: a table of names and rows in the database."""

    database: Database
    relation: str
    ids: pa.Array
    owner: str
    headers: set[str]


def read_edges(
    database: Database, sources: EdgeSources, ids: pa.Array, owner: str, headers: set[str], spec: ImportSpec
) -> Edges:
    """The edges of all tables. An end that is no name in `ids`, the nodes of `owner`, is refused or dropped."""
    named = database.register(pa.table({"name": ids, "place": pa.array(np.arange(len(ids), dtype=np.int32))}))
    nodes = _Nodes(database, named, ids, owner, headers)
    given = named_tables(sources)
    if not given:
        raise FewnodeError("no table of edges, expected at least one")
    parts: list[EdgeRows] = []
    tables: list[dict[str, Any]] = []
    for i, (kind, source) in enumerate(given):
        name = "edges" if len(given) == 1 else f"{kind or 'edges'} {i + 1}"
        rows, facts = _read(source, name, kind, nodes, spec)
        parts.append(rows)
        tables.append({**facts, "kind": kind})
    columns = [column for table in tables for column in table["columns"]]
    need_columns(" and ".join(str(table["file"]) for table in tables), columns, _roles(spec))
    for table, file in zip(tables, file_names([table["file"] for table in tables]), strict=True):
        table["file"] = file
    return Edges(_together(parts, spec), tables)


def _roles(spec: ImportSpec) -> dict[str, str]:
    """What columns besides the ends are read for."""
    given = {"weight": spec.weight, "relation": spec.relation}
    return {column: role for role, column in given.items() if column is not None}


def _together(parts: Sequence[EdgeRows], spec: ImportSpec) -> EdgeRows:
    """The rows of all tables; a table without weights has ones, and one without kinds is of a kind without a name."""
    if len(parts) == 1:
        return parts[0]
    weight, kind = None, None
    names: tuple[str, ...] = ()
    if spec.weight is not None:
        weight = np.concatenate([np.ones(len(rows)) if rows.weight is None else rows.weight for rows in parts])
    if any(rows.kind is not None for rows in parts):
        names = tuple(dict.fromkeys(name for rows in parts for name in rows.names or (UNNAMED,)))
        place = {name: i for i, name in enumerate(names)}
        own = [np.array([place[name] for name in rows.names or (UNNAMED,)]) for rows in parts]
        kinds = [np.zeros(len(rows), np.int64) if rows.kind is None else rows.kind for rows in parts]
        kind = np.concatenate([places[codes] for places, codes in zip(own, kinds, strict=True)])
    return EdgeRows(np.concatenate([rows.edge_index for rows in parts], axis=1), weight, kind, names)


def _read(
    source: Source, name: str, kind: str | None, nodes: _Nodes, spec: ImportSpec
) -> tuple[EdgeRows, dict[str, Any]]:
    given: tuple[str | None, str | None] = (spec.source, spec.target)
    if isinstance(source, EdgeTable):
        source, *columns = source
        given = columns[0], columns[1]
    more, database = _roles(spec), nodes.database

    def choose(header: list[str]) -> list[str]:
        ends = _end_columns([column for column in header if column not in more], given, title(source, name))
        return [*ends, *(column for column in more if column in header)]

    table = database.read(source, name, choose, spec, not spec.no_header)
    ends, relation = list(table.types)[:2], table.relation
    if not any(given) and not spec.no_header:
        _check_header(table, tuple(ends), source, nodes)
    for end in ends:
        need_exact(database, table, end, relation, database.key(end))
    limit = database.limit
    others = [column for column in more if column in table.types]
    if limit and (others or kind) and table.rows * EDGE_BYTES > limit:
        need = -(-table.rows * EDGE_BYTES // 2**30)
        raise FewnodeError(
            f"{table.rows:,} edges with weights or kinds take about {need} GB of memory; say --memory {need}G or more"
        )
    joined = (
        f"FROM {relation} e LEFT JOIN {nodes.relation} s ON e.{database.key(ends[0])} = s.name "
        f"LEFT JOIN {nodes.relation} t ON e.{database.key(ends[1])} = t.name"
    )
    edge_index, dropped = np.empty((2, table.rows), np.int32 if limit else np.int64), np.zeros(table.rows, bool)
    batches = database.connection.sql(f"SELECT e.rowid AS row, s.place AS source, t.place AS target {joined}")
    for batch in batches.to_arrow_reader(1 << 17):
        row = batch.column(0).to_numpy()
        for side in (0, 1):
            edge_index[side, row] = pc.fill_null(batch.column(1 + side), -1).to_numpy()
    dropped = np.asarray((edge_index < 0).any(axis=0))
    names = _unknown_ends(table, ends, nodes, spec, edge_index, dropped) if dropped.any() else []
    rows = _known_of(table, kind, edge_index, database, spec)
    if dropped.any():
        left = ~dropped
        weight = None if rows.weight is None else rows.weight[left]
        rows = EdgeRows(edge_index[:, left], weight, None if rows.kind is None else rows.kind[left], rows.names)
    database.execute(f"DROP TABLE {relation}")
    uses = {**dict.fromkeys(table.header, "not used"), ends[0]: "source", ends[1]: "target"}
    uses |= {column: role for column, role in more.items() if column in table.header}
    return rows, {
        "file": table.name,
        "rows": table.rows,
        "columns": uses,
        "why": {column: UNUSED for column, use in uses.items() if use == "not used"},
        "unknown_ends": int(dropped.sum()),
        "unknown_names": names,
        "self_loops": len(rows) - rows.proper,
        "without": _without(table.header, kind, spec),
    }


def _without(header: Sequence[str], kind: str | None, spec: ImportSpec) -> list[str]:
    """What follows from columns that were named, but that this table does not have."""
    instead = {"weight": "each of its edges weighs 1", "relation": f"its edges are of relation {UNNAMED!r}"}
    missing = {role: column for column, role in _roles(spec).items() if column not in header}
    if kind is not None:
        missing.pop("relation", None)
    return [f"no column {column!r}: {instead[role]}" for role, column in missing.items()]


def _known_of(table: Table, kind: str | None, edge_index: Ints, database: Database, spec: ImportSpec) -> EdgeRows:
    """Weights and kinds of a table's edges, as far as it has them."""

    weight = _weights(database.column(table, str(spec.weight), spec)) if spec.weight in table.types else None
    kinds: Ints | None = None if kind is None else np.zeros(table.rows, np.int64)
    names: tuple[str, ...] = () if kind is None else (kind,)
    if spec.relation in table.types:
        if kind is not None:
            raise FewnodeError(
                f"{table.name}: its edges are of kind {kind!r}, and column {spec.relation!r} says their kind too; "
                "leave out the one or the other"
            )
        labels = pc.fill_null(database.column(table, str(spec.relation), spec).texts, UNKNOWN_KIND)
        codes = pc.dictionary_encode(labels).combine_chunks()
        kinds, names = codes.indices.to_numpy().astype(np.int64), tuple(codes.dictionary.to_pylist())
    return EdgeRows(edge_index, weight, kinds, names)


def _weights(column: Column) -> NDArray[np.float64]:
    weight = column.numbers
    odd = unfit(weight)
    if odd.any():
        row = int(np.argmax(odd))
        wrong = "is below 0" if weight[row] < 0 else "is too far from 1 to compute with"
        found = "empty" if np.isnan(weight[row]) else f"{weight[row]:g} {wrong}"
        raise column.fault(row, f"{found}, expected a weight from 0 on; {REMEDY}")
    return weight


def _unknown_ends(
    table: Table, ends: Sequence[str], nodes: _Nodes, spec: ImportSpec, edge_index: Ints, dropped: NDArray[np.bool_]
) -> list[str]:
    """Three names of unknown ends, or as many as there are. Refused unless they are to be dropped, or if most are."""
    count, some = int(dropped.sum()), np.flatnonzero(dropped)[:1000].tolist()
    columns = ", ".join(nodes.database.key(end) for end in ends)
    query = f"SELECT {columns} FROM {table.relation} WHERE rowid IN ({', '.join(map(str, some))}) ORDER BY rowid"
    cells = zip(some, nodes.database.execute(query).fetchall(), strict=True)
    unknown = [(row, side, pair[side]) for row, pair in cells for side in (0, 1) if edge_index[side, row] < 0]
    row, first, name = unknown[0]
    names = dict.fromkeys(cell for *_, cell in unknown if cell is not None and cell.strip())
    shown = list(names)[:3]
    if 2 * count > table.rows and (table.rows > FEW_EDGES or spec.unknown_ends == "drop"):
        told = f"{count:,} of {table.rows:,} edges have an end that is no node, as {', '.join(map(repr, shown))}"
        raise FewnodeError(
            f"{table.name}: {told}; more than half are never dropped: is {ends[0]!r} to {ends[1]!r} the right pair "
            "of columns, and --id the column with their names?"
        )
    if spec.unknown_ends == "drop":
        return shown
    what = "empty, expected a node id" if name is None or not name.strip() else f"node {name!r} is not in {nodes.owner}"
    if name in nodes.headers:
        what += " but in its header line: if that line is a node, say --no-node-header"
    edges = "such edge" if count == 1 else "such edges"
    several = f", as {', '.join(map(repr, shown))}" if len(shown) > 1 else ""
    raise table.fault(row, ends[first], f"{what}; {count:,} {edges}{several} (--unknown-ends drop leaves them out)")


def _check_header(table: Table, ends: tuple[str, ...], source: Source, nodes: _Nodes) -> None:
    """Refuse a file without a header: its first edge would be lost as the names of the columns."""
    kinds = (".csv", ".tsv", ".tab", ".txt")
    if ends in ENDS or not str(source).lower().removesuffix(".gz").endswith(kinds):
        return
    if pc.all(pc.is_in(pa.array(ends, nodes.ids.type), value_set=nodes.ids)).as_py():
        raise FewnodeError(
            f"{table.name}: line 1: {ends[0]!r} and {ends[1]!r} are nodes, expected a header with the column names; "
            "--no-header reads line 1 as an edge"
        )


def _end_columns(header: list[str], given: tuple[str | None, str | None], name: str) -> list[str]:
    if len(header) < 2:
        found = f"one column {header[0]!r}" if header else "no column beside those of weight and kind"
        raise FewnodeError(f"{name}: {found}, expected two with the ends of each edge")
    default = next((pair for pair in ENDS if set(pair) <= set(header)), header[:2])
    ends = [column or other for column, other in zip(given, default, strict=True)]
    if ends[0] == ends[1]:
        raise FewnodeError(
            f"{name}: column {ends[0]!r} is both ends of an edge; name --source-column and --target-column"
        )
    return need_columns(name, header, ends)
