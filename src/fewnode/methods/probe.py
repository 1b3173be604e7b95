"""Linear probing: an encoder is learned once, and a linear head on the support set of each task.

Tan et al. (TLP, LoG 2022) do so after contrastive pretraining. NaQ and COSMIC answer in the same way.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Self, TypeVar

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor, nn

from fewnode.engine.fields import ReceptiveFields
from fewnode.engine.sparse import CSR, normalised, operand
from fewnode.episodes import Episode, EpisodeSampler, Task
from fewnode.errors import FewnodeError
from fewnode.graph import Attributes, Graph, Ints
from fewnode.machine.team import Gradients
from fewnode.method import Probabilities
from fewnode.methods.linear import ScaledAttributes
from fewnode.methods.logistic_heads import logistic_heads
from fewnode.recognition.task_batches import NumberedTasks
from fewnode.represent.centring import centred, mean_direction
from fewnode.represent.directions import Axes
from fewnode.scoring.metrics import score_answers
from fewnode.storage.checkpoint import adopt
from fewnode.train import QUIET, VALID_TASKS, History, Journal, Schedule, meta_train, seeded

Module = TypeVar("Module", bound=nn.Module)
MAX_WIDTH, MAX_STEPS = 4096, 1_000_000
SAMPLE = 4096
"""Nodes whose mean rows are centred by: of all, if there are no more."""
WAY, SHOTS, QUERIES = 5, (1, 5), 5
"""Of the tasks that training is stopped by."""
Vectors = NDArray[np.float32]


class ReadGraph:
    """A graph as encoders of all nodes read it: Â, and scaled attributes."""

    _known: tuple[Tensor, int, Tensor] | None = None

    def __init__(self, adj: CSR, x: CSR | Tensor) -> None:
        self.adj, self.x = adj, x
        self.fields = ReceptiveFields(adj, x, np.empty(0, np.float32))

    def along(self, directions: Tensor, reading: Callable[[Tensor], Tensor]) -> Tensor:
        """What `reading` makes of directions that are not learned: once, as long as they are the same."""
        if self._known is None or self._known[0] is not directions or self._known[1] != directions._version:
            self._known = (directions, directions._version, reading(directions))
        return self._known[2]


class LinearProbe:
    """z of every node by an encoder, brought to unit length, and logistic regression on the support.

    Whoever inherits has `build(n_features)`, a module whose forward maps a `ReadGraph` to z of some nodes or of all,
    and trains it by `_train`. Rows are brought to unit length and centred, as in `logistic`. The sources leave them, or
    scale columns to [0, 1], which is worse at one shot (docs/methods.md). The step to stop at is chosen on tasks of
    one shot and of five, so that one training serves all shots. Without validation classes the last weights are kept.
    """

    _seen: tuple[Graph, Vectors] | None = None
    module_: nn.Module

    scaling: str
    c: float
    seed: int

    def build(self, n_features: int) -> nn.Module:
        """A new module; its weights are drawn by torch."""
        raise NotImplementedError

    def check(self) -> None:
        """Refuse options that cannot be."""
        if not 0 < self.c < math.inf:
            raise FewnodeError(f"c is {self.c}, expected a number above 0")

    def fit(self, graph: Graph, train: EpisodeSampler, valid: EpisodeSampler) -> Self:
        return self.fit_in_steps(graph, train, valid, QUIET)

    def fit_in_steps(self, graph: Graph, train: EpisodeSampler, valid: EpisodeSampler, journal: Journal) -> Self:
        raise NotImplementedError

    def _read(self, graph: Graph) -> ReadGraph:
        return ReadGraph(CSR.of(normalised(graph, np.float32)), operand(self.attributes_.of(graph)))

    def _begin(self, graph: Graph, build: Callable[[int], Module]) -> Module:
        """A new module, whose weights depend on the seed alone."""
        self.check()
        self.attributes_, self._seen = ScaledAttributes(self.scaling).fit(graph), None
        with seeded(self.seed):
            module = build(graph.n_features)
        self.module_ = module
        return module

    def _train(
        self,
        read: ReadGraph,
        valid: EpisodeSampler,
        gradients: Callable[[int], Gradients],
        schedule: Schedule,
        journal: Journal,
    ) -> History:
        """Step after step; the weights that are best on tasks of the validation classes are kept."""
        pool = validation_tasks(valid.members)

        def validate() -> float:
            asked = NumberedTasks.of([episode.task for episode in pool])
            answers = logistic_heads(self._embed(read, asked.nodes), asked.tasks, self.c)
            return float(score_answers(answers, pool)["accuracy"].mean())

        if not pool:
            schedule = Schedule(schedule.episodes, schedule.lr, schedule.weight_decay, patience=MAX_STEPS, keep="last")
        return meta_train(self.module_, gradients, validate if pool else lambda: 0.0, schedule, journal)

    def _embed(self, read: ReadGraph, nodes: Ints | None = None) -> Vectors:
        """z of the nodes or of all, centred by the mean of some that are the same every time."""
        self.module_.eval()
        some = np.random.default_rng(0).permutation(read.x.shape[0])[:SAMPLE]
        with torch.no_grad():
            if nodes is None:
                z = self.module_(read)
                typical = z[torch.from_numpy(some)]
            else:
                z, typical = self.module_(read, torch.from_numpy(np.concatenate([nodes, some]))).tensor_split(
                    [nodes.size]
                )
            found: Vectors = centred(z, mean_direction(typical)).numpy()
        return found

    def embedding(self, graph: Graph) -> Vectors:
        """z of every node; computed once for a graph."""
        if self._seen is None or self._seen[0] is not graph:
            self._seen = (graph, self._embed(self._read(graph)))
        return self._seen[1]

    def predict_proba(self, graph: Graph, task: Task) -> Probabilities:
        return self.predict_tasks(graph, [task])[0]

    def predict_tasks(self, graph: Graph, tasks: Sequence[Task]) -> list[Probabilities]:
        return logistic_heads(self.embedding(graph), tasks, self.c)

    def state(self) -> dict[str, Tensor]:
        """What `fit` learned, as named tensors."""
        return {**self.attributes_.state(), **self.module_.state_dict(prefix="module.")}

    def restore(self, n_features: int, state: Mapping[str, Tensor]) -> Self:
        """Become the method that gave `state`; wrong names or shapes are refused."""
        self.check()
        own = {name: tensor for name, tensor in state.items() if not name.startswith("module.")}
        learned = {name.removeprefix("module."): state[name] for name in state if name not in own}
        self.attributes_ = ScaledAttributes(self.scaling).restore(n_features, own)
        self.module_ = adopt(lambda: self.build(n_features), learned)
        self._seen = None
        return self


def leading_directions(x: Attributes, rank: int, seed: int) -> Float[Tensor, "d r"]:
    """V: most of the attributes lies along them. Weights on all columns are slower and worse (docs/methods.md)."""
    return torch.from_numpy(Axes.of(x, "raw", rank, seed).directions)


def validation_tasks(members: Sequence[Ints]) -> list[Episode]:
    """Tasks of the validation classes, as many of one shot as of five; none where there are not two classes."""
    found: list[Episode] = []
    for shots in SHOTS:
        large = [nodes for nodes in members if nodes.size >= shots + QUERIES]
        if len(large) > 1:
            found += EpisodeSampler.among(large, min(WAY, len(large)), shots, QUERIES).take(VALID_TASKS // len(SHOTS))
    return found


def check_training(width: int, steps: int, lr: float, weight_decay: float, rank: int = 1) -> None:
    """Refuse a width, a rank, a number of steps or rates that no training has."""
    if not 1 <= rank <= MAX_WIDTH:
        raise FewnodeError(f"a rank of {rank}, expected 1 to {MAX_WIDTH}")
    if not (1 <= width <= MAX_WIDTH and 1 <= steps <= MAX_STEPS):
        raise FewnodeError(
            f"{width} units and {steps} steps of training, expected at least 1 of each, "
            f"at most {MAX_WIDTH} and {MAX_STEPS}"
        )
    if not (0 < lr < math.inf and 0 <= weight_decay < math.inf):
        raise FewnodeError(f"lr is {lr} and weight_decay {weight_decay}, expected numbers of at least 0, lr above")
