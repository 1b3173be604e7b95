"""What the house asks of a few-shot method, all of it: two functions, and what it may have beside them.

Nothing needs to be inherited. A method is fitted with `fit`; then it answers tasks (`Predictor`), many at once
(`Batched`), or gives z of every node and leaves the answers to the house (`Embeds`): that one knows "none of these", is
calibrated, learns from nodes that are not in a class, and has a transductive mode.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from fewnode.episodes import Task, TaskSampler
from fewnode.errors import FewnodeError
from fewnode.graph import Attributes, Graph, Ints
from fewnode.recognition.space import Head, Space, finite
from fewnode.vectors import Embedding, Floats, Probabilities

if TYPE_CHECKING:
    from fewnode.train import History, Journal  # which brings the compiled engine


class Fits(Protocol):
    """A method learns from episodes of training classes, and may choose by those of validation classes."""

    def fit(self, graph: Graph, train: TaskSampler, valid: TaskSampler) -> object: ...


@runtime_checkable
class Predictor(Protocol):
    """What can be evaluated: a fitted method. Labels are 0 … N-1; each query node gets a probability a class."""

    def predict_proba(self, graph: Graph, task: Task) -> Probabilities: ...


class Method(Fits, Predictor, Protocol):
    """A few-shot method in two functions.

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


@runtime_checkable
class Batched(Protocol):
    """A method that answers many tasks faster together than one by one."""

    def predict_tasks(self, graph: Graph, tasks: Sequence[Task]) -> list[Probabilities]: ...


@runtime_checkable
class Transductive(Protocol):
    """What can let the queries of a task help each other, and tell what is in none of its classes."""

    def predict_tasks(self, graph: Graph, tasks: Sequence[Task], transductive: bool = False) -> list[Probabilities]: ...

    def familiar(self, graph: Graph, support: Ints, support_y: Ints, query: Ints) -> NDArray[np.floating[Any]]:
        """P(a query is in one of the classes)."""


@runtime_checkable
class Embeds(Protocol):
    """A method that gives z of every node, of which the house makes answers."""

    def embed(self, graph: Graph) -> Embedding: ...


@runtime_checkable
class HasHead(Protocol):
    """A method whose z becomes answers in a way of its own; else by means of classes and their cosines."""

    def head(self) -> Head: ...


@runtime_checkable
class Describes(Embeds, Protocol):
    """A method that also gives z of nodes without edges, such as the description of a class."""

    def unlinked(self, x: Attributes, width: int) -> Floats: ...


@runtime_checkable
class FitsEmbedding(Protocol):
    """A method whose fit ends with z of its network: it need not be made again."""

    def fit_embedding(self, graph: Graph, train: TaskSampler, valid: TaskSampler) -> Embedding: ...


@runtime_checkable
class Stepwise(Protocol):
    """A method that is trained step by step: it can be followed, and continued where it was left."""

    episodes: int

    def fit_in_steps(self, graph: Graph, train: TaskSampler, valid: TaskSampler, journal: Journal) -> object: ...


@runtime_checkable
class HasHistory(Protocol):
    """A method that was trained step by step."""

    history_: History


@runtime_checkable
class Stored(Protocol):
    """A method that can be saved: what `fit` learned, as named arrays, and back. It raises `ValueError` for others."""

    def state(self) -> Mapping[str, NDArray[Any]]: ...

    def restore(self, n_features: int, state: Mapping[str, NDArray[Any]]) -> object: ...


@runtime_checkable
class SeesTask(Protocol):
    """A method whose vectors of nodes may depend on the support set of a task."""

    def rows_in(self, graph: Graph, task: Task, nodes: Ints) -> NDArray[np.floating[Any]]: ...


@runtime_checkable
class SaysItsNeeds(Protocol):
    """A method that can be fitted without base classes says so: `needs_base = False`."""

    needs_base: bool


@runtime_checkable
class HasQueries(Protocol):
    """A method that trains with a number of queries a class of its own."""

    queries: int | None


Fitted: TypeAlias = Predictor | Batched | Embeds
"""What can be evaluated."""
Answering: TypeAlias = Callable[[Sequence[Task], bool], list[Probabilities]]
"""Tasks, and whether their queries help each other; a matrix of probabilities each."""


def needs_base(method: object) -> bool:
    return method.needs_base if isinstance(method, SaysItsNeeds) else True


def head_of(method: object) -> Head:
    return method.head() if isinstance(method, HasHead) else Head()


def space_of(method: Embeds, graph: Graph) -> Space:
    """The nodes of a graph as a method sees them."""
    return Space(method.embed(graph), head_of(method), method.unlinked if isinstance(method, Describes) else None)


def answering(method: Fitted, graph: Graph) -> Answering:
    """How a fitted method answers tasks on a graph, in whatever way it does. What it embeds is embedded once."""
    name = type(method).__name__
    if isinstance(method, Embeds):
        space = space_of(method, graph)
        return space.predict_tasks

    def answer(tasks: Sequence[Task], transductive: bool = False) -> list[Probabilities]:
        if isinstance(method, Transductive):  # an estimator, which checks what its method gives
            return method.predict_tasks(graph, tasks, transductive)
        if transductive:
            raise FewnodeError(f"{name} answers each query on its own: it has no transductive mode")
        return ask_method(method, graph, tasks, name)

    return answer


def ask_method(method: object, graph: Graph, tasks: Sequence[Task], name: str) -> list[Probabilities]:
    """The answers of a method without an embedding, checked."""
    if any(task.described is not None for task in tasks):
        raise FewnodeError(f"{name} cannot read descriptions of classes; gpn-plus can")
    if isinstance(method, Batched):
        found = list(method.predict_tasks(graph, tasks))
        if len(found) != len(tasks):
            raise FewnodeError(f"{name} gave {len(found)} answers to {len(tasks)} tasks")
    elif isinstance(method, Predictor):
        found = [method.predict_proba(graph, task) for task in tasks]
    else:
        raise FewnodeError(f"{name} has no predict_proba(), predict_tasks() or embed(); a method needs one of them")
    return [checked(answer, task, name) for answer, task in zip(found, tasks, strict=True)]


def checked(answer: Any, task: Task, name: str) -> Probabilities:
    """What a method gave, if it is a probability a query (row) and class (column); rows sum to 1. NumPy or a tensor."""
    if hasattr(answer, "detach"):  # a tensor, perhaps of another device
        answer = answer.detach().cpu().numpy()
    found, shape = np.asarray(answer), (task.query.size, task.n_way)
    if found.shape != shape or found.dtype.kind not in "fiu":
        raise FewnodeError(
            f"{name} gave {found.dtype} {found.shape}, expected probabilities of shape {shape}: a row a query node, "
            "a column a class"
        )
    found = finite(np.asarray(found, np.float32))
    away = np.abs(found.sum(axis=1) - 1) > 1e-3
    if (wrong := (found < -1e-6).any(axis=1) | away).any():
        row = int(wrong.argmax())
        raise FewnodeError(
            f"{name} gave {found[row][:5].tolist()} for query {row}, expected probabilities that sum to 1; "
            "a softmax makes them of scores"
        )
    return found


def predict_tasks(
    method: Fitted, graph: Graph, tasks: Sequence[Task], transductive: bool = False
) -> list[Probabilities]:
    """The answers of a fitted method to tasks, in whatever way it gives them."""
    return answering(method, graph)(tasks, transductive)
