"""A linear head on plain attributes beside z: with many labels, or where attributes are few numbers, it can know more.

It reads what a node has, what its neighbours and theirs have, and how the node differs from its neighbours. Its scores
and z are averaged over models, p = Σ_m P(m) softmax(a_m log p_z + b_m s), s the scores of ridge regression: P(m) is
what is believed beforehand, times the likelihood of the labelled nodes, each left out.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from fewnode.evidence import Evidence
from fewnode.graph import Ints, is_sparse
from fewnode.recognition.calibration import LeftOut
from fewnode.recognition.prototypes import class_weights, left_out, log_softmax, ridge_prototypes, softmax
from fewnode.vectors import Floats, Probabilities

LENGTH = 1.4
"""Of a node's row in each of the four blocks, of which the ridge is 1."""
NUMBERS_MATTER, ATTRIBUTES_MATTER = 0.5, 0.2
"""P(attributes say more than z does) before a labelled node is left out: of numbers alone, and of any others."""
MODELS = np.array([(1.0, 0.0), *product((0.0, 0.3, 1.0), (2.0, 5.0, 10.0, 20.0))], np.float32)
"""a and b: z alone, then the head with none, some and all of z, less sure and surer."""
RARE, LEAST = 1e-3, 1e-9
"""P(m) below which a model is left out, and a probability below which none is."""


def beside_attributes(
    alone: Probabilities, evidence: Evidence, query: Ints, support: Ints, y: Ints, judged: LeftOut | None
) -> Probabilities:
    """P(class) of queries from what z says of them `alone` and from attributes.

    `judged`: what z says of each labelled node from all others, without those that are alone in their class.
    """
    if judged is None and not evidence.plain:
        return alone  # nothing tells what attributes are worth here
    label = np.eye(alone.shape[1], dtype=np.float32)[y]
    weight, blocks = class_weights(label), support_blocks(evidence, support)
    scale = [LENGTH / max(1e-6, float(np.sqrt(np.square(block).sum(axis=1).mean()))) for block in blocks]
    rows = np.concatenate([by * block for by, block in zip(scale, blocks, strict=True)], axis=1, dtype=np.float32)
    matters = NUMBERS_MATTER if evidence.plain else ATTRIBUTES_MATTER
    power = np.log(np.array([1 - matters, *np.full(len(MODELS) - 1, matters / (len(MODELS) - 1))]))
    if judged is not None:
        some = label.sum(axis=0)[y] > 1
        log_z, by_head = np.log(np.maximum(judged.probability, LEAST)), left_out(rows, label, weight)[some]
        likely = log_softmax(MODELS[:, :1, None] * log_z + MODELS[:, 1:, None] * by_head)
        power += likely[:, np.arange(judged.y.size), judged.y].sum(axis=1)
    worth = softmax(power)
    worth = np.where(worth < RARE, 0, worth) / worth[worth >= RARE].sum()
    if worth[0] == 1:
        return alone
    prototypes = np.split(ridge_prototypes(rows, label, weight), len(blocks))
    score = scores(evidence, [by * part for by, part in zip(scale, prototypes, strict=True)])[query]
    log_z = np.log(np.maximum(alone, LEAST))
    mixed = sum(w * softmax(a * log_z + b * score) for w, (a, b) in zip(worth.tolist(), MODELS, strict=True) if w)
    return np.asarray(mixed, np.float32)


def support_blocks(evidence: Evidence, support: Ints) -> tuple[Floats, ...]:
    """What labelled nodes have, their neighbours, the neighbours of these, and how the first two differ."""
    near = evidence.walk[support]
    own, first, second = (
        np.concatenate([np.asarray(x.todense() if is_sparse(x) else x, np.float32) for x in parts], axis=1)
        for parts in zip(*((x[support], near @ x, near @ evidence.walk @ x) for x in evidence.attributes), strict=True)
    )
    return own, first, second, own - first


def scores(evidence: Evidence, prototypes: list[Floats]) -> Floats:
    """Of all nodes, by a prototype a class of each block. Neighbours are looked at class by class, not by attribute."""
    ends = np.cumsum([x.shape[1] for x in evidence.attributes])[:-1]

    def products(prototype: Floats) -> Floats:
        parts = zip(evidence.attributes, np.split(prototype, ends), strict=True)
        return np.asarray(sum(x @ part for x, part in parts), np.float32)

    own, first, second, differing = prototypes
    near = products(first - differing) + evidence.walk @ products(second)
    return np.asarray(products(own + differing) + evidence.walk @ near)
