"""Classes to try the page with: some that the data knows and the model was not trained on, a typical node of each."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from fewnode.dataset import Dataset

CLASSES, SHARE = 3, 0.01
"""How many, and the least share of the labelled nodes that each of them has."""


def examples(data: Dataset, z: Tensor, trained: bool) -> list[dict[str, Any]]:
    """The classes whose nodes are most alike, each by its most typical node; none where the data knows too few."""
    sizes = data.class_sizes
    among = data.split.test if trained and data.split.test else range(len(data.class_names))
    least = max(2, SHARE * sizes.sum())
    found = sorted((_typical(data, z, c) for c in among if sizes[c] >= least), reverse=True)
    if len(found) < CLASSES:
        return []
    return [{"class": data.class_names[c], "node": data.node_name(node)} for _, c, node in found[:CLASSES]]


def _typical(data: Dataset, z: Tensor, c: int) -> tuple[float, int, int]:
    """How alike the nodes of a class are, the class, and the node nearest to the mean of them."""
    members = data.members(c)
    own = F.normalize(z[torch.from_numpy(members)])
    like = own @ own.mean(dim=0)
    return float(like.mean()), c, int(members[int(like.argmax())])
