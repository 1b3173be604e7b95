"""What a request says of a node, read as this dataset takes it: a row of its tables, or attributes by name.

Rows go through `fewnode.tables.extend.extend`, as those of `fewnode data extend` do. What the dataset does not know
is refused by name; what is missing, of an unknown category or not used is reported.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import scipy.sparse as sp

from fewnode.class_labels import UNKNOWN
from fewnode.dataset import Dataset
from fewnode.errors import FewnodeError, closest
from fewnode.graph import Attributes, Ints
from fewnode.serve.state import Content
from fewnode.tables.columns import Column
from fewnode.tables.encode import number_of
from fewnode.tables.encoder import COLUMN
from fewnode.tables.extend import extend
from fewnode.tables.plain import TEXT
from fewnode.tables.read import Imported
from fewnode.tables.roles import NOT_USED

SHOWN = 5
"""Unknown names that a refusal lists."""


@dataclass(frozen=True)
class CellReport:
    """What became of the cells of nodes: nothing that was given is dropped without a word."""

    missing: dict[str, list[str]] = field(default_factory=dict)
    """Of each node, the columns that it does not have."""
    unknown: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Of each node, cells with a category that the dataset does not have; they count as missing."""
    unused: list[str] = field(default_factory=list)
    """Columns that the import did not use, and that are not used here either."""

    def to_json(self) -> dict[str, Any]:
        return {"missing": self.missing, "unknown": self.unknown, "unused": self.unused}


class Reader(Protocol):
    """How a dataset takes new nodes."""

    def content(self, name: str, given: Content | None) -> Content:
        """What was given of a node, checked, and in the one form in which it is kept."""

    way: str
    """What a node is given by: `row` or `attributes`."""

    def report(self, nodes: Mapping[str, Content]) -> CellReport:
        """What has to be told about nodes that `content` let pass."""

    def encoded(self, nodes: Mapping[str, Content]) -> EncodedNodes:
        """The attributes and classes of nodes, and the names of all classes."""


class EncodedNodes(NamedTuple):
    """New nodes as the dataset has its own."""

    x: Attributes
    y: Ints
    class_names: tuple[str, ...]
    labels: sp.csr_array | None = None
    kind: Ints | None = None
    kind_names: tuple[str, ...] = ()


def reader_of(data: Dataset) -> Reader:
    return RowReader(data) if data.encoding else AttributeReader(data)


class AttributeReader:
    """Numbers by the name of an attribute, or by its number where attributes have no names."""

    way = "attributes"

    def __init__(self, data: Dataset) -> None:
        self.data = data
        names = data.feature_names or tuple(map(str, range(data.graph.n_features)))
        self.column = {name: i for i, name in enumerate(names)}

    def content(self, name: str, given: Content | None) -> Content:
        if given is not None and "row" in given:
            raise FewnodeError(
                f"node {name!r}: {self.data.name} was not imported from tables, so it has no columns; "
                'give "attributes", by the names of its attributes'
            )
        found = given or {"attributes": {}}
        there = "GET /api/nodes/NAME shows those of a node"
        if self.data.feature_names is None:
            there = f"attributes have no names here, expected a number 0 to {self.data.graph.n_features - 1}"
        _refuse(name, "attribute", found["attributes"], self.column, there)
        return found

    def report(self, nodes: Mapping[str, Content]) -> CellReport:
        return CellReport()

    def encoded(self, nodes: Mapping[str, Content]) -> EncodedNodes:
        row, place, value = [], [], []
        for i, (name, content) in enumerate(nodes.items()):
            for attribute, amount in self.content(name, content)["attributes"].items():
                row.append(i)
                place.append(self.column[attribute])
                value.append(amount)
        shape = (len(nodes), len(self.column))
        with np.errstate(over="ignore"):  # what becomes infinite is refused where the graph is made
            x = sp.csr_array((np.array(value, np.float32), (row, place)), shape=shape)
        return EncodedNodes(x, np.full(len(nodes), UNKNOWN), self.data.class_names)


class RowReader:
    """Rows with the columns of the tables that the dataset was imported from."""

    way = "row"

    def __init__(self, data: Dataset) -> None:
        kept = Imported.of(data)
        self.data, self.encoding, self.spec = data, kept.encoding, kept.rows_like_these()
        self.id, self.label = str(self.spec.id), self.spec.label
        made = {COLUMN} if kept.encoder else set()  # from the text, so no row has it
        self.used = [column for column in self.encoding.columns if column not in made]
        self.categories = {column: set(values) for column, values in self.encoding.category.items()}
        columns = data.info.get("columns")
        uses = columns if isinstance(columns, dict) else {}
        self.unused = {column for column, use in uses.items() if use == NOT_USED}

    @property
    def columns(self) -> list[str]:
        return [*self.used, *filter(None, [self.label])]

    def content(self, name: str, given: Content | None) -> Content:
        there = f"there are {', '.join(self.columns)}"
        if given is not None and "attributes" in given:
            raise FewnodeError(
                f'node {name!r}: {self.data.name} was imported from tables; give a "row" as they have it: {there}'
            )
        row = {} if given is None else given["row"]
        _refuse(name, "column", row, [*self.columns, self.id, *self.unused], there)
        if str(row.get(self.id, name)) != name:
            raise FewnodeError(f"node {name!r}: its column {self.id!r} says {row[self.id]!r}")
        return {"row": {column: self._cell(name, column, value) for column, value in row.items()}}

    def _cell(self, node: str, column: str, value: Any) -> Any:
        """Numbers and vectors that are written as text are read now, by themselves: how the cells of other nodes are
        written must not change what this one means."""
        vector = self.encoding.vector.get(column)
        if isinstance(value, str) and (column in self.encoding.numeric or vector is not None):
            value = self._read(node, column, value)
        if value is None:
            return None
        if column in self.encoding.numeric:
            fits, expected = type(value) in (int, float), "a number"
        elif vector is not None:
            fits = isinstance(value, list) and len(value) == len(vector.mean)
            expected = f"a list of {len(vector.mean)} numbers"
        else:
            fits, expected = not isinstance(value, list), "text, a number, true or false"
        if not fits:
            raise FewnodeError(f"node {node!r}: column {column!r}: found {str(value)[:60]}, expected {expected}")
        if isinstance(value, bool) and column != self.id:
            return _text(value)  # to Python true equals 1, and a change from one to the other would be none
        return value

    def _read(self, node: str, column: str, text: str) -> Any:
        if self._is_missing(text):
            return None
        cells = Column(pa.chunked_array([[text]], TEXT), lambda _, what: FewnodeError(what), self.spec)
        number = column in self.encoding.numeric
        try:
            if number:
                return float(number_of(cells, self.encoding.dates.get(column))[0])
            return cells.vectors()[0].tolist()
        except FewnodeError:
            wanted = "number" if number else "list of numbers"
            told = f"{text[:60]!r} cannot be read as a {wanted}; send it as a JSON {wanted}"
            raise FewnodeError(f"node {node!r}: column {column!r}: {told}") from None

    def _is_missing(self, value: Any) -> bool:
        """An empty cell, or a word such as NA that the import took for one."""
        return value is None or (isinstance(value, str) and value.strip() in {"", *self.spec.missing_words})

    def report(self, nodes: Mapping[str, Content]) -> CellReport:
        report = CellReport()
        for name, content in nodes.items():
            row = content["row"]
            if missing := [column for column in self.used if self._is_missing(row.get(column))]:
                report.missing[name] = missing
            given = {column: row[column] for column in self.categories if not self._is_missing(row.get(column))}
            if unknown := {column: v for column, v in given.items() if _text(v) not in self.categories[column]}:
                report.unknown[name] = unknown
            report.unused.extend(column for column in row if column in self.unused and column not in report.unused)
        return report

    def encoded(self, nodes: Mapping[str, Content]) -> EncodedNodes:
        rows = [self.content(name, content)["row"] for name, content in nodes.items()]
        table: dict[str, list[Any]] = {self.id: list(nodes)}
        for column in self.columns:
            cells = [row.get(column) for row in rows]
            if column in self.encoding.numeric:
                cells = [None if cell is None else float(cell) for cell in cells]
            elif column not in self.encoding.vector:
                cells = [None if cell is None else _text(cell) for cell in cells]
            table[column] = cells
        try:
            found = extend(self.data, table, alone=True)
        except FewnodeError as error:
            raise FewnodeError(_of_node(str(error), list(nodes))) from None
        return EncodedNodes(found.graph.x, found.y, found.class_names, found.labels, found.kind, found.kind_names)


def _refuse(node: str, what: str, given: Iterable[str], known: Iterable[str], there: str) -> None:
    """Whatever is not known is refused by name."""
    names = known if isinstance(known, dict) else set(known)
    if unknown := [name for name in given if name not in names]:
        shown = ", ".join(map(repr, unknown[:SHOWN])) + (" …" if len(unknown) > SHOWN else "")
        raise FewnodeError(f"node {node!r}: unknown {what} {shown}{closest(unknown[0], names)}; {there}")


def _of_node(error: str, names: list[str]) -> str:
    """What `extend` says of a row of all nodes, said of the node."""
    return re.sub(r"^the nodes table: data row (\d+),", lambda row: f"node {names[int(row[1]) - 1]!r}:", error)


def _text(cell: Any) -> str:
    """A JSON value as a table has it: 7.0 is 7, and true is true."""
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 2**53:
        cell = int(cell)
    return str(cell).lower() if isinstance(cell, bool) else str(cell).strip()
