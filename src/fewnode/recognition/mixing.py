"""Experts mixed where no class of a network is known: how like its examples each node is, by each kind of evidence.

What an expert says becomes the surprise t = -log(share of nodes that it takes to be at least as much like the class).
So experts of any scale can be added. A class's score is Σ_e w_e t_e with w = softmax(prior_e - s · mean log rank_e):
the prior of other networks, then how the examples themselves, each left out, are ranked by each expert.

How many nodes are in a class nobody knows either. Examples of a class that is told apart are ranked between 1 and its
size, so that their mean log rank says it; of other networks the line through both is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fewnode.episodes import Task
from fewnode.evidence import Evidence
from fewnode.graph import Ints
from fewnode.recognition.calibration import Doubles, LeftOut
from fewnode.recognition.classes import Given
from fewnode.recognition.linear_head import beside_attributes
from fewnode.vectors import Floats

MIXED_NODES = 1_000_000
"""Nodes up to which plain evidence stands beside the embedding: it is of all nodes at once, in memory."""

# --- experts ------------------------------------------------------------------------------------------------------

SMALL, LARGE = 5_000, 30_000
"""Nodes up to which the embedding leads, and from which on it does not."""
NO_NUMBERS, SOME_NUMBERS, MANY_NUMBERS = -2.0, 1.5, 4
"""What numbers are ahead by without a column of them, and from so many columns on."""
ECHO = 30
"""Nodes with the words of a sentence that speak for it in the embedding, too: by how well they match."""
RELEVANCE = (0.25, 0.5, 0.25)
"""What a sentence counts by a node's own words, with its neighbours', and by what is like the best nodes."""
SENTENCE = 1.0
"""What a sentence is ahead by, where examples stand beside it: as much as the embedding."""


def expert_columns(evidence: Evidence, z: Floats, support: Ints, weights: Floats) -> dict[str, Floats]:
    """What each expert says: a row a node, a column a column of weights of the examples.

    Experts are linear in the weights. So what one says of a class is a mean over its examples, and what it says without
    one of them is another mean.
    """

    def cosines(rows: Any) -> Floats:
        return np.asarray(rows @ np.ascontiguousarray(rows[support].T @ weights))

    start = np.zeros((evidence.n, weights.shape[1]), np.float32)
    np.add.at(start, support, weights)
    found = {"embedding": cosines(z), "around": cosines(evidence.around), "numbers": cosines(evidence.numbers)}
    found["walk"] = evidence.diffused(start)  # personalised PageRank from the examples
    if evidence.words.shape[1]:
        found["words"] = cosines(evidence.words)
        found["words around"] = evidence.diffused(found["words"])
    return found


def prior_lead(evidence: Evidence) -> dict[str, float]:
    """How far each expert is ahead before an example is left out: in logarithms of ranks.

    Most networks are about topics, where the embedding leads; in large ones a class is a small part of a topic. Columns
    of numbers come with networks where they matter; without them there are only degrees, which tell few classes apart.
    """
    large = np.log(evidence.n / SMALL) / np.log(LARGE / SMALL)
    numeric = NO_NUMBERS + (SOME_NUMBERS - NO_NUMBERS) * min(1.0, evidence.numeric / MANY_NUMBERS)
    lead = {"embedding": float(1 - np.clip(large, 0, 1)), "around": numeric, "numbers": numeric, "walk": 0.0}
    return lead | ({"words": 0.0, "words around": 0.4} if evidence.words.shape[1] else {})


# --- all experts together -----------------------------------------------------------------------------------------

LEFT_OUT = 10
"""Examples of a class that are left out at most, the last ones."""
SURE = 4.0
"""So many examples weigh experts fully; one cannot be left out, so that the prior speaks."""
DOUBTED = 0.05
"""A sentence that weighs less than this among the experts disagrees with the examples."""
TRUSTED = 0.3
"""The weight of the embedding among experts from which on it alone tells classes apart."""
EXACT, SPREAD = 1000, 1000
"""Ranks that are exact, the first ones; and so many others between which ranks are interpolated."""


class Estimated(NamedTuple):
    """How many nodes are in a class, and what its examples say of that."""

    members: float
    """Drawn to small where it cannot be told."""
    told: bool
    """Whether the examples, or a sentence, say so. One example shows no spread; ordinary nodes are like any others."""
    ordinary: bool = False
    """Whether several examples, each left out, are ranked as any nodes are: a class of all that is in no other one."""
    rank: float = np.nan
    """The median rank of an example that is left out; NaN where none can be."""


@dataclass(frozen=True, eq=False)
class Mixture:
    """What all experts together say of some classes, for all nodes."""

    evidence: Evidence
    own: Doubles
    """P(a node is in a class), on its own: a row a node, a column a class."""
    classes: tuple[Estimated, ...]
    weights: tuple[dict[str, float], ...]
    """The weight of each expert, by class."""

    def among(self, found: Floats, task: Task, left_out: LeftOut | None) -> Floats:
        """P(class) of queries that are in one of the classes, from what the embedding says of these and of examples.

        A class of ordinary nodes has all that is in no other class.
        """
        trusted = float(np.mean([weights.get("embedding", 0.0) for weights in self.weights]))
        if task.described is None:
            found = beside_attributes(found, self.evidence, task.query, task.support, task.support_y, left_out)
            trusted = 1.0 if self.evidence.plain else trusted
        own, ordinary, found = self.own[task.query], self.ordinary, np.maximum(found, 1e-9)
        odds, share = own / (1 - own), 1 - min(1.0, trusted / TRUSTED)
        if ordinary.any():  # their odds sum to 1, beside those of the others
            odds[:, ordinary] = found[:, ordinary] / found[:, ordinary].sum(axis=1, keepdims=True)
        else:
            odds = found ** (1 - share) * odds**share
        return np.asarray(odds / odds.sum(axis=1, keepdims=True), np.float32)

    def member(self, nodes: Ints) -> Doubles:
        """P(a node is in any of the classes)."""
        own = self.own[nodes]
        total = (own / (1 - own)).sum(axis=1)
        return np.ones(nodes.size) if self.ordinary.any() else np.asarray(total / (1 + total))

    @property
    def ordinary(self) -> NDArray[np.bool_]:
        """Which classes have all that is in no other one."""
        return np.array([each.ordinary for each in self.classes])

    @property
    def doubted(self) -> list[int]:
        """Classes whose sentence does not find their examples."""
        return [c for c, weights in enumerate(self.weights) if weights.get("sentence", 1.0) < DOUBTED]

    def ranks_only(self, names: Sequence[str]) -> str:
        """Why answers rank nodes and do not say how many are in a class; nothing if they do."""
        untold = [name for name, each in zip(names, self.classes, strict=True) if not each.told]
        if not untold or self.ordinary.any():
            return ""
        return f"nothing tells how many nodes are in class {untold[0]!r}: give more examples, or their number"


def mixture(evidence: Evidence, z: Floats, given: Given, expected: float | None = None) -> Mixture:
    """`z` has rows of length 1; `expected`: how many nodes are in the classes, if that is known."""
    support, n_way = given.support, len(given.names)
    said = {} if given.described is None else evidence.sentences(given.described.x, given.described.y)
    own = [np.flatnonzero(given.y == c) for c in range(n_way)]
    left = [places[-LEFT_OUT:] if places.size > 1 else places[:0] for places in own]
    ends = np.cumsum([n_way, *(places.size for places in left)])  # columns: each class, then each class without one
    weights = np.zeros((support.size, ends[-1]), np.float32)
    for c in range(n_way):
        weights[own[c], c] = 1 / max(1, own[c].size)
        for column, place in enumerate(left[c].tolist(), ends[c]):
            weights[own[c], column] = 1 / (own[c].size - 1)
            weights[place, column] = 0
    columns = expert_columns(evidence, z, support, weights) if support.size else {}
    parts = []
    for c in range(n_way):
        mine = {name: (values[:, c], values[:, ends[c] : ends[c + 1]]) for name, values in columns.items()}
        mine = mine if own[c].size else {}
        parts.append(_one(evidence, z, support[own[c]], support[left[c]], mine, said.get(c)))
    score, estimated, by_expert = zip(*parts, strict=True)
    # a class of ordinary nodes only beside rare ones: examples of any large class are ranked as any nodes are
    others = sum(each.members for each in estimated if not each.ordinary)
    classes = tuple(e._replace(ordinary=e.ordinary and 0 < others < RARE * evidence.n) for e in estimated)
    members = np.array([each.members for each in classes], float)
    members *= 1 if expected is None else expected / members.sum()
    return Mixture(evidence, memberships(np.stack(score, axis=1), members, support), classes, by_expert)


def _one(
    evidence: Evidence,
    z: Floats,
    support: Ints,
    left: Ints,
    columns: dict[str, tuple[Floats, Floats]],
    said: Floats | None,
) -> tuple[Floats, Estimated, dict[str, float]]:
    """One class: its score, what is expected of it, and the weights of the experts."""
    n, estimated = evidence.n, Estimated(min(FEW, evidence.n / 4), False)
    tails: dict[str, Floats] = {name: surprise(values) for name, (values, _) in columns.items()}
    ranks = {name: left_out_ranks(values, support, left) for name, (_, values) in columns.items()}
    lead = prior_lead(evidence) | {"sentence": SENTENCE}
    if said is not None:  # rare words cannot be lost: the embedding only adds what is like nodes that have them
        words = np.asarray(evidence.words @ said).astype(np.float32)
        near = evidence.diffused(words[:, None])[:, 0]
        best = np.argsort(-near, kind="stable")[:ECHO]
        relevance = [surprise(column) for column in (words, near, np.asarray(z @ (near[best] @ z[best])))]
        tails["sentence"] = np.average(relevance, axis=0, weights=RELEVANCE)
        ranks["sentence"] = left_out_ranks(np.repeat(tails["sentence"][:, None], left.size, axis=1), support, left)
        estimated = by_sentence(near)
    trust, doubt = min(1.0, left.size / SURE), min(1.0, SURE / max(1, left.size))
    power = {name: doubt * lead[name] - trust * (np.log(ranks[name]).mean() if left.size else 0) for name in tails}
    weight = {name: float(np.exp(value - max(power.values()))) for name, value in power.items()}
    weight = {name: value / sum(weight.values()) for name, value in weight.items()}
    score = np.asarray(sum(w * tails[name] for name, w in weight.items()))
    if left.size:
        each = np.sum([w * np.log(n / ranks[name]) for name, w in weight.items()], axis=0)
        others = np.sort(np.delete(score, support))
        estimated = by_examples((1 + others.size - np.searchsorted(others, each)).astype(np.float64), n)
    return score.astype(np.float32), estimated, {name: round(w, 3) for name, w in weight.items()}


def surprise(values: Floats) -> Floats:
    """-log of the share of nodes with at least that value; nodes with the same value share the mean of their ranks.

    >>> surprise(np.array([3.0, 1.0, 2.0, 1.0], np.float32)).round(2).tolist()
    [2.08, 0.29, 0.98, 0.29]
    """
    ordered, n = np.sort(values), values.size
    places = np.append(np.arange(0, n, max(1, n // SPREAD)), np.arange(max(0, n - EXACT), n))
    knots = np.unique(ordered[places])
    rank = n - (np.searchsorted(ordered, knots, "left") + np.searchsorted(ordered, knots, "right")) / 2
    return np.interp(values, knots, -np.log(rank / n)).astype(np.float32)


def left_out_ranks(values: Floats, support: Ints, left: Ints) -> Doubles:
    """Among nodes that are no examples, the rank of each example by the column that was made without it."""
    mine = values[left, np.arange(left.size)]
    above = (values > mine).sum(axis=0) - (values[support] > mine).sum(axis=0)
    same = (values == mine).sum(axis=0) - (values[support] == mine).sum(axis=0)
    return np.asarray(above + (same + 1) / 2, np.float64)


# --- how many nodes are in a class --------------------------------------------------------------------------------

ORDINARY, MANY = 1.5, 5
"""Of so many examples left out, the mean of log(n / rank) below which they are hardly nearer than any node."""
RARE = 0.06
"""The share of a network of classes beside which one of ordinary nodes has all others."""
FEW = 100
"""Nodes in a class of which nothing tells it; in a small network a quarter of all."""
LEVEL, BY_RANK = 2.95, 0.53
"""log(size of a class) by the mean log rank of its examples, each left out: of other networks, drawn to small."""
SAID_LEVEL, SAID_BY_COUNT = 2.4, 0.55
"""log(size) by how many nodes are at least half as relevant to a sentence as the tenth best."""
KNOWN = 0.7
"""P(an example is in its class), left out, on average."""
CAP, STEEP = 0.9, 1.8
"""P(member) of the first, and how fast it falls with the logarithm of the rank."""


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
    return Estimated(float(min(np.exp(SAID_LEVEL + SAID_BY_COUNT * np.log1p(count)), relevance.size / 2)), True)


def memberships(score: Floats, members: Doubles, given: Ints) -> Doubles:
    """P(a node is in a class), a column each, if so many nodes are in it; those that are `given` count nowhere.

    P = CAP / (1 + (rank / half)^STEEP), which sums to the members: ∫ 1 / (1 + r^s) dr = (π/s) / sin(π/s).
    """
    score = score.copy()
    score[given] = -np.inf
    rank = np.empty(score.shape)
    np.put_along_axis(rank, np.argsort(-score, axis=0, kind="stable"), np.arange(1.0, len(score) + 1)[:, None], axis=0)
    half = members * np.sin(np.pi / STEEP) * STEEP / (np.pi * CAP)
    return np.asarray(CAP / (1 + (rank / half) ** STEEP))
