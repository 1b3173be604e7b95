"""What a few-shot method is: two functions. Nothing needs to be inherited."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from fewnode.episodes import EpisodeSampler, Task
from fewnode.errors import FewnodeError
from fewnode.graph import Graph, Ints

Probabilities = NDArray[np.float32]


class Predictor(Protocol):
    """What can be evaluated: a fitted method. Labels are 0 … N-1; each query node gets a probability a class."""

    def predict_proba(self, graph: Graph, task: Task) -> Probabilities: ...


class Method(Predictor, Protocol):
    """What a few-shot method is: a `Predictor` that learns from episodes. Nothing needs to be inherited.

    >>> class Guess:
    ...     def fit(self, graph, train, valid):
    ...         return self
    ...
    ...     def predict_proba(self, graph, task):
    ...         return np.full((task.query.size, task.n_way), 1 / task.n_way, np.float32)
    >>> import fewnode
    >>> y = np.repeat(range(10), 20)
    >>> print(fewnode.evaluate(Guess(), fewnode.Dataset.from_scipy(y[:, None] == y, y=y), way=2, shot=1).accuracy)
    50.0 ± 0.0
    """

    def fit(self, graph: Graph, train: EpisodeSampler, valid: EpisodeSampler) -> object: ...


@runtime_checkable
class Batched(Protocol):
    """A method that answers many tasks faster together than one by one."""

    def predict_tasks(self, graph: Graph, tasks: Sequence[Task]) -> list[Probabilities]: ...


@runtime_checkable
class Transductive(Protocol):
    """A method that can let the queries of a task help each other."""

    def predict_tasks(self, graph: Graph, tasks: Sequence[Task], transductive: bool = False) -> list[Probabilities]: ...

    def familiar(self, graph: Graph, support: Ints, support_y: Ints, query: Ints) -> NDArray[np.float32]:
        """P(a query is in one of the classes)."""


Fitted: TypeAlias = Predictor | Batched
"""What can be evaluated."""


def predict_tasks(
    method: Fitted, graph: Graph, tasks: Sequence[Task], transductive: bool = False
) -> list[Probabilities]:
    """The answers of a fitted method, in whatever way it gives them."""
    if any(task.described is not None for task in tasks) and not getattr(method, "reads_descriptions", False):
        raise FewnodeError(f"{type(method).__name__} cannot read descriptions of classes; gpn-plus can")
    if transductive:
        if not isinstance(method, Transductive):
            raise FewnodeError(f"{type(method).__name__} answers each query on its own: no transductive mode")
        return method.predict_tasks(graph, tasks, transductive=True)
    if isinstance(method, Batched):
        return method.predict_tasks(graph, tasks)
    return [method.predict_proba(graph, task) for task in tasks]
