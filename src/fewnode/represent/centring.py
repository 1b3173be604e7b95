"""Rows as directions from their mean: what all nodes share tells none of them apart."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F


def mean_direction(z: Float[Tensor, "n d"]) -> Float[Tensor, " d"]:
    """The mean of the unit rows of z, of those that are not zero."""
    return F.normalize(z).sum(dim=0) / z.any(dim=1).sum().clamp(min=1)


def centred(z: Float[Tensor, "n d"], mean: Float[Tensor, " d"]) -> Float[Tensor, "n d"]:
    """Unit rows, moved by the mean, of unit length again. A node that nothing is known of (zeros) stays zero."""
    known = z.any(dim=1)
    moved = F.normalize(z)
    moved -= mean
    moved /= moved.norm(dim=1, keepdim=True).clamp_(min=1e-12)
    return moved if known.all() else moved.mul_(known[:, None])
