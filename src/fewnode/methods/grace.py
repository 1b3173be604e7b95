"""GRACE: contrastive pretraining without labels (Zhu et al., 2020), then linear probing (TLP; Tan et al., LoG 2022)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp
import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from fewnode.engine.sparse import CSR, taken
from fewnode.episodes import EpisodeSampler
from fewnode.errors import FewnodeError
from fewnode.graph import Graph, Ints
from fewnode.methods.probe import LinearProbe, ReadGraph, TwoLayers, check_training
from fewnode.train import QUIET, Journal, Schedule, by_autograd

MIN_BATCH = 2
WALK = 10
"""Steps of the walks that a part of the graph is made of."""


class Grace(LinearProbe):
    """Two views of the graph, and an encoder by which a node is more like itself than like any other node.

    A view has lost a share of the edges and of the columns of X. `drop_edges` and `drop_columns` have two rates each,
    one for each view. Each step looks at a part of the graph, about `batch` nodes that walks visit: anchors, and each
    other's negatives in both views. The source takes parts of large graphs, too; of small ones, all nodes at once.
    Labels enter only the choice of the step at which training stops.
    """

    needs_base = False

    def __init__(
        self,
        hidden: int = 256,
        drop_edges: Sequence[float] = (0.2, 0.4),
        drop_columns: Sequence[float] = (0.3, 0.4),
        tau: float = 0.7,
        batch: int = 1024,
        epochs: int = 200,
        lr: float = 1e-3,
        weight_decay: float = 1e-5,
        patience: int = 10,
        scaling: str = "l2",
        c: float = 100.0,
        seed: int = 0,
    ) -> None:
        self.hidden, self.drop_edges, self.drop_columns = hidden, tuple(drop_edges), tuple(drop_columns)
        self.tau, self.batch, self.epochs, self.lr = tau, batch, epochs, lr
        self.weight_decay, self.patience = weight_decay, patience
        self.scaling, self.c, self.seed = scaling, c, seed

    def build(self, n_features: int) -> ContrastiveGCN:
        return ContrastiveGCN(n_features, self.hidden)

    def check(self) -> None:
        super().check()
        check_training(self.hidden, self.epochs, self.lr, self.weight_decay)
        for name in ("drop_edges", "drop_columns"):
            rates = getattr(self, name)
            if len(rates) != 2 or not all(0 <= rate < 1 for rate in rates):
                raise FewnodeError(f"{name} is {list(rates)}, expected two rates from 0 to below 1")
        if not (0 < self.tau < 1000 and self.batch >= MIN_BATCH and self.patience >= 1):
            raise FewnodeError(
                f"tau is {self.tau}, batch {self.batch} and patience {self.patience}, "
                f"expected above 0, at least {MIN_BATCH} and at least 1"
            )

    def fit(self, graph: Graph, train: EpisodeSampler, valid: EpisodeSampler, journal: Journal = QUIET) -> Grace:
        """Learn from the graph; training classes are not looked at."""
        module = self._begin(graph, self.build)
        x = self._read(graph).x

        def loss_of(step: int) -> Tensor:
            rng = np.random.default_rng((self.seed, step))
            nodes = visited(graph, self.batch, rng)
            dropping, rows = EdgeDropping(graph.adj[nodes][:, nodes]), taken(x, nodes)
            views = []
            for edges, columns in zip(self.drop_edges, self.drop_columns, strict=True):
                kept = torch.from_numpy((rng.random(graph.n_features) >= columns).astype(np.float32))
                views.append(module.projected(ReadGraph(dropping.view(edges, rng), rows), kept))
            return info_nce(views[0], views[1], self.tau)

        schedule = Schedule(self.epochs, self.lr, self.weight_decay, validate_every=20, patience=self.patience)
        self.history_ = self._train(graph, valid, by_autograd(module, loss_of, self.seed), schedule, journal)
        return self


class ContrastiveGCN(nn.Module):
    """The encoder, and a projection head of two layers that only training looks at."""

    def __init__(self, n_features: int, hidden: int) -> None:
        super().__init__()
        self.encoder = TwoLayers(n_features, hidden)
        self.head = nn.Sequential(nn.Linear(hidden, hidden), nn.ELU(), nn.Linear(hidden, hidden))

    def forward(self, read: ReadGraph, nodes: Tensor | None = None) -> Tensor:
        found: Tensor = self.encoder(read, nodes)
        return found

    def projected(self, read: ReadGraph, kept: Tensor) -> Tensor:
        found: Tensor = self.head(self.encoder(read, kept=kept))
        return found


def info_nce(u: Float[Tensor, "b d"], v: Float[Tensor, "b d"], tau: float) -> Float[Tensor, ""]:
    """Eqs. (1)-(2): -log of the share that exp(cos(u_i, v_i) / τ) has of all pairs of u_i, with v and within u.

    The mean over nodes and over both directions.
    """
    u, v = F.normalize(u), F.normalize(v)
    between, own, same = u @ v.T / tau, torch.arange(len(u)), torch.eye(len(u), dtype=torch.bool)

    def half(across: Tensor, within: Tensor) -> Tensor:
        return F.cross_entropy(torch.cat([across, (within / tau).masked_fill(same, -torch.inf)], dim=1), own)

    return (half(between, u @ u.T) + half(between.T, v @ v.T)) / 2


def visited(graph: Graph, size: int, rng: np.random.Generator) -> Ints:
    """At most `size` nodes: some drawn from all, and those on a short walk from each. All, if there are no more."""
    if size >= graph.n:
        return np.arange(graph.n)
    at = rng.integers(0, graph.n, max(1, size // (WALK + 1)))
    seen, degree = [at], np.diff(graph.adj.indptr)
    for _ in range(WALK if graph.adj.nnz else 0):
        place = graph.adj.indptr[at] + (rng.random(at.size) * degree[at]).astype(np.int64)
        at = np.where(degree[at] > 0, graph.adj.indices[np.minimum(place, graph.adj.indices.size - 1)], at)
        seen.append(at)
    return np.unique(np.concatenate(seen)).astype(np.int64)


class EdgeDropping:
    """Â of a graph without a share of its arcs; each direction of an edge is drawn on its own, as in the sources."""

    def __init__(self, adj: sp.csr_array) -> None:
        closed = (adj + sp.eye_array(adj.shape[0], dtype=np.float32, format="csr")).tocsr()
        self.rows = np.repeat(np.arange(adj.shape[0]), np.diff(closed.indptr))
        self.closed, self.loop = closed, self.rows == closed.indices

    def view(self, rate: float, rng: np.random.Generator) -> CSR:
        """D^-1/2 (A' + I) D^-1/2, D the sums of rows of A' + I."""
        n, columns = self.closed.shape[0], self.closed.indices
        kept = self.closed.data * ((rng.random(columns.size) >= rate) | self.loop)
        scale = np.bincount(self.rows, weights=kept, minlength=n) ** -0.5
        values = (kept * scale[self.rows] * scale[columns]).astype(np.float32)
        return CSR(self.closed.indptr[:-1], self.closed.indptr[1:], columns, values, (n, n))
