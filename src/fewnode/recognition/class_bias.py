"""Answers changed by a bias per class on their log-probabilities: chosen, or so that classes have known shares."""

from __future__ import annotations

import math
import numbers
from collections.abc import Hashable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from fewnode.errors import FewnodeError, closest
from fewnode.vectors import Probabilities

STEPS, CLOSE = 2_000, 1e-6
"""Of `in_proportion`: rounds at most, and how far shares may be from those asked for."""
LEAST = 1e-30
"""A probability of 0 that was rounded: such a class is unlikely, not impossible."""
Floats = NDArray[np.float64]


def biased(probability: Probabilities, bias: Floats) -> Probabilities:
    """The answers with a bias added to the log-probability of each class; rows sum to 1 again.

    >>> biased(np.array([[0.5, 0.5]], np.float32), np.log([3.0, 1.0])).round(2).tolist()
    [[0.75, 0.25]]
    """
    score = np.log(np.maximum(probability, LEAST, dtype=np.float64)) + bias
    weight = np.exp(score - score.max(axis=1, keepdims=True))
    found: Probabilities = (weight / weight.sum(axis=1, keepdims=True)).astype(probability.dtype)
    return found


def in_proportion(probability: Floats, shares: Floats, weight: Floats) -> Floats:
    """The answers with the bias per class that gives classes these shares on average, rows counting by their weight.

    Iterative scaling (Sinkhorn, 1967) finds that bias, which is unique up to a constant: log-odds of two classes
    change by the same for every row, so nodes that looked alike still do.

    >>> in_proportion(np.array([[0.5, 0.5], [0.5, 0.5]]), np.array([0.75, 0.25]), np.ones(2)).round(2).tolist()
    [[0.75, 0.25], [0.75, 0.25]]
    """
    p, total = np.maximum(probability, LEAST), weight.sum()
    if not total:
        return probability
    factor = np.ones(p.shape[1])
    for _ in range(STEPS):
        row = p @ factor
        found = factor * ((weight / row) @ p) / total
        if np.abs(found - shares).max() < CLOSE:
            break
        factor *= shares / np.maximum(found, 1e-300)
    scaled: Floats = p * factor
    scaled /= scaled.sum(axis=1, keepdims=True)
    return scaled


def checked_shares(classes: Sequence[Hashable], proportions: Mapping[str, float]) -> Floats:
    """The share of each class, in the order of `classes`; what cannot be shares of them is refused."""
    names = [str(name) for name in classes]
    if len(names) == 1:
        raise FewnodeError(f"proportions are those of several classes; {names[0]!r} is given alone")
    for name, share in proportions.items():
        if name not in names:
            raise FewnodeError(f"proportions: {name!r} is none of the classes{closest(str(name), names)}")
        if not isinstance(share, numbers.Real) or not math.isfinite(share) or share < 0:
            raise FewnodeError(f"proportions: the share of {name!r} is {share!r}, expected a number from 0 to 1")
    if missing := [name for name in names if name not in proportions]:
        raise FewnodeError(f"proportions: class {missing[0]!r} has no share; give one for every class, if only 0")
    shares = np.array([proportions[name] for name in names], np.float64)
    if abs(shares.sum() - 1) > 0.01:
        raise FewnodeError(f"proportions: the shares sum to {shares.sum():g}, expected 1, such as 0.3 and 0.7")
    found: Floats = shares / shares.sum()
    return found
