"""Episodic training (section 4.1): N-way K-shot tasks, drawn as a pure function of (seed, t)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from fewnode.errors import FewnodeError
from fewnode.graph import Dataset, Ints


@dataclass(frozen=True, eq=False)
class Episode:
    """One task T_t = {S_t, Q_t}: Eq. (1). Flat lists, so classes may have unequal shots.

    Labels are 0 … N-1 within the task. Every class has at least one support node.
    """

    support: Ints
    support_y: Ints
    query: Ints
    query_y: Ints

    def __post_init__(self) -> None:
        if self.support.shape != self.support_y.shape or self.query.shape != self.query_y.shape:
            raise FewnodeError("a task needs one label for each support node and for each query node")
        classes = np.unique(self.support_y)
        if classes.size == 0 or not np.array_equal(classes, np.arange(classes.size)):
            raise FewnodeError("the support labels of a task must be 0 to N-1, each at least once")
        if self.query_y.size and (self.query_y.min() < 0 or self.query_y.max() >= classes.size):
            raise FewnodeError("a query label of the task has no support node")

    @property
    def n_way(self) -> int:
        return int(self.support_y.max()) + 1


class EpisodeSampler:
    """`sampler[t]` is task t, the same for every method, process and day.

    It keeps the nodes of its own classes only: a training sampler cannot name a test node.
    """

    def __init__(
        self, data: Dataset, part: str, n_way: int, k_shot: int, m_query: int | None = None, seed: int = 0
    ) -> None:
        self.n_way, self.k_shot, self.m_query, self.seed = n_way, k_shot, m_query or k_shot, seed
        self.part = part
        classes = data.split.part(part)
        self.members = [np.flatnonzero(data.y == c) for c in classes]
        self._check([data.class_names[c] for c in classes])

    def _check(self, names: Sequence[str]) -> None:
        if min(self.n_way, self.k_shot, self.m_query) < 1:
            raise FewnodeError(
                f"way, shot and query must be at least 1, not {self.n_way}, {self.k_shot} and {self.m_query}"
            )
        if self.n_way > len(names):
            raise FewnodeError(f"{self.n_way}-way tasks need {self.n_way} {self.part} classes, there are {len(names)}")
        need = self.k_shot + self.m_query
        for name, members in zip(names, self.members, strict=True):
            if members.size < need:
                raise FewnodeError(
                    f"{self.part} class {name!r} has {members.size} nodes, but {self.k_shot} shots "
                    f"and {self.m_query} queries need {need}"
                )

    def __getitem__(self, t: int) -> Episode:
        each = self.k_shot + self.m_query
        draw = _uniform(self.seed, t, self.n_way * (1 + each))
        chosen = [self.members[c] for c in _choose(draw, len(self.members), self.n_way)]
        nodes = np.stack([members[_choose(draw, members.size, each)] for members in chosen])
        label = np.arange(self.n_way)
        return Episode(
            support=nodes[:, : self.k_shot].ravel(),
            support_y=label.repeat(self.k_shot),
            query=nodes[:, self.k_shot :].ravel(),
            query_y=label.repeat(self.m_query),
        )

    def take(self, count: int) -> list[Episode]:
        """The fixed pool of the first `count` tasks."""
        return [self[t] for t in range(count)]


def _uniform(seed: int, t: int, count: int) -> Iterator[float]:
    """Numbers in [0, 1) that depend on (seed, t) alone.

    Raw words of PCG64, which NumPy promises never to change; `Generator.choice` carries no such promise.
    """
    words = np.random.PCG64(np.random.SeedSequence((seed, t))).random_raw(count)
    return iter((words >> np.uint64(11)) * 2.0**-53)


def _choose(draw: Iterator[float], n: int, k: int) -> list[int]:
    """k of range(n) without replacement: k steps of Fisher-Yates, moved items in a dict, so it costs k and not n."""
    moved: dict[int, int] = {}
    picked = []
    for i in range(k):
        j = i + int(next(draw) * (n - i))
        picked.append(moved.get(j, j))
        moved[j] = moved.get(i, i)
    return picked
