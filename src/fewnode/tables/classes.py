"""Who is in which class: cells with one or several, a table of nodes and classes, classes that are part of others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow.compute as pc
import scipy.sparse as sp

from fewnode.class_labels import only_class
from fewnode.errors import FewnodeError
from fewnode.graph import Ints
from fewnode.tables.columns import Column
from fewnode.tables.files import Database, need_columns, title
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
    spec, facts = rows.spec, dict[str, Any]()
    if spec.labels is not None:
        if spec.label is not None:
            raise FewnodeError(f"classes are in column {spec.label!r} or in a table of labels; name one of them")
        place, column, facts = _labels_table(rows)
    else:
        place, column = np.arange(len(rows)), rows.column(LABEL)
        facts["words"] = column.missing_words()
    codes = pc.dictionary_encode(column.labels).combine_chunks()
    cells, code = codes.dictionary.to_pylist(), pc.fill_null(codes.indices, -1).to_numpy()
    own = [_split(cell, spec, column, code, i) for i, cell in enumerate(cells)]
    above = {name: _above(name, spec, parents) for names in own for name in names}
    new = {each for name, others in above.items() for each in (name, *others)} - set(known)
    names = (*known, *_in_order(new))
    index = {name: i for i, name in enumerate(names)}
    there = code >= 0
    cell_of = sp.csr_array((np.ones(int(there.sum()), np.int64), (place[there], code[there])), (len(rows), len(cells)))
    members = _memberships(cell_of, [[index[name] for name in part] for part in own], len(names))
    labels = members
    if any(above.values()):
        with_above = [[index[each] for name in part for each in (name, *above[name])] for part in own]
        labels = _memberships(cell_of, with_above, len(names))
        members = _most_specific(members, {index[name]: others for name, others in above.items()}, index)
    counts = np.diff(labels.indptr)
    facts["unknown"] = int((counts == 0).sum())
    facts["empty"] = facts["unknown"] - sum(facts["words"].values())
    if not (counts > 1).any():
        return Classes(only_class(members), names, None, facts)
    return Classes(only_class(members), names, labels, {**facts, "several": int((counts > 1).sum())})


def _labels_table(rows: NodeRows) -> tuple[Ints, Column, dict[str, Any]]:
    """Of a table of nodes and classes, a row a membership: the node of each row, and the column of classes."""
    source, spec = rows.spec.labels, rows.spec

    def choose(header: list[str]) -> list[str]:
        if len(header) < 2:
            raise FewnodeError(f"{title(source, 'labels')}: one column {header[0]!r}, expected two: node and class")
        node = next((name for name in NODES if name in header), header[0])
        label = next((name for name in CLASSES if name in header and name != node), None)
        return [node, label or next(name for name in header if name != node)]

    table = rows.database.read(source, "labels", choose, spec)
    node, label = (rows.database.column(table, name, spec) for name in table.types)
    place = pc.index_in(node.cells, value_set=rows.ids)
    if place.null_count:
        row = int(pc.index(pc.is_null(place), True).as_py())
        name = node.texts[row].as_py()
        raise node.fault(row, "empty, expected a node" if name is None else f"node {name!r} is not in {rows.name}")
    if label.labels.null_count:
        row = int(pc.index(pc.is_null(label.labels), True).as_py())
        raise label.fault(row, "empty, expected a class; leave the row out if it is unknown")
    return place.to_numpy(), label, {"words": {}, "file": table.name, "rows": table.rows}


def read_parents(database: Database, spec: ImportSpec) -> dict[str, str]:
    """A table `class,parent`: each class once. A class without a parent may be left out."""
    source = spec.hierarchy
    if source is None or spec.path_mark is not None:
        return {}

    def choose(header: list[str]) -> list[str]:
        return need_columns(title(source, "hierarchy"), header, ["class", "parent"])

    table = database.read(source, "hierarchy", choose, spec)
    columns = [database.column(table, name, spec).texts.to_pylist() for name in ("class", "parent")]
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


def _split(cell: str, spec: ImportSpec, column: Column, code: Ints, place: int) -> list[str]:
    """The classes in a cell, the `place`th of those that differ."""
    separator, mark = spec.label_separator, spec.path_mark
    names = [cell] if separator is None else [part.strip() for part in cell.split(separator)]
    for name in names:
        if not all(part.strip() for part in ([name] if mark is None else name.split(mark))):
            between = mark if name and mark else separator
            what = f"{cell[:60]!r} has an empty part, expected classes with {between!r} between them"
            raise column.fault(int(np.argmax(code == place)), what)
    return list(dict.fromkeys(names))


def _memberships(cell_of: sp.csr_array, classes: Sequence[Sequence[int]], width: int) -> sp.csr_array:
    """Nodes x classes, from the cells that each node has and the classes that each cell names."""
    ends = np.cumsum([0, *map(len, classes)])
    flat = np.array([c for each in classes for c in each], np.int64)
    found = cell_of @ sp.csr_array((np.ones(flat.size, np.int64), flat, ends), (len(classes), width))
    labels = sp.csr_array(found > 0)
    labels.sort_indices()
    return labels


def _most_specific(own: sp.csr_array, above: Mapping[int, Sequence[str]], index: Mapping[str, int]) -> sp.csr_array:
    """Memberships without those that another class of the same node is a part of."""
    pairs = np.array([(c, index[name]) for c, names in above.items() for name in names], np.int64).T
    part_of = sp.csr_array((np.ones(pairs.shape[1], np.int64), pairs), (len(index), len(index)))
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
