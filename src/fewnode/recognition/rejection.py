"""What rejected nodes teach: a direction of z for each class, along which nodes become more or less likely in it.

P(c | v) ∝ P₀(c | v) · exp(f_c(v)) with f_c(v) = w_c · z_v / |z_v|. P₀ are the answers without any rejection, "none of
these" among them, for which f is 0. w_c is the most likely one if its entries are drawn from a normal distribution
beforehand: logistic regression with log-odds of P₀ as an offset, on the nodes of the class, on those rejected for
it, and on some of all nodes, of which P₀ is taken to be right. So a rejection that was expected teaches nothing, and
one that was not takes down all that is like it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fewnode.graph import Ints
from fewnode.recognition.calibration import Doubles, log_odds, sigmoid
from fewnode.recognition.mixing import KNOWN
from fewnode.recognition.prototypes import nearness, products
from fewnode.recognition.space import Prepared, Rows
from fewnode.vectors import Floats, Probabilities, unit_rows

if TYPE_CHECKING:
    from fewnode.recognition.question import Question

VARIANCE = 4.0
"""The variance of each entry of w, before an answer is known."""
BACKGROUND = 300
"""Nodes of which P₀ is taken to be right, so that a few answers do not change what they say nothing about."""
STEPS, CLOSE = 30, 1e-6
LEAST = 1e-6
"""Log-odds are those of probabilities between this and 1 minus this."""
IMPOSSIBLE = -40.0
"""What a class's log-odds lose at a node that was rejected for it."""


def shift(question: Question, rows: Ints) -> Doubles:
    """What rejected nodes add to the log-odds of each class, a column each.

    The direction of a class is kept: what is rejected for another one does not change it.
    """
    space, found = question.embedded, np.zeros((rows.size, len(question.given.names)), order="F")
    looked = space.look(rows)
    for c, no in question.given.no.items():
        key = ("direction", *question.key, c, no.tobytes())
        direction = space.kept(key, lambda c=c, no=no: _direction(question, c, no))  # type: ignore[misc]
        found[:, c] = products(looked.z, direction[:, None])[:, 0] / space.lengths(looked)
        found[np.isin(rows, no), c] = IMPOSSIBLE
    return found


def _direction(question: Question, c: int, no: Ints) -> Floats:
    """Along which nodes become more likely in that class."""
    space, given = question.embedded, question.given
    some = space.stand_for_all(BACKGROUND)
    usual = space.kept(("usual", *question.key), lambda: _prior(question, some))[:, c]
    yes, rejected = space.look(given.support[given.y == c]), space.look(no)
    near = left_out_nearness(question.prepared, c, space.head.distance)
    prior = np.concatenate([_prior(question, yes, near)[:, c], _prior(question, rejected)[:, c], usual])
    target = np.concatenate([np.ones(yes.nodes.size), np.zeros(no.size), usual])
    return learned_direction(np.concatenate([yes.z, rejected.z, some.z]), prior, target)


def _prior(question: Question, rows: Rows, near: Floats | None = None) -> Doubles:
    """P₀, a column a class; `near`: how near the nodes are to prototypes that were made without them."""
    found, space = question.alone(rows).astype(np.float64), question.embedded
    if question.cannot_tell:
        return found
    if near is None:
        member: Floats | Doubles | None = question.is_in_any(rows)
    elif question.mixed is not None:
        member = np.full(rows.nodes.size, KNOWN)
    else:
        member = space.knows.probability(near, question.prepared.given.shots, space.crowd(rows), question.share)
    return np.asarray(found * np.asarray(member)[:, None])


def learned_direction(z: Floats, prior: Doubles, target: Doubles) -> Floats:
    """w that maximises Σ_i log P(target_i | σ(logit prior_i + w · z_i)) - |w|² / 2 VARIANCE, by Newton's method.

    In its dual form, w = Σ_i a_i z_i: a system of k equations. `prior` and `target` are probabilities.

    >>> learned_direction(np.eye(2), np.full(2, 0.5), np.array([1.0, 0.0])).round(2).tolist()
    [1.13, -1.13]
    """
    from scipy.linalg import cho_factor, cho_solve  # many a process never sees a rejection

    rows, offset = unit_rows(z.astype(np.float64)), log_odds(prior, LEAST)
    gram, a = VARIANCE * rows @ rows.T, np.zeros(len(rows))
    for _ in range(STEPS):
        f = gram @ a
        p = sigmoid(offset + f)
        weight = np.maximum(p * (1 - p), 1e-12)
        wanted, root = weight * f + target - p, np.sqrt(weight)
        system = root[:, None] * gram * root + np.eye(len(rows))
        factor = cho_factor(system, overwrite_a=True, check_finite=False)
        before, a = a, wanted - root * cho_solve(factor, root * (gram @ wanted), check_finite=False)
        if np.abs(a - before).max() < CLOSE:
            break
    return np.asarray(VARIANCE * rows.T @ a, np.float32)


def left_out_nearness(prepared: Prepared, c: int, distance: str) -> Floats:
    """How near each labelled node of class c is to the means, where that of its own class is made without it.

    The only node of a class is not left out: no node is as near to a description as to nodes.
    """
    given, p = prepared.given, prepared.means
    own = given.y == c
    share, z = (given.count[own] / given.count[own].sum())[:, None], given.z[own]
    near = nearness(z, p, distance)
    if prepared.given.shots[c] > 1:
        others = (p[c] - share * z) / np.maximum(1 - share, np.float32(1e-6))
        near[:, c] = nearness(z[:, None], others[:, None], distance)[:, 0, 0]
    return np.asarray(near[given.is_node[own]])


def biased(probability: Probabilities, bias: Doubles) -> Probabilities:
    """The answers with a bias added to the log-probability of each class; rows sum to 1 again.

    >>> biased(np.array([[0.5, 0.5]], np.float32), np.log([3.0, 1.0])).round(2).tolist()
    [[0.75, 0.25]]
    """
    score = np.log(np.maximum(probability, 1e-30, dtype=np.float64)) + bias
    weight = np.exp(score - score.max(axis=1, keepdims=True))
    found: Probabilities = (weight / weight.sum(axis=1, keepdims=True)).astype(probability.dtype)
    return found


def remaining(member: Doubles, found: Floats | Doubles, shift: Doubles) -> Doubles:
    """P(a node is in any class) with the log-odds of each class against none of them shifted.

    >>> remaining(np.array([0.5]), np.array([[1.0]]), np.log([[1 / 3]])).round(2).tolist()
    [0.25]
    """
    weight = member * (found * np.exp(shift)).sum(axis=-1)
    return np.asarray(weight / (1 - member + weight).clip(min=1e-300))
