"""GPN as its authors' public code has it, which differs from the paper: docs/deviations.md lists how.

Encoder and valuator are both GCNs of two layers, the second without ReLU. A support node weighs its score divided by
the sum of its class, where the paper has a softmax.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from fewnode.engine.fields import Nodes, ReceptiveFields
from fewnode.engine.sparse import CSR
from fewnode.gpn import Networks, TrainingBatch, WholeGraph, batch_log_prob, kept_units
from fewnode.train import differentiate

Matrix = Tensor | CSR


class Convolutions(nn.Module):
    """Two GCN layers; ReLU and dropout between them. First weights as in the authors' code: ± 1/√width, uniform."""

    def __init__(self, n_features: int, hidden: Sequence[int], layer: int) -> None:
        super().__init__()
        self.weight = nn.ParameterList(torch.empty(a, b) for a, b in pairwise([n_features, *hidden]))
        self.bias = nn.ParameterList(torch.empty(b) for b in hidden)
        self.layer = layer
        """What dropout counts its hidden units as: those of the two networks are dropped independently."""
        for weight, bias in zip(self.weight, self.bias, strict=True):
            bound = weight.shape[1] ** -0.5
            nn.init.uniform_(weight, -bound, bound)
            nn.init.uniform_(bias, -bound, bound)

    def forward(
        self, x: Matrix, inner: Matrix | None, outer: Matrix, hidden: Tensor, dropout: float, seed: int
    ) -> Float[Tensor, "k d"]:
        """Of rows that `outer` sums over the nodes `hidden`; `inner` is None where x is already summed."""
        h = x @ self.weight[0]
        h = F.relu((h if inner is None else inner @ h) + self.bias[0])
        if dropout > 0:
            h = h * kept_units(hidden, h.shape[1], dropout, seed, self.layer) / (1 - dropout)
        z: Tensor = outer @ (h @ self.weight[1]) + self.bias[1]
        return z


class AuthorsNetworks(Networks):
    """The encoder, and the valuator with its last, linear layer."""

    def __init__(self, n_features: int, hidden: Sequence[int]) -> None:
        super().__init__(Convolutions(n_features, hidden, layer=1), None)
        self.scores = Convolutions(n_features, hidden, layer=2)
        self.last = nn.Linear(hidden[-1], 1)

    def forward(self, g: WholeGraph, dropout: float = 0.0, seed: int = 0) -> tuple[Tensor, Tensor]:
        seen = (g.x, g.a_hat, g.a_hat, torch.arange(g.degree.numel(), device=g.degree.device), dropout, seed)
        return self.encoder(*seen), self.importance(self.scores(*seen), g.degree)

    def importance(self, scores: Float[Tensor, "k d"], degree: Float[Tensor, " k"]) -> Float[Tensor, " k"]:
        """The logarithm of sigmoid(log(deg) s): its softmax over a class is the score divided by the sum of the scores.

        Their log(0) of an isolated node is not a number in the end; here it counts as one neighbour.
        """
        return F.logsigmoid(degree.clamp(min=1).log() * self.last(scores).squeeze(1))


class AuthorsEngine:
    """Computes `AuthorsNetworks` from the nodes that an episode can see; gradients by autograd."""

    def __init__(self, fields: ReceptiveFields, distance: str) -> None:
        self.fields, self.distance = fields, distance

    def loss_and_gradients(
        self, networks: Any, batch: TrainingBatch, dropout: float, seed: int
    ) -> tuple[float, list[Tensor]]:
        nodes, k = torch.cat([batch.support, batch.query]).numpy(), batch.support.numel()
        z = self._read(networks.encoder, nodes, dropout, seed)
        importance = self._value(networks, nodes[:k], dropout, seed)
        found = batch_log_prob(z[:k], importance, z[k:], batch, self.distance)
        return differentiate(F.nll_loss(found, batch.query_y), networks)

    def embed(
        self, networks: Any, nodes: Nodes | None = None, valued: Nodes | None = None
    ) -> tuple[Float[Tensor, "k d"], Float[Tensor, " v"]]:
        with torch.inference_mode():
            return self._read(networks.encoder, nodes), self._value(networks, nodes if valued is None else valued)

    def _read(self, network: nn.Module, nodes: Nodes | None, dropout: float = 0.0, seed: int = 0) -> Tensor:
        rows, inner, outer, hidden = self.fields.two_layers(nodes)
        z: Tensor = network(rows, inner, outer, torch.from_numpy(hidden), dropout, seed)
        return z

    def _value(
        self, networks: AuthorsNetworks, nodes: Nodes | None, dropout: float = 0.0, seed: int = 0
    ) -> Float[Tensor, " v"]:
        degree = torch.from_numpy(self.fields.degree if nodes is None else self.fields.degree[nodes])
        return networks.importance(self._read(networks.scores, nodes, dropout, seed), degree)
