"""Nodes that are nearly the same as one group, so that a list of twenty shows twenty kinds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fewnode.graph import Ints
from fewnode.vectors import unit_rows

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
    rows, found, begun = unit_rows(z), np.full(len(z), -1, np.int64), 0
    for low in range(0, len(rows), BLOCK):
        free = low + np.flatnonzero(found[low : low + BLOCK] < 0)
        like, taken, first = rows[free] @ rows[free].T >= ALIKE, np.zeros(free.size, bool), list[int]()
        for i in range(free.size):
            if not taken[i]:
                first.append(i)
                taken |= like[i]
        leaders = free[first] if count is None else free[first][: count - begun]
        begun += leaders.size
        free = low + np.flatnonzero(found[low:] < 0)
        for part in np.array_split(free, max(1, free.size * leaders.size // (1 << 22))) if leaders.size else ():
            near = rows[part] @ rows[leaders].T >= ALIKE
            own = near.any(axis=1)
            found[part[own]] = leaders[near[own].argmax(axis=1)]
        found[leaders] = leaders
        if begun == count:
            break
    return found
