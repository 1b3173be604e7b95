"""Several classes a node: cells with a separator, a table of nodes and classes, and classes that are part of others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse as sp

from fewnode.class_labels import UNKNOWN, only_class
from fewnode.datasets.arrow import TEXT, Dialect, Source, Table, need_columns, read_table
from fewnode.datasets.labels import in_order
from fewnode.datasets.rows import NodeRows, written_ids
from fewnode.errors import FewnodeError
from fewnode.graph import Ints

NODES, CLASSES = ("node", "id", "name"), ("class", "label")
"""Columns of a table of labels, the first that is there."""


@dataclass(frozen=True)
class ClassRules:
    """How cells of classes are to be read. As it is, a cell is one class."""

    separator: str | None = None
    """What stands between several classes in a cell."""
    path: str | None = None
    """What stands between a class and its parts: with `/`, a member of `a/b` is one of `a` too."""
    parents: Mapping[str, str] | None = None
    """The class that each class is a part of."""

    def __post_init__(self) -> None:
        for what, mark in (("label separator", self.separator), ("hierarchy", self.path)):
            if mark is not None and not mark.strip():
                raise FewnodeError(f"{what} {mark!r}: expected a mark such as | or /")

    @property
    def is_plain(self) -> bool:
        return self.separator is None and self.path is None and self.parents is None

    def above(self, name: str) -> list[str]:
        """The classes that `name` is a part of, the nearest first."""
        found: list[str] = []
        if self.path is not None:
            parts = name.split(self.path)
            found = [self.path.join(parts[:i]) for i in range(len(parts) - 1, 0, -1)]
        while self.parents and (name := self.parents.get(name, "")):
            found.append(name)
        return found

    def to_json(self) -> dict[str, Any]:
        return {"separator": self.separator, "path": self.path, "parents": dict(self.parents) if self.parents else None}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any] | None) -> ClassRules:
        """What `to_json` gave; it may come from anybody."""
        if stored is None:
            return cls()
        try:
            marks, parents = (stored["separator"], stored["path"]), stored["parents"]
            texts = [each for each in (*marks, *(parents or {}), *(parents or {}).values()) if each is not None]
            if all(isinstance(each, str) for each in texts):
                return cls(*marks, _acyclic(parents, "parents") if parents else None)
        except (KeyError, TypeError, AttributeError):
            pass
        raise FewnodeError("how its classes were read is not what fewnode wrote")


def class_rules(separator: str | None, hierarchy: str | Source | None, dialect: Dialect) -> ClassRules:
    """`hierarchy` is a mark between the parts of a class, or a table of classes and their parents."""
    if hierarchy is None or (isinstance(hierarchy, str) and len(hierarchy) < 3):
        return ClassRules(separator, hierarchy)
    return ClassRules(separator, None, read_parents(hierarchy, dialect))


def read_parents(source: Source, dialect: Dialect) -> dict[str, str]:
    """A table `class,parent`: each class once. A class without a parent may be left out."""

    def choose(header: list[str]) -> list[str]:
        return need_columns(
            str(source) if isinstance(source, str) else "the hierarchy table", header, ["class", "parent"]
        )

    table = read_table(source, "hierarchy", choose, dialect)
    parents: dict[str, str] = {}
    cells = zip(table.texts("class").to_pylist(), table.texts("parent").to_pylist(), strict=True)
    for row, (name, parent) in enumerate(cells):
        if name is None:
            raise table.fault(row, "class", "empty, expected a class")
        if parent is not None and parents.setdefault(name, parent) != parent:
            raise table.fault(row, "parent", f"class {name!r} has the parent {parents[name]!r} already, expected one")
    return _acyclic(parents, table.name)


def _acyclic(parents: Mapping[str, str], place: str) -> dict[str, str]:
    done: set[str] = set()
    for name in parents:
        way: dict[str, None] = {}
        while name in parents and name not in done:
            if name in way:
                raise FewnodeError(f"{place}: class {name!r} is a part of itself: {' of '.join([*way, name][:6])}")
            way[name] = None
            name = parents[name]
        done |= way.keys()
    return dict(parents)


# --- memberships --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Classes:
    """The classes of nodes. `labels` is None if no node is in several."""

    y: Ints
    names: tuple[str, ...]
    labels: sp.csr_array | None
    facts: dict[str, Any]

    @property
    def every(self) -> Ints:
        """A class id for each membership: what a split counts."""
        return self.y if self.labels is None else self.labels.indices.astype(np.int64)


def read_classes(rows: NodeRows, rules: ClassRules, known: tuple[str, ...] = ()) -> Classes:
    """The classes in the label columns; several of them in a cell are told apart by the separator."""
    cells = rows.classes()
    words = rows.missing_classes()
    if rules.is_plain:
        names = (*known, *in_order(set(pc.unique(cells).drop_null().to_pylist()) - set(known)))
        y = pc.fill_null(pc.index_in(cells, value_set=pa.array(names, TEXT)), UNKNOWN).to_numpy().astype(np.int64)
        unknown = int((y < 0).sum())
        return Classes(y, names, None, {"unknown": unknown, "empty": unknown - sum(words.values()), "words": words})
    codes = pc.dictionary_encode(cells).combine_chunks()
    distinct = codes.dictionary.to_pylist()

    def fault(cell: str, what: str) -> FewnodeError:
        row = int(pc.index(cells, cell).as_py())
        return rows.fault(row, rows.label_at(row), what)

    own = [_split(cell, rules, lambda what, cell=cell: fault(cell, what)) for cell in distinct]
    place = pc.fill_null(codes.indices, UNKNOWN).to_numpy()
    members = np.repeat(np.arange(len(place)), [len(own[c]) if c >= 0 else 0 for c in place])
    found = [name for c in place if c >= 0 for name in own[c]]
    empty = int((place < 0).sum()) - sum(words.values())
    return _classes(members, found, len(rows), rules, known, {"empty": empty, "words": words})


def read_label_table(
    source: Source, ids: pa.Array, owner: str, rules: ClassRules, dialect: Dialect, known: tuple[str, ...] = ()
) -> Classes:
    """A table of nodes and classes, a row a membership."""
    title = str(source) if isinstance(source, str) else "the labels table"

    def choose(header: list[str]) -> list[str]:
        if len(header) < 2:
            raise FewnodeError(f"{title}: one column {header[0]!r}, expected two: node and class")
        node = next((name for name in NODES if name in header), header[0])
        label = next((name for name in CLASSES if name in header and name != node), None)
        return [node, label or next(name for name in header if name != node)]

    table = read_table(source, "labels", choose, dialect)
    node, label = table.data.column_names
    names = written_ids(table, node)
    place = pc.index_in(names, value_set=ids)
    if place.null_count:
        row = int(pc.index(pc.is_null(place), True).as_py())
        name = names[row].as_py()
        raise table.fault(row, node, "empty, expected a node" if name is None else f"node {name!r} is not in {owner}")
    cells = table.labels(label)
    if cells.null_count:
        row = int(pc.index(pc.is_null(cells), True).as_py())
        raise table.fault(row, label, "empty, expected a class; leave the row out if it is unknown")
    own = [_split(cell, rules, _at(table, row, label)) for row, cell in enumerate(cells.to_pylist())]
    members = np.repeat(place.to_numpy(), [len(each) for each in own])
    found = [name for each in own for name in each]
    return _classes(members, found, len(ids), rules, known, {"words": {}, "file": table.name, "rows": len(table)})


def choose_classes(
    rows: NodeRows,
    rules: ClassRules,
    label: str | None,
    table: Source | None,
    dialect: Dialect,
    known: tuple[str, ...] = (),
) -> Classes:
    """Those of a column of the nodes, or of a table of labels."""
    if table is None:
        return read_classes(rows, rules, known)
    if label is not None:
        raise FewnodeError(f"classes are in column {label!r} or in a table of labels; name one of them")
    return read_label_table(table, rows.ids, rows.name, rules, dialect, known)


def _at(table: Table, row: int, column: str) -> Any:
    return lambda what: table.fault(row, column, what)


def _split(cell: str, rules: ClassRules, fault: Any) -> list[str]:
    """The classes in a cell, each with those it is a part of."""
    names = [cell] if rules.separator is None else [part.strip() for part in cell.split(rules.separator)]
    for name in names:
        parts = [name] if rules.path is None else name.split(rules.path)
        if not all(part.strip() for part in parts):
            mark = rules.path if name and rules.path else rules.separator
            raise fault(f"{cell[:60]!r} has an empty part, expected classes with {mark!r} between them")
    return list(dict.fromkeys(names))


def _classes(
    members: Ints, found: Sequence[str], n: int, rules: ClassRules, known: tuple[str, ...], facts: dict[str, Any]
) -> Classes:
    """Classes and memberships; those above a class have its members too."""
    above = {name: rules.above(name) for name in dict.fromkeys(found)}
    new = {each for name in above for each in (name, *above[name])} - set(known)
    names = (*known, *in_order(new))
    index = {name: i for i, name in enumerate(names)}
    own = sp.csr_array((np.ones(len(found), bool), (members, [index[name] for name in found])), (n, len(names)))
    row = np.repeat(members, [1 + len(above[name]) for name in found])
    column = [index[each] for name in found for each in (name, *above[name])]
    labels = sp.csr_array((np.ones(len(column), bool), (row, column)), (n, len(names)))
    for matrix in (own, labels):
        matrix.sum_duplicates()
    y = only_class(_most_specific(own, names, rules))
    counts = np.diff(labels.indptr)
    facts = {"unknown": int((counts == 0).sum()), "empty": facts.get("empty", int((counts == 0).sum())), **facts}
    if (counts > 1).any():
        facts["several"] = int((counts > 1).sum())
        return Classes(y, names, labels, facts)
    return Classes(y, names, None, facts)


def _most_specific(own: sp.csr_array, names: Sequence[str], rules: ClassRules) -> sp.csr_array:
    """Memberships without those that another class of the same node is a part of."""
    if rules.path is None and rules.parents is None:
        return own
    index = {name: i for i, name in enumerate(names)}
    pairs = [(i, index[above]) for i, name in enumerate(names) for above in rules.above(name) if above in index]
    part_of = sp.csr_array(
        (np.ones(len(pairs), np.int64), np.array(pairs, np.int64).reshape(-1, 2).T), (len(names),) * 2
    )
    covered = sp.csr_array(own.astype(np.int64) @ part_of > 0)
    left = sp.csr_array(own.astype(np.int64) - own.multiply(covered).astype(np.int64))
    left.eliminate_zeros()
    return left
