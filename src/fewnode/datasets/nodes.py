"""Tables of nodes, one or several: which columns hold names and classes, and which others are read."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeAlias

from fewnode.datasets.arrow import Dialect, Source, need_columns, read_table
from fewnode.datasets.rows import NodeRows, NodeTable
from fewnode.errors import FewnodeError

NodeSources: TypeAlias = Source | Sequence[Source]
"""One table of nodes, or a list of them."""

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
) -> NodeRows:
    """All tables with the given columns or, if there are none, with all columns.

    The first of `ids` and of `labels` was asked for if it is not None; the others are guesses. An id must be in every
    table, a label and a column in one of them. `optional` are columns that may be in none; if it is given, only
    `columns` are read.
    """
    tables = [sources] if not isinstance(sources, (list, tuple)) else list(sources)
    if not tables:
        raise FewnodeError("no table of nodes, expected at least one")
    strict = optional is not None
    names = ["nodes"] if len(tables) == 1 else [f"nodes {i + 1}" for i in range(len(tables))]
    parts = tuple(
        _read(source, name, ids, labels, columns, dialect, strict) for source, name in zip(tables, names, strict=True)
    )
    rows = NodeRows(parts)
    name, every = rows.name, [column for part in parts for column in part.table.header]
    if labels[0] is not None:
        need_columns(name, every, [labels[0]])
    need_columns(name, every, [column for column in columns if column not in (optional or ())])
    for column in columns:
        if any(part.own_use(column) for part in parts) and column not in rows.attributes:
            raise FewnodeError(f"column {column!r} is the id or the label, so it cannot be an attribute")
    if not len(rows):
        raise FewnodeError(f"{name}: no node in it")
    return rows


def _read(
    source: Source,
    name: str,
    ids: Sequence[str | None],
    labels: Sequence[str | None],
    columns: Sequence[str],
    dialect: Dialect,
    strict: bool,
) -> NodeTable:
    found: dict[str, str | None] = {}

    def choose(header: list[str]) -> list[str]:
        node_id = ids[0] or _first(header, ids) or header[0]
        label = _first([column for column in header if column != node_id], labels[:1] if labels[0] else labels)
        found.update(id=node_id, label=label)
        wanted = [column for column in columns if column in header] if columns or strict else header
        return need_columns(title(source, name), header, [node_id, *filter(None, [label]), *wanted])

    table = read_table(source, name, choose, dialect)
    return NodeTable(table, str(found["id"]), found["label"])


def _first(header: Sequence[str], names: Sequence[str | None]) -> str | None:
    return next((name for name in names if name in header), None)


def title(source: Source, name: str) -> str:
    """What a table goes by in messages before it is read."""
    return str(source) if isinstance(source, (str, os.PathLike)) else f"the {name} table"
