"""How many nodes are in a class, how many claims are right, and what share of the members is found: from answers.

Answers that were chosen to find members are biased: their share of "yes" says nothing about other nodes. So an answer
is compared with what the model said of that very node when it was asked. Nodes are put into bands by their probability.
The log-odds of band k are off by f_k. What f may be is known beforehand from 77 classes of nine networks, of which
no figure is reported: a mixture of normal distributions (`LEVEL`, `SHAPES`, `KINDS`). Answers reweight
draws of f, the latest most, since the model learns. Each draw then says how many of the other nodes are members.

Where probabilities are tiny, their sum grows with the network and the number of members does not: there a band is taken
to have as many as a power of that sum (`POWER`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fewnode.graph import Ints
from fewnode.recognition.calibration import Doubles, sigmoid
from fewnode.recognition.population import claimable
from fewnode.recognition.question import Question

EDGES = np.array([-9, -7, -6, -5, -4.25, -3.5, -2.75, -2, -1.25, -0.6, 0, 0.6, 1.25, 2, 3])
"""Log-odds between bands."""
BANDS = len(EDGES) + 1
POWER = np.array([0, 0, 0.2, 0.2, 0.45, 0.45, 0.8, 0.8, 0.92, 0.92, 1, 1, 1, 1, 1, 1])
LEVEL = np.array([-1.8, -0.9, -0.3, 0.2, 0, 0.1, -0.5, -0.4, -0.6, -0.4, -0.3, 0, 0.4, 0.7, 0.7, 0.7])
"""Mean of f."""
SHAPES = np.array(
    [
        [0, 0.5, 0.65, 0.71, 0.69, 0.71, 0.67, 0.69, 0.63, 0.65, 0.71, 0.86, 1.02, 1.26, 1.53, 2.02],
        [0.93, 1.17, 1.19, 1.26, 1.12, 1.11, 0.8, 0.65, 0.46, 0.25, 0, -0.27, -0.49, -0.69, -0.92, -1.08],
        [-0.32, -0.37, -0.15, -0.07, 0, 0.07, 0.11, 0.19, 0.27, 0.4, 0.5, 0.5, 0.35, 0.1, -0.27, -0.59],
    ]
)
"""The ways in which f differs from class to class; each has a standard normal factor."""
REST = 0.1
"""Variance of f in each band beside these ways."""
KINDS = ((1.1, 0.1, 0.0, 0.4), (1.1, -2.5, 0.6, 0.5), (2.0, 0.0, 0.0, 0.1))
"""Kinds of classes: how much more f varies, what is added in the tail and among likely nodes, and their share."""
LASTING = 80.0
"""Answers after which one counts a third."""
DRAWS, STEPS = 2000, 30
ABOVE = 0.5
"""A share's upper end comes so much nearer to 1: classes without any member in the tail are more than the draws say."""


class Estimate(NamedTuple):
    """A number, and the interval that covers the truth in nine of ten cases."""

    value: float
    low: float
    high: float


class ClassTrust(NamedTuple):
    """Members of a class; the share of claims that are right, and the share of members that are claimed (found).

    Claimed are nodes that were confirmed, and those that `judge` gives the class. None where nothing can be said yet.
    """

    members: Estimate | None
    precision: Estimate | None
    recall: Estimate | None


@dataclass(frozen=True)
class Evidence:
    """What is known of one class: the other nodes' probabilities, and what was answered of those that were asked."""

    probability: Doubles
    """The probability of each node that nobody answered about."""
    claimed: NDArray[np.bool_]
    """Which of them the class claims."""
    found: int
    """Nodes that are known to be in the class."""
    said: Doubles
    """The probability that each node had when it was asked about."""
    yes: NDArray[np.bool_]
    age: Doubles
    """How many answers came after it."""

    def rates(self, draws: int = DRAWS) -> Doubles:
        """Draws (rows) of the share of members in each band (columns), given the answers."""
        band = bands(self.probability)
        nodes, expected = (np.bincount(band, part, BANDS) for part in (None, self.probability))
        usual = np.where(POWER == 1, expected, np.power(expected + 0.3, POWER))
        asked = bands(self.said)
        moved = np.where((POWER < 1) & (expected > 0), np.log(usual + 1e-9) - np.log(expected + 1e-9), 0)
        prior = log_odds(self.said) + moved[asked]
        f = _posterior(prior, asked, self.yes.astype(float), np.exp(-self.age / LASTING), draws)
        return np.asarray(sigmoid(log_odds(usual / np.maximum(nodes, 1)) + f), np.float64)

    def shares(self, draws: int = DRAWS) -> tuple[Doubles, Doubles, Doubles]:
        """Draws of the number of members, of the share of claims that are right, and of that of members claimed."""
        band, rates, rng = bands(self.probability), self.rates(draws), np.random.default_rng(0)
        inside, outside = (
            rng.binomial(np.bincount(band[part], minlength=BANDS), rates).sum(axis=1)
            for part in (self.claimed, ~self.claimed)
        )
        right = self.found + inside
        return right + outside, right / max(1, self.found + self.claimed.sum()), right / np.maximum(1, right + outside)

    def trust(self) -> ClassTrust:
        if not self.said.size:
            return ClassTrust(None, None, None)
        members, *shares = self.shares()
        low, value, high = np.percentile(members, [3, 50, 97]).tolist()
        told = [np.percentile(share, [5, 50, 95]).tolist() for share in shares]
        precision, recall = (Estimate(share[1], share[0], 1 - ABOVE * (1 - share[2])) for share in told)
        return ClassTrust(Estimate(value, low, high), precision, recall)


def log_odds(p: Doubles) -> Doubles:
    p = np.clip(p, 1e-7, 1 - 1e-6)
    return np.asarray(np.log(p / (1 - p)))


def bands(p: Doubles) -> Ints:
    """The band of each probability.

    >>> bands(np.array([0.0, 0.49, 0.5, 1.0])).tolist()
    [0, 10, 11, 15]
    """
    return np.asarray(np.digitize(p, sigmoid(EDGES)))


def _posterior(prior: Doubles, band: Ints, yes: Doubles, weight: Doubles, draws: int) -> Doubles:
    """Draws of f: of each kind of class from a normal distribution at the mode, then reweighted to what is right."""
    rng, place = np.random.default_rng(0), np.arange(BANDS)
    every, worth = [], []
    for scale, tail, head, share in KINDS:
        mean = LEVEL + tail * np.clip((8.5 - place) / 3, 0, 1) + head * (place > 10)
        inverse = np.linalg.inv(scale**2 * (SHAPES.T @ SHAPES + REST * np.eye(BANDS)))
        f = mean.copy()
        for _ in range(STEPS):  # Newton's method
            p = sigmoid(prior + f[band])
            curved = np.diag(np.bincount(band, weight * p * (1 - p), BANDS)) + inverse
            step = np.linalg.solve(curved, np.bincount(band, weight * (yes - p), BANDS) - inverse @ (f - mean))
            f = f + step / max(1.0, np.abs(step).max() / 2)
            if np.abs(step).max() < 1e-4:
                break
        root = np.linalg.cholesky(np.linalg.inv(curved))
        normal = rng.standard_normal((draws, BANDS))
        drawn = f + normal @ root.T
        odds = prior + drawn[:, band]
        likely = (weight * (yes * odds - np.logaddexp(0, odds))).sum(axis=1)
        away = np.einsum("ij,jk,ik->i", drawn - mean, inverse, drawn - mean)
        volume = np.log(np.diag(root)).sum() + np.linalg.slogdet(inverse)[1] / 2
        worth.append(np.log(share) + likely - away / 2 + (normal**2).sum(axis=1) / 2 + volume)
        every.append(drawn)
    total = np.exp(np.concatenate(worth) - np.max(worth))
    steps = (np.arange(draws) + 0.5) / draws
    picked = np.searchsorted(np.cumsum(total / total.sum()), steps).clip(max=total.size - 1)
    return np.asarray(np.concatenate(every)[picked])


def evidence(question: Question, label: str) -> Evidence:
    """What is known of a class, over all nodes that may be in one."""
    c, given = question.classes.index(label), question.given
    rows = np.flatnonzero(claimable(question.data, given.support))
    own = given.support[given.y == c]
    rows = rows[~np.isin(rows, np.concatenate([own, given.no.get(c, own[:0])]))]
    probabilities, member = question.everyone
    claimed = probabilities[rows, c] >= 0.5
    if member is not None and not question.several:
        claimed = (probabilities[rows].argmax(axis=1) == c) & (member[rows] >= 0.5)
    asked = [each for each in question.asked if each.label == label]
    said, yes, at = (np.array([each[i] for each in asked], kind) for i, kind in ((2, float), (3, bool), (5, float)))
    return Evidence(probabilities[rows, c], claimed, own.size, said, yes, len(asked) - at)


def trust(question: Question) -> dict[str, ClassTrust]:
    """What to expect of each class, from what was asked and answered."""
    unknown = ClassTrust(None, None, None)
    if question.cannot_tell:
        return dict.fromkeys(question.classes, unknown)
    return {name: evidence(question, name).trust() for name in question.classes}
