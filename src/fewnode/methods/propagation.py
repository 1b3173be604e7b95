"""The training-free bar: diffuse the attributes over the graph, compare with class means.

It learns no weights, so whatever a trained method is worth shows in the difference to it. How to scale, diffuse,
centre and compare depends on the network (where neighbours differ in class, no step at all is best), so it is chosen:
by accuracy on tasks of training and validation classes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby, product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fewnode.embedding.attributes import SCALINGS as SCALINGS_KNOWN
from fewnode.embedding.attributes import need_attributes
from fewnode.embedding.diffusion import Diffusion
from fewnode.embedding.directions import Axes
from fewnode.embedding.projection import centred, mean_direction
from fewnode.episodes import Batch, TaskSampler
from fewnode.errors import FewnodeError
from fewnode.formats.directory import need_shapes
from fewnode.graph import Graph
from fewnode.methods.gpn import DISTANCES
from fewnode.recognition.space import Head
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


@dataclass(eq=False)
class Propagation:
    """Scaled attributes, their leading `rank` directions, a diffusion over the graph, distance to the class mean.

    What is None is chosen on training and validation classes; what is given is kept.
    """

    steps: int | None = None
    teleport: float | None = None
    scaling: str | None = None
    centre: bool | None = None
    distance: str | None = None
    rank: int = 256
    seed: int = 0

    def fit(self, graph: Graph, train: TaskSampler, valid: TaskSampler) -> Propagation:
        """Look at the attributes of the graph, and choose by the labels of training and validation classes."""
        need_attributes(graph)
        if self.steps is not None and not 0 <= self.steps <= MAX_STEPS:
            raise FewnodeError(f"{self.steps} steps, expected 0 to {MAX_STEPS}")
        best = self._best(graph, self._choices(), train, valid)
        if self.distance is None:
            best = self._best(graph, [best._replace(distance=distance) for distance in METRICS], train, valid)
        self.choice_, self.axes_ = best, Axes.of(graph.x, best.scaling, self.rank, self.seed)
        self.mean_ = mean_direction(self._diffused(graph))
        return self

    def _choices(self) -> list[Choice]:
        """What is left to choose from, simplest first: the first of equals wins."""
        diffusions: Iterable[Diffusion] = DIFFUSIONS
        if self.steps is not None or self.teleport is not None:
            diffusions = [Diffusion(2 if self.steps is None else self.steps, self.teleport or 0.0)]
        scalings = SCALINGS if self.scaling is None else (self.scaling,)
        centres = (False, True) if self.centre is None else (self.centre,)
        distance = METRICS[0] if self.distance is None else self.distance
        return [Choice(*choice, distance) for choice in product(scalings, diffusions, centres)]

    def _best(self, graph: Graph, choices: list[Choice], train: TaskSampler, valid: TaskSampler) -> Choice:
        """The most accurate. Attributes are read once a scaling and diffused once a diffusion."""
        if len(choices) == 1:
            return choices[0]
        pools = [Batch.of(sampler.take(TASKS)) for sampler in (train, valid)]
        accuracy: dict[Choice, float] = {}
        for scaling, group in groupby(choices, lambda c: c.scaling):
            x = Axes.of(graph.x, scaling, self.rank, self.seed).read(graph.x)
            for diffusion, same in groupby(group, lambda c: c.diffusion):
                h = diffusion(graph, x)
                for choice in same:
                    z = centred(h, mean_direction(h)) if choice.centre else unit_rows(h)
                    right = np.concatenate([accuracies(z, pool, choice.distance) for pool in pools])
                    accuracy[choice] = float(right.mean())
        return max(choices, key=lambda choice: accuracy[choice])

    def _diffused(self, graph: Graph) -> Floats:
        return self.choice_.diffusion(graph, self.axes_.read(graph.x))

    def head(self) -> Head:
        return Head(self.choice_.distance, crowds=True)

    def embed(self, graph: Graph) -> Embedding:
        h = self._diffused(graph)
        return Embedding.of(centred(h, self.mean_) if self.choice_.centre else unit_rows(h))

    def state(self) -> dict[str, NDArray[Any]]:
        """What `fit` saw and chose, as named arrays."""
        scaling, diffusion, centre, distance = self.choice_
        places = SCALINGS_KNOWN.index(scaling), DISTANCES.index(distance)
        numbers = [places[0], diffusion.steps, diffusion.teleport, centre, places[1]]
        idf = {} if self.axes_.idf is None else {"idf": self.axes_.idf}
        return {**idf, "directions": self.axes_.directions, "mean": self.mean_, "choice": np.array(numbers, np.float64)}

    def restore(self, n_features: int, state: Mapping[str, NDArray[Any]]) -> Propagation:
        """Become the method that gave `state`; wrong names, shapes or numbers are refused."""
        arrays = {name: np.asarray(array) for name, array in state.items()}
        d = arrays["mean"].size
        idf_shape = {"idf": (n_features,)} if "idf" in arrays else {}
        need_shapes(arrays, {"choice": (5,), "mean": (d,), "directions": (n_features, d), **idf_shape})
        scaling, steps, teleport, centre, distance = arrays["choice"].tolist()
        if not (0 <= steps <= MAX_STEPS and 0 <= teleport < 1 and min(scaling, distance) >= 0):
            raise ValueError(f"choice is {arrays['choice'].tolist()}")
        scaling, distance = SCALINGS_KNOWN[int(scaling)], DISTANCES[int(distance)]
        self.choice_ = Choice(scaling, Diffusion(int(steps), teleport), bool(centre), distance)
        idf = arrays["idf"] if "idf" in scaling else None
        self.axes_, self.mean_ = Axes(scaling, arrays["directions"], idf).checked(n_features), arrays["mean"]
        return self


def accuracies(z: Floats, pool: Batch, distance: str) -> NDArray[np.float64]:
    """The share of queries of each task whose own class mean is the nearest."""
    means = np.zeros((pool.n_tasks * pool.n_way, z.shape[1]), np.float32)
    np.add.at(means, pool.segment, z[pool.support])
    means /= np.bincount(pool.segment)[:, None]
    cosine = distance == "cosine"
    near = (unit_rows(means) if cosine else means).reshape(pool.n_tasks, pool.n_way, -1)[pool.task]
    score = np.einsum("qd,qnd->qn", z[pool.query], near) - (0 if cosine else np.square(near).sum(axis=2) / 2)
    right = score.argmax(axis=1) == pool.query_y
    return np.asarray(np.bincount(pool.task, right) / np.bincount(pool.task))
