"""What to ask next so that somebody finds all members of a class: nodes about which the answer is in doubt.

The list of highest probability asks what is known already. A node at the threshold decides whether all that is like it
is claimed. Of such nodes those are asked about that are least like what was answered before.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from fewnode.dataset import Dataset
from fewnode.errors import FewnodeError
from fewnode.estimator import Estimator
from fewnode.graph import Attributes, Ints
from fewnode.model.recogniser import NO_DESCRIPTIONS, NO_REJECTED, Recogniser
from fewnode.nodes import Labels, Network, Nodes, as_dataset, node_rows
from fewnode.predict.labelling import may_have_class
from fewnode.predict.suggestions import Suggestion, Suggestions

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
    rows = _unit(z[some])
    like = (rows @ _unit(answered).T).max(axis=1, initial=-1.0)
    picked: list[int] = []
    for _ in range(min(count, some.size)):
        best = int(like.argmin())
        picked.append(best)
        like = np.maximum(like, rows @ rows[best])
        like[picked] = np.inf
    return np.asarray(some[picked], np.int64)


def _unit(z: NDArray[np.float32]) -> NDArray[np.float32]:
    found: NDArray[np.float32] = z / np.maximum(np.linalg.norm(z, axis=1, keepdims=True), 1e-12)
    return found


def ask_next(
    recogniser: Recogniser, label: Hashable, pool: Ints, count: int = 1, threshold: float = 0.5
) -> tuple[Ints, NDArray[np.float64]]:
    """Which of the nodes to ask about whether they are in that class; and P(it is in it) of each.

    What was answered about, with yes or with no, is left out.
    """
    if not recogniser.embeds:
        raise FewnodeError(f"{recogniser.fitted.name} has no embedding to choose nodes by; use gpn-plus")
    place = recogniser.classes.index(label)
    no = recogniser.rejected.get(place, np.zeros(0, np.int64))
    answered = np.concatenate([recogniser.support, no])
    pool = pool[~np.isin(pool, answered)]
    probability = recogniser.judge(np.arange(recogniser.graph.n))[0][pool, place]
    doubt = np.argsort(np.abs(probability - threshold), kind="stable")[: 10 * max(DOUBTED, count)]
    places = in_doubt(
        probability[doubt], recogniser.embedding(pool[doubt]), recogniser.embedding(answered), count, threshold
    )
    return pool[doubt[places]], probability[doubt[places]]


def find(
    model: Estimator,
    data: Network,
    support: Nodes,
    support_y: Labels,
    count: int = 10,
    among: Nodes | None = None,
    rejected: Mapping[Hashable, Nodes] = NO_REJECTED,
    described: Mapping[Hashable, Attributes] = NO_DESCRIPTIONS,
) -> Suggestions:
    """Nodes to ask about so that all members of the classes are found, a class after the other in turn.

    `rejected`: for some classes, nodes that are not in them.
    """
    network: Dataset = as_dataset(data)
    recogniser = model.recogniser(network, support, support_y, described, rejected=rejected)
    if recogniser.cannot_tell:
        raise FewnodeError(f"what is in none of the classes cannot be told: {recogniser.cannot_tell}")
    everyone = np.flatnonzero(may_have_class(network, recogniser.support))
    pool = everyone if among is None else np.unique(node_rows(network, among, "among"))
    shares = _shares(count, len(recogniser.classes))
    found: dict[int, Hashable] = {}
    for name, share in zip(recogniser.classes, shares, strict=True):
        nodes, _ = ask_next(recogniser, name, pool[~np.isin(pool, list(found))], share)
        found |= dict.fromkeys(nodes.tolist(), name)
    if not found:
        raise FewnodeError("there is no node left to suggest; name those to choose among (--query)")
    probabilities, member = recogniser.judge(list(found))
    places = [recogniser.classes.index(name) for name in found.values()]
    any_class = [None] * len(found) if member is None else member.tolist()
    own = probabilities[np.arange(len(places)), places].tolist()
    rows = zip(found, found.values(), own, any_class, [0.0] * len(found), strict=True)
    return Suggestions([Suggestion(*row) for row in rows], [network.node_name(node) for node in found])


def _shares(count: int, classes: int) -> Sequence[int]:
    """How many questions each class gets."""
    return [len(range(place, count, classes)) for place in range(classes)]
