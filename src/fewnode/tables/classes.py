"""Who is in which class: cells with one or several, a table of nodes and classes, classes that are part of others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow.compute as pc
import scipy.sparse as sp

from fewnode.class_labels import only_class
from fewnode.errors import FewnodeError
from fewnode.graph import Ints
from fewnode.tables.columns import Column, first_row
from fewnode.tables.files import title
from fewnode.tables.rows import LABEL, OWN, Rows
from fewnode.tables.spec import ImportSpec

NODES, CLASSES = ("node", "id", "name"), ("class", "label")
"""Columns of a table of labels, the first that is there."""
SEPARATORS = ("|", ";", ",")
"""Between several classes in one cell."""


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


def choose_classes(rows: Rows, known: tuple[str, ...] = ()) -> Classes:
    """Classes from a column of the nodes, or from a table of labels; `known` names come first."""
    spec = rows.spec
    if spec.labels is not None and spec.label is not None:
        raise FewnodeError(f"classes are in column {spec.label!r} or in a table of labels; name one of them")
    if spec.labels is None:
        place, column, facts = np.arange(len(rows)), rows.column(LABEL), dict[str, Any]()
        facts["words"] = column.missing_words()
    else:
        place, column, facts = _labels_table(rows)
    codes = pc.dictionary_encode(column.labels).combine_chunks()
    cells, code = codes.dictionary.to_pylist(), pc.fill_null(codes.indices, -1).to_numpy()

    def fault(cell: int) -> Callable[[str], FewnodeError]:
        return lambda what: column.fault(int(np.argmax(code == cell)), what)

    own = [_split(cell, spec, fault(i)) for i, cell in enumerate(cells)]
    above = {name: _above(name, spec.hierarchy) for names in own for name in names}
    names = (*known, *_in_order({each for name, others in above.items() for each in (name, *others)} - set(known)))
    index = {name: i for i, name in enumerate(names)}
    there = code >= 0
    cell_of = sp.csr_array((np.ones(int(there.sum()), np.int64), (place[there], code[there])), (len(rows), len(cells)))
    members = labels = _memberships(cell_of, [[index[name] for name in part] for part in own], len(names))
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


def _labels_table(rows: Rows) -> tuple[Ints, Column, dict[str, Any]]:
    """Of a table of nodes and classes, a row a membership: the node of each row, and the column of classes."""
    source = rows.spec.labels

    def choose(header: list[str]) -> dict[str, str | None]:
        if len(header) < 2:
            raise FewnodeError(f"{title(source, 'labels')}: one column {header[0]!r}, expected two: node and class")
        node = next((name for name in NODES if name in header), header[0])
        others = [name for name in header if name != node]
        return {node: "node", next((name for name in CLASSES if name in others), others[0]): "class"}

    table = rows.database.read(source, "labels", choose, rows.spec)
    read = Rows.of(rows.database, [table], rows.spec, lambda _: {"node": "NULL", "class": "NULL"})
    node, label = (read.column(f"{OWN}{use}") for use in ("node", "class"))
    place = pc.index_in(node.cells, value_set=rows.ids)
    for cells, column, what in ((place, node, f"is not in {rows.name}"), (label.labels, label, "")):
        if (row := first_row(pc.is_null(cells))) is not None:
            name = node.texts[row].as_py() if column is node else None
            expected = "a class; leave the row out if it is unknown" if column is label else "a node"
            raise column.fault(row, f"empty, expected {expected}" if name is None else f"node {name!r} {what}")
    return place.to_numpy(), label, {"words": {}, "file": table.name, "rows": table.rows}


# --- memberships --------------------------------------------------------------------------------------------------


def _above(name: str, mark: str | None) -> list[str]:
    """The classes that `name` is a part of, the nearest first: a/b and a of a/b/c."""
    parts = name.split(mark) if mark else [name]
    return [str(mark).join(parts[:i]) for i in range(len(parts) - 1, 0, -1)]


def _split(cell: str, spec: ImportSpec, fault: Callable[[str], FewnodeError]) -> list[str]:
    """The classes in a cell."""
    separator, mark = spec.label_separator, spec.hierarchy
    names = [cell] if separator is None else [part.strip() for part in cell.split(separator)]
    for name in names:
        if not all(part.strip() for part in (name.split(mark) if mark else [name])):
            between = mark if name and mark else separator
            raise fault(f"{cell[:60]!r} has an empty part, expected classes with {between!r} between them")
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
        parts = {name: [part.strip() for part in name.split(separator)] for name in names if sizes[name]}
        parts = {name: split for name, split in parts.items() if len(split) > 1 and all(split)}
        joined = [name for name, split in parts.items() if not {*split} - ({*names} - parts.keys())]
        recurs = len({part for split in parts.values() for part in split}) < sum(
            len({*each}) for each in parts.values()
        )
        if recurs and (separator == "|" or 2 * sum(sizes[name] for name in parts) > sum(sizes.values())):
            joined = list(parts)
        if joined:
            count = sum(sizes[name] for name in joined)
            return (
                f"cells of the label that seem to hold several classes: {count:,}, as {joined[0]!r}. Such a cell "
                f"counts as a class of its own; `label_separator` {separator!r} reads several classes a node"
            )
    return None
