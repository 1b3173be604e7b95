"""GRACE: contrast of two views without labels (Zhu et al., 2020), then a linear head."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

import fewnode
from probe import LinearProbe, as_tensor, attributes, idf, leading_directions, neighbours, normalised


class GRACE(LinearProbe):
    """An encoder by which a node is more like itself in another view of the graph than like any other node.

    A view has lost a share of the edges and of the columns of X; there are two rates of each, one for each view. A step
    draws `batch` nodes: anchors, and each other's negatives (github.com/CRIPAC-DIG/GRACE takes all nodes). Batch
    normalisation is over the nodes that they see. Labels of validation classes enter only the choice of the step to
    stop at.
    """

    needs_base = False

    def __init__(
        self,
        hidden: int = 256,
        rank: int = 256,
        drop_edges: Sequence[float] = (0.2, 0.4),
        drop_columns: Sequence[float] = (0.3, 0.4),
        tau: float = 0.7,
        batch: int = 512,
        epochs: int = 100,
        lr: float = 1e-3,
        weight_decay: float = 1e-5,
        c: float = 100.0,
        seed: int = 0,
    ) -> None:
        if len(drop_edges) != 2 or len(drop_columns) != 2:
            raise fewnode.FewnodeError("drop_edges and drop_columns need two rates each, one for each view")
        self.hidden, self.rank, self.tau, self.batch, self.epochs = hidden, rank, tau, batch, epochs
        self.drop_edges, self.drop_columns = tuple(drop_edges), tuple(drop_columns)
        self.lr, self.weight_decay, self.c, self.seed = lr, weight_decay, c, seed

    def fit(self, graph, train, valid):
        """Learn from the graph; training classes are not looked at."""
        self.idf_ = idf(graph)
        x = attributes(graph, self.idf_)
        self.directions_ = leading_directions(x, self.rank, self.seed)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            self.module_ = Encoder(self.directions_.shape[1], self.hidden)

        def loss_of(step):
            rng = np.random.default_rng((self.seed, step))
            anchors = np.sort(rng.permutation(graph.n)[: self.batch])
            views = []
            for edges, columns in zip(self.drop_edges, self.drop_columns, strict=True):
                adj = graph.adj.copy()
                adj.data = adj.data * (rng.random(adj.nnz) >= edges)
                adj.eliminate_zeros()
                kept = self.directions_ * (rng.random(x.shape[1]) >= columns)[:, None]
                views.append(self.module_.head(self.module_(*self._seen(normalised(adj), x, kept, anchors))))
            return info_nce(*views, self.tau)

        self.train(graph, valid, loss_of, self.epochs, (self.lr, self.weight_decay), every=20, patience=10)
        return self

    def encoded(self, graph):
        x = attributes(graph, self.idf_)
        return self.module_(*self._seen(normalised(graph.adj), x, self.directions_, np.arange(graph.n)))

    def _seen(self, adj, x, directions, nodes):
        """Â X V of what the nodes see, and Â from there into the nodes."""
        outer, around = neighbours(adj, nodes)
        inner, far = neighbours(adj, around)
        return torch.from_numpy(inner @ (x[far] @ directions)), as_tensor(outer)


class Encoder(nn.Module):
    """z = PReLU(Â PReLU(BN(Â X V W0)) W1 + b1), and a head of two layers that only training looks at."""

    def __init__(self, rank: int, hidden: int) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(rank, 2 * hidden, bias=False), nn.Linear(2 * hidden, hidden)
        self.norm, self.bend = nn.BatchNorm1d(2 * hidden), nn.PReLU()
        self.head = nn.Sequential(nn.Linear(hidden, hidden), nn.ELU(), nn.Linear(hidden, hidden))
        for layer in (self.first, self.second):
            nn.init.xavier_uniform_(layer.weight)
        nn.init.zeros_(self.second.bias)

    def forward(self, p, adj):
        return self.bend(self.second(adj @ self.bend(self.norm(self.first(p)))))


def info_nce(u, v, tau):
    """Eqs. (1)-(2): -log of the share that exp(cos(u_i, v_i) / τ) has of all pairs of u_i, with v and within u.

    The mean over nodes and over both directions.
    """
    u, v = F.normalize(u), F.normalize(v)
    between, own, same = u @ v.T / tau, torch.arange(len(u)), torch.eye(len(u), dtype=torch.bool)

    def half(across, within):
        return F.cross_entropy(torch.cat([across, (within / tau).masked_fill(same, -torch.inf)], dim=1), own)

    return (half(between, u @ u.T) + half(between.T, v @ v.T)) / 2
