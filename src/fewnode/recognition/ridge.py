"""Prototypes by ridge regression: what several support nodes agree on counts once, what tells classes apart most."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

RIDGE, SCALE = 1.0, 15.0
"""Regularisation of the prototypes, and what their scores are multiplied by before the softmax."""


def class_weights(counted: Float[Tensor, "*b k n"]) -> Float[Tensor, "*b k"]:
    """A weight for each node, so that classes count the same; all 1 with equal shots.

    Row i is what node i counts in each class: a labelled one 1 in its own.
    """
    mass = counted.sum(dim=-2, keepdim=True)
    return (counted / mass).sum(dim=-1) * mass.mean(dim=-1)


def ridge_weights(
    z: Float[Tensor, "*b k d"], label: Float[Tensor, "*c k n"], weight: Float[Tensor, "*c k"]
) -> Float[Tensor, "*b k n"]:
    """α of ridge regression in its dual form: prototypes are zᵀ α. Of several tasks, or of one."""
    target = label - 1 / label.shape[-1]
    if z.shape[-2] > z.shape[-1]:  # by the normal equations of the primal form: a system of d, not of k
        return weight.unsqueeze(-1) / RIDGE * (target - z @ ridge_prototypes(z, label, weight))
    root = weight.sqrt().unsqueeze(-1)
    return root * _solved((root * z) @ (root * z).mT, root * target)


def ridge_prototypes(
    z: Float[Tensor, "*b k d"], label: Float[Tensor, "*c k n"], weight: Float[Tensor, "*c k"]
) -> Float[Tensor, "*b d n"]:
    """p that minimise Σ_i weight_i |z_i p - (label_i - 1/N)|² + |p|²; label_i are probabilities."""
    if z.shape[-2] <= z.shape[-1]:
        return z.mT @ ridge_weights(z, label, weight)
    root = weight.sqrt().unsqueeze(-1)
    rows = (root * z).contiguous()
    return _solved(_products(rows), rows.mT @ (root * (label - 1 / label.shape[-1])))


def _products(rows: Float[Tensor, "*b k d"]) -> Float[Tensor, "*b d d"]:
    """rowsᵀ rows. NumPy sees that it is symmetric, and computes half of it."""
    parts = rows.view(-1, *rows.shape[-2:]).numpy()
    return torch.stack([torch.from_numpy(part.T @ part) for part in parts]).view(*rows.shape[:-2], -1, rows.shape[-1])


def _solved(products: Float[Tensor, "*b s s"], target: Float[Tensor, "*c s n"]) -> Float[Tensor, "*b s n"]:
    """(products + RIDGE I)^-1 target."""
    products.diagonal(dim1=-2, dim2=-1).add_(RIDGE)
    root, failed = torch.linalg.cholesky_ex(products)
    if failed.any():  # not a number, or too large: an answer must not look like one
        root = root.masked_fill(failed[..., None, None] > 0, torch.nan)
    return torch.cholesky_solve(target.expand(*products.shape[:-1], -1), root)


SHARES = (0.0, 0.15, 0.3, 0.5, 0.7, 1.0)
"""Of the structure in z, of which leave-one-out chooses."""
DOUBT = 6.0
"""How much less likely the labels must be for each share of the structure, in nats: attributes mostly say more."""


def share_factors(share: float, expected: float, width: int, own: int) -> Float[Tensor, " d"]:
    """What the columns of z are multiplied by, so that the structure has that share of it, not the `expected` one.

    The first `own` of `width` columns are what the attributes say.
    """
    first, second = ((1 - share) / (1 - expected)) ** 0.5, (share / expected) ** 0.5
    return torch.tensor([first] * own + [second] * (width - own))


def chosen_factors(
    z: Float[Tensor, "k d"], label: Float[Tensor, "k n"], expected: float, own: int
) -> Float[Tensor, " d"]:
    """The factors of the share of the structure that predicts each labelled node best from all others.

    Nodes alone in their class cannot be predicted so. If all are, the share is the `expected` one.
    """
    shots = label.sum(dim=0)
    judged = (label @ shots) > 1
    plain = torch.ones(z.shape[1])
    if not 0 < expected < 1 or not judged.any():
        return plain
    weight, target = class_weights(label), label.argmax(dim=1)
    best, found = -float("inf"), plain
    for share in SHARES:
        factors = share_factors(share, expected, z.shape[1], own)
        log_prob = torch.log_softmax(SCALE * left_out(z * factors, label, weight), dim=1)
        likely = float(log_prob[torch.arange(len(z)), target][judged].sum()) - DOUBT * share
        if likely > best:
            best, found = likely, factors
    return found


def left_out(z: Float[Tensor, "k d"], label: Float[Tensor, "k n"], weight: Float[Tensor, " k"]) -> Float[Tensor, "k n"]:
    """The score of each labelled node by ridge regression on all others: (H y - h y) / (1 - h), h the diagonal of H."""
    root, target = weight.sqrt()[:, None], label - 1 / label.shape[1]
    gram = (root * z) @ (root * z).T
    hat = gram @ torch.linalg.inv(gram + RIDGE * torch.eye(len(z)))
    own = hat.diagonal()[:, None]
    found: Tensor = (hat @ (root * target) / root - own * target) / (1 - own).clamp(min=1e-6)
    return found
