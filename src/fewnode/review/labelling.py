"""Which nodes to label next: those that stand for many nodes of the classes that no labelled node stands for yet.

A node far from all labelled ones teaches most, if it is in one of the classes at all. How much that "if" counts is
learned from the answers: the more of them were "none of these", the more a node has to look like a member. And a new
class is as large as known ones, and as scattered: beyond its likeliest nodes there are only strangers.
Nodes whose class is in doubt have most to gain: each counts by the root of the probability that its answer is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fewnode.dataset import Dataset
from fewnode.errors import FewnodeError
from fewnode.graph import Ints
from fewnode.recognition.classes import Given
from fewnode.recognition.population import may_have_class
from fewnode.recognition.question import Question
from fewnode.vectors import Floats, unit_rows

CANDIDATES = 1500
"""Nodes that are considered at most, drawn by how likely they are in a class: the nearest alone would all be alike."""
LARGER = 3
"""Of a new class, so many times the nodes that a known one has are looked at, at least: the likeliest."""
LOOKS = 60
"""Nodes of known classes that tell how far one has to look."""
BLOCK = 100_000
"""Nodes that are compared with them at a time: there may be millions."""
REJECTED = 200
"""Rejected nodes that others are compared with at most, the last ones: each is a column of probabilities."""
Doubles = NDArray[np.floating]


class Suggestion(NamedTuple):
    """A node to ask about: the class it is likeliest in, or is asked about, and P(it is in it), as `judge` has it.

    `member` is P(it is in any class), None where that cannot be told: then `probability` takes for granted that it is
    in one of them. `covers` is the share of the classes' nodes that it stands for. `purpose` is what the answer is for.
    """

    node: str
    label: str
    probability: float
    member: float | None
    covers: float
    purpose: str


def suggest(question: Question, count: int = 10, among: Ints | None = None) -> list[Suggestion]:
    """The nodes to label next, most worthwhile first; `among` these, or among all that are not labelled yet.

    Nodes whose class training saw count as labelled, unless a support node is one of them. Nodes that are in none of
    the classes are not suggested again, nor are nodes like them: each counts as a class of its own that needs no label.

    >>> import fewnode
    >>> y = np.repeat(range(12), 20)
    >>> data = Dataset.from_scipy(y[:, None] == y, np.eye(12)[y], y)
    >>> model = fewnode.Estimator("propagation", way=3, shot=2, steps=1).fit(data)
    >>> [s.label for s in model.ask(data, {"mail": [0], "vpn": [25]}).next(1, "learn", among=[30])]
    ['vpn']
    """
    space, data, given, n_way = question.embedded, question.data, question.given, len(question.classes)
    if count < 1:
        raise FewnodeError(f"count is {count}, expected at least 1")
    if n_way == 1 and question.cannot_tell:
        raise FewnodeError(f"there is one class alone, {question.classes[0]!r}: {question.cannot_tell}")
    no = reduce(np.intersect1d, [given.no.get(c, given.support[:0]) for c in range(n_way)])  # rejected for every class
    others = np.setdiff1d(no, given.support)[-REJECTED:]
    pool = unlabelled(data, given.support) if among is None else np.array(list(dict.fromkeys(among.tolist())), np.int64)
    pool = pool[~np.isin(pool, [*given.support, *no])]
    if pool.size == 0:
        raise FewnodeError("there is no node left to suggest; name those to choose among")
    # beside nodes in none of the classes, each a class of its own
    labelled = np.concatenate([given.support, others])
    y = np.concatenate([given.y, n_way + np.arange(others.size)])
    asked = replace(question, given=Given(tuple(range(n_way + others.size)), labelled, y, given.described))
    probability = asked.among(pool)[:, :n_way]
    share: Any = probability if asked.cannot_tell else asked.member(pool, 0.5)[:, None] * probability
    wrong = 1 - probability.max(axis=1, keepdims=True) / np.maximum(probability.sum(axis=1, keepdims=True), 1e-12)
    z, membership = space.embedding.z, space.head.membership
    expected = data.graph.n * (1 if membership is None else membership.class_share)
    counted = likeliest(share, max(count, reach(z, data, expected))) * np.sqrt(np.maximum(wrong, 1e-3))
    weight = (counted / np.maximum(counted.sum(axis=0), 1e-12)).mean(axis=1)  # classes count the same, whatever size
    kept, weight = draw(weight, CANDIDATES)
    chance = share[kept].sum(axis=1) ** (others.size / max(1, labelled.size))
    first = dict.fromkeys(int(share[kept, c].argmax()) for c in range(n_way) if c not in given.y)
    rows, known = unit_rows(space.look(pool[kept]).z), unit_rows(space.look(labelled).z)
    picked, gains = cover(rows, known, weight, chance, count, list(first))
    nodes = pool[kept[picked]]
    probabilities, member = question.probabilities(nodes)
    likely = [question.classes[c] for c in probabilities.argmax(axis=1)]
    any_class = [None] * nodes.size if member is None else member.tolist()
    names, own = map(data.node_name, nodes.tolist()), probabilities.max(axis=1).tolist()
    return [Suggestion(*row, "learn") for row in zip(names, likely, own, any_class, gains, strict=True)]


def unlabelled(data: Dataset, support: Ints) -> Ints:
    """The nodes whose class training did not see, of the kind that has classes.

    All nodes if it saw that of a support node: then the classes asked about cut across those of the dataset.
    """
    seen = data.train_mask | data.valid_mask
    return np.flatnonzero((~seen | seen[support].any()) & may_have_class(data, support))


def reach(z: Floats, data: Dataset, expected: float) -> int:
    """How many nodes to look at for a class: three times the size of a known one, or more where classes lie scattered.

    So many are nearer to a node of a known class than half of its own class are, the middle one of some such nodes.
    If no class is known, it is the `expected` size of one: whoever looked at all nodes would be asked about strangers.
    """
    members = [data.members(c) for c in data.split.train + data.split.valid]
    members = [nodes for nodes in members if nodes.size > 1]
    if not members:
        return round(expected)
    rng = np.random.default_rng(0)
    asked = [members[turn % len(members)] for turn in range(LOOKS)]
    seen = unit_rows(z[[int(rng.choice(nodes)) for nodes in asked]])
    pairs = zip(asked, seen, strict=True)
    half = np.array([np.sort(unit_rows(z[nodes]) @ one)[(nodes.size - 1) // 2] for nodes, one in pairs])
    parts = (unit_rows(z[low : low + BLOCK]) @ seen.T for low in range(0, len(z), BLOCK))
    nearer = np.sort(np.sum([(part > half).sum(axis=0) for part in parts], axis=0))
    return max(int(nearer[(LOOKS - 1) // 2]), LARGER * int(np.median([nodes.size for nodes in members])))


def likeliest(share: Floats, count: int) -> Floats:
    """What each node counts in each class, and nothing where it is not one of the class's `count` likeliest."""
    if share.shape[0] <= count:
        return share
    best = np.argpartition(-share, count - 1, axis=0)[:count]
    found = np.zeros_like(share)
    np.put_along_axis(found, best, np.take_along_axis(share, best, axis=0), axis=0)
    return found


def draw(weight: Floats, count: int) -> tuple[Ints, Doubles]:
    """The rows that have a weight, with it or, of too many, some drawn by weight, which then count the same."""
    some = np.flatnonzero(weight) if weight.any() else np.arange(weight.size)
    if some.size <= count:
        return some, weight[some]
    race = np.log(np.random.default_rng(0).random(weight.size)[some]) / weight[some]  # Efraimidis & Spirakis, 2006
    kept = np.sort(some[np.argpartition(-race, count)[:count]])  # a weight that differs a little changes little
    return kept, np.full(count, 1 / count)


def cover(
    z: Floats,
    labelled: Floats,
    weight: Doubles,
    chance: Doubles,
    count: int,
    first: Sequence[int] = (),
) -> tuple[Ints, list[float]]:
    """Greedy facility location: each node is stood for by the labelled node most like it; `first` are chosen before.

    A node adds what it improves on that, over all nodes by their weight; it is chosen by that times its chance.
    Where all chances are 1, the greedy choice is within 1 - 1/e of the best (Nemhauser et al., 1978).
    """
    like = np.maximum(z @ z.T, 0)
    covered = np.maximum((z @ labelled.T).max(axis=1, initial=0), 0)
    picked: list[int] = []
    gains: list[float] = []
    for turn in range(min(count, z.shape[0])):
        gain = weight @ np.maximum(like - covered[:, None], 0)
        worth = gain * chance
        worth[picked] = -1
        best = first[turn] if turn < len(first) else int(worth.argmax())
        picked.append(best)
        gains.append(float(gain[best]))
        covered = np.maximum(covered, like[:, best])
    return np.array(picked, np.int64), gains
