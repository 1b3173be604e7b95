"""How near nodes are to prototypes, or to each other: in parts that bound memory."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from fewnode.gpn import closeness

CHUNK = 1 << 22
"""Numbers that a comparison of query nodes with prototypes holds at a time: it bounds memory when all are asked for."""


def nearness(
    z: Float[Tensor, "m d"], query: Int[Tensor, " q"], p: Float[Tensor, "n d"], distance: str
) -> Float[Tensor, "q n"]:
    """How near each query node is to the same n prototypes, or to n other nodes."""
    if distance == "cosine":
        unit = F.normalize(p)
        return torch.cat([10 * F.normalize(z[part]) @ unit.T for part in split_queries(query, 1, z.shape[1])])
    found = [closeness(z[part], p.expand(part.numel(), -1, -1), distance) for part in split_queries(query, *p.shape)]
    return torch.cat(found) if len(found) > 1 else found[0]


def split_queries(query: Int[Tensor, " q"], compared: int, width: int) -> tuple[Int[Tensor, " _"], ...]:
    """The query in parts, so that no comparison of one with so many others of that width is too large at once."""
    size = max(1, CHUNK // max(1, compared * width))
    if query.numel() <= size:
        return (query,)
    parts: tuple[Tensor, ...] = query.split(size)
    return parts
