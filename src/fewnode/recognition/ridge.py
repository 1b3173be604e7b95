"""Prototypes by ridge regression: what several support nodes agree on counts once, what tells classes apart most."""

from __future__ import annotations

import numpy as np

from fewnode.recognition.nearness import log_softmax
from fewnode.vectors import Floats

RIDGE, SCALE = np.float32(1.0), np.float32(15.0)
"""Regularisation of the prototypes, and what their scores are multiplied by before the softmax."""


@np.errstate(invalid="ignore", divide="ignore")
def class_weights(counted: Floats) -> Floats:
    """A weight for each node, so that classes count the same; all 1 with equal shots.

    Row i is what node i counts in each class: a labelled one 1 in its own.
    """
    mass = counted.sum(axis=-2, keepdims=True)
    return np.asarray((counted / mass).sum(axis=-1) * mass.mean(axis=-1))


def ridge_weights(z: Floats, label: Floats, weight: Floats) -> Floats:
    """α of ridge regression in its dual form: prototypes are zᵀ α. Of several tasks, or of one."""
    target = label - np.float32(1 / label.shape[-1])
    if z.shape[-2] > z.shape[-1]:  # by the normal equations of the primal form: a system of d, not of k
        return np.asarray(weight[..., None] / RIDGE * (target - z @ ridge_prototypes(z, label, weight)))
    root = np.sqrt(weight)[..., None]
    rows = root * z
    return np.asarray(root * _solved(rows @ rows.swapaxes(-1, -2), root * target))


def ridge_prototypes(z: Floats, label: Floats, weight: Floats) -> Floats:
    """p that minimise Σ_i weight_i |z_i p - (label_i - 1/N)|² + |p|²; label_i are probabilities. Shape d x N."""
    if z.shape[-2] <= z.shape[-1]:
        return np.asarray(z.swapaxes(-1, -2) @ ridge_weights(z, label, weight))
    root = np.sqrt(weight)[..., None]
    rows, target = root * z, root * (label - np.float32(1 / label.shape[-1]))
    return _solved(rows.swapaxes(-1, -2) @ rows, rows.swapaxes(-1, -2) @ target)


def _solved(products: Floats, target: Floats) -> Floats:
    """(products + RIDGE I)^-1 target. Not a number where there is none: an answer must not look like one."""
    system = products + RIDGE * np.eye(products.shape[-1], dtype=np.float32)
    try:
        right = np.broadcast_to(target, (*system.shape[:-1], target.shape[-1]))
        return np.asarray(np.linalg.solve(system, right), np.float32)
    except np.linalg.LinAlgError:
        return np.full((*system.shape[:-1], target.shape[-1]), np.nan, np.float32)


SHARES = (0.0, 0.15, 0.3, 0.5, 0.7, 1.0)
"""Of the structure in z, of which leave-one-out chooses."""
DOUBT = 6.0
"""How much less likely the labels must be for each share of the structure, in nats: attributes mostly say more."""


def share_factors(share: float, expected: float, width: int, own: int) -> Floats:
    """What the columns of z are multiplied by, so that the structure has that share of it, not the `expected` one.

    The first `own` of `width` columns are what the attributes say.
    """
    first, second = ((1 - share) / (1 - expected)) ** 0.5, (share / expected) ** 0.5
    return np.repeat(np.array([first, second], np.float32), [own, width - own])


def chosen_factors(z: Floats, label: Floats, expected: float, own: int) -> Floats:
    """The factors of the share of the structure that predicts each labelled node best from all others.

    Nodes alone in their class cannot be predicted so. If all are, the share is the `expected` one.
    """
    judged = (label @ label.sum(axis=0)) > 1
    plain = np.ones(z.shape[1], np.float32)
    if not 0 < expected < 1 or not judged.any():
        return plain
    weight, target = class_weights(label), label.argmax(axis=1)
    best, found = -np.inf, plain
    for share in SHARES:
        factors = share_factors(share, expected, z.shape[1], own)
        log_prob = log_softmax(SCALE * left_out(z * factors, label, weight))
        likely = float(log_prob[np.arange(len(z)), target][judged].sum()) - DOUBT * share
        if likely > best:
            best, found = likely, factors
    return found


def left_out(z: Floats, label: Floats, weight: Floats) -> Floats:
    """The score of each labelled node by ridge regression on all others: (H y - h y) / (1 - h), h the diagonal of H."""
    root, target = np.sqrt(weight)[:, None], label - np.float32(1 / label.shape[1])
    rows = root * z
    gram = rows @ rows.T
    hat = gram @ np.linalg.inv(gram + RIDGE * np.eye(len(z), dtype=np.float32))
    own = hat.diagonal()[:, None]
    return np.asarray((hat @ (root * target) / root - own * target) / np.maximum(1 - own, np.float32(1e-6)))
