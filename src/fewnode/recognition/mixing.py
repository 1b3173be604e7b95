"""Experts mixed: the prior of other networks, then how the examples themselves, each left out, are ranked by each.

What an expert says becomes the surprise t = -log(share of nodes that it takes to be at least as much like the class).
So experts of any scale can be added. A class's score is Σ_e w_e t_e with w = softmax(prior_e - s · mean log rank_e).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fewnode.episodes import Task
from fewnode.evidence import Evidence
from fewnode.graph import Ints
from fewnode.recognition.calibration import LeftOut
from fewnode.recognition.classes import Given
from fewnode.recognition.experts import expert_columns, prior_lead, sentence_columns
from fewnode.recognition.linear_head import beside_attributes
from fewnode.recognition.prevalence import (
    Estimated,
    beside_rare,
    by_examples,
    by_sentence,
    judged,
    memberships,
    unknown,
)
from fewnode.vectors import Floats

Doubles = NDArray[np.float64]
MIXED_NODES = 1_000_000
"""Nodes up to which plain evidence stands beside the embedding: it is of all nodes at once, in memory."""
LEFT_OUT = 10
"""Examples of a class that are left out at most, the last ones."""
SURE = 4.0
"""So many examples weigh experts fully; one cannot be left out, so that the prior speaks."""
RELEVANCE = (0.25, 0.5, 0.25)
"""What a sentence counts by a node's own words, with its neighbours', and by what is like the best nodes."""
SENTENCE = 1.0
"""What a sentence is ahead by, where examples stand beside it: as much as the embedding."""
DOUBTED = 0.05
"""A sentence that weighs less than this among the experts disagrees with the examples."""
EXACT, SPREAD = 1000, 1000
"""Ranks that are exact, the first ones; and so many others between which ranks are interpolated."""


@dataclass(frozen=True, eq=False)
class Mixture:
    """What all experts together say of some classes, for all nodes."""

    evidence: Evidence
    own: Doubles
    """P(a node is in a class), on its own: a row a node, a column a class."""
    classes: tuple[Estimated, ...]
    weights: tuple[dict[str, float], ...]
    """Of each expert, by class."""

    def among(self, found: Floats, task: Task, left_out: LeftOut | None) -> Floats:
        """P(class) of queries that are in one of the classes, from what the embedding says of these and of examples."""
        trusted = self.trusted
        if task.described is None:
            found = beside_attributes(found, self.evidence, task.query, task.support, task.support_y, left_out)
            trusted = 1.0 if self.evidence.plain else trusted
        return np.asarray(judged(self.own[task.query], found, self.classes, trusted)[0], np.float32)

    def member(self, nodes: Ints) -> Doubles:
        """P(a node is in any of the classes)."""
        own = self.own[nodes]
        return judged(own, np.ones(own.shape, np.float32), self.classes, self.trusted)[1]

    @property
    def trusted(self) -> float:
        """The weight of the embedding."""
        return float(np.mean([weights.get("embedding", 0.0) for weights in self.weights]))

    @property
    def ordinary(self) -> NDArray[np.bool_]:
        """Which classes have all that is in no other one."""
        return np.array([each.ordinary for each in self.classes])

    def all_others(self, names: Sequence[str]) -> str:
        """The name of the first class that has all that is in no other one, if there is one."""
        return next((name for name, ordinary in zip(names, self.ordinary, strict=True) if ordinary), "")

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

    @property
    def left_out(self) -> list[float]:
        """The median rank of an example of each class that is left out; NaN where none was."""
        return [each.rank for each in self.classes]


def mixture(evidence: Evidence, z: Floats, given: Given, expected: float | None = None) -> Mixture:
    """`z` has rows of length 1; `expected`: how many nodes are in the classes, if that is known."""
    support, y, n_way = given.support, given.y, len(given.names)
    said = {} if given.described is None else evidence.sentences(given.described.x, given.described.y)
    own = [np.flatnonzero(y == c) for c in range(n_way)]
    left = [places[-LEFT_OUT:] if places.size > 1 else places[:0] for places in own]
    weights = np.zeros((support.size, n_way + sum(places.size for places in left)))
    first = n_way
    for c in range(n_way):
        weights[own[c], c] = 1 / max(1, own[c].size)
        for place in left[c]:
            weights[own[c], first] = 1 / (own[c].size - 1)
            weights[place, first] = 0
            first += 1
    columns = expert_columns(evidence, z, support, weights.astype(np.float32)) if support.size else {}
    ends = np.cumsum([n_way, *(places.size for places in left)])
    parts = []
    for c in range(n_way):
        mine = {name: (values[:, c], values[:, ends[c] : ends[c + 1]]) for name, values in columns.items()}
        mine = mine if own[c].size else {}
        parts.append(_one(evidence, z, support[own[c]], support[left[c]], mine, said.get(c)))
    score, estimated, found = zip(*parts, strict=True)
    classes = beside_rare(estimated, evidence.n)
    members = np.array([each.members for each in classes], float)
    members *= 1 if expected is None else expected / members.sum()
    return Mixture(evidence, memberships(np.stack(score, axis=1), members.tolist(), support), classes, found)


def _one(
    evidence: Evidence,
    z: Floats,
    support: Ints,
    left: Ints,
    columns: dict[str, tuple[Floats, Floats]],
    said: Floats | None,
) -> tuple[Floats, Estimated, dict[str, float]]:
    """One class: its score, what is expected of it, and the weights of the experts."""
    tails: dict[str, Floats] = {name: surprise(values) for name, (values, _) in columns.items()}
    ranks = {name: left_out_ranks(values, support, left) for name, (_, values) in columns.items()}
    lead = {name: value for name, value in prior_lead(evidence).items() if name in columns}
    if said is not None:
        relevance = sentence_columns(evidence, z, said)
        tails["sentence"] = np.average([surprise(column) for column in relevance], axis=0, weights=RELEVANCE)
        ranks["sentence"] = left_out_ranks(np.repeat(tails["sentence"][:, None], left.size, axis=1), support, left)
        lead["sentence"] = SENTENCE
    trust = min(1.0, left.size / SURE)
    names = list(tails)
    doubt = min(1.0, SURE / max(1, left.size))
    power = [doubt * lead[name] - trust * (np.log(ranks[name]).mean() if left.size else 0) for name in names]
    weight = np.exp(np.array(power) - max(power))
    weight /= weight.sum()
    score = sum(w * tails[name] for w, name in zip(weight.tolist(), names, strict=True))
    n = evidence.n
    if left.size:
        each = sum(w * np.log(n / ranks[name]) for w, name in zip(weight.tolist(), names, strict=True))
        others = np.sort(np.delete(score, support))
        rank = 1 + others.size - np.searchsorted(others, each)
        told = by_examples(rank, n)
    else:
        told = unknown(n) if said is None else by_sentence(relevance[1])
    return np.asarray(score, np.float32), told, dict(zip(names, weight.round(3).tolist(), strict=True))


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
