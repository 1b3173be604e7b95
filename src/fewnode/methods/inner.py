"""The inner loop of MAML (Finn et al., ICML 2017, Algorithm 2): gradient descent on the support set of a task.

It starts from the weights of an encoder and a head of zeros. Zeros treat all classes alike, whatever their number and
order. A learned column that all classes start from (Ye & Chao, ICLR 2022) does no more: it cancels in the softmax.

The first weight W has a row for each attribute, but a step moves it by rowsᵀ G alone, G being the gradient at rows
times W. So the loop follows that product, which a step moves by rows rowsᵀ G, and W is moved once, at the end: the same
numbers without a product as wide as the attributes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F

from fewnode.engine.fields import Nodes, ReceptiveFields, Rows
from fewnode.engine.sparse import CSR, as_tensor
from fewnode.gpn import Encoder, Neighbourhood, convolve
from fewnode.graph import Graph
from fewnode.methods.networks import differentiate
from fewnode.seeds import seeded
from fewnode.train import Gradients

HEAD, BIAS = "head.weight", "head.bias"
MAX_GRAM = 1024
"""Rows whose products with each other are formed; beyond that it costs more than it saves."""
Weights = dict[str, Tensor]


class Prepared(NamedTuple):
    """A graph with scaled attributes, and its receptive fields."""

    graph: Graph
    fields: ReceptiveFields


class Field(NamedTuple):
    """What an encoder reads of a graph for some nodes: constants, so that weights can change without slicing again.

    A layer multiplies by its weight and then by its hop, if it has one.
    """

    rows: CSR | Tensor
    hops: tuple[CSR | None, ...]


def _field(rows: Rows, hops: Sequence[CSR | None]) -> Field:
    return Field(rows if isinstance(rows, CSR) else as_tensor(rows), tuple(hops))


class FieldEncoder(Encoder):
    """The encoder of `fewnode.gpn` on the receptive field of some nodes, with gradients of any order."""

    first = "weight.0"
    """The weight that the attributes are multiplied by: by far the largest."""

    def __init__(self, n_features: int, hidden: Sequence[int], dropout: float, graph: bool) -> None:
        super().__init__(n_features, hidden, graph)
        self.dropout = dropout

    def read(self, g: Prepared, nodes: Nodes | None) -> Field:
        """The receptive field of the nodes, with as few rows as can be."""
        if not self.graph:
            return _field(g.fields.features(nodes), (None,) * len(self.weight))
        hops: list[CSR | None] = []
        for _ in self.weight[1:]:
            hop = g.fields.hop(nodes)
            hops.append(hop.matrix)
            nodes = hop.around
        rows, first = g.fields.propagated(nodes)
        return _field(rows, (first, *reversed(hops)))

    def forward(self, field: Field, h: Tensor | None = None) -> Float[Tensor, "k d"]:  # type: ignore[override]
        """z; `h` is the product of the field's rows with the first weight, where it is at hand."""
        h = times(field.rows, self.weight[0]) if h is None else h
        for layer, (bias, hop) in enumerate(zip(self.bias, field.hops, strict=True)):
            if layer > 0:
                h = F.dropout(h, self.dropout, self.training) @ self.weight[layer]
            h = convolve(None, h if hop is None else times(hop, h), bias)
        return h


class SGC(nn.Module):
    """Simple graph convolution (Wu et al., ICML 2019): Â² X W + b, no non-linearity.

    Rows of Â² X are formed for the nodes that are read: near a hub none of them is sparse.
    """

    first = "weight"

    def __init__(self, n_features: int, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(n_features, width))
        self.bias = nn.Parameter(torch.zeros(width))
        nn.init.xavier_uniform_(self.weight)

    def read(self, g: Prepared, nodes: Nodes | None) -> Field:
        hop = g.fields.hop(nodes)
        rows, inner = g.fields.propagated(hop.around)
        if nodes is None:
            return _field(rows, (inner, hop.matrix))
        outer = hop.matrix
        return _field(CSR.of(outer.scipy @ rows.scipy) if isinstance(rows, CSR) else outer.multiply(rows), ())

    def forward(self, field: Field, h: Tensor | None = None) -> Float[Tensor, "k d"]:
        h = times(field.rows, self.weight) if h is None else h
        for hop in field.hops:
            h = h if hop is None else times(hop, h)
        return h + self.bias


class Others(nn.Module):
    """An encoder of somebody else, on the neighbourhood of some nodes."""

    first = ""

    def __init__(self, encoder: Any) -> None:
        super().__init__()
        self.encoder = encoder

    def read(self, g: Prepared, nodes: Nodes | None) -> tuple[Neighbourhood, Tensor]:
        around = Neighbourhood.of(g.graph, nodes, self.encoder.hops)
        return around, around.nodes if nodes is None else around.places(nodes)

    def forward(self, field: tuple[Neighbourhood, Tensor], h: None = None) -> Float[Tensor, "k d"]:
        z: Tensor = self.encoder(field[0])[field[1]]
        return z


class Support(NamedTuple):
    """The support set of one task: what an encoder reads of it, its classes, and how a gradient moves rows W."""

    field: Any
    y: Int[Tensor, " k"]
    spread: Callable[[Tensor], Tensor] | None

    @classmethod
    def read(cls, encoder: Any, g: Prepared, nodes: Nodes, y: Int[Tensor, " k"]) -> Support:
        field = encoder.read(g, nodes)
        if not encoder.first:
            return cls(field, y, None)
        rows = field.rows
        if rows.shape[0] > MAX_GRAM:
            return cls(field, y, lambda gradient: times(rows, times(rows, gradient, True)))
        gram = as_tensor((rows.scipy @ rows.scipy.T).toarray()) if isinstance(rows, CSR) else rows @ rows.T
        return cls(field, y, lambda gradient: gram @ gradient)

    @property
    def n_way(self) -> int:
        return int(self.y.max()) + 1

    def loss(self, logits: Float[Tensor, "k n"]) -> Float[Tensor, ""]:
        """Cross-entropy; no class counts for more because it has more shots."""
        return F.cross_entropy(logits, self.y, 1.0 / torch.bincount(self.y).to(logits.dtype))


def adapt(encoder: Any, support: Support, steps: int, lr: float, second_order: bool = False) -> Weights:
    """The weights, head included, that the task comes to."""
    weights: Weights = dict(encoder.named_parameters())
    before = weights.pop(encoder.first, None)
    h = None if before is None else times(support.field.rows, before)
    with torch.no_grad():
        width = encoder(support.field, h).shape[1]
    like = next(encoder.parameters())
    weights |= {HEAD: like.new_zeros(width, support.n_way), BIAS: like.new_zeros(support.n_way)}
    weights[HEAD].requires_grad_(), weights[BIAS].requires_grad_()
    moved: Any = 0
    for _ in range(steps):
        loss = support.loss(logits(encoder, support.field, weights, h))
        leaves = [*weights.values(), *([] if h is None else [h])]
        slopes = torch.autograd.grad(loss, leaves, create_graph=second_order, materialize_grads=True)
        weights = {name: weight - lr * slope for (name, weight), slope in zip(weights.items(), slopes, strict=False)}
        if h is not None and support.spread is not None:
            h, moved = h - lr * support.spread(slopes[-1]), moved + lr * slopes[-1]
    return weights if before is None else {**weights, encoder.first: before - times(support.field.rows, moved, True)}


def embed(encoder: Any, field: Any, weights: Weights, h: Tensor | None = None) -> Float[Tensor, "k d"]:
    """z by weights that were adapted to a task."""
    own = {name: weight for name, weight in weights.items() if name not in (HEAD, BIAS)}
    z: Tensor = functional_call(encoder, own, (field, h), tie_weights=False)
    return z


def logits(encoder: Any, field: Any, weights: Weights, h: Tensor | None = None) -> Float[Tensor, "k n"]:
    """Of the classes of the task that the weights were adapted to."""
    return embed(encoder, field, weights, h) @ weights[HEAD] + weights[BIAS]


def times(matrix: CSR | Tensor, dense: Tensor, transposed: bool = False) -> Tensor:
    """matrix @ dense, or of its transpose, with gradients of any order by `dense`."""
    if isinstance(matrix, CSR):
        return _Product.apply(dense, matrix, transposed)  # type: ignore[no-any-return,no-untyped-call]
    return (matrix.T if transposed else matrix) @ dense


class _Product(torch.autograd.Function):
    """sparse @ dense or sparse.T @ dense; each is the other's derivative, so any order of gradient exists."""

    @staticmethod
    def forward(ctx: Any, dense: Tensor, matrix: CSR, transposed: bool) -> Tensor:
        ctx.matrix, ctx.transposed = matrix, transposed
        array = dense.detach().contiguous().numpy()
        return torch.from_numpy(matrix.multiply_transposed(array) if transposed else matrix.multiply(array))

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return _Product.apply(gradient, ctx.matrix, not ctx.transposed), None, None  # type: ignore[no-untyped-call]


def by_autograd(model: nn.Module, loss_of: Callable[[int], Tensor], seed: int) -> Callable[[int], Gradients]:
    """The gradients of a loss that torch follows. What it draws, as dropout does, depends on (seed, k) alone."""

    def gradients(k: int) -> Gradients:
        model.train()
        with seeded(seed, k):
            loss = loss_of(k)
        return differentiate(loss, model) if torch.isfinite(loss) else (float(loss.detach()), {})

    return gradients
