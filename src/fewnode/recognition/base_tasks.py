"""Tasks of new classes and base classes together: a query may be in one of either."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fewnode.episodes import Episode, EpisodeSampler, Task, choose, uniform
from fewnode.graph import Ints
from fewnode.seeds import stream

MOST = 50
"""Labelled nodes that stand for a base class, at most: more would hardly change it, and cost time."""


def drawn_support(members: Ints, *key: int) -> Ints:
    """At most `MOST` nodes of a base class, which depend on the key alone.

    >>> drawn_support(np.arange(3), 0).tolist(), drawn_support(np.arange(900), 0).size
    ([0, 1, 2], 50)
    """
    if members.size <= MOST:
        return members
    return np.sort(members[choose(uniform(stream(*key), 0, MOST), members.size, MOST)])


class BaseTasks:
    """`tasks[t]` is task t of `new`, in which all base classes stand beside its N new ones, as classes N, N+1 …

    A base class has at most `MOST` support nodes, and at least as many as it has queries. It has M queries or, if it
    is small, fewer. Like any task, t is a function of (seed, t) alone.

    >>> members = [np.arange(20 * c, 20 * c + 20) for c in range(6)]
    >>> tasks = BaseTasks(EpisodeSampler.among(members[:3], n_way=2, k_shot=1, m_query=4), members[3:])
    >>> np.bincount(tasks[0].support_y).tolist(), np.bincount(tasks[0].query_y).tolist()
    ([1, 1, 16, 16, 16], [4, 4, 4, 4, 4])
    """

    def __init__(self, new: EpisodeSampler, base: Sequence[Ints]) -> None:
        self.new, self.base = new, list(base)

    def __getitem__(self, t: int) -> Episode:
        task = self.new[t]
        support, query = [task.support], [task.query]
        for c, members in enumerate(self.base):
            asked = min(self.new.m_query, members.size // 2)
            count = min(MOST, members.size - asked)
            draw = uniform(stream(self.new.seed, t, c), 0, count + asked)
            picked = members[choose(draw, members.size, count + asked)]
            support.append(picked[:count])
            query.append(picked[count:])
        label = self.new.n_way + np.arange(len(self.base))
        support_y = [task.support_y, label.repeat([nodes.size for nodes in support[1:]])]
        query_y = [task.query_y, label.repeat([nodes.size for nodes in query[1:]])]
        asked_about = Task(np.concatenate(support), np.concatenate(support_y), np.concatenate(query))
        return Episode(asked_about, np.concatenate(query_y))

    def take(self, count: int) -> list[Episode]:
        """The first `count` tasks."""
        return [self[t] for t in range(count)]
