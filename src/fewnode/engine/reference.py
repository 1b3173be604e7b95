"""The engine by definition: `gpn.py` on the whole graph, gradients by autograd. Any device, depth and distance."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from fewnode.engine.fields import Nodes
from fewnode.gpn import Networks, TrainingBatch, WholeGraph, loss
from fewnode.train import differentiate


class Reference:
    """Each call reads the whole graph."""

    def __init__(self, graph: WholeGraph, distance: str) -> None:
        self.graph, self.distance = graph, distance

    def loss_and_gradients(
        self, networks: Networks, batch: TrainingBatch, dropout: float, seed: int
    ) -> tuple[float, list[Tensor]]:
        return differentiate(loss(networks, self.graph, batch, self.distance, dropout, seed), networks)

    def embed(
        self, networks: Networks, nodes: Nodes | None = None, valued: Nodes | None = None
    ) -> tuple[Float[Tensor, "k d"], Float[Tensor, " v"]]:
        with torch.inference_mode():
            z, importance = networks(self.graph)
        valued = nodes if valued is None else valued
        return z if nodes is None else z[nodes], importance if valued is None else importance[valued]
