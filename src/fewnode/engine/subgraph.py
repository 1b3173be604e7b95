"""Encoders of somebody else: any torch module that takes `x, edge_index`, as PyG's do, on what the nodes can see."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from fewnode.engine.fields import Nodes, ReceptiveFields
from fewnode.engine.sparse import CSR
from fewnode.errors import FewnodeError
from fewnode.gpn import Networks, TrainingBatch, WholeGraph, batch_log_prob
from fewnode.seeds import seeded
from fewnode.train import differentiate

PYG_ENCODERS = {"sage": "GraphSAGE", "gat": "GAT", "gin": "GIN"}


class ModuleEncoder(nn.Module):
    """The module on the exact subgraph that some nodes can see.

    `hops` is how far the module looks. One hop more is taken, because modules that normalise by degree need the whole
    neighbourhood of their outermost nodes.
    """

    def __init__(self, module: nn.Module, hops: int | None = None) -> None:
        super().__init__()
        self.module = module
        self.hops = hops or _count_hops(module)

    def forward(self, fields: ReceptiveFields, nodes: Nodes | None) -> Float[Tensor, "k d"]:
        return self.apply_to(self.read(fields, nodes))

    def read(self, fields: ReceptiveFields, nodes: Nodes | None) -> tuple[Tensor, Tensor, Tensor]:
        """The subgraph as `x, edge_index`, and the place of each of `nodes` in it."""
        around = fields.everyone if nodes is None else fields.ball(nodes, self.hops + 1)
        x = fields.features(around)
        place = np.searchsorted(around, fields.everyone if nodes is None else nodes)
        return x.to_dense() if isinstance(x, CSR) else x, _arcs(fields, around), torch.from_numpy(place)

    def apply_to(self, field: tuple[Tensor, Tensor, Tensor]) -> Float[Tensor, "k d"]:
        x, edge_index, place = field
        z: Tensor = self.module(x, edge_index)
        return z[place]


def pyg_encoder(name: str, n_features: int, hidden: Sequence[int], dropout: float) -> ModuleEncoder:
    """PyG's `sage`, `gat` or `gin`."""
    try:
        import torch_geometric.nn.models as pyg  # costs seconds to import, and only these encoders need it
    except ModuleNotFoundError:
        raise FewnodeError(f"encoder {name} needs PyG: pip install 'fewnode[pyg]'") from None
    model = getattr(pyg, PYG_ENCODERS[name])(n_features, hidden[0], len(hidden), hidden[-1], dropout=dropout)
    return ModuleEncoder(model, hops=len(hidden))


def _count_hops(module: nn.Module) -> int:
    try:
        from torch_geometric.nn import MessagePassing
    except ModuleNotFoundError:
        convolutions: list[nn.Module] = []
    else:
        convolutions = [part for part in module.modules() if isinstance(part, MessagePassing)]
    if not convolutions:
        raise FewnodeError(
            f"cannot tell how many hops {type(module).__name__} looks; pass ModuleEncoder(encoder, hops=…)"
        )
    return sum(int(getattr(part, "K", 1)) for part in convolutions)


def _arcs(fields: ReceptiveFields, around: Nodes) -> Int[Tensor, "2 e"]:
    """Arcs among the nodes `around` (sorted), source above target, in their own numbering, without self-loops."""
    rows = fields.adj.copied(around)
    target = np.repeat(np.arange(around.size), rows.stop - rows.start)
    place = np.minimum(np.searchsorted(around, rows.indices), around.size - 1)
    inside = (around[place] == rows.indices) & (place != target)
    return torch.from_numpy(np.stack([place[inside], target[inside]]).astype(np.int64))


class Subgraph:
    """The engine for such an encoder: z from the subgraph, scores from the whole graph, gradients by autograd.

    Dropout is the module's own, and draws from torch's stream.
    """

    def __init__(self, fields: ReceptiveFields, whole: WholeGraph, distance: str) -> None:
        self.fields, self.whole, self.distance = fields, whole, distance

    def loss_and_gradients(
        self, networks: Networks, batch: TrainingBatch, dropout: float, seed: int
    ) -> tuple[float, list[Tensor]]:
        nodes, k = torch.cat([batch.support, batch.query]).cpu().numpy(), batch.support.numel()
        networks.train()
        with seeded(seed):
            z = self._encode(networks, nodes)
        found = batch_log_prob(z[:k], self._value(networks, nodes[:k]), z[k:], batch, self.distance)
        return differentiate(F.nll_loss(found, batch.query_y), networks)

    def embed(
        self, networks: Networks, nodes: Nodes | None = None, valued: Nodes | None = None
    ) -> tuple[Float[Tensor, "k d"], Float[Tensor, " v"]]:
        networks.eval()
        with torch.inference_mode():
            return self._encode(networks, nodes), self._value(networks, nodes if valued is None else valued)

    def _encode(self, networks: Networks, nodes: Nodes | None) -> Float[Tensor, "k d"]:
        encoder: Any = networks.encoder
        x, edge_index, place = (part.to(self.whole.x.device) for part in encoder.read(self.fields, nodes))
        return encoder.apply_to((x, edge_index, place))  # type: ignore[no-any-return]

    def _value(self, networks: Networks, nodes: Nodes | None) -> Float[Tensor, " v"]:
        if networks.valuator is None:
            return self.whole.degree.new_zeros(self.fields.n if nodes is None else nodes.size)
        every: Tensor = networks.valuator(self.whole)
        return every if nodes is None else every[nodes]
