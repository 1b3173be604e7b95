"""Which nodes random walks from a node visit most, for every node: personalised PageRank by local pushes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewnode.engine.lanes import compiled

Array = NDArray[Any]


@compiled
def most_visited(
    indptr: Array, indices: Array, share: Array, degree: Array, alpha: float, tolerance: float, count: int
) -> Array:
    """A row for each node: `count` others by visits over degree, the highest first; -1 where walks reach no more.

    `share` are the entries of D^-1 A. Walks return with probability alpha. What is still to be spread from a node is
    pushed on while it is at least `tolerance` times its degree (Andersen, Chung & Lang, FOCS 2006).
    """
    n = degree.size
    found = np.full((n, count), -1, np.int64)
    score = np.empty(count)
    visits, left, touched, waits = np.zeros(n), np.zeros(n), np.zeros(n, np.bool_), np.zeros(n, np.bool_)
    seen, now, later, mass = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n)
    for node in range(n):
        seen[0], now[0], size, due = node, node, 1, 1
        left[node], touched[node] = 1.0, True
        while due:
            for k in range(due):  # all of a round before any of the next: the numbers of nodes do not matter
                i = now[k]
                mass[k], left[i], waits[i] = left[i], 0.0, False
                visits[i] += alpha * mass[k]
            waiting = 0
            for k in range(due):
                i = now[k]
                for place in range(indptr[i], indptr[i + 1]):
                    j = indices[place]
                    left[j] += (1 - alpha) * mass[k] * share[place]
                    if not touched[j]:
                        touched[j], seen[size] = True, j
                        size += 1
                    if not waits[j] and left[j] >= tolerance * degree[j]:
                        waits[j], later[waiting] = True, j
                        waiting += 1
            now, later, due = later, now, waiting
        score[:] = 0.0
        for k in range(size):
            i = seen[k]
            worth = (visits[i] + alpha * left[i]) / max(degree[i], 1e-30)
            visits[i], left[i], touched[i] = 0.0, 0.0, False
            if i == node or count == 0 or worth <= score[count - 1]:
                continue
            at = count - 1
            while at > 0 and score[at - 1] < worth:
                score[at], found[node, at] = score[at - 1], found[node, at - 1]
                at -= 1
            score[at], found[node, at] = worth, i
    return found
