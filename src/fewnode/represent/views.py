"""Views of a node: its attributes and its place in the structure, each diffused in several ways."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from fewnode.graph import Attributes, is_sparse
from fewnode.represent.diffusion import Axes, Diffusion, centred, mean_direction

VIEWS: dict[str, Diffusion] = {
    "attributes": Diffusion(0),
    "attributes, two steps": Diffusion(2),
    "attributes, near": Diffusion(6, 0.5),
    "attributes, far": Diffusion(10, 0.15),
    "attributes, neighbours' neighbours": Diffusion(2, walk=True),
    "structure": Diffusion(0),
    "structure, near": Diffusion(10, 0.15),
    "structure, far": Diffusion(20, 0.05, walk=True),
    "structure, farther": Diffusion(40, 0.02, walk=True),
}
POWERS = (0.0, 0.2, 0.4)
"""An axis of a view is stretched by its variance to this power: the more, the less the small axes count."""


def read_along(x: Attributes, rank: int, seed: int) -> Axes:
    """Counts and flags as logarithmic tf-idf; numbers that are hardly ever zero in units of their deviation."""
    filled = np.count_nonzero(x.data if is_sparse(x) else x) / max(1, x.shape[0] * x.shape[1])
    if is_sparse(x) or filled < 0.5:
        return Axes.of(x, "log-tf-idf", rank, seed)
    deviation = x.std(axis=0, dtype=np.float64)
    return Axes.of(x, "tf-idf", rank, seed, (1 / np.where(deviation > 0, deviation, 1)).astype(np.float32))


@dataclass(frozen=True, eq=False)
class ViewProjection:
    """How a view is looked at: from its mean, along its principal axes."""

    mean: Float[Tensor, " d"]
    axes: Float[Tensor, "d d"]
    variance: Float[Tensor, " d"]
    """Of each axis, as a share of the largest."""

    @classmethod
    def of(cls, h: Float[Tensor, "n d"]) -> ViewProjection:
        mean = mean_direction(h)
        variance, axes = principal_axes(centred(h, mean))
        return cls(mean, axes.float(), (variance / variance.max().clamp(min=1e-30)).clamp(min=1e-4).float())

    def read(self, h: Float[Tensor, "k d"], power: float) -> Float[Tensor, "k d"]:
        z = centred(h, self.mean)
        return z if power == 0 else F.normalize(z @ (self.axes * self.variance**power))


@dataclass(frozen=True, eq=False)
class ViewFusion:
    """Several views side by side, seen along their common leading axes."""

    mean: Float[Tensor, " e"]
    projection: Float[Tensor, "e d"]
    metric: Float[Tensor, "d d"] | None = None

    @classmethod
    def of(cls, e: Float[Tensor, "n e"], rank: int) -> ViewFusion:
        mean = e.mean(dim=0)
        _, axes = principal_axes(e - mean)
        return cls(mean, axes[:, -rank:].float())

    def read(self, e: Float[Tensor, "n e"]) -> Float[Tensor, "n d"]:
        z = F.normalize((e - self.mean) @ self.projection)
        return z if self.metric is None else F.normalize(z @ self.metric)


def principal_axes(z: Float[Tensor, "n d"], rows: int = 12_000) -> tuple[Tensor, Tensor]:
    """Variances and axes (columns), ascending, of at most so many rows, taken at equal distances."""
    part = z[:: max(1, z.shape[0] // rows)]
    variance, axes = torch.linalg.eigh((part.T @ part / max(1, part.shape[0])).double())
    return variance, axes
