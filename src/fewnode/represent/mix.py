"""How much each view counts: the weights by which known classes are most likely to be told apart."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

MOST = 100.0
"""What a view may weigh."""
STEPS, FLAT = 100, 1e-9
"""Of Newton's method: steps at most, and the slope at which nothing is left to gain."""
SUFFICIENT, ROUNDING, SHORTEST = 1e-4, 1e-13, 1e-6
"""Of a step: the share of the expected gain that it must bring, but for rounding, and how short it may become."""
TAKEN_UP = 16
"""Weights of 0 that are taken up at a time."""
QUERIES = 1 << 11
"""Queries whose products are added up at a time."""


def mix_weights(
    closeness: Float[Tensor, "q n m"],
    label: Int[Tensor, " q"],
    prior: NDArray[np.float64] | None = None,
    penalty: float = 1e-4,
) -> NDArray[np.float64]:
    """τ ≥ 0 that minimise the negative log-likelihood of softmax(Σ_m τ_m closeness_m), and a little of |τ - prior|².

    Without a prior that is of τ². The penalty makes the minimum unique. It is reached to rounding, so that a small
    difference in `closeness` makes a small difference in τ. Most weights end at 0: Newton's method works on the others,
    and takes up those that would be better above 0 until there are none.
    """
    m = closeness.shape[2]
    expects = torch.zeros(m).double() if prior is None else torch.from_numpy(prior).double()
    tau = torch.full((m,), 10 / m).double() if prior is None else expects.clamp(0, MOST)
    wanted = tau > 0
    for _ in range(STEPS):
        found, p = _minimum(_ahead(closeness[..., wanted], label), expects[wanted], tau[wanted], penalty)
        tau = torch.zeros(m).double().masked_scatter(wanted, found)
        slope = _slope(closeness, label, p) + 2 * penalty * (tau - expects)
        slope[wanted] = 0.0
        steepest = slope.argsort()[:TAKEN_UP]
        if not slope[steepest[0]] < -FLAT:
            break
        wanted = tau > 0
        wanted[steepest[slope[steepest] < -FLAT]] = True
    weights: NDArray[np.float64] = tau.numpy()
    return weights


def _ahead(closeness: Float[Tensor, "q n m"], label: Int[Tensor, " q"]) -> Float[Tensor, "q n m"]:
    """How much closer each class is than the right one."""
    ahead = closeness.double()
    return ahead - ahead[torch.arange(len(label)), label].unsqueeze(1)


def _slope(closeness: Float[Tensor, "q n m"], label: Int[Tensor, " q"], p: Float[Tensor, "q n"]) -> Float[Tensor, " m"]:
    """That of the negative log-likelihood, where the classes have probabilities p."""
    parts = zip(*(each.split(QUERIES) for each in (closeness, label, p)), strict=True)
    total = torch.zeros(closeness.shape[2]).double()
    for of, own, share in parts:
        total += torch.tensordot(share, _ahead(of, own), 2)
    return total / len(label)


def _minimum(
    ahead: Float[Tensor, "q n m"], expects: Float[Tensor, " m"], tau: Float[Tensor, " m"], penalty: float
) -> tuple[Float[Tensor, " m"], Float[Tensor, "q n"]]:
    """The best τ, and the probabilities of classes that it gives, by Newton's method within 0 ≤ τ ≤ `MOST`.

    A weight that is at its bound and would go beyond stays there for a step (Bertsekas, 1982).
    """
    flat = ahead.flatten(0, 1)

    def loss(tau: Float[Tensor, " m"]) -> Float[Tensor, ""]:
        likely = torch.logsumexp((flat @ tau).view(ahead.shape[:2]), dim=1).mean()
        return likely + penalty * (tau - expects).square().sum()

    for _ in range(STEPS):
        p = torch.softmax((flat @ tau).view(ahead.shape[:2]), dim=1)
        slope = p.flatten() @ flat / len(p) + 2 * penalty * (tau - expects)
        free = torch.where(slope > 0, tau > 0, tau < MOST)
        if not (slope[free].abs() > FLAT).any():
            break
        curve = _curvature(ahead, p)[free][:, free]
        curve.diagonal().add_(2 * penalty)
        step = torch.zeros_like(tau).masked_scatter(free, -torch.linalg.solve(curve, slope[free]))
        before, tau = tau, _descended(loss, tau, slope, step)
        if torch.equal(before, tau):
            break
    return tau, p


def _curvature(ahead: Float[Tensor, "q n m"], p: Float[Tensor, "q n"]) -> Float[Tensor, "m m"]:
    """The mean over queries of the covariance of `ahead` under p."""
    total = ahead.new_zeros(ahead.shape[2], ahead.shape[2])
    for of, share in zip(ahead.split(QUERIES), p.split(QUERIES), strict=True):
        apart = of - torch.einsum("qn,qnm->qm", share, of).unsqueeze(1)
        apart *= share.sqrt().unsqueeze(2)
        total += apart.flatten(0, 1).T @ apart.flatten(0, 1)
    return total / len(p)


def _descended(
    loss: Callable[[Tensor], Tensor], tau: Float[Tensor, " m"], slope: Float[Tensor, " m"], step: Float[Tensor, " m"]
) -> Float[Tensor, " m"]:
    """The first of the step, its half, its quarter … that is as good as the slope promises; tau if none is."""
    value, length = loss(tau), 1.0
    while length > SHORTEST:
        there = (tau + length * step).clamp(0, MOST)
        if loss(there) <= value + SUFFICIENT * slope @ (there - tau) + ROUNDING:
            return there
        length /= 2
    return tau
