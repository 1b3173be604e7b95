"""Tall matrices as tiles of a few columns: a diffusion goes through the columns, everything else through the rows.

A tile is small enough for the processor's cache to hold. The products of a diffusion read it in no order, so that this
makes them three times as fast as whole rows do. Nothing depends on how wide a tile is, to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Self, TypeAlias

import numpy as np

from fewnode._system import memory
from fewnode.graph import Ints
from fewnode.vectors import Floats

WIDEST = 64
"""Columns of a tile at most."""
WIDTHS = {1 << 15: 64, 1 << 16: 32, 1 << 18: 16, 1 << 19: 8}
"""Columns of a tile for up to so many rows: 8 MB that a cache can be expected to hold, 16 at most."""
ROWS = 1 << 12
"""Rows that are read at a time. Always the same ones: a product of few rows may round otherwise than one of many."""
Space: TypeAlias = Callable[[int, int], "TiledMatrix"]
"""Gives room for a matrix of so many rows and columns."""


def tile_ranges(n: int, width: int, widest: int | None = None) -> list[tuple[int, int]]:
    """Columns from and to of each tile of a matrix of n rows. Where no cache can hold 16 columns, as wide as can be."""
    fit = next((step for rows, step in WIDTHS.items() if n <= rows), WIDEST)
    step = min(fit, WIDEST, widest or WIDEST)
    return [(low, min(low + step, width)) for low in range(0, width, step)]


def row_ranges(n: int, rows: int | None = None) -> Iterator[tuple[int, int]]:
    step = rows or ROWS
    for low in range(0, n, step):
        yield low, min(low + step, n)


def in_memory(n: int, width: int) -> TiledMatrix:
    """Room for a matrix of n rows."""
    return TiledMatrix(n, [np.empty((n, high - low), np.float32) for low, high in tile_ranges(n, width)])


@dataclass(frozen=True, eq=False)
class TiledMatrix:
    """n rows; side by side, the tiles are the matrix. They are in memory or mapped from files."""

    n: int
    tiles: Sequence[Floats]

    @property
    def width(self) -> int:
        return sum(tile.shape[1] for tile in self.tiles)

    def __getitem__(self, rows: slice | Ints) -> Floats:
        parts = [tile[rows] if isinstance(rows, slice) else memory.taken(tile, rows) for tile in self.tiles]
        if not parts:
            return np.zeros((np.arange(self.n)[rows].size, 0), np.float32)
        return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)

    def filled(self, rows: Callable[[int, int], Floats]) -> Self:
        """Itself, after a function that gives rows from and to has filled it."""
        for low, high in row_ranges(self.n):
            self.put(low, rows(low, high))
        return self

    def put(self, low: int, rows: Floats) -> None:
        """Write rows from `low` on."""
        start = 0
        for tile in self.tiles:
            tile[low : low + rows.shape[0]] = rows[:, start : start + tile.shape[1]]
            start += tile.shape[1]

    def whole(self) -> Floats:
        return self[slice(0, self.n)]
