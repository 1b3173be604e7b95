"""A metric learned on known classes: directions in which members of one class differ are played down."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from fewnode.graph import Ints
from fewnode.represent.projection import sampled
from fewnode.represent.tiles import rows_of

NOTHING = 1e-12
"""No variance at all: attributes that are the same everywhere, or in all nodes of each class."""


def within_class_metric(
    z: Float[Tensor, "n d"], members: Sequence[Ints], shrink: float = 0.3, power: float = 0.25
) -> Float[Tensor, "d d"]:
    """Directions along which classes vary within more than nodes vary at all are shortened, others lengthened.

    W is the covariance within classes, each counting once, drawn towards the covariance T of all nodes; the map is
    T^-1/2 (T^-1/2 W T^-1/2)^-power T^1/2, the identity where W is proportional to T.
    """
    within = torch.zeros(z.shape[1], z.shape[1], dtype=torch.float64)
    for nodes in members:
        own = rows_of(z, nodes)
        own -= own.mean(dim=0)
        within += (own.T @ own).double() / nodes.size
    some = rows_of(z, sampled(len(z)))
    total = (some.T @ some).double()
    within, total = (each / each.trace().clamp(min=NOTHING) for each in (within, total))
    eye = torch.eye(z.shape[1], dtype=torch.float64) / z.shape[1]
    total = total + 1e-4 * eye
    within = (1 - shrink) * within + shrink * total
    half, inverse = _root(total, 0.5), _root(total, -0.5)
    metric: Tensor = inverse @ _root(inverse @ within @ inverse, -power) @ half
    return metric.float()


def _root(matrix: Float[Tensor, "d d"], power: float) -> Float[Tensor, "d d"]:
    values, vectors = torch.linalg.eigh((matrix + matrix.T) / 2)
    root: Tensor = (vectors * values.clamp(min=1e-12) ** power) @ vectors.T
    return root
