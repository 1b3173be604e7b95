"""Several classes a node: every class is a question of its own, with a probability of its own.

P(a node is in c) has two factors. The first is that it looks like the members of c and not like any node of the
network: `MembershipModel` for c alone. The second is that it looks like them rather than like nodes that are given for
other classes and not for c. A node that is in c and in d is an example of both, and speaks against neither.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fewnode.episodes import Described, Task
from fewnode.graph import Ints
from fewnode.recognition.calibration import Doubles
from fewnode.recognition.classes import Given
from fewnode.recognition.space import Space
from fewnode.vectors import SAMPLE, drawn

AGAINST = 200
"""Labelled nodes that speak against a class at most: more only take time."""


def each_on_its_own(space: Space, given: Given, asked: Ints, shares: Sequence[float]) -> Doubles:
    """P(a node is in a class), a column each, whatever was rejected; `shares` of the network are in each."""
    found, rows, prepared = rather(space, given, asked), space.look(asked), space.prepare(given.task(asked))
    near, crowd = space.near(prepared, rows), space.crowd(rows)
    for c, share in enumerate(shares):
        found[:, c] *= space.knows.probability(near[:, [c]], prepared.given.shots[[c]], crowd, share)
    return found


def claimed_from(probabilities: Doubles) -> tuple[float, ...]:
    """By class, the probability from which on its nodes are claimed: there the F1 that is expected is highest.

    Where classes are hard to tell apart, few nodes are as likely as not in one: at 1/2 hardly any would be claimed.

    >>> claimed_from(np.array([[0.9, 0.4], [0.8, 0.3], [0.1, 0.0]]))
    (0.8, 0.3)
    """
    ordered = -np.sort(-probabilities, axis=0) if len(probabilities) else np.full((1, probabilities.shape[1]), 0.5)
    expected = ordered.cumsum(axis=0) / (np.arange(1, len(ordered) + 1)[:, None] + ordered.sum(axis=0))
    return tuple(ordered[expected.argmax(axis=0), np.arange(ordered.shape[1])].tolist())


def class_shares(space: Space, given: Given, population: Ints, known: float | None = None) -> list[float]:
    """What share of a population is in each class. `known`: that of a class whose members are known."""
    some, ways = population[drawn(population.size, SAMPLE)], range(len(given.names))
    if not some.size:
        return [0.5 for _ in ways]
    rows, prepared = space.look(some), space.prepare(given.task(some))
    near, crowd, against = space.near(prepared, rows), space.crowd(rows), rather(space, given, some)
    return [space.knows.share(near[:, [c]], prepared.given.shots[[c]], crowd, against[:, c], known) for c in ways]


def shares_of_support(given: Given) -> list[float]:
    """What share of the labelled nodes is in each class: for nodes that are drawn as these were."""
    share = np.bincount(given.y, minlength=len(given.names)) / np.unique(given.support).size
    return [float(part) for part in share.clip(0.01, 0.95)]


def rather(space: Space, given: Given, asked: Ints) -> Doubles:
    """P(a node is in a class rather than like nodes given for others alone), a column each; 1 where there are none."""
    found = np.ones((asked.size, len(given.names)))
    for c in range(len(given.names)) if asked.size else ():
        own = given.support[given.y == c]
        others = np.setdiff1d(given.support, own)
        if others.size:
            others, said = others[:: -(-others.size // AGAINST)], None
            if given.described is not None and c in given.described.y:
                said = Described(given.described.x[given.described.y == c], np.zeros(1, np.int64))
            label = np.repeat([0, 1], [own.size, others.size])
            found[:, c] = space.predict(Task(np.concatenate([own, others]), label, asked, said))[:, 0]
    return found
