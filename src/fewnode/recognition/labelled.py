"""What stands for the classes of a task: rows of z of labelled nodes, and of descriptions."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F

from fewnode.graph import Ints
from fewnode.recognition.nearness import split_rows
from fewnode.recognition.ridge import SCALE, class_weights, ridge_prototypes

WORTH, ODDS = 1.0, 2.0
"""What a description counts, where a labelled node counts 1; and the odds that it is right, before a label is seen."""
ECHO = 30
"""Nodes most like a description that speak for it, too, all together as much as it does itself."""
WORTHS = (0.25, 0.5, WORTH)
"""What names of known classes may show a description to count: more would cost too much where it is wrong."""
DOUBTED = 0.3
"""A description that counts less disagrees with the labelled nodes of its class."""


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """Rows of z, the class of each, and how much it counts beside the others of its class."""

    z: Float[Tensor, "*b k d"]
    """Of one task, or of several."""
    y: Int[Tensor, " k"]
    count: Float[Tensor, " k"]
    is_node: Bool[Tensor, " k"]

    @classmethod
    def of(
        cls,
        z: Float[Tensor, "k d"],
        y: Ints,
        said: Float[Tensor, "m d"] | None = None,
        said_y: Ints | None = None,
        most: float = WORTH,
    ) -> LabelledRows:
        """Labelled nodes and, if there are some, descriptions, each by how well it agrees with the nodes.

        `most` is what a description counts that nobody doubts.
        """
        label, nodes = torch.from_numpy(y), torch.ones(len(y), dtype=torch.bool)
        if said is None or said_y is None:
            return cls(z, label, torch.ones(len(y)), nodes)
        said_label = torch.from_numpy(said_y)
        worth = most * torch.sigmoid(agreement(z, label, said, said_label) + math.log(ODDS))
        unlabelled = torch.bincount(label, minlength=int(said_label.max()) + 1)[said_label] == 0
        worth = torch.where(unlabelled, 1.0, worth)  # nothing else stands for the class
        return cls(
            torch.cat([z, said]),
            torch.cat([label, said_label]),
            torch.cat([torch.ones(len(y)), worth]),
            torch.cat([nodes, torch.zeros(len(said), dtype=torch.bool)]),
        )

    @property
    def n_way(self) -> int:
        return int(self.y.max()) + 1

    @property
    def label(self) -> Float[Tensor, "k n"]:
        return F.one_hot(self.y, self.n_way).float()

    @property
    def counted(self) -> Float[Tensor, "k n"]:
        return self.label * self.count[:, None]

    @property
    def shots(self) -> Float[Tensor, " n"]:
        """How many labelled nodes a class has."""
        return torch.zeros(self.n_way).index_add(0, self.y, self.is_node.float())

    @property
    def means(self) -> Float[Tensor, "*b n d"]:
        return (self.counted / self.counted.sum(dim=0)).T @ self.z


def agreement(
    z: Float[Tensor, "k d"], y: Int[Tensor, " k"], said: Float[Tensor, "m d"], said_y: Int[Tensor, " m"]
) -> Float[Tensor, " m"]:
    """How much likelier the labels of a class's nodes are by the descriptions than by chance; the logarithm."""
    n_way = max(int(y.max()) if len(y) else 0, int(said_y.max())) + 1
    if len(y) == 0 or len(said_y) < 2:
        return torch.zeros(len(said_y))
    place = torch.full((n_way,), -1).index_copy(0, said_y, torch.arange(len(said_y)))
    judged = place[y] >= 0
    label = torch.eye(len(said_y))
    log_prob = torch.log_softmax(SCALE * z[judged] @ ridge_prototypes(said, label, class_weights(label)), dim=1)
    own = place[y[judged]]
    told = log_prob[torch.arange(len(own)), own] + math.log(len(said_y))
    return torch.zeros(len(said_y)).index_add(0, own, told)


def echoed(said: Float[Tensor, "m d"], z: Float[Tensor, "n d"]) -> Float[Tensor, "m d"]:
    """Descriptions, each with the nodes that are most like it: these have neighbours and a place in the structure."""
    like = torch.cat([part @ said.T for part in split_rows(z, z.shape[1])])
    best = like.topk(min(ECHO, len(z)), dim=0).indices.T
    return F.normalize(said + F.normalize(z[best].mean(dim=1)))
