"""Graph Prototypical Networks: sections 4.2 to 4.4 of the paper, top to bottom, in plain torch.

This is the method as it is defined, on any device and in any precision. Each step reads a neighbourhood: all nodes, or
those that an episode can see. Training and serving on a CPU use `fewnode.engine`, which computes the same numbers with
NumPy; a test compares the two on a thousand random graphs, in values and gradients, with dropout on. Whoever replaces
an equation here, or brings an encoder or a valuator of their own, is answered by these equations and not by the engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

import fewnode.engine.settled  # noqa: F401  # before anything is computed
from fewnode.episodes import Batch
from fewnode.graph import Attributes, Graph, Ints, is_sparse

# --- what is read of a graph --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Neighbourhood:
    """G = (A, X) as the equations read it: Â, X, the arcs of A + I and the degree, of some nodes, sorted, or of all."""

    nodes: Int[Tensor, " n"]
    a_hat: Float[Tensor, "n n"]
    x: Float[Tensor, "n d"]
    target: Int[Tensor, " e"]
    source: Int[Tensor, " e"]
    degree: Float[Tensor, " n"]

    @classmethod
    def of(
        cls, graph: Graph, nodes: Ints | None = None, hops: int = 0, dtype: Any = torch.float32, device: Any = "cpu"
    ) -> Neighbourhood:
        """All nodes within `hops` of `nodes`, which are the whole graph to a method that looks no further; or all."""
        around, adj, x = np.arange(graph.n), graph.adj, graph.x
        if nodes is not None:
            around = np.unique(nodes)
            for _ in range(hops):
                around = np.union1d(around, graph.adj[around].indices)
            adj, x = graph.adj[around][:, around], x[around]
        closed = (adj + sp.eye_array(around.size, dtype=np.float32, format="csr")).tocoo()
        target, source = (torch.from_numpy(ends.astype(np.int64)).to(device) for ends in closed.coords)
        weight = torch.from_numpy(closed.data).to(device, dtype)
        scale = (torch.from_numpy(graph.strength[around]).to(device, dtype) + 1) ** -0.5  # D^-1/2 of A + I
        values, place = weight * (scale[target] * scale[source]), torch.stack([target, source])
        a_hat = torch.sparse_coo_tensor(place, values, adj.shape, check_invariants=False).coalesce()
        degree = torch.from_numpy(graph.degree[around]).to(device, dtype)
        return cls(torch.from_numpy(around).to(device), a_hat, _matrix(x).to(device, dtype), target, source, degree)

    def places(self, nodes: Ints) -> Int[Tensor, " k"]:
        """Where these nodes are among those of the neighbourhood."""
        return torch.searchsorted(self.nodes, torch.from_numpy(nodes).to(self.nodes.device))


def _matrix(x: Attributes) -> Tensor:
    if not is_sparse(x):
        return torch.from_numpy(x if x.flags.writeable else x.copy())
    coo = x.tocoo()
    place = torch.from_numpy(np.stack(coo.coords).astype(np.int64))
    return torch.sparse_coo_tensor(place, torch.from_numpy(coo.data.copy()), x.shape, check_invariants=False).coalesce()


# --- 4.2 the network encoder f_θ ----------------------------------------------------------------------------------


class Encoder(nn.Module):
    """GCN layers (Kipf & Welling) of the given widths, each with ReLU. With `graph=False` this is the MLP of PN."""

    def __init__(self, n_features: int, hidden: Sequence[int] = (32, 16), graph: bool = True) -> None:
        super().__init__()
        self.weight = nn.ParameterList(torch.empty(a, b) for a, b in pairwise([n_features, *hidden]))
        self.bias = nn.ParameterList(torch.zeros(b) for b in hidden)
        self.graph, self.hops = graph, len(self.weight) if graph else 0
        for weight in self.weight:
            nn.init.xavier_uniform_(weight)

    def forward(self, g: Neighbourhood, dropout: float = 0.0, seed: int = 0) -> Float[Tensor, "n d"]:
        h = g.x
        for layer, (weight, bias) in enumerate(zip(self.weight, self.bias, strict=True)):
            if layer > 0 and dropout > 0:
                h = h * kept_units(g.nodes, h.shape[1], dropout, seed, layer) / (1 - dropout)
            h = convolve(g.a_hat if self.graph else None, h @ weight, bias)
        return h


def convolve(a_hat: Any, hw: Float[Tensor, "*t m d"], bias: Float[Tensor, ...]) -> Float[Tensor, "*t k d"]:
    """One GCN layer, from the product of its input and its weight: ReLU(Â (H W) + b)."""
    return F.relu((hw if a_hat is None else a_hat @ hw) + bias)


def kept_units(
    nodes: Int[Tensor, " k"], width: int, dropout: float, seed: int, layer: int
) -> Bool[Tensor, "k {width}"]:
    """Which units of a layer dropout keeps: a hash of (seed, layer, node, unit).

    So a node loses the same units whether it is computed with all nodes or with the few that an episode sees.
    """
    word = splitmix(splitmix(splitmix(torch.tensor(seed, device=nodes.device)) ^ layer) ^ nodes)
    word = splitmix(word[:, None] + torch.arange(width, device=nodes.device))
    return _shifted(word, 32) >= int(dropout * 2**32)


def splitmix(word: Int[Tensor, ...]) -> Int[Tensor, ...]:
    """64 bits that look random: SplitMix64 (Steele et al., 2014). Products wrap around."""
    word = word + (0x9E3779B97F4A7C15 - (1 << 64))
    word = (word ^ _shifted(word, 30)) * (0xBF58476D1CE4E5B9 - (1 << 64))
    word = (word ^ _shifted(word, 27)) * (0x94D049BB133111EB - (1 << 64))
    return word ^ _shifted(word, 31)


def _shifted(word: Int[Tensor, ...], bits: int) -> Int[Tensor, ...]:
    """Shifted right as if the word had no sign."""
    return (word >> bits) & ((1 << (64 - bits)) - 1)


# --- 4.3 the node valuator g_φ ------------------------------------------------------------------------------------


class Valuator(nn.Module):
    """How informative a labelled node is, from its attributes, its neighbours' scores and its centrality."""

    def __init__(self, n_features: int, layers: int = 2, eps: float = 1.0) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.empty(n_features, 1))
        self.b = nn.Parameter(torch.zeros(1))
        self.a = nn.Parameter(torch.empty(layers, 2))  # Deviation D2: one attention vector a layer
        self.eps, self.hops = eps, layers
        nn.init.xavier_uniform_(self.w)
        nn.init.xavier_uniform_(self.a)

    def forward(self, g: Neighbourhood) -> Float[Tensor, " n"]:
        s = torch.tanh(g.x @ self.w + self.b).squeeze(1)  # Eq. (8)
        for a in self.a:
            s = aggregate_scores(s, g.target, g.source, a)
        return torch.sigmoid(centrality(g.degree, self.eps) * s)  # Eq. (10)


def aggregate_scores(
    s: Float[Tensor, " n"], target: Int[Tensor, " e"], source: Int[Tensor, " e"], a: Float[Tensor, " 2"]
) -> Float[Tensor, " n"]:
    """One score aggregation layer over the arcs of A + I: Eqs. (6)-(7).

    Deviation D1: the denominator of Eq. (7) runs over [s_i || s_k], so that α sums to 1.
    """
    alpha = segment_softmax(F.leaky_relu(a[0] * s[target] + a[1] * s[source], 0.2), target, s.numel())
    return torch.zeros_like(s).index_add(0, target, alpha * s[source])


def segment_softmax(score: Float[Tensor, " k"], segment: Int[Tensor, " k"], n: int) -> Float[Tensor, " k"]:
    """Softmax over the entries of each segment: the attention of Eq. (7) and the weights of Eq. (11)."""
    top = score.new_full((n,), -torch.inf).scatter_reduce(0, segment, score.detach(), "amax")
    weight = torch.exp(score - top[segment])
    return weight / weight.new_zeros(n).index_add(0, segment, weight)[segment]


def centrality(degree: Float[Tensor, " k"], eps: float) -> Float[Tensor, " k"]:
    """C(i) = log(deg(i) + ε): Eq. (9)."""
    return torch.log(degree + eps)


# --- 4.4 few-shot classification ----------------------------------------------------------------------------------


def prototypes(
    z: Float[Tensor, "k d"], importance: Float[Tensor, " k"], y: Int[Tensor, " k"], n_way: int
) -> Float[Tensor, "{n_way} d"]:
    """Importance-weighted class means: Eqs. (11)-(12). Equal importance gives Eq. (5).

    Classes may have unequal shots: `y` says which class each of the k support nodes is in.
    """
    beta = segment_softmax(importance, y, n_way)
    return z.new_zeros(n_way, z.shape[1]).index_add(0, y, beta[:, None] * z)


def log_prob(z: Float[Tensor, "q d"], p: Float[Tensor, "q n d"], distance: str = "sqeuclidean") -> Float[Tensor, "q n"]:
    """log p(c|v*) of each query node against the n prototypes of its own task: Eq. (13)."""
    return F.log_softmax(closeness(z, p, distance), dim=1)


def closeness(z: Float[Tensor, "q d"], p: Float[Tensor, "q n d"], distance: str) -> Float[Tensor, "q n"]:
    """How near each query node is to each prototype: the negative distance.

    A cosine lies in [-1, 1]; it is multiplied by 10 so that the softmax can be sure of something.
    """
    z = z[:, None, :]
    if distance == "cosine":
        return 10 * F.cosine_similarity(z, p, dim=2)
    squared = (z - p).square().sum(dim=2)
    return -squared if distance == "sqeuclidean" else -(squared + 1e-12).sqrt()


def batch_log_prob(
    support: Float[Tensor, "k d"],
    importance: Float[Tensor, " k"],
    query: Float[Tensor, "q d"],
    batch: Batch,
    distance: str = "sqeuclidean",
) -> Float[Tensor, "q n"]:
    """Eqs. (11)-(13) for all tasks of a batch, from z and importance of its support nodes and z of its queries."""
    segment, task = (torch.from_numpy(part).to(support.device) for part in (batch.segment, batch.task))
    p = prototypes(support, importance, segment, batch.n_tasks * batch.n_way)
    return log_prob(query, p.view(batch.n_tasks, batch.n_way, -1)[task], distance)


class Networks(nn.Module):
    """The two learned functions, f_θ and g_φ; without a valuator this is GPN-naive."""

    def __init__(self, encoder: nn.Module, valuator: nn.Module | None) -> None:
        super().__init__()
        self.encoder, self.valuator = encoder, valuator
        self.hops = max(int(part.hops) for part in (encoder, valuator) if part is not None)  # type: ignore[arg-type]
        """How far they look: what a neighbourhood has to hold."""

    def forward(self, g: Neighbourhood, dropout: float = 0.0, seed: int = 0) -> tuple[Tensor, Tensor]:
        """z and importance of every node; equal importance without a valuator."""
        z = self.encoder(g, dropout, seed)
        return z, z.new_zeros(z.shape[0]) if self.valuator is None else self.valuator(g)


def task_log_prob(
    networks: Networks, g: Neighbourhood, batch: Batch, distance: str, dropout: float = 0.0, seed: int = 0
) -> Float[Tensor, "q n"]:
    """Section 4.4, from a graph to the answers to all tasks of a batch."""
    z, importance = networks(g, dropout, seed)
    support, query = g.places(batch.support), g.places(batch.query)
    return batch_log_prob(z[support], importance[support], z[query], batch, distance)


def loss(
    networks: Networks, g: Neighbourhood, batch: Batch, distance: str, dropout: float = 0.0, seed: int = 0
) -> Float[Tensor, ""]:
    """The average negative log-likelihood of the query labels: Eq. (14)."""
    answers = task_log_prob(networks, g, batch, distance, dropout, seed)
    return F.nll_loss(answers, torch.from_numpy(batch.query_y).to(answers.device))


def as_published() -> bool:
    """Whether the equations are those of this file. If somebody replaced one, no engine may stand in for them."""
    return _defined() == _AS_PUBLISHED


def _defined() -> dict[tuple[str, ...], object]:
    """The functions and classes of this file, and the functions of the classes, by name."""
    own = {(name,): part for name, part in globals().items() if getattr(part, "__module__", None) == __name__}
    classes = [part for part in own.values() if isinstance(part, type)]
    return own | {(c.__name__, name): part for c in classes for name, part in vars(c).items() if callable(part)}


_AS_PUBLISHED = _defined()
