"""A linear head on plain numbers beside z: where attributes are few numbers, z knows little of their size.

Both are averaged over models, p = Σ_m P(m) softmax(a_m log p_z + b_m s), s the scores of ridge regression on numbers:
P(m) is what other networks taught, times the likelihood of the labelled nodes, each left out.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from fewnode.graph import Ints
from fewnode.recognition.calibration import LeftOut
from fewnode.recognition.prototypes import class_weights, left_out, log_softmax, ridge_prototypes, softmax
from fewnode.vectors import Floats, Probabilities

LENGTH = np.float32(2.5)
"""Of a node's numbers, of which the ridge is 1."""
MATTERS = 0.2
"""P(numbers say more than z does), before a labelled node is left out: chosen on generated networks of blocks."""
MODELS = np.array([(1.0, 0.0), *product((0.0, 0.3, 1.0), (1.0, 2.0, 5.0))], np.float32)
"""a and b: z alone, then numbers with none, some and all of z, less sure and surer."""
PRIOR = np.log(np.array([1 - MATTERS, *np.full(len(MODELS) - 1, MATTERS / (len(MODELS) - 1))]))
RARE, LEAST = 1e-3, 1e-9
"""P(m) below which a model is left out, and a probability below which none is."""


def beside_numbers(
    alone: Probabilities, query: Floats, support: Floats, y: Ints, judged: LeftOut | None
) -> Probabilities:
    """P(class) of queries from what z says of them `alone` and from unit rows of numbers.

    `judged`: what z says of each labelled node from all others, without those that are alone in their class.
    """
    label = np.eye(alone.shape[1], dtype=np.float32)[y]
    weight, rows = class_weights(label), LENGTH * support
    score, power = LENGTH * (query @ ridge_prototypes(rows, label, weight)), PRIOR.copy()
    if judged is not None:
        some = label.sum(axis=0)[y] > 1
        log_z, by_numbers = np.log(np.maximum(judged.probability, LEAST)), left_out(rows, label, weight)[some]
        likely = log_softmax(MODELS[:, :1, None] * log_z + MODELS[:, 1:, None] * by_numbers)
        power += likely[:, np.arange(judged.y.size), judged.y].sum(axis=1)
    worth = softmax(power)
    worth = np.where(worth < RARE, 0, worth) / worth[worth >= RARE].sum()
    log_z = np.log(np.maximum(alone, LEAST))
    found = sum(w * softmax(a * log_z + b * score) for w, (a, b) in zip(worth.tolist(), MODELS, strict=True) if w)
    return np.asarray(found, np.float32)
