"""The paper's method: GPN, GPN-naive and PN.

GPN is an encoder and a valuator. GPN-naive is GPN without the valuator; PN is GPN-naive with an MLP for encoder.
Their equations are in `fewnode.gpn`, how they are computed in `fewnode.engine`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor, nn

from fewnode.engine.authors import AuthorsNetworks
from fewnode.engine.door import Engine, engine_for
from fewnode.engine.subgraph import PYG_ENCODERS, ModuleEncoder, pyg_encoder
from fewnode.episodes import Episode, EpisodeSampler
from fewnode.errors import FewnodeError, closest
from fewnode.gpn import (
    DISTANCES,
    Encoder,
    Networks,
    TrainingBatch,
    Valuator,
)
from fewnode.graph import Graph
from fewnode.recognition.prototypes import Prototypical
from fewnode.recognition.task_batches import NumberedTasks, answer_tasks
from fewnode.represent.attributes import inverse_document_frequency, need_attributes, scale
from fewnode.scoring.metrics import score_answers
from fewnode.seeds import seeded, stream
from fewnode.storage.checkpoint import adopt
from fewnode.train import QUIET, VALID_TASKS, Gradients, History, Journal, Schedule, meta_train
from fewnode.vectors import Embedding

TOGETHER = 20
"""Tasks whose neighbourhoods are read together from a network that is not in memory."""


class GPN(Prototypical):
    """The paper's method. The constructor only stores; `fit` learns, and what it learns ends in `_`.

    encoder: `gcn` (the paper's), `mlp` (PN's), `sage`, `gat`, `gin`, or a torch module that takes `x, edge_index`.
    valuator: False gives GPN-naive. dropout: a rate, or `auto` to choose one of `DROPOUTS` on validation classes.
    scaling: of the attributes: `raw`, `l2` or `tf-idf`. batch: tasks a step, which `episodes` counts; their mean loss.
    formulation: `paper`, or `authors` for GPN as their public code has it (docs/deviations.md); what else belongs to it
    are the options of `gpn-authors`. keep: the `best` weights by validation, or the `last`.
    weighted_degree: deg in Eq. (9) is the sum of the weights of a node's edges, not the number of its neighbours.
    """

    DROPOUTS = (0.0, 0.2, 0.5)
    FORMULATIONS = ("paper", "authors")
    _engine: tuple[Graph, Engine] | None = None

    def __init__(
        self,
        encoder: str | nn.Module = "gcn",
        valuator: bool = True,
        hidden: Sequence[int] = (32, 16),
        eps: float = 1.0,
        distance: str = "sqeuclidean",
        dropout: float | str = "auto",
        scaling: str = "raw",
        episodes: int = 300,
        lr: float = 0.005,
        weight_decay: float = 5e-4,
        patience: int = 10,
        batch: int = 1,
        formulation: str = "paper",
        keep: str = "best",
        seed: int = 0,
        device: str = "cpu",
        weighted_degree: bool = False,
    ) -> None:
        self.formulation, self.keep = formulation, keep
        self.weighted_degree = weighted_degree
        self.encoder, self.valuator, self.hidden, self.eps = encoder, valuator, tuple(hidden), eps
        self.distance, self.dropout, self.scaling = distance, dropout, scaling
        self.episodes, self.lr, self.weight_decay, self.patience = episodes, lr, weight_decay, patience
        self.batch, self.seed, self.device = batch, seed, device

    @property
    def queries(self) -> int | None:
        """Queries a class in training, where the formulation has a number of its own."""
        return 20 if self.formulation == "authors" else None

    def fit(self, graph: Graph, train: EpisodeSampler, valid: EpisodeSampler) -> GPN:
        return self.fit_in_steps(graph, train, valid, QUIET)

    def fit_in_steps(
        self,
        graph: Graph,
        train: EpisodeSampler,
        valid: EpisodeSampler,
        journal: Journal,
    ) -> GPN:
        need_attributes(graph)
        self._check()
        pool = valid.take(VALID_TASKS)
        rates = self.DROPOUTS if isinstance(self.dropout, str) else (self.dropout,)
        tried = {}
        for rate in rates:
            part = journal if len(rates) == 1 else journal.within(f"dropout-{rate}")
            tried[rate] = self._train(rate, graph, train, pool, part)
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
        if self.formulation not in self.FORMULATIONS:
            known = closest(str(self.formulation), self.FORMULATIONS)
            raise FewnodeError(f"unknown formulation {self.formulation!r}{known}; expected paper or authors")
        if self.keep not in ("best", "last"):
            raise FewnodeError(f"keep is {self.keep!r}, expected best or last")
        if self.formulation == "authors" and (self.encoder != "gcn" or not self.valuator or len(self.hidden) != 2):
            raise FewnodeError("the authors' formulation has a GCN of two layers and a valuator; leave out the other")
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
    ) -> tuple[Networks, History]:
        networks, gradients = self.learner(dropout, graph, train)
        engine, asked = self.engine(graph, networks), NumberedTasks.of([episode.task for episode in pool])

        def validate() -> float:
            answers = answer_tasks(*asked.embed(engine, networks), asked.tasks, self.distance)
            return float(score_answers(answers, pool)["accuracy"].mean())

        schedule = Schedule(self.episodes, self.lr, self.weight_decay, patience=self.patience, keep=self.keep)
        return networks, meta_train(networks, gradients, validate, schedule, journal)

    def build(self, n_features: int, dropout: float) -> Networks:
        """Networks whose first weights depend on the seed alone."""
        with seeded(self.seed):
            if self.formulation == "authors":
                return AuthorsNetworks(n_features, self.hidden)
            encoder = build_encoder(self.encoder, n_features, self.hidden, dropout)
            return Networks(encoder, Valuator(n_features, eps=self.eps) if self.valuator else None)

    def engine(self, graph: Graph, networks: Networks) -> Engine:
        """What computes the networks on this graph; made once for it."""
        if self._engine is None or self._engine[0] is not graph:
            plain = self.scaling == "raw" and self.device == "cpu"
            x = None if plain else scale(graph.x, self.scaling, self.idf_)
            degree = graph.strength if self.weighted_degree else None
            made = engine_for(networks, graph, self.distance, x=x, degree=degree, device=self.device)
            self._engine = (graph, made)
        return self._engine[1]

    def embed(self, graph: Graph) -> Embedding:
        with torch.inference_mode():
            z, importance = self.engine(graph, self.networks_).embed(self.networks_)
        return Embedding.of(z.cpu().numpy(), importance.cpu().numpy())

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
