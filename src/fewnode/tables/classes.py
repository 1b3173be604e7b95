"""Who is in which class: cells with one or several, a table of nodes and classes, classes that are part of others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse as sp

from fewnode.class_labels import UNKNOWN, only_class
from fewnode.errors import FewnodeError
from fewnode.graph import Ints
from fewnode.tables.columns import Column, as_cells
from fewnode.tables.files import Database, Table, need_columns, title
from fewnode.tables.plain import TEXT
from fewnode.tables.rows import LABEL, NodeRows
from fewnode.tables.spec import ImportSpec

NODES, CLASSES = ("node", "id", "name"), ("class", "label")
"""Columns of a table of labels, the first that is there."""
SEPARATORS = ("|", ";", ",")
"""Between several classes in one cell."""
Parents = Mapping[str, str]
"""The class that each class is a part of."""


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


def choose_classes(rows: NodeRows, parents: Parents, known: tuple[str, ...] = ()) -> Classes:
    """Those of a column of the nodes, or of a table of labels; `known` names come first."""
    if rows.spec.labels is not None:
        if rows.spec.label is not None:
            raise FewnodeError(f"classes are in column {rows.spec.label!r} or in a table of labels; name one of them")
        return _of_table(rows, parents, known)
    column = rows.column(LABEL)
    cells, words = column.labels, column.missing_words()
    if rows.spec.label_separator is None and rows.spec.path_mark is None and not parents:
        names = (*known, *_in_order(set(pc.unique(cells).drop_null().to_pylist()) - set(known)))
        y = pc.fill_null(pc.index_in(cells, value_set=pa.array(names, TEXT)), UNKNOWN).to_numpy().astype(np.int64)
        unknown = int((y < 0).sum())
        return Classes(y, names, None, {"unknown": unknown, "empty": unknown - sum(words.values()), "words": words})
    codes = pc.dictionary_encode(cells).combine_chunks()
    places = pc.fill_null(codes.indices, UNKNOWN).to_numpy()
    own = []
    for code, cell in enumerate(codes.dictionary.to_pylist()):
        row = int(np.argmax(places == code))
        own.append(_split(cell, rows.spec, partial(column.fault, row)))
    members = np.repeat(np.arange(len(places)), [len(own[c]) if c >= 0 else 0 for c in places])
    found = [name for c in places if c >= 0 for name in own[c]]
    empty = int((places < 0).sum()) - sum(words.values())
    return _classes(members, found, len(rows), rows.spec, parents, known, {"empty": empty, "words": words})


def _of_table(rows: NodeRows, parents: Parents, known: tuple[str, ...]) -> Classes:
    """A table of nodes and classes, a row a membership."""
    source, spec = rows.spec.labels, rows.spec

    def choose(header: list[str]) -> list[str]:
        if len(header) < 2:
            raise FewnodeError(f"{title(source, 'labels')}: one column {header[0]!r}, expected two: node and class")
        node = next((name for name in NODES if name in header), header[0])
        label = next((name for name in CLASSES if name in header and name != node), None)
        return [node, label or next(name for name in header if name != node)]

    table = rows.database.read(source, "labels", choose, spec)
    node, label = (_column(rows.database, table, name, spec) for name in table.types)
    place = pc.index_in(node.cells, value_set=rows.ids)
    if place.null_count:
        row = int(pc.index(pc.is_null(place), True).as_py())
        name = node.texts[row].as_py()
        raise node.fault(row, "empty, expected a node" if name is None else f"node {name!r} is not in {rows.name}")
    cells = label.labels
    if cells.null_count:
        row = int(pc.index(pc.is_null(cells), True).as_py())
        raise label.fault(row, "empty, expected a class; leave the row out if it is unknown")
    own = [_split(cell, spec, partial(label.fault, row)) for row, cell in enumerate(cells.to_pylist())]
    members = np.repeat(place.to_numpy(), [len(each) for each in own])
    found = [name for each in own for name in each]
    facts = {"words": {}, "file": table.name, "rows": table.rows}
    return _classes(members, found, len(rows), spec, parents, known, facts)


def _column(database: Database, table: Table, name: str, spec: ImportSpec) -> Column:
    return Column(as_cells(database.cells(table.relation, name)), lambda row, what: table.fault(row, name, what), spec)


def read_parents(database: Database, spec: ImportSpec) -> dict[str, str]:
    """A table `class,parent`: each class once. A class without a parent may be left out."""
    source = spec.hierarchy
    if source is None or spec.path_mark is not None:
        return {}

    def choose(header: list[str]) -> list[str]:
        return need_columns(title(source, "hierarchy"), header, ["class", "parent"])

    table = database.read(source, "hierarchy", choose, spec)
    columns = [_column(database, table, name, spec).texts.to_pylist() for name in ("class", "parent")]
    parents: dict[str, str] = {}
    for row, (name, parent) in enumerate(zip(*columns, strict=True)):
        if name is None:
            raise table.fault(row, "class", "empty, expected a class")
        if parent is not None and parents.setdefault(name, parent) != parent:
            raise table.fault(row, "parent", f"class {name!r} has the parent {parents[name]!r} already, expected one")
    return acyclic(parents, table.name)


def acyclic(parents: Parents, place: str) -> dict[str, str]:
    """The parents, if no class is a part of itself."""
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


def _above(name: str, spec: ImportSpec, parents: Parents) -> list[str]:
    """The classes that `name` is a part of, the nearest first."""
    found: list[str] = []
    if mark := spec.path_mark:
        parts = name.split(mark)
        found = [mark.join(parts[:i]) for i in range(len(parts) - 1, 0, -1)]
    while name := parents.get(name, ""):
        found.append(name)
    return found


def _split(cell: str, spec: ImportSpec, fault: Callable[[str], FewnodeError]) -> list[str]:
    """The classes in a cell."""
    separator, mark = spec.label_separator, spec.path_mark
    names = [cell] if separator is None else [part.strip() for part in cell.split(separator)]
    for name in names:
        parts = [name] if mark is None else name.split(mark)
        if not all(part.strip() for part in parts):
            between = mark if name and mark else separator
            raise fault(f"{cell[:60]!r} has an empty part, expected classes with {between!r} between them")
    return list(dict.fromkeys(names))


def _classes(
    members: Ints,
    found: Sequence[str],
    n: int,
    spec: ImportSpec,
    parents: Parents,
    known: tuple[str, ...],
    facts: dict[str, Any],
) -> Classes:
    """Classes and memberships; those above a class have its members too."""
    above = {name: _above(name, spec, parents) for name in dict.fromkeys(found)}
    new = {each for name in above for each in (name, *above[name])} - set(known)
    names = (*known, *_in_order(new))
    index = {name: i for i, name in enumerate(names)}
    own = sp.csr_array((np.ones(len(found), bool), (members, [index[name] for name in found])), (n, len(names)))
    row = np.repeat(members, [1 + len(above[name]) for name in found])
    column = [index[each] for name in found for each in (name, *above[name])]
    labels = sp.csr_array((np.ones(len(column), bool), (row, column)), (n, len(names)))
    for matrix in (own, labels):
        matrix.sum_duplicates()
    pairs = [(i, index[each]) for i, name in enumerate(names) for each in _above(name, spec, parents) if each in index]
    y = only_class(_most_specific(own, pairs, len(names)) if pairs else own)
    counts = np.diff(labels.indptr)
    facts = {"unknown": int((counts == 0).sum()), "empty": int((counts == 0).sum()), **facts}
    if not (counts > 1).any():
        return Classes(y, names, None, facts)
    return Classes(y, names, labels, {**facts, "several": int((counts > 1).sum())})


def _most_specific(own: sp.csr_array, pairs: Sequence[tuple[int, int]], count: int) -> sp.csr_array:
    """Memberships without those that another class of the same node is a part of."""
    part_of = sp.csr_array((np.ones(len(pairs), np.int64), np.array(pairs, np.int64).T), (count, count))
    covered = sp.csr_array(own.astype(np.int64) @ part_of > 0)
    left = sp.csr_array(own.astype(np.int64) - own.multiply(covered).astype(np.int64))
    left.eliminate_zeros()
    return left


def _in_order(names: set[str]) -> list[str]:
    """Sorted; by value if all are numbers, so that classes 0 … 11 keep their ids."""
    if all(name.isdecimal() and len(name) < 19 for name in names):
        return sorted(names, key=lambda name: (int(name), name))
    return sorted(names)


def several_in_a_cell(y: Ints, names: tuple[str, ...]) -> str | None:
    """A warning if cells hold several classes: parts that are classes elsewhere, or that recur in most cells.

    Nobody writes a bar into the name of a class, so one in many names is enough.
    """
    sizes = dict(zip(names, np.bincount(y[y >= 0], minlength=len(names)).tolist(), strict=True))
    for separator in SEPARATORS:
        joint = [name for name in names if separator in name and sizes[name]]
        parts = {name: [part.strip() for part in name.split(separator)] for name in joint}
        parts = {name: split for name, split in parts.items() if all(split)}
        if not parts:
            continue
        whole = set(names) - set(parts)
        joined = [name for name, split in parts.items() if whole.issuperset(split)]
        uses = Counter(part for split in parts.values() for part in set(split))
        most = 2 * sum(sizes[name] for name in parts) > sum(sizes.values())
        if max(uses.values()) > 1 and (most or separator == "|"):
            joined = list(parts)
        if joined:
            count = sum(sizes[name] for name in joined)
            return (
                f"cells of the label that seem to hold several classes: {count:,}, as {joined[0]!r}. Such a cell "
                f"counts as a class of its own; --label-separator {separator!r} reads several classes a node"
            )
    return None
