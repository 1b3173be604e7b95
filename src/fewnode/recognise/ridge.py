"""Prototypes by ridge regression: what several support nodes agree on counts once, what tells classes apart most."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

RIDGE, SCALE = 1.0, 15.0
"""Regularisation of the prototypes, and what their scores are multiplied by before the softmax."""


def class_weights(counted: Float[Tensor, "k n"]) -> Float[Tensor, " k"]:
    """A weight for each node, so that classes count the same; all 1 with equal shots.

    Row i is what node i counts in each class: a labelled one 1 in its own.
    """
    mass = counted.sum(dim=0)
    return (counted / mass).sum(dim=1) * mass.mean()


def ridge_weights(
    z: Float[Tensor, "k d"], label: Float[Tensor, "k n"], weight: Float[Tensor, " k"]
) -> Float[Tensor, "k n"]:
    """α of ridge regression in its dual form: prototypes are zᵀ α."""
    if z.shape[0] > z.shape[1]:  # by the normal equations of the primal form: a system of d, not of k
        return weight[:, None] / RIDGE * (label - 1 / label.shape[1] - z @ ridge_prototypes(z, label, weight))
    root = weight.sqrt()[:, None]
    gram = (root * z) @ (root * z).T
    gram.diagonal().add_(RIDGE)
    target = label - 1 / label.shape[1]
    alpha: Tensor = root * torch.linalg.solve(gram, root * target)
    return alpha


def ridge_prototypes(
    z: Float[Tensor, "k d"], label: Float[Tensor, "k n"], weight: Float[Tensor, " k"]
) -> Float[Tensor, "d n"]:
    """p that minimise Σ_i weight_i |z_i p - (label_i - 1/N)|² + |p|²; label_i are probabilities."""
    if z.shape[0] <= z.shape[1]:
        return z.T @ ridge_weights(z, label, weight)
    weighted = weight[:, None] * z
    second = weighted.T @ z
    second.diagonal().add_(RIDGE)
    p: Tensor = torch.linalg.solve(second, weighted.T @ (label - 1 / label.shape[1]))
    return p
