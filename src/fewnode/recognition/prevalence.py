"""How many nodes are in a class, and P(a node is in it): from how the examples, each left out, are ranked.

Where no class of a network is known, nobody knows how many nodes are in one. Examples of a class that is told apart are
ranked between 1 and its size, so that their mean log rank says it; of other networks the line through both is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fewnode.graph import Ints
from fewnode.vectors import Floats

Doubles = NDArray[np.float64]
ORDINARY = 1.5
"""Left-out examples that are hardly nearer than any node: the mean of log(n / rank) is below."""
MANY = 5
"""Left-out examples that show that a class is of ordinary nodes."""
RARE = 0.06
"""The share of a network of classes beside which one of ordinary nodes has all others."""
FEW = 100
"""Nodes in a class of which nothing tells it; in a small network a quarter of all."""
LEVEL, BY_RANK = 2.95, 0.53
"""log(size of a class) by the mean log rank of its examples, each left out: of other networks, drawn to small."""
SAID_LEVEL, SAID_BY_COUNT = 2.4, 0.55
"""log(size) by how many nodes are at least half as relevant to a sentence as the tenth best."""
TRUSTED = 0.3
"""The weight of the embedding among experts from which on it alone tells classes apart."""
KNOWN = 0.7
"""P(an example is in its class), left out, on average."""
CAP, STEEP = 0.9, 1.8
"""P(member) of the first, and how fast it falls with the logarithm of the rank."""


class Estimated(NamedTuple):
    """How many nodes are in a class, and what its examples say of that."""

    members: float
    """Drawn to small where it cannot be told."""
    told: bool
    """Whether the examples, or a sentence, say so. One example shows no spread; ordinary nodes are like any others."""
    ordinary: bool
    """Whether several examples, each left out, are ranked as any nodes are: a class of all that is in no other one."""
    rank: float = np.nan
    """The median rank of an example that is left out; NaN where none can be."""


def by_examples(ranks: Doubles, n: int) -> Estimated:
    """From the ranks of examples, each left out."""
    level = float(np.log(ranks).mean())
    alike = bool(np.log(n) - level < ORDINARY)
    members = min(float(np.exp(LEVEL + BY_RANK * level)), n / 2)
    return Estimated(members, not alike, alike and ranks.size >= MANY, float(np.median(ranks)))


def by_sentence(relevance: Floats) -> Estimated:
    """From how many nodes a sentence is relevant to."""
    tenth = np.partition(relevance, -min(10, relevance.size))[-min(10, relevance.size)]
    count = np.count_nonzero(relevance > tenth / 2)
    return Estimated(float(min(np.exp(SAID_LEVEL + SAID_BY_COUNT * np.log1p(count)), relevance.size / 2)), True, False)


def unknown(n: int) -> Estimated:
    """Of a single example."""
    return Estimated(min(FEW, n / 4), False, False)


def beside_rare(classes: Sequence[Estimated], n: int) -> tuple[Estimated, ...]:
    """With classes of ordinary nodes only beside rare ones: examples of any large class are ranked as any nodes are."""
    others = sum(each.members for each in classes if not each.ordinary)
    return tuple(each._replace(ordinary=each.ordinary and 0 < others < RARE * n) for each in classes)


def memberships(score: Floats, members: Sequence[float], given: Ints) -> Doubles:
    """P(a node is in a class), a column each, if so many nodes are in it; those that are `given` count nowhere.

    P = CAP / (1 + (rank / half)^STEEP), which sums to the members: ∫ 1 / (1 + r^s) dr = (π/s) / sin(π/s).
    """
    found = np.zeros(score.shape)
    for c, count in enumerate(members):
        own = score[:, c].copy()
        own[given] = -np.inf
        rank = np.empty(own.size)
        rank[np.argsort(-own, kind="stable")] = np.arange(1, own.size + 1)
        half = count * np.sin(np.pi / STEEP) * STEEP / (np.pi * CAP)
        found[:, c] = CAP / (1 + (rank / half) ** STEEP)
    return found


def judged(
    own: Doubles, among: Floats, classes: Sequence[Estimated], trusted: float
) -> tuple[Doubles, NDArray[np.float64]]:
    """P(class) among the classes, and P(a node is in any of them), from P(it is in each) on its own.

    `among` is what the embedding says of nodes that are in one of the classes, and `trusted` its weight among experts.
    A class of ordinary nodes has all that is in no other class: then every node is in one.
    """
    odds = own / (1 - own)
    total, share = odds.sum(axis=1), 1 - min(1.0, trusted / TRUSTED)
    ordinary = np.array([each.ordinary for each in classes])
    rest = np.maximum(among[:, ordinary], 1e-9)
    odds[:, ordinary] = rest / rest.sum(axis=1, keepdims=True)  # of a sum of 1, beside the odds of the others
    found = odds if ordinary.any() else np.maximum(among, 1e-9) ** (1 - share) * odds**share
    member = np.ones(len(found)) if ordinary.any() else total / (1 + total)
    return found / found.sum(axis=1, keepdims=True), member
