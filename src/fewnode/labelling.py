"""Which nodes to label next: those that stand for many nodes of the classes that no labelled node stands for yet."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from fewnode.errors import FewnodeError
from fewnode.estimator import Estimator, Labels, Nodes, classes
from fewnode.graph import Dataset
from fewnode.methods.gpn import Prototypical

CANDIDATES = 1000
"""Nodes that are considered at most, the likeliest members of each class."""


@dataclass(frozen=True)
class Suggestion:
    """A node worth labelling, what it seems to be, and the share of the classes' nodes that it stands for."""

    node: int
    likely: Hashable
    probability: float
    covers: float


def suggest(
    model: Estimator,
    data: Dataset,
    support: Nodes,
    support_y: Labels,
    count: int = 10,
    among: Sequence[int] | None = None,
) -> list[Suggestion]:
    """The nodes to label next, most worthwhile first; `among` these, or among all that are not labelled yet."""
    if not isinstance(model.method_, Prototypical):
        raise FewnodeError(f"{model.method} has no embedding to choose nodes by; use gpn-plus")
    given = {int(v) for v in support}
    pool = np.array([v for v in (range(data.graph.n) if among is None else among) if v not in given], np.int64)
    if pool.size == 0:
        raise FewnodeError("there is no node left to suggest")
    probability = torch.from_numpy(model.predict_proba(data.graph, support, support_y, pool))
    share = probability
    if model.method_.known is not None:
        share = torch.from_numpy(model.familiar(data.graph, support, support_y, pool))[:, None] * probability
    kept = likeliest(share, CANDIDATES)
    z = F.normalize(model.embedding(data.graph))
    picked, gains = cover(z[torch.from_numpy(pool)[kept]], z[list(given)], share[kept], count)
    names = classes(support_y)
    return [
        Suggestion(int(pool[i]), names[int(probability[i].argmax())], float(probability[i].max()), gain)
        for i, gain in zip(kept[picked].tolist(), gains, strict=True)
    ]


def likeliest(share: Float[Tensor, "q n"], count: int) -> Tensor:
    """The rows that are likeliest in one of the columns, the same number for each, in order."""
    each = min(share.shape[0], max(1, count // share.shape[1]))
    rows: Tensor = torch.unique(share.topk(each, dim=0).indices)
    return rows


def cover(
    z: Float[Tensor, "q d"], labelled: Float[Tensor, "k d"], share: Float[Tensor, "q n"], count: int
) -> tuple[Tensor, list[float]]:
    """Greedy facility location: each node is stood for by the labelled node most like it, classes counting the same.

    A node adds what it improves on that, over all nodes, weighted by how likely they are in a class. The greedy choice
    is within 1 - 1/e of the best (Nemhauser et al., 1978).
    """
    weight = (share / share.sum(dim=0).clamp(min=1e-12)).sum(dim=1) / share.shape[1]
    like = (z @ z.T).clamp(min=0)
    own = share.sum(dim=1)  # a candidate that is likely in no class would be labelled for nothing
    covered = (z @ labelled.T).clamp(min=0).amax(dim=1)
    picked: list[int] = []
    gains: list[float] = []
    for _ in range(min(count, z.shape[0])):
        gain = own * (weight @ (like - covered[:, None]).clamp(min=0))
        gain[picked] = -1
        best = int(gain.argmax())
        picked.append(best)
        gains.append(float(weight @ (like[:, best] - covered).clamp(min=0)))
        covered = torch.maximum(covered, like[:, best])
    return torch.tensor(picked), gains
