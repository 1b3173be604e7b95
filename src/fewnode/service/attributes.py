"""The attributes of a network, turned around: which nodes have a word, a category or a number, made once."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from fewnode.column_blocks import Block
from fewnode.dataset import Dataset
from fewnode.errors import FewnodeError, closest
from fewnode.graph import Ints, is_sparse
from fewnode.tables.encode import Encoding
from fewnode.tables.read import Imported
from fewnode.tables.vocabulary import Vocabulary, vocabulary_of

VALUES = 20
"""Categories of a column that are listed."""
_RANGE = re.compile(r"\s*(?P<low>[^\s.]+(?:\.\d+)?)?\s*\.\.\s*(?P<high>\S+)?\s*")
_COMPARED = re.compile(r"\s*(?P<sign>>=|<=|>|<|=)?\s*(?P<number>\S+)\s*")


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
    def _turned(self) -> sp.csc_array:
        x = self.data.graph.x
        return sp.csc_array(x) if is_sparse(x) else sp.csc_array(sp.csr_array(x))

    def nodes(self, column: int) -> tuple[Ints, NDArray[np.float32]]:
        """The nodes whose attribute is not 0, and what it is."""
        x = self.data.graph.x
        if not is_sparse(x):
            found = np.flatnonzero(x[:, column])
            return found, x[found, column]
        place = slice(self._turned.indptr[column], self._turned.indptr[column + 1])
        return self._turned.indices[place].astype(np.int64), self._turned.data[place]

    # --- names ---

    @cached_property
    def encoding(self) -> Encoding | None:
        return Imported.of(self.data).encoding if self.data.encoding else None

    @cached_property
    def words(self) -> Block | None:
        """The attributes that count words, if there are such."""
        graph, names = self.data.graph, self.data.feature_names
        block = next((block for block in graph.blocks if block.kind == "words"), None)
        if names is None or (block is None and (graph.blocks or not graph.n_features)):
            return None
        found = block or Block("words", 0, graph.n_features)
        return found if vocabulary_of(names[found.start : found.stop]).speaks else None

    @cached_property
    def vocabulary(self) -> Vocabulary | None:
        names = self.data.feature_names
        return None if self.words is None or names is None else vocabulary_of(names[self.words.start : self.words.stop])

    @cached_property
    def columns(self) -> dict[str, Attribute]:
        """What the table had, in its own words; nothing where there was no table."""
        encoding = self.encoding
        if encoding is None:
            return {}
        place = len(encoding.vocabulary)
        found = [Attribute(name, "text", 0, place) for name in encoding.text]
        for kind, name, width in (
            *(("number", name, 1) for name in encoding.numeric),
            *(("category", name, len(values)) for name, values in encoding.category.items()),
            *(("vector", name, len(scale.mean)) for name, scale in encoding.vector.items()),
        ):
            found.append(Attribute(name, kind, place, place + width))
            place += width
        return {each.name: each for each in found}

    @cached_property
    def _single(self) -> dict[str, int]:
        names = self.data.feature_names or tuple(map(str, range(self.data.graph.n_features)))
        return {name: i for i, name in enumerate(names)}

    def find(self, name: str) -> Attribute:
        """The attribute of that name: a column of the table, else one attribute of the graph."""
        if name in self.columns:
            return self.columns[name]
        place = self._single.get(name)
        if place is None:
            some = [*self.columns, *self._single]
            told = closest(name, some) if some else f"; {self.data.name} has no attributes"
            raise FewnodeError(f"there is no attribute {name!r}{told}")
        return Attribute(name, self._kind(place), place, place + 1)

    def _kind(self, column: int) -> str:
        return "word" if self.words is not None and self.words.start <= column < self.words.stop else "number"

    # --- what nodes have ---

    def having(self, name: str, value: str) -> NDArray[np.bool_]:
        """Nodes by an attribute: a category by its name, a number as `12`, `>12` or `10..20`, a word by being there."""
        attribute = self.find(name)
        if attribute.kind == "category":
            return self._category(attribute, value)
        if attribute.kind == "text":
            raise FewnodeError(f"column {name!r} is text; search for its words")
        if attribute.kind == "vector":
            raise FewnodeError(f"column {name!r} is a list of numbers, which cannot be searched for")
        amounts = self.amounts(attribute)
        if not value.strip():
            found: NDArray[np.bool_] = np.isfinite(amounts) & ((amounts != 0) | (name in self.columns))
            return found
        return _within(name, amounts, value)

    def _category(self, attribute: Attribute, value: str) -> NDArray[np.bool_]:
        assert self.encoding is not None, "only a table has categories"  # noqa: S101 # nosec B101
        values = self.encoding.category[attribute.name]
        if value and value not in values:
            raise FewnodeError(f"column {attribute.name!r} has no value {value!r}{closest(value, values)}")
        wanted = [attribute.start + values.index(value)] if value else range(attribute.start, attribute.stop)
        found = np.zeros(self.data.graph.n, bool)
        for column in wanted:
            found[self.nodes(column)[0]] = True
        return found

    def amounts(self, attribute: Attribute) -> NDArray[np.float64]:
        """A number a node, in the unit of the table; NaN where it is missing."""
        found = np.zeros(self.data.graph.n)
        nodes, values = self.nodes(attribute.start)
        found[nodes] = values
        encoding = self.encoding
        if encoding is not None and attribute.name in encoding.numeric:
            mean, deviation = encoding.numeric[attribute.name]
            found = np.round(found * deviation + mean, 6)
            if attribute.name in encoding.flags:
                flags = self.data.graph.n_features - len(encoding.flags)
                found[self.nodes(flags + encoding.flags.index(attribute.name))[0]] = np.nan
        return found

    def cells(self, attribute: Attribute, rows: Ints) -> list[Any]:
        """What some nodes have: a number, the name of a category, or nothing."""
        if attribute.kind == "category":
            assert self.encoding is not None, "only a table has categories"  # noqa: S101 # nosec B101
            values, found = self.encoding.category[attribute.name], [None] * len(rows)
            part = self.data.graph.x[rows][:, attribute.start : attribute.stop]
            for row, column in zip(*part.nonzero(), strict=True):
                found[int(row)] = values[int(column)]  # type: ignore[call-overload]
            return found
        if attribute.kind in ("text", "vector"):
            raise FewnodeError(f"column {attribute.name!r} is {attribute.kind}, which no cell of a table can show")
        return [None if np.isnan(cell) else float(cell) for cell in self.amounts(attribute)[rows].tolist()]

    # --- lists ---

    def listed(self, search: str, limit: int) -> dict[str, Any]:
        """Attributes by name: columns of the table first, then those that most nodes have."""
        wanted = search.strip().lower()
        found = [*self._columns_told(wanted), *self._singles_told(wanted)]
        return {"total": len(found), "attributes": found[:limit]}

    def _columns_told(self, wanted: str) -> Iterator[dict[str, Any]]:
        for name, attribute in self.columns.items():
            if wanted in name.lower():
                yield {"name": name, "nodes": self._count(attribute), "kind": attribute.kind, **self.values(attribute)}

    def values(self, attribute: Attribute) -> dict[str, Any]:
        if attribute.kind != "category" or self.encoding is None:
            return {}
        return {"values": list(self.encoding.category[attribute.name][:VALUES])}

    def _count(self, attribute: Attribute) -> int:
        if attribute.kind == "number":
            return int(np.isfinite(self.amounts(attribute)).sum())
        found = np.zeros(self.data.graph.n, bool)
        for column in range(attribute.start, attribute.stop):
            found[self.nodes(column)[0]] = True
        return int(found.sum())

    def _singles_told(self, wanted: str) -> list[dict[str, Any]]:
        """Words, and attributes of a network that was not imported from a table."""
        start, stop = 0, self.data.graph.n_features
        if self.columns:
            start, stop = (self.words.start, self.words.stop) if self.words else (0, 0)
        sizes = np.diff(self._turned.indptr) if is_sparse(self.data.graph.x) else (self.data.graph.x != 0).sum(axis=0)
        names = list(self._single)
        hits = [i for i in range(start, stop) if wanted in names[i].lower()]
        hits.sort(key=lambda i: (not names[i].lower().startswith(wanted), -int(sizes[i])))
        return [{"name": names[i], "nodes": int(sizes[i]), "kind": self._kind(i)} for i in hits]


def _within(name: str, amounts: NDArray[np.float64], value: str) -> NDArray[np.bool_]:
    """Which of the numbers a person means."""
    compared = {">": np.greater, ">=": np.greater_equal, "<": np.less, "<=": np.less_equal}
    try:
        if (found := _RANGE.fullmatch(value)) and (found["low"] or found["high"]):
            low, high = float(found["low"] or "-inf"), float(found["high"] or "inf")
            inside: NDArray[np.bool_] = (amounts >= low) & (amounts <= high)
            return inside
        found = _COMPARED.fullmatch(value)
        number = float(found["number"]) if found else float("nan")
    except ValueError:
        number = float("nan")
    if found is None or np.isnan(number):
        raise FewnodeError(f"attribute {name!r}: {value[:60]!r} is no number; write 12, >12, <=12 or 10..20")
    with np.errstate(invalid="ignore"):
        if found["sign"] in compared:
            other: NDArray[np.bool_] = compared[found["sign"]](amounts, number)
            return other
        return np.isclose(amounts, number, rtol=1e-4, atol=1e-6)
