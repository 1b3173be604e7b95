"""What becomes of each column of the nodes: as it was told, as what it looks like, or not used and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from fewnode.datasets.encode import ROLES
from fewnode.datasets.labels import may_be_the_answer
from fewnode.datasets.rows import NodeRows
from fewnode.errors import FewnodeError
from fewnode.graph import Ints

NOT_USED = "not used"
FEW = 100
"""A column of text with at most so many distinct values, each there twice on average, is taken for categories."""

DATE = r"^\d{1,4}[-./]\d{1,2}[-./]\d{1,4}([ T].*)?$"

MANY_NUMBERS = 20
"""A column with more distinct numbers than this, and one word besides, is one of numbers with a word for "missing"."""


class ColumnUse(NamedTuple):
    """A role or `NOT_USED`, why, and a warning if that may be wrong."""

    role: str
    why: str
    warning: str | None = None


def given_roles(**columns: str | Sequence[str]) -> dict[str, str]:
    """The role of each column that was named: `text=["title"], numeric=["size"]`."""
    roles: dict[str, str] = {}
    for role in ROLES:
        named = columns[role]
        for column in [named] if isinstance(named, str) else named:
            if roles.setdefault(column, role) != role:
                raise FewnodeError(f"column {column!r} is given as {roles[column]} and as {role}; choose one")
    return roles


def column_uses(rows: NodeRows, given: Mapping[str, str], y: Ints) -> dict[str, ColumnUse]:
    """What becomes of every column besides ids and labels. If any role was given, no other is guessed."""
    if given:
        others = ColumnUse(NOT_USED, "other columns were named")
        return {name: ColumnUse(given[name], "") if name in given else others for name in rows.attributes}
    return {name: _guessed(rows, name, y) for name in rows.attributes}


def _guessed(rows: NodeRows, column: str, y: Ints) -> ColumnUse:
    role, why = guess_role(rows, column)
    if role is None:
        return ColumnUse(NOT_USED, why)
    reason = may_be_the_answer(rows, column, role, y)
    if reason is None:
        return ColumnUse(role, why)
    use = f"--{role} {column!r}" if " " in column else f"--{role} {column}"
    return ColumnUse(
        NOT_USED,
        f"it may be the answer; {use} uses it",
        f"column {column!r} is left out, for it may be the answer: {reason}. {use} makes it an attribute",
    )


def guess_role(rows: NodeRows, column: str) -> tuple[str | None, str]:
    """What a column looks like, or None, and why."""
    if not column:
        return None, "no name"
    if rows.is_vector(column):
        return "vector", "lists of numbers"
    if rows.is_numeric(column):
        return "numeric", "numbers"
    for kind in rows.kinds(column):
        if pa.types.is_temporal(kind):
            return None, f"dates or times, {kind}"
        if pa.types.is_nested(kind) and not pa.types.is_list(kind) and not pa.types.is_large_list(kind):
            return None, f"nested, {kind}"
    cells = rows.labels(column)
    if cells.null_count == len(cells):
        return None, "empty"
    count, word = rows.not_numbers(column)
    distinct = rows.distinct(column)
    if pc.sum(pc.equal(cells, word)).as_py() == count and distinct > max(MANY_NUMBERS, 2):
        return None, f"numbers, but {word[:20]!r} in {count:,} cells; --missing {word[:20]!r} says that it is none"
    if distinct <= FEW and 2 * distinct <= len(cells) - cells.null_count:
        return "category", f"{distinct} distinct values"
    if pc.all(pc.match_substring_regex(cells, DATE)).as_py():
        return None, "dates"
    length = 1 + pc.mean(pc.count_substring_regex(cells, r"\s+")).as_py()
    if length >= 2:
        return "text", f"{length:.1f} words a cell"
    return None, f"{distinct:,} distinct values of {length:.1f} words; --text or --category uses it"
