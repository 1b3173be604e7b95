"""Few-shot classification by nearest prototype (section 4.4), and the paper's method: GPN, GPN-naive and PN.

GPN is an encoder and a valuator. GPN-naive is GPN without the valuator; PN is GPN-naive with an MLP for encoder.
Their equations are in `fewnode.gpn`, how they are computed in `fewnode.engine`.
"""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from fewnode.attributes import inverse_document_frequency, need_attributes, scale
from fewnode.blocks import open_prepared
from fewnode.checkpoint import adopt
from fewnode.engine.compiled import Compiled
from fewnode.engine.door import Engine, engine_for
from fewnode.engine.subgraph import PYG_ENCODERS, ModuleEncoder, pyg_encoder
from fewnode.episodes import Episode, EpisodeSampler, Task
from fewnode.errors import FewnodeError, closest
from fewnode.evaluation import Probabilities, score_answers
from fewnode.gpn import (
    DISTANCES,
    Batch,
    Encoder,
    Networks,
    TrainingBatch,
    Valuator,
    closeness,
    log_prob,
    prototypes,
    segment_softmax,
)
from fewnode.graph import Graph, Ints
from fewnode.train import (
    ALONE,
    QUIET,
    VALID_TASKS,
    Gradients,
    History,
    Journal,
    Schedule,
    Team,
    meta_train,
    seeded,
    stream,
)

CHUNK = 1 << 22
"""Numbers that a comparison of query nodes with prototypes holds at a time: it bounds memory when all are asked for."""

TOGETHER = 20
"""Tasks whose neighbourhoods are read together from a network that is not in memory."""


def nearness(
    z: Float[Tensor, "m d"], query: Int[Tensor, " q"], p: Float[Tensor, "n d"], distance: str
) -> Float[Tensor, "q n"]:
    """How near each query node is to the same n prototypes, or to n other nodes."""
    if distance == "cosine":
        unit = F.normalize(p)
        return torch.cat([10 * F.normalize(z[part]) @ unit.T for part in chunks(query, 1, z.shape[1])])
    found = [closeness(z[part], p.expand(part.numel(), -1, -1), distance) for part in chunks(query, *p.shape)]
    return torch.cat(found) if len(found) > 1 else found[0]


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

    def predict_proba(self, graph: Graph, task: Task) -> Probabilities:
        return self.answer(graph, self.ready(graph, task.support, task.support_y), task.query)

    def predict_tasks(self, graph: Graph, tasks: Sequence[Task], transductive: bool = False) -> list[Probabilities]:
        """The probabilities of many tasks; those of equal N are computed together.

        Inductive: a query is classified on its own. Transductive: the queries of a task help each other.
        """
        if transductive:
            return [self._rectified(graph, task) for task in tasks]
        return answer_tasks(*self.embedding(graph), tasks, self.distance)

    def _rectified(self, graph: Graph, task: Task) -> Probabilities:
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


def answer_tasks(
    z: Float[Tensor, "n d"], importance: Float[Tensor, " n"], tasks: Sequence[Task], distance: str
) -> list[Probabilities]:
    """Eqs. (11)-(13) for many tasks; those of equal N are computed together."""
    answers: dict[int, Probabilities] = {}
    for n_way in sorted({task.n_way for task in tasks}):
        places = [i for i, task in enumerate(tasks) if task.n_way == n_way]
        batch = Batch([tasks[i] for i in places], z.device)
        with torch.inference_mode():
            p = prototypes(z[batch.support], importance[batch.support], batch.segment, batch.n_tasks * n_way)
            p = p.view(batch.n_tasks, n_way, -1)
            parts = zip(*(chunks(part, *p.shape[1:]) for part in (batch.query, batch.task)), strict=True)
            rows = torch.cat([log_prob(z[q], p[t], distance) for q, t in parts]).exp().cpu().numpy()
        ends = np.cumsum([tasks[i].query.size for i in places])
        answers |= dict(zip(places, np.split(rows, ends[:-1]), strict=True))
    return [answers[i] for i in range(len(tasks))]


@dataclass(frozen=True, eq=False)
class NumberedTasks:
    """Tasks whose nodes are numbered anew, so that no other node needs to be embedded."""

    nodes: Ints
    support: Ints
    """Of the nodes, those that are in a support set: only they need an importance."""
    tasks: list[Task]

    @classmethod
    def of(cls, tasks: Sequence[Task]) -> NumberedTasks:
        nodes = np.unique(np.concatenate([part for task in tasks for part in (task.support, task.query)]))
        support = np.unique(np.concatenate([task.support for task in tasks]))
        places = [[np.searchsorted(nodes, part) for part in (task.support, task.query)] for task in tasks]
        return cls(nodes, support, [replace(t, support=s, query=q) for t, (s, q) in zip(tasks, places, strict=True)])

    def embed(self, engine: Engine, networks: Networks) -> tuple[Float[Tensor, "k d"], Float[Tensor, " k"]]:
        """z and importance, row by row of `nodes`; queries have an importance of 0."""
        z, valued = engine.embed(networks, self.nodes, self.support)
        importance = z.new_zeros(self.nodes.size)
        importance[torch.from_numpy(np.searchsorted(self.nodes, self.support)).to(z.device)] = valued
        return z, importance


class GPN(Prototypical):
    """The paper's method. The constructor only stores; `fit` learns, and what it learns ends in `_`.

    encoder: `gcn` (the paper's), `mlp` (PN's), `sage`, `gat`, `gin`, or a torch module that takes `x, edge_index`.
    valuator: False gives GPN-naive. dropout: a rate, or `auto` to choose one of `DROPOUTS` on validation classes.
    scaling: of the attributes: `raw`, `l2` or `tf-idf`. batch: tasks a step, which `episodes` counts; their mean loss.
    """

    DROPOUTS = (0.0, 0.2, 0.5)
    _engine: tuple[Graph, Engine] | None = None

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
        seed: int = 0,
        device: str = "cpu",
    ) -> None:
        self.encoder, self.valuator, self.hidden, self.eps = encoder, valuator, tuple(hidden), eps
        self.distance, self.dropout, self.scaling = distance, dropout, scaling
        self.episodes, self.lr, self.weight_decay, self.patience = episodes, lr, weight_decay, patience
        self.batch, self.seed, self.device = batch, seed, device

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
        if self.batch < 1:
            raise FewnodeError(f"a batch of {self.batch} tasks: expected at least 1")
        if self.distance not in DISTANCES:
            raise FewnodeError(f"unknown distance {self.distance!r}{closest(self.distance, DISTANCES)}")

    def learner(
        self, dropout: float, graph: Graph, train: EpisodeSampler
    ) -> tuple[Networks, Callable[[int], Gradients]]:
        """New networks, and the loss and gradients of batch k by them: `batch` episodes, none of them twice."""
        self.idf_ = inverse_document_frequency(graph.x) if self.scaling == "tf-idf" else None
        networks = self.build(graph.n_features, dropout).to(self.device)
        engine = self.engine(graph, networks)

        def gradients(k: int) -> Gradients:
            episodes = [train[k * self.batch + i] for i in range(self.batch)]
            return engine.loss_and_gradients(
                networks, TrainingBatch(episodes, self.device), dropout, stream(train.seed, k)
            )

        return networks, gradients

    def _train(
        self,
        dropout: float,
        graph: Graph,
        train: EpisodeSampler,
        pool: Sequence[Episode],
        journal: Journal,
        team: Team,
    ) -> tuple[Networks, History]:
        networks, gradients = self.learner(dropout, graph, train)
        engine, asked = self.engine(graph, networks), NumberedTasks.of([episode.task for episode in pool])
        team.begin(dropout)

        def validate() -> float:
            answers = answer_tasks(*asked.embed(engine, networks), asked.tasks, self.distance)
            return float(score_answers(answers, pool)["accuracy"].mean())

        schedule = Schedule(self.episodes, self.lr, self.weight_decay, patience=self.patience)
        return networks, meta_train(networks, gradients, validate, schedule, journal, team)

    def build(self, n_features: int, dropout: float) -> Networks:
        """Networks whose first weights depend on the seed alone."""
        with seeded(self.seed):
            encoder = build_encoder(self.encoder, n_features, self.hidden, dropout)
            return Networks(encoder, Valuator(n_features, eps=self.eps) if self.valuator else None)

    def engine(self, graph: Graph, networks: Networks) -> Engine:
        """What computes the networks on this graph; made once for it."""
        if self._engine is None or self._engine[0] is not graph:
            plain = self.scaling == "raw" and self.device == "cpu"
            x = None if plain else scale(graph.x, self.scaling, self.idf_)
            fields = open_prepared(graph) if plain else None
            made = engine_for(networks, graph, self.distance, x=x, fields=fields, device=self.device)
            self._engine = (graph, made)
        return self._engine[1]

    def _looks_around(self, graph: Graph) -> bool:
        """Whether only what the nodes of a task can see is read: all nodes would be too many."""
        engine = self.engine(graph, self.networks_)
        return not self.remembers(graph) and isinstance(engine, Compiled) and engine.fields.on_disk

    def predict_tasks(self, graph: Graph, tasks: Sequence[Task], transductive: bool = False) -> list[Probabilities]:
        if not self._looks_around(graph) or transductive:
            return super().predict_tasks(graph, tasks, transductive)
        engine, found = self.engine(graph, self.networks_), []
        for first in range(0, len(tasks), TOGETHER):
            asked = NumberedTasks.of(tasks[first : first + TOGETHER])
            found += answer_tasks(*asked.embed(engine, self.networks_), asked.tasks, self.distance)
        return found

    def _valued(self, graph: Graph, nodes: Ints) -> tuple[Float[Tensor, "k d"], Float[Tensor, " k"]]:
        if not self._looks_around(graph):
            return super()._valued(graph, nodes)
        return self.engine(graph, self.networks_).embed(self.networks_, nodes)

    def _asked(self, graph: Graph, query: Ints) -> tuple[Float[Tensor, "n d"], Int[Tensor, " q"]]:
        if not self._looks_around(graph):
            return super()._asked(graph, query)
        z, _ = self.engine(graph, self.networks_).embed(self.networks_, query, query[:0])
        return z, torch.arange(query.size)

    def _embed(self, graph: Graph) -> tuple[Float[Tensor, "n d"], Float[Tensor, " n"]]:
        return self.engine(graph, self.networks_).embed(self.networks_)

    def state(self) -> dict[str, Tensor]:
        """What `fit` learned, as named tensors."""
        idf = {} if self.idf_ is None else {"idf": torch.from_numpy(self.idf_)}
        return {**idf, **self.networks_.state_dict(prefix="networks.")}

    def restore(self, n_features: int, state: Mapping[str, Tensor]) -> GPN:
        """Become the method that gave `state`; wrong names or shapes are refused."""
        learned = {name.removeprefix("networks."): tensor for name, tensor in state.items() if name != "idf"}
        self.idf_ = state["idf"].numpy() if self.scaling == "tf-idf" else None
        self._check()
        self.networks_ = adopt(lambda: self.build(n_features, 0.0), learned).to(self.device)
        return self


# --- encoders by name ---------------------------------------------------------------------------------------------

ENCODERS = ("gcn", "mlp", *PYG_ENCODERS)
MAX_LAYERS = 64


def check_widths(hidden: Sequence[int]) -> None:
    """Refuse widths of layers that no encoder has."""
    if not 1 <= len(hidden) <= MAX_LAYERS or not all(isinstance(width, int) and width >= 1 for width in hidden):
        raise FewnodeError(f"hidden sizes {hidden[:8]}: expected 1 to {MAX_LAYERS} of them, each at least 1")


def build_encoder(name: str | nn.Module, n_features: int, hidden: Sequence[int], dropout: float) -> nn.Module:
    """The paper's `gcn`, the graph-free `mlp`, PyG's `sage`, `gat`, `gin`, or a copy of a module of the user's own."""
    if isinstance(name, nn.Module):
        own = copy.deepcopy(name)
        return own if isinstance(own, ModuleEncoder) else ModuleEncoder(own)
    if name in PYG_ENCODERS:
        return pyg_encoder(name, n_features, hidden, dropout)
    if name not in ENCODERS:
        raise FewnodeError(f"unknown encoder {name!r}; known are {', '.join(ENCODERS)}")
    return Encoder(n_features, hidden, graph=name == "gcn")
