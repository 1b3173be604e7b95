"""GPN in three formulations that give the same numbers, and what one would do instead of GPN+.

naive: `gpn.py` as the authors' code runs it: dense attributes, the whole graph for each training episode and each task.
pyg: what one writes with PyG: `GCNConv` and message passing on sparse attributes, full batch; one embedding of all
nodes for an evaluation. fewnode: the engine, which reads the receptive field of an episode alone.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from torch import Tensor, nn
from torch.nn import functional as F

from fewnode.dataset import Dataset
from fewnode.embedding.diffusion import Diffusion
from fewnode.engine.compiled import Compiled
from fewnode.engine.fields import ReceptiveFields
from fewnode.episodes import Batch, Episode, EpisodeSampler, Task
from fewnode.gpn import Neighbourhood, Networks, batch_log_prob
from fewnode.graph import Graph, is_sparse
from fewnode.methods.gpn import GPN
from fewnode.recognition.space import Head, Space
from fewnode.seeds import stream
from fewnode.train import Adam, step
from fewnode.vectors import Embedding, survey

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from plain_gpn_plus import plain_diffusion

DROPOUT, LR, WEIGHT_DECAY = 0.5, 0.005, 5e-4
Gradients = tuple[float, list[Tensor]]  # by W and b of the encoder, then by w, b and a of the valuator; PyG has W.T


def initial_networks(data: Dataset) -> Networks:
    return GPN().build(data.graph.n_features, DROPOUT)


class Ours:
    def __init__(self, data: Dataset, networks: Networks) -> None:
        self.model = copy.deepcopy(networks)
        self.weights = {name: tensor.numpy() for name, tensor in self.model.state_dict().items()}  # on the same memory
        self.engine = Compiled(ReceptiveFields.of(data.graph))
        self.optimizer = Adam(self.weights, LR, WEIGHT_DECAY)

    def loss_and_gradients(self, task: Episode) -> Any:
        loss, slopes = self.engine.loss_and_gradients(self.weights, Batch.of([task]), 0.0, 0)
        return loss, list(slopes.values())

    def episode(self, train: EpisodeSampler, t: int) -> None:
        asked = self.weights, Batch.of([train[t]]), DROPOUT, stream(0, t)
        step(self.optimizer, lambda t: self.engine.loss_and_gradients(*asked), t)

    def predict(self, tasks: Sequence[Task]) -> list[np.ndarray]:
        z, importance = self.engine.embed(self.weights)
        return Space(Embedding(z, survey(z[:1]), importance), Head("sqeuclidean")).predict_tasks(tasks)


class FullBatch:
    """Every node in every step, by plain autograd and torch's Adam.

    `embed(dropout, seed)` gives z and the importance of all nodes; `again`: for each task of an evaluation.
    """

    def __init__(
        self, embed: Callable[[float, int], tuple[Tensor, Tensor]], weights: list[Tensor], again: bool
    ) -> None:
        self.embed, self.weights, self.again = embed, weights, again
        self.optimizer = torch.optim.Adam(weights, lr=LR, weight_decay=WEIGHT_DECAY)

    def log_prob(self, task: Task, z: Tensor, importance: Tensor) -> Tensor:
        batch = Batch([task])
        return batch_log_prob(z[batch.support], importance[batch.support], z[batch.query], batch)

    def loss(self, task: Episode, dropout: float, seed: int) -> Tensor:
        return F.nll_loss(self.log_prob(task.task, *self.embed(dropout, seed)), torch.from_numpy(task.query_y))

    def loss_and_gradients(self, task: Episode) -> Gradients:
        loss = self.loss(task, 0.0, 0)
        return float(loss.detach()), list(torch.autograd.grad(loss, self.weights))

    def episode(self, train: EpisodeSampler, t: int) -> None:
        self.optimizer.zero_grad()
        self.loss(train[t], DROPOUT, t).backward()
        self.optimizer.step()

    @torch.no_grad()
    def predict(self, tasks: Sequence[Task]) -> list[np.ndarray]:
        embedded = None if self.again else self.embed(0.0, 0)
        return [self.log_prob(task, *(embedded or self.embed(0.0, 0))).exp().numpy() for task in tasks]


class SparseGPN(nn.Module):
    """GPN by PyG's parts. Importing them takes seconds, hence in its methods."""

    def __init__(self, data: Dataset, networks: Networks) -> None:
        super().__init__()
        from torch_geometric.nn import GCNConv
        from torch_geometric.utils import add_self_loops

        encoder, valuator, ready = networks.encoder, networks.valuator, data.to_pyg(sparse=True)
        self.x, self.edge_index = ready.x, ready.edge_index
        self.closed, _ = add_self_loops(self.edge_index, num_nodes=data.graph.n)
        self.centrality = torch.log(torch.from_numpy(data.graph.degree).float() + valuator.eps)
        widths = [data.graph.n_features, *(bias.numel() for bias in encoder.bias)]
        self.convs = nn.ModuleList(GCNConv(a, b, cached=True) for a, b in pairwise(widths))
        for conv, weight, bias in zip(self.convs, encoder.weight, encoder.bias, strict=True):
            conv.load_state_dict({"lin.weight": weight.detach().T, "bias": bias.detach()})
        self.w, self.b, self.a = (copy.deepcopy(part) for part in (valuator.w, valuator.b, valuator.a))

    def forward(self, dropout: float, seed: int) -> tuple[Tensor, Tensor]:
        from torch_geometric.utils import scatter, softmax

        h = F.dropout(self.convs[0](self.x, self.edge_index).relu(), dropout)
        z = self.convs[1](h, self.edge_index).relu()
        s = torch.tanh(self.x @ self.w + self.b)
        (source, target), n = self.closed, len(s)
        for a in self.a:  # eqs. (6)-(7)
            own, neighbour = s.index_select(0, target), s.index_select(0, source)
            alpha = softmax(F.leaky_relu(a[0] * own + a[1] * neighbour, 0.2), target, num_nodes=n)
            s = scatter(alpha * neighbour, target, dim_size=n)
        return z, torch.sigmoid(self.centrality * s.squeeze(1))

    def weights(self) -> list[Tensor]:
        layers = [*(conv.lin.weight for conv in self.convs), *(conv.bias for conv in self.convs)]
        return [*layers, self.w, self.b, self.a]


def naive(data: Dataset, networks: Networks) -> FullBatch:
    x, model = data.graph.x, copy.deepcopy(networks)
    graph = Neighbourhood.of(Graph(data.graph.adj, x.toarray() if is_sparse(x) else x))
    return FullBatch(lambda dropout, seed: model(graph, dropout, seed), list(model.parameters()), again=True)


def pyg(data: Dataset, networks: Networks) -> FullBatch:
    model = SparseGPN(data, networks)
    return FullBatch(model, model.weights(), again=False)


FORMULATIONS: dict[str, Any] = {"naive": naive, "pyg": pyg, "fewnode": Ours}


class LogisticPipeline:
    """tf-idf, truncated SVD, two propagations, and a logistic regression for each set of labelled nodes."""

    def __init__(self, data: Dataset) -> None:
        x = data.graph.x
        x = TfidfTransformer().fit_transform(x) if is_sparse(x) else StandardScaler().fit_transform(x)
        if x.shape[1] > 256:
            x = TruncatedSVD(256, random_state=0).fit_transform(x)
        self.z = plain_diffusion(data.graph, Diffusion(2), np.asarray(x, np.float32))

    def predict(self, tasks: Sequence[Task]) -> list[np.ndarray]:
        z, method = self.z, LogisticRegression(max_iter=1000)
        return [method.fit(z[task.support], task.support_y).predict_proba(z[task.query]) for task in tasks]
