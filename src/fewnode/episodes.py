"""Episodic training (section 4.1): N-way K-shot tasks, drawn as a pure function of (seed, t)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from fewnode.dataset import Dataset
from fewnode.errors import FewnodeError
from fewnode.graph import Attributes, Ints
from fewnode.nodes import PyGData, as_labelled


@dataclass(frozen=True, eq=False)
class Described:
    """Descriptions of classes: rows of attributes, as a node with that text would have them, and their labels."""

    x: Attributes
    y: Ints


@dataclass(frozen=True, eq=False)
class Task:
    """A question: support nodes of N classes, and query nodes. It holds no answers, so no method can peek.

    Flat lists, so classes may have unequal shots. Labels are 0 … N-1; every class has a support node or a description.

    >>> task = Task(support=np.array([7, 3, 5]), support_y=np.array([0, 0, 1]), query=np.array([9]))
    >>> task.n_way
    2
    """

    support: Ints
    support_y: Ints
    query: Ints
    described: Described | None = None

    def __post_init__(self) -> None:
        if self.support.shape != self.support_y.shape:
            raise FewnodeError("a task needs one label for each support node")
        classes = np.unique(self.labels)
        if classes.size == 0 or not np.array_equal(classes, np.arange(classes.size)):
            raise FewnodeError("the support labels of a task must be 0 to N-1, each at least once")

    @property
    def labels(self) -> Ints:
        """Of support nodes, then of descriptions."""
        return self.support_y if self.described is None else np.concatenate([self.support_y, self.described.y])

    @property
    def n_way(self) -> int:
        return int(self.labels.max()) + 1


@dataclass(frozen=True, eq=False)
class Episode:
    """T_t = {S_t, Q_t}, Eq. (1): a task and its answers, which only training and the evaluation look at.

    >>> task = Task(support=np.array([7, 3, 5]), support_y=np.array([0, 0, 1]), query=np.array([9]))
    >>> Episode(task, query_y=np.array([1])).query.tolist()
    [9]
    """

    task: Task
    query_y: Ints

    def __post_init__(self) -> None:
        if self.query_y.shape != self.task.query.shape:
            raise FewnodeError("a task needs one label for each query node")
        if self.query_y.size and (self.query_y.min() < 0 or self.query_y.max() >= self.n_way):
            raise FewnodeError("a query label of the task has no support node")

    @property
    def support(self) -> Ints:
        return self.task.support

    @property
    def support_y(self) -> Ints:
        return self.task.support_y

    @property
    def query(self) -> Ints:
        return self.task.query

    @property
    def n_way(self) -> int:
        return self.task.n_way


class Batch:
    """Several tasks of equal N as flat arrays; the classes of task t are segments t·N … t·N + N-1."""

    def __init__(self, tasks: Sequence[Task], query_y: Sequence[Ints] = ()) -> None:
        """`query_y`: the answers to the tasks, where there is something to be learned from them."""
        self.n_tasks, self.n_way = len(tasks), tasks[0].n_way
        self.support = np.concatenate([task.support for task in tasks])
        self.query = np.concatenate([task.query for task in tasks])
        self.segment = np.concatenate([task.support_y + t * self.n_way for t, task in enumerate(tasks)])
        self.task = np.repeat(np.arange(len(tasks)), [task.query.size for task in tasks])
        self.query_y = np.concatenate([np.zeros(0, np.int64), *query_y])

    @classmethod
    def of(cls, episodes: Sequence[Episode]) -> Batch:
        return cls([episode.task for episode in episodes], [episode.query_y for episode in episodes])


@dataclass(frozen=True, eq=False)
class TaskSampler:
    """Tasks of classes given by their nodes; `sampler[t]` is task t, the same for every method, process and day.

    It knows the nodes of its own classes only: a training sampler cannot name a test node. With `long_tail` the
    queries are spread over the classes by Zipf's law.
    """

    members: Sequence[Ints]
    n_way: int
    k_shot: int
    m_query: int
    seed: int = 0
    long_tail: bool = False

    def __getitem__(self, t: int) -> Episode:
        if not self.members:
            raise FewnodeError(
                "there are no base classes to learn from; choose a method that needs none, such as gpn-plus, "
                "nearest-mean or logistic, or give training and validation classes"
            )
        draw = uniform(self.seed, t, self.n_way * (1 + self.k_shot + self.n_way * self.m_query))
        chosen = [self.members[c] for c in choose(draw, len(self.members), self.n_way)]
        counts = [min(m, members.size - self.k_shot) for m, members in zip(self.queries, chosen, strict=True)]
        nodes = [
            members[choose(draw, members.size, self.k_shot + m)] for m, members in zip(counts, chosen, strict=True)
        ]
        label = np.arange(self.n_way)
        task = Task(
            support=np.concatenate([picked[: self.k_shot] for picked in nodes]),
            support_y=label.repeat(self.k_shot),
            query=np.concatenate([picked[self.k_shot :] for picked in nodes]),
        )
        return Episode(task, label.repeat(counts))

    @property
    def queries(self) -> list[int]:
        """How many queries each class of a task has: M, or in all N M of which class i has a share of 1/(i+1)."""
        if not self.long_tail:
            return [self.m_query] * self.n_way
        share = 1 / np.arange(1, self.n_way + 1)
        return [max(1, round(m)) for m in self.n_way * self.m_query * share / share.sum()]

    def take(self, count: int) -> list[Episode]:
        """The fixed pool of the first `count` tasks."""
        return [self[t] for t in range(count)]

    @classmethod
    def none(cls) -> TaskSampler:
        """No class at all, so no task: what a method is fitted with where there are no base classes.

        >>> EpisodeSampler.none().members
        ()
        """
        return TaskSampler((), 0, 0, 0)


class EpisodeSampler(TaskSampler):
    """Tasks of a part of the classes of a dataset; what it cannot give is refused when it is made.

    >>> y = np.repeat(range(10), 20)  # ten classes of twenty nodes
    >>> data = Dataset.from_scipy(y[:, None] == y, y=y)
    >>> task = EpisodeSampler(data, "test", n_way=3, k_shot=2, m_query=4, seed=0)[17]
    >>> task.support.size, task.query.size
    (6, 12)
    """

    def __init__(
        self,
        data: Dataset | PyGData,
        part: str,
        n_way: int,
        k_shot: int,
        m_query: int | None = None,
        seed: int = 0,
        long_tail: bool = False,
    ) -> None:
        data, m_query = as_labelled(data), k_shot if m_query is None else m_query
        classes, need = data.split.part(part), k_shot + m_query
        members = [np.flatnonzero(data.y == c) for c in classes]
        if min(n_way, k_shot, m_query) < 1:
            raise FewnodeError(f"way, shot and query must be at least 1, not {n_way}, {k_shot} and {m_query}")
        if n_way > len(classes):
            there = f"there are {len(classes)}: choose a smaller way"
            raise FewnodeError(f"{n_way}-way tasks need {n_way} {part} classes, {there}")
        for c, nodes in zip(classes, members, strict=True):
            if nodes.size < need:
                raise FewnodeError(
                    f"{part} class {data.class_names[c]!r} has {nodes.size} nodes, but {k_shot} shots and {m_query} "
                    f"queries need {need}; ask for fewer, or split the classes again with `min_nodes` {need}"
                )
        super().__init__(members, n_way, k_shot, m_query, seed, long_tail)


def uniform(seed: int, t: int, count: int) -> Iterator[float]:
    """Numbers in [0, 1) that depend on (seed, t) alone.

    Raw words of PCG64, which NumPy promises never to change; `Generator.choice` carries no such promise.
    """
    words = np.random.PCG64(np.random.SeedSequence((seed, t))).random_raw(count)
    return iter(((words >> np.uint64(11)) * 2.0**-53).tolist())


def choose(draw: Iterator[float], n: int, k: int) -> list[int]:
    """k of range(n) without replacement: k steps of Fisher-Yates, moved items in a dict, so it costs k and not n."""
    moved: dict[int, int] = {}
    picked = []
    for i in range(k):
        j = i + int(next(draw) * (n - i))
        picked.append(moved.get(j, j))
        moved[j] = moved.get(i, i)
    return picked
