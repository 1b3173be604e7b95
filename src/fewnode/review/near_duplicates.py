"""Nodes that are nearly the same as one group, so that a list of twenty shows twenty kinds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

ALIKE = 0.9
"""The cosine of two rows of z from which on nodes are one kind."""
BLOCK = 512


def grouped(z: NDArray[np.float32], count: int | None = None) -> Ints:
    """The group of each row, by the place of its first row; rows are in the order in which they would be listed.

    A row belongs to the first row before it that is alike and begins a group itself. So every row is alike to the one
    that is shown for it, and no chain leads from one kind to another. With `count`, so many groups are found and all
    rows of them; the rest is -1. That is quick, however many rows there are.

    >>> grouped(np.array([[1, 0], [0, 1], [1, 0.1], [0, 1]], np.float32)).tolist()
    [0, 1, 0, 1]
    >>> grouped(np.array([[1, 0], [0, 1], [1, 0.1], [-1, 0]], np.float32), count=1).tolist()
    [0, -1, 0, -1]
    """
    rows = z / np.maximum(np.linalg.norm(z, axis=1, keepdims=True), 1e-12)
    found = np.full(len(rows), -1, np.int64)
    begun = 0
    for low in range(0, len(rows), BLOCK):
        free = low + np.flatnonzero(found[low : low + BLOCK] < 0)
        like = rows[free] @ rows[free].T >= ALIKE
        first = _leaders(like)
        leaders = free[first] if count is None else free[first][: count - begun]
        begun += leaders.size
        _join(rows, leaders, low, found)
        if begun == count:
            break
    return found


def _leaders(like: NDArray[np.bool_]) -> Ints:
    """Rows that are alike to no leader before them."""
    taken, found = np.zeros(len(like), bool), []
    for i in range(len(like)):
        if not taken[i]:
            found.append(i)
            taken |= like[i]
    return np.array(found, np.int64)


def _join(rows: NDArray[np.float32], leaders: Ints, low: int, found: Ints) -> None:
    """Give all rows from `low` on that have no group yet that of the first leader they are alike to."""
    if not leaders.size:
        return
    free = low + np.flatnonzero(found[low:] < 0)
    for part in np.array_split(free, max(1, free.size * leaders.size // (1 << 22))):
        like = rows[part] @ rows[leaders].T >= ALIKE
        own = like.any(axis=1)
        found[part[own]] = leaders[like[own].argmax(axis=1)]
    found[leaders] = leaders
