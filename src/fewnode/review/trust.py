"""What to trust of a class's claims: how many members there are, precision and recall by threshold, and a fair sample.

Two sources are kept apart. Probabilities say what the model expects; they may all be too high or too low together. The
answers to a random sample of claimed nodes say what is so, whatever the model expects.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fewnode.recognition.population import claimable
from fewnode.recognition.question import Question
from fewnode.scores import WIDE, wilson

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Ints = NDArray[np.int64]

LEVEL = 1.5
"""How far log-odds of all nodes of a class may be off together, a standard deviation: so it was on twelve classes of
Debian, from 1 and 5 examples."""
THRESHOLDS = tuple(round(step / 40, 3) for step in range(41))


class Estimate(NamedTuple):
    """A number with its 95 % interval."""

    value: float
    low: float
    high: float


class Measured(NamedTuple):
    """A share that was counted: of `asked` nodes so many were right, with Wilson's 95 % interval."""

    value: float
    low: float
    high: float
    asked: int


class CurvePoint(NamedTuple):
    """What to expect of claims at a threshold. Precision is None where nothing is claimed, recall where none is."""

    threshold: float
    claimed: int
    precision: float | None
    recall: float | None


class ClassTrust(NamedTuple):
    """What to expect of a class: how many nodes are in it, and of its claims how many are right, and complete."""

    members: Estimate
    precision: float | None
    recall: float | None


def trust(question: Question, threshold: float = 0.5) -> dict[str, ClassTrust]:
    """What to expect of each class, over all nodes that may be in one."""
    given, found = question.given, dict[str, ClassTrust]()
    rows = np.flatnonzero(claimable(question.data, given.support))
    probabilities, _ = question.probabilities(rows)
    for c, name in enumerate(question.classes):
        own = given.support[given.y == c]
        unknown = ~np.isin(rows, np.concatenate([own, given.no.get(c, own[:0])]))
        (point,) = curve(probabilities[:, c], [threshold])
        members = estimated_members(probabilities[unknown, c], known=own.size)
        found[name] = ClassTrust(members, point.precision, point.recall)
    return found


def measured(right: int, asked: int) -> Measured | None:
    """Precision among claimed nodes, by the answers to a fair sample of them; None if nobody was asked.

    >>> measured(9, 10)
    Measured(value=0.9, low=0.5958..., high=0.9821..., asked=10)
    """
    return Measured(right / asked, *wilson(right, asked), asked) if asked else None


def estimated_members(
    probability: Floats, claimed: Mask | None = None, precision: Measured | None = None, known: int = 0
) -> Estimate:
    """How many nodes are in a class: those that are `known` to be, and what is expected of all others.

    `probability` has one number for each node that nobody has answered about. Its interval is that of log-odds which
    are all off by the same. If `precision` was measured among the `claimed` of these nodes, it takes the place of
    what is expected of them.

    >>> estimated_members(np.full(100, 0.5)).value, estimated_members(np.zeros(0), known=3)
    (50.0, Estimate(value=3.0, low=3.0, high=3.0))
    """
    own = np.zeros(probability.shape, bool) if claimed is None or precision is None else claimed
    value, low, high = (_expected(probability[~own], shift) for shift in (0.0, -LEVEL, LEVEL))
    if precision is not None and own.any():
        counted = int(own.sum())
        value, low, high = (part + counted * share for part, share in zip((value, low, high), precision, strict=False))
    return Estimate(known + value, known + low, known + high)


def _expected(probability: Floats, shift: float) -> float:
    """The expected members if log-odds are off by so many standard deviations' worth; chance adds to it."""
    odds = np.exp(WIDE * shift) * probability / np.maximum(1 - probability, 1e-12)
    p = odds / (1 + odds)
    chance = WIDE * np.sign(shift) * np.sqrt((p * (1 - p)).sum())
    return float(np.clip(p.sum() + chance, 0, probability.size))


def curve(probability: Floats, thresholds: Sequence[float] = THRESHOLDS, by: Floats | None = None) -> list[CurvePoint]:
    """Precision and recall to expect at each threshold, if probabilities are right; answered nodes have 0 or 1.

    `by`: what is compared with the threshold, where that is not the probability itself.

    >>> curve(np.array([0.9, 0.7, 0.4]), [0.5])
    [CurvePoint(threshold=0.5, claimed=2, precision=0.8, recall=0.8)]
    """
    score = probability if by is None else by
    place = np.argsort(score, kind="stable")
    order, sums = score[place], probability[place]
    total, before = float(sums.sum()), np.concatenate([[0.0], np.cumsum(sums)])
    found = []
    for threshold in thresholds:
        first = int(np.searchsorted(order, threshold))
        claimed, right = order.size - first, total - float(before[first])
        precision = min(1.0, right / claimed) if claimed else None
        found.append(CurvePoint(threshold, claimed, precision, min(1.0, right / total) if total > 0 else None))
    return found


def known_curve(probability: Floats, member: Mask, thresholds: Sequence[float] = THRESHOLDS) -> list[CurvePoint]:
    """The same where it is known which nodes are members.

    >>> known_curve(np.array([0.9, 0.7, 0.4]), np.array([True, False, True]), [0.5])
    [CurvePoint(threshold=0.5, claimed=2, precision=0.5, recall=0.5)]
    """
    order = np.argsort(probability, kind="stable")
    total, before = int(member.sum()), np.concatenate([[0], np.cumsum(member[order])])
    found = []
    for threshold in thresholds:
        first = int(np.searchsorted(probability[order], threshold))
        claimed, right = order.size - first, total - int(before[first])
        found.append(
            CurvePoint(threshold, claimed, right / claimed if claimed else None, right / total if total else None)
        )
    return found


def fair_sample(nodes: Ints, count: int, seed: int = 0) -> Ints:
    """So many of the nodes at random, in the order in which to ask about them.

    Every node has a place in one fixed order of all nodes that the seed draws. So while claims change, the first ones
    of those that are claimed are a fair sample of them at any time, and answers that were given before still count.

    >>> some = fair_sample(np.arange(100), 5)
    >>> np.array_equal(fair_sample(np.setdiff1d(np.arange(100), some[:1]), 4), some[1:])
    True
    """
    return nodes[np.argsort(_scrambled(nodes, seed), kind="stable")[:count]]


def _scrambled(nodes: Ints, seed: int) -> NDArray[np.uint64]:
    """A number for each node that looks random, and depends on it and on the seed alone (splitmix64)."""
    x = nodes.astype(np.uint64) + np.uint64(1) + (np.uint64(seed) << np.uint64(32))
    x *= np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        x = (x ^ (x >> np.uint64(shift))) * np.uint64(factor)
    return x ^ (x >> np.uint64(31))
