"""GPN as the paper's equations read, on dense matrices of the whole graph: slow, plain, independent of fewnode.nn."""

from __future__ import annotations

import torch
from torch import Tensor

from fewnode.graph import Graph


def dense(graph: Graph, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    x = graph.x.toarray() if hasattr(graph.x, "toarray") else graph.x
    return torch.tensor(graph.adj.toarray(), dtype=dtype), torch.tensor(x, dtype=dtype)


def propagation_matrix(a: Tensor) -> Tensor:
    closed = a + torch.eye(len(a), dtype=a.dtype)
    scale = closed.sum(dim=1) ** -0.5
    return scale[:, None] * closed * scale[None, :]


def encode(a: Tensor, x: Tensor, weights: list[Tensor], biases: list[Tensor]) -> Tensor:
    """Kipf & Welling's layers, each with ReLU."""
    h, hat = x, propagation_matrix(a)
    for weight, bias in zip(weights, biases, strict=True):
        h = torch.relu(hat @ h @ weight + bias)
    return h


def importance(a: Tensor, x: Tensor, w: Tensor, b: Tensor, attention: Tensor, eps: float) -> Tensor:
    """Eqs. (6) to (10)."""
    s = torch.tanh(x @ w + b).squeeze(1)
    closed = (a + torch.eye(len(a), dtype=a.dtype)) > 0
    for pair in attention:
        score = torch.nn.functional.leaky_relu(pair[0] * s[:, None] + pair[1] * s[None, :], 0.2)
        alpha = torch.softmax(score.masked_fill(~closed, -torch.inf), dim=1)
        s = alpha @ s
    return torch.sigmoid(torch.log(a.sum(dim=1) + eps) * s)


def loss(z: Tensor, s: Tensor, support: Tensor, support_y: Tensor, query: Tensor, query_y: Tensor) -> Tensor:
    """Eqs. (11) to (14)."""
    centres = []
    for c in range(int(support_y.max()) + 1):
        members = support[support_y == c]
        centres.append((torch.softmax(s[members], dim=0)[:, None] * z[members]).sum(dim=0))
    distance = ((z[query][:, None] - torch.stack(centres)[None]) ** 2).sum(dim=2)
    return -torch.log_softmax(-distance, dim=1)[torch.arange(len(query)), query_y].mean()
