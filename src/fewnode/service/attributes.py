"""What nodes can be asked for by: columns of the table that was imported, or single attributes of the graph."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from fewnode.dataset import Dataset
from fewnode.errors import FewnodeError, closest
from fewnode.graph import Ints, is_sparse
from fewnode.tables.encode import Encoding
from fewnode.tables.read import Imported
from fewnode.tables.words import Vocabulary, vocabulary_of

VALUES = 20
"""Categories of a column that are listed."""
COMPARISONS = {">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt}
"""The longer signs first: one begins as another one is."""


class Attribute(NamedTuple):
    """Something that can be asked for by its name: a column of the table that was imported, or one attribute."""

    name: str
    kind: str
    """`word`, `text`, `number`, `category` or `vector`."""
    start: int
    stop: int
    """Its columns among the attributes of the graph."""


@dataclass(frozen=True, eq=False)
class AttributeIndex:
    """Attributes by name, and the nodes that have them."""

    data: Dataset

    @cached_property
    def _by_column(self) -> sp.csc_array:
        return sp.csc_array(self.data.graph.x)

    def nodes(self, column: int) -> tuple[Ints, NDArray[np.float32]]:
        """The nodes whose attribute is not 0, and what it is."""
        if not is_sparse(x := self.data.graph.x):
            rows = np.flatnonzero(x[:, column])
            return rows, x[rows, column]
        place = slice(self._by_column.indptr[column], self._by_column.indptr[column + 1])
        return self._by_column.indices[place].astype(np.int64), self._by_column.data[place]

    # --- names ---

    @cached_property
    def encoding(self) -> Encoding:
        """How columns became attributes; of no column where no table was imported."""
        return Imported.of(self.data).encoding if self.data.encoding else Encoding()

    @cached_property
    def words(self) -> tuple[int, Vocabulary] | None:
        """The first of the attributes that count words, and these words, if there are such."""
        graph, names = self.data.graph, self.data.feature_names
        block = next((block for block in graph.blocks if block.kind == "words"), None)
        if names is None or not names or (graph.blocks and block is None):
            return None
        start, stop = (block.start, block.stop) if block else (0, len(names))
        vocabulary = vocabulary_of(names[start:stop])
        return (start, vocabulary) if vocabulary.speaks else None

    @cached_property
    def columns(self) -> dict[str, Attribute]:
        """What the table had, in its own words; nothing where there was no table."""
        encoding, place = self.encoding, len(self.encoding.vocabulary)
        found = [Attribute(name, "text", 0, place) for name in encoding.text]
        for kind, name, width in (
            *(("number", name, 1) for name in encoding.numeric),
            *(("category", name, len(values)) for name, values in encoding.category.items()),
            *(("vector", name, len(scale.mean)) for name, scale in encoding.vector.items()),
        ):
            found.append(Attribute(name, kind, place, place + width))
            place += width
        return {column.name: column for column in found}

    @cached_property
    def _single(self) -> dict[str, Attribute]:
        """Attributes of the graph by name; where they have none, by their number."""
        names = self.data.feature_names or tuple(map(str, range(self.data.graph.n_features)))
        words = range(self.words[0], self.words[0] + len(self.words[1].names)) if self.words else ()
        return {name: Attribute(name, "word" if i in words else "number", i, i + 1) for i, name in enumerate(names)}

    def find(self, name: str) -> Attribute:
        """The attribute of that name: a column of the table, else one attribute of the graph."""
        if (found := self.columns.get(name) or self._single.get(name)) is None:
            names = [*self.columns, *self._single]
            told = closest(name, names) if names else f"; {self.data.name} has no attributes"
            raise FewnodeError(f"there is no attribute {name!r}{told}")
        return found

    # --- what nodes have ---

    def cells(self, attribute: Attribute) -> NDArray[Any]:
        """What each node has: a number in the unit of the table, or the name of a category. NaN and None: nothing."""
        name, n = attribute.name, self.data.graph.n
        if attribute.kind == "category":
            labels, names = np.full(n, None, object), np.array(self.encoding.category[name], object)
            rows, places = self.data.graph.x[:, attribute.start : attribute.stop].nonzero()
            labels[rows] = names[places]
            return labels
        if attribute.kind in ("text", "vector"):
            told = "text; search for its words" if attribute.kind == "text" else "a list of numbers, which is not shown"
            raise FewnodeError(f"column {name!r} is {told}")
        amounts = np.zeros(n)
        nodes, values = self.nodes(attribute.start)
        amounts[nodes] = values
        if name in self.columns:
            mean, deviation = self.encoding.numeric[name]
            amounts = np.round(amounts * deviation + mean, 6)
            if name in (flags := self.encoding.flags):
                amounts[self.nodes(self.data.graph.n_features - len(flags) + flags.index(name))[0]] = np.nan
        return amounts

    def having(self, name: str, value: str) -> NDArray[np.bool_]:
        """Nodes by an attribute: a category by its name, a number as `12`, `>12` or `10..20`, a word by being there."""
        attribute = self.find(name)
        cells, wanted = self.cells(attribute), value.strip()
        found: NDArray[np.bool_]
        if attribute.kind == "category":
            if value and value not in (values := self.encoding.category[name]):
                raise FewnodeError(f"column {name!r} has no value {value!r}{closest(value, values)}")
            found = cells == value if value else cells.astype(bool)
        elif wanted:
            found = _within(name, cells, wanted)
        else:
            found = np.isfinite(cells) & ((cells != 0) | (name in self.columns))
        return found

    # --- lists ---

    def listed(self, search: str, limit: int) -> dict[str, Any]:
        """Attributes by name: columns of the table first, then those that most nodes have."""
        wanted = search.strip().lower()
        found = [
            {"name": name, "nodes": self._count(column), "kind": column.kind, **self.values(column)}
            for name, column in self.columns.items()
            if wanted in name.lower()
        ]
        x = self.data.graph.x
        sizes = np.diff(self._by_column.indptr) if is_sparse(x) else np.count_nonzero(x, axis=0)
        single = [
            a for a in self._single.values() if wanted in a.name.lower() and (a.kind == "word" or not self.columns)
        ]
        single.sort(key=lambda a: (not a.name.lower().startswith(wanted), -int(sizes[a.start])))
        found += [{"name": a.name, "nodes": int(sizes[a.start]), "kind": a.kind} for a in single]
        return {"total": len(found), "attributes": found[:limit]}

    def values(self, attribute: Attribute) -> dict[str, Any]:
        return {"values": list(self.encoding.category[attribute.name][:VALUES])} if attribute.kind == "category" else {}

    def _count(self, attribute: Attribute) -> int:
        """The nodes that have it."""
        if attribute.kind == "number":
            return int(np.isfinite(self.cells(attribute)).sum())
        part = self.data.graph.x[:, attribute.start : attribute.stop]
        return int(np.count_nonzero((part != 0).sum(axis=1)))


def _within(name: str, amounts: NDArray[np.float64], value: str) -> Any:
    """Which of the numbers a person means."""
    low, dots, high = map(str.strip, value.partition(".."))
    sign = next((sign for sign in COMPARISONS if value.startswith(sign)), "")
    try:
        if dots and (low or high):
            return (amounts >= float(low or "-inf")) & (amounts <= float(high or "inf"))
        if np.isnan(number := float(value.removeprefix(sign).removeprefix("="))):
            raise ValueError
    except ValueError:
        told = f"attribute {name!r}: {value[:60]!r} is no number; write 12, >12, <=12 or 10..20"
        raise FewnodeError(told) from None
    return COMPARISONS[sign](amounts, number) if sign else np.isclose(amounts, number, 1e-4, 1e-6)
