"""New nodes of a served dataset: what a request says of them, read as the dataset's own tables were, and appended.

Rows go through `fewnode.tables.extend.extend`, as those of `fewnode data extend` do. What the dataset does not know
is refused by name; what is missing, of an unknown category or not used is reported.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import scipy.sparse as sp

from fewnode.class_labels import UNKNOWN
from fewnode.dataset import Dataset
from fewnode.errors import FewnodeError, closest
from fewnode.graph import is_sparse
from fewnode.relations import EdgeRows, Scaling
from fewnode.service.bodies import NewNode
from fewnode.tables.columns import Column
from fewnode.tables.encode import Encoding, number_of
from fewnode.tables.encoder import COLUMN
from fewnode.tables.extend import extend, grown
from fewnode.tables.plain import TEXT
from fewnode.tables.read import Imported
from fewnode.tables.roles import NOT_USED
from fewnode.tables.spec import ImportSpec


class NodeReader:
    """How a dataset takes new nodes: by rows with the columns of its tables, else by attributes with their names."""

    def __init__(self, data: Dataset) -> None:
        self.data, self.imported = data, Imported.of(data) if data.encoding else None
        self.encoding = self.imported.encoding if self.imported else Encoding()
        self._spec = self.imported.rows_like_these() if self.imported else ImportSpec()
        made = {COLUMN} if self.imported and self.imported.encoder else set()  # by an encoder, of the text
        self.used, self.label = [column for column in self.encoding.columns if column not in made], self._spec.label
        self._columns, uses = [*self.used, *filter(None, [self.label])], data.info.get("columns")
        self._unused = {column for column, use in uses.items() if use == NOT_USED} if isinstance(uses, dict) else set()
        names = data.feature_names or tuple(map(str, range(data.graph.n_features)))
        self._attributes = {name: i for i, name in enumerate(names)}

    # --- what is said of a node ---

    def checked(self, node: NewNode) -> NewNode:
        """The node with its cells in the one form in which they are kept; what does not fit is refused."""
        who, name = f"node {node.node!r}", self.data.name
        if not self.imported:
            if node.row is not None:
                instead = 'so it has no columns; give "attributes", by the names of its attributes'
                raise FewnodeError(f"{who}: {name} was not imported from tables, {instead}")
            given = node.attributes or {}
            if given and not any(each in self._attributes for each in given):
                _refuse(who, "attribute", given, self._attributes, "GET /api/nodes/NAME shows those of a node")
            return node
        there = f"there are {', '.join(self._columns)}"
        if node.attributes is not None:
            raise FewnodeError(f'{who}: {name} was imported from tables; give a "row" as they have it: {there}')
        row, own = node.row or {}, str(self._spec.id)
        _refuse(who, "column", row, [*self._columns, own, *self._unused], there)
        if str(row.get(own, node.node)) != node.node:
            raise FewnodeError(f"{who}: its column {own!r} says {row[own]!r}")
        cells = {column: self._cell(f"{who}: column {column!r}", column, cell) for column, cell in row.items()}
        return node.model_copy(update={"row": cells})

    def _cell(self, where: str, column: str, value: Any) -> Any:
        """Numbers and vectors that are written as text are read now, by themselves: how the cells of other nodes are
        written must not change what this one means."""
        vector, number = self.encoding.vector.get(column), column in self.encoding.numeric
        if isinstance(value, str) and (number or vector is not None):
            value = None if self._is_missing(value) else self._read(where, column, value)
        fits, expected = not isinstance(value, list), "text, a number, true or false"
        if number:
            fits, expected = type(value) in (int, float), "a number"
        elif vector is not None:
            fits, expected = isinstance(value, list) and len(value) == len(vector.mean), "a list of {} numbers"
            expected = expected.format(len(vector.mean))
        if value is not None and not fits:
            raise FewnodeError(f"{where}: found {str(value)[:60]}, expected {expected}")
        return value

    def _read(self, where: str, column: str, text: str) -> Any:
        cells = Column(pa.chunked_array([[text]], TEXT), lambda _, what: FewnodeError(what), self._spec)
        number = column in self.encoding.numeric
        try:
            return (
                float(number_of(cells, self.encoding.dates.get(column))[0]) if number else cells.vectors()[0].tolist()
            )
        except FewnodeError:
            wanted = "number" if number else "list of numbers"
            told = f"{text[:60]!r} cannot be read as a {wanted}; send it as a JSON {wanted}"
            raise FewnodeError(f"{where}: {told}") from None

    def _is_missing(self, value: Any) -> bool:
        """An empty cell, or a word such as NA that the import took for one."""
        return value is None or (isinstance(value, str) and value.strip() in {"", *self._spec.missing_words})

    def report(self, nodes: Iterable[NewNode]) -> dict[str, Any]:
        """What became of the cells of nodes: nothing that was given is dropped without a word."""
        missing: dict[str, list[str]] = {}
        unknown: dict[str, dict[str, Any]] = {}
        unused: dict[str, None] = {}
        for node in nodes:
            row = {column: cell for column, cell in (node.row or {}).items() if not self._is_missing(cell)}
            if lacks := [column for column in self.used if column not in row]:
                missing[node.node] = lacks
            categories = self.encoding.category.items()
            if odd := {c: row[c] for c, values in categories if c in row and _text(row[c]) not in values}:
                unknown[node.node] = odd
            unused |= dict.fromkeys(column for column in node.row or {} if column in self._unused)
            # one word that nobody else has is no reason to refuse a node
            unused |= dict.fromkeys(name for name in node.attributes or {} if name not in self._attributes)
        return {"missing": missing, "unknown": unknown, "unused": list(unused)}

    # --- what becomes of it ---

    def appended(self, nodes: Sequence[NewNode]) -> Dataset:
        """The dataset with new nodes and their edges behind its own; what they contradict is an error."""
        data, old, new = self.data, self.data.graph, [node.node for node in nodes]
        names = (*(data.node_names or map(str, range(old.n))), *new)
        rows = _edge_rows(data, self._scaling, nodes, {name: i for i, name in enumerate(names)})
        if self.imported:
            try:
                more = extend(data, self._table(nodes), rows)
            except FewnodeError as error:  # of a row of all nodes; said of the node
                row = re.compile(r"^the nodes table: data row (\d+),")
                raise FewnodeError(row.sub(lambda row: f"node {new[int(row[1]) - 1]!r}:", str(error))) from None
            return replace(more, graph=replace(more.graph, home=old.home), info=data.info)
        x = sp.lil_array((len(nodes), len(self._attributes)), dtype=np.float32)
        with np.errstate(over="ignore"):  # what becomes infinite is refused where the graph is made
            for i, node in enumerate(nodes):
                for name, amount in (node.attributes or {}).items():
                    if name in self._attributes:
                        x[i, self._attributes[name]] = amount
        every = sp.vstack([old.x, x], format="csr") if is_sparse(old.x) else np.concatenate([old.x, x.toarray()])
        graph, _ = grown(data, len(names), every, rows, old.directed, self._scaling)
        no_class = None if data.labels is None else sp.csr_array((len(new), data.labels.shape[1]), dtype=bool)
        return replace(
            data,
            graph=replace(graph, home=old.home, blocks=old.blocks),
            y=np.concatenate([data.y, np.full(len(new), UNKNOWN)]),
            labels=None if data.labels is None else sp.vstack([data.labels, no_class], format="csr"),
            node_names=names,
            kind=None if data.kind is None else np.concatenate([data.kind, np.zeros(len(new), np.int64)]),
            texts=None if data.texts is None else (*data.texts, *[""] * len(new)),
        )

    def _scaling(self, relation: str) -> Scaling:
        return self.imported.scaling(relation) if self.imported else Scaling()

    def _table(self, nodes: Sequence[NewNode]) -> dict[str, list[Any]]:
        """Their rows by the columns of the dataset's tables; what is missing is None."""
        table: dict[str, list[Any]] = {str(self._spec.id): [node.node for node in nodes]}
        for column in self._columns:
            cells: list[Any] = [(node.row or {}).get(column) for node in nodes]
            if column in self.encoding.numeric:
                cells = [None if cell is None else float(cell) for cell in cells]
            elif column not in self.encoding.vector:
                cells = [None if cell is None else _text(cell) for cell in cells]
            table[column] = cells
        return table


def _edge_rows(
    data: Dataset, scaling: Callable[[str], Scaling], nodes: Sequence[NewNode], place: Mapping[str, int]
) -> EdgeRows:
    """The edges of new nodes, with the kind and the amount of each where the network has these."""
    relations = {relation.name: relation for relation in data.graph.relations}
    ends, kinds, amounts = [], [], []
    for node, edge in [(new, edge) for new in nodes for edge in new.edges]:
        who = f"node {node.node!r}: its edge to {edge.node!r}"
        if edge.node == node.node:
            raise FewnodeError(f"node {node.node!r} has an edge to itself, which says nothing")
        pair = (place[edge.node], place[node.node])
        ends.append(pair if edge.way == "from" else pair[::-1])
        if not relations:
            if (edge.kind, edge.weight, edge.way) != (None, None, "from"):
                raise FewnodeError(f"{who}: the network has neither weights nor kinds of edges")
            continue
        kind = edge.kind or (next(iter(relations)) if len(relations) == 1 else "edges")
        if kind not in relations:
            asked = f"unknown kind {kind!r}{closest(kind, relations)}" if edge.kind else "give its kind"
            raise FewnodeError(f"{who}: {asked}; there are {', '.join(relations)}")
        if edge.weight is not None and not relations[kind].weighted:
            raise FewnodeError(f"{who}: edges of kind {kind!r} have no weights; leave out the weight")
        usual = float(scaling(kind).invert(np.ones(1))[0]) if relations[kind].weighted else 1.0
        kinds.append(list(relations).index(kind))
        amounts.append(usual if edge.weight is None else edge.weight)
    index = np.array(ends, np.int64).reshape(-1, 2).T
    if not relations:
        return EdgeRows(index)
    return EdgeRows(index, np.array(amounts, np.float64), np.array(kinds, np.int64), tuple(relations))


def _refuse(who: str, what: str, given: Iterable[str], known: Iterable[str], there: str) -> None:
    """Whatever is not known is refused by name."""
    names = set(known)
    if unknown := next((name for name in given if name not in names), None):
        raise FewnodeError(f"{who}: unknown {what} {unknown!r}{closest(unknown, names)}; {there}")


def _text(cell: Any) -> str:
    """A JSON value as a table has it: 7.0 is 7, and true is true."""
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 2**53:
        cell = int(cell)
    return str(cell).lower() if isinstance(cell, bool) else str(cell).strip()
