"""NaQ: episodes without labels, from nodes and those most similar to them (Jung et al., ICML 2024)."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fewnode.engine.sparse import normalised
from fewnode.episodes import Episode, EpisodeSampler, Task, choose, uniform
from fewnode.errors import FewnodeError
from fewnode.gpn import Batch, batch_log_prob, convolve
from fewnode.graph import Graph, Ints
from fewnode.methods.linear import undirected
from fewnode.methods.probe import LinearProbe, ReadGraph, check_training, leading_directions
from fewnode.methods.similar_nodes import Similarities, cosines, most_similar, personalised_pagerank
from fewnode.train import Journal, Schedule, by_autograd

SIMILARITIES = ("attributes", "diffusion")
TERMS = 100
"""Steps of personalised PageRank; (1 - alpha) to that power is left out."""
ROWS = 512
"""Of a matrix of similarities that are in memory at a time."""
POOL = 4096
"""Nodes that may be a support node: each needs its row of similarities. All, if there are no more."""


class NaQ(LinearProbe):
    """A prototypical network that learns from episodes nobody labelled: Neighbours as Queries.

    An episode has `classes` nodes, drawn from all. Each is a class of its own, with the `queries` nodes that are most
    similar to it as queries. similarity: `attributes` for the cosine of rows of X (NaQ-Feat), or `diffusion` for
    personalised PageRank (NaQ-Diff) that returns with probability `alpha`. A step learns from `batch` episodes, whose
    mean loss it takes. The first weights are read along the leading `rank` directions of X. Labels enter only the
    choice of the step at which training stops.
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
        weight_decay: float = 0.0,
        scaling: str = "tf-idf",
        c: float = 100.0,
        seed: int = 0,
    ) -> None:
        self.similarity, self.classes, self.queries, self.alpha = similarity, classes, queries, alpha
        self.hidden, self.rank, self.batch, self.episodes, self.lr = hidden, rank, batch, episodes, lr
        self.weight_decay, self.scaling, self.c, self.seed = weight_decay, scaling, c, seed

    def build(self, n_features: int) -> TwoLayers:
        return TwoLayers(n_features, min(self.rank, n_features), self.hidden)

    def check(self) -> None:
        super().check()
        check_training(self.hidden, self.episodes, self.lr, self.weight_decay, self.rank)
        if self.similarity not in SIMILARITIES:
            raise FewnodeError(f"unknown similarity {self.similarity!r}, expected {' or '.join(SIMILARITIES)}")
        if not (self.classes >= 2 and self.queries >= 1 and self.batch >= 1):
            raise FewnodeError(
                f"{self.classes} classes, {self.queries} queries, a batch of {self.batch}: expected at least 2, 1 and 1"
            )
        if not 0 < self.alpha < 1:
            raise FewnodeError(f"alpha is {self.alpha}, expected a probability between 0 and 1")

    def fit_in_steps(self, graph: Graph, train: EpisodeSampler, valid: EpisodeSampler, journal: Journal) -> NaQ:
        """Learn from the graph; training classes are not looked at."""
        module = self._begin(graph, self.build)
        module.directions.copy_(leading_directions(self.attributes_.of(graph), self.rank, self.seed))
        read, drawn = self._read(graph), NeighbourEpisodes(graph, self)

        def loss_of(step: int) -> Tensor:
            episodes = [drawn[step * self.batch + i] for i in range(self.batch)]
            batch = Batch([episode.task for episode in episodes])
            z = module(read, torch.cat([batch.support, batch.query]))
            support, query = z[: batch.support.numel()], z[batch.support.numel() :]
            found = batch_log_prob(support, support.new_zeros(len(support)), query, batch)
            return F.nll_loss(found, torch.from_numpy(np.concatenate([episode.query_y for episode in episodes])))

        schedule = Schedule(self.episodes, self.lr, self.weight_decay)
        self.history_ = self._train(read, valid, by_autograd(module, loss_of, self.seed), schedule, journal)
        return self


class TwoLayers(nn.Module):
    """z = ReLU(Â ReLU(Â X V W0 + b0) W1 + b1): the GCN encoder of NaQ, for all nodes or some.

    V, the leading directions of X, is given and not learned.
    """

    directions: Tensor

    def __init__(self, n_features: int, rank: int, hidden: int) -> None:
        super().__init__()
        self.register_buffer("directions", torch.zeros(n_features, rank))
        self.weight = nn.ParameterList([torch.empty(rank, 2 * hidden), torch.empty(2 * hidden, hidden)])
        self.bias = nn.ParameterList([torch.zeros(2 * hidden), torch.zeros(hidden)])
        for weight in self.weight:
            nn.init.xavier_uniform_(weight)

    def forward(self, read: ReadGraph, nodes: Tensor | None = None) -> Tensor:
        p = read.along(self.directions, lambda v: read.adj @ (read.x @ v))
        outer = read.fields.hop(None if nodes is None else nodes.numpy())
        p = p if outer.around is None else p[torch.from_numpy(outer.around)]
        h = convolve(None, p @ self.weight[0], self.bias[0])
        return convolve(None, (outer.matrix @ h) @ self.weight[1], self.bias[1])


class NeighbourEpisodes:
    """`episodes[t]` is episode t: some nodes and the nodes most similar to each. A function of (seed, t) alone."""

    def __init__(self, graph: Graph, method: NaQ) -> None:
        self.graph, self.similarity, self.alpha, self.seed = graph, method.similarity, method.alpha, method.seed
        if graph.n < 2:
            raise FewnodeError("a network of one node has no similar ones; NaQ needs at least two")
        self.way, self.queries = min(method.classes, graph.n), min(method.queries, graph.n - 1)

    @cached_property
    def nodes(self) -> Ints:
        """Those that may be support nodes, drawn by the seed."""
        return np.sort(np.random.default_rng((self.seed, 0)).permutation(self.graph.n)[:POOL])

    @cached_property
    def similar(self) -> Ints:
        """The most similar nodes of each of `nodes`, in a row, never itself."""
        parts = [self.nodes[first : first + ROWS] for first in range(0, self.nodes.size, ROWS)]
        return np.concatenate([most_similar(self._similarities(part), part, self.queries) for part in parts])

    def _similarities(self, nodes: Ints) -> Similarities:
        if self.similarity == "attributes":
            return cosines(self.graph.x, nodes)
        return personalised_pagerank(self._closed, nodes, self.alpha, TERMS)

    @cached_property
    def _closed(self) -> sp.csr_array:
        return normalised(undirected(self.graph), np.float32)

    def __getitem__(self, t: int) -> Episode:
        # one seed further than the sampler of tasks: t is not the number of a task of classes
        at = choose(uniform(self.seed + 1, t, self.way), self.nodes.size, self.way)
        label = np.arange(self.way)
        task = Task(self.nodes[at], label, self.similar[at].reshape(-1))
        return Episode(task, label.repeat(self.queries))
