"""Networks of torch for GPN, and `gpn.py` as an engine: other encoders, valuators, depths, distances and devices."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from fewnode import gpn
from fewnode.episodes import Batch
from fewnode.errors import FewnodeError
from fewnode.gpn import Encoder, Neighbourhood, Networks
from fewnode.graph import Graph, Ints
from fewnode.seeds import seeded
from fewnode.train import Gradients, Weights

EVERYWHERE = 1 << 20
"""Hops of a module that does not say how far it looks."""
PYG_ENCODERS = {"sage": "GraphSAGE", "gat": "GAT", "gin": "GIN"}


class Reference:
    """`gpn.py` on the neighbourhood that the nodes of a call can see. Weights come with each call."""

    name = "reference"

    def __init__(
        self,
        networks: Networks,
        graph: Graph,
        distance: str = "sqeuclidean",
        device: str = "cpu",
        degree: NDArray[Any] | None = None,
    ) -> None:
        """`degree`, such as sums of weights, in place of the number of neighbours in Eq. (9)."""
        self.device = _checked(device)
        self.networks, self.graph, self.distance, self.degree = networks.to(self.device), graph, distance, degree

    def loss_and_gradients(self, weights: Weights, batch: Batch, dropout: float, seed: int) -> Gradients:
        self._take(weights)
        self.networks.train()
        g = self._around([batch.support, batch.query])
        with seeded(seed):  # a module of somebody else may draw
            loss = gpn.loss(self.networks, g, batch, self.distance, dropout, seed)
        for name, kept in self.networks.named_buffers():
            weights[name][...] = kept.cpu().numpy()
        named = dict(self.networks.named_parameters())
        slopes = torch.autograd.grad(loss, list(named.values()), allow_unused=True, materialize_grads=True)
        return float(loss.detach()), {name: slope.cpu().numpy() for name, slope in zip(named, slopes, strict=True)}

    @torch.no_grad()
    def embed(self, weights: Weights, nodes: Ints | None = None) -> tuple[NDArray[Any], NDArray[Any]]:
        """z and importance of the nodes, or of all."""
        self._take(weights)
        self.networks.eval()
        g = self._around(None if nodes is None else [nodes])
        z, importance = self.networks(g)
        place = slice(None) if nodes is None else g.places(nodes)
        return z[place].cpu().numpy(), importance[place].cpu().numpy()

    def answerer(self, batch: Batch) -> Callable[[Weights], NDArray[Any]]:
        """Eq. (13) for the tasks of a batch, row after row, by any weights; the graph is read once."""
        g = self._around([batch.support, batch.query])

        @torch.no_grad()
        def answer(weights: Weights) -> NDArray[Any]:
            self._take(weights)
            self.networks.eval()
            found: NDArray[Any] = gpn.task_log_prob(self.networks, g, batch, self.distance).exp().cpu().numpy()
            return found

        return answer

    def _around(self, parts: Sequence[Ints] | None) -> Neighbourhood:
        every = parts is None or self.networks.hops > EVERYWHERE
        nodes, dtype = None if every else np.concatenate(parts or []), next(self.networks.parameters()).dtype
        g = Neighbourhood.of(self.graph, nodes, self.networks.hops, dtype, self.device)
        if self.degree is None:
            return g
        return replace(g, degree=torch.from_numpy(self.degree[g.nodes.cpu().numpy()]).to(self.device, dtype))

    @torch.no_grad()
    def _take(self, weights: Weights) -> None:
        for name, tensor in self.networks.state_dict().items():
            tensor.copy_(torch.from_numpy(weights[name]))


def _checked(device: str) -> torch.device:
    try:
        chosen = torch.device(device)
    except RuntimeError:
        raise FewnodeError(f"unknown device {device!r}; expected cpu, or cuda for a GPU") from None
    if chosen.type == "cuda" and not torch.cuda.is_available():
        raise FewnodeError(f"device {device}: there is no GPU that torch could use here; choose the device cpu")
    return chosen


def weights_of(network: nn.Module) -> Weights:
    """Parameters, and what a module of somebody else keeps beside them, copied."""
    return {name: tensor.detach().cpu().numpy().copy() for name, tensor in network.state_dict().items()}


def shapes_of(build: Callable[[], nn.Module]) -> dict[str, tuple[int, ...]]:
    """Of the weights of a network, which is not made for that."""
    with torch.device("meta"):
        return {name: tuple(tensor.shape) for name, tensor in build().state_dict().items()}


# --- the formulation of the authors' code (docs/deviations.md) ----------------------------------------------------


class Convolutions(nn.Module):
    """Two GCN layers; ReLU and dropout between them. First weights as in the authors' code: ± 1/√width, uniform."""

    hops = 2

    def __init__(self, n_features: int, hidden: Sequence[int], layer: int) -> None:
        """`layer`: what dropout counts the hidden units as: those of the two networks are dropped independently."""
        super().__init__()
        self.weight = nn.ParameterList(torch.empty(a, b) for a, b in pairwise([n_features, *hidden]))
        self.bias = nn.ParameterList(torch.empty(b) for b in hidden)
        self.layer = layer
        for weight, bias in zip(self.weight, self.bias, strict=True):
            bound = weight.shape[1] ** -0.5
            nn.init.uniform_(weight, -bound, bound)
            nn.init.uniform_(bias, -bound, bound)

    def forward(self, g: Neighbourhood, dropout: float = 0.0, seed: int = 0) -> Float[Tensor, "n d"]:
        h = gpn.convolve(g.a_hat, g.x @ self.weight[0], self.bias[0])
        if dropout > 0:
            h = h * gpn.kept_units(g.nodes, h.shape[1], dropout, seed, self.layer) / (1 - dropout)
        z: Tensor = g.a_hat @ (h @ self.weight[1]) + self.bias[1]
        return z


class AuthorsNetworks(Networks):
    """GPN as its authors' public code has it. Encoder and valuator are both GCNs, the valuator with a linear layer.

    A support node weighs its score divided by the sum of its class, where the paper has a softmax: the importance is
    the logarithm of sigmoid(log(deg) s), whose softmax is just that. Their log(0) of an isolated node is not a number
    in the end; here it counts as one neighbour.
    """

    def __init__(self, n_features: int, hidden: Sequence[int]) -> None:
        super().__init__(Convolutions(n_features, hidden, layer=1), None)
        self.scores = Convolutions(n_features, hidden, layer=2)
        self.last = nn.Linear(hidden[-1], 1)

    def forward(self, g: Neighbourhood, dropout: float = 0.0, seed: int = 0) -> tuple[Tensor, Tensor]:
        score = self.last(self.scores(g, dropout, seed)).squeeze(1)
        return self.encoder(g, dropout, seed), F.logsigmoid(g.degree.clamp(min=1).log() * score)


# --- encoders and valuators of somebody else ----------------------------------------------------------------------


class ModuleEncoder(nn.Module):
    """A torch module that takes `x, edge_index`, as PyG's do. `hops` is how far it looks; it reads all nodes without.

    One hop more is read, because modules that normalise by degree need the whole neighbourhood of their outermost
    nodes. Dropout is the module's own, and draws from torch's stream.
    """

    def __init__(self, module: nn.Module, hops: int = EVERYWHERE) -> None:
        super().__init__()
        self.module = module
        self.hops = 1 + hops

    def forward(self, g: Neighbourhood, dropout: float = 0.0, seed: int = 0) -> Float[Tensor, "n d"]:
        edge_index = torch.stack([g.source, g.target])[:, g.source != g.target]
        z: Tensor = self.module(g.x.to_dense(), edge_index)
        return z


def pyg_encoder(name: str, n_features: int, hidden: Sequence[int], dropout: float) -> ModuleEncoder:
    """PyG's `sage`, `gat` or `gin`."""
    try:
        import torch_geometric.nn.models as pyg  # costs seconds to import, and only these encoders need it
    except ModuleNotFoundError:
        raise FewnodeError(f"encoder {name} needs PyG: pip install 'fewnode[pyg]'") from None
    model = getattr(pyg, PYG_ENCODERS[name])(n_features, hidden[0], len(hidden), hidden[-1], dropout=dropout)
    return ModuleEncoder(model, hops=len(hidden))


def build_encoder(name: str | nn.Module, n_features: int, hidden: Sequence[int], dropout: float) -> nn.Module:
    """The paper's `gcn`, the graph-free `mlp`, PyG's `sage`, `gat`, `gin`, or a copy of a module of the user's own."""
    if isinstance(name, nn.Module):
        own = copy.deepcopy(name)
        return own if isinstance(own, Encoder | ModuleEncoder) else ModuleEncoder(own)
    if name in PYG_ENCODERS:
        return pyg_encoder(name, n_features, hidden, dropout)
    return gpn.Encoder(n_features, hidden, graph=name == "gcn")


def build_valuator(given: bool | nn.Module | Callable[..., nn.Module], n_features: int, eps: float) -> nn.Module | None:
    """The paper's, none, a copy of a module of the user's own, or what their class makes of (n_features, eps=…)."""
    if isinstance(given, bool):
        return gpn.Valuator(n_features, eps=eps) if given else None
    return copy.deepcopy(given) if isinstance(given, nn.Module) else given(n_features, eps=eps)
