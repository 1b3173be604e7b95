"""NaQ, neighbours as queries: episodes that nobody labelled (Jung et al., ICML 2024), then a linear head."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
import torch
from torch import nn
from torch.nn import functional as F

import fewnode
from probe import LinearProbe, as_tensor, attributes, idf, leading_directions, neighbours, normalised, undirected

POOL, ROWS, TERMS = 4096, 512, 100
"""Nodes that may be a support node; rows of similarities in memory at a time; steps of personalised PageRank."""


class NaQ(LinearProbe):
    """A prototypical network whose episodes have `classes` nodes, each a class of its own.

    The queries of a class are the `queries` nodes most similar to its node. similarity: `attributes` for the cosine of
    rows of X (NaQ-Feat), `diffusion` for personalised PageRank that returns with probability `alpha` (NaQ-Diff). A step
    takes the mean loss of `batch` episodes; github.com/JhngJng/NaQ-PyTorch takes 16,000 steps of one. Labels of
    validation classes enter only the choice of the step to stop at.
    """

    needs_base = False

    def __init__(
        self,
        similarity: str = "attributes",
        classes: int = 5,
        queries: int = 10,
        alpha: float = 0.1,
        hidden: int = 256,
        rank: int = 256,
        batch: int = 16,
        episodes: int = 100,
        lr: float = 3e-4,
        c: float = 100.0,
        seed: int = 0,
    ) -> None:
        if similarity not in ("attributes", "diffusion"):
            raise fewnode.FewnodeError(f"similarity is {similarity!r}, expected attributes or diffusion")
        self.similarity, self.classes, self.n_queries, self.alpha = similarity, classes, queries, alpha
        self.hidden, self.rank, self.batch, self.episodes = hidden, rank, batch, episodes
        self.lr, self.c, self.seed = lr, c, seed

    def fit(self, graph, train, valid):
        """Learn from the graph; training classes are not looked at."""
        self.idf_ = idf(graph)
        self.directions_ = leading_directions(attributes(graph, self.idf_), self.rank, self.seed)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            self.module_ = nn.ModuleList(
                [nn.Linear(self.directions_.shape[1], 2 * self.hidden), nn.Linear(2 * self.hidden, self.hidden)]
            )
            for layer in self.module_:
                nn.init.xavier_uniform_(layer.weight)
                nn.init.zeros_(layer.bias)
        adj, p = self._read(graph)
        rng = np.random.default_rng((self.seed, 0))
        pool = np.sort(rng.permutation(graph.n)[:POOL])
        parts = [pool[first : first + ROWS] for first in range(0, pool.size, ROWS)]
        similar = np.concatenate([self._most_similar(graph, nodes) for nodes in parts])
        way = min(self.classes, pool.size)

        def loss_of(step):
            draw = np.random.default_rng((self.seed, step))
            at = np.stack([draw.choice(pool.size, way, replace=False) for _ in range(self.batch)])
            nodes = np.concatenate([pool[at], similar[at].reshape(self.batch, -1)], axis=1)
            seen, place = np.unique(nodes, return_inverse=True)
            z = self._z(adj, p, seen)[torch.from_numpy(place.reshape(nodes.shape))]
            distance = ((z[:, way:, None] - z[:, None, :way]) ** 2).sum(dim=3)  # to prototypes of one node
            label = torch.arange(way).repeat_interleave(similar.shape[1]).repeat(self.batch)
            return F.cross_entropy(-distance.flatten(0, 1), label)

        self.train(graph, valid, loss_of, self.episodes, (self.lr, 0.0), every=10, patience=10)
        return self

    def encoded(self, graph):
        return self._z(*self._read(graph), np.arange(graph.n))

    def _read(self, graph):
        """Â, and Â X V, which does not change while weights are learned."""
        adj = normalised(graph.adj)
        return adj, torch.from_numpy(adj @ (attributes(graph, self.idf_) @ self.directions_))

    def _z(self, adj, p, nodes):
        """ReLU(Â ReLU(Â X V W0 + b0) W1 + b1) of some nodes."""
        outer, around = neighbours(adj, nodes)
        h = F.relu(self.module_[0](p[torch.from_numpy(around)]))
        return F.relu(self.module_[1](as_tensor(outer) @ h))

    def _most_similar(self, graph, nodes):
        if self.similarity == "attributes":
            x = attributes(graph)
            similarity = (x[nodes] @ x.T).toarray()
        else:
            walk, start = normalised(undirected(graph)), sp.eye_array(graph.n, format="csc")[:, nodes].toarray()
            h = start
            for _ in range(TERMS):
                h = (1 - self.alpha) * (walk @ h) + self.alpha * start
            similarity = np.ascontiguousarray(h.T)
        similarity[np.arange(nodes.size), nodes] = -np.inf
        return np.argsort(-similarity, axis=1, kind="stable")[:, : min(self.n_queries, graph.n - 1)]
