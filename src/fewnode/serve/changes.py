"""A dataset as requests have changed it: nodes attached, replaced and deleted, edges added and removed.

It is always made of the dataset and the whole state, by the code that `fewnode data extend` runs: a restart finds what
the last request left, and a row over HTTP means what it means in a table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from fewnode.datasets.encode import Encoding
from fewnode.datasets.tables import extend
from fewnode.errors import FewnodeError, closest
from fewnode.graph import UNKNOWN, Attributes, Dataset, Graph, Ints, is_sparse
from fewnode.serve.state import Content, Edge, State

SHOWN = 5
"""Unknown columns that a refusal names."""


@dataclass(frozen=True)
class Account:
    """What became of the cells of new nodes: nothing that was given is dropped without a word."""

    missing: dict[str, list[str]] = field(default_factory=dict)
    """Of each node, the columns that it does not have."""
    unknown: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Of each node, cells with a category that the dataset does not have; they count as missing."""
    unused: list[str] = field(default_factory=list)
    """Columns that the import left out, and that are left out here as well."""

    def to_json(self) -> dict[str, Any]:
        return {"missing": self.missing, "unknown": self.unknown, "unused": self.unused}


class Origin:
    """The dataset that the service was started with, and what follows from it for new nodes."""

    def __init__(self, data: Dataset) -> None:
        self.data = data
        self.numbered = data.node_names is None
        self.encoding = Encoding.from_json(data.encoding) if data.encoding else None
        self.directed = bool(data.encoding["directed"]) if data.encoding else data.graph.directed
        self.names = data.node_names or tuple(map(str, range(data.graph.n)))

    @cached_property
    def row(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.names)}

    @cached_property
    def _ignored(self) -> set[str]:
        """Columns that the import saw and made no attributes of."""
        columns = self.data.info.get("columns")
        return {name for name, role in columns.items() if role == "ignored"} if isinstance(columns, dict) else set()

    def form(self, name: str) -> str:
        """The one form of a name: where nodes have none but their number, 01 is 1."""
        return str(int(name)) if self.numbered and name.isdecimal() else name

    def edge(self, source: str, target: str) -> Edge:
        """The one form of an edge."""
        return (source, target) if self.directed or source <= target else (target, source)

    def has_edge(self, edge: Edge, state: State) -> bool:
        """Whether the dataset has the edge, and both of its ends are still there."""
        source, target = (-1 if name in state.removed else self.row.get(name, -1) for name in edge)
        return min(source, target) >= 0 and linked(self.data.graph, source, target)

    # --- rows ---

    def content(self, name: str, given: Content | None) -> Content:
        """What was given of a node, in the way in which this dataset takes it; what it does not know is refused."""
        if self.encoding is None:
            if given is not None and "row" in given:
                raise FewnodeError(
                    f"node {name!r}: {self.data.name} was not imported from tables, so it has no columns; "
                    'give "attributes", by the names of its attributes'
                )
            return self._known_attributes(name, given or {"attributes": {}})
        if given is not None and "attributes" in given:
            raise FewnodeError(
                f'node {name!r}: {self.data.name} was imported from tables; give a "row" as they have it, '
                f"with the columns {', '.join(self.encoding.columns)}"
            )
        return self._known_columns(name, given or {"row": {}})

    def _known_attributes(self, name: str, given: Content) -> Content:
        unknown = [attribute for attribute in given["attributes"] if attribute not in self._column]
        there = "GET /api/nodes/NAME shows those of a node"
        if self.data.feature_names is None:
            there = f"attributes have no names here, expected a number 0 to {self.data.graph.n_features - 1}"
        if unknown:
            shown = ", ".join(map(repr, unknown[:SHOWN])) + (" …" if len(unknown) > SHOWN else "")
            hint = closest(unknown[0], self.data.feature_names or ())
            raise FewnodeError(f"node {name!r}: unknown attribute {shown}{hint}; {there}")
        return given

    def _known_columns(self, name: str, given: Content) -> Content:
        assert self.encoding is not None and self.data.encoding is not None  # noqa: S101, PT018 # nosec B101
        key, label = self.data.encoding.get("id"), self.data.encoding.get("label")
        known = [*self.encoding.columns, *filter(None, [label])]
        unknown = [column for column in given["row"] if column not in {*known, key, *self._ignored}]
        if unknown:
            shown = ", ".join(map(repr, unknown[:SHOWN])) + (" …" if len(unknown) > SHOWN else "")
            hint = closest(unknown[0], known)
            raise FewnodeError(f"node {name!r}: unknown column {shown}{hint}; there are {', '.join(known)}")
        if str(given["row"].get(key, name)) != name:
            raise FewnodeError(f"node {name!r}: its column {key!r} says {given['row'][key]!r}")
        return given

    def account(self, nodes: Mapping[str, Content]) -> Account:
        """What has to be told about nodes that `content` let pass."""
        if self.encoding is None:
            return Account()
        account = Account()
        for name, content in nodes.items():
            row = content["row"]
            if missing := [column for column in self.encoding.columns if row.get(column) in (None, "")]:
                account.missing[name] = missing
            values = {c: row[c] for c in self.encoding.categorical if row.get(c) not in (None, "")}
            if unknown := {c: v for c, v in values.items() if _text(v) not in self._categories[c]}:
                account.unknown[name] = unknown
            account.unused.extend(c for c in row if c in self._ignored and c not in account.unused)
        return account

    @cached_property
    def _categories(self) -> dict[str, set[str]]:
        return {c: set(values) for c, values in self.encoding.categorical.items()} if self.encoding else {}

    @cached_property
    def _column(self) -> dict[str, int]:
        names = self.data.feature_names or tuple(map(str, range(self.data.graph.n_features)))
        return {name: i for i, name in enumerate(names)}

    def _encoded(self, nodes: Mapping[str, Content]) -> tuple[Attributes, Ints, tuple[str, ...]]:
        """The attributes and classes of nodes, and the names of all classes."""
        contents = [self.content(name, content) for name, content in nodes.items()]
        if self.encoding is None:
            rows = _attribute_rows([content["attributes"] for content in contents], self._column)
            return rows, np.full(len(nodes), UNKNOWN), self.data.class_names
        found = extend(self.data, self._table(list(nodes), [content["row"] for content in contents]), alone=True)
        return found.graph.x, found.y, found.class_names

    def _table(self, names: list[str], rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
        """The rows as a table with all columns that the dataset was imported from; missing cells are empty."""
        assert self.encoding is not None and self.data.encoding is not None  # noqa: S101, PT018 # nosec B101
        numeric, label = set(self.encoding.numeric), str(self.data.encoding.get("label"))
        table: dict[str, list[Any]] = {str(self.data.encoding["id"]): names}
        columns = [*self.encoding.columns, *([label] if any(row.get(label) is not None for row in rows) else [])]
        for column in columns:
            cells = [row.get(column) for row in rows]
            table[column] = _numbers(cells) if column in numeric else [None if c is None else _text(c) for c in cells]
        return table

    # --- everything ---

    def changed(self, state: State) -> Dataset:
        """The dataset with all changes of a state; what they contradict is an error."""
        data = self.data
        if not state.changes_network:
            return data
        if unknown := sorted(state.removed - self.row.keys()):
            raise FewnodeError(f"node {unknown[0]!r} was removed, but was never there")
        kept = np.array([name not in state.removed for name in self.names])
        names = [name for name in self.names if name not in state.removed]
        if not names and not state.nodes:
            raise FewnodeError("no node would be left")
        place = {name: i for i, name in enumerate(names)}
        adj, x, y, class_names = data.graph.adj[kept][:, kept], data.graph.x[kept], data.y[kept], data.class_names
        if state.nodes:
            new_x, new_y, class_names = self._encoded(state.nodes)
            source = list(range(len(names)))  # row of the node in the old attributes, or behind them in the new ones
            for i, name in enumerate(state.nodes):
                if name in place:
                    source[place[name]] = len(names) + i
                else:
                    place[name] = len(source)
                    source.append(len(names) + i)
            x = _stacked(x, new_x)[source]
            known = np.concatenate([y, new_y])[source]
            y = np.where(known == UNKNOWN, np.append(y, np.full(len(source) - len(y), UNKNOWN)), known)
        graph = self._rewired(adj, x, place, state.edges)
        return replace(data, graph=graph, y=y, class_names=class_names, node_names=tuple(place))

    def _rewired(self, adj: sp.csr_array, x: Attributes, place: Mapping[str, int], edges: Mapping[Edge, bool]) -> Graph:
        n = len(place)
        for edge in edges:
            for name in edge:
                if name not in place:
                    raise FewnodeError(f"edge {edge[0]!r} - {edge[1]!r}: {name!r} is not in the network")
        old = adj.tocoo()
        source, target = old.coords[1].astype(np.int64), old.coords[0].astype(np.int64)
        ends = np.array([(place[s], place[t]) for s, t in edges], np.int64).reshape(-1, 2)
        added = ends[np.fromiter(edges.values(), bool, len(edges))]
        gone = ends[~np.fromiter(edges.values(), bool, len(edges))]
        gone = gone if self.directed else np.concatenate([gone, gone[:, ::-1]])
        left = ~np.isin(source * n + target, gone[:, 0] * n + gone[:, 1])
        every = np.stack([np.append(source[left], added[:, 0]), np.append(target[left], added[:, 1])])
        return Graph.from_edges(every, n, x, directed=self.directed)


def linked(graph: Graph, source: int, target: int) -> bool:
    adj = graph.adj
    return bool(np.isin(source, adj.indices[adj.indptr[target] : adj.indptr[target + 1]]))


def _attribute_rows(nodes: Sequence[Mapping[str, float]], column: Mapping[str, int]) -> sp.csr_array:
    row, place, value = [], [], []
    for i, attributes in enumerate(nodes):
        for name, amount in attributes.items():
            row.append(i)
            place.append(column[name])
            value.append(amount)
    with np.errstate(over="ignore"):  # what becomes infinite is refused where the graph is made
        return sp.csr_array((np.array(value, np.float32), (row, place)), shape=(len(nodes), len(column)))


def _stacked(above: Attributes, below: Attributes) -> Attributes:
    if is_sparse(above):
        return sp.vstack([above, sp.csr_array(below)], format="csr")
    return np.concatenate([above, below.toarray() if is_sparse(below) else below])


def _numbers(cells: list[Any]) -> list[Any]:
    """Numbers stay what they are; if there is text among them, all are text, which the table then reads."""
    plain = all(cell is None or type(cell) in (int, float) for cell in cells)
    return [None if cell is None else float(cell) if plain else _text(cell) for cell in cells]


def _text(cell: Any) -> str:
    """A JSON value as a table has it: 7.0 is 7, and true is true."""
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 2**53:
        cell = int(cell)
    return str(cell).lower() if isinstance(cell, bool) else str(cell).strip()
