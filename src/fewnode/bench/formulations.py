"""GPN in three formulations that give the same numbers: `naive`, `pyg` and `fewnode`.

naive: `gpn.py` as the authors' code runs it: dense attributes, the whole graph for each training episode and each task.
pyg: what one writes with PyG: `GCNConv` and message passing on sparse attributes, full batch; one embedding of all
nodes for an evaluation. fewnode: the engine, which reads the receptive field of an episode alone.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fewnode.adam import Adam
from fewnode.dataset import Dataset
from fewnode.engine.door import engine_for
from fewnode.episodes import Episode, EpisodeSampler, Task
from fewnode.gpn import Batch, Encoder, Networks, TrainingBatch, Valuator, WholeGraph, batch_log_prob
from fewnode.graph import is_sparse
from fewnode.method import Probabilities
from fewnode.methods.gpn import GPN
from fewnode.recognition.task_batches import answer_tasks
from fewnode.seeds import stream
from fewnode.train import Gradients, step

DROPOUT, LR, WEIGHT_DECAY = 0.5, 0.005, 5e-4


class Formulation(Protocol):
    """One way to train GPN and to ask it; it starts from copies of the `networks` it is given."""

    model: Any

    def loss_and_gradients(self, task: Episode, dropout: float = 0.0, seed: int = 0) -> Gradients:
        """Gradients by W, b of each layer of the encoder, then by w, b and a of the valuator; PyG transposes W."""

    def episode(self, train: EpisodeSampler, t: int) -> None:
        """Train on task t."""

    def predict(self, tasks: Sequence[Task]) -> list[Probabilities]: ...


def initial_networks(data: Dataset) -> Networks:
    return GPN().build(data.graph.n_features, DROPOUT)


class Ours:
    """The formulation of `fewnode.engine`."""

    def __init__(self, data: Dataset, networks: Networks) -> None:
        self.model = copy.deepcopy(networks)
        self.engine = engine_for(self.model, data.graph)
        self.optimizer = Adam(list(self.model.parameters()), LR, WEIGHT_DECAY)

    def loss_and_gradients(self, task: Episode, dropout: float = 0.0, seed: int = 0) -> Gradients:
        return self.engine.loss_and_gradients(self.model, TrainingBatch([task]), dropout, seed)

    def episode(self, train: EpisodeSampler, t: int) -> None:
        step(self.optimizer, lambda t: self.loss_and_gradients(train[t], DROPOUT, stream(0, t)), t)

    def predict(self, tasks: Sequence[Task]) -> list[Probabilities]:
        return answer_tasks(*self.engine.embed(self.model), tasks, "sqeuclidean")


class FullBatch:
    """What the other two share: every node in every step, by plain autograd and torch's Adam; `embed` differs."""

    model: Any

    def __init__(self, model: Any) -> None:
        self.model = model
        self.optimizer = torch.optim.Adam(model.parameters(), lr=LR, weight_decay=WEIGHT_DECAY)

    def embed(self, dropout: float = 0.0, seed: int = 0) -> tuple[Tensor, Tensor]:
        raise NotImplementedError

    def weights(self) -> list[Tensor]:
        raise NotImplementedError

    def loss(self, task: Episode, dropout: float, seed: int) -> Tensor:
        log_prob = self.log_prob(task.task, *self.embed(dropout, seed))
        return F.nll_loss(log_prob, torch.from_numpy(task.query_y))

    def log_prob(self, task: Task, z: Tensor, importance: Tensor) -> Tensor:
        batch = Batch([task])
        return batch_log_prob(z[batch.support], importance[batch.support], z[batch.query], batch)

    def loss_and_gradients(self, task: Episode, dropout: float = 0.0, seed: int = 0) -> Gradients:
        loss = self.loss(task, dropout, seed)
        return float(loss.detach()), list(torch.autograd.grad(loss, self.weights()))

    def episode(self, train: EpisodeSampler, t: int) -> None:
        self.optimizer.zero_grad()
        self.loss(train[t], DROPOUT, t).backward()
        self.optimizer.step()


class Naive(FullBatch):
    """The authors' formulation: each task of an evaluation runs the whole graph again."""

    def __init__(self, data: Dataset, networks: Networks) -> None:
        super().__init__(copy.deepcopy(networks))
        x = data.graph.x
        self.graph = WholeGraph.of(data.graph, x.toarray() if is_sparse(x) else x)

    def embed(self, dropout: float = 0.0, seed: int = 0) -> tuple[Tensor, Tensor]:
        return self.model(self.graph, dropout, seed)  # type: ignore[no-any-return]

    def weights(self) -> list[Tensor]:
        return list(self.model.parameters())

    def predict(self, tasks: Sequence[Task]) -> list[Probabilities]:
        with torch.no_grad():
            return [self.log_prob(task, *self.embed()).exp().numpy() for task in tasks]


class PyG(FullBatch):
    """A PyG user's formulation: one embedding of all nodes, then task by task."""

    def __init__(self, data: Dataset, networks: Networks) -> None:
        super().__init__(sparse_gpn(data, networks))

    def embed(self, dropout: float = 0.0, seed: int = 0) -> tuple[Tensor, Tensor]:
        return self.model(dropout)  # type: ignore[no-any-return]

    def weights(self) -> list[Tensor]:
        return self.model.weights()  # type: ignore[no-any-return]

    def predict(self, tasks: Sequence[Task]) -> list[Probabilities]:
        with torch.no_grad():
            z, importance = self.embed()
            return [self.log_prob(task, z, importance).exp().numpy() for task in tasks]


FORMULATIONS: dict[str, Any] = {"naive": Naive, "pyg": PyG, "fewnode": Ours}


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

        def forward(self, dropout: float) -> tuple[Tensor, Tensor]:
            h = F.dropout(self.convs[0](self.x, self.edge_index).relu(), dropout)
            z = self.convs[1](h, self.edge_index).relu()
            s = torch.tanh(self.x @ self.w + self.b)
            for a in self.a:
                s = self.aggregate(s, self.closed, a)
            return z, torch.sigmoid(self.centrality * s.squeeze(1))

        def weights(self) -> list[Tensor]:
            layers = [*(conv.lin.weight for conv in self.convs), *(conv.bias for conv in self.convs)]
            return [*layers, self.w, self.b, self.a]

    return SparseGPN()


def parts(networks: Networks) -> tuple[Encoder, Valuator]:
    encoder, valuator = networks.encoder, networks.valuator
    if not isinstance(encoder, Encoder) or valuator is None:
        raise TypeError("the formulations are of GPN with the paper's encoder and valuator")
    return encoder, valuator


def copies(tensors: Any) -> nn.ParameterList:
    return nn.ParameterList(tensor.detach().clone() for tensor in tensors)
