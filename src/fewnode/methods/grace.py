"""GRACE: contrastive pretraining without labels (Zhu et al., 2020), then linear probing (TLP; Tan et al., LoG 2022)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from fewnode.engine.sparse import CSR
from fewnode.episodes import EpisodeSampler
from fewnode.errors import FewnodeError
from fewnode.graph import Graph, Ints
from fewnode.methods.graph_views import EdgeDropping, View
from fewnode.methods.probe import LinearProbe, ReadGraph, check_training, leading_directions
from fewnode.train import Journal, Schedule, by_autograd

MIN_BATCH = 2
SLOPE = 0.25
"""Of PReLU, before it learns."""


class Grace(LinearProbe):
    """Two views of the graph, and an encoder by which a node is more like itself than like any other node.

    A view has lost a share of the edges and of the columns of X. `drop_edges` and `drop_columns` have two rates each,
    one for each view. Each step draws `batch` nodes of all: anchors, and each other's negatives in both views. What
    they see of a view is whole. The first weights are read along the leading `rank` directions of X.
    Labels enter only the choice of the step at which training stops.
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
        patience: int = 10,
        scaling: str = "tf-idf",
        c: float = 100.0,
        seed: int = 0,
    ) -> None:
        self.hidden, self.rank = hidden, rank
        self.drop_edges, self.drop_columns = tuple(drop_edges), tuple(drop_columns)
        self.tau, self.batch, self.epochs, self.lr = tau, batch, epochs, lr
        self.weight_decay, self.patience = weight_decay, patience
        self.scaling, self.c, self.seed = scaling, c, seed

    def build(self, n_features: int) -> ContrastiveGCN:
        return ContrastiveGCN(n_features, min(self.rank, n_features), self.hidden)

    def check(self) -> None:
        super().check()
        check_training(self.hidden, self.epochs, self.lr, self.weight_decay, self.rank)
        for name in ("drop_edges", "drop_columns"):
            rates = getattr(self, name)
            if len(rates) != 2 or not all(0 <= rate < 1 for rate in rates):
                raise FewnodeError(f"{name} is {list(rates)}, expected two rates from 0 to below 1")
        if not (0 < self.tau < 1000 and self.batch >= MIN_BATCH and self.patience >= 1):
            raise FewnodeError(
                f"tau is {self.tau}, batch {self.batch} and patience {self.patience}, "
                f"expected above 0, at least {MIN_BATCH} and at least 1"
            )

    def fit_in_steps(self, graph: Graph, train: EpisodeSampler, valid: EpisodeSampler, journal: Journal) -> Grace:
        """Learn from the graph; training classes are not looked at."""
        if graph.n < MIN_BATCH:
            raise FewnodeError("a network of one node has nothing to tell it from; GRACE needs at least two")
        module = self._begin(graph, self.build)
        module.directions.copy_(leading_directions(self.attributes_.of(graph), self.rank, self.seed))
        read, dropping = self._read(graph), EdgeDropping(graph.adj)

        def loss_of(step: int) -> Tensor:
            rng = np.random.default_rng((self.seed, step))
            anchors = torch.from_numpy(np.sort(rng.permutation(graph.n)[: self.batch]))
            views = []
            for edges, columns in zip(self.drop_edges, self.drop_columns, strict=True):
                view = View(rng.random(graph.n_features) < columns, dropping.view(edges, rng))
                views.append(module.head(module(read, anchors, view)))
            return info_nce(views[0], views[1], self.tau)

        schedule = Schedule(self.epochs, self.lr, self.weight_decay, validate_every=20, patience=self.patience)
        self.history_ = self._train(read, valid, by_autograd(module, loss_of, self.seed), schedule, journal)
        return self


class ContrastiveGCN(nn.Module):
    """z = PReLU(Â PReLU(BN(Â X V W0)) W1 + b1), and a head of two layers that only training looks at.

    V, the leading directions of X, is given and not learned. Without batch normalisation all nodes begin nearly alike,
    and what tells them apart is lost while they are driven apart.
    """

    directions: Tensor
    mean: Tensor
    variance: Tensor

    def __init__(self, n_features: int, rank: int, hidden: int) -> None:
        super().__init__()
        self.register_buffer("directions", torch.zeros(n_features, rank))
        self.register_buffer("mean", torch.zeros(2 * hidden))
        self.register_buffer("variance", torch.ones(2 * hidden))
        self.weight = nn.ParameterList([torch.empty(rank, 2 * hidden), torch.empty(2 * hidden, hidden)])
        self.scale, self.shift = nn.Parameter(torch.ones(2 * hidden)), nn.Parameter(torch.zeros(2 * hidden))
        self.bias, self.slope = nn.Parameter(torch.zeros(hidden)), nn.Parameter(torch.full((1,), SLOPE))
        self.head = nn.Sequential(nn.Linear(hidden, hidden), nn.ELU(), nn.Linear(hidden, hidden))
        for weight in self.weight:
            nn.init.xavier_uniform_(weight)

    def forward(self, read: ReadGraph, nodes: Tensor | None = None, view: View | None = None) -> Tensor:
        # in training, batch normalisation is over what `reach` gives: nodes that are seen, or all if they are many
        reach = read.fields.reach if self.training else read.fields.hop
        outer = reach(None if nodes is None else nodes.numpy(), view.adj if view else None)
        h = self._propagated(read, outer.around, view) @ self.weight[0]
        spread = self.variance if self.training else self.variance.clamp(min=0)
        h = F.batch_norm(h, self.mean, spread, self.scale, self.shift, self.training)
        return prelu((outer.matrix @ prelu(h, self.slope)) @ self.weight[1] + self.bias, self.slope)

    def _propagated(self, read: ReadGraph, nodes: Ints | None, view: View | None) -> Float[Tensor, "k r"]:
        """Â X V. X V of the graph is computed once; for a view, what is masked is taken off the rows that it sees."""
        known = read.along(self.directions, lambda v: torch.cat([read.x @ v, v]))
        if view is None:
            return (read.adj if nodes is None else read.adj.rows(nodes)) @ known[: read.fields.n]
        everyone = read.fields.everyone
        inner = read.fields.hop(everyone if nodes is None else nodes, view.adj, in_order=True, filled=True)
        around = everyone if inner.around is None else inner.around
        if isinstance(read.x, CSR):
            return inner.matrix @ (read.x.masked(around, view.masked) @ known)
        along = self.directions * torch.from_numpy(~view.masked)[:, None]
        return inner.matrix @ (read.x[torch.from_numpy(around)] @ along)


class _PReLU(torch.autograd.Function):
    """torch's own takes four times as long backwards where all units share a slope."""

    @staticmethod
    def forward(ctx: Any, h: Tensor, slope: Tensor) -> Tensor:
        ctx.save_for_backward(h, slope)
        return F.leaky_relu(h, float(slope))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        h, slope = ctx.saved_tensors
        below = torch.dot(h.clamp(max=0).view(-1), gradient.reshape(-1)).view(1)
        return torch.ops.aten.leaky_relu_backward(gradient, h, float(slope), False), below


def prelu(h: Float[Tensor, "k d"], slope: Float[Tensor, " 1"]) -> Float[Tensor, "k d"]:
    """h where it is above 0, else slope h."""
    found: Tensor = _PReLU.apply(h, slope)  # type: ignore[no-untyped-call]
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
