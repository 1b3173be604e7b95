"""A layout of nodes in the plane: neighbours attract each other, strangers repel (UMAP; McInnes et al., 2018)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fewnode.engine.lanes import compiled

REPELLED, CLOSE = 4, 0.6
"""Strangers that repel a node each time that a neighbour attracts it, and how soon neighbours are near enough."""


@compiled
def settle(
    xy: NDArray[np.float32], near: NDArray[np.int64], strength: NDArray[np.float32], epochs: int, seed: int
) -> None:
    """Stochastic gradient descent on UMAP's cross-entropy, with its 1 / (1 + a d^2b) for a = 1.6, b = 0.9 nearly."""
    np.random.seed(seed)
    n, count = near.shape
    for epoch in range(epochs):
        rate = 1.0 - epoch / epochs
        for i in range(n):
            for k in range(count):
                if np.random.random() > strength[i, k]:
                    continue
                j = near[i, k]
                dx, dy = xy[i, 0] - xy[j, 0], xy[i, 1] - xy[j, 1]
                d2 = dx * dx + dy * dy
                pull = -2 * d2 / (d2 + 1e-3) / (CLOSE + d2)
                move_x, move_y = min(4.0, max(-4.0, pull * dx)) * rate, min(4.0, max(-4.0, pull * dy)) * rate
                xy[i, 0] += move_x
                xy[i, 1] += move_y
                xy[j, 0] -= move_x
                xy[j, 1] -= move_y
                for _ in range(REPELLED):
                    other = np.random.randint(n)
                    dx, dy = xy[i, 0] - xy[other, 0], xy[i, 1] - xy[other, 1]
                    d2 = dx * dx + dy * dy
                    push = 2 * CLOSE / ((0.001 + d2) * (CLOSE + d2))
                    xy[i, 0] += min(4.0, max(-4.0, push * dx)) * rate
                    xy[i, 1] += min(4.0, max(-4.0, push * dy)) * rate
