"""The paper's method: GPN, GPN-naive and PN.

GPN is an encoder and a valuator. GPN-naive is GPN without the valuator; PN is GPN-naive with an MLP for encoder. Their
equations are in `fewnode.gpn`. `fewnode.engine` computes the same numbers on a CPU, without torch.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from fewnode.embedding.attributes import inverse_document_frequency, need_attributes, scale
from fewnode.engine.compiled import LAYERS, Compiled, first_weights, weight_shapes
from fewnode.engine.fields import ReceptiveFields
from fewnode.episodes import Batch, TaskSampler
from fewnode.errors import FewnodeError, closest
from fewnode.formats.directory import need_shapes
from fewnode.graph import Graph, Ints
from fewnode.methods.table import NEEDS_TORCH
from fewnode.recognition.space import Head
from fewnode.seeds import seeded, stream
from fewnode.train import QUIET, VALID_TASKS, Gradients, History, Journal, Schedule, Weights, meta_train
from fewnode.vectors import Embedding

DISTANCES = ("sqeuclidean", "euclidean", "cosine")
ENCODERS = ("gcn", "mlp", "sage", "gat", "gin")
ENGINES = ("auto", "compiled", "reference")
FORMULATIONS = ("paper", "authors")
KEPT = ("best", "last")
MAX_LAYERS = 64


class Engine(Protocol):
    """Computes the networks of GPN, whose weights come with each call, on one graph."""

    name: str

    def loss_and_gradients(self, weights: Weights, batch: Batch, dropout: float, seed: int) -> Gradients:
        """Eq. (14) for the episodes of a batch, and its derivative by each weight."""

    def embed(self, weights: Weights, nodes: Ints | None = None) -> tuple[NDArray[Any], NDArray[Any]]:
        """z and importance of the nodes, or of all."""

    def answerer(self, batch: Batch) -> Callable[[Weights], NDArray[Any]]:
        """Eq. (13) for the tasks of a batch, row after row, by any weights; the graph is read once."""


@dataclass(eq=False)
class GPN:
    """The paper's method. The constructor only stores; `fit` learns, and what it learns ends in `_`.

    encoder: `gcn` (the paper's), `mlp` (PN's), `sage`, `gat`, `gin`, or a torch module: a `gpn.Encoder`, or one that
    takes `x, edge_index`. valuator: False gives GPN-naive; a torch module, or a class that makes one of the number of
    attributes, stands in its place. dropout: a rate, or `auto` to choose one of `DROPOUTS` on validation classes.
    scaling: of the attributes: `raw`, `l2` or `tf-idf`. batch: tasks a step, which `episodes` counts; their mean loss.
    formulation: `paper`, or `authors` for GPN as their public code has it (docs/deviations.md); what else belongs to it
    are the options of `gpn-authors`. keep: the `best` weights by validation, or the `last`.
    weighted_degree: deg in Eq. (9) is the sum of the weights of a node's edges, not the number of its neighbours.
    engine: `compiled` is NumPy on a CPU, for exactly the paper's networks; `reference` is `gpn.py` by torch, for all;
    `auto` is the first where it is the same. Which one ran stands in the history.
    """

    encoder: Any = "gcn"
    valuator: Any = True
    hidden: Sequence[int] = (32, 16)
    eps: float = 1.0
    distance: str = "sqeuclidean"
    dropout: float | str = "auto"
    scaling: str = "raw"
    episodes: int = 300
    lr: float = 0.005
    weight_decay: float = 5e-4
    patience: int = 10
    batch: int = 1
    formulation: str = "paper"
    keep: str = "best"
    seed: int = 0
    device: str = "cpu"
    weighted_degree: bool = False
    engine: str = "auto"
    DROPOUTS: ClassVar = (0.0, 0.2, 0.5)

    @property
    def queries(self) -> int | None:
        """Queries a class in training, where the formulation has a number of its own."""
        return 20 if self.formulation == "authors" else None

    def fit(self, graph: Graph, train: TaskSampler, valid: TaskSampler) -> GPN:
        return self.fit_in_steps(graph, train, valid, QUIET)

    def fit_in_steps(self, graph: Graph, train: TaskSampler, valid: TaskSampler, journal: Journal) -> GPN:
        need_attributes(graph)
        self._check()
        self.idf_ = inverse_document_frequency(graph.x) if self.scaling == "tf-idf" else None
        rates = self.DROPOUTS if isinstance(self.dropout, str) else (self.dropout,)
        tried: dict[float, tuple[Weights, History]] = {}
        for rate in rates:
            part = journal if len(rates) == 1 else journal.within(f"dropout-{rate}")
            tried[rate] = self._train(rate, graph, train, valid, part)
        self.dropout_ = max(rates, key=lambda rate: tried[rate][1].best.accuracy)
        self.weights_, self.history_ = tried[self.dropout_]
        return self

    def _check(self) -> None:
        check_widths(self.hidden)
        known = {"formulation": FORMULATIONS, "keep": KEPT, "distance": DISTANCES, "engine": ENGINES}
        known |= {"encoder": ENCODERS} if isinstance(self.encoder, str) else {}
        for name, values in known.items():
            if (value := getattr(self, name)) not in values:
                suggested = closest(str(value), values)
                raise FewnodeError(f"unknown {name} {value!r}{suggested}; known are {', '.join(values)}")
        if not self.eps > 0:
            raise FewnodeError(f"eps is {self.eps}; an isolated node's centrality log(0 + eps) needs it above 0")
        if self.dropout != "auto" and (isinstance(self.dropout, str) or not 0 <= self.dropout < 1):
            raise FewnodeError(f"dropout is {self.dropout}, expected a rate from 0 to below 1, or auto")
        if self.batch < 1:
            raise FewnodeError(f"a batch of {self.batch} tasks: expected at least 1")
        authors = self.formulation == "authors"
        if authors and (self.encoder != "gcn" or self.valuator is not True or len(self.hidden) != 2):
            raise FewnodeError("the authors' formulation has a GCN of two layers and a valuator; leave out the other")
        if self.engine == "compiled" and (reason := self._beyond_loops()):
            raise FewnodeError(f"the compiled engine has not {reason}; choose the engine auto")

    def _beyond_loops(self) -> str:
        """What the compiled engine would not compute as it is asked for here; nothing if it is all there."""
        own = not isinstance(self.encoder, str) or not isinstance(self.valuator, bool)
        if own or self.encoder not in ENCODERS[:2] or self.formulation != "paper" or type(self).build is not GPN.build:
            return "this encoder, valuator or formulation"
        if len(self.hidden) != LAYERS or self.distance != "sqeuclidean" or self.device != "cpu":
            return "other than two layers, squared distances and the device cpu"
        equations = sys.modules.get("fewnode.gpn")
        return "" if equations is None or equations.as_published() else "what replaced an equation of fewnode.gpn"

    @property
    def _compiles(self) -> bool:
        return self.engine != "reference" and not self._beyond_loops()

    def _engine_on(self, graph: Graph, dropout: float = 0.0) -> Engine:
        if self.scaling != "raw":
            graph = Graph(graph.adj, scale(graph.x, self.scaling, self.idf_))
        degree = graph.strength if self.weighted_degree else None
        if self._compiles:
            fields = ReceptiveFields.of(graph)
            fields.degree = fields.degree if degree is None else degree.astype(fields.degree.dtype)
            return Compiled(fields, self.encoder == "gcn", self.valuator, self.eps)
        networks = self.build(graph.n_features, dropout)
        engine: Engine = _torch().Reference(networks, graph, self.distance, self.device, degree)
        return engine

    def _first_weights(self, n_features: int, dropout: float) -> Weights:
        """Weights that depend on the seed alone."""
        if self._compiles:
            return first_weights(weight_shapes(n_features, self.hidden, self.valuator), stream(self.seed))
        return dict(_torch().weights_of(self.build(n_features, dropout)))

    def build(self, n_features: int, dropout: float) -> Any:
        """The networks of torch, for the reference."""
        networks = _torch()
        with seeded(self.seed):
            if self.formulation == "authors":
                return networks.AuthorsNetworks(n_features, self.hidden)
            encoder = networks.build_encoder(self.encoder, n_features, self.hidden, dropout)
            return networks.Networks(encoder, networks.build_valuator(self.valuator, n_features, self.eps))

    def learner(
        self, dropout: float, graph: Graph, train: TaskSampler
    ) -> tuple[Engine, Weights, Callable[[int], Gradients]]:
        """New weights, and the loss and gradients of batch k by them: `batch` episodes, none of them twice."""
        engine, weights = self._engine_on(graph, dropout), self._first_weights(graph.n_features, dropout)

        def gradients(k: int) -> Gradients:
            episodes = [train[k * self.batch + i] for i in range(self.batch)]
            return engine.loss_and_gradients(weights, Batch.of(episodes), dropout, stream(train.seed, k))

        return engine, weights, gradients

    def _train(
        self, dropout: float, graph: Graph, train: TaskSampler, valid: TaskSampler, journal: Journal
    ) -> tuple[Weights, History]:
        engine, weights, gradients = self.learner(dropout, graph, train)
        pool = Batch.of(valid.take(VALID_TASKS))
        answer = engine.answerer(pool)

        def validate() -> float:
            right = answer(weights).argmax(axis=1) == pool.query_y
            return float(np.mean(np.bincount(pool.task, right) / np.bincount(pool.task)))

        schedule = Schedule(self.episodes, self.lr, self.weight_decay, patience=self.patience, keep=self.keep)
        return weights, meta_train(weights, gradients, validate, schedule, journal, engine.name)

    def head(self) -> Head:
        return Head(self.distance, learns_classes=True)

    def embed(self, graph: Graph) -> Embedding:
        return Embedding.of(*self._engine_on(graph).embed(self.weights_))

    def state(self) -> dict[str, NDArray[Any]]:
        """What `fit` learned, as named arrays."""
        return ({} if self.idf_ is None else {"idf": self.idf_}) | self.weights_

    def restore(self, n_features: int, state: Mapping[str, NDArray[Any]]) -> GPN:
        """Become the method that gave `state`; wrong names or shapes are refused."""
        self._check()
        if self._compiles:
            expected = weight_shapes(n_features, self.hidden, self.valuator)
        else:  # a file that claims to need larger weights costs no memory
            expected = _torch().shapes_of(lambda: self.build(n_features, 0.0))
        need_shapes(state, expected | ({"idf": (n_features,)} if self.scaling == "tf-idf" else {}))
        self.weights_ = {name: np.asarray(array) for name, array in state.items() if name != "idf"}
        self.idf_ = np.asarray(state["idf"]) if self.scaling == "tf-idf" else None
        if odd := [name for name, array in self.weights_.items() if self._compiles and array.dtype != np.float32]:
            raise ValueError(f"tensor {odd[0]!r} is {self.weights_[odd[0]].dtype}, expected float32")
        return self


def check_widths(hidden: Sequence[int]) -> None:
    """Refuse widths of layers that no encoder has."""
    if not 1 <= len(hidden) <= MAX_LAYERS or not all(isinstance(width, int) and width >= 1 for width in hidden):
        raise FewnodeError(f"hidden sizes {hidden[:8]}: expected 1 to {MAX_LAYERS} of them, each at least 1")


def _torch() -> Any:
    """What GPN needs torch for: anything but the paper's networks on a CPU."""
    try:
        from fewnode.methods import networks
    except ModuleNotFoundError as error:
        raise FewnodeError(f"GPN with these options {NEEDS_TORCH}") from error
    return networks
