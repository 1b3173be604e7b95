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
from functools import partial

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from fewnode.engine.fields import Nodes, ReceptiveFields
from fewnode.engine.sparse import CSR
from fewnode.episodes import Episode, EpisodeSampler, Task
from fewnode.errors import FewnodeError, closest
from fewnode.graph import Attributes, Graph, is_sparse
from fewnode.method import Probabilities
from fewnode.methods.gpn import ENCODERS, build_encoder, check_widths
from fewnode.methods.inner import (
    MOVE,
    ROWS,
    Field,
    FieldEncoder,
    KnownTask,
    Network,
    Pool,
    Stack,
    Support,
    Weights,
    adapt,
)
from fewnode.represent.attributes import inverse_document_frequency, need_attributes, scale
from fewnode.seeds import seeded
from fewnode.storage.checkpoint import adopt
from fewnode.train import QUIET, VALID_TASKS, Diverged, Journal, Schedule, by_autograd, meta_train

LENGTH = 10.0
"""The root mean square length that rows of attributes are brought to, so that step sizes mean the same everywhere."""
SMALL = 1 << 26
"""Numbers of Â² X up to which it is kept for all nodes, densely: 268 MB."""
TASKS, QUERIES = 32, 1024
"""Tasks that are adapted to at a time, and query nodes that are read at a time: they bound memory."""


class SGC(nn.Module):
    """Simple graph convolution (Wu et al., ICML 2019): Â² X W + b, no non-linearity.

    Rows of Â² X are formed for the nodes that are read: near a hub none of them is sparse. In a small graph they are
    formed once, for all nodes.
    """

    _all: tuple[ReceptiveFields, Tensor] | None = None

    def __init__(self, n_features: int, width: int) -> None:
        super().__init__()
        self.first = nn.Parameter(torch.empty(n_features, width))
        self.bias = nn.Parameter(torch.zeros(width))
        nn.init.xavier_uniform_(self.first)

    def read(self, g: ReceptiveFields, nodes: Nodes | None) -> Field:
        if nodes is not None and g.n * g.n_features <= SMALL:
            return Field(self._twice(g)[torch.from_numpy(nodes)], (), nodes)
        hop = g.hop(nodes)
        rows, inner = g.propagated(hop.around)
        return Field(rows, (inner, hop.matrix)) if nodes is None else Field(_product(hop.matrix, rows), (), nodes)

    def _twice(self, g: ReceptiveFields) -> Float[Tensor, "n d"]:
        if self._all is None or self._all[0] is not g:
            p = g.p.to_dense() if isinstance(g.p, CSR) else g.p
            self._all = (g, torch.from_numpy(g.adj.multiply(p.numpy())))
        return self._all[1]

    def apply_to(self, field: Field) -> Float[Tensor, "k d"]:
        return self.finish(field, field.rows @ self.first)

    def finish(self, field: Field, h: Float[Tensor, "*t m d"]) -> Float[Tensor, "*t k d"]:
        for hop in field.hops:
            h = h if hop is None else hop @ h
        return h + self.bias

    @torch.no_grad()
    def products(self, g: ReceptiveFields) -> Float[Tensor, "n d"]:
        return self.apply_to(self.read(g, None)) - self.bias


def _product(hop: CSR, rows: CSR | Tensor) -> CSR | Tensor:
    return CSR.of(hop.scipy @ rows.scipy) if isinstance(rows, CSR) else hop @ rows


class Adapt:
    """MAML and Meta-GNN (`meta`), GCN and SGC (not `meta`). The constructor only stores; what `fit` learns ends in `_`.

    encoder: `mlp` (MAML's), `sgc`, `gcn`, `sage`, `gat`, `gin`, or a torch module that takes `x, edge_index`.
    steps, inner_lr: of the inner loop, in training and afterwards. first_order: leave second derivatives out.
    episodes, lr, weight_decay, patience: of the training, by Adam. scaling: of the attributes, as in `GPN`.
    """

    _ready: tuple[Graph, ReceptiveFields] | None = None

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
        self.network_ = network = self._build(graph.n_features)
        loss_of = self._query_loss(g) if self.meta else self._class_loss(g, train)
        schedule = Schedule(self.episodes, self.lr, self.weight_decay, patience=self.patience)
        gradients = by_autograd(network, lambda t: loss_of(train[t]), train.seed)
        self.history_ = meta_train(network, gradients, self._validation(g, valid), schedule, journal)
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

    def _query_loss(self, g: ReceptiveFields) -> Callable[[Episode], Tensor]:
        """MAML's objective: the loss of the query set after the inner loop, as a function of the weights before it."""

        def loss_of(episode: Episode) -> Tensor:
            (weights,) = self._adapted([self._support(g, episode.task)], second_order=not self.first_order)
            logits = self.network_.logits(self.network_.encoder.read(g, episode.query), weights)
            return F.cross_entropy(logits, torch.from_numpy(episode.query_y))

        return loss_of

    def _class_loss(self, g: ReceptiveFields, train: EpisodeSampler) -> Callable[[Episode], Tensor]:
        """An ordinary classifier's objective: all training classes at once, on the nodes of an episode."""
        network = self.network_
        label = np.full(g.n, -1)
        for c, members in enumerate(train.members):
            label[members] = c
        of_node = torch.from_numpy(label)
        network.eval()
        with torch.no_grad():
            width = network(network.encoder.read(g, train[0].support[:1])).shape[1]
        with seeded(self.seed, 1):
            network.classes = classes = nn.Linear(width, len(train.members))

        def loss_of(episode: Episode) -> Tensor:
            nodes = np.concatenate([episode.support, episode.query])
            z = F.dropout(network(network.encoder.read(g, nodes)), self.dropout)
            return F.cross_entropy(classes(z), of_node[nodes])

        return loss_of

    def _validation(self, g: ReceptiveFields, valid: EpisodeSampler) -> Callable[[], float]:
        """Accuracy on validation tasks. What is dear and does not depend on weights is computed once."""
        pool = valid.take(VALID_TASKS)
        kept = Pool()

        def validate() -> float:
            self.network_.eval()
            answers = self._answers(g, [episode.task for episode in pool], kept)
            return float(np.mean([(p.argmax(dim=1).cpu().numpy() == pool[i].query_y).mean() for i, p in answers]))

        return validate

    def predict_proba(self, graph: Graph, task: Task) -> Probabilities:
        return self.predict_tasks(graph, [task])[0]

    def predict_tasks(self, graph: Graph, tasks: Sequence[Task]) -> list[Probabilities]:
        """The probabilities of many tasks; those of equal N are adapted to together."""
        answers: dict[int, Probabilities] = {}
        for n_way in sorted({task.n_way for task in tasks}):
            places = [i for i, task in enumerate(tasks) if task.n_way == n_way]
            same = [tasks[i] for i in places]
            for i, logits in self._answers(self._prepared(graph), same):
                if not torch.isfinite(logits).all():
                    raise Diverged(f"adapting to the support set diverged; try an inner_lr below {self.inner_lr}")
                answers[places[i]] = logits.softmax(dim=1).cpu().numpy()
        return [answers[i] for i in range(len(tasks))]

    def _answers(
        self, g: ReceptiveFields, tasks: Sequence[Task], kept: Pool | None = None
    ) -> Iterator[tuple[int, Float[Tensor, "q n"]]]:
        """Logits of each task's query nodes; all tasks have the same N.

        `kept`, if given, is filled with what was read of support and query where that is small, to be given again.
        """
        if kept is not None and kept.known:
            yield from self._answers_of(g, kept)
        rest = [i for i in range(len(tasks)) if kept is None or i not in kept.known]
        degree = g.degree
        rest.sort(key=lambda i: degree[tasks[i].support].sum())  # like sizes side by side
        for part in (rest[start : start + TASKS] for start in range(0, len(rest), TASKS)):
            supports = [self._support(g, tasks[i]) for i in part]
            for i, support, weights in zip(part, supports, self._adapted(supports), strict=True):
                query = tasks[i].query
                if kept is not None and (known := KnownTask.read(self.network_, g, support, query)) is not None:
                    kept.known[i] = known
                yield i, self._asked(g, query, weights)

    def _answers_of(self, g: ReceptiveFields, kept: Pool) -> Iterator[tuple[int, Float[Tensor, "q n"]]]:
        """Attributes times the first weight for all nodes at once; what a task adds to that, its products tell."""
        network, rows = self.network_, self.network_.encoder.products(g)
        for part, stack in kept.stacks:
            stack.rows = rows
            for i, weights in zip(part, adapt(network, stack, self.steps, self.inner_lr), strict=True):
                known = kept.known[i]
                with torch.no_grad():
                    moved = rows[known.query.nodes] - known.products @ weights.pop(MOVE)
                    logits = network.logits(known.query, {**weights, ROWS: moved})
                yield i, logits

    def _support(self, g: ReceptiveFields, task: Task) -> Support:
        return Support.read(self.network_, g, task.support, torch.from_numpy(task.support_y))

    def _adapted(self, supports: Sequence[Support], second_order: bool = False) -> list[Weights]:
        loop = partial(adapt, self.network_, steps=self.steps, lr=self.inner_lr, second_order=second_order)
        few = [support for support in supports if support.products is not None]
        together = iter(loop(Stack(few)) if few else [])
        return [loop(support)[0] if support.products is None else next(together) for support in supports]

    def _asked(self, g: ReceptiveFields, query: Nodes, weights: Weights) -> Float[Tensor, "q n"]:
        network = self.network_
        with torch.no_grad():
            if query.size * 8 > g.n > QUERIES:
                return network.logits(network.encoder.read(g, None), weights)[query]
            parts = (network.encoder.read(g, nodes) for nodes in _parts(query))
            return torch.cat([network.logits(field, weights) for field in parts])

    def rows_in(self, graph: Graph, task: Task, nodes: Nodes) -> Float[Tensor, "k d"]:
        """z of the nodes, by the weights that the task's support set leads to."""
        g = self._prepared(graph)
        (weights,) = self._adapted([self._support(g, task)])
        with torch.no_grad():
            return self.network_.embed(self.network_.encoder.read(g, nodes), weights)

    def _build(self, n_features: int) -> Network:
        """A network whose first weights depend on the seed alone."""
        with seeded(self.seed):
            if self.encoder == "sgc":
                return Network(SGC(n_features, self.hidden[0]))
            if self.encoder in ("gcn", "mlp"):
                return Network(FieldEncoder(n_features, self.hidden, self.dropout, graph=self.encoder == "gcn"))
            return Network(build_encoder(self.encoder, n_features, self.hidden, self.dropout))

    def _prepared(self, graph: Graph) -> ReceptiveFields:
        if self._ready is None or self._ready[0] is not graph:
            x = scale(graph.x, self.scaling, self.idf_) * np.float32(self.unit_)
            self._ready = (graph, ReceptiveFields.of(graph, x))
        return self._ready[1]

    def state(self) -> dict[str, Tensor]:
        """What `fit` learned, as named tensors. The head for training classes is not needed any more."""
        idf = {} if self.idf_ is None else {"idf": torch.from_numpy(self.idf_)}
        unit = {"unit": torch.tensor(self.unit_, dtype=torch.float64)}
        return {**idf, **unit, **self.network_.encoder.state_dict(prefix="encoder.")}

    def restore(self, n_features: int, state: Mapping[str, Tensor]) -> Adapt:
        """Become the method that gave `state`; wrong names or shapes are refused."""
        learned = {name: tensor for name, tensor in state.items() if name not in ("idf", "unit")}
        self.idf_ = state["idf"].numpy() if self.scaling == "tf-idf" else None
        self.unit_ = float(state["unit"])
        self._ready = None
        self._check()
        self.network_ = adopt(lambda: self._build(n_features), learned)
        return self


def _parts(query: Nodes) -> Iterator[Nodes]:
    return (query[first : first + QUERIES] for first in range(0, max(1, query.size), QUERIES))


def typical_length(x: Attributes) -> float:
    """Root mean square length of the rows that are not empty: nodes of which nothing is known make no others longer."""
    square = np.asarray((x.multiply(x) if is_sparse(x) else x * x).sum(axis=1, dtype=np.float64)).ravel()
    return float(np.sqrt(square.sum() / max(1, np.count_nonzero(square))))
