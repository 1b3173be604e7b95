"""Which columns of the attributes belong together, and what they are: words, numbers, or a vector."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewnode.errors import FewnodeError

KINDS = ("words", "numbers", "vector")
SAMPLE = 1 << 22
"""Numbers of a dense matrix that are looked at to tell what it holds."""


@dataclass(frozen=True)
class Block:
    """Columns `start` to `stop` of the attributes are of one kind: counts of `words`, `numbers`, or a `vector`.

    Each number of a `numbers` block means something by itself. A `vector` has a meaning only as a whole: it is scaled
    by one factor, and turning it changes nothing.

    >>> Block("vector", 0, 384, "encoded text").width
    384
    """

    kind: str
    start: int
    stop: int
    name: str = ""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise FewnodeError(f"a block of kind {self.kind!r}, expected {', '.join(KINDS)}")
        if not 0 <= self.start < self.stop:
            raise FewnodeError(f"block {self.name!r} is columns {self.start} to {self.stop}, expected at least one")

    @property
    def width(self) -> int:
        return self.stop - self.start


def dense_blocks(x: NDArray[Any]) -> tuple[Block, ...]:
    """What dense attributes are if nobody says it: one vector, unless they look like counts.

    Counts are never negative and mostly zero; nothing is said about them. The first numbers decide.
    """
    sample = x.reshape(-1)[:SAMPLE]
    counts = np.count_nonzero(sample) < sample.size / 2 and not (sample < 0).any()
    return () if counts or not x.size else (Block("vector", 0, int(x.shape[1]), "x"),)


def check_blocks(blocks: Iterable[Block], width: int) -> None:
    """Refuse blocks that overlap, or that end beyond the last of so many columns."""
    end = 0
    for block in blocks:
        if block.start < end:
            raise FewnodeError(f"block {block.name!r} begins at column {block.start}, expected {end} or later")
        end = block.stop
        if end > width:
            raise FewnodeError(f"block {block.name!r} ends at column {end}, but there are {width}")
