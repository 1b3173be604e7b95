"""Whether a node is in any of the given classes at all: how near it is to one, turned into a probability."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class MembershipModel:
    """P(a node is in one of the given classes): logistic in how near the nearest is, its shots, the crowd, and log N.

    Where nodes lie close together, being near to a class says less: so are many that are not in it. Of several classes
    one is near sooner. `class_share` is the share of a network's nodes that a known class has, on average.
    """

    slope: float
    by_shots: float
    intercept: float
    by_crowd: float = 0.0
    by_ways: float = 0.0
    class_share: float = 0.05
    by_words: float = 0.0
    """Where only a description stands for the nearest class: nodes are never as near to it as to a node."""

    def probability(self, near: Floats, shots: Floats, crowd: Floats | None = None, share: float = 0.5) -> Floats:
        """Of a node on its own, if that share of all nodes are members. A class without shots is described.

        `near` is how near each node (a row) is to each class, `crowd` how close nodes lie around it.
        """
        return sigmoid(self._log_odds(near, shots, crowd) + math.log(share / (1 - share)))

    def among(self, near: Floats, shots: Floats, crowd: Floats | None = None) -> Floats:
        """Of nodes asked about together in a task, which tell what share of them are members.

        One member and one stranger are imagined, so that it is neither 0 nor 1.
        """
        odds = self._log_odds(near, shots, crowd)
        return sigmoid(odds + log_odds(_share_of_members(odds, 0.5, imagined=2)))

    def share(
        self,
        near: Floats,
        shots: Floats,
        crowd: Floats | None = None,
        rather: Floats | float = 1.0,
        class_share: float | None = None,
    ) -> float:
        """What share of a network is in the classes: by some of its nodes, and as much by the size of known classes.

        The nodes alone can be far off where a few of thousands are members; the sizes where new classes are others.
        `rather`: P(a node is in these classes rather than in others of which nodes are known).
        """
        size = self.class_share if class_share is None else class_share
        expected = min(0.5, max(1e-6, shots.size * size))
        odds = self._log_odds(near, shots, crowd)
        return float(_share_of_members(odds, expected, near.shape[0], rather)[..., 0])

    def _log_odds(self, near: Floats, shots: Floats, crowd: Floats | None) -> Floats:
        """How much likelier the node looks so as a member than as a stranger; the logarithm."""
        top, place = near.max(axis=-1).astype(np.float64), near.argmax(axis=-1)
        by_class = self.by_shots * np.log(np.maximum(shots, 1)) + self.by_words * (shots == 0)
        odds = self.slope * top + by_class[place] + self.by_ways * math.log(near.shape[-1]) + self.intercept
        return np.asarray(odds if crowd is None else odds + self.by_crowd * crowd)


@np.errstate(over="ignore")
def sigmoid(x: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-x)))


def log_odds(p: Floats, least: float = 0.0) -> Floats:
    p = np.clip(p, least, 1 - least)
    return np.asarray(np.log(p) - np.log1p(-p))


def _share_of_members(
    odds: Floats, expected: float, imagined: int, rather: Floats | float = 1.0, steps: int = 50
) -> Floats:
    """The share of members that makes these nodes likeliest, by expectation-maximisation (Saerens et al., 2002).

    Beside them are so many `imagined` nodes, of which the `expected` share are members.
    """
    share: Floats = np.full((*odds.shape[:-1], 1), expected)
    for _ in range(steps):
        member = (rather * sigmoid(odds + log_odds(share))).sum(axis=-1, keepdims=True)
        share = (member + imagined * expected) / (odds.shape[-1] + imagined)
    return share
