"""Methods that adapt weights to a task by gradient descent on its support set: MAML, Meta-GNN, GCN and SGC.

All four are an encoder and the same inner loop. MAML (Finn et al., ICML 2017) and Meta-GNN (Zhou et al., CIKM 2019)
train the weights *for* that loop: what is minimised is the query loss after it, through all its steps. GCN and SGC
are trained as classifiers of the training classes and adapted afterwards: every weight goes on learning on the support
set, as in the code of the Meta-GNN paper, which section 5.1 follows. There, one N-way head is carried from task to
task while labels are dealt anew, and Adam adapts. Deviation D15: here the head of the training classes is dropped, so
that no class of a task is favoured, and the inner loop of the other two adapts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from fewnode._system.kept import Kept
from fewnode.embedding.attributes import inverse_document_frequency, need_attributes, scale
from fewnode.engine.sparse import normalised
from fewnode.episodes import Episode, Task, TaskSampler
from fewnode.errors import FewnodeError, closest
from fewnode.formats.directory import need_shapes
from fewnode.gpn import Encoder
from fewnode.graph import Attributes, Graph, Ints, is_sparse
from fewnode.methods.gpn import check_widths
from fewnode.methods.networks import shapes_of
from fewnode.seeds import seeded
from fewnode.train import QUIET, VALID_TASKS, Diverged, Gradients, Journal, Schedule, meta_train
from fewnode.vectors import Probabilities

ENCODERS = ("sgc", "gcn", "mlp")
LENGTH = 10.0
"""The root mean square length that rows of attributes are brought to, so that step sizes mean the same everywhere."""
QUERIES = 256
"""Query nodes that are read at a time."""
DENSE = 20
"""A product is faster with a dense matrix if one of so many entries is there."""
MAX_GRAM = 1024
"""Rows whose products with each other are formed; beyond that it costs more than it saves."""
FIRST = "encoder.weight.0"
"""The weight that the attributes are multiplied by: by far the largest."""
Weights = dict[str, Tensor]


class Field(NamedTuple):
    """What an encoder reads of a graph for some nodes: constants. A layer multiplies by its weight, then by its hop."""

    rows: Tensor
    hops: tuple[Tensor | None, ...]


@dataclass(frozen=True, eq=False)
class Reading:
    """A graph as the encoder reads it: Â, and the rows that its first weight multiplies, X or Â X."""

    encoder: str
    layers: int
    a_hat: sp.csr_array
    x: Attributes

    @classmethod
    def of(cls, encoder: str, layers: int, graph: Graph, x: Attributes) -> Reading:
        a_hat = normalised(graph, np.float32)
        return cls(encoder, layers, a_hat, x if encoder == "mlp" else a_hat @ x)

    def field(self, nodes: Ints) -> Field:
        """The receptive field of the nodes, with as few rows as can be."""
        if self.encoder == "sgc":  # rows of Â² X are formed for these nodes alone: near a hub none of them is sparse
            return Field(_tensor(self.a_hat[nodes] @ self.x), (None,))
        hops: list[Tensor | None] = [None] * (self.layers if self.encoder == "mlp" else 1)
        for _ in range(self.layers - len(hops)):
            hop = self.a_hat[nodes]
            nodes, place = np.unique(hop.indices, return_inverse=True)
            inside = sp.csr_array((hop.data, place.astype(hop.indices.dtype), hop.indptr), (hop.shape[0], nodes.size))
            hops.insert(1, _tensor(inside))
        return Field(_tensor(self.x[nodes]), tuple(hops))

    def encode(
        self, weights: Weights, field: Field, h: Tensor | None = None, dropout: float = 0.0
    ) -> Float[Tensor, "k d"]:
        """z; `h` is the product of the field's rows with the first weight, where it is at hand.

        SGC is Â² X W + b (Wu et al., ICML 2019); the others have ReLU after each layer, as the encoder of GPN.
        """
        h = field.rows @ weights[FIRST] if h is None else h
        for layer, hop in enumerate(field.hops):
            if layer > 0:
                h = F.dropout(h, dropout) @ weights[f"encoder.weight.{layer}"]
            h = (h if hop is None else hop @ h) + weights[f"encoder.bias.{layer}"]
            h = h if self.encoder == "sgc" else F.relu(h)
        return h


def _tensor(matrix: Attributes) -> Tensor:
    if not is_sparse(matrix) or matrix.nnz * DENSE > np.prod(matrix.shape):
        return torch.from_numpy(np.ascontiguousarray(matrix.toarray() if is_sparse(matrix) else matrix))
    coo = matrix.tocoo()
    place = torch.from_numpy(np.stack(coo.coords).astype(np.int64))
    return torch.sparse_coo_tensor(place, torch.from_numpy(coo.data), coo.shape, check_invariants=False).coalesce()


def logits(reading: Reading, weights: Weights, field: Field, h: Tensor | None = None, dropout: float = 0.0) -> Tensor:
    """Of the classes of the task that the weights were adapted to."""
    return reading.encode(weights, field, h, dropout) @ weights["head"] + weights["bias"]


def adapt(
    reading: Reading,
    weights: Weights,
    field: Field,
    y: Int[Tensor, " k"],
    steps: int,
    lr: float,
    second_order: bool = False,
    dropout: float = 0.0,
) -> Weights:
    """The weights, head included, that a support set comes to: the inner loop of MAML (Algorithm 2).

    The head begins with zeros, which treat all classes alike, whatever their number and order. A learned column that
    all classes start from (Ye & Chao, ICLR 2022) does no more: it cancels in the softmax. No class counts for more
    because it has more shots.

    The first weight W has a row for each attribute, but a step moves it by rowsᵀ G alone, G being the gradient at rows
    times W. So the loop follows that product, which a step moves by rows rowsᵀ G, and W is moved once, at the end: the
    same numbers without a product as wide as the attributes.
    """
    rows, n_way = field.rows, int(y.max()) + 1
    balance = (1.0 / torch.bincount(y)).to(rows.dtype)
    transposed = rows.T.coalesce() if rows.is_sparse else rows.T
    gram = (rows @ transposed).to_dense() if rows.shape[0] <= MAX_GRAM else None
    h, moved = rows @ weights[FIRST], torch.zeros(1)
    moving = {name: tensor for name, tensor in weights.items() if name != FIRST}
    head = h.new_zeros(weights[f"encoder.bias.{reading.layers - 1}"].numel(), n_way)
    moving |= {"head": head.requires_grad_(), "bias": head.new_zeros(n_way).requires_grad_()}
    for _ in range(steps):
        loss = F.cross_entropy(logits(reading, moving, field, h, dropout), y, balance)
        slopes = torch.autograd.grad(loss, [*moving.values(), h], create_graph=second_order, materialize_grads=True)
        moving = {name: tensor - lr * slope for (name, tensor), slope in zip(moving.items(), slopes, strict=False)}
        h = h - lr * (rows @ (transposed @ slopes[-1]) if gram is None else gram @ slopes[-1])
        moved = moved + lr * slopes[-1]
    return {**moving, FIRST: weights[FIRST] - transposed @ moved}


@dataclass(eq=False)
class Adapt:
    """MAML and Meta-GNN (`meta`), GCN and SGC (not `meta`). The constructor only stores; what `fit` learns ends in `_`.

    encoder: `mlp` (MAML's), `sgc` or `gcn`. steps, inner_lr: of the inner loop, in training and afterwards.
    first_order: leave second derivatives out. episodes, lr, weight_decay, patience: of the training, by Adam.
    scaling: of the attributes, as in `GPN`.
    """

    encoder: str = "sgc"
    meta: bool = True
    hidden: Sequence[int] = (16,)
    steps: int = 20
    inner_lr: float = 0.5
    first_order: bool = False
    dropout: float = 0.0
    scaling: str = "l2"
    episodes: int = 300
    lr: float = 0.003
    weight_decay: float = 0.0
    patience: int = 10
    seed: int = 0
    _kept: Kept = field(default_factory=lambda: Kept(1), init=False, repr=False)

    def fit(self, graph: Graph, train: TaskSampler, valid: TaskSampler) -> Adapt:
        return self.fit_in_steps(graph, train, valid, QUIET)

    def fit_in_steps(self, graph: Graph, train: TaskSampler, valid: TaskSampler, journal: Journal) -> Adapt:
        need_attributes(graph)
        self._check()
        self.idf_ = inverse_document_frequency(graph.x) if self.scaling == "tf-idf" else None
        self.unit_ = LENGTH / max(typical_length(scale(graph.x, self.scaling, self.idf_)), 1e-12)
        self._kept, pool = Kept(1), valid.take(VALID_TASKS)
        reading = self._reading(graph)
        with seeded(self.seed):
            encoder = nn.ModuleDict({"encoder": Encoder(graph.n_features, self.hidden)})
        with seeded(self.seed, 1):
            classes = nn.ModuleDict({} if self.meta else {"classes": nn.Linear(self.hidden[-1], len(train.members))})
        self.weights_: Weights = dict(encoder.named_parameters())
        trained = {**self.weights_, **dict(classes.named_parameters())}
        label = np.full(graph.n, -1)
        for c, members in enumerate(train.members):
            label[members] = c

        def gradients(t: int) -> Gradients:
            with seeded(train.seed, t):  # what dropout draws
                minimised = (reading, train[t])
                loss = self._query_loss(*minimised) if self.meta else self._class_loss(*minimised, trained, label)
            if not torch.isfinite(loss):
                return float(loss.detach()), {}
            slopes = torch.autograd.grad(loss, [*trained.values()], allow_unused=True, materialize_grads=True)
            return float(loss.detach()), {n: slope.numpy() for n, slope in zip(trained, slopes, strict=True)}

        def validate() -> float:
            answers = (self._logits(reading, episode.task).argmax(dim=1).numpy() for episode in pool)
            return float(np.mean([(y == e.query_y).mean() for y, e in zip(answers, pool, strict=True)]))

        weights = {name: tensor.detach().numpy() for name, tensor in trained.items()}  # on the same memory
        schedule = Schedule(self.episodes, self.lr, self.weight_decay, patience=self.patience)
        self.history_ = meta_train(weights, gradients, validate, schedule, journal, "reference")
        return self

    def _check(self) -> None:
        if self.encoder not in ENCODERS:
            raise FewnodeError(f"unknown encoder {self.encoder!r}{closest(str(self.encoder), ENCODERS)}")
        check_widths(self.hidden)
        if self.encoder == "sgc" and len(self.hidden) > 1:
            raise FewnodeError(f"hidden sizes {self.hidden}: sgc has one layer, expected one size")
        if self.steps < 1 or not self.inner_lr > 0:
            raise FewnodeError(f"{self.steps} steps of size {self.inner_lr}: expected at least one, of a size above 0")
        if not 0 <= self.dropout < 1:
            raise FewnodeError(f"dropout is {self.dropout}, expected a rate from 0 to below 1")

    def _query_loss(self, reading: Reading, episode: Episode) -> Tensor:
        """MAML's objective: the loss of the query set after the inner loop, as a function of the weights before it."""
        weights = self._adapted(reading, episode.task, not self.first_order, self.dropout)
        answers = logits(reading, weights, reading.field(episode.query), dropout=self.dropout)
        return F.cross_entropy(answers, torch.from_numpy(episode.query_y))

    def _class_loss(self, reading: Reading, episode: Episode, weights: Weights, label: Ints) -> Tensor:
        """An ordinary classifier's objective: all training classes at once, on the nodes of an episode."""
        nodes = np.concatenate([episode.support, episode.query])
        z = F.dropout(reading.encode(weights, reading.field(nodes), dropout=self.dropout), self.dropout)
        answers = z @ weights["classes.weight"].T + weights["classes.bias"]
        return F.cross_entropy(answers, torch.from_numpy(label[nodes]))

    def _adapted(self, reading: Reading, task: Task, second_order: bool = False, dropout: float = 0.0) -> Weights:
        support, y = reading.field(task.support), torch.from_numpy(task.support_y)
        with torch.enable_grad():
            return adapt(reading, self.weights_, support, y, self.steps, self.inner_lr, second_order, dropout)

    @torch.no_grad()
    def _logits(self, reading: Reading, task: Task) -> Tensor:
        weights = self._adapted(reading, task)
        parts = (task.query[low : low + QUERIES] for low in range(0, max(1, task.query.size), QUERIES))
        return torch.cat([logits(reading, weights, reading.field(nodes)) for nodes in parts])

    def predict_proba(self, graph: Graph, task: Task) -> Probabilities:
        answers = self._logits(self._reading(graph), task)
        if not torch.isfinite(answers).all():
            raise Diverged(f"adapting to the support set diverged; try an inner_lr below {self.inner_lr}")
        return answers.softmax(dim=1).numpy()

    @torch.no_grad()
    def rows_in(self, graph: Graph, task: Task, nodes: Ints) -> NDArray[np.float32]:
        """z of the nodes, by the weights that the task's support set leads to."""
        reading = self._reading(graph)
        return reading.encode(self._adapted(reading, task), reading.field(nodes)).numpy()

    def _reading(self, graph: Graph) -> Reading:
        def made() -> Reading:
            x = scale(graph.x, self.scaling, self.idf_) * np.float32(self.unit_)
            return Reading.of(self.encoder, len(self.hidden), graph, x)

        return self._kept(graph.fingerprint, made)

    def state(self) -> dict[str, NDArray[Any]]:
        """What `fit` learned, as named arrays. The head for training classes is not needed any more."""
        idf = {} if self.idf_ is None else {"idf": self.idf_}
        weights = {name: tensor.detach().numpy() for name, tensor in self.weights_.items()}
        return {**idf, "unit": np.array(self.unit_), **weights}

    def restore(self, n_features: int, state: Mapping[str, NDArray[Any]]) -> Adapt:
        """Become the method that gave `state`; wrong names or shapes are refused."""
        self._check()
        shapes = {f"encoder.{name}": s for name, s in shapes_of(lambda: Encoder(n_features, self.hidden)).items()}
        need_shapes(state, {**shapes, "unit": (), **({"idf": (n_features,)} if self.scaling == "tf-idf" else {})})
        self.idf_ = np.asarray(state["idf"]) if self.scaling == "tf-idf" else None
        self.unit_, self._kept = float(state["unit"]), Kept(1)
        self.weights_ = {name: torch.tensor(np.asarray(state[name])).requires_grad_() for name in shapes}
        return self


def typical_length(x: Attributes) -> float:
    """Root mean square length of the rows that are not empty: nodes of which nothing is known make no others longer."""
    square = np.asarray((x.multiply(x) if is_sparse(x) else x * x).sum(axis=1, dtype=np.float64)).ravel()
    return float(np.sqrt(square.sum() / max(1, np.count_nonzero(square))))
