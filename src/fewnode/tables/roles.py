"""What becomes of each column of the nodes: as it was told, as what it looks like, or not used and why."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
import pyarrow.compute as pc

from fewnode.graph import Ints
from fewnode.tables.columns import Column, first_row
from fewnode.tables.rows import NOT_USED as NOT_USED
from fewnode.tables.rows import Rows

FEW = 100
"""A column of text with at most so many distinct values, each there twice on average, is taken for categories."""
MANY_NUMBERS = 20
"""A column with more distinct numbers than this, and one word besides, is one of numbers with a word for "missing"."""
TELLING = 0.95
"""A column that tells the class of so many labelled nodes may be the answer, written another way."""
MANY_VALUES = 100
"""Every column tells the class if it has a value of its own for each node."""
_LABEL = re.compile(r"[a-z]*(label|class|classe|category|categorie)s?")
_ANSWER = re.compile(r"(answer|gold|group|kind|outcome|target|truth|type|y)s?")
"""A word of a column's name, and a whole name, that a second column of classes may have."""


class ColumnUse(NamedTuple):
    """A role or `NOT_USED`, why, and a warning if that may be wrong."""

    role: str
    why: str
    warning: str | None = None
    order: str | None = None
    """How its dates are written, if it has some."""


def column_uses(rows: Rows, y: Ints) -> dict[str, ColumnUse]:
    """What becomes of every column besides ids and labels."""
    given, uses = rows.spec.roles, dict[str, ColumnUse]()
    for name in rows.attributes:
        if name == rows.kind and name not in given:
            uses[name] = ColumnUse("category", "the kind of node")
        elif name in rows.beside:
            uses[name] = ColumnUse("vector", "beside the table")
        elif name in given:
            uses[name] = _as_told(rows.column(name), name, given[name])
        elif rows.spec.only:
            uses[name] = ColumnUse(NOT_USED, "other columns were named")
        else:
            uses[name] = _guessed(rows, name, y)
    return uses


def _as_told(column: Column, name: str, role: str) -> ColumnUse:
    orders = column.date_orders if role == "numeric" else []
    if len(orders) > 1:
        row = first_row(pc.is_valid(column.labels)) or 0
        raise column.fault(row, "the dates may begin with the day or with the month; write them as 2024-01-31")
    return ColumnUse(role, "dates, as their age in days" if orders else "", None, orders[0] if orders else None)


def _guessed(rows: Rows, name: str, y: Ints) -> ColumnUse:
    column = rows.column(name)
    types = [table.types[name] for table in rows.tables if table.has(name)]
    use = guess_role(column, types) if name else ColumnUse(NOT_USED, "no name")
    if use.role == NOT_USED or use.order is not None:
        return use
    reason = may_be_the_answer(column, name, use.role, y)
    if reason is None:
        return use
    option = f"--{use.role} {name!r}" if " " in name else f"--{use.role} {name}"
    return ColumnUse(
        NOT_USED,
        f"it may be the answer; {option} uses it",
        f"column {name!r} is left out, for it may be the answer: {reason}. {option} makes it an attribute",
    )


def guess_role(column: Column, types: list[str]) -> ColumnUse:
    """What a column looks like."""
    if nested := [kind for kind in types if kind.startswith("nested")]:
        return ColumnUse(NOT_USED, nested[0])
    cells = column.labels if not column.is_list else column.cells
    if cells.null_count == len(cells):
        return ColumnUse(NOT_USED, "empty")
    if column.is_vector:
        return ColumnUse("vector", "lists of numbers")
    if column.is_numeric:
        return ColumnUse("numeric", "numbers")
    count, word = column.not_numbers()
    distinct = len(pc.unique(cells).drop_null())
    if pc.sum(pc.equal(cells, word)).as_py() == count and distinct > max(MANY_NUMBERS, 2):
        told = f"numbers, but {word[:20]!r} in {count:,} cells; `missing` {word[:20]!r} says that it is none"
        return ColumnUse(NOT_USED, told)
    if orders := column.date_orders:
        if len(orders) > 1:
            return ColumnUse(NOT_USED, "dates that may begin with the day or the month; write them as 2024-01-31")
        return ColumnUse("numeric", "dates, as their age in days", None, orders[0])
    if distinct <= FEW and 2 * distinct <= len(cells) - cells.null_count:
        return ColumnUse("category", f"{distinct} distinct values")
    length = 1 + pc.mean(pc.count_substring_regex(cells, r"\s+")).as_py()
    if length >= 2:
        return ColumnUse("text", f"{length:.1f} words a cell")
    return ColumnUse(NOT_USED, f"{distinct:,} distinct values of {length:.1f} words; `text` or `category` uses it")


# --- columns that may be the answer -------------------------------------------------------------------------------


def may_be_the_answer(column: Column, name: str, role: str, y: Ints) -> str | None:
    """Why a column may hold the class itself: by its name, or because it tells the class of nearly all nodes."""
    words = re.findall(r"[a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower())
    if any(map(_LABEL.fullmatch, words)) or (len(words) == 1 and _ANSWER.fullmatch(words[0])):
        return "it is named like a class"  # `type`, `Label 2` and `sub_category`, but not `typeface` or `type_size`
    if role not in ("category", "numeric"):
        return None
    if role == "category":
        indices = pc.dictionary_encode(column.labels).combine_chunks().indices
        values = np.asarray(pc.fill_null(indices, -1)).astype(np.int64)
    else:
        numbers = column.numbers
        values = np.where(np.isnan(numbers), -1, np.unique(numbers, return_inverse=True)[1])
    seen = (y >= 0) & (values >= 0)
    if not seen.any() or seen.sum() < TELLING * (y >= 0).sum():
        return None
    sizes = np.bincount(y[seen])
    most = 2 * (sizes > 0).sum() if role == "numeric" else len(sizes) + MANY_VALUES
    if (sizes > 0).sum() < 2 or len(np.unique(values[seen])) > most:
        return None
    table = np.zeros((int(values.max()) + 1, len(sizes)), np.int64)
    np.add.at(table, (values[seen], y[seen]), 1)
    second, most = np.sort(np.pad(table, ((0, 0), (1, 0))), axis=1)[:, -2:].T
    told = most[most - 1 > second].sum()  # nodes whose class is that of most *other* nodes with the same value
    share, chance = told / seen.sum(), sizes.max() / seen.sum()
    if share < TELLING or 1 - share > (1 - chance) / 2:
        return None
    return f"it tells the class of {100 * share:.0f} % of the labelled nodes"
