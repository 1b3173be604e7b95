"""COSMIC: contrastive meta-learning on base classes (Wang et al., KDD 2023), then linear probing."""

from __future__ import annotations

import math
from weakref import WeakKeyDictionary

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from fewnode.engine.unit_rows import unit_rows
from fewnode.episodes import EpisodeSampler
from fewnode.errors import FewnodeError
from fewnode.graph import Graph, Ints
from fewnode.methods.probe import LinearProbe, ReadGraph, check_training
from fewnode.methods.subgraphs import Parts, Subgraphs, normalised
from fewnode.train import Journal, Schedule, by_autograd

_CUT: WeakKeyDictionary[Graph, dict[int, Subgraphs]] = WeakKeyDictionary()


class Cosmic(LinearProbe):
    """Nodes of a class, and views of a node, are drawn together by an encoder; other classes are pushed away.

    Each node stands for a subgraph: itself and those that walks from it visit most, `subgraph` nodes in all. One GCN
    layer encodes it; its two views are the row of the node and the mean over the subgraph. A step takes an episode of
    base classes. Each class is mixed with the next one to a new, harder class: attributes and edges in shares that
    depend on how similar two nodes are. The loss is the supervised contrastive one over all of them. As in the public
    code, support and queries of an episode enter one loss; the paper takes two steps.
    """

    def __init__(
        self,
        hidden: int = 1024,
        subgraph: int = 20,
        tau: float = 0.07,
        mix: bool = True,
        episodes: int = 300,
        lr: float = 1e-4,
        weight_decay: float = 0.0,
        patience: int = 10,
        scaling: str = "l2",
        c: float = 100.0,
        seed: int = 0,
    ) -> None:
        self.hidden, self.subgraph, self.tau, self.mix = hidden, subgraph, tau, mix
        self.episodes, self.lr, self.weight_decay, self.patience = episodes, lr, weight_decay, patience
        self.scaling, self.c, self.seed = scaling, c, seed

    def build(self, n_features: int) -> SubgraphEncoder:
        return SubgraphEncoder(n_features, self.hidden)

    def check(self) -> None:
        super().check()
        check_training(self.hidden, self.episodes, self.lr, self.weight_decay)
        if not (self.subgraph >= 1 and 0 < self.tau < math.inf and self.patience >= 1):
            raise FewnodeError(
                f"subgraph is {self.subgraph}, tau {self.tau} and patience {self.patience}, "
                "expected at least 1 node, above 0, and at least 1"
            )

    def _read(self, graph: Graph) -> ReadGraph:
        """A row of Â for each node: its own, in its own subgraph."""
        return ReadGraph(self._around(graph).central, super()._read(graph).x)

    def _around(self, graph: Graph) -> Subgraphs:
        """The same for every seed, so that trainings on one graph share it."""
        known = _CUT.setdefault(graph, {})
        if self.subgraph not in known:
            known[self.subgraph] = Subgraphs(graph, self.subgraph)
        return known[self.subgraph]

    def fit_in_steps(self, graph: Graph, train: EpisodeSampler, valid: EpisodeSampler, journal: Journal) -> Cosmic:
        """Learn from episodes of training classes."""
        train[0]  # without base classes it says so
        module = self._begin(graph, self.build)
        read, around = self._read(graph), self._around(graph)

        def loss_of(step: int) -> Tensor:
            episode = train[step]
            y = np.concatenate([episode.support_y, episode.query_y])
            parts = around.of(np.concatenate([episode.support, episode.query]), read.x, module.weight)
            if self.mix:
                other = partners(y, episode.n_way)
                parts = parts.joined(parts.mixed(other, np.random.default_rng((self.seed, step))))
                y = np.concatenate([y, y + episode.n_way])
            return supervised_contrast(*module.views(parts), torch.from_numpy(y), self.tau)

        schedule = Schedule(self.episodes, self.lr, self.weight_decay, patience=self.patience)
        self.history_ = self._train(read, valid, by_autograd(module, loss_of, self.seed), schedule, journal)
        return self


class SubgraphEncoder(nn.Module):
    """One GCN layer with PReLU, rows of unit length."""

    def __init__(self, n_features: int, hidden: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(nn.init.xavier_uniform_(torch.empty(n_features, hidden)))
        self.bias, self.slope = nn.Parameter(torch.zeros(hidden)), nn.Parameter(torch.full((hidden,), 0.25))

    def forward(self, read: ReadGraph, nodes: Tensor | None = None) -> Tensor:
        near = read.fields.hop(None if nodes is None else nodes.numpy(), in_order=True)
        return self._activated(near.matrix @ (read.fields.features(near.around) @ self.weight))

    def views(self, parts: Parts) -> tuple[Float[Tensor, "b h"], Float[Tensor, "b h"]]:
        """Of each subgraph the row of its node, and the mean of its rows."""
        return unit_rows(normalised(parts.adj) @ parts.xw, self.bias, self.slope, parts.there)

    def _activated(self, h: Tensor) -> Tensor:
        h = h + self.bias
        return F.normalize(torch.where(h > 0, h, self.slope * h), dim=-1)


def partners(y: Ints, n_way: int) -> Ints:
    """For each node one of the next class, the k-th for the k-th."""
    members = [np.flatnonzero(y == c) for c in range(n_way)]
    found = np.empty_like(y)
    for c, own in enumerate(members):
        found[own] = np.resize(members[(c + 1) % n_way], own.size)
    return found


def supervised_contrast(
    z: Float[Tensor, "b h"], summary: Float[Tensor, "b h"], y: Int[Tensor, " b"], tau: float
) -> Float[Tensor, ""]:
    """-mean over anchors and their positives of log softmax over all others (Khosla et al., NeurIPS 2020, Eq. (2))."""
    rows, label = torch.cat([z, summary]), torch.cat([y, y])
    own = torch.eye(len(rows), dtype=torch.bool)
    log_share = F.log_softmax((rows @ rows.T / tau).masked_fill(own, -torch.inf), dim=1)
    positive = (label[:, None] == label) & ~own
    return -(log_share.masked_fill(~positive, 0).sum(dim=1) / positive.sum(dim=1)).mean()
