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
    """The largest classes, each by the node nearest to the mean of its nodes; none where the data knows too few."""
    sizes = data.class_sizes
    among = data.split.test if trained and data.split.test else range(len(data.class_names))
    least = max(2, SHARE * sizes.sum())
    large = sorted((c for c in among if sizes[c] >= least), key=lambda c: -int(sizes[c]))
    if len(large) < CLASSES:
        return []
    return [{"class": data.class_names[c], "node": data.node_name(_central(data, z, c))} for c in large[:CLASSES]]


def _central(data: Dataset, z: Tensor, c: int) -> int:
    members = data.members(c)
    own = F.normalize(z[torch.from_numpy(members)])
    return int(members[int((own @ own.mean(dim=0)).argmax())])
