"""How near nodes are to prototypes, or to each other: in parts that bound memory."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from fewnode.gpn import closeness

CHUNK = 1 << 22
"""Numbers that a comparison of query nodes with prototypes holds at a time: it bounds memory when all are asked for."""
RESIDENT, NARROW = 1024, 8
"""Rows that stay in the processor's cache from one look at them to the next; prototypes up to which that makes no
difference to the last bit."""


def nearness(z: Float[Tensor, "*b q d"], p: Float[Tensor, "*b n d"], distance: str) -> Float[Tensor, "*b q n"]:
    """How near each query node is to the same n prototypes, or to n other nodes. By cosine, also of several tasks."""
    if distance == "cosine" and z.dim() > 2:
        return 10 * F.normalize(z, dim=-1) @ F.normalize(p, dim=-1).mT
    if distance == "cosine":
        unit = F.normalize(p)
        parts = split_rows(z, z.shape[1])
        if len(p) <= NARROW:
            parts = (piece for part in parts for piece in part.split(RESIDENT))
        return torch.cat([10 * F.normalize(part) @ unit.T for part in parts])
    found = [closeness(part, p.expand(part.shape[0], -1, -1), distance) for part in split_rows(z, p.numel())]
    return torch.cat(found) if len(found) > 1 else found[0]


def split_rows(rows: Tensor, numbers: int) -> Iterator[Tensor]:
    """The rows in parts, so that a part does not take too much memory if each row takes so many numbers."""
    yield from rows.split(max(1, CHUNK // max(1, numbers)))
