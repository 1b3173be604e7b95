"""How much likelier than chance an edge joins two nodes of one class."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from fewnode.graph import Ints

MOST_ODDS, IMAGINED = 100.0, 10.0
"""Odds are between this and its inverse; and so many edges are imagined that join two of one class by chance."""


def meetings(adj: sp.csr_array, members: Sequence[Ints]) -> tuple[int, int]:
    """How many arcs join two of one class, and two of any known classes."""
    y = np.full(adj.shape[0], -1)
    for c, nodes in enumerate(members):
        y[nodes] = c
    one, other = np.repeat(y, np.diff(adj.indptr)), y[adj.indices]
    known = (one >= 0) & (other >= 0)
    return int(((one == other) & known).sum()), int(known.sum())


def same_class_odds(same: int, known: int, members: Sequence[Ints]) -> float:
    """Capped; 1 if unknown."""
    chance = _chance(members)
    share = (same + IMAGINED * chance) / (known + IMAGINED)
    odds = share / (1 - min(share, 0.999)) / (chance / (1 - chance))
    return float(np.float32(np.clip(odds, 1 / MOST_ODDS, MOST_ODDS)))


def _chance(members: Sequence[Ints]) -> float:
    """How often two known nodes are of one class."""
    sizes = np.array([nodes.size for nodes in members], np.float64)
    return float(np.clip(((sizes / max(1, sizes.sum())) ** 2).sum(), 1e-6, 0.5))
