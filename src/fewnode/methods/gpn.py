"""Graph Prototypical Networks, sections 4.2 to 4.4 top to bottom.

GPN is an encoder and a valuator. GPN-naive is GPN without the valuator; PN is GPN-naive with an MLP for encoder.
"""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from fewnode import kernels, memory
from fewnode.attributes import inverse_document_frequency, need_attributes, scale
from fewnode.blocks import open_prepared
from fewnode.episodes import Episode, EpisodeSampler
from fewnode.errors import FewnodeError, closest
from fewnode.evaluation import Probabilities, score
from fewnode.graph import Graph, Ints
from fewnode.nn import (
    CSR,
    GCN,
    Module,
    Prepared,
    build_encoder,
    check_widths,
    has_kernels,
    product,
    segment_softmax,
)
from fewnode.train import (
    ALONE,
    QUIET,
    VALID_TASKS,
    History,
    Journal,
    MetaBatches,
    Schedule,
    Team,
    adopt,
    meta_train,
    seeded,
)

DISTANCES = ("sqeuclidean", "euclidean", "cosine")
CHUNK = 1 << 22
"""Numbers that a comparison of query nodes with prototypes holds at a time: it bounds memory when all are asked for."""

TOGETHER = 20
"""Tasks whose neighbourhoods are read together from a network that is not in memory."""


class Valuator(nn.Module):
    """g_φ: how informative a labelled node is, from its features, its neighbours' scores and its centrality (4.3)."""

    def __init__(self, n_features: int, layers: int = 2, eps: float = 1.0) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.empty(n_features, 1))
        self.b = nn.Parameter(torch.zeros(1))
        self.a = nn.Parameter(torch.empty(layers, 2))  # Deviation D2: one attention vector a layer
        self.eps = eps
        nn.init.xavier_uniform_(self.w)
        nn.init.xavier_uniform_(self.a)

    def forward(self, g: Prepared, nodes: Int[Tensor, " k"] | None) -> Float[Tensor, " k"]:
        """s̃ of the nodes: Eq. (10), from the scores of their two-hop neighbourhood alone."""
        return self.apply_to(self.read(g, nodes))

    def read(self, g: Prepared, nodes: Int[Tensor, " k"] | None) -> Sight:
        """What s̃ of the nodes depends on."""
        degree = g.degree if nodes is None else g.degree[nodes]
        hops = []
        for _ in self.a:
            hop, nodes, own = g.reach(nodes)
            hops.append((hop, own))
        return Sight(g.features(nodes), tuple(reversed(hops)), degree)

    def apply_to(self, sight: Sight) -> Float[Tensor, " k"]:
        if has_kernels(sight.degree):
            c = centrality(sight.degree, self.eps)
            return _Valuation.apply(sight, c, self.w, self.b, self.a)  # type: ignore[no-any-return,no-untyped-call]
        s = torch.tanh(sight.rows @ self.w + self.b).squeeze(1)  # Eq. (8)
        for a, (hop, own) in zip(self.a, sight.hops, strict=True):
            s = aggregate_scores(s if own is None else s.index_select(0, own), s, hop, a)
        return torch.sigmoid(centrality(sight.degree, self.eps) * s)  # Eq. (10)


@dataclass(frozen=True, eq=False)
class Sight:
    """The constants behind the scores of some nodes: attributes of those farthest away, and hops from there inwards.

    Beside each hop is the place of the nodes it leads to among those it comes from, or None if both are all nodes.
    """

    rows: CSR | Tensor
    hops: tuple[tuple[CSR, Int[Tensor, " _"] | None], ...]
    degree: Float[Tensor, " k"]


def aggregate_scores(
    s_i: Float[Tensor, " k"], s: Float[Tensor, " m"], hop: CSR, a: Float[Tensor, " 2"]
) -> Float[Tensor, " k"]:
    """One score aggregation layer: Eqs. (6)-(7). `hop` says which of the m nodes each of the k nodes sees.

    Deviation D1: the denominator of Eq. (7) runs over [s_i || s_k], so that α sums to 1.
    """
    row, s_j = hop.row, s[hop.packed[1]]
    alpha = segment_softmax(F.leaky_relu(a[0] * s_i[row] + a[1] * s_j, 0.2), row, s_i.numel())
    return torch.zeros_like(s_i).index_add(0, row, alpha * s_j)


class _Valuation(torch.autograd.Function):
    """Eqs. (6)-(8) and (10) without a tensor as long as the arcs: those can be ten million."""

    @staticmethod
    def forward(ctx: Any, sight: Sight, centre: Tensor, w: Tensor, b: Tensor, a: Tensor) -> Tensor:
        s = first = product(sight.rows, w).add_(b).tanh_().squeeze(1)
        layers = []
        for pair, (hop, own) in zip(a.numpy(), sight.hops, strict=True):
            s_i = s if own is None else s.index_select(0, own)
            given = (*hop.arrays[:3], s_i.numpy(), s.numpy(), pair)
            found = kernels.aggregate(*given)
            layers.append((given, found, own))
            s = torch.from_numpy(found[0])
        importance = (centre * s).sigmoid_()
        ctx.sight, ctx.layers, ctx.first, ctx.last = sight, layers, first, (centre, importance)
        return importance.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        centre, importance = ctx.last
        gradient = gradient * centre * importance * (1 - importance)
        by_a = []
        for given, found, own in reversed(ctx.layers):
            parts = kernels.aggregate_gradient(*given, found, gradient.numpy())
            by_own, gradient, by_pair = map(torch.from_numpy, parts)
            gradient = gradient + by_own if own is None else gradient.index_add_(0, own, by_own)
            by_a.append(by_pair)
        by_sum = (gradient * (1 - ctx.first.square()))[:, None]
        by_w = product(ctx.sight.rows, by_sum, transposed=True)
        return None, None, by_w, by_sum.sum(dim=0), torch.stack(by_a[::-1])


def centrality(degree: Float[Tensor, " k"], eps: float) -> Float[Tensor, " k"]:
    """C(i) = log(deg(i) + ε): Eq. (9)."""
    return torch.log(degree + eps)


def prototypes(
    z: Float[Tensor, "k d"], importance: Float[Tensor, " k"], y: Int[Tensor, " k"], n_way: int
) -> Float[Tensor, "{n_way} d"]:
    """Importance-weighted class means: Eqs. (11)-(12). Equal importance gives Eq. (5).

    Classes may have unequal shots: `y` says which class each of the k support nodes is in.
    """
    beta = segment_softmax(importance, y, n_way)
    return z.new_zeros(n_way, z.shape[1]).index_add(0, y, beta[:, None] * z)


def nearness(
    z: Float[Tensor, "m d"], query: Int[Tensor, " q"], p: Float[Tensor, "n d"], distance: str
) -> Float[Tensor, "q n"]:
    """How near each query node is to the same n prototypes, or to n other nodes."""
    if distance == "cosine":
        unit = F.normalize(p)
        return torch.cat([10 * F.normalize(z[part]) @ unit.T for part in chunks(query, 1, z.shape[1])])
    found = [closeness(z[part], p.expand(part.numel(), -1, -1), distance) for part in chunks(query, *p.shape)]
    return torch.cat(found) if len(found) > 1 else found[0]


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


def chunks(query: Int[Tensor, " q"], compared: int, width: int) -> tuple[Int[Tensor, " _"], ...]:
    """The query in parts, so that no comparison of one with so many others of that width is too large at once."""
    size = max(1, CHUNK // max(1, compared * width))
    if query.numel() <= size:
        return (query,)
    parts: tuple[Tensor, ...] = query.split(size)
    return parts


DRAWN, CLOSE = 500, 10
"""Nodes of the graph that tell how crowded it is around a node: the tenth nearest of them is."""

STEPS, IMAGINED, LEAST = 5, 10.0, 1 / 3
"""Of `rectify`: how often it looks again, the queries it imagines in every class before it has seen any, and the share
of them that must seem to be in the classes."""


def rectify(
    z: Float[Tensor, "k d"],
    beta: Float[Tensor, " k"],
    y: Int[Tensor, " k"],
    query: Float[Tensor, "q d"],
    n_way: int,
    distance: str,
    known: Known | None = None,
    crowd: Float[Tensor, " q"] | None = None,
) -> Float[Tensor, "q n"] | None:
    """The transductive mode: unlabelled query nodes move the prototypes, and tell how common each class is.

    Expectation-maximisation. A query counts in class c with its probability of being in it, times that of being in
    any of them if `known` can tell. Proportions of classes are estimated too: without them, a class with few queries
    would be drawn into its neighbour. Returns what each query counts in each class; None if most seem to be in none of
    them: so many strangers would move a prototype further than its own nodes do.
    """
    shots = torch.bincount(y, minlength=n_way).to(z.dtype)
    base = z.new_zeros(n_way, z.shape[1]).index_add(0, y, (beta * shots[y])[:, None] * z)
    p, log_share = base / shots[:, None], z.new_zeros(n_way)
    familiar = z.new_ones(query.shape[0], 1)
    every = torch.arange(query.shape[0], device=query.device)
    if known is not None:
        familiar = known.among(nearness(query, every, p, distance), shots, crowd)[:, None]
        if familiar.mean() < LEAST:
            return None
    for _ in range(STEPS):
        share = torch.softmax(nearness(query, every, p, distance) + log_share, dim=1) * familiar
        p = (base + share.T @ query) / (shots + share.sum(dim=0))[:, None]
        log_share = torch.log((share.sum(dim=0) + IMAGINED) / (share.sum() + n_way * IMAGINED))
    return share


SURVEYED = 5_000
"""How many nodes of a network tell what share of it is in the given classes."""


@dataclass(frozen=True)
class Known:
    """P(a node is in one of the given classes): logistic in how near the nearest is, its shots, the crowd, and log N.

    Where nodes lie close together, being near to a class says less: so are many that are not in it. Of several classes
    one is near sooner. `class_share` is the share of a network's nodes that a known class has, on average.
    """

    slope: float
    by_shots: float
    intercept: float
    by_crowd: float = 0.0
    by_ways: float = 0.0
    class_share: float = 0.05

    def probability(
        self,
        near: Float[Tensor, "q n"],
        shots: Float[Tensor, " n"],
        crowd: Float[Tensor, " q"] | None = None,
        share: float = 0.5,
    ) -> Float[Tensor, " q"]:
        """Of a node on its own, if that share of all nodes are members."""
        return torch.sigmoid(self._log_odds(near, shots, crowd) + math.log(share / (1 - share)))

    def among(
        self, near: Float[Tensor, "q n"], shots: Float[Tensor, " n"], crowd: Float[Tensor, " q"] | None = None
    ) -> Float[Tensor, " q"]:
        """Of nodes asked about together, which tell what share of them are members.

        One member and one stranger are imagined, so that it is neither 0 nor 1.
        """
        share = _share_of_members(self._log_odds(near, shots, crowd), 0.5, imagined=2)
        return self.probability(near, shots, crowd, share)

    def share(
        self, near: Float[Tensor, "q n"], shots: Float[Tensor, " n"], crowd: Float[Tensor, " q"] | None = None
    ) -> float:
        """What share of a network is in the classes: by some of its nodes, and as much by the size of known classes.

        The nodes alone can be far off where a few of thousands are members; the sizes where new classes are others.
        """
        expected = min(0.5, max(1e-6, shots.numel() * self.class_share))
        return _share_of_members(self._log_odds(near, shots, crowd), expected, imagined=near.shape[0])

    def _log_odds(
        self, near: Float[Tensor, "q n"], shots: Float[Tensor, " n"], crowd: Float[Tensor, " q"] | None
    ) -> Float[Tensor, " q"]:
        """How much likelier the node looks so as a member than as a stranger; the logarithm."""
        top, place = near.max(dim=1)
        odds = self.slope * top + self.by_shots * shots.log()[place] + self.by_ways * math.log(near.shape[1])
        odds = odds + self.intercept
        return odds if crowd is None else odds + self.by_crowd * crowd


def _share_of_members(log_odds: Float[Tensor, " q"], expected: float, imagined: int, steps: int = 50) -> float:
    """The share of members that makes these nodes likeliest, by expectation-maximisation (Saerens et al., 2002).

    Beside them are so many `imagined` nodes, of which the `expected` share are members.
    """
    odds, share = log_odds.double(), expected
    for _ in range(steps):
        member = float(torch.sigmoid(odds + math.log(share / (1 - share))).sum())
        share = (member + imagined * expected) / (odds.numel() + imagined)
    return share


@dataclass(frozen=True)
class Explanation:
    """Why: the weight β of each support node in its prototype, and the support nodes nearest to each query node."""

    beta: NDArray[np.float32]
    nearest: Ints


@dataclass(frozen=True, eq=False)
class Ready:
    """A support set made ready: what depends on it alone, computed once for any number of queries."""

    z: Float[Tensor, "k d"]
    beta: Float[Tensor, " k"]
    prototypes: Float[Tensor, "n d"]
    shots: Float[Tensor, " n"]
    ridge: Float[Tensor, "d n"] | None = None
    """The prototypes of GPN+, which answer in place of the others."""


class Prototypical(ABC):
    """Few-shot classification by nearest prototype (section 4.4), given z and the importance of every node."""

    distance: str
    known: Known | None = None
    """Tells a node of no given class, once that is calibrated on validation classes."""
    learns_classes = True
    """Whether weights are trained on the training classes, so that these come out better than others ever will."""
    kept = False
    """Whether `embedding` takes so long that it is worth a file."""
    _cache: tuple[Graph, Tensor, Tensor] | None = None
    _drawn: tuple[Tensor, Tensor] | None = None

    @abstractmethod
    def _embed(self, graph: Graph) -> tuple[Float[Tensor, "n d"], Float[Tensor, " n"]]:
        """z and importance of all nodes."""

    def embedding(self, graph: Graph) -> tuple[Float[Tensor, "n d"], Float[Tensor, " n"]]:
        """`_embed`, computed once for a graph: every task after the first is a gather and a small product."""
        if self._cache is None or self._cache[0] is not graph:
            with torch.inference_mode():
                self._cache = (graph, *self._embed(graph))
        return self._cache[1:]

    def remembers(self, graph: Graph) -> bool:
        return self._cache is not None and self._cache[0] is graph

    def remember(self, graph: Graph, z: Float[Tensor, "n d"], importance: Float[Tensor, " n"]) -> None:
        """Take what `embedding` gave for this graph before, perhaps in another process, for what it gives now."""
        self._cache = (graph, z, importance)

    def ready(self, graph: Graph, support: Ints, support_y: Ints) -> Ready:
        """What the answers to any query need of a support set: Eqs. (11)-(12)."""
        z, importance = self._valued(graph, support)
        y, n_way = torch.from_numpy(support_y).to(z.device), int(support_y.max()) + 1
        with torch.inference_mode():
            beta = segment_softmax(importance, y, n_way)
            p = prototypes(z, importance, y, n_way)
            return Ready(z, beta, p, torch.bincount(y, minlength=n_way).to(z.dtype))

    def answer(self, graph: Graph, ready: Ready, query: Ints) -> Probabilities:
        """Eq. (13): each query on its own."""
        z, asked = self._asked(graph, query)
        with torch.inference_mode():
            return F.log_softmax(nearness(z, asked, ready.prototypes, self.distance), dim=1).exp().cpu().numpy()

    def predict_proba(self, graph: Graph, support: Ints, support_y: Ints, query: Ints) -> Probabilities:
        return self.answer(graph, self.ready(graph, support, support_y), query)

    def predict_tasks(self, graph: Graph, tasks: Sequence[Episode], transductive: bool = False) -> list[Probabilities]:
        """The probabilities of many tasks; those of equal N are computed together.

        Inductive: a query is classified on its own. Transductive: the queries of a task help each other.
        """
        if transductive:
            return [self._rectified(graph, task) for task in tasks]
        z, importance = self.embedding(graph)
        answers: dict[int, Probabilities] = {}
        for n_way in sorted({task.n_way for task in tasks}):
            places = [i for i, task in enumerate(tasks) if task.n_way == n_way]
            batch = Batch([tasks[i] for i in places], n_way, z.device)
            with torch.inference_mode():
                rows = self._log_prob(batch, z, importance).exp().cpu().numpy()
            ends = np.cumsum([tasks[i].query.size for i in places])
            answers |= dict(zip(places, np.split(rows, ends[:-1]), strict=True))
        return [answers[i] for i in range(len(tasks))]

    def _log_prob(self, batch: Batch, z: Float[Tensor, "m d"], importance: Float[Tensor, " m"]) -> Float[Tensor, "q n"]:
        p = batch.prototypes(z[batch.support], importance[batch.support])
        parts = zip(*(chunks(part, *p.shape[1:]) for part in (batch.query, batch.task)), strict=True)
        return torch.cat([log_prob(z[q], p[t], self.distance) for q, t in parts])

    def _rectified(self, graph: Graph, task: Episode) -> Probabilities:
        z, asked = self._asked(graph, task.query)
        ready, y = self.ready(graph, task.support, task.support_y), torch.from_numpy(task.support_y).to(z.device)
        with torch.inference_mode():
            crowd = self.crowd(graph, task.query)
            share = rectify(ready.z, ready.beta, y, z[asked], task.n_way, self.distance, self.known, crowd)
            if share is None:
                return self.answer(graph, ready, task.query)
            return (share / share.sum(dim=1, keepdim=True)).cpu().numpy()

    def nearness(self, graph: Graph, ready: Ready, query: Ints) -> Float[Tensor, "q n"]:
        """How near each query is to each prototype: what `Known` judges by."""
        z, asked = self._asked(graph, query)
        with torch.inference_mode():
            return nearness(z, asked, ready.prototypes, self.distance)

    def closest(self, graph: Graph, support: Ints, query: Ints) -> NDArray[np.float32]:
        """How near each query is to the support node nearest to it: what being sure depends on."""
        z, asked = self._asked(graph, query)
        with torch.inference_mode():
            return nearness(z, asked, self._valued(graph, support)[0], self.distance).amax(dim=1).cpu().numpy()

    def crowd(self, graph: Graph, query: Ints) -> Float[Tensor, " q"] | None:
        """`crowding` of the queries; None where z of all nodes is not at hand."""
        if not self.kept:
            return None
        z, asked = self._asked(graph, query)
        with torch.inference_mode():
            return self.crowding(z, asked)

    def crowding(self, z: Float[Tensor, "n d"], query: Int[Tensor, " q"]) -> Float[Tensor, " q"]:
        """How close nodes lie around each query node: how near the `CLOSE`th nearest is of some drawn from all."""
        if self._drawn is None or self._drawn[0] is not z:
            drawn = np.random.default_rng(0).choice(z.shape[0], min(DRAWN, z.shape[0]), replace=False)
            self._drawn = (z, z[torch.from_numpy(drawn)])
        some = self._drawn[1]
        close = min(CLOSE, some.shape[0])
        parts = [nearness(z, part, some, "cosine") for part in chunks(query, 1, max(some.shape))]
        return torch.cat([near.topk(close, dim=1).values[:, -1] for near in parts])

    def familiar(self, graph: Graph, support: Ints, support_y: Ints, query: Ints) -> NDArray[np.float32]:
        """P(a query node is in one of the given classes), if every second node were."""
        return self.familiar_to(graph, self.ready(graph, support, support_y), query)

    def familiar_to(self, graph: Graph, ready: Ready, query: Ints, share: float = 0.5) -> NDArray[np.float32]:
        """The same, if that share of all nodes is in the classes."""
        near, crowd = self.nearness(graph, ready, query), self.crowd(graph, query)
        return self._knows().probability(near, ready.shots, crowd, share).cpu().numpy()

    def share_of_members(self, graph: Graph, ready: Ready) -> float:
        """What share of the network is in the classes: the same, whichever of its nodes are asked about."""
        some = np.arange(graph.n)
        if graph.n > SURVEYED:
            some = np.sort(np.random.default_rng(0).choice(graph.n, SURVEYED, replace=False))
        parts = np.array_split(some, math.ceil(some.size / TOGETHER**2))  # they may be read from a disk
        near = torch.cat([self.nearness(graph, ready, part) for part in parts])
        return self._knows().share(near, ready.shots, self.crowd(graph, some))

    def _knows(self) -> Known:
        if self.known is None:
            raise FewnodeError("too few validation classes to learn from what belongs to no class; three are needed")
        return self.known

    def explain(self, graph: Graph, ready: Ready, query: Ints, nearest: int = 3) -> Explanation:
        z, asked = self._asked(graph, query)
        with torch.inference_mode():
            order = [
                nearness(z, part, ready.z, self.distance).argsort(dim=1, descending=True, stable=True)[:, :nearest]
                for part in chunks(asked, *ready.z.shape)
            ]
        return Explanation(ready.beta.cpu().numpy(), torch.cat(order).cpu().numpy())

    def _valued(self, graph: Graph, nodes: Ints) -> tuple[Float[Tensor, "k d"], Float[Tensor, " k"]]:
        """z and importance of those nodes."""
        z, importance = self.embedding(graph)
        at = torch.from_numpy(nodes).to(z.device)
        return z[at], importance[at]

    def _asked(self, graph: Graph, query: Ints) -> tuple[Float[Tensor, "n d"], Int[Tensor, " q"]]:
        """A table of z, and where the nodes are in it."""
        z = self.embedding(graph)[0]
        return z, torch.from_numpy(query).to(z.device)


def _flat(device: torch.device | str, parts: list[Ints]) -> Tensor:
    return torch.from_numpy(np.concatenate(parts)).to(device)


class Batch:
    """Several tasks of equal N as flat tensors; the classes of task t are segments t·N … t·N + N-1."""

    def __init__(self, tasks: Sequence[Episode], n_way: int, device: torch.device | str = "cpu") -> None:
        self.n_tasks, self.n_way = len(tasks), n_way
        self.support = _flat(device, [task.support for task in tasks])
        self.query = _flat(device, [task.query for task in tasks])
        self.query_y = _flat(device, [task.query_y for task in tasks])
        self.segment = _flat(device, [task.support_y + t * n_way for t, task in enumerate(tasks)])
        self.task = _flat(device, [np.full(task.query.size, t) for t, task in enumerate(tasks)])

    def prototypes(self, z: Float[Tensor, "k d"], importance: Float[Tensor, " k"]) -> Float[Tensor, "t n d"]:
        """The prototypes of each task."""
        return prototypes(z, importance, self.segment, self.n_tasks * self.n_way).view(self.n_tasks, self.n_way, -1)


class Networks(nn.Module):
    """The two learned functions, f_θ and g_φ."""

    def __init__(self, encoder: nn.Module, valuator: Valuator | None) -> None:
        super().__init__()
        self.encoder, self.valuator = encoder, valuator

    def importance(self, g: Prepared, nodes: Int[Tensor, " k"] | None) -> Float[Tensor, " k"]:
        """s̃, or the same for every node if there is no valuator."""
        if self.valuator is not None:
            return self.valuator(g, nodes)  # type: ignore[no-any-return]
        return torch.zeros(g.n if nodes is None else nodes.numel(), dtype=g.dtype, device=g.device)

    def loss(self, g: Prepared, batch: Batch, distance: str) -> Float[Tensor, ""]:
        """The average negative log-likelihood of the query labels: Eq. (14)."""
        if distance == "sqeuclidean" and self._is_the_papers(g):
            rate = self.encoder.dropout if self.training else 0.0
            eps = self.valuator.eps if self.valuator else 0.0
            loss: Tensor = _EpisodeLoss.apply(g, batch, eps, rate, *self.parameters())  # type: ignore[no-untyped-call]
            return loss
        k = batch.support.numel()
        z = self.encoder(g, torch.cat([batch.support, batch.query]))
        importance = self.importance(g, batch.support)
        if distance == "sqeuclidean" and has_kernels(z):
            return _PrototypeLoss.apply(z, importance, batch)  # type: ignore[no-any-return,no-untyped-call]
        p = batch.prototypes(z[:k], importance)
        return F.nll_loss(log_prob(z[k:], p[batch.task], distance), batch.query_y)

    def _is_the_papers(self, g: Prepared) -> bool:
        """Whether `kernels.episode` computes the loss: two layers each, sparse attributes, a CPU."""
        encoder, valuator = self.encoder, self.valuator
        graph = isinstance(encoder, GCN) and encoder.graph and len(encoder.weight) == 2
        sparse = isinstance(g.x, CSR) and has_kernels(g.x.values)
        return graph and valuator is not None and len(valuator.a) == 2 and sparse and not g.fanout


class _EpisodeLoss(torch.autograd.Function):
    """The loss of a batch of episodes and its derivatives by all parameters, by one call."""

    @staticmethod
    def forward(ctx: Any, g: Any, batch: Batch, eps: float, rate: float, *parameters: Tensor) -> Tensor:
        weight_1, weight_2, bias_1, bias_2, *valuator = _arrays(*parameters)
        parts = _arrays(batch.support, batch.query, batch.segment, batch.task, batch.query_y)
        seed = int(torch.empty((), dtype=torch.int64).random_()) if rate > 0 else 0
        x, adj = g.lean
        loss, (w_1, b_1, w_2, b_2), (w, b, a) = kernels.episode(
            g.adj.arrays,
            (adj.arrays, x.arrays),
            g.place,
            (g.degree.numpy(), eps),
            (weight_1, bias_1, weight_2, bias_2),
            tuple(valuator),
            (*parts, batch.n_way, batch.n_tasks),
            float(rate),
            seed,
        )
        ctx.gradients = [torch.from_numpy(part) for part in (w_1, w_2, b_1, b_2, w, b, a)]
        return parameters[0].new_tensor(loss)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
        scaled = ctx.gradients if gradient == 1 else [gradient * part for part in ctx.gradients]
        return None, None, None, None, *scaled


def _arrays(*tensors: Tensor) -> tuple[NDArray[Any], ...]:
    return tuple(tensor.detach().numpy() for tensor in tensors)


class _PrototypeLoss(torch.autograd.Function):
    """Eqs. (11)-(14) and their derivative in one go."""

    @staticmethod
    def forward(ctx: Any, z: Tensor, importance: Tensor, batch: Batch) -> Tensor:
        arrays = [part.numpy() for part in (z, importance, batch.segment, batch.task, batch.query_y)]
        loss, by_z, by_importance = kernels.prototype_loss(*arrays, batch.n_way, batch.n_tasks)
        ctx.gradient = torch.from_numpy(by_z), torch.from_numpy(by_importance)
        return z.new_tensor(loss)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None]:
        by_z, by_importance = ctx.gradient
        return gradient * by_z, gradient * by_importance, None


class _Pool(Prototypical):
    """A fixed pool of tasks, its nodes numbered anew: what they see is read once, and no other node is embedded."""

    def __init__(self, networks: Networks, g: Prepared, pool: Sequence[Episode], distance: str) -> None:
        self.distance, self.networks, self.g = distance, networks, g
        self.encoder = cast(GCN, networks.encoder)
        ids = np.unique(np.concatenate([nodes for task in pool for nodes in (task.support, task.query)]))
        self.nodes = torch.from_numpy(ids).to(g.device)
        self.field = self.encoder.read(g, self.nodes, few=False)
        valued = np.unique(np.concatenate([task.support for task in pool]))  # a query's importance is nobody's business
        self.valued = torch.from_numpy(np.searchsorted(ids, valued)).to(g.device)
        self.sight: Sight | None = None
        if networks.valuator is not None:
            self.sight = networks.valuator.read(g, torch.from_numpy(valued).to(g.device))
        places = [[np.searchsorted(ids, nodes) for nodes in (task.support, task.query)] for task in pool]
        self.tasks = [replace(task, support=s, query=q) for task, (s, q) in zip(pool, places, strict=True)]

    @cached_property
    def batch(self) -> Batch:
        """All tasks, which must be of equal N."""
        return Batch(self.tasks, self.tasks[0].n_way, self.g.device)

    def accuracy(self, graph: Graph) -> float:
        """The mean over the tasks, with the weights of now."""
        with torch.inference_mode():
            answer = self._log_prob(self.batch, *self._embed(graph)).argmax(dim=1)
            right = torch.bincount(self.batch.task, answer == self.batch.query_y, self.batch.n_tasks)
            return float((right / torch.bincount(self.batch.task)).mean())

    def _embed(self, graph: Graph) -> tuple[Float[Tensor, "n d"], Float[Tensor, " n"]]:
        z = self.encoder.encode(self.field)
        importance = z.new_zeros(self.nodes.numel())
        if self.networks.valuator is not None and self.sight is not None:
            importance[self.valued] = self.networks.valuator.apply_to(self.sight)
        return z, importance


class GPN(Prototypical):
    """The paper's method. The constructor only stores; `fit` learns, and what it learns ends in `_`.

    encoder: `gcn` (the paper's), `mlp` (PN's), `sage`, `gat`, `gin`, or a torch module that takes `x, edge_index`.
    valuator: False gives GPN-naive. dropout: a rate, or `auto` to choose one of `DROPOUTS` on validation classes.
    scaling: of the attributes: `raw`, `l2` or `tf-idf`. batch: tasks a step, which `episodes` counts; their mean loss.
    fanout: neighbours of a node that a training step looks at, another choice every time; 0 is all of them, exactly.
    """

    DROPOUTS = (0.0, 0.2, 0.5)
    _ready: tuple[Graph, Prepared] | None = None

    def __init__(
        self,
        encoder: str | nn.Module = "gcn",
        valuator: bool = True,
        hidden: Sequence[int] = (32, 16),
        eps: float = 1.0,
        distance: str = "sqeuclidean",
        dropout: float | str = 0.5,
        scaling: str = "raw",
        episodes: int = 300,
        lr: float = 0.005,
        weight_decay: float = 5e-4,
        patience: int = 10,
        batch: int = 1,
        fanout: int = 0,
        seed: int = 0,
        device: str = "cpu",
    ) -> None:
        self.batch, self.fanout = batch, fanout
        self.encoder, self.valuator, self.hidden, self.eps = encoder, valuator, tuple(hidden), eps
        self.distance, self.dropout, self.scaling = distance, dropout, scaling
        self.episodes, self.lr, self.weight_decay, self.patience = episodes, lr, weight_decay, patience
        self.seed, self.device = seed, device

    def fit(
        self,
        graph: Graph,
        train: EpisodeSampler,
        valid: EpisodeSampler,
        journal: Journal = QUIET,
        team: Team = ALONE,
    ) -> GPN:
        need_attributes(graph)
        self._check()
        pool = valid.take(VALID_TASKS)
        rates = self.DROPOUTS if isinstance(self.dropout, str) else (self.dropout,)
        tried = {}
        for rate in rates:
            part = journal if len(rates) == 1 else journal.within(f"dropout-{rate}")
            tried[rate] = self._train(rate, graph, train, pool, part, team)
        self.dropout_ = max(rates, key=lambda rate: tried[rate][1].best.accuracy)
        self.networks_, self.history_ = tried[self.dropout_]
        self._cache = None
        return self

    def _check(self) -> None:
        check_widths(self.hidden)
        if not self.eps > 0:
            raise FewnodeError(f"eps is {self.eps}; an isolated node's centrality log(0 + eps) needs it above 0")
        if self.dropout != "auto" and (isinstance(self.dropout, str) or not 0 <= self.dropout < 1):
            raise FewnodeError(f"dropout is {self.dropout}, expected a rate from 0 to below 1, or auto")
        if self.fanout < 0 or (self.fanout and (self.encoder != "gcn" or self.device != "cpu")):
            raise FewnodeError(
                f"fanout is {self.fanout}, expected at least 0; and 0 for encoders other than gcn on a CPU"
            )
        if self.batch < 1:
            raise FewnodeError(f"a batch of {self.batch} tasks: expected at least 1")
        if self.distance not in DISTANCES:
            raise FewnodeError(f"unknown distance {self.distance!r}{closest(self.distance, DISTANCES)}")

    def learner(
        self, dropout: float, graph: Graph, train: EpisodeSampler
    ) -> tuple[Networks, Callable[[list[Episode]], Tensor], MetaBatches]:
        """New networks, the loss of a batch of episodes by them, and the batches."""
        self.idf_ = inverse_document_frequency(graph.x) if self.scaling == "tf-idf" else None
        g = self._prepared(graph)
        networks = self._build(graph.n_features, dropout).to(self.device)

        def loss_of(tasks: list[Episode]) -> Tensor:
            memory.keep()
            seen = g.sampled(self.fanout, int(torch.empty((), dtype=torch.int64).random_())) if self.fanout else g
            return networks.loss(seen, Batch(tasks, train.n_way, self.device), self.distance)

        return networks, loss_of, MetaBatches(train, self.batch)

    def _train(
        self,
        dropout: float,
        graph: Graph,
        train: EpisodeSampler,
        pool: Sequence[Episode],
        journal: Journal,
        team: Team,
    ) -> tuple[Networks, History]:
        networks, loss_of, batches = self.learner(dropout, graph, train)
        self.networks_, g = networks, self._prepared(graph)
        team.begin(dropout)

        view = _Pool(networks, g, pool, self.distance) if isinstance(networks.encoder, GCN) else None

        def validate() -> float:
            self._cache = None
            return float(score(self, graph, pool)["accuracy"].mean()) if view is None else view.accuracy(graph)

        schedule = Schedule(self.episodes, self.lr, self.weight_decay, patience=self.patience)
        return networks, meta_train(networks, loss_of, validate, batches, schedule, journal, team)

    def _build(self, n_features: int, dropout: float) -> Networks:
        """Networks whose first weights depend on the seed alone."""
        with seeded(self.seed):
            if isinstance(self.encoder, nn.Module):
                encoder = copy.deepcopy(self.encoder)
                encoder = encoder if isinstance(encoder, Module) else Module(encoder)
            else:
                encoder = build_encoder(self.encoder, n_features, self.hidden, dropout)
            return Networks(encoder, Valuator(n_features, eps=self.eps) if self.valuator else None)

    def _prepared(self, graph: Graph) -> Prepared:
        if self._ready is None or self._ready[0] is not graph:
            g = open_prepared(graph) if self.scaling == "raw" and self.device == "cpu" else None
            if g is None:
                g = Prepared(graph, scale(graph.x, self.scaling, self.idf_), device=self.device)
            self._ready = (graph, g)
        return self._ready[1]

    def _looks_around(self, graph: Graph) -> bool:
        """Whether only what the nodes of a task can see is read: all nodes would be too many."""
        return self._cache is None and self._prepared(graph).on_disk and isinstance(self.networks_.encoder, GCN)

    def predict_tasks(self, graph: Graph, tasks: Sequence[Episode], transductive: bool = False) -> list[Probabilities]:
        if not self._looks_around(graph):
            return super().predict_tasks(graph, tasks, transductive)
        found: list[Probabilities] = []
        for first in range(0, len(tasks), TOGETHER):
            part = tasks[first : first + TOGETHER]
            pool = _Pool(self.networks_, self._prepared(graph), part, self.distance)
            pool.known = self.known
            found += pool.predict_tasks(graph, pool.tasks, transductive)
        return found

    def _valued(self, graph: Graph, nodes: Ints) -> tuple[Float[Tensor, "k d"], Float[Tensor, " k"]]:
        if not self._looks_around(graph):
            return super()._valued(graph, nodes)
        g, at = self._prepared(graph), torch.from_numpy(nodes)
        with torch.inference_mode():
            return self.networks_.encoder(g, at), self.networks_.importance(g, at)

    def _asked(self, graph: Graph, query: Ints) -> tuple[Float[Tensor, "n d"], Int[Tensor, " q"]]:
        if not self._looks_around(graph):
            return super()._asked(graph, query)
        with torch.inference_mode():
            return self.networks_.encoder(self._prepared(graph), torch.from_numpy(query)), torch.arange(query.size)

    def _embed(self, graph: Graph) -> tuple[Float[Tensor, "n d"], Float[Tensor, " n"]]:
        g = self._prepared(graph)
        return self.networks_.encoder(g, None), self.networks_.importance(g, None)

    def state(self) -> dict[str, Tensor]:
        """What `fit` learned, as named tensors."""
        idf = {} if self.idf_ is None else {"idf": torch.from_numpy(self.idf_)}
        return {**idf, **self.networks_.state_dict(prefix="networks.")}

    def restore(self, n_features: int, state: Mapping[str, Tensor]) -> GPN:
        """Become the method that gave `state`; wrong names or shapes are refused."""
        learned = {name.removeprefix("networks."): tensor for name, tensor in state.items() if name != "idf"}
        self.idf_ = state["idf"].numpy() if self.scaling == "tf-idf" else None
        self._check()
        self.networks_ = adopt(lambda: self._build(n_features, 0.0), learned).to(self.device)
        return self
