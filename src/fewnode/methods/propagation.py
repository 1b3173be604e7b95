"""The training-free bar: diffuse the attributes over the graph, compare with class means.

It learns no weights, so whatever a trained method is worth shows in the difference to it. How to scale, diffuse,
centre and compare depends on the network (where neighbours differ in class, no step at all is best), so it is chosen:
by accuracy on tasks of training and validation classes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby, product
from typing import NamedTuple

import torch
from torch import Tensor

from fewnode.engine.sparse import as_tensor
from fewnode.episodes import EpisodeSampler
from fewnode.errors import FewnodeError
from fewnode.graph import Graph
from fewnode.methods.gpn import DISTANCES
from fewnode.recognition.prototypes import Prototypical
from fewnode.recognition.task_batches import answer_tasks
from fewnode.represent.attributes import SCALINGS as SCALINGS_KNOWN
from fewnode.represent.attributes import need_attributes
from fewnode.represent.diffusion import Diffusion, Operators
from fewnode.represent.directions import Axes
from fewnode.represent.projection import centred, mean_direction
from fewnode.scoring.metrics import score_answers
from fewnode.storage.checkpoint import need_shapes
from fewnode.vectors import Embedding, Floats, unit_rows

TASKS = 60
"""Tasks of the training and as many of the validation classes that a representation is chosen by."""
SCALINGS = ("l2", "tf-idf", "log-tf-idf")
DIFFUSIONS = tuple(Diffusion(*d) for d in ((0,), (1,), (2,), (3,), (6,), (10, 0.15), (6, 0.5)))
METRICS = ("cosine", "sqeuclidean")
MAX_STEPS = 1000


class Choice(NamedTuple):
    """One representation and how it is compared."""

    scaling: str
    diffusion: Diffusion
    centre: bool
    distance: str


class Propagation(Prototypical):
    """Scaled attributes, their leading `rank` directions, a diffusion over the graph, distance to the class mean.

    What is None is chosen on training and validation classes; what is given is kept.
    """

    learns_classes, kept = False, True

    def __init__(
        self,
        steps: int | None = None,
        teleport: float | None = None,
        scaling: str | None = None,
        centre: bool | None = None,
        distance: str | None = None,
        rank: int = 256,
        seed: int = 0,
    ) -> None:
        self.steps, self.teleport, self.scaling = steps, teleport, scaling
        self.centre, self.metric, self.rank, self.seed = centre, distance, rank, seed

    def fit(self, graph: Graph, train: EpisodeSampler, valid: EpisodeSampler) -> Propagation:
        """Look at the attributes of the graph, and choose by the labels of training and validation classes."""
        need_attributes(graph)
        if self.steps is not None and not 0 <= self.steps <= MAX_STEPS:
            raise FewnodeError(f"{self.steps} steps, expected 0 to {MAX_STEPS}")
        self.accuracy_: dict[Choice, float] = {}
        best = self._best(graph, self._choices(), train, valid)
        if self.metric is None:
            best = self._best(graph, [best._replace(distance=distance) for distance in METRICS], train, valid)
        self._adopt(best, Axes.of(graph.x, best.scaling, self.rank, self.seed))
        self.mean_ = mean_direction(self._diffused(graph))
        return self

    def _choices(self) -> list[Choice]:
        """What is left to choose from, simplest first: the first of equals wins."""
        if self.steps is None and self.teleport is None:
            diffusions: Sequence[Diffusion] = DIFFUSIONS
        else:
            diffusions = [Diffusion(2 if self.steps is None else self.steps, self.teleport or 0.0)]
        scalings = SCALINGS if self.scaling is None else (self.scaling,)
        centres = (False, True) if self.centre is None else (self.centre,)
        metric = METRICS[0] if self.metric is None else self.metric
        return [Choice(*choice, metric) for choice in product(scalings, diffusions, centres)]

    def _best(self, graph: Graph, choices: Sequence[Choice], train: EpisodeSampler, valid: EpisodeSampler) -> Choice:
        """The most accurate. Attributes are read once a scaling and diffused once a diffusion."""
        if len(choices) == 1:
            return choices[0]
        operators, tasks = Operators.of(graph), [*train.take(TASKS), *valid.take(TASKS)]
        for scaling, group in groupby(choices, lambda c: c.scaling):
            z = Axes.of(graph.x, scaling, self.rank, self.seed).read(graph.x)
            for diffusion, same in groupby(group, lambda c: c.diffusion):
                h = diffusion(operators, z)
                for choice in same:
                    rows = as_tensor(_finish(h, choice.centre, mean_direction(h)))
                    answers = answer_tasks(rows, torch.zeros(graph.n), [each.task for each in tasks], choice.distance)
                    self.accuracy_[choice] = float(score_answers(answers, tasks)["accuracy"].mean())
        return max(choices, key=lambda choice: self.accuracy_[choice])

    def _adopt(self, choice: Choice, axes: Axes) -> None:
        self.choice_, self.axes_, self.distance, self._cache = choice, axes, choice.distance, None

    def _diffused(self, graph: Graph) -> Floats:
        return self.choice_.diffusion(Operators.of(graph), self.axes_.read(graph.x))

    def embed(self, graph: Graph) -> Embedding:
        return Embedding.of(_finish(self._diffused(graph), self.choice_.centre, self.mean_))

    def state(self) -> dict[str, Tensor]:
        """What `fit` saw and chose, as named tensors."""
        scaling, diffusion, centre, distance = self.choice_
        numbers = [
            SCALINGS_KNOWN.index(scaling),
            diffusion.steps,
            diffusion.teleport,
            centre,
            DISTANCES.index(distance),
        ]
        idf = {} if self.axes_.idf is None else {"idf": torch.from_numpy(self.axes_.idf)}
        directions = torch.from_numpy(self.axes_.directions)
        return {**idf, "directions": directions, "mean": torch.from_numpy(self.mean_), "choice": torch.tensor(numbers)}

    def restore(self, n_features: int, state: Mapping[str, Tensor]) -> Propagation:
        d = state["mean"].numel()
        idf_shape = {"idf": (n_features,)} if "idf" in state else {}
        need_shapes(state, {"choice": (5,), "mean": (d,), "directions": (n_features, d), **idf_shape})
        scaling, steps, teleport, centre, distance = state["choice"].tolist()
        if not (0 <= steps <= MAX_STEPS and 0 <= teleport < 1 and min(scaling, distance) >= 0):
            raise ValueError(f"choice is {state['choice'].tolist()}")
        choice = Choice(
            SCALINGS_KNOWN[int(scaling)], Diffusion(int(steps), teleport), bool(centre), DISTANCES[int(distance)]
        )
        idf = state["idf"].numpy() if "idf" in choice.scaling else None
        self._adopt(choice, Axes(choice.scaling, state["directions"].numpy(), idf).checked(n_features))
        self.mean_ = state["mean"].numpy()
        return self


def _finish(h: Floats, centre: bool, mean: Floats) -> Floats:
    return centred(h, mean) if centre else unit_rows(h)
