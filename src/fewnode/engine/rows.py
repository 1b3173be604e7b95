"""Loops over dense rows, compiled and kept: several steps in one pass, while the nearest cache holds a row."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewnode.engine.lanes import compiled, inlined

Array = NDArray[Any]
PART = 1 << 12
"""Numbers that the nearest cache holds, several times over."""
REPELLED, CLOSE = 4, 0.6
"""Of a layout: strangers that repel a node each time that a neighbour attracts it, and how soon neighbours are near
enough."""


@compiled
def add_shares(h: Array, share: Array, sums: Array) -> None:
    """sums[k] += share[k] · h for each k; all are flat. Each part of h is read once, while the cache holds it."""
    for low in range(0, h.size, PART):
        high = min(low + PART, h.size)
        for k in range(share.size):
            if share[k] != 0:
                part, total = h[low:high], sums[k, low:high]
                for i in range(part.size):
                    total[i] += share[k] * part[i]


@compiled
def centre_rows(rows: Array, mean: Array, out: Array) -> None:
    """Rows at length 1, less the mean, at length 1 again. A row of zeros stays so."""
    for i in range(rows.shape[0]):
        before = _inverse_length(rows[i])
        for column in range(rows.shape[1]):
            out[i, column] = before * rows[i, column] - mean[column] if before > 0 else 0
        after = _inverse_length(out[i])
        for column in range(rows.shape[1]):
            out[i, column] *= after


@compiled
def stretch_rows(rows: Array, factor: Array, out: Array) -> None:
    """Rows with each column multiplied by its factor, at length 1. A row of zeros stays so."""
    for i in range(rows.shape[0]):
        for column in range(rows.shape[1]):
            out[i, column] = factor[column] * rows[i, column]
        length = _inverse_length(out[i])
        for column in range(rows.shape[1]):
            out[i, column] *= length


@inlined
def _inverse_length(row: Array) -> Any:
    total = np.float32(0)
    for column in range(row.size):
        total += row[column] * row[column]
    return np.float32(1) / np.sqrt(total) if total > 0 else total


@compiled
def descend(
    weight: Array, gradient: Array, mean: Array, square: Array, rate: float, scale: float, decay: float
) -> None:
    """One step of Adam for flat arrays, in place, with the corrections for a short past in `rate` and `scale`."""
    one = weight.dtype.type(1)
    rate, scale, decay = one * rate, one * scale, one * decay
    fresh, rare, least = one * 0.1, one * 0.001, one * 1e-8
    for i in range(weight.size):
        by = gradient[i] + decay * weight[i]
        mean[i] += fresh * (by - mean[i])
        square[i] += rare * (by * by - square[i])
        weight[i] -= rate * mean[i] / (np.sqrt(square[i]) * scale + least)


@compiled
def settle(xy: Array, near: Array, strength: Array, epochs: int, seed: int) -> None:
    """A layout of nodes in the plane: neighbours attract each other, strangers repel (UMAP; McInnes et al., 2018).

    Stochastic gradient descent on its cross-entropy, with its 1 / (1 + a d^2b) for a = 1.6, b = 0.9 nearly.
    """
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
