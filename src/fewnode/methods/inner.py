"""The inner loop of MAML (Finn et al., ICML 2017, Algorithm 2): gradient descent on the support set of a task.

It starts from the weights of a network and a head of zeros. Zeros treat all classes alike, whatever their number and
order. A learned column that all classes start from (Ye & Chao, ICLR 2022) does no more: it cancels in the softmax.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from functools import cached_property
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F

from fewnode.engine.fields import Nodes, ReceptiveFields
from fewnode.engine.sparse import CSR
from fewnode.gpn import Encoder, convolve

HEAD, BIAS, ROWS, MOVE = "head", "bias", "rows", "move"
MAX_GRAM = 1024
"""Rows that `gram` multiplies with each other at most; beyond that it costs more than it saves."""

TOGETHER = 12
"""Tasks of a stack in a pool; more would have to be filled up with more zeros."""

Weights = dict[str, Tensor]


@dataclass(frozen=True, eq=False)
class Field:
    """What an encoder reads of a graph for some nodes: constants, so that weights can change without slicing again.

    A layer multiplies by its weight and then by its hop, if it has one; the first layer's input is `rows`, which are
    those of `nodes`, or of all.
    """

    rows: CSR | Tensor
    hops: tuple[CSR | Tensor | None, ...]
    nodes: Nodes | None = None


class FieldEncoder(Encoder):
    """The encoder of `fewnode.gpn` on the receptive field of some nodes, with gradients of any order."""

    def __init__(self, n_features: int, hidden: Sequence[int], dropout: float, graph: bool) -> None:
        super().__init__(n_features, hidden, graph)
        self.dropout = dropout

    def read(self, g: ReceptiveFields, nodes: Nodes | None) -> Field:
        """The receptive field of the nodes, with as few rows as can be."""
        if not self.graph:
            return Field(g.features(nodes), (None,) * len(self.weight), nodes)
        hops: list[CSR | None] = []
        for _ in self.weight[1:]:
            hop = g.hop(nodes)
            hops.append(hop.matrix)
            nodes = hop.around
        rows, first = g.propagated(nodes)
        return Field(rows, (first, *reversed(hops)), nodes)

    def apply_to(self, field: Field) -> Float[Tensor, "k d"]:
        return self.finish(field, field.rows @ self.first)

    @property
    def first(self) -> Float[Tensor, "d h"]:
        """The weight that the attributes are multiplied by: by far the largest."""
        return self.weight[0]  # type: ignore[no-any-return]

    @torch.no_grad()
    def products(self, g: ReceptiveFields) -> Float[Tensor, "n h"]:
        """The rows of a field, times the first weight, for all nodes."""
        field = self.read(g, None)
        hw = field.rows @ self.first
        return hw if field.hops[0] is None else field.hops[0] @ hw

    def finish(self, field: Field, h: Float[Tensor, "*t m h"]) -> Float[Tensor, "*t k d"]:
        """z, from the product of the field's rows with the first weight."""
        for layer, (bias, hop) in enumerate(zip(self.bias, field.hops, strict=True)):
            if layer > 0:
                h = F.dropout(h, self.dropout, self.training) @ self.weight[layer]
            h = convolve(hop, h, bias)
        return h


class Network(nn.Module):
    """An encoder whose weights can be others for the time of a call."""

    def __init__(self, encoder: nn.Module) -> None:
        super().__init__()
        self.encoder: Any = encoder

    def forward(self, field: Any, h: Tensor | None = None) -> Tensor:
        """z from a field or, where it is at hand, from the product of its rows and the first weight."""
        z: Tensor = self.encoder.apply_to(field) if h is None else self.encoder.finish(field, h)
        return z

    @cached_property
    def first(self) -> str:
        """The name of the weight that attributes are multiplied by, if the encoder can go on from that product."""
        weight = getattr(self.encoder, "first", None)
        return next((name for name, own in self.named_parameters() if own is weight), "")

    def weights(self) -> Weights:
        return dict(self.encoder.named_parameters(prefix="encoder"))

    def embed(self, field: Any, weights: Mapping[str, Tensor]) -> Tensor:
        """z by weights that were adapted to a task."""
        own = {name: weight for name, weight in weights.items() if name not in (HEAD, BIAS, ROWS)}
        z: Tensor = functional_call(self, own, (field, weights.get(ROWS)), tie_weights=False)
        return z

    def logits(self, field: Any, weights: Mapping[str, Tensor]) -> Tensor:
        """Of the classes of the task that the weights were adapted to."""
        return self.embed(field, weights) @ weights[HEAD] + weights[BIAS]


def adapt(
    network: Network, support: Support | Stack, steps: int, lr: float, second_order: bool = False
) -> list[Weights]:
    """The weights, head included, that each task of `support` comes to."""
    weights = support.start(network)
    moves = []
    for _ in range(steps):
        loss = support_loss(network.logits(support.field, weights), support.y, support.share)
        found = torch.autograd.grad(loss, list(weights.values()), create_graph=second_order, materialize_grads=True)
        gradient = dict(zip(weights, found, strict=True))
        if isinstance(support, Stack):
            moves.append(gradient[ROWS])
            gradient[ROWS] = support.products @ gradient[ROWS]
        weights = {name: weight.sub(gradient[name], alpha=lr) for name, weight in weights.items()}
    return (
        [weights] if isinstance(support, Support) else support.unstack(network, weights, lr * torch.stack(moves).sum(0))
    )


def support_loss(
    logits: Float[Tensor, "*t k n"], y: Int[Tensor, "*t k"], share: Float[Tensor, "*t k"]
) -> Float[Tensor, ""]:
    """Cross-entropy of a task, or its sum over tasks: then each task's weights have the gradient of its own loss."""
    log_prob = F.log_softmax(logits, dim=-1).gather(-1, y[..., None]).squeeze(-1)
    return -(share * log_prob).sum()


@dataclass(frozen=True, eq=False)
class Support:
    """The support set of one task, for any encoder. `products` are those of `gram`, if the encoder can use them."""

    field: Any
    y: Int[Tensor, " k"]
    products: Float[Tensor, "m m"] | None = None

    @classmethod
    def read(cls, network: Network, g: ReceptiveFields, nodes: Nodes, y: Int[Tensor, " k"]) -> Support:
        field = network.encoder.read(g, nodes)
        return cls(field, y, gram(field.rows) if network.first else None)

    @property
    def n_way(self) -> int:
        return int(self.y.max()) + 1

    @property
    def share(self) -> Float[Tensor, " k"]:
        """Of each node in the loss: no class counts for more because it has more shots."""
        count = torch.bincount(self.y)
        return 1.0 / (self.n_way * count[self.y])

    def start(self, network: Network) -> Weights:
        with torch.no_grad():
            z = network(self.field)
        head = z.new_zeros(z.shape[1], self.n_way), z.new_zeros(self.n_way)
        return {**network.weights(), HEAD: head[0].requires_grad_(), BIAS: head[1].requires_grad_()}


class Stack:
    """Support sets of tasks with equal N side by side, so that a step of all of them costs little more than of one.

    The first weight W has a row for each attribute, but a step moves it by rowsᵀ G alone, G being the gradient at
    rows W. So the loop follows rows W instead, which a step moves by (rows rowsᵀ) G, and W is moved once, at the end:
    the same numbers without a product as wide as the attributes. Smaller tasks are filled up with zeros.

    Where `rows`, the products of all nodes' rows with W, are given, W is not moved at all: instead of it a task gets
    the sum of its G, `MOVE`.
    """

    rows: Float[Tensor, "n h"] | None = None

    def __init__(self, tasks: Sequence[Support]) -> None:
        self.tasks, self.n_way = tasks, tasks[0].n_way
        self.products = _padded([task.products for task in tasks if task.products is not None])
        hops = zip(*(task.field.hops for task in tasks), strict=True)
        dense = tuple(None if layer[0] is None else _padded([hop.to_dense() for hop in layer]) for layer in hops)
        self.field = Field(self.products, dense)  # its rows are not read: their product with W is at hand
        self.y, self.share = _padded([task.y for task in tasks]), _padded([task.share for task in tasks])

    def start(self, network: Network) -> Weights:
        weights = network.weights()
        first = weights.pop(network.first)
        t = len(self.tasks)
        weights = {
            name: weight.expand(t, *(1,) * (2 - weight.dim()), *weight.shape) for name, weight in weights.items()
        }
        if self.rows is None:
            rows = _padded([task.field.rows @ first for task in self.tasks])
        else:
            rows = _padded([self.rows[task.field.nodes] for task in self.tasks]).requires_grad_()
        with torch.no_grad():
            width = functional_call(network, weights, (self.field, rows), tie_weights=False).shape[2]
        head, bias = rows.new_zeros(t, width, self.n_way), rows.new_zeros(t, 1, self.n_way)
        return {**weights, ROWS: rows, HEAD: head.requires_grad_(), BIAS: bias.requires_grad_()}

    def unstack(self, network: Network, weights: Weights, moved: Float[Tensor, "t m h"]) -> list[Weights]:
        first = network.get_parameter(network.first)
        each = [{name: weight[i] for name, weight in weights.items() if name != ROWS} for i in range(len(self.tasks))]
        for own, task, move in zip(each, self.tasks, moved, strict=True):
            rows = task.field.rows
            move = move[: rows.shape[0]]
            if self.rows is not None:
                own[MOVE] = move
            else:
                own[network.first] = first - (rows.transposed_matmul(move) if isinstance(rows, CSR) else rows.T @ move)
        return each


@dataclass(frozen=True, eq=False)
class KnownTask:
    """A task that is asked about again and again: what it reads, and the products of query rows with support rows."""

    support: Support
    query: Any
    products: Float[Tensor, "q m"]

    @classmethod
    def read(cls, network: Network, g: ReceptiveFields, support: Support, query: Nodes) -> KnownTask | None:
        """None, if there are too many rows for that to pay."""
        if support.products is None:
            return None
        field = network.encoder.read(g, query)
        few = field.rows.shape[0] <= min(MAX_GRAM, field.rows.shape[1])
        return cls(support, field, field.rows.to_dense() @ support.field.rows.to_dense().T) if few else None


@dataclass(frozen=True, eq=False)
class Pool:
    """Known tasks by their numbers, and stacks of like size, made once."""

    known: dict[int, KnownTask] = dataclass_field(default_factory=dict)

    @cached_property
    def stacks(self) -> list[tuple[list[int], Stack]]:
        order = sorted(self.known, key=lambda i: self.known[i].support.field.rows.shape[0])
        parts = [order[start : start + TOGETHER] for start in range(0, len(order), TOGETHER)]
        return [(part, Stack([self.known[i].support for i in part])) for part in parts]


def gram(rows: CSR | Tensor) -> Float[Tensor, "m m"] | None:
    """The products of the rows with each other, or None where they are too many for that to pay."""
    if rows.shape[0] > min(MAX_GRAM, rows.shape[1]):
        return None
    dense = rows.to_dense()  # of few rows: multiplied sooner than sparse ones
    return dense @ dense.T


def _padded(parts: Sequence[Tensor]) -> Tensor:
    """The tensors as one, filled up with zeros to the size of the largest."""
    if len({part.shape for part in parts}) == 1:
        return torch.stack(list(parts))
    size = [max(part.shape[axis] for part in parts) for axis in range(parts[0].dim())]
    fill = [[size[axis] - part.shape[axis] for axis in reversed(range(part.dim()))] for part in parts]
    return torch.stack([F.pad(part, [n for f in row for n in (0, f)]) for part, row in zip(parts, fill, strict=True)])
