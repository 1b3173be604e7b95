"""How much each view counts: the weights by which known classes are most likely to be told apart."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor

MOST = 100.0
"""What a view may weigh."""
STEPS, FLAT = 300, 1e-9
"""Of Newton's method: steps at most, and the slope at which nothing is left to gain."""
SUFFICIENT, ROUNDING, SHORTEST = 1e-4, 1e-13, 1e-6
"""Of a step: the share of the expected gain that it must bring, but for rounding, and how short it may become."""
TAKEN_UP = 32
"""Weights of 0 that are taken up in a step."""


def mix_weights(
    closeness: Float[Tensor, "q n m"],
    label: Int[Tensor, " q"],
    prior: NDArray[np.float64] | None = None,
    penalty: float = 1e-4,
) -> NDArray[np.float64]:
    """τ ≥ 0 that minimise the negative log-likelihood of softmax(Σ_m τ_m closeness_m), and a little of |τ - prior|².

    Without a prior that is of τ². The penalty makes the minimum unique. It is reached to rounding, so that a small
    difference in `closeness` makes a small difference in τ. Most weights end at 0: a step of Newton's method is over
    the others, and over those that would be better above 0. A weight at a bound stays there for a step if it would go
    beyond (Bertsekas, 1982).
    """
    ahead, m = _ahead(closeness, label), closeness.shape[2]
    expects = torch.zeros(m).double() if prior is None else torch.from_numpy(prior).double()
    tau = torch.full((m,), 10 / m).double() if prior is None else expects.clamp(0, MOST)

    def likelihood(tau: Float[Tensor, " m"]) -> tuple[Float[Tensor, ""], Float[Tensor, "r q"]]:
        """What is minimised, and the probability of each rival."""
        loss, p = _rivals(ahead, tau)
        return loss + penalty * (tau - expects).square().sum(), p

    loss, p = likelihood(tau)
    for _ in range(STEPS):
        slope = ahead.flatten(1) @ p.flatten() / len(label) + 2 * penalty * (tau - expects)
        free = _free(tau, slope)
        if not (slope[free].abs() > FLAT).any():
            break
        curve = _curvature(ahead[free], p)
        curve.diagonal().add_(2 * penalty)
        step = torch.zeros_like(tau).masked_scatter(free, -torch.linalg.solve(curve, slope[free]))
        length, before = 1.0, tau
        while length > SHORTEST and tau is before:
            there = (before + length * step).clamp(0, MOST)
            found = likelihood(there)
            if found[0] <= loss + SUFFICIENT * slope @ (there - before) + ROUNDING:
                tau, (loss, p) = there, found
            length /= 2
        if torch.equal(before, tau):
            break
    weights: NDArray[np.float64] = tau.numpy()
    return weights


def _ahead(closeness: Float[Tensor, "q n m"], label: Int[Tensor, " q"]) -> Float[Tensor, "m r q"]:
    """How much closer each rival of the right class is than that, in each view."""
    rank = torch.arange(closeness.shape[1] - 1)
    rivals = rank + (rank >= label.unsqueeze(1))
    each = torch.arange(len(label))
    right, others = closeness[each, label], closeness[each.unsqueeze(1), rivals]
    return (others.double() - right.double().unsqueeze(1)).permute(2, 1, 0).contiguous()


def _rivals(ahead: Float[Tensor, "m r q"], tau: Float[Tensor, " m"]) -> tuple[Float[Tensor, ""], Float[Tensor, "r q"]]:
    """The negative log-likelihood of the right classes, and the probability of each rival."""
    some = tau > 0
    score = (tau[some] @ ahead[some].flatten(1)).view(ahead.shape[1:])
    top = score.amax(dim=0).clamp(min=0)  # the right class scores 0
    power = (score - top).exp()
    total = power.sum(dim=0) + (-top).exp()
    return (total.log() + top).mean(), power / total


def _free(tau: Float[Tensor, " m"], slope: Float[Tensor, " m"]) -> Bool[Tensor, " m"]:
    """Weights that a step may change: those above 0, and those of 0 that the loss falls most steeply along."""
    found = (tau > 0) & ((tau < MOST) | (slope > 0))
    zero = torch.where(tau > 0, 0.0, slope)
    steepest = zero.argsort()[:TAKEN_UP]
    found[steepest] |= zero[steepest] < -FLAT
    return found


def _curvature(ahead: Float[Tensor, "m r q"], p: Float[Tensor, "r q"]) -> Float[Tensor, "m m"]:
    """The mean over queries of the covariance of `ahead` under p, where the right class is ahead by 0."""
    mean = (ahead * p).sum(dim=1)
    apart = (ahead * p.sqrt()).flatten(1)
    return (apart @ apart.T - mean @ mean.T) / p.shape[1]
