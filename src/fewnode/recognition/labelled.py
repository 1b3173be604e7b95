"""What stands for the classes of a task: rows of z of labelled nodes, and of descriptions."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fewnode.graph import Ints
from fewnode.recognition.membership import sigmoid
from fewnode.recognition.nearness import RESIDENT, log_softmax
from fewnode.recognition.ridge import SCALE, class_weights, ridge_prototypes
from fewnode.vectors import Floats, unit_rows

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

    z: Floats
    """Of one task (k x d), or of several with the same labels."""
    y: Ints
    count: Floats
    is_node: NDArray[np.bool_]

    @classmethod
    def of(
        cls, z: Floats, y: Ints, said: Floats | None = None, said_y: Ints | None = None, most: float = WORTH
    ) -> LabelledRows:
        """Labelled nodes and, if there are some, descriptions, each by how well it agrees with the nodes.

        `most` is what a description counts that nobody doubts.
        """
        ones = np.ones(len(y), np.float32)
        if said is None or said_y is None:
            return cls(z, y, ones, np.ones(len(y), bool))
        worth = most * sigmoid(agreement(z, y, said, said_y) + math.log(ODDS))
        worth[~np.isin(said_y, y)] = 1.0  # nothing else stands for the class
        count = np.concatenate([ones, worth.astype(np.float32)])
        is_node = np.repeat([True, False], [len(y), len(said)])
        return cls(np.concatenate([z, said]), np.concatenate([y, said_y]), count, is_node)

    @property
    def n_way(self) -> int:
        return int(self.y.max()) + 1

    @property
    def label(self) -> Floats:
        """One-hot rows, k x N."""
        return np.eye(self.n_way, dtype=np.float32)[self.y]

    @property
    def counted(self) -> Floats:
        """What each row counts in each class."""
        return self.label * self.count[:, None]

    @property
    def shots(self) -> Floats:
        """How many labelled nodes a class has."""
        return np.bincount(self.y, self.is_node, self.n_way).astype(np.float32)

    @property
    def means(self) -> Floats:
        """The mean of each class, Eq. (12) if rows count by β."""
        counted = self.counted
        return np.asarray((counted / counted.sum(axis=0)).T @ self.z)


def agreement(z: Floats, y: Ints, said: Floats, said_y: Ints) -> NDArray[np.float64]:
    """How much likelier the labels of a class's nodes are by the descriptions than by chance; the logarithm."""
    if len(y) == 0 or len(said_y) < 2:
        return np.zeros(len(said_y))
    place = np.full(max(int(y.max()), int(said_y.max())) + 1, -1)
    place[said_y] = np.arange(len(said_y))
    judged = place[y] >= 0
    label = np.eye(len(said_y), dtype=np.float32)
    log_prob = log_softmax(SCALE * z[judged] @ ridge_prototypes(said, label, class_weights(label)))
    own = place[y[judged]]
    told = log_prob[np.arange(len(own)), own] + math.log(len(said_y))
    return np.asarray(np.bincount(own, told, len(said_y)), np.float64)


def echoed(said: Floats, z: Floats) -> Floats:
    """Descriptions, each with the nodes that are most like it: these have neighbours and a place in the structure."""
    like = np.concatenate([z[low : low + RESIDENT] @ said.T for low in range(0, len(z), RESIDENT)])
    count = min(ECHO, len(z))
    best = np.argpartition(-like, count - 1, axis=0)[:count].T
    return unit_rows(said + unit_rows(np.asarray(z[np.sort(best)].mean(axis=1))))
