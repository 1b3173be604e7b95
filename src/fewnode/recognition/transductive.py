"""The transductive mode: unlabelled nodes that are asked about together help each other."""

from __future__ import annotations

import numpy as np

from fewnode.recognition.membership import MembershipModel
from fewnode.recognition.nearness import nearness, softmax
from fewnode.recognition.ridge import SCALE, class_weights, ridge_prototypes
from fewnode.vectors import Floats, unit_rows

STEPS, IMAGINED, LEAST = 5, 10.0, 1 / 3
"""Of `rectify`: how often it looks again, the queries it imagines in every class before it has seen any, and the share
of them that must seem to be in the classes."""


def rectify(
    z: Floats,
    beta: Floats,
    label: Floats,
    query: Floats,
    distance: str,
    membership: MembershipModel | None = None,
    crowd: Floats | None = None,
) -> Floats:
    """What each query counts in each class, where unlabelled nodes move the prototypes and tell how common a class is.

    Expectation-maximisation. A query counts in class c with its probability of being in it, times that of being in
    any of them if `membership` can tell. Proportions of classes are estimated too: without them, a class with few
    queries would be drawn into its neighbour. Nothing counts at all if most queries seem to be in none of them: so many
    strangers would move a prototype further than its own nodes do. It is all of one task, or of several with the same
    labels.
    """
    shots, n_way = label.sum(axis=0), label.shape[1]
    base = (label * (beta * (label @ shots))[:, None]).T @ z
    p, log_share = base / shots[:, None], np.zeros(n_way, np.float32)
    familiar = familiarity(query, p, shots, distance, membership, crowd)
    for _ in range(STEPS):
        share = softmax(nearness(query, p, distance) + log_share) * familiar
        mass = share.sum(axis=-2)
        p = (base + share.swapaxes(-1, -2) @ query) / (shots + mass)[..., None]
        log_share = np.log((mass + IMAGINED) / (mass.sum(axis=-1, keepdims=True) + n_way * IMAGINED))[..., None, :]
    return share


def familiarity(
    query: Floats, p: Floats, shots: Floats, distance: str, membership: MembershipModel | None, crowd: Floats | None
) -> Floats:
    """What a query counts for being in any of the classes, 1 if nobody can tell; 0 if most of its task are in none.

    It is the root of the probability. Membership is learned to tell rare members from the nearest of many strangers;
    a query that is asked about because it may be a member is left out too easily by that.
    """
    if membership is None:
        return np.ones((*query.shape[:-1], 1), np.float32)
    familiar = membership.among(nearness(query, p, distance), shots, crowd)[..., None]
    kept = np.sqrt(familiar) * (familiar.mean(axis=-2, keepdims=True) >= LEAST)
    return np.asarray(kept, np.float32)


QUERY_WEIGHT, MEAN_WEIGHT, ROUNDS = np.float32(0.1), 5.0, 3
"""Of ridge regression: what an unlabelled node and a class mean weigh, where a labelled node weighs 1; turns."""


def rectified_prototypes(z: Floats, label: Floats, query: Floats, share: Floats, rounds: int = ROUNDS) -> Floats:
    """Prototypes that unlabelled nodes have moved; `share` is what each counts in each class to begin with.

    In turns: ridge regression on labelled nodes, on unlabelled ones as what they seem to be, and on the means of the
    classes over both; and what unlabelled ones seem to be by its prototypes. Classes count the same, however many nodes
    seem to be in them: else the tail of a long-tailed batch would be drawn to its head.
    """
    n_way, familiar, tasks = label.shape[1], share.sum(axis=-1, keepdims=True), share.shape[:-2]
    given = np.broadcast_to(label, (*tasks, *label.shape))
    means = np.broadcast_to(np.eye(n_way, dtype=np.float32), (*tasks, n_way, n_way))
    for _ in range(rounds):
        counted = np.concatenate([given, QUERY_WEIGHT * share], axis=-2)
        mean = unit_rows(label.T @ z + share.swapaxes(-1, -2) @ query)
        target = counted / np.maximum(np.abs(counted).sum(axis=-1, keepdims=True), np.float32(1e-12))
        p = ridge_prototypes(
            np.concatenate([np.broadcast_to(z, (*tasks, *z.shape[-2:])), query, mean], axis=-2),
            np.concatenate([target, means], axis=-2),
            np.concatenate([class_weights(counted), np.full((*tasks, n_way), MEAN_WEIGHT, np.float32)], axis=-1),
        )
        share = familiar * softmax(SCALE * (query @ p))
    return p
