"""GPN in three formulations that give the same numbers: `naive`, `pyg` and `fewnode`.

naive: as the authors' code has it: dense attributes, the whole graph for every training episode and every task.
pyg: what one writes with PyG: `GCNConv` and message passing on sparse attributes, full batch; one embedding of all
nodes for an evaluation. fewnode: ours, the receptive field of an episode alone.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fewnode.episodes import Episode, EpisodeSampler
from fewnode.evaluation import Probabilities
from fewnode.graph import Dataset, is_sparse
from fewnode.methods.gpn import GPN, Batch, Networks, Valuator
from fewnode.nn import GCN, Prepared, as_tensor, normalised
from fewnode.train import Adam, step

DROPOUT, LR, WEIGHT_DECAY = 0.5, 0.005, 5e-4


class Formulation(Protocol):
    """One way to train GPN and to ask it; it starts from copies of the `networks` it is given."""

    model: Any

    def weights(self) -> list[Tensor]:
        """W, b of each layer of the encoder, then w, b and a of the valuator; PyG's W are transposed."""

    def loss(self, task: Episode) -> Tensor: ...

    def episode(self, train: EpisodeSampler, t: int) -> None:
        """Train on task t."""

    def predict(self, tasks: Sequence[Episode]) -> list[Probabilities]: ...


def initial_networks(data: Dataset) -> Networks:
    return GPN(dropout=DROPOUT)._build(data.graph.n_features, DROPOUT)


class Ours:
    """The formulation of `fewnode.methods.gpn`."""

    def __init__(self, data: Dataset, networks: Networks) -> None:
        self.graph, self.model = data.graph, copy.deepcopy(networks)
        self.prepared = Prepared(data.graph, data.graph.x)
        self.optimizer = Adam(list(self.model.parameters()), LR, WEIGHT_DECAY)

    def weights(self) -> list[Tensor]:
        encoder, valuator = parts(self.model)
        return [*encoder.weight, *encoder.bias, valuator.w, valuator.b, valuator.a]

    def loss(self, task: Episode) -> Tensor:
        return self.model.loss(self.prepared, Batch([task], task.n_way), "sqeuclidean")

    def episode(self, train: EpisodeSampler, t: int) -> None:
        step(self.model, self.optimizer, self.loss, train, t)

    def predict(self, tasks: Sequence[Episode]) -> list[Probabilities]:
        gpn = GPN()
        gpn.networks_, gpn._ready = self.model.eval(), (self.graph, self.prepared)
        return gpn.predict_tasks(self.graph, tasks)


class WholeGraph:
    """What the other two share: every node in every step, by plain autograd and torch's Adam; `embed` differs."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.optimizer = torch.optim.Adam(model.parameters(), lr=LR, weight_decay=WEIGHT_DECAY)

    def episode(self, train: EpisodeSampler, t: int) -> None:
        self.model.train()
        self.optimizer.zero_grad()
        self.loss(train[t]).backward()
        self.optimizer.step()

    def weights(self) -> list[Tensor]:
        return self.model.weights()  # type: ignore[no-any-return]

    def loss(self, task: Episode) -> Tensor:
        return F.nll_loss(self.log_prob(task, *self.model()), torch.from_numpy(task.query_y))

    def log_prob(self, task: Episode, z: Tensor, importance: Tensor) -> Tensor:
        """Eqs. (11)-(13), class by class."""
        centres = []
        for c in range(task.n_way):
            members = torch.from_numpy(task.support[task.support_y == c])
            centres.append(torch.softmax(importance[members], dim=0) @ z[members])
        query = z[torch.from_numpy(task.query)]
        return F.log_softmax(-(query[:, None] - torch.stack(centres)[None]).square().sum(dim=2), dim=1)


class Naive(WholeGraph):
    """The authors' formulation: each task of an evaluation runs the whole graph again."""

    def __init__(self, data: Dataset, networks: Networks) -> None:
        super().__init__(DenseGPN(data, networks))

    def predict(self, tasks: Sequence[Episode]) -> list[Probabilities]:
        self.model.eval()
        with torch.no_grad():
            return [self.log_prob(task, *self.model()).exp().numpy() for task in tasks]


class PyG(WholeGraph):
    """A PyG user's formulation: one embedding of all nodes, then task by task."""

    def __init__(self, data: Dataset, networks: Networks) -> None:
        super().__init__(sparse_gpn(data, networks))

    def predict(self, tasks: Sequence[Episode]) -> list[Probabilities]:
        self.model.eval()
        with torch.no_grad():
            z, importance = self.model()
            return [self.log_prob(task, z, importance).exp().numpy() for task in tasks]


FORMULATIONS: dict[str, Any] = {"naive": Naive, "pyg": PyG, "fewnode": Ours}


class DenseGPN(nn.Module):
    """Eqs. (2) to (10) on all nodes; X is dense, Â a sparse matrix."""

    def __init__(self, data: Dataset, networks: Networks) -> None:
        super().__init__()
        encoder, valuator = parts(networks)
        x = data.graph.x
        self.x = torch.from_numpy(x.toarray()) if is_sparse(x) else as_tensor(x)
        hat = normalised(data.graph, np.float32).tocoo()
        self.row, self.column = (torch.from_numpy(part.astype(np.int64)) for part in hat.coords)
        indices = torch.stack([self.row, self.column])
        self.adj = torch.sparse_coo_tensor(indices, torch.from_numpy(hat.data), hat.shape, check_invariants=False)
        self.centrality = torch.log(torch.from_numpy(data.graph.degree).float() + valuator.eps)
        self.weight = copies(encoder.weight)
        self.bias = copies(encoder.bias)
        self.w, self.b, self.a = copies([valuator.w, valuator.b, valuator.a])

    def forward(self) -> tuple[Tensor, Tensor]:
        h = torch.relu(torch.spmm(self.adj, self.x @ self.weight[0]) + self.bias[0])
        h = F.dropout(h, DROPOUT, self.training)
        z = torch.relu(torch.spmm(self.adj, h @ self.weight[1]) + self.bias[1])
        s = torch.tanh(self.x @ self.w + self.b).squeeze(1)
        for a in self.a:
            s = self.aggregate(s, a)
        return z, torch.sigmoid(self.centrality * s)

    def weights(self) -> list[Tensor]:
        return [*self.weight, *self.bias, self.w, self.b, self.a]

    def aggregate(self, s: Tensor, a: Tensor) -> Tensor:
        score = F.leaky_relu(a[0] * s[self.row] + a[1] * s[self.column], 0.2).exp()
        total = torch.zeros_like(s).index_add(0, self.row, score)
        return torch.zeros_like(s).index_add(0, self.row, score * s[self.column]) / total


def sparse_gpn(data: Dataset, networks: Networks) -> nn.Module:
    """The same by PyG's parts; importing them takes seconds, hence here."""
    from torch_geometric.nn import GCNConv, MessagePassing
    from torch_geometric.utils import add_self_loops, softmax

    class ScoreAggregation(MessagePassing):  # type: ignore[misc]
        """Eqs. (6)-(7)."""

        def forward(self, s: Tensor, edge_index: Tensor, a: Tensor) -> Tensor:
            return self.propagate(edge_index, s=s, a=a)  # type: ignore[no-any-return]

        def message(self, s_i: Tensor, s_j: Tensor, a: Tensor, index: Tensor, size_i: int | None) -> Tensor:
            alpha: Tensor = softmax(F.leaky_relu(a[0] * s_i + a[1] * s_j, 0.2), index, num_nodes=size_i)
            return alpha * s_j

    class SparseGPN(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            encoder, valuator = parts(networks)
            ready = data.to_pyg(sparse=True)
            self.x, self.edge_index = ready.x, ready.edge_index
            self.closed, _ = add_self_loops(self.edge_index, num_nodes=data.graph.n)
            self.centrality = torch.log(torch.from_numpy(data.graph.degree).float() + valuator.eps)
            widths = [data.graph.n_features, *(bias.numel() for bias in encoder.bias)]
            self.convs: Any = nn.ModuleList(GCNConv(a, b, cached=True) for a, b in pairwise(widths))
            for conv, weight, bias in zip(self.convs, encoder.weight, encoder.bias, strict=True):
                conv.load_state_dict({"lin.weight": weight.detach().T, "bias": bias.detach()})
            self.w, self.b, self.a = copies([valuator.w, valuator.b, valuator.a])
            self.aggregate = ScoreAggregation(aggr="add")

        def forward(self) -> tuple[Tensor, Tensor]:
            h = F.dropout(self.convs[0](self.x, self.edge_index).relu(), DROPOUT, self.training)
            z = self.convs[1](h, self.edge_index).relu()
            s = torch.tanh(self.x @ self.w + self.b)
            for a in self.a:
                s = self.aggregate(s, self.closed, a)
            return z, torch.sigmoid(self.centrality * s.squeeze(1))

        def weights(self) -> list[Tensor]:
            layers = [*(conv.lin.weight for conv in self.convs), *(conv.bias for conv in self.convs)]
            return [*layers, self.w, self.b, self.a]

    return SparseGPN()


def parts(networks: Networks) -> tuple[GCN, Valuator]:
    encoder, valuator = networks.encoder, networks.valuator
    if not isinstance(encoder, GCN) or valuator is None:
        raise TypeError("the formulations are of GPN with the paper's encoder and valuator")
    return encoder, valuator


def copies(tensors: Any) -> nn.ParameterList:
    return nn.ParameterList(tensor.detach().clone() for tensor in tensors)
