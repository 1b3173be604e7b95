"""Tables of nodes, one or several: which columns hold names and classes, and which others are read."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from fewnode.datasets.arrow import Dialect, NamedTable, Source, need_columns, read_table
from fewnode.datasets.rows import NodeRows, NodeTable
from fewnode.datasets.scratch import Scratch
from fewnode.errors import FewnodeError

NodeSources: TypeAlias = Source | Mapping[str, Source] | Sequence[Source | Mapping[str, Source]]
"""One table of nodes, one for each named kind of node, or a list of such."""

IDS = ("id", "node", "name")
LABELS = ("label", "class")
"""Columns that are found without being named, the first that is there."""


def read_nodes(
    sources: NodeSources,
    ids: Sequence[str | None],
    labels: Sequence[str | None],
    columns: Sequence[str],
    dialect: Dialect,
    optional: Sequence[str] | None = None,
    kind: str | None = None,
    disk: Scratch | None = None,
) -> NodeRows:
    """All tables with the given columns or, if there are none, with all columns.

    `kind` is a column with the kind of each node; where tables have names, those are the kinds, and a column of it.

    The first of `ids` and of `labels` was asked for if it is not None; the others are guesses. An id must be in every
    table, a label and a column in one of them. `optional` are columns that may be in none; if it is given, only
    `columns` are read. With `disk` columns lie there.
    """
    tables = named_tables(sources)
    if not tables:
        raise FewnodeError("no table of nodes, expected at least one")
    strict = optional is not None
    names = ["nodes"] if len(tables) == 1 else [f"nodes {i + 1}" for i in range(len(tables))]
    named = any(given is not None for given, _ in tables)
    if named and kind is not None and not strict:
        raise FewnodeError(
            f"tables of nodes have names, and column {kind!r} says their kind too; leave out one of them"
        )
    wanted = [*columns, kind] if kind is not None and columns and not named and kind not in columns else columns
    parts = tuple(
        _read(source, name, ids, labels, wanted, dialect, strict, disk)
        for (_, source), name in zip(tables, names, strict=True)
    )
    if named:
        kind = kind or _free_name("kind", [column for part in parts for column in part.table.header])
        parts = tuple(part.with_kind(kind, given or "node") for part, (given, _) in zip(parts, tables, strict=True))
    rows = NodeRows(parts, kind)
    name, every = rows.name, [column for part in parts for column in part.table.header]
    if kind is not None and kind not in every and strict:
        raise FewnodeError(f"{name}: what kind of nodes are these? Give a column {kind!r}, or the kind as NAME:FILE")
    if kind is not None:
        need_columns(name, every, [kind])
        if any(kind in (part.id, part.label) for part in parts):
            raise FewnodeError(f"{name}: column {kind!r} is the id or the label, so it cannot be the kind of nodes")
    if labels[0] is not None:
        need_columns(name, every, [labels[0]])
    need_columns(name, every, [column for column in columns if column not in (optional or ())])
    for column in columns:
        if any(part.own_use(column) for part in parts) and column not in rows.attributes:
            raise FewnodeError(f"column {column!r} is the id or the label, so it cannot be an attribute")
    if not len(rows):
        raise FewnodeError(f"{name}: no node in it")
    return rows


def _free_name(name: str, taken: Sequence[str]) -> str:
    while name in taken:
        name = f"{name} of node"
    return name


def named_tables(sources: NodeSources) -> list[tuple[str | None, Source]]:
    """Every table with the kind of its nodes, None where it has no name.

    A mapping is a table if its values are columns, and a table a kind if its values are tables or files.
    """
    found: list[tuple[str | None, Source]] = []
    for source in sources if isinstance(sources, (list, tuple)) else [sources]:
        if isinstance(source, Mapping) and source and all(map(is_table, source.values())):
            found += [(str(kind), table) for kind, table in source.items()]
        else:
            found.append((None, source))
    return found


def is_table(value: object) -> bool:
    """No column: a file, a mapping, or what has columns itself (frames and Arrow streams, not their columns)."""
    tables = ("columns", "schema", "fetch_arrow_table")
    if isinstance(value, (str, os.PathLike, Mapping)) or any(hasattr(value, name) for name in tables):
        return True
    return hasattr(value, "__arrow_c_stream__") and not any(hasattr(value, name) for name in ("dtype", "type"))


def _read(
    source: Source,
    name: str,
    ids: Sequence[str | None],
    labels: Sequence[str | None],
    columns: Sequence[str],
    dialect: Dialect,
    strict: bool,
    disk: Scratch | None,
) -> NodeTable:
    found: dict[str, str | None] = {}

    def choose(header: list[str]) -> list[str]:
        node_id = ids[0] or _first(header, ids) or header[0]
        label = _first([column for column in header if column != node_id], labels[:1] if labels[0] else labels)
        found.update(id=node_id, label=label)
        wanted = [column for column in columns if column in header] if columns or strict else header
        return need_columns(title(source, name), header, [node_id, *filter(None, [label]), *wanted])

    table = read_table(source, name, choose, dialect, disk)
    return NodeTable(table, str(found["id"]), found["label"])


def _first(header: Sequence[str], names: Sequence[str | None]) -> str | None:
    return next((name for name in names if name in header), None)


def title(source: Source, name: str) -> str:
    """What a table goes by in messages before it is read."""
    if isinstance(source, NamedTable):
        return source.name
    return str(source) if isinstance(source, (str, os.PathLike)) else f"the {name} table"
