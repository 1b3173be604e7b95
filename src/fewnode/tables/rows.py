"""Tables of nodes, one or several, read as one: who the nodes are, and their columns."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fewnode.errors import FewnodeError
from fewnode.graph import Ints
from fewnode.tables.columns import Column, as_cells
from fewnode.tables.files import Database, Source, Table, need_columns, title
from fewnode.tables.plain import TEXT
from fewnode.tables.spec import ImportSpec

NodeSources: TypeAlias = Source | Mapping[str, Source] | Sequence[Source | Mapping[str, Source]]
"""One table of nodes, one for each named kind of node, or a list of such."""

MOST_CELLS = 1 << 21
"""Of a table whose columns are fetched at once."""
IDS = ("id", "node", "name")
LABELS = ("label", "class")
"""Columns that are found without being named, the first that is there."""
ID, LABEL = "\x01id", "\x01label"
"""What they are called where tables are read as one: no file has such names."""


class NodeTable(NamedTuple):
    """One table, and which of its columns hold the names and classes of the nodes."""

    table: Table
    id: str
    label: str | None
    kind: str | None
    """The kind of its nodes, if the table has a name."""

    def own_use(self, column: str) -> str | None:
        return {self.id: "id", self.label: "label"}.get(column)

    def has(self, column: str) -> bool:
        """Whether it has the column as an attribute, and it was read."""
        return column in self.table.types and self.own_use(column) is None


@dataclass(frozen=True, eq=False)
class NodeRows:
    """The rows of all tables, one after another, as if they were of one; a column that a table lacks is empty there."""

    tables: tuple[NodeTable, ...]
    database: Database
    spec: ImportSpec
    relation: str
    count: int
    kind: str | None = None
    """The column with the kind of each node."""
    origin: Ints | None = None
    """The row of the tables that each row is, where repeated rows were dropped."""
    beside: Mapping[str, pa.Array] | None = None
    """Vectors that are in no table, by the names of their columns."""

    def __len__(self) -> int:
        return self.count

    @property
    def name(self) -> str:
        """All files, for messages."""
        return " and ".join(part.table.name for part in self.tables)

    @cached_property
    def attributes(self) -> list[str]:
        """Columns that are neither ids nor classes; those that were not read too."""
        own = [c for part in self.tables for c in part.table.header if part.own_use(c) is None]
        named = [self.kind] if self.kind is not None and self.kind not in own else []
        return list(dict.fromkeys([*own, *named, *(self.beside or {})]))

    @cached_property
    def headers(self) -> set[str]:
        return {column for part in self.tables for column in part.table.header}

    @cached_property
    def partial(self) -> set[str]:
        """Attributes that some table lacks."""
        own: list[set[str]] = [{c for c in part.table.header if part.own_use(c) is None} for part in self.tables]
        return set().union(*own).difference(set(own[0]).intersection(*own[1:]))

    def place(self, row: int) -> tuple[NodeTable, int]:
        """The table that a row is of, and its row there."""
        row = row if self.origin is None else int(self.origin[row])
        ends = np.cumsum([part.table.rows for part in self.tables])
        i = int(np.searchsorted(ends, row, side="right"))
        return self.tables[i], row - int(ends[i]) + self.tables[i].table.rows

    def fault(self, row: int, column: str, what: str) -> FewnodeError:
        part, inner = self.place(row)
        return part.table.fault(inner, {ID: part.id, LABEL: part.label or ""}.get(column, column), what)

    def column(self, name: str) -> Column:
        """The cells of an attribute, or of `ID` and `LABEL`."""

        def fault(row: int, what: str) -> FewnodeError:
            return self.fault(row, name, what)

        if self.beside and name in self.beside:
            return Column(as_cells(self.beside[name]), fault, self.spec)
        if not self.is_read(name):
            return Column(pa.chunked_array([pa.nulls(self.count, TEXT)]), fault, self.spec)
        if self._at_once is not None:
            cells = self._at_once.column(self.database.key(name))
            return self._columns.setdefault(name, Column(as_cells(cells), fault, self.spec))
        return Column(as_cells(self.database.cells(self.relation, name)), fault, self.spec)

    @cached_property
    def _at_once(self) -> pa.Table | None:
        """All columns of a small table: a question for each of ten thousand columns would take long."""
        columns = 2 + len(self.attributes)
        if columns * self.count > MOST_CELLS:
            return None
        return self.database.arrow(f"SELECT * FROM {self.relation}")

    @cached_property
    def _columns(self) -> dict[str, Column]:
        return {}

    @cached_property
    def _own(self) -> set[str]:
        """Columns that some table has as attributes, and that were read."""
        return {column for part in self.tables for column in part.table.types if part.has(column)}

    def is_read(self, name: str) -> bool:
        return name in (ID, LABEL, self.kind) or name in self._own

    def types(self, column: str) -> list[str]:
        return [part.table.types[column] for part in self.tables if part.has(column)]

    def lacking(self, column: str) -> NDArray[np.bool_]:
        """Rows of tables of a kind of nodes that has no such column: there is no value that could be missing."""
        mask = np.zeros(self.count, bool)
        if self.kind is None or self.origin is not None or not any(part.kind for part in self.tables):
            return mask
        low = 0
        for part in self.tables:
            mask[low : low + part.table.rows] = not part.has(column)
            low += part.table.rows
        return mask

    @cached_property
    def ids(self) -> pa.Array:
        """The names of the nodes as they are written: `1`, `01` and ` 1` are three."""
        ids = self.column(ID).cells.combine_chunks()
        ids = ids if isinstance(ids, pa.Array) else pa.concat_arrays(ids.chunks)
        blank = pc.fill_null(pc.equal(pc.utf8_trim_whitespace(ids), ""), True)
        if pc.any(blank).as_py():
            raise self.fault(int(pc.index(blank, True).as_py()), ID, "empty, expected a node id")
        return ids

    def new_ids(self, old: pa.Array, owner: str) -> pa.Array:
        """The ids, none of which may be in `old`."""
        known = pc.index_in(self.ids, value_set=old)
        if known.null_count < self.count:
            row = int(pc.index(pc.is_valid(known), True).as_py())
            name = self.ids[row].as_py()
            raise self.fault(row, ID, f"node {name!r} is in {owner} already, expected new nodes")
        return self.ids

    def kinds_of_nodes(self, known: tuple[str, ...] = ()) -> tuple[NDArray[np.int64] | None, tuple[str, ...]]:
        """The kind of each node as a place among their names, the known ones first."""
        if self.kind is None:
            return None, ()
        cells = self.column(self.kind).labels
        if cells.null_count:
            row = int(pc.index(pc.is_null(cells), True).as_py())
            raise self.fault(row, self.kind, "empty, expected the kind of the node")
        names = (*known, *(name for name in pc.unique(cells).to_pylist() if name not in known))
        return pc.index_in(cells, value_set=pa.array(names, TEXT)).to_numpy().astype(np.int64), names

    def facts(self, uses: Mapping[str, str]) -> list[dict[str, Any]]:
        """What is to be told of each table; `uses` says what becomes of an attribute."""
        files = file_names([part.table.name for part in self.tables])
        return [
            {
                "file": file,
                "rows": part.table.rows,
                "columns": {
                    **{name: part.own_use(name) or uses[name] for name in part.table.header},
                    **({self.kind: uses[self.kind]} if part.kind and self.kind is not None else {}),
                    **{name: uses[name] for name in self.beside or {}},
                },
            }
            for part, file in zip(self.tables, files, strict=True)
        ]


def read_nodes(
    database: Database,
    sources: NodeSources,
    spec: ImportSpec,
    columns: Sequence[str] | None = None,
    optional: Sequence[str] = (),
) -> NodeRows:
    """All tables with the given columns, or with all if none are given.

    An id must be in every table, a label and a column in one of them. `optional` are columns that may be in none.
    """
    tables = named_tables(sources)
    if not tables:
        raise FewnodeError("no table of nodes, expected at least one")
    names = ["nodes"] if len(tables) == 1 else [f"nodes {i + 1}" for i in range(len(tables))]
    named = any(given is not None for given, _ in tables)
    kind = spec.kind
    if named and kind is not None and columns is None:
        raise FewnodeError(
            f"tables of nodes have names, and column {kind!r} says their kind too; leave out one of them"
        )
    wanted = None if columns is None else [*columns, *([kind] if kind is not None and not named else [])]
    parts = tuple(
        _read(database, source, name, given or ("node" if named else None), spec, wanted)
        for (given, source), name in zip(tables, names, strict=True)
    )
    every = [column for part in parts for column in part.table.header]
    if named:
        kind = kind or _free_name("kind", every)
        every.append(kind)
    rows = _together(database, parts, spec, kind)
    if kind is not None and not named:
        if columns is not None and kind not in every:
            raise FewnodeError(
                f"{rows.name}: what kind of nodes are these? Give a column {kind!r}, or the kind as NAME:FILE"
            )
        need_columns(rows.name, every, [kind])
        if any(part.own_use(kind) for part in parts):
            raise FewnodeError(
                f"{rows.name}: column {kind!r} is the id or the label, so it cannot be the kind of nodes"
            )
    if spec.label is not None and columns is None:
        need_columns(rows.name, every, [spec.label])
    needed = [*spec.roles] if columns is None else [column for column in columns if column not in optional]
    need_columns(rows.name, every, needed)
    for column in needed:
        if column not in rows.attributes:
            raise FewnodeError(f"column {column!r} is the id or the label, so it cannot be an attribute")
    if not len(rows):
        raise FewnodeError(f"{rows.name}: no node in it")
    return rows


def _read(
    database: Database, source: Source, name: str, kind: str | None, spec: ImportSpec, wanted: Sequence[str] | None
) -> NodeTable:
    chosen: dict[str, str | None] = {}

    def choose(header: list[str]) -> list[str]:
        node_id = spec.id or next((each for each in IDS if each in header), header[0])
        guesses = LABELS if spec.label is None and spec.labels is None and wanted is None else (spec.label,)
        others = set(header) - {node_id}
        chosen.update(id=node_id, label=next((each for each in guesses if each in others), None))
        named = spec.roles if wanted is None else dict.fromkeys(wanted)
        more = header if wanted is None and not spec.only else [c for c in header if c in named or c == spec.kind]
        return need_columns(title(source, name), header, [node_id, *filter(None, [chosen["label"]]), *more])

    table = database.read(source, name, choose, spec, not spec.no_node_header)
    return NodeTable(table, str(chosen["id"]), chosen["label"], kind)


def _together(database: Database, parts: Sequence[NodeTable], spec: ImportSpec, kind: str | None) -> NodeRows:
    """One table of all rows in their order, without those that say again what another row of their table says."""
    queries, key = [], database.key
    for place, part in enumerate(parts):
        cells = [f"{place} AS part", f"{key(part.id)} AS {key(ID)}"]
        cells.append(f"{key(part.label) if part.label else 'CAST(NULL AS VARCHAR)'} AS {key(LABEL)}")
        cells += [key(column) for column in part.table.types if part.has(column)]
        if part.kind:
            named = part.kind.replace("'", "''")
            cells.append(f"'{named}' AS {key(str(kind))}")
        queries.append(f"SELECT {', '.join(cells)} FROM {part.table.relation}")
    relation, count = "nodes", sum(part.table.rows for part in parts)
    database.execute(f"CREATE TABLE {relation} AS {' UNION ALL BY NAME '.join(queries)} LIMIT 0")
    for part, query in zip(parts, queries, strict=True):  # one after the other keeps their order
        database.execute(f"INSERT INTO {relation} BY NAME {query}")
        database.execute(f"DROP TABLE {part.table.relation}")
    rows = NodeRows(tuple(parts), database, spec, relation, count, kind)
    for part in parts:
        need_exact(database, part.table, part.id, relation, key(ID))
    own = key(ID)
    (distinct,) = database.execute(f"SELECT count(DISTINCT {own}) FROM {relation} WHERE {own} IS NOT NULL").fetchall()[
        0
    ]
    if distinct == count:
        return rows
    (different,) = database.execute(f"SELECT count(*) FROM (SELECT DISTINCT * FROM {relation})").fetchall()[0]
    if different > distinct:
        _refuse_repeated(rows)
    origin = database.arrow(f"SELECT min(rowid) FROM {relation} GROUP BY {own} ORDER BY 1").column(0)
    database.execute(
        f"CREATE TABLE distinct_nodes AS SELECT * FROM {relation} "
        f"WHERE rowid IN (SELECT min(rowid) FROM {relation} GROUP BY {own}) ORDER BY rowid"
    )
    return replace(rows, relation="distinct_nodes", count=len(origin), origin=origin.to_numpy().astype(np.int64))


def _refuse_repeated(rows: NodeRows) -> None:
    """Name the first row whose id another row has too, and that says something else."""
    name, relation = rows.database.key(ID), rows.relation
    odd = f"SELECT {name} FROM (SELECT DISTINCT * FROM {relation}) GROUP BY 1 HAVING count(*) > 1"
    first = f"SELECT {name} AS name, rowid AS row, min(rowid) OVER (PARTITION BY {name}) AS first FROM {relation}"
    query = f"SELECT name, row, first FROM ({first}) WHERE row > first AND name IN ({odd}) ORDER BY row LIMIT 1"
    for found, row, before in rows.database.execute(query).fetchall():
        part, place = rows.place(before)
        where = "" if rows.place(row)[0] is part else f"{part.table.name}, "
        raise rows.fault(row, ID, f"node {found!r} is in {where}data row {place + 1} already")


def need_exact(database: Database, table: Table, column: str, relation: str, cells: str) -> None:
    kind = table.types[column]
    if kind.startswith("float"):
        limit = int(kind.removeprefix("float"))
        query = f"SELECT rowid, {cells} FROM {relation} WHERE abs(TRY_CAST({cells} AS DOUBLE)) >= {limit} LIMIT 1"
        for row, cell in database.execute(query).fetchall():
            what = f"{float(cell):.0f} may be one of several numbers (beyond {limit:,} not all fit into its type)"
            raise table.fault(row, column, f"{what}; store the column as integers or text")


def _free_name(name: str, taken: Sequence[str]) -> str:
    while name in taken:
        name = f"{name} of node"
    return name


def named_tables(sources: Any) -> list[tuple[str | None, Source]]:
    """Every table with the kind of its nodes or edges, None where it has no name.

    A mapping is a table if its values are columns, and a table a kind if its values are tables or files.

    >>> named_tables(["a.csv", {"pays": "b.csv"}])
    [(None, 'a.csv'), ('pays', 'b.csv')]
    """
    found: list[tuple[str | None, Source]] = []
    alone = not isinstance(sources, (list, tuple)) or hasattr(sources, "_fields")
    for source in [sources] if alone else sources:
        if isinstance(source, Mapping) and source and all(map(is_table, source.values())):
            found += [(str(kind), table) for kind, table in source.items()]
        else:
            found.append((None, source))
    return found


def is_table(value: object) -> bool:
    """No column: a file, a mapping, or what has columns itself (frames and Arrow streams, not their columns)."""
    tables = ("columns", "schema", "fetch_arrow_table", "_fields")
    if isinstance(value, (str, os.PathLike, Mapping)) or any(hasattr(value, name) for name in tables):
        return True
    return hasattr(value, "__arrow_c_stream__") and not any(hasattr(value, name) for name in ("dtype", "type"))


def file_names(tables: Sequence[str]) -> list[str]:
    """Without their folders, unless two files have one name."""
    names = [Path(table).name for table in tables]
    return [name if names.count(name) == 1 else table for name, table in zip(names, tables, strict=True)]
