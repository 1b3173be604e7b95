"""Graph Prototypical Networks: sections 4.2 to 4.4 of the paper, top to bottom, in plain torch.

This is the method as it is defined. Each step reads the whole graph, on any device and in any precision. Training and
serving on a CPU use `fewnode.engine`, which computes the same numbers from the nodes that an episode can see; a test
compares the two on a thousand random graphs, in values and gradients, with dropout on.
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

from fewnode.episodes import Episode, Task
from fewnode.graph import Attributes, Graph, is_sparse

DISTANCES = ("sqeuclidean", "euclidean", "cosine")


# --- what is read of a graph --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class WholeGraph:
    """G = (A, X) as the equations read it: Â, X, the arcs of A + I, and the degree of each node."""

    a_hat: Float[Tensor, "n n"]
    x: Float[Tensor, "n d"]
    target: Int[Tensor, " e"]
    source: Int[Tensor, " e"]
    degree: Float[Tensor, " n"]

    @classmethod
    def of(
        cls,
        graph: Graph,
        x: Attributes | None = None,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
    ) -> WholeGraph:
        """With attributes `x`, such as scaled ones, in place of the graph's own."""
        closed = (graph.adj + sp.eye_array(graph.n, dtype=np.float32, format="csr")).tocoo()
        target, source = (torch.from_numpy(ends.astype(np.int64)).to(device) for ends in closed.coords)
        weight = torch.from_numpy(closed.data).to(device, dtype)
        degree = torch.from_numpy(graph.degree).to(device, dtype)
        scale = (torch.from_numpy(graph.strength).to(device, dtype) + 1) ** -0.5  # D^-1/2 of A + I
        values = weight * (scale[target] * scale[source])
        place = torch.stack([target, source])
        a_hat = torch.sparse_coo_tensor(place, values, (graph.n, graph.n), check_invariants=False).coalesce()
        return cls(a_hat, _matrix(graph.x if x is None else x).to(device, dtype), target, source, degree)


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
        self.graph = graph
        for weight in self.weight:
            nn.init.xavier_uniform_(weight)

    def forward(self, g: WholeGraph, dropout: float = 0.0, seed: int = 0) -> Float[Tensor, "n d"]:
        h = g.x
        for layer, (weight, bias) in enumerate(zip(self.weight, self.bias, strict=True)):
            if layer > 0 and dropout > 0:
                nodes = torch.arange(h.shape[0], device=h.device)
                h = h * kept_units(nodes, h.shape[1], dropout, seed, layer) / (1 - dropout)
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
        self.eps = eps
        nn.init.xavier_uniform_(self.w)
        nn.init.xavier_uniform_(self.a)

    def forward(self, g: WholeGraph) -> Float[Tensor, " n"]:
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


class Batch:
    """Several tasks of equal N as flat tensors; the classes of task t are segments t·N … t·N + N-1."""

    def __init__(self, tasks: Sequence[Task], device: torch.device | str = "cpu") -> None:
        self.n_tasks, self.n_way = len(tasks), tasks[0].n_way
        self.support = _flat(device, [task.support for task in tasks])
        self.query = _flat(device, [task.query for task in tasks])
        self.segment = _flat(device, [task.support_y + t * self.n_way for t, task in enumerate(tasks)])
        self.task = _flat(device, [np.full(task.query.size, t) for t, task in enumerate(tasks)])


class TrainingBatch(Batch):
    """Several episodes: tasks, and their answers to learn from."""

    def __init__(self, episodes: Sequence[Episode], device: torch.device | str = "cpu") -> None:
        super().__init__([episode.task for episode in episodes], device)
        self.query_y = _flat(device, [episode.query_y for episode in episodes])


def _flat(device: torch.device | str, parts: Sequence[Any]) -> Tensor:
    return torch.from_numpy(np.concatenate(parts)).to(device)


def batch_log_prob(
    support: Float[Tensor, "k d"],
    importance: Float[Tensor, " k"],
    query: Float[Tensor, "q d"],
    batch: Batch,
    distance: str = "sqeuclidean",
) -> Float[Tensor, "q n"]:
    """Eqs. (11)-(13) for all tasks of a batch, from z and importance of its support nodes and z of its queries."""
    p = prototypes(support, importance, batch.segment, batch.n_tasks * batch.n_way)
    return log_prob(query, p.view(batch.n_tasks, batch.n_way, -1)[batch.task], distance)


class Networks(nn.Module):
    """The two learned functions, f_θ and g_φ; without a valuator this is GPN-naive."""

    def __init__(self, encoder: nn.Module, valuator: Valuator | None) -> None:
        super().__init__()
        self.encoder, self.valuator = encoder, valuator

    def forward(self, g: WholeGraph, dropout: float = 0.0, seed: int = 0) -> tuple[Tensor, Tensor]:
        """z and importance of every node; equal importance without a valuator."""
        z = self.encoder(g, dropout, seed)
        return z, z.new_zeros(z.shape[0]) if self.valuator is None else self.valuator(g)


def loss(
    networks: Networks, g: WholeGraph, batch: TrainingBatch, distance: str, dropout: float = 0.0, seed: int = 0
) -> Float[Tensor, ""]:
    """The average negative log-likelihood of the query labels: Eq. (14)."""
    z, importance = networks(g, dropout, seed)
    found = batch_log_prob(z[batch.support], importance[batch.support], z[batch.query], batch, distance)
    return F.nll_loss(found, batch.query_y)
