"""Tasks of known classes that views are weighed and judged by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from fewnode.episodes import EpisodeSampler
from fewnode.graph import Ints

SHOTS, QUERIES, TASKS, WAY = (1, 5), 5, 150, 5
"""Of the tasks: shots, queries a class, how many, and classes."""
FAR = -100.0
"""The closeness to a class that a task does not have: no answer goes there."""


@dataclass(frozen=True, eq=False)
class PracticeTasks:
    """Tasks of one shape, as arrays: support is tasks x N x K, query and its labels are tasks x (N M)."""

    support: Ints
    query: Ints
    query_y: Int[Tensor, "t q"]

    @classmethod
    def of(cls, sampler: EpisodeSampler, count: int) -> PracticeTasks:
        tasks = sampler.take(count)
        support = np.stack([task.support for task in tasks]).reshape(count, sampler.n_way, sampler.k_shot)
        label = torch.from_numpy(np.stack([task.query_y for task in tasks]))
        return cls(support, np.stack([task.query for task in tasks]), label)

    @property
    def nodes(self) -> Ints:
        return np.concatenate([self.support.ravel(), self.query.ravel()])

    def among(self, nodes: Ints) -> PracticeTasks:
        """The same tasks, where each node is its place among these, which are sorted."""
        support, query = (np.searchsorted(nodes, part) for part in (self.support, self.query))
        return PracticeTasks(support, query, self.query_y)

    def closeness(self, z: Float[Tensor, "k d"]) -> Float[Tensor, "t q n"]:
        """Cosine of each query node to each class mean; row i of z is that of node i."""
        support, query = (torch.from_numpy(part) for part in (self.support, self.query))
        p = F.normalize(z[support].mean(dim=2), dim=2)
        return torch.einsum("tqd,tnd->tqn", z[query], p)

    def closeness_along(
        self, along: Float[Tensor, "k d"], square: Float[Tensor, "r d"], length: Float[Tensor, "k r"]
    ) -> Float[Tensor, "t q n r"]:
        """`closeness` of rows that are stretched along the same axes in several ways.

        `square` is of what each axis is stretched by; `length` is that of each row, then.
        """
        support, query = (torch.from_numpy(part) for part in (self.support, self.query))
        t, n, k = support.shape
        share = (1 / length)[support.flatten()].view(t * n, k, -1) / k
        p = torch.bmm(share.transpose(1, 2), along[support.flatten()].view(t * n, k, -1))  # t n, r, d
        ahead = p * square
        norm = (p * ahead).sum(dim=2).sqrt().clamp(min=1e-12)
        ahead /= norm.unsqueeze(2)
        found = torch.bmm(along[query], ahead.view(t, n * len(square), -1).transpose(1, 2))
        return found.view(t, -1, n, len(square)) / length[query].unsqueeze(2)

    def accuracy(self, z: Float[Tensor, "k d"]) -> float:
        found = self.closeness(z).argmax(dim=2)
        return float((found == self.query_y).float().mean())


def practice_tasks(members: Sequence[Ints], seed: int) -> list[PracticeTasks]:
    """Tasks of one and of five shots, with fewer queries if classes are small; none if there are too few nodes."""
    found = []
    for k_shot in SHOTS:
        for m_query in (QUERIES, 2, 1):
            large = [nodes for nodes in members if nodes.size >= k_shot + m_query]
            if len(large) > 1:
                sampler = EpisodeSampler.among(large, min(WAY, len(large)), k_shot, m_query, seed)
                found.append(PracticeTasks.of(sampler, TASKS))
                break
    return found


def stacked(closeness: Sequence[Float[Tensor, "t q _ m"]]) -> Float[Tensor, "r n m"]:
    """A row a query of all these tasks; those of fewer classes have more that nothing is near to."""
    n_way = max(part.shape[2] for part in closeness)
    return torch.cat([F.pad(part, (0, 0, 0, n_way - part.shape[2]), value=FAR).flatten(0, 1) for part in closeness])


def labels(tasks: Sequence[PracticeTasks]) -> Int[Tensor, " r"]:
    """The class of each row of `stacked`."""
    return torch.cat([each.query_y.flatten() for each in tasks])
