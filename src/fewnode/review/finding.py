"""What to ask next so that somebody finds all members of a class: nodes about which the answer is in doubt.

The list of highest probability asks what is known already. A node at the threshold decides whether all that is like it
is claimed. Of such nodes those are asked about that are least like what was answered before.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fewnode.errors import FewnodeError
from fewnode.graph import Ints
from fewnode.recognition.population import may_have_class
from fewnode.recognition.question import Question
from fewnode.review.suggestions import Suggestion, Suggestions
from fewnode.vectors import unit_rows

DOUBTED = 60
"""Nodes nearest to the threshold, of which some are asked about."""
LEAST = 1e-6


def in_doubt(
    probability: NDArray[np.float64],
    z: NDArray[np.float32],
    answered: NDArray[np.float32],
    count: int,
    threshold: float = 0.5,
    doubted: int = DOUBTED,
) -> Ints:
    """The places of so many nodes to ask about: near the threshold, and unlike each other and all that was answered.

    >>> z = np.array([[1, 0], [1, 0.1], [0, 1]], np.float32)
    >>> in_doubt(np.array([0.5, 0.5, 0.45]), z, z[:1], 2).tolist()
    [2, 1]
    """
    p = probability.clip(LEAST, 1 - LEAST)
    middle = min(max(threshold, LEAST), 1 - LEAST)
    away = np.abs(np.log(p / (1 - p)) - np.log(middle / (1 - middle)))
    some = np.argsort(away, kind="stable")[: max(doubted, count)]
    rows = unit_rows(z[some])
    like = (rows @ unit_rows(answered).T).max(axis=1, initial=-1.0)
    picked: list[int] = []
    for _ in range(min(count, some.size)):
        best = int(like.argmin())
        picked.append(best)
        like = np.maximum(like, rows @ rows[best])
        like[picked] = np.inf
    return np.asarray(some[picked], np.int64)


def ask_next(
    question: Question, label: str, pool: Ints, count: int = 1, threshold: float = 0.5
) -> tuple[Ints, NDArray[np.float64]]:
    """Which of the nodes to ask about whether they are in that class; and P(it is in it) of each.

    What was answered about, with yes or with no, is left out.
    """
    space, place = question.embedded, question.classes.index(label)
    answered = np.concatenate([question.given.support, question.given.no.get(place, np.zeros(0, np.int64))])
    pool = pool[~np.isin(pool, answered)]
    probability = question.probabilities(np.arange(space.embedding.n))[0][pool, place]
    doubt = np.argsort(np.abs(probability - threshold), kind="stable")[: 10 * max(DOUBTED, count)]
    z, known = space.look(pool[doubt]).z, space.look(answered).z
    places = in_doubt(probability[doubt], z, known, count, threshold)
    return pool[doubt[places]], probability[doubt[places]]


def find(question: Question, count: int = 10, among: Ints | None = None) -> Suggestions:
    """Nodes to ask about so that all members of the classes are found, a class after the other in turn."""
    data = question.data
    if question.cannot_tell:
        raise FewnodeError(f"what is in none of the classes cannot be told: {question.cannot_tell}")
    everyone = np.flatnonzero(may_have_class(data, question.given.support))
    pool = everyone if among is None else np.unique(among)
    found: dict[int, str] = {}
    for turn, name in enumerate(question.classes):
        share = len(range(turn, count, len(question.classes)))
        nodes, _ = ask_next(question, name, pool[~np.isin(pool, list(found))], share)
        found |= dict.fromkeys(nodes.tolist(), name)
    if not found:
        raise FewnodeError("there is no node left to suggest; name those to choose among")
    probabilities, member = question.probabilities(np.array(list(found), np.int64))
    places = [question.classes.index(name) for name in found.values()]
    any_class = [None] * len(found) if member is None else member.tolist()
    own = probabilities[np.arange(len(places)), places].tolist()
    rows = zip(map(data.node_name, found), found.values(), own, any_class, strict=True)
    return Suggestions(Suggestion(*row, 0.0, "find") for row in rows)
