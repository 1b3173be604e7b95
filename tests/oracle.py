"""GPN as the paper's equations read, on dense matrices of the whole graph: slow, plain, independent of fewnode.gpn."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from fewnode.graph import Graph

Rows = list[list[float]]


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
    return torch.sigmoid(torch.log((a > 0).sum(dim=1).to(a.dtype) + eps) * s)


def loss(z: Tensor, s: Tensor, support: Tensor, support_y: Tensor, query: Tensor, query_y: Tensor) -> Tensor:
    """Eqs. (11) to (14)."""
    centres = []
    for c in range(int(support_y.max()) + 1):
        members = support[support_y == c]
        centres.append((torch.softmax(s[members], dim=0)[:, None] * z[members]).sum(dim=0))
    distance = ((z[query][:, None] - torch.stack(centres)[None]) ** 2).sum(dim=2)
    return -torch.log_softmax(-distance, dim=1)[torch.arange(len(query)), query_y].mean()


# --- the same once more, in float64 and plain loops: no torch, no matrices ----------------------------------------


def loop_encode(near: list[list[int]], x: Rows, weights: list[Rows], biases: list[list[float]]) -> Rows:
    """H ← ReLU(Â H W + b) with Â = D^-1/2 (A + I) D^-1/2, node by node. `near` are the nodes that each one sees."""
    degree = [len(around) + 1 for around in near]
    h = x
    for weight, bias in zip(weights, biases, strict=True):
        rows = []
        for i, around in enumerate(near):
            mixed = [0.0] * len(weight)
            for j in (*around, i):
                share = 1 / math.sqrt(degree[i] * degree[j])
                for c, value in enumerate(h[j]):
                    mixed[c] += share * value
            row = []
            for k, b in enumerate(bias):
                row.append(max(0.0, b + sum(mixed[c] * weight[c][k] for c in range(len(mixed)))))
            rows.append(row)
        h = rows
    return h


def loop_importance(near: list[list[int]], x: Rows, w: list[float], b: float, a: Rows, eps: float) -> list[float]:
    """s̃: Eqs. (6) to (10)."""
    s = [math.tanh(b + sum(value * weight for value, weight in zip(row, w, strict=True))) for row in x]
    for own, other in a:
        new = []
        for i, around in enumerate(near):
            seen = [*around, i]
            score = [own * s[i] + other * s[j] for j in seen]
            score = [value if value > 0 else 0.2 * value for value in score]
            alpha = loop_softmax(score)
            new.append(sum(share * s[j] for share, j in zip(alpha, seen, strict=True)))
        s = new
    return [1 / (1 + math.exp(-math.log(len(around) + eps) * value)) for around, value in zip(near, s, strict=True)]


def loop_softmax(values: list[float]) -> list[float]:
    top = max(values)
    weight = [math.exp(value - top) for value in values]
    return [value / sum(weight) for value in weight]


def loop_beta(s: list[float], support: list[int], y: list[int]) -> list[float]:
    """Eq. (11): a softmax over the support nodes of a class."""
    beta = [0.0] * len(support)
    for c in set(y):
        places = [k for k, label in enumerate(y) if label == c]
        for k, share in zip(places, loop_softmax([s[support[k]] for k in places]), strict=True):
            beta[k] = share
    return beta


def loop_probability(z: Rows, beta: list[float], support: list[int], y: list[int], query: list[int]) -> Rows:
    """Eqs. (12) and (13)."""
    width = len(z[0])
    centres = [[0.0] * width for _ in range(max(y) + 1)]
    for share, v, c in zip(beta, support, y, strict=True):
        for d in range(width):
            centres[c][d] += share * z[v][d]
    return [loop_softmax([-sum((z[v][d] - p[d]) ** 2 for d in range(width)) for p in centres]) for v in query]
