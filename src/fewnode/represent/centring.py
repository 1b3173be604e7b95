"""Rows as directions from their mean: what all nodes share tells none of them apart."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from fewnode.engine import rows


def mean_direction(z: Float[Tensor, "n d"]) -> Float[Tensor, " d"]:
    """The mean of the unit rows of z, of those that are not zero."""
    return F.normalize(z).sum(dim=0) / z.any(dim=1).sum().clamp(min=1)


def centred(z: Float[Tensor, "n d"], mean: Float[Tensor, " d"]) -> Float[Tensor, "n d"]:
    """Unit rows, moved by the mean, of unit length again. A node that nothing is known of (zeros) stays zero."""
    out = torch.empty_like(z)
    rows.centre_rows(z.numpy(), mean.numpy(), out.numpy())
    return out


def stretched(z: Float[Tensor, "n d"], factor: Float[Tensor, " d"]) -> Float[Tensor, "n d"]:
    """Unit rows, each column multiplied by its factor before. Zeros stay zero."""
    out = torch.empty_like(z)
    rows.stretch_rows(z.numpy(), factor.numpy(), out.numpy())
    return out
