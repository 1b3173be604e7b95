"""Several tables of nodes or of edges read as one; who the nodes are."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fewnode.errors import FewnodeError
from fewnode.graph import Ints
from fewnode.tables.columns import Column, Vectors, as_cells, first_row
from fewnode.tables.files import Database, Source, Table, literal, need_columns, title
from fewnode.tables.plain import TEXT
from fewnode.tables.spec import ImportSpec

NodeSources: TypeAlias = Source | Mapping[str, Source] | Sequence[Source | Mapping[str, Source]]
"""One table of nodes, one for each named kind of node, or a list of such."""

MAX_CELLS = 1 << 21
"""Of a table whose columns are fetched at once: a question for each of ten thousand columns would take long."""
IDS = ("id", "node", "name")
LABELS = ("label", "class")
"""Columns that are found without being named, the first that is there."""
OWN = "\x01"
ID, LABEL = f"{OWN}id", f"{OWN}label"
"""What columns of a use are called where tables are read as one: no file has such names."""
NOT_USED = "not used"


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of all tables, one after another, as if they were of one; a column that a table lacks is empty there."""

    database: Database
    tables: tuple[Table, ...]
    spec: ImportSpec
    relation: str
    """In the database: the columns, the `part` that a row is of, and `row`, its place in all tables together."""
    count: int
    kind: str | None = None
    """The column with the kind of each node."""
    beside: Mapping[str, pa.Array] = field(default_factory=dict)
    """Vectors that are in no table, by the names of their columns."""

    @classmethod
    def of(
        cls,
        database: Database,
        tables: Sequence[Table],
        spec: ImportSpec,
        usual: Callable[[Table], Mapping[str, str]],
        kind: str | None = None,
    ) -> Rows:
        """The tables as they are in the database. `usual`: the uses of columns, and what is there without such one."""
        key, queries, start = database.key, [], 0
        for part, table in enumerate(tables):
            own = {use: key(column) for column, use in table.uses.items()}
            cells = [f"rowid + {start} AS row", f"{part} AS part"]
            cells += [f"{own.get(use, lacking)} AS {key(OWN + use)}" for use, lacking in usual(table).items()]
            cells += [key(column) for column in table.types if table.has(column)]
            cells += [f"{literal(table.kind)} AS {key(kind)}"] if table.kind and kind else []
            queries.append(f"SELECT {', '.join(cells)} FROM {table.relation}")
            start += table.rows
        relation = database.free_name()
        database.ask(f"CREATE VIEW {relation} AS {' UNION ALL BY NAME '.join(queries)}")
        return cls(database, tuple(tables), spec, relation, start, kind)

    def __len__(self) -> int:
        return self.count

    @property
    def name(self) -> str:
        """All files, for messages."""
        return " and ".join(table.name for table in self.tables)

    @cached_property
    def starts(self) -> Ints:
        """The first row of each table, and the end."""
        return np.cumsum([0, *(table.rows for table in self.tables)])

    @cached_property
    def attributes(self) -> list[str]:
        """Columns that have no use of their own; those that were not read too."""
        own = [column for table in self.tables for column in table.attributes]
        return list(dict.fromkeys([*own, *([] if self.kind is None else [self.kind]), *self.beside]))

    @cached_property
    def headers(self) -> set[str]:
        return {column for table in self.tables for column in table.header}

    @cached_property
    def partial(self) -> set[str]:
        """Attributes that some table lacks."""
        own = [set(table.attributes) for table in self.tables]
        return set().union(*own) - own[0].intersection(*own[1:])

    def place(self, row: int) -> tuple[Table, int]:
        """The table that a row is of, and its row there."""
        if self.repeated:
            [(row,)] = self.database.ask(f"SELECT row FROM {self.relation} WHERE rowid = {row}")
        i = int(np.searchsorted(self.starts, row, side="right")) - 1
        return self.tables[i], row - int(self.starts[i])

    def fault(self, row: int, column: str, what: str) -> FewnodeError:
        table, place = self.place(row)
        own = {OWN + use: name for name, use in table.uses.items()}
        return table.fault(place, own.get(column, column), what)

    def column(self, name: str) -> Column:
        """The cells of a column, or of those of a use."""
        if name in self._columns:
            return self._columns[name]
        if name in self.beside:
            cells = as_cells(self.beside[name])
        elif not self.is_read(name):
            cells = pa.chunked_array([pa.nulls(self.count, TEXT)])
        elif self._at_once is not None:
            cells = as_cells(self._at_once.column(self.database.key(name)))
        else:
            query = f"SELECT {self.database.key(name)} FROM {self.relation}"
            cells = as_cells(self.database.arrow(query).column(0))
        column = Column(cells, lambda row, what: self.fault(row, name, what), self.spec)
        if self._at_once is not None:
            self._columns[name] = column
        return column

    @cached_property
    def _columns(self) -> dict[str, Column]:
        """The columns that were read; of a small table all are kept."""
        return {}

    @cached_property
    def _at_once(self) -> pa.Table | None:
        small = (2 + len(self.attributes)) * self.count <= MAX_CELLS
        return self.database.arrow(f"SELECT * FROM {self.relation}") if small else None

    def is_read(self, name: str) -> bool:
        return name.startswith(OWN) or name == self.kind or any(table.has(name) for table in self.tables)

    def facts(self, uses: Mapping[str, str]) -> list[dict[str, Any]]:
        """What is to be told of each table; `uses` says what becomes of an attribute."""
        names, told = [Path(table.name).name for table in self.tables], []
        for table, name in zip(self.tables, names, strict=True):
            columns = {column: table.uses.get(column) or uses.get(column, NOT_USED) for column in table.header}
            more = [*([self.kind] if table.kind and self.kind else []), *self.beside]
            file = name if names.count(name) == 1 else table.name
            told.append({"file": file, "rows": table.rows, "columns": columns | {name: uses[name] for name in more}})
        return told

    # --- of nodes -------------------------------------------------------------------------------------------------

    @property
    def repeated(self) -> int:
        """Rows that say again what another one says."""
        return int(self.starts[-1]) - self.count

    @cached_property
    def origin(self) -> Ints:
        """The place of each row in all tables together."""
        return np.asarray(self.database.arrow(f"SELECT row FROM {self.relation}").column(0)).astype(np.int64)

    def lacking(self, column: str) -> NDArray[np.bool_]:
        """Rows of tables of a kind of nodes that has no such column: there is no value that could be missing."""
        without = [i for i, table in enumerate(self.tables) if table.kind and not table.has(column)]
        if not without or self.kind is None:
            return np.zeros(self.count, bool)
        return np.isin(np.searchsorted(self.starts, self.origin, side="right") - 1, without)

    @cached_property
    def ids(self) -> pa.Array:
        """The names of the nodes as they are written: `1`, `01` and ` 1` are three."""
        ids = self.column(ID).cells.combine_chunks()
        ids = ids if isinstance(ids, pa.Array) else pa.concat_arrays(ids.chunks)
        if (row := first_row(pc.fill_null(pc.equal(pc.utf8_trim_whitespace(ids), ""), True))) is not None:
            raise self.fault(row, ID, "empty, expected a node id")
        return ids

    def kinds_of_nodes(self, known: tuple[str, ...] = ()) -> tuple[NDArray[np.int64] | None, tuple[str, ...]]:
        """The kind of each node as a place among their names, the known ones first."""
        if self.kind is None:
            return None, ()
        cells = self.column(self.kind).labels
        if (row := first_row(pc.is_null(cells))) is not None:
            raise self.fault(row, self.kind, "empty, expected the kind of the node")
        names = tuple(dict.fromkeys((*known, *pc.unique(cells).to_pylist())))
        return pc.index_in(cells, value_set=pa.array(names, TEXT)).to_numpy().astype(np.int64), names


def read_nodes(
    database: Database,
    sources: NodeSources,
    spec: ImportSpec,
    columns: Sequence[str] | None = None,
    optional: Sequence[str] = (),
) -> Rows:
    """All tables of nodes. `columns` are the only attributes that are read, None: all, but for those not named.

    A column that the caller names must be in one of the tables at least, as must the label; ids must be in each, and a
    label and a column in one of them. `optional` are columns that may be in none.
    """
    given, kind = named_tables(sources), spec.kind
    if not given:
        raise FewnodeError("no table of nodes, expected at least one")
    named = any(name is not None for name, _ in given)
    if named and kind is not None and columns is None:
        raise FewnodeError(
            f"tables of nodes have names, and column {kind!r} says their kind too; leave out one of them"
        )
    wanted = {*(spec.roles if columns is None else columns), *([] if named or kind is None else [kind])}
    tables: list[Table] = []
    for i, (name, source) in enumerate(given, 1):
        what = f"nodes {i}" if given[1:] else "nodes"

        def choose(header: list[str], place: str = title(source, what)) -> dict[str, str | None]:
            node_id = spec.id or next((name for name in IDS if name in header), header[0])
            guesses = LABELS if spec.label is None and spec.labels is None and columns is None else (spec.label,)
            label = [name for name in guesses if name in header and name != node_id][:1]
            more = header if columns is None and not spec.only else [name for name in header if name in wanted]
            need_columns(place, header, [node_id])
            return {**dict.fromkeys(more), node_id: "id", **dict.fromkeys(label, "label")}

        own_kind = name or ("node" if named else None)
        tables.append(database.read(source, what, choose, spec, not spec.no_node_header, own_kind))
    every = [column for table in tables for column in table.header]
    while named and (kind is None or (kind in every and spec.kind is None)):
        kind = "kind" if kind is None else f"{kind} of node"
    rows = Rows.of(database, tables, spec, lambda table: dict.fromkeys(("id", "label"), "CAST(NULL AS VARCHAR)"), kind)
    needed = [] if kind is None or named else [kind]
    if needed and columns is not None and kind not in every:
        raise FewnodeError(
            f"{rows.name}: what kind of nodes are these? Give a column {kind!r}, or the kind as NAME:FILE"
        )
    needed += [*spec.roles] if columns is None else [column for column in columns if column not in optional]
    label = [spec.label] if spec.label is not None and columns is None else []
    need_columns(rows.name, every if not named else [*every, str(kind)], [*needed, *label])
    if own := next((name for name in needed if any(name in table.uses for table in tables)), None):
        as_what = "the kind of nodes" if own == kind else "an attribute"
        raise FewnodeError(f"{rows.name}: column {own!r} is the id or the label, so it cannot be {as_what}")
    if not len(rows):
        raise FewnodeError(f"{rows.name}: no node in it")
    return _distinct(rows)


def _distinct(rows: Rows) -> Rows:
    """The rows without those that say again what another row says."""
    own, nodes, ask = rows.database.key(ID), rows.relation, rows.database.ask
    [(distinct,)] = ask(f"SELECT count(DISTINCT {own}) FROM {nodes}")
    if distinct == rows.count:
        return rows
    odd = f"SELECT {own} FROM (SELECT DISTINCT * EXCLUDE (row) FROM {nodes}) GROUP BY 1 HAVING count(*) > 1"
    first = f"SELECT {own} AS name, row, min(row) OVER (PARTITION BY {own}) AS first FROM {nodes}"
    query = f"SELECT name, row, first FROM ({first}) WHERE row > first AND name IN ({odd}) ORDER BY row LIMIT 1"
    for name, row, before in ask(query):
        table, place = rows.place(before)
        where = "" if rows.place(row)[0] is table else f"{table.name}, "
        raise rows.fault(row, ID, f"node {name!r} is in {where}data row {place + 1} already")
    relation = rows.database.free_name()
    kept = f"SELECT * FROM {nodes} WHERE row IN (SELECT min(row) FROM {nodes} GROUP BY {own})"
    ask(f"CREATE TABLE {relation} AS {kept} ORDER BY row")
    [(count,)] = ask(f"SELECT count(*) FROM {relation}")
    return replace(rows, relation=relation, count=count)


def with_vectors(rows: Rows, vectors: Mapping[str, Vectors]) -> Rows:
    """Rows with a column more for each matrix. A row of NaN is a missing vector."""
    for name, matrix in vectors.items():
        if name in rows.headers or name in rows.beside:
            raise FewnodeError(f"{rows.name}: there is a column {name!r} already; vectors need a name of their own")
        count = len(rows) + rows.repeated
        if len(matrix) not in (len(rows), count):
            raise FewnodeError(
                f"{name}: {len(matrix):,} vectors for the {count:,} nodes of {rows.name}; "
                "expected one for each row, in the same order"
            )
        own = matrix if len(matrix) == len(rows) else matrix[rows.origin]
        missing = np.isnan(own).all(axis=1) if own.shape[1] else np.zeros(len(own), bool)
        ends = pa.array(np.arange(len(own) + 1) * own.shape[1], pa.int64())
        values = pa.array(np.ascontiguousarray(own).reshape(-1))
        cells = pa.LargeListArray.from_arrays(ends, values, mask=pa.array(missing))
        rows = replace(rows, beside={**rows.beside, name: cells})
    return rows


def named_tables(sources: Any) -> list[tuple[str | None, Source]]:
    """Every table with the kind of its nodes or edges, None where it has no name.

    A mapping is a table if its values are columns, and a table a kind if its values are tables or files.

    >>> named_tables(["a.csv", {"pays": "b.csv"}])
    [(None, 'a.csv'), ('pays', 'b.csv')]
    """
    tables: list[tuple[str | None, Source]] = []
    alone = not isinstance(sources, (list, tuple)) or hasattr(sources, "_fields")
    for source in [sources] if alone else sources:
        if isinstance(source, Mapping) and source and all(map(_is_table, source.values())):
            tables += [(str(kind), table) for kind, table in source.items()]
        else:
            tables.append((None, source))
    return tables


def _is_table(value: object) -> bool:
    """No column: a file, a mapping, or what has columns itself (frames and Arrow streams, not their columns)."""
    tables = ("columns", "schema", "fetch_arrow_table", "_fields")
    if isinstance(value, (str, os.PathLike, Mapping)) or any(hasattr(value, name) for name in tables):
        return True
    return hasattr(value, "__arrow_c_stream__") and not any(hasattr(value, name) for name in ("dtype", "type"))
