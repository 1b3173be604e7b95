"""GPN on a CPU: the numbers of `gpn.py`, from the nodes that an episode can see, by compiled loops."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from fewnode.engine import episode
from fewnode.engine.fields import Nodes, ReceptiveFields
from fewnode.engine.sparse import CSR
from fewnode.gpn import Encoder, Networks, TrainingBatch
from fewnode.machine import memory

Array = NDArray[Any]
LAYERS = 2
"""Of the encoder and of the valuator: what the loops are written for. Other depths go through the reference."""


class EncoderField(NamedTuple):
    """What z of some nodes depends on: rows of X or P, a hop for each layer, and the nodes of the hidden layer."""

    rows: CSR | Tensor
    hops: episode.EncoderHops
    hidden: Nodes


class ScoreField(NamedTuple):
    """What the scores of some nodes depend on: rows of X, two hops inwards, and degrees."""

    rows: CSR | Tensor
    hops: episode.ScoreHops
    degree: Array


class Compiled:
    """The engine for the paper's networks on a CPU. Weights come with each call; what it keeps is of the graph."""

    def __init__(self, fields: ReceptiveFields) -> None:
        self.fields = fields
        self._asked: tuple[tuple[Any, ...], EncoderField, ScoreField | None] | None = None

    @staticmethod
    def computes(networks: Networks, distance: str) -> bool:
        """Whether the loops are written for these networks."""
        encoder, valuator = networks.encoder, networks.valuator
        paper = isinstance(encoder, Encoder) and len(encoder.weight) == LAYERS
        return paper and distance == "sqeuclidean" and (valuator is None or len(valuator.a) == LAYERS)

    def loss_and_gradients(
        self, networks: Networks, batch: TrainingBatch, dropout: float, seed: int
    ) -> tuple[float, list[Tensor]]:
        memory.keep()
        support, query, *parts = _arrays(batch.support, batch.query, batch.segment, batch.task, batch.query_y)
        first, second, *bias = _arrays(*networks.encoder.parameters())
        field = self._encoder_field(networks, np.concatenate((support, query)), copied=False)
        hw = _product(field.rows, first)
        z, h = episode.encode(hw, field.hops, bias, second, field.hidden, float(dropout), seed)

        importance = np.zeros(support.size, z.dtype)
        if networks.valuator is not None:
            seen = self._score_field(support)
            w, b, a = _arrays(*networks.valuator.parameters())
            raw = _product(seen.rows, w)[:, 0]
            importance, scores = episode.value(raw, b, seen.hops, a, seen.degree, networks.valuator.eps)
        loss, by_z, by_importance = episode.prototype_loss(z, importance, *parts, batch.n_way, batch.n_tasks)

        rate = float(dropout)
        by_hw, by_b1, by_second, by_b2 = episode.encode_gradient(z, h, field.hops, hw.shape[0], second, by_z, rate)
        gradients = [_transposed(field.rows, by_hw), by_second, by_b1, by_b2]
        if networks.valuator is not None:
            by_raw, by_b, by_a = episode.value_gradient(importance, scores, seen.hops, a, by_importance)
            gradients += [_transposed(seen.rows, by_raw[:, None]), by_b, by_a]
        return float(loss), [torch.from_numpy(gradient) for gradient in gradients]

    def embed(
        self, networks: Networks, nodes: Nodes | None = None, valued: Nodes | None = None
    ) -> tuple[Float[Tensor, "k d"], Float[Tensor, " v"]]:
        """z of the nodes, or of all, and the importance of those that are `valued`: by default of the same ones."""
        valued = nodes if valued is None else valued
        field, seen = self._fields(networks, nodes, valued)
        first, second, *bias = _arrays(*networks.encoder.parameters())
        z, _ = episode.encode(_product(field.rows, first), field.hops, bias, second, field.hidden, 0.0, 0)
        if networks.valuator is None or seen is None:
            count = self.fields.n if valued is None else valued.size
            return torch.from_numpy(z), torch.from_numpy(np.zeros(count, z.dtype))
        w, b, a = _arrays(*networks.valuator.parameters())
        raw = _product(seen.rows, w)[:, 0]
        importance, _ = episode.value(raw, b, seen.hops, a, seen.degree, networks.valuator.eps)
        return torch.from_numpy(z), torch.from_numpy(importance)

    # --- what is read of the graph ---

    def _fields(
        self, networks: Networks, nodes: Nodes | None, valued: Nodes | None
    ) -> tuple[EncoderField, ScoreField | None]:
        """Kept until other nodes are asked about: a pool of validation tasks is asked about again and again."""
        key = (nodes, valued, networks.encoder.graph, networks.valuator is None)
        if self._asked is None or any(ours is not theirs for ours, theirs in zip(self._asked[0], key, strict=True)):
            seen = None if networks.valuator is None else self._score_field(valued)
            self._asked = (key, self._encoder_field(networks, nodes, copied=nodes is not None), seen)
        return self._asked[1:]

    def _encoder_field(self, networks: Networks, nodes: Nodes | None, copied: bool) -> EncoderField:
        """Two hops for a GCN. Sparse rows are `copied` side by side if they are to be read several times."""
        fields = self.fields
        if not networks.encoder.graph:
            return EncoderField(fields.features(nodes), (None, None), fields.everyone if nodes is None else nodes)
        rows, inner, outer, hidden = fields.two_layers(nodes, copied=copied)
        return EncoderField(rows, (None if inner is None else inner.arrays, outer.arrays), hidden)

    def _score_field(self, nodes: Nodes | None) -> ScoreField:
        near = self.fields.reach(nodes)
        far = self.fields.reach(near.around, in_order=True)
        hops = (far.matrix.arrays, far.own, near.matrix.arrays, near.own)
        degree = self.fields.degree if nodes is None else self.fields.degree[nodes]
        return ScoreField(self.fields.features(far.around), hops, degree)


def _arrays(*tensors: Tensor) -> list[Array]:
    return [tensor.detach().numpy() for tensor in tensors]


def _product(rows: CSR | Tensor, weight: Array) -> Array:
    if isinstance(rows, CSR):
        return rows.multiply(weight)
    return (rows @ torch.from_numpy(weight)).numpy()


def _transposed(rows: CSR | Tensor, gradient: Array) -> Array:
    if isinstance(rows, CSR):
        return rows.multiply_transposed(gradient)
    return (rows.T @ torch.from_numpy(gradient)).numpy()
