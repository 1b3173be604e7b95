"""COSMIC: contrastive meta-learning on base classes (Wang et al., KDD 2023), then a linear head."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
import torch
from torch import nn
from torch.nn import functional as F

from probe import LinearProbe, as_tensor, attributes
from subgraphs import subgraphs


class COSMIC(LinearProbe):
    """Nodes of a class, and two views of a node, are drawn together by an encoder; other classes are pushed away.

    A node stands for a subgraph of `subgraph` nodes, which one GCN layer encodes. Its views are the row of the node and
    the mean over the subgraph. Each class of an episode is mixed with the next one to a new, harder class. As in
    github.com/SongW-SW/COSMIC, support and queries enter one loss; the paper takes two steps.
    """

    def __init__(
        self,
        hidden: int = 1024,
        subgraph: int = 20,
        tau: float = 0.07,
        mix: bool = True,
        episodes: int = 300,
        lr: float = 1e-4,
        patience: int = 5,
        c: float = 100.0,
        seed: int = 0,
    ) -> None:
        self.hidden, self.subgraph, self.tau, self.mix = hidden, subgraph, tau, mix
        self.episodes, self.lr, self.patience, self.c, self.seed = episodes, lr, patience, c, seed

    def fit(self, graph, train, valid):
        train[0]  # without base classes it says so
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            self.module_ = Encoder(graph.n_features, self.hidden)
        x, around = attributes(graph), subgraphs(graph, self.subgraph)

        def loss_of(step):
            episode = train[step - 1]
            y = np.concatenate([episode.support_y, episode.query_y])
            nodes = around.nodes[np.concatenate([episode.support, episode.query])]
            seen, place = np.unique(np.maximum(nodes, 0), return_inverse=True)
            place, there = place.reshape(nodes.shape), torch.from_numpy(nodes >= 0).float()
            xw = (as_tensor(x[seen]) @ self.module_.weight)[torch.from_numpy(place)] * there[:, :, None]
            adj = torch.from_numpy(around.adj[nodes[:, 0]])
            if self.mix:
                other = torch.from_numpy(partners(y, episode.n_way))
                rows, edges = self._mixing(x[seen], place, there, other, step)
                xw = torch.cat([xw, xw[other].lerp(xw, rows)])
                adj = torch.cat([adj, adj[other].lerp(adj, edges)])
                there = torch.cat([there, torch.maximum(there, there[other])])
                y = np.concatenate([y, y + episode.n_way])
            return supervised_contrast(*self.module_(xw, adj, there), torch.from_numpy(y), self.tau)

        self.train(graph, valid, loss_of, self.episodes, (self.lr, 0.0), every=20, patience=self.patience)
        return self

    def _mixing(self, x, place, there, other, step):
        """Shares of attributes and of edges, from Beta(10 sigmoid(-cosine of the subgraphs' mean attributes), 1)."""
        share, first = (there / there.sum(dim=1, keepdim=True)).numpy(), np.arange(0, place.size + 1, place.shape[1])
        mean = torch.from_numpy((sp.csr_array((share.ravel(), place.ravel(), first)) @ x).toarray())
        strength = 10 * torch.sigmoid(-F.cosine_similarity(mean, mean[other])).numpy()[:, None, None]
        rng, (b, s) = np.random.default_rng((self.seed, step)), place.shape
        return (torch.from_numpy(rng.beta(strength, 1.0, (b, s, k)).astype(np.float32)) for k in (1, s))

    def encoded(self, graph):
        """The first view of every node."""
        around, n = subgraphs(graph, self.subgraph), graph.n
        first_rows = normalised(torch.from_numpy(around.adj))[:, 0].numpy()
        row, at = np.nonzero(around.nodes >= 0)
        central = sp.csr_array((first_rows[row, at], (row, around.nodes[row, at])), shape=(n, n))
        return self.module_.bent(torch.from_numpy(central @ (attributes(graph) @ self.module_.weight.numpy())))


class Encoder(nn.Module):
    """One GCN layer with PReLU, rows at length 1."""

    def __init__(self, n_features, hidden):
        super().__init__()
        self.weight = nn.Parameter(nn.init.xavier_uniform_(torch.empty(n_features, hidden)))
        self.bias, self.slope = nn.Parameter(torch.zeros(hidden)), nn.Parameter(torch.full((hidden,), 0.25))

    def bent(self, h):
        return F.normalize(torch.where(h + self.bias > 0, 1, self.slope) * (h + self.bias), dim=-1)

    def forward(self, xw, adj, there):
        """Of each subgraph the row of its node, and the mean of its rows."""
        h = self.bent(normalised(adj) @ xw)
        return h[:, 0], (h * there[:, :, None]).sum(dim=1) / there.sum(dim=1, keepdim=True)


def normalised(adj):
    """D^-1/2 (A + I) D^-1/2 of each of several dense matrices."""
    closed = adj + torch.eye(adj.shape[1])
    scale = closed.sum(dim=2) ** -0.5
    return scale[:, :, None] * closed * scale[:, None, :]


def partners(y, n_way):
    """For each node one of the next class, the k-th for the k-th."""
    other = np.empty_like(y)
    for c in range(n_way):
        other[y == c] = np.resize(np.flatnonzero(y == (c + 1) % n_way), (y == c).sum())
    return other


def supervised_contrast(z, summary, y, tau):
    """-mean over anchors and their positives of log softmax over all others (Khosla et al., NeurIPS 2020, Eq. (2))."""
    rows, label = torch.cat([z, summary]), torch.cat([y, y])
    own = torch.eye(len(rows), dtype=torch.bool)
    log_share = F.log_softmax((rows @ rows.T / tau).masked_fill(own, -torch.inf), dim=1)
    positive = (label[:, None] == label) & ~own
    return -(log_share.masked_fill(~positive, 0).sum(dim=1) / positive.sum(dim=1)).mean()
