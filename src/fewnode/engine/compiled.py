"""GPN on a CPU with NumPy alone: the numbers of `gpn.py`, from the nodes that an episode can see, by compiled loops."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fewnode.engine import episode
from fewnode.engine.fields import Nodes, ReceptiveFields, Rows
from fewnode.engine.sparse import CSR
from fewnode.episodes import Batch

Array = NDArray[Any]
Weights = Mapping[str, Array]
"""By the names that `gpn.Networks` has for them."""
ENCODER = ("encoder.weight.0", "encoder.weight.1", "encoder.bias.0", "encoder.bias.1")
VALUATOR = ("valuator.w", "valuator.b", "valuator.a")
LAYERS = 2
"""Of the encoder and of the valuator: what the loops are written for."""


class EncoderField(NamedTuple):
    """What z of some nodes depends on: rows of X or P, a hop for each layer, and the nodes of the hidden layer."""

    rows: Rows
    hops: episode.EncoderHops
    hidden: Nodes


class ScoreField(NamedTuple):
    """What the scores of some nodes depend on: rows of X, two hops inwards, and degrees."""

    rows: Rows
    hops: episode.ScoreHops
    degree: Array


class Compiled:
    """The engine for the paper's networks on a CPU. Weights come with each call; what it keeps is of the graph."""

    name = "compiled"

    def __init__(self, fields: ReceptiveFields, graph: bool = True, valuator: bool = True, eps: float = 1.0) -> None:
        """`graph`: the encoder is a GCN, not an MLP. Without a `valuator` all nodes are of equal importance."""
        self.fields, self.graph, self.valuator, self.eps = fields, graph, valuator, eps

    def loss_and_gradients(
        self, weights: Weights, batch: Batch, dropout: float, seed: int
    ) -> tuple[float, dict[str, Array]]:
        """Eq. (14) for the episodes of a batch, and its derivative by each weight."""
        first, second, *bias = (weights[name] for name in ENCODER)
        field = self._encoder_field(np.concatenate((batch.support, batch.query)), copied=False)
        hw, rate = _product(field.rows, first), float(dropout)
        z, h = episode.encode(hw, field.hops, bias, second, field.hidden, rate, seed)

        importance = np.zeros(batch.support.size, z.dtype)
        if self.valuator:
            seen = self._score_field(batch.support)
            importance, scores = self._value(weights, seen)
        parts = batch.segment, batch.task, batch.query_y, batch.n_way, batch.n_tasks
        loss, by_z, by_importance = episode.prototype_loss(z, importance, *parts)

        by_hw, by_b1, by_second, by_b2 = episode.encode_gradient(z, h, field.hops, hw.shape[0], second, by_z, rate)
        gradients = dict(zip(ENCODER, (_transposed(field.rows, by_hw), by_second, by_b1, by_b2), strict=True))
        if self.valuator:
            a = weights["valuator.a"]
            by_raw, by_b, by_a = episode.value_gradient(importance, scores, seen.hops, a, by_importance)
            gradients |= zip(VALUATOR, (_transposed(seen.rows, by_raw[:, None]), by_b, by_a), strict=True)
        return float(loss), gradients

    @np.errstate(over="ignore", invalid="ignore")  # weights may be too large: no answer is better than a warning
    def embed(self, weights: Weights, nodes: Nodes | None = None) -> tuple[Array, Array]:
        """z and importance of the nodes, or of all."""
        z = _encode(weights, self._encoder_field(nodes, copied=nodes is not None))
        if not self.valuator:
            return z, np.zeros(z.shape[0], z.dtype)
        return z, self._value(weights, self._score_field(nodes))[0]

    def answerer(self, batch: Batch) -> Callable[[Weights], Array]:
        """Eq. (13) for the tasks of a batch, row after row, by any weights; the graph is read once."""
        k, n_classes = batch.support.size, batch.n_tasks * batch.n_way
        nodes, place = np.unique(np.concatenate((batch.support, batch.query)), return_inverse=True)
        valued, order = np.unique(batch.support, return_inverse=True)
        field, seen = self._encoder_field(nodes, copied=True), self._score_field(valued) if self.valuator else None

        def answer(weights: Weights) -> Array:
            z = _encode(weights, field)[place]
            share = np.ones(k) if seen is None else np.exp(self._value(weights, seen)[0][order])  # of numbers below 1
            share = share / np.bincount(batch.segment, share, n_classes)[batch.segment]
            prototypes = np.zeros((n_classes, z.shape[1]))
            np.add.at(prototypes, batch.segment, share[:, None] * z[:k])
            near = prototypes.reshape(batch.n_tasks, batch.n_way, -1)[batch.task]
            score = -np.square(z[k:, None] - near).sum(axis=2)
            power = np.exp(score - score.max(axis=1, keepdims=True))
            return np.asarray(power / power.sum(axis=1, keepdims=True), z.dtype)

        return answer

    def _value(self, weights: Weights, seen: ScoreField) -> tuple[Array, episode.Scores]:
        w, b, a = (weights[name] for name in VALUATOR)
        return episode.value(_product(seen.rows, w)[:, 0], b, seen.hops, a, seen.degree, self.eps)

    # --- what is read of the graph ---

    def _encoder_field(self, nodes: Nodes | None, copied: bool) -> EncoderField:
        """Two hops for a GCN. Sparse rows are `copied` side by side if they are to be read several times."""
        fields = self.fields
        if not self.graph:
            return EncoderField(fields.features(nodes), (None, None), fields.everyone if nodes is None else nodes)
        rows, inner, outer, hidden = fields.two_layers(nodes, copied=copied)
        return EncoderField(rows, (None if inner is None else inner.arrays, outer.arrays), hidden)

    def _score_field(self, nodes: Nodes | None) -> ScoreField:
        near = self.fields.reach(nodes)
        far = self.fields.reach(near.around, in_order=True)
        hops = (far.matrix.arrays, far.own, near.matrix.arrays, near.own)
        degree = self.fields.degree if nodes is None else self.fields.degree[nodes]
        return ScoreField(self.fields.features(far.around), hops, degree)


def _encode(weights: Weights, field: EncoderField) -> Array:
    first, second, *bias = (weights[name] for name in ENCODER)
    z, _ = episode.encode(_product(field.rows, first), field.hops, bias, second, field.hidden, 0.0, 0)
    return z


def _product(rows: Rows, weight: Array) -> Array:
    return rows.multiply(weight) if isinstance(rows, CSR) else np.asarray(rows @ weight)


def _transposed(rows: Rows, gradient: Array) -> Array:
    return rows.multiply_transposed(gradient) if isinstance(rows, CSR) else np.asarray(rows.T @ gradient)


# --- first weights ------------------------------------------------------------------------------------------------


def weight_shapes(n_features: int, hidden: Sequence[int], valuator: bool) -> dict[str, tuple[int, ...]]:
    """The weights of the networks, in the order in which they are drawn."""
    first, second = hidden
    encoder: tuple[tuple[int, ...], ...] = ((n_features, first), (first, second), (first,), (second,))
    scores = ((n_features, 1), (1,), (LAYERS, 2)) if valuator else ()
    return dict(zip(ENCODER + VALUATOR, encoder + scores, strict=False))


def first_weights(shapes: Mapping[str, tuple[int, ...]], seed: int) -> dict[str, Array]:
    """Matrices by Xavier's uniform law (Deviation D10), vectors of zeros: the numbers that `gpn.py` draws by torch.

    Torch's generator is a Mersenne Twister, too, and its product and sum are rounded once.
    """
    generator = np.random.RandomState(seed & 0xFFFFFFFF)

    def drawn(shape: tuple[int, ...]) -> Array:
        if len(shape) == 1:
            return np.zeros(shape, np.float32)
        bound = np.float32((6 / sum(shape)) ** 0.5)
        share = (generator.randint(1 << 32, size=shape, dtype=np.uint32) & 0xFFFFFF) / (1 << 24)
        return (share * float(2 * bound) - float(bound)).astype(np.float32)

    return {name: drawn(shape) for name, shape in shapes.items()}
