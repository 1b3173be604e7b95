"""Rows of an adjacency matrix larger than memory: made in ranges that fit, each from one reading of the arcs.

A range is sorted and freed of repetitions, and its columns wait in a file until all of them are known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import BinaryIO, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fewnode.engine import loops
from fewnode.graph import Ints

Arcs: TypeAlias = Callable[[], Iterator[tuple[Ints, Ints]]]
"""Sources and targets, piece by piece, from the start at every call."""


def write_rows(arcs: Arcs, n: int, limit: int, waiting: BinaryIO) -> NDArray[np.int64]:
    """The columns of each row, as int32, go to the file `waiting`; the starts of the rows are returned."""
    count = np.zeros(n, np.int64)
    for source, target in arcs():
        loops.count_arcs(source, target, count)
    starts = np.concatenate([[0], np.cumsum(count)])
    indptr = np.zeros(n + 1, np.int64)
    room = max(1, limit // 4 // 4)  # a quarter of the memory, in 32-bit numbers
    low = 0
    while low < n:
        high = max(low + 1, int(np.searchsorted(starts, starts[low] + room, side="right")) - 1)
        own = starts[low : high + 1] - starts[low]
        indices, at = np.empty(int(own[-1]), np.int32), own[:-1].copy()
        for source, target in arcs():
            loops.place_arcs(source, target, at, low, indices)
        kept = loops.sort_rows(own, indices)
        indptr[low + 1 : high + 1] = indptr[low] + kept[1:]
        waiting.write(indices[: kept[-1]].data)
        low = high
    waiting.flush()
    return indptr
