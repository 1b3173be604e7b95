"""The plane on which pictures of an embedding are drawn: its two principal axes."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import pad

from fewnode.represent.projection import principal_axes


@dataclass(frozen=True, eq=False)
class Plane:
    """A linear map of vectors to two numbers each. Whatever has the same coordinates, a prototype too, has a place."""

    mean: Float[Tensor, " d"]
    axes: Float[Tensor, "d 2"]
    share: Float[Tensor, " 2"]
    """Of the variance, along each axis."""

    @classmethod
    def of(cls, z: Float[Tensor, "n d"]) -> Plane:
        """Of a single column, the second axis is nothing."""
        mean = z.mean(dim=0)
        variance, axes = principal_axes((z - mean).double())
        longest_first = axes[:, -2:].flip(1)
        # an eigenvector's sign is anybody's choice: its largest entry is positive
        largest = longest_first.gather(0, longest_first.abs().argmax(dim=0, keepdim=True))
        share = variance[-2:].flip(0) / variance.sum().clamp(min=1e-12)
        one_column = (0, 2 - share.shape[0])
        axes, share = (pad(part, one_column).to(z.dtype) for part in (longest_first * torch.sign(largest), share))
        return cls(mean, axes, share)

    def place(self, z: Float[Tensor, "k d"]) -> Float[Tensor, "k 2"]:
        return (z - self.mean) @ self.axes
