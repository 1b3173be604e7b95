"""Tasks of known classes that views are weighed and judged by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from fewnode.episodes import EpisodeSampler
from fewnode.graph import Graph, Ints
from fewnode.represent.kinds import BY_WEIGHT, KIND_VIEWS, kind_views
from fewnode.represent.views import View

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


MOST = 100.0
"""What a view may weigh."""
STEPS, FLAT = 300, 1e-9
"""Of Newton's method: steps at most, and the slope at which nothing is left to gain."""
SUFFICIENT, ROUNDING, SHORTEST = 1e-4, 1e-13, 1e-6
"""Of a step: the share of the expected gain that it must bring, but for rounding, and how short it may become."""
TAKEN_UP = 32
"""Weights of 0 that are taken up in a step."""


def mix_weights(
    closeness: Float[Tensor, "q n m"],
    label: Int[Tensor, " q"],
    prior: NDArray[np.float64] | None = None,
    penalty: float = 1e-4,
) -> NDArray[np.float64]:
    """τ ≥ 0 that minimise the negative log-likelihood of softmax(Σ_m τ_m closeness_m), and a little of |τ - prior|².

    Without a prior that is of τ². The penalty makes the minimum unique. It is reached to rounding, so that a small
    difference in `closeness` makes a small difference in τ. Most weights end at 0: a step of Newton's method is over
    the others, and over those that would be better above 0. A weight at a bound stays there for a step if it would go
    beyond (Bertsekas, 1982).
    """
    ahead, m = _ahead(closeness, label), closeness.shape[2]
    expects = torch.zeros(m).double() if prior is None else torch.from_numpy(prior).double()
    tau = torch.full((m,), 10 / m).double() if prior is None else expects.clamp(0, MOST)

    def likelihood(tau: Float[Tensor, " m"]) -> tuple[Float[Tensor, ""], Float[Tensor, "r q"]]:
        """What is minimised, and the probability of each rival."""
        loss, p = _rivals(ahead, tau)
        return loss + penalty * (tau - expects).square().sum(), p

    loss, p = likelihood(tau)
    for _ in range(STEPS):
        slope = ahead.flatten(1) @ p.flatten() / len(label) + 2 * penalty * (tau - expects)
        free = _free(tau, slope)
        if not (slope[free].abs() > FLAT).any():
            break
        curve = _curvature(ahead[free], p)
        curve.diagonal().add_(2 * penalty)
        step = torch.zeros_like(tau).masked_scatter(free, -torch.linalg.solve(curve, slope[free]))
        length, before = 1.0, tau
        while length > SHORTEST and tau is before:
            there = (before + length * step).clamp(0, MOST)
            found = likelihood(there)
            if found[0] <= loss + SUFFICIENT * slope @ (there - before) + ROUNDING:
                tau, (loss, p) = there, found
            length /= 2
        if torch.equal(before, tau):
            break
    weights: NDArray[np.float64] = tau.numpy()
    return weights


def _ahead(closeness: Float[Tensor, "q n m"], label: Int[Tensor, " q"]) -> Float[Tensor, "m r q"]:
    """How much closer each rival of the right class is than that, in each view."""
    rank = torch.arange(closeness.shape[1] - 1)
    rivals = rank + (rank >= label.unsqueeze(1))
    each = torch.arange(len(label))
    right, others = closeness[each, label], closeness[each.unsqueeze(1), rivals]
    return (others.double() - right.double().unsqueeze(1)).permute(2, 1, 0).contiguous()


def _rivals(ahead: Float[Tensor, "m r q"], tau: Float[Tensor, " m"]) -> tuple[Float[Tensor, ""], Float[Tensor, "r q"]]:
    """The negative log-likelihood of the right classes, and the probability of each rival."""
    some = tau > 0
    score = (tau[some] @ ahead[some].flatten(1)).view(ahead.shape[1:])
    top = score.amax(dim=0).clamp(min=0)  # the right class scores 0
    power = (score - top).exp()
    total = power.sum(dim=0) + (-top).exp()
    return (total.log() + top).mean(), power / total


def _free(tau: Float[Tensor, " m"], slope: Float[Tensor, " m"]) -> Bool[Tensor, " m"]:
    """Weights that a step may change: those above 0, and those of 0 that the loss falls most steeply along."""
    found = (tau > 0) & ((tau < MOST) | (slope > 0))
    zero = torch.where(tau > 0, 0.0, slope)
    steepest = zero.argsort()[:TAKEN_UP]
    found[steepest] |= zero[steepest] < -FLAT
    return found


def _curvature(ahead: Float[Tensor, "m r q"], p: Float[Tensor, "r q"]) -> Float[Tensor, "m m"]:
    """The mean over queries of the covariance of `ahead` under p, where the right class is ahead by 0."""
    mean = (ahead * p).sum(dim=1)
    apart = (ahead * p.sqrt()).flatten(1)
    return (apart @ apart.T - mean @ mean.T) / p.shape[1]


FEWEST = 4
"""Known classes that a trial needs: two to weigh views by, two to judge by."""
SURE = 2.0
"""Standard errors that accuracy must gain by: there are many such views, and one of them always looks good."""


@dataclass(frozen=True, eq=False)
class KindsTrial:
    """Tasks of one half of the known classes and tasks of the other half, none where there is nothing to judge."""

    halves: tuple[list[PracticeTasks], ...] = ()

    @classmethod
    def of(cls, views: Sequence[View], known: Sequence[Ints], seed: int) -> KindsTrial:
        if not any(on_trial(view) for view in views) or len(known) < FEWEST:
            return cls()
        halves = tuple(practice_tasks(known[start::2], seed + 2) for start in (0, 1))
        return cls(halves if all(halves) else ())

    @property
    def tasks(self) -> list[PracticeTasks]:
        return [tasks for half in self.halves for tasks in half]

    def passed(
        self,
        views: Sequence[View],
        closeness: Sequence[Float[Tensor, "t q n m"]],
        prior: NDArray[np.float64],
        penalty: float,
    ) -> bool:
        """Whether accuracy on the other half of the classes is better with those views, beyond chance.

        `closeness` is that of each of `tasks`; `prior` is what is expected of each view.
        """
        if not self.halves:
            return False
        plain = np.array([not on_trial(view) for view in views])
        first = len(self.halves[0])
        sides = (slice(0, first), slice(first, None))
        gains = []
        for own, other in (sides, sides[::-1]):
            tau, without = (
                _weights(closeness[own], self.tasks[own], prior, penalty, chosen) for chosen in (plain | True, plain)
            )
            for close, tasks in zip(closeness[other], self.tasks[other], strict=True):
                gains.append(_right(close, tau, tasks) - _right(close, without, tasks))
        gain = np.concatenate(gains)
        return bool(gain.mean() > SURE * gain.std() / gain.size**0.5)


def on_trial(view: View) -> bool:
    """Weights are known to mean something; kinds and directions are not."""
    return view.name in KIND_VIEWS and view.name not in BY_WEIGHT


def unused_kinds(method: Any, graph: Graph) -> list[str]:
    """What a method that weighs views learned to leave out of what the edges of this graph say."""
    mixture = getattr(method, "mixture_", None)
    if mixture is None or not set(kind_views(graph)) - set(BY_WEIGHT) or any(map(on_trial, mixture.weight)):
        return []
    return ["kinds and directions of edges, by which known classes did not gain"]


def _weights(
    closeness: Sequence[Float[Tensor, "t q n m"]],
    tasks: Sequence[PracticeTasks],
    prior: NDArray[np.float64],
    penalty: float,
    chosen: NDArray[np.bool_],
) -> NDArray[np.float64]:
    """The weight of each view, 0 of those that are not chosen."""
    tau = np.zeros(chosen.size)
    close = stacked([part[..., torch.from_numpy(chosen)] for part in closeness])
    tau[chosen] = mix_weights(close, labels(tasks), prior[chosen], penalty)
    return tau


def _right(closeness: Float[Tensor, "t q n m"], tau: NDArray[np.float64], tasks: PracticeTasks) -> NDArray[np.float64]:
    """The accuracy of each task."""
    found = (closeness @ torch.from_numpy(tau).float()).argmax(dim=2)
    return np.asarray((found == tasks.query_y).double().mean(dim=1).numpy())
