"""What rejected nodes teach: a direction of z for each class, along which nodes become more or less likely in it.

P(c | v) ∝ P₀(c | v) · exp(f_c(v)) with f_c(v) = w_c · z_v / |z_v|. P₀ are the answers without any rejection, "none of
these" among them, for which f is 0. w_c is the most likely one if its entries are drawn from a normal distribution
beforehand: logistic regression with log-odds of P₀ as an offset, on the nodes of the class, on those rejected for
it, and on some of all nodes, of which P₀ is taken to be right. So a rejection that was expected teaches nothing, and
one that was not takes down all that is like it.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from fewnode.gpn import closeness
from fewnode.graph import Ints
from fewnode.recognition.nearness import RESIDENT, nearness
from fewnode.recognition.prepared import PreparedSupport
from fewnode.vectors import drawn

VARIANCE = 4.0
"""Of each entry of w, before an answer is known."""
BACKGROUND = 300
"""Nodes of which P₀ is taken to be right, so that a few answers do not change what they say nothing about."""
STEPS, CLOSE = 30, 1e-6
LEAST = 1e-6
"""Log-odds are those of probabilities between this and 1 minus this."""
IMPOSSIBLE = -40.0
"""What a class's log-odds lose at a node that was rejected for it."""


@lru_cache(maxsize=8)
def background(n: int) -> Ints:
    """Nodes that stand for all, always the same."""
    return drawn(n, BACKGROUND)


def log_odds(probability: Float[Tensor, " k"]) -> Float[Tensor, " k"]:
    return torch.logit(probability.double(), eps=LEAST)


def learned_direction(
    z: Float[Tensor, "k d"], prior: Float[Tensor, " k"], target: Float[Tensor, " k"]
) -> Float[Tensor, " d"]:
    """w that maximises Σ_i log P(target_i | σ(prior_i + w · z_i)) - |w|² / 2 VARIANCE, by Newton's method.

    In its dual form, w = Σ_i a_i z_i: a system of k equations. Targets are probabilities.

    >>> z, prior = torch.eye(2), torch.zeros(2)
    >>> learned_direction(z, prior, torch.tensor([1.0, 0.0])).sign().tolist()
    [1.0, -1.0]
    """
    rows = F.normalize(z.double())
    gram, prior, target = VARIANCE * rows @ rows.T, prior.double(), target.double()
    a = torch.zeros_like(prior)
    for _ in range(STEPS):
        f = gram @ a
        p = torch.sigmoid(prior + f)
        weight = (p * (1 - p)).clamp(min=1e-12)
        wanted = weight * f + target - p
        root = weight.sqrt()
        system = root[:, None] * gram * root
        system.diagonal().add_(1.0)  # so it is positive definite
        factor, right = torch.linalg.cholesky(system), (root * (gram @ wanted))[:, None]
        before, a = a, wanted - root * torch.cholesky_solve(right, factor)[:, 0]
        if (a - before).abs().max() < CLOSE:
            break
    found: Tensor = (VARIANCE * rows.T @ a).float()
    return found


def along(z: Float[Tensor, "q d"], directions: Float[Tensor, "d n"]) -> Float[Tensor, "q n"]:
    """f of nodes: how far each lies along each direction."""
    parts, directions = z.split(RESIDENT), directions.T.contiguous().T  # a product takes a quarter of the time so
    return torch.cat([(part @ directions) / part.norm(dim=1, keepdim=True).clamp(min=1e-12) for part in parts])


def left_out_nearness(prepared: PreparedSupport, y: Ints, c: int, distance: str) -> Float[Tensor, "k n"]:
    """How near each support node of class c is to the prototypes, where that of its own class is made without it.

    `y` has the class of every row of the prepared support, and nodes come before descriptions. The only node of a class
    is not left out: no node is as near to a description as to nodes.
    """
    labels = torch.from_numpy(y)
    count = prepared.beta.cpu() if prepared.count is None else prepared.count
    own = labels == c
    share = count[own] / count[own].sum()
    z, p = prepared.z[own], prepared.prototypes
    near = nearness(z, p, distance)
    if prepared.shots[c] > 1:
        others = (p[c] - share[:, None] * z) / (1 - share).clamp(min=1e-6)[:, None]
        near[:, c] = closeness(z, others[:, None], distance)[:, 0]
    return near


def remaining(
    member: NDArray[np.floating], found: NDArray[np.floating], shift: NDArray[np.float64]
) -> NDArray[np.float64]:
    """P(a node is in any class) with the log-odds of each class against none of them shifted.

    >>> remaining(np.array([0.5]), np.array([[1.0]]), np.log([[1 / 3]])).round(2).tolist()
    [0.25]
    """
    weight = member * (found * np.exp(shift)).sum(axis=-1)
    return np.asarray(weight / (1 - member + weight).clip(min=1e-300))
