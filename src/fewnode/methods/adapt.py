"""Methods that adapt weights to a task by gradient descent on its support set: MAML, Meta-GNN, GCN and SGC.

All four are an encoder and the same inner loop. MAML (Finn et al., ICML 2017) and Meta-GNN (Zhou et al., CIKM 2019)
train the weights *for* that loop: what is minimised is the query loss after it, through all its steps. GCN and SGC
are trained as classifiers of the training classes and adapted afterwards: every weight goes on learning on the support
set, as in the code of the Meta-GNN paper, which section 5.1 follows. There, one N-way head is carried from task to
task while labels are dealt anew, and Adam adapts. Deviation D15: here the head of the training classes is dropped, so
that no class of a task is favoured, and the inner loop of the other two adapts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from fewnode.embedding.attributes import inverse_document_frequency, need_attributes, scale
from fewnode.engine.fields import Nodes, ReceptiveFields
from fewnode.engine.sparse import CSR
from fewnode.episodes import Episode, EpisodeSampler, Task
from fewnode.errors import FewnodeError, closest
from fewnode.formats.directory import need_shapes
from fewnode.graph import Attributes, Graph, is_sparse
from fewnode.methods.gpn import ENCODERS, check_widths
from fewnode.methods.inner import (
    SGC,
    FieldEncoder,
    Others,
    Prepared,
    Support,
    Weights,
    adapt,
    by_autograd,
    embed,
    logits,
)
from fewnode.methods.networks import build_encoder, shapes_of
from fewnode.seeds import seeded
from fewnode.train import QUIET, VALID_TASKS, Diverged, Journal, Schedule, meta_train
from fewnode.vectors import Probabilities

LENGTH = 10.0
"""The root mean square length that rows of attributes are brought to, so that step sizes mean the same everywhere."""
QUERIES = 1024
"""Query nodes that are read at a time."""
FEW_ENTRIES = 1 << 18
"""Of the rows of a validation task that are read once; those of larger ones are read each time."""


class Adapt:
    """MAML and Meta-GNN (`meta`), GCN and SGC (not `meta`). The constructor only stores; what `fit` learns ends in `_`.

    encoder: `mlp` (MAML's), `sgc`, `gcn`, `sage`, `gat`, `gin`, or a torch module that takes `x, edge_index`.
    steps, inner_lr: of the inner loop, in training and afterwards. first_order: leave second derivatives out.
    episodes, lr, weight_decay, patience: of the training, by Adam. scaling: of the attributes, as in `GPN`.
    """

    _ready: tuple[Graph, Prepared] | None = None

    def __init__(
        self,
        encoder: str | nn.Module = "sgc",
        meta: bool = True,
        hidden: Sequence[int] = (16,),
        steps: int = 20,
        inner_lr: float = 0.5,
        first_order: bool = False,
        dropout: float = 0.0,
        scaling: str = "l2",
        episodes: int = 300,
        lr: float = 0.003,
        weight_decay: float = 0.0,
        patience: int = 10,
        seed: int = 0,
    ) -> None:
        self.encoder, self.meta, self.hidden = encoder, meta, tuple(hidden)
        self.steps, self.inner_lr, self.first_order = steps, inner_lr, first_order
        self.dropout, self.scaling = dropout, scaling
        self.episodes, self.lr, self.weight_decay, self.patience = episodes, lr, weight_decay, patience
        self.seed = seed

    def fit(self, graph: Graph, train: EpisodeSampler, valid: EpisodeSampler) -> Adapt:
        return self.fit_in_steps(graph, train, valid, QUIET)

    def fit_in_steps(self, graph: Graph, train: EpisodeSampler, valid: EpisodeSampler, journal: Journal) -> Adapt:
        need_attributes(graph)
        self._check()
        self.idf_ = inverse_document_frequency(graph.x) if self.scaling == "tf-idf" else None
        self.unit_ = LENGTH / max(typical_length(scale(graph.x, self.scaling, self.idf_)), 1e-12)
        self._ready = None
        g = self._prepared(graph)
        self.encoder_ = self._build(graph.n_features)
        trained = nn.ModuleDict({"encoder": self.encoder_})
        loss_of = self._query_loss(g) if self.meta else self._class_loss(g, train, trained)
        schedule = Schedule(self.episodes, self.lr, self.weight_decay, patience=self.patience)
        gradients = by_autograd(trained, lambda t: loss_of(train[t]), train.seed)
        weights = {name: tensor.numpy() for name, tensor in trained.state_dict().items()}  # on the same memory
        self.history_ = meta_train(weights, gradients, self._validation(g, valid), schedule, journal, "reference")
        self.encoder_.eval()
        return self

    def _check(self) -> None:
        if isinstance(self.encoder, str) and self.encoder not in ("sgc", *ENCODERS):
            raise FewnodeError(f"unknown encoder {self.encoder!r}{closest(self.encoder, ('sgc', *ENCODERS))}")
        check_widths(self.hidden)
        if self.encoder == "sgc" and len(self.hidden) > 1:
            raise FewnodeError(f"hidden sizes {self.hidden}: sgc has one layer, expected one size")
        if self.steps < 1 or not self.inner_lr > 0:
            raise FewnodeError(f"{self.steps} steps of size {self.inner_lr}: expected at least one, of a size above 0")
        if not 0 <= self.dropout < 1:
            raise FewnodeError(f"dropout is {self.dropout}, expected a rate from 0 to below 1")

    def _query_loss(self, g: Prepared) -> Callable[[Episode], Tensor]:
        """MAML's objective: the loss of the query set after the inner loop, as a function of the weights before it."""

        def loss_of(episode: Episode) -> Tensor:
            weights = self._adapted(self._support(g, episode.task), second_order=not self.first_order)
            found = logits(self.encoder_, self.encoder_.read(g, episode.query), weights)
            return F.cross_entropy(found, torch.from_numpy(episode.query_y))

        return loss_of

    def _class_loss(self, g: Prepared, train: EpisodeSampler, trained: nn.ModuleDict) -> Callable[[Episode], Tensor]:
        """An ordinary classifier's objective: all training classes at once, on the nodes of an episode."""
        encoder, label = self.encoder_, np.full(g.graph.n, -1)
        for c, members in enumerate(train.members):
            label[members] = c
        of_node = torch.from_numpy(label)
        encoder.eval()
        with torch.no_grad():
            width = encoder(encoder.read(g, train[0].support[:1])).shape[1]
        with seeded(self.seed, 1):
            trained["classes"] = nn.Linear(width, len(train.members))

        def loss_of(episode: Episode) -> Tensor:
            nodes = np.concatenate([episode.support, episode.query])
            z = F.dropout(encoder(encoder.read(g, nodes)), self.dropout)
            return F.cross_entropy(trained["classes"](z), of_node[nodes])

        return loss_of

    def _validation(self, g: Prepared, valid: EpisodeSampler) -> Callable[[], float]:
        """Accuracy on validation tasks."""
        pool = valid.take(VALID_TASKS)
        small: dict[int, tuple[Support, Any]] = {}

        def read(i: int) -> tuple[Support, Any]:
            if i in small:
                return small[i]
            found = self._support(g, pool[i].task), self.encoder_.read(g, pool[i].query)
            if self.encoder_.first and all(_entries(field.rows) < FEW_ENTRIES for field in (found[0].field, found[1])):
                small[i] = found
            return found

        def accuracy(i: int) -> float:
            support, query = read(i)
            with torch.no_grad():
                answer = logits(self.encoder_, query, self._adapted(support)).argmax(dim=1)
            return float((answer.numpy() == pool[i].query_y).mean())

        def validate() -> float:
            self.encoder_.eval()
            return float(np.mean([accuracy(i) for i in range(len(pool))]))

        return validate

    def predict_proba(self, graph: Graph, task: Task) -> Probabilities:
        g = self._prepared(graph)
        weights = self._adapted(self._support(g, task))
        with torch.no_grad():
            if task.query.size * 8 > graph.n > QUERIES:
                found = logits(self.encoder_, self.encoder_.read(g, None), weights)[torch.from_numpy(task.query)]
            else:
                fields = (self.encoder_.read(g, nodes) for nodes in _parts(task.query))
                found = torch.cat([logits(self.encoder_, field, weights) for field in fields])
        if not torch.isfinite(found).all():
            raise Diverged(f"adapting to the support set diverged; try an inner_lr below {self.inner_lr}")
        return found.softmax(dim=1).numpy()

    def rows_in(self, graph: Graph, task: Task, nodes: Nodes) -> NDArray[np.float32]:
        """z of the nodes, by the weights that the task's support set leads to."""
        g = self._prepared(graph)
        weights = self._adapted(self._support(g, task))
        with torch.no_grad():
            return embed(self.encoder_, self.encoder_.read(g, nodes), weights).numpy()

    def _support(self, g: Prepared, task: Task) -> Support:
        return Support.read(self.encoder_, g, task.support, torch.from_numpy(task.support_y))

    def _adapted(self, support: Support, second_order: bool = False) -> Weights:
        with torch.enable_grad():
            return adapt(self.encoder_, support, self.steps, self.inner_lr, second_order)

    def _build(self, n_features: int) -> Any:
        """An encoder whose first weights depend on the seed alone."""
        with seeded(self.seed):
            if self.encoder == "sgc":
                return SGC(n_features, self.hidden[0])
            if self.encoder in ("gcn", "mlp"):
                return FieldEncoder(n_features, self.hidden, self.dropout, graph=self.encoder == "gcn")
            return Others(build_encoder(self.encoder, n_features, self.hidden, self.dropout))

    def _prepared(self, graph: Graph) -> Prepared:
        if self._ready is None or self._ready[0] is not graph:
            scaled = Graph(graph.adj, scale(graph.x, self.scaling, self.idf_) * np.float32(self.unit_))
            self._ready = (graph, Prepared(scaled, ReceptiveFields.of(scaled)))
        return self._ready[1]

    def state(self) -> dict[str, NDArray[Any]]:
        """What `fit` learned, as named arrays. The head for training classes is not needed any more."""
        idf = {} if self.idf_ is None else {"idf": self.idf_}
        weights = {name: tensor.numpy() for name, tensor in self.encoder_.state_dict(prefix="encoder.").items()}
        return {**idf, "unit": np.array(self.unit_), **weights}

    def restore(self, n_features: int, state: Mapping[str, NDArray[Any]]) -> Adapt:
        """Become the method that gave `state`; wrong names or shapes are refused."""
        self._check()
        shapes = {f"encoder.{name}": shape for name, shape in shapes_of(lambda: self._build(n_features)).items()}
        need_shapes(state, {**shapes, "unit": (), **({"idf": (n_features,)} if self.scaling == "tf-idf" else {})})
        self.idf_ = np.asarray(state["idf"]) if self.scaling == "tf-idf" else None
        self.unit_ = float(state["unit"])
        self._ready, self.encoder_ = None, self._build(n_features).eval()
        self.encoder_.load_state_dict(
            {name.removeprefix("encoder."): torch.tensor(np.asarray(state[name])) for name in shapes}
        )
        return self


def _entries(rows: CSR | Tensor) -> int:
    return int(rows.indices.size) if isinstance(rows, CSR) else rows.numel()


def _parts(query: Nodes) -> Iterator[Nodes]:
    return (query[first : first + QUERIES] for first in range(0, max(1, query.size), QUERIES))


def typical_length(x: Attributes) -> float:
    """Root mean square length of the rows that are not empty: nodes of which nothing is known make no others longer."""
    square = np.asarray((x.multiply(x) if is_sparse(x) else x * x).sum(axis=1, dtype=np.float64)).ravel()
    return float(np.sqrt(square.sum() / max(1, np.count_nonzero(square))))
