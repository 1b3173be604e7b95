"""Rows through PReLU to unit length, and their means: what COSMIC reads off a subgraph, forwards and backwards at once.

Each row is read once in each direction. Torch goes over the rows of all subgraphs fifteen times.

A sum has a loop of its own. Where a loop writes, too, the compiler makes two of it, with vectors and without, which
round otherwise, and where arrays happen to lie decides between them: the same input would not give the same bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor
from torch.autograd.function import once_differentiable

from fewnode.engine.lanes import compiled

Array = NDArray[Any]
SHORTEST = 1e-12
"""A row is divided by its length, or by this if it is shorter: as `torch.nn.functional.normalize` does."""


@compiled
def first_and_mean(h: Array, bias: Array, slope: Array, there: Array) -> tuple[Array, Array, Array]:
    """Of each group of rows the first, and the mean of those that are there; and the length of each row."""
    groups, size, width = h.shape
    first, mean = np.empty((groups, width), h.dtype), np.zeros((groups, width), h.dtype)
    length, row = np.ones((groups, size), h.dtype), np.empty(width, h.dtype)
    for b in range(groups):
        share = h.dtype.type(1) / there[b].sum()
        for s in range(size):
            if s > 0 and there[b, s] == 0:
                continue
            square = h.dtype.type(0)
            for c in range(width):
                value = h[b, s, c] + bias[c]
                row[c] = value if value > 0 else slope[c] * value
            for c in range(width):
                square += row[c] * row[c]
            length[b, s] = max(np.sqrt(square), h.dtype.type(SHORTEST))
            scale = h.dtype.type(1) / length[b, s]
            if s == 0:
                for c in range(width):
                    first[b, c] = row[c] * scale
            scale *= share * there[b, s]
            for c in range(width):
                mean[b, c] += row[c] * scale
    return first, mean, length


@compiled
def backwards(
    h: Array, bias: Array, slope: Array, there: Array, length: Array, of_first: Array, of_mean: Array
) -> tuple[Array, Array, Array]:
    """The gradients by h, bias and slope, from those by the first row and by the mean."""
    groups, size, width = h.shape
    by_h, by_bias, by_slope = np.zeros_like(h), np.zeros_like(bias), np.zeros_like(slope)
    value, row, up = np.empty(width, h.dtype), np.empty(width, h.dtype), np.empty(width, h.dtype)
    for b in range(groups):
        share = h.dtype.type(1) / there[b].sum()
        for s in range(size):
            if s > 0 and there[b, s] == 0:
                continue
            scale, part, own = h.dtype.type(1) / length[b, s], share * there[b, s], h.dtype.type(s == 0)
            along = h.dtype.type(0)
            for c in range(width):
                value[c] = h[b, s, c] + bias[c]
                row[c] = (value[c] if value[c] > 0 else slope[c] * value[c]) * scale
            for c in range(width):
                up[c] = part * of_mean[b, c] + own * of_first[b, c]
            for c in range(width):
                along += row[c] * up[c]
            if length[b, s] <= h.dtype.type(SHORTEST):
                along = h.dtype.type(0)
            for c in range(width):  # loops of few arrays each: of many, the compiler would not make vectors
                up[c] = (up[c] - along * row[c]) * scale
            for c in range(width):
                by_slope[c] += up[c] * min(value[c], h.dtype.type(0))
            for c in range(width):
                up[c] *= h.dtype.type(1) if value[c] > 0 else slope[c]
            for c in range(width):
                by_bias[c] += up[c]
                by_h[b, s, c] = up[c]
    return by_h, by_bias, by_slope


class _FirstAndMean(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, h: Tensor, bias: Tensor, slope: Tensor, there: Tensor) -> tuple[Tensor, Tensor]:
        given = [part.detach().contiguous() for part in (h, bias, slope, there)]
        first, mean, length = (torch.from_numpy(part) for part in first_and_mean(*(part.numpy() for part in given)))
        ctx.save_for_backward(*given, length)
        return first, mean

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, of_first: Tensor, of_mean: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        given = [part.contiguous().numpy() for part in (*ctx.saved_tensors, of_first, of_mean)]
        by_h, by_bias, by_slope = (torch.from_numpy(part) for part in backwards(*given))
        return by_h, by_bias, by_slope, None


def unit_rows(
    h: Float[Tensor, "b s d"], bias: Float[Tensor, " d"], slope: Float[Tensor, " d"], there: Float[Tensor, "b s"]
) -> tuple[Float[Tensor, "b d"], Float[Tensor, "b d"]]:
    """Of PReLU(h + b), rows brought to unit length: the first of each group, and the mean of those that are there."""
    return _FirstAndMean.apply(h, bias, slope, there)  # type: ignore[no-any-return,no-untyped-call]
