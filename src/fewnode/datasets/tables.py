"""A user's own network: a table of nodes and a table of edges become a dataset, and later tables extend it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse as sp

from fewnode.datasets.arrow import TEXT, Source, Table, need_columns, read_table
from fewnode.datasets.encode import ROLES, Encoding, Words, guess_role
from fewnode.datasets.splits import Split, choose_split
from fewnode.errors import FewnodeError
from fewnode.graph import UNKNOWN, Attributes, Dataset, Graph, Ints, is_sparse

UnknownEnds: TypeAlias = Literal["refuse", "drop"]

IDS = ("id", "node", "name")
LABELS = ("label", "class")
ENDS = (("source", "target"), ("from", "to"), ("src", "dst"))
"""Columns that are found without being named, the first that is there."""


def read_tables(
    edges: Source,
    nodes: Source,
    *,
    id: str | None = None,  # noqa: A002
    label: str | None = None,
    text: Sequence[str] = (),
    numeric: Sequence[str] = (),
    categorical: Sequence[str] = (),
    source: str | None = None,
    target: str | None = None,
    directed: bool = False,
    unknown_ends: UnknownEnds = "refuse",
    split: Split = "50/20/30",
    seed: int = 0,
    min_nodes: int = 10,
    words: Words | None = None,
    name: str | None = None,
) -> Dataset:
    """A dataset from a table of edges and a table of nodes: files, pandas frames, Arrow tables or mappings.

    `id` is the column of node names (by default `id`, `node`, `name` or else the first) and `label` that of classes (by
    default `label` or `class`; without one nobody is labelled); an empty cell is an unknown class. The columns in
    `text`, `numeric` and `categorical` become attributes; if none is named, every other column is used as what it looks
    like. `source` and `target` are by default columns of that name or else the first two. `split` is shares `50/20/30`,
    class counts `40,17,20`, or lists of class names under `train`, `valid` and `test`. What was understood is in the
    result's `info`.

    >>> data = read_tables({"a": ["x", "y"], "b": ["y", "z"]}, {"id": ["x", "y", "z"], "size": [1, 2, 3]})
    >>> print(data.graph)
    3 nodes, 2 edges, 1 attributes
    """
    roles = _given_roles(text, numeric, categorical)
    rows = _read_nodes(nodes, (id, *IDS), (label, *LABELS), list(roles))
    ids = rows.ids()
    linked = _link(edges, (source, target), ids, rows.table.name, unknown_ends)
    if not linked.facts["edge_rows"]:
        raise FewnodeError(f"{linked.facts['edges']}: no edge in it")
    guesses = {} if roles else rows.guess_roles()
    roles = roles or {column: role for column, (role, _) in guesses.items() if role}
    encoding = Encoding.learn(rows.table, roles, words or Words())
    x, missing = encoding.encode(rows.table)
    graph = Graph.from_edges(linked.edge_index, len(rows.table), x, directed=directed)
    y, class_names = rows.labels()
    return Dataset(
        graph=graph,
        y=y,
        split=choose_split(y, class_names, split, seed, min_nodes),
        class_names=class_names,
        node_names=tuple(ids.to_pylist()),
        feature_names=encoding.feature_names or None,
        name=name or Path(rows.table.name).name.split(".")[0],
        info={
            "nodes": Path(rows.table.name).name,
            "columns": {column: rows.role(column, roles) for column in rows.table.header},
            "guessed": {column: why for column, (_, why) in guesses.items()},
            "attributes": encoding.counts,
            "missing": missing,
            **linked.facts,
            "repeated_edges": linked.proper - _count_edges(graph, directed),
        },
        encoding={"id": rows.id, "label": rows.label, "directed": directed, **encoding.to_json()},
    )


def extend(
    data: Dataset,
    nodes: Source,
    edges: Source | None = None,
    *,
    id: str | None = None,  # noqa: A002
    label: str | None = None,
    source: str | None = None,
    target: str | None = None,
    unknown_ends: UnknownEnds = "refuse",
    alone: bool = False,
) -> Dataset:
    """The dataset with more nodes behind its own, encoded with its vocabulary and scaling; its models work on it.

    Ids must be new; edges may join new nodes with each other and with old ones. The class split stays as it is: a class
    name that `data` does not have becomes a class outside the split, and without a label column the classes of the new
    nodes are unknown. With `alone` the result is a network of the new nodes only.

    >>> data = read_tables({"a": ["x", "y"], "b": ["y", "z"]}, {"id": ["x", "y", "z"], "size": [1, 2, 3]})
    >>> more = extend(data, {"id": ["w"], "size": [2]}, {"a": ["w"], "b": ["x"]})
    >>> more.node_names
    ('x', 'y', 'z', 'w')
    """
    if not data.encoding:
        raise FewnodeError(f"{data.name} was not imported from tables, so how to encode new rows is not known")
    stored, encoding = data.encoding, Encoding.from_json(data.encoding)
    data = _emptied(data) if alone else data
    rows = _read_nodes(nodes, (id, stored.get("id")), (label, stored.get("label")), encoding.columns, strict=True)
    old = pa.array(data.node_names or [str(i) for i in range(data.graph.n)], TEXT)
    ids = pa.concat_arrays([old, rows.new_ids(old, data.name)])
    owners = rows.table.name if alone else f"{data.name} or {rows.table.name}"
    linked = _NO_LINKS if edges is None else _link(edges, (source, target), ids, owners, unknown_ends)
    x, missing = encoding.encode(rows.table)
    directed = bool(stored.get("directed"))
    every = np.concatenate([data.graph.edge_index(), linked.edge_index], axis=1)
    graph = Graph.from_edges(every, len(ids), _stack(data.graph.x, x), directed=directed)
    y, class_names = rows.labels(data.class_names)
    added = {
        "nodes": Path(rows.table.name).name,
        "node_rows": len(rows.table),
        "missing": missing,
        **linked.facts,
        "repeated_edges": linked.proper + _count_edges(data.graph, directed) - _count_edges(graph, directed),
        "new_classes": list(class_names[len(data.class_names) :]),
    }
    return replace(
        data,
        graph=graph,
        y=np.concatenate([data.y, y]),
        class_names=class_names,
        node_names=tuple(ids.to_pylist()),
        info={**data.info, "extended": [*data.info.get("extended", []), added]},
    )


def _emptied(data: Dataset) -> Dataset:
    """The dataset without its nodes: classes, split and encoding are what is left."""
    no_edges = np.zeros((2, 0), np.int64)
    return replace(data, graph=Graph.from_edges(no_edges, 0, data.graph.x[:0]), y=data.y[:0], node_names=())


def _stack(above: Attributes, below: Attributes) -> Attributes:
    if is_sparse(above) or is_sparse(below):
        return sp.vstack([sp.csr_array(above), sp.csr_array(below)], format="csr")
    return np.concatenate([above, below])


def _count_edges(graph: Graph, directed: bool) -> int:
    """As `Graph.n_edges`, for one of which we know whether it is directed."""
    return int(graph.adj.nnz) if directed else int(graph.adj.nnz) // 2


# --- nodes --------------------------------------------------------------------------------------------------------


class _Nodes(NamedTuple):
    """The rows of a node table, and which columns hold their names and classes."""

    table: Table
    id: str
    label: str | None

    def ids(self) -> pa.Array:
        """The names of the nodes, none of them missing or given twice."""
        ids = self.table.texts(self.id).combine_chunks()
        if ids.null_count:
            row = int(pc.index(pc.is_null(ids), True).as_py())
            raise self.table.fault(row, self.id, "empty, expected a node id")
        # codes count up with each id that is new, so the first row whose code is not its number repeats an id
        codes = pc.dictionary_encode(ids).indices.to_numpy()
        repeated = codes != np.arange(len(codes))
        if repeated.any():
            row = int(repeated.argmax())
            name = ids[row].as_py()
            raise self.table.fault(row, self.id, f"node {name!r} is in data row {codes[row] + 1} already")
        return ids

    def new_ids(self, old: pa.Array, owner: str) -> pa.Array:
        ids = self.ids()
        known = pc.index_in(ids, value_set=old)
        if known.null_count < len(ids):
            row = int(pc.index(pc.is_valid(known), True).as_py())
            raise self.table.fault(row, self.id, f"node {ids[row].as_py()!r} is in {owner} already, expected new nodes")
        return ids

    def labels(self, known: tuple[str, ...] = ()) -> tuple[Ints, tuple[str, ...]]:
        """Class ids, -1 where unknown, and the class names: the known ones first, then new ones in order."""
        if self.label is None:
            return np.full(len(self.table), UNKNOWN), known
        cells = self.table.texts(self.label)
        new = set(pc.unique(cells).drop_null().to_pylist()) - set(known)
        names = (*known, *_in_order(new))
        y = pc.fill_null(pc.index_in(cells, value_set=pa.array(names, TEXT)), UNKNOWN)
        return y.to_numpy().astype(np.int64), names

    def guess_roles(self) -> dict[str, tuple[str | None, str]]:
        return {
            column: guess_role(self.table, column)
            for column in self.table.header
            if column not in (self.id, self.label)
        }

    def role(self, column: str, roles: Mapping[str, str]) -> str:
        return {self.id: "id", self.label: "label"}.get(column) or roles.get(column, "ignored")


def _in_order(names: set[str]) -> list[str]:
    """Sorted; by value if all are numbers, so that classes 0 … 11 keep their ids."""
    if all(name.isdecimal() and len(name) < 19 for name in names):
        return sorted(names, key=lambda name: (int(name), name))
    return sorted(names)


def _given_roles(text: Sequence[str], numeric: Sequence[str], categorical: Sequence[str]) -> dict[str, str]:
    roles: dict[str, str] = {}
    for role, columns in zip(ROLES, (text, numeric, categorical), strict=True):
        for column in [columns] if isinstance(columns, str) else columns:
            if roles.setdefault(column, role) != role:
                raise FewnodeError(f"column {column!r} is given as {roles[column]} and as {role}; choose one")
    return roles


def _read_nodes(
    source: Source, ids: Sequence[str | None], labels: Sequence[str | None], columns: list[str], strict: bool = False
) -> _Nodes:
    """The id, the label and the given columns; if there are none, all columns, unless `strict`.

    The first of `ids` and of `labels` was asked for and must be there if it is not None; the others are guesses.
    """
    found: dict[str, str | None] = {}

    def choose(header: list[str]) -> list[str]:
        node_id = ids[0] or _first(header, ids) or header[0]
        label = labels[0] or _first([column for column in header if column != node_id], labels)
        found.update(id=node_id, label=label)
        for column in columns:
            if column in (node_id, label):
                raise FewnodeError(f"column {column!r} is the id or the label, so it cannot be an attribute")
        everything = header if not (columns or strict) else columns
        return need_columns(_title(source, "nodes"), header, [node_id, *filter(None, [label]), *everything])

    table = read_table(source, "nodes", choose)
    if not len(table):
        raise FewnodeError(f"{table.name}: no node in it")
    return _Nodes(table, str(found["id"]), found["label"])


def _first(header: Sequence[str], names: Sequence[str | None]) -> str | None:
    return next((name for name in names if name in header), None)


def _title(source: Source, what: str) -> str:
    return str(source) if isinstance(source, (str, os.PathLike)) else f"the {what} table"


# --- edges --------------------------------------------------------------------------------------------------------


class _Links(NamedTuple):
    """Edges as rows of nodes, 2 x E, and what is to be told about their table."""

    edge_index: Ints
    facts: dict[str, Any]

    @property
    def proper(self) -> int:
        """How many edges are no self-loops."""
        return int(self.edge_index.shape[1] - self.facts["self_loops"])


_NO_LINKS = _Links(
    np.zeros((2, 0), np.int64), {"edges": None, "edge_columns": [], "edge_rows": 0, "unknown_ends": 0, "self_loops": 0}
)


def _link(
    source: Source, columns: tuple[str | None, str | None], ids: pa.Array, nodes: str, unknown_ends: UnknownEnds
) -> _Links:
    """The edges of a table whose ends are names in `ids`; others are refused or dropped."""
    if unknown_ends not in ("refuse", "drop"):
        raise FewnodeError(f"unknown ends: found {unknown_ends!r}, expected refuse or drop")
    table = read_table(source, "edges", lambda header: _end_columns(header, columns, _title(source, "edges")))
    ends = table.data.column_names
    found = [pc.fill_null(pc.index_in(table.texts(end), value_set=ids), -1).to_numpy() for end in ends]
    edge_index = np.stack(found).astype(np.int64)
    unknown = edge_index < 0
    rows = unknown.any(axis=0)
    count = int(rows.sum())
    if count and unknown_ends == "refuse":
        row = int(rows.argmax())
        end = ends[int(unknown[:, row].argmax())]
        name = table.texts(end)[row].as_py()
        what = "empty, expected a node id" if name is None else f"node {name!r} is not in {nodes}"
        raise table.fault(row, end, f"{what}; {count:,} such edges (--unknown-ends drop leaves them out)")
    edge_index = edge_index[:, ~rows] if count else edge_index
    return _Links(
        edge_index,
        {
            "edges": Path(table.name).name,
            "edge_columns": list(ends),
            "edge_rows": len(table),
            "unknown_ends": count,
            "self_loops": int((edge_index[0] == edge_index[1]).sum()),
        },
    )


def _end_columns(header: list[str], given: tuple[str | None, str | None], title: str) -> list[str]:
    if len(header) < 2:
        raise FewnodeError(f"{title}: one column {header[0]!r}, expected two with the ends of each edge")
    default = next((pair for pair in ENDS if set(pair) <= set(header)), header[:2])
    ends = [name or other for name, other in zip(given, default, strict=True)]
    if ends[0] == ends[1]:
        raise FewnodeError(
            f"{title}: column {ends[0]!r} is both ends of an edge; name --source-column and --target-column"
        )
    return need_columns(title, header, ends)
