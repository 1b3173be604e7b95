"""Tables of edges: their ends as rows of nodes, their weights and kinds, what is dropped and why."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fewnode.datasets.arrow import AS_USUAL, Dialect, Source, Table, need_columns, read_table
from fewnode.datasets.nodes import named_tables, title
from fewnode.datasets.rows import file_names, written_ids
from fewnode.datasets.scratch import Scratch
from fewnode.edges.relations import UNNAMED, EdgeRows
from fewnode.edges.scaling import unfit
from fewnode.errors import FewnodeError
from fewnode.graph import Ints

UnknownEnds: TypeAlias = Literal["refuse", "drop"]

EdgeSources: TypeAlias = Source | Mapping[str, Source] | Sequence[Source | Mapping[str, Source]]
"""One table of edges, one for each named kind of edge, or a list of such."""

ENDS = (("source", "target"), ("from", "to"), ("src", "dst"))
"""Columns that are found without being named, the first pair that is there."""

UNUSED = "--weight or --relation uses it"
REMEDY = "fill it in, or leave the row out"


class EdgeOptions(NamedTuple):
    """How tables of edges are to be read."""

    source: str | None = None
    target: str | None = None
    unknown_ends: UnknownEnds = "refuse"
    dialect: Dialect = AS_USUAL
    weight: str | None = None
    relation: str | None = None
    disk: Scratch | None = None
    """Where edges are if they do not fit into memory."""

    @property
    def columns(self) -> dict[str, str]:
        """What columns besides the ends are read for."""
        given = {"weight": self.weight, "relation": self.relation}
        named = {column: role for role, column in given.items() if column is not None}
        if self.weight is not None and self.weight == self.relation:
            raise FewnodeError("weight and relation are two columns, and the two of them have one name")
        return named


class Edges(NamedTuple):
    """Edges as rows of nodes with what is known of each, and what is to be told of each table."""

    rows: EdgeRows
    tables: list[dict[str, Any]]


NO_EDGES = Edges(EdgeRows(np.zeros((2, 0), np.int64)), [])


def read_edges(sources: EdgeSources, ids: pa.Array, owner: str, node_headers: set[str], options: EdgeOptions) -> Edges:
    """The edges of all tables. An end that is no name in `ids`, the nodes of `owner`, is refused or dropped."""
    if options.unknown_ends not in ("refuse", "drop"):
        raise FewnodeError(f"unknown ends: found {options.unknown_ends!r}, expected refuse or drop")
    nodes = _Nodes(ids, owner, node_headers)
    given = named_sources(sources)
    parts: list[EdgeRows] = []
    tables: list[dict[str, Any]] = []
    for i, (kind, source) in enumerate(given):
        name = "edges" if len(given) == 1 else f"{kind or 'edges'} {i + 1}"
        rows, facts = _read(source, name, kind, nodes, options)
        parts.append(rows)
        tables.append({**facts, "kind": kind})
    headers = [column for table in tables for column in table["columns"]]
    need_columns(" and ".join(str(table["file"]) for table in tables), headers, options.columns)
    for table, file in zip(tables, file_names([table["file"] for table in tables]), strict=True):
        table["file"] = file
    return Edges(_together(parts, options), tables)


def _together(parts: Sequence[EdgeRows], options: EdgeOptions) -> EdgeRows:
    """The rows of all tables; a table without weights has ones, and one without kinds is of a kind without a name."""
    ends = [rows.edge_index for rows in parts]
    edge_index = np.concatenate(ends, axis=1) if options.disk is None else options.disk.joined(ends)
    weight, kind = None, None
    names: tuple[str, ...] = ()
    if options.weight is not None:
        weight = np.concatenate([np.ones(len(rows)) if rows.weight is None else rows.weight for rows in parts])
    if any(rows.kind is not None for rows in parts):
        names = tuple(dict.fromkeys(name for rows in parts for name in rows.names or (UNNAMED,)))
        place = {name: i for i, name in enumerate(names)}
        kinds = [np.zeros(len(rows), np.int64) if rows.kind is None else rows.kind for rows in parts]
        own = [np.array([place[name] for name in rows.names or (UNNAMED,)]) for rows in parts]
        kind = np.concatenate([places[codes] for places, codes in zip(own, kinds, strict=True)])
    return EdgeRows(edge_index, weight, kind, names)


class _Nodes(NamedTuple):
    """What the ends of edges are looked up in."""

    ids: pa.Array
    owner: str
    headers: set[str]


def _read(
    source: Source, name: str, kind: str | None, nodes: _Nodes, options: EdgeOptions
) -> tuple[EdgeRows, dict[str, Any]]:
    given = options.source, options.target
    more = options.columns

    def choose(header: list[str]) -> list[str]:
        ends = _end_columns([column for column in header if column not in more], given, title(source, name))
        return [*ends, *(column for column in more if column in header)]

    table = read_table(source, name, choose, options.dialect, options.disk)
    ends = table.data.column_names[:2]
    _check_header(table, source, nodes, given, options.dialect)
    cells = [written_ids(table, end) for end in ends]
    edge_index = _places(cells, nodes.ids, options.disk)
    unknown = edge_index < 0
    dropped = np.asarray(unknown.any(axis=0))
    names = _first_names(cells, unknown) if dropped.any() else []
    if dropped.any() and options.unknown_ends == "refuse":
        raise _unknown_end(table, unknown, cells, names, nodes)
    rows = _known_of(table, kind, edge_index, options)
    if dropped.any():
        left = np.logical_not(dropped)
        edge_index = edge_index[:, left] if options.disk is None else options.disk.chosen(edge_index, left)
        weight = None if rows.weight is None else rows.weight[left]
        rows = EdgeRows(edge_index, weight, None if rows.kind is None else rows.kind[left], rows.names)
    columns = {**dict.fromkeys(table.header, "not used"), ends[0]: "source", ends[1]: "target"}
    columns |= {column: role for column, role in more.items() if column in table.header}
    return rows, {
        "file": table.name,
        "rows": len(table),
        "columns": columns,
        "why": {column: UNUSED for column, use in columns.items() if use == "not used"},
        "unknown_ends": int(dropped.sum()),
        "unknown_names": names,
        "self_loops": len(rows) - rows.proper,
        "without": _without(table.header, kind, options),
    }


def _places(cells: Sequence[pa.ChunkedArray], ids: pa.Array, disk: Scratch | None) -> Ints:
    """The rows of the nodes with these names, -1 for a name that none has."""

    def place(names: pa.ChunkedArray) -> NDArray[Any]:
        return np.asarray(pc.fill_null(pc.index_in(names, value_set=ids), -1).to_numpy())

    if disk is None:
        return np.stack([place(side) for side in cells]).astype(np.int64)
    found = disk.array((2, len(cells[0])), np.int64)
    for piece in disk.pieces(len(cells[0]), max(2 * len(ids), 1 << 22)):  # the names are sorted in for each
        for side, names in enumerate(cells):
            found[side, piece] = place(names[piece])
    return found


def _without(header: Sequence[str], kind: str | None, options: EdgeOptions) -> list[str]:
    """What follows from columns that were named, but that this table does not have."""
    instead = {"weight": "each of its edges weighs 1", "relation": f"its edges are of relation {UNNAMED!r}"}
    missing = {role: column for column, role in options.columns.items() if column not in header}
    if kind is not None:
        missing.pop("relation", None)
    return [f"no column {column!r}: {instead[role]}" for role, column in missing.items()]


def _known_of(table: Table, kind: str | None, edge_index: Ints, options: EdgeOptions) -> EdgeRows:
    """Weights and kinds of a table's edges, as far as it has them."""
    there = table.data.column_names
    weight = _weights(table, str(options.weight)) if options.weight in there else None
    kinds: Ints | None = None if kind is None else np.zeros(len(table), np.int64)
    names: tuple[str, ...] = () if kind is None else (kind,)
    if options.relation in there:
        if kind is not None:
            raise FewnodeError(
                f"{table.name}: its edges are of kind {kind!r}, and column {options.relation!r} says their kind too; "
                "leave out the one or the other"
            )
        kinds, names = _kinds(table, str(options.relation))
    return EdgeRows(edge_index, weight, kinds, names)


def _weights(table: Table, column: str) -> NDArray[np.float64]:
    weight = table.numbers(column, REMEDY)
    odd = unfit(weight)
    if odd.any():
        row = int(np.argmax(odd))
        wrong = "is below 0" if weight[row] < 0 else "is too far from 1 to compute with"
        found = "empty" if np.isnan(weight[row]) else f"{weight[row]:g} {wrong}"
        raise table.fault(row, column, f"{found}, expected a weight from 0 on; {REMEDY}")
    return weight


def _kinds(table: Table, column: str) -> tuple[Ints, tuple[str, ...]]:
    """The kind of each edge, as a place among their names."""
    labels = table.texts(column)
    if labels.null_count:
        row = int(pc.index(pc.is_null(labels), True).as_py())
        raise table.fault(row, column, f"empty, expected the kind of the edge; {REMEDY}")
    codes = pc.dictionary_encode(labels).combine_chunks()
    return codes.indices.to_numpy().astype(np.int64), tuple(codes.dictionary.to_pylist())


def _first_names(cells: Sequence[pa.ChunkedArray], unknown: NDArray[np.bool_]) -> list[str]:
    """Three names of unknown ends, or as many as there are."""
    sides = [side.filter(pa.array(mask)).combine_chunks() for side, mask in zip(cells, unknown, strict=True)]
    return pc.unique(pa.concat_arrays(sides)).drop_null()[:3].to_pylist()  # type: ignore[no-any-return]


def _unknown_end(
    table: Table, unknown: NDArray[np.bool_], cells: Sequence[pa.ChunkedArray], names: Sequence[str], nodes: _Nodes
) -> FewnodeError:
    row = int(unknown.any(axis=0).argmax())
    side = int(unknown[:, row].argmax())
    name = cells[side][row].as_py()
    what = "empty, expected a node id" if name is None else f"node {name!r} is not in {nodes.owner}"
    if name in nodes.headers:
        what += " but in its header line: if that line is a node, say --no-node-header"
    count = int(unknown.any(axis=0).sum())
    edges = "such edge" if count == 1 else "such edges"
    ends = f", as {', '.join(map(repr, names))}" if len(names) > 1 else ""
    fault = f"{what}; {count:,} {edges}{ends} (--unknown-ends drop leaves them out)"
    return table.fault(row, table.data.column_names[side], fault)


def _check_header(
    table: Table, source: Source, nodes: _Nodes, given: tuple[str | None, str | None], dialect: Dialect
) -> None:
    """Refuse a file without a header: its first edge would be lost as the names of the columns."""
    ends = tuple(table.data.column_names[:2])
    if not (_is_delimited(source) and dialect.header) or any(given) or ends in ENDS:
        return
    if pc.all(pc.is_in(pa.array(ends, nodes.ids.type), value_set=nodes.ids)).as_py():
        raise FewnodeError(
            f"{table.name}: line 1: {ends[0]!r} and {ends[1]!r} are nodes, expected a header with the column names; "
            "--no-header reads line 1 as an edge"
        )


def _is_delimited(source: Source) -> bool:
    """Whether it is a file whose first line may or may not be a header."""
    kinds = (".csv", ".tsv", ".tab", ".txt")
    return isinstance(source, (str, os.PathLike)) and str(source).lower().removesuffix(".gz").endswith(kinds)


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


# --- which tables -------------------------------------------------------------------------------------------------


def named_sources(sources: EdgeSources) -> list[tuple[str | None, Source]]:
    """Every table with the kind of its edges, None where it has no name.

    A mapping is a table if its values are columns, and a table a kind if its values are tables or files.

    >>> named_sources(["a.csv", {"pays": "b.csv"}])
    [(None, 'a.csv'), ('pays', 'b.csv')]
    """
    found = named_tables(sources)
    if not found:
        raise FewnodeError("no table of edges, expected at least one")
    return found
