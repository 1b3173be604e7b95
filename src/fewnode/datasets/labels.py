"""What may be wrong with the classes in tables: cells with several of them, columns that tell the class."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pyarrow.compute as pc

from fewnode.datasets.rows import NodeRows
from fewnode.graph import Ints

SEPARATORS = ("|", ";", ",")
"""Between several classes in one cell."""

TELLING = 0.95
"""A column that tells the class of so many labelled nodes may be the answer, written another way."""

MANY_VALUES = 100
"""Every column tells the class if it has a value of its own for each node."""

_LABEL = re.compile(r"[a-z]*(label|class|classe|category|categorie)s?")
_ANSWER = re.compile(r"(answer|gold|group|kind|outcome|target|truth|type|y)s?")
"""A word of a column's name, and a whole name, that a second column of classes may have."""


def in_order(names: set[str]) -> list[str]:
    """Sorted; by value if all are numbers, so that classes 0 … 11 keep their ids."""
    if all(name.isdecimal() and len(name) < 19 for name in names):
        return sorted(names, key=lambda name: (int(name), name))
    return sorted(names)


# --- several classes in one cell ----------------------------------------------------------------------------------


def several_in_a_cell(y: Ints, names: tuple[str, ...]) -> str | None:
    """A warning if cells hold several classes: parts that are classes elsewhere, or that recur in most cells."""
    sizes = dict(zip(names, np.bincount(y[y >= 0], minlength=len(names)).tolist(), strict=True))
    for separator in SEPARATORS:
        joint = [name for name in names if separator in name and sizes[name]]
        parts = {name: [part.strip() for part in name.split(separator)] for name in joint}
        parts = {name: found for name, found in parts.items() if all(found)}
        if not parts:
            continue
        whole = set(names) - set(parts)
        joined = [name for name, found in parts.items() if whole.issuperset(found)]
        uses = Counter(part for found in parts.values() for part in set(found))
        most = 2 * sum(sizes[name] for name in parts) > sum(sizes.values())
        if most and max(uses.values()) > 1:
            joined = list(parts)
        if joined:
            count = sum(sizes[name] for name in joined)
            return (
                f"cells of the label that seem to hold several classes: {count:,}, as {joined[0]!r}. Such a cell "
                f"counts as a class of its own; --label-separator {separator!r} reads several classes a node"
            )
    return None


# --- columns that may be the answer -------------------------------------------------------------------------------


def may_be_the_answer(rows: NodeRows, column: str, role: str, y: Ints) -> str | None:
    """Why a column may hold the class itself: by its name, or because it tells the class of nearly all nodes."""
    if _is_named_like_a_label(column):
        return "it is named like a class"
    if role not in ("category", "numeric"):
        return None
    values = _codes(rows, column, role)
    seen = (y >= 0) & (values >= 0)
    if not seen.any() or seen.sum() < TELLING * (y >= 0).sum():
        return None
    sizes = np.bincount(y[seen])
    most = 2 * (sizes > 0).sum() if role == "numeric" else len(sizes) + MANY_VALUES
    if (sizes > 0).sum() < 2 or len(np.unique(values[seen])) > most:
        return None
    share, chance = _told(y[seen], values[seen]), sizes.max() / seen.sum()
    if share < TELLING or 1 - share > (1 - chance) / 2:
        return None
    return f"it tells the class of {100 * share:.0f} % of the labelled nodes"


def _codes(rows: NodeRows, column: str, role: str) -> Ints:
    """A number for each distinct value, -1 where it is missing."""
    if role == "category":
        indices = pc.dictionary_encode(rows.labels(column)).combine_chunks().indices
        return np.asarray(pc.fill_null(indices, -1)).astype(np.int64)
    numbers = rows.numbers(column)
    codes: Ints = np.where(np.isnan(numbers), -1, np.unique(numbers, return_inverse=True)[1])
    return codes


def _is_named_like_a_label(column: str) -> bool:
    """`type`, `Label 2` and `sub_category`, but not `typeface` or `type_size`."""
    words = re.findall(r"[a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", column).lower())
    return any(map(_LABEL.fullmatch, words)) or (len(words) == 1 and bool(_ANSWER.fullmatch(words[0])))


def _told(y: Ints, values: Ints) -> float:
    """The share of nodes whose class is that of most *other* nodes with the same value."""
    pairs, counts = np.unique(np.stack([values, y]), axis=1, return_counts=True)
    told = 0
    for value in np.unique(pairs[0]):
        largest = np.sort(counts[pairs[0] == value])[::-1]
        told += int(largest[0]) if largest[0] - 1 > (largest[1] if len(largest) > 1 else 0) else 0
    return told / len(y)
