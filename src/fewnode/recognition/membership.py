"""Whether a node is in any of the given classes at all: how near it is to one, turned into a probability."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor


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

    def probability(
        self,
        near: Float[Tensor, "q n"],
        shots: Float[Tensor, " n"],
        crowd: Float[Tensor, " q"] | None = None,
        share: float = 0.5,
    ) -> Float[Tensor, " q"]:
        """Of a node on its own, if that share of all nodes are members. A class without shots is described."""
        return torch.sigmoid(self._log_odds(near, shots, crowd) + math.log(share / (1 - share)))

    def among(
        self, near: Float[Tensor, "*b q n"], shots: Float[Tensor, " n"], crowd: Float[Tensor, "*b q"] | None = None
    ) -> Float[Tensor, "*b q"]:
        """Of nodes asked about together in a task, which tell what share of them are members.

        One member and one stranger are imagined, so that it is neither 0 nor 1.
        """
        odds = self._log_odds(near, shots, crowd)
        return torch.sigmoid(odds + torch.logit(_share_of_members(odds, 0.5, imagined=2)).float())

    def share(
        self,
        near: Float[Tensor, "q n"],
        shots: Float[Tensor, " n"],
        crowd: Float[Tensor, " q"] | None = None,
        rather: Float[Tensor, " q"] | float = 1.0,
        class_share: float | None = None,
    ) -> float:
        """What share of a network is in the classes: by some of its nodes, and as much by the size of known classes.

        The nodes alone can be far off where a few of thousands are members; the sizes where new classes are others.
        `rather`: P(a node is in these classes rather than in others of which nodes are known).
        """
        size = self.class_share if class_share is None else class_share
        expected = min(0.5, max(1e-6, shots.numel() * size))
        return float(_share_of_members(self._log_odds(near, shots, crowd), expected, near.shape[0], rather))

    def _log_odds(
        self, near: Float[Tensor, "*b q n"], shots: Float[Tensor, " n"], crowd: Float[Tensor, "*b q"] | None
    ) -> Float[Tensor, "*b q"]:
        """How much likelier the node looks so as a member than as a stranger; the logarithm."""
        top, place = near.max(dim=-1)
        words = self.by_words * (shots[place] == 0)
        odds = self.slope * top + self.by_shots * shots.clamp(min=1).log()[place] + words
        odds = odds + self.by_ways * math.log(near.shape[-1])
        odds = odds + self.intercept
        return odds if crowd is None else odds + self.by_crowd * crowd


def _share_of_members(
    log_odds: Float[Tensor, "*b q"],
    expected: float,
    imagined: int,
    rather: Float[Tensor, " q"] | float = 1.0,
    steps: int = 50,
) -> Float[Tensor, "*b 1"]:
    """The share of members that makes these nodes likeliest, by expectation-maximisation (Saerens et al., 2002).

    Beside them are so many `imagined` nodes, of which the `expected` share are members.
    """
    odds = log_odds.double()
    share = odds.new_full((*odds.shape[:-1], 1), expected)
    for _ in range(steps):
        member = (rather * torch.sigmoid(odds + torch.logit(share))).sum(dim=-1, keepdim=True)
        share = (member + imagined * expected) / (odds.shape[-1] + imagined)
    return share
