"""Tasks of known classes that views are weighed and judged by: how much each view counts, and whether some are of use.

The weights are those by which known classes are most likely to be told apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fewnode.embedding.kinds import BY_WEIGHT, KIND_VIEWS
from fewnode.embedding.views import View
from fewnode.episodes import TaskSampler
from fewnode.graph import Ints
from fewnode.vectors import Floats, unit_rows

SHOTS, QUERIES, TASKS, WAY = (1, 5), 5, 150, 5
"""Of the tasks: shots, queries a class, how many, and classes."""
FAR = -100.0
"""The closeness to a class that a task does not have: no answer goes there."""
Doubles = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PracticeTasks:
    """Tasks of one shape, as arrays: support is tasks x N x K, query and its labels are tasks x (N M)."""

    support: Ints
    query: Ints
    query_y: Ints

    @classmethod
    def of(cls, sampler: TaskSampler, count: int) -> PracticeTasks:
        tasks = sampler.take(count)
        support = np.stack([task.support for task in tasks]).reshape(count, sampler.n_way, sampler.k_shot)
        return cls(support, np.stack([task.query for task in tasks]), np.stack([task.query_y for task in tasks]))

    @property
    def nodes(self) -> Ints:
        return np.concatenate([self.support.ravel(), self.query.ravel()])

    def among(self, nodes: Ints) -> PracticeTasks:
        """The tasks with each node as its place among these nodes, which are sorted."""
        support, query = (np.searchsorted(nodes, part) for part in (self.support, self.query))
        return PracticeTasks(support, query, self.query_y)

    def closeness(self, z: Floats) -> Floats:
        """Cosine of each query node to each class mean (tasks x queries x classes); row i of z is that of node i."""
        prototypes = unit_rows(z[self.support].mean(axis=2))
        cosines: Floats = z[self.query] @ prototypes.swapaxes(1, 2)
        return cosines

    def closeness_along(self, along: Floats, square: Floats, length: Floats) -> Floats:
        """`closeness` of rows that are stretched along the same axes in several ways, which are the last dimension.

        `square` is of what each axis is stretched by, a row a way; `length` is that of each row, then.
        """
        t, n, k = self.support.shape
        share = (1 / length)[self.support.ravel()].reshape(t * n, k, -1) / np.float32(k)
        p = share.swapaxes(1, 2) @ along[self.support.ravel()].reshape(t * n, k, -1)  # t n, ways, d
        ahead = p * square
        ahead /= np.maximum(np.sqrt(np.einsum("trd,trd->tr", p, ahead)), 1e-12)[:, :, None]
        found = along[self.query] @ ahead.reshape(t, n * len(square), -1).swapaxes(1, 2)
        closeness: Floats = np.divide(found.reshape(t, -1, n, len(square)), length[self.query][:, :, None])
        return closeness

    def accuracy(self, z: Floats) -> float:
        return float(np.mean(self.closeness(z).argmax(axis=2) == self.query_y))


def practice_tasks(members: Sequence[Ints], seed: int) -> list[PracticeTasks]:
    """Tasks of one and of five shots, with fewer queries if classes are small; none if there are too few nodes."""
    found = []
    for k_shot in SHOTS:
        for m_query in (QUERIES, 2, 1):
            large = [nodes for nodes in members if nodes.size >= k_shot + m_query]
            if len(large) > 1:
                sampler = TaskSampler(large, min(WAY, len(large)), k_shot, m_query, seed)
                found.append(PracticeTasks.of(sampler, TASKS))
                break
    return found


def stacked(closeness: Sequence[Floats]) -> Floats:
    """A row a query of all these tasks; those of fewer classes have more that nothing is near to."""
    n_way = max(part.shape[2] for part in closeness)
    missing = [((0, 0), (0, 0), (0, n_way - part.shape[2]), (0, 0)) for part in closeness]
    padded = [np.pad(part, pad, constant_values=FAR) for part, pad in zip(closeness, missing, strict=True)]
    return np.concatenate([part.reshape(-1, *part.shape[2:]) for part in padded])


# --- weights of views -----------------------------------------------------------------------------------------------

MOST = 100.0
"""What a view may weigh."""
STEPS, FLAT = 300, 1e-9
"""Of Newton's method: steps at most, and the slope at which nothing is left to gain."""
SUFFICIENT, ROUNDING, SHORTEST = 1e-4, 1e-13, 1e-6
"""Of a step: the share of the expected gain that it must bring, but for rounding, and how short it may become."""
TAKEN_UP = 32
"""Weights of 0 that are taken up in a step."""


def mix_weights(closeness: Floats, label: Ints, prior: Doubles | None = None, penalty: float = 1e-4) -> Doubles:
    """τ ≥ 0 that minimise the negative log-likelihood of softmax(Σ_m τ_m closeness_m), and a little of |τ - prior|².

    `closeness` is queries x classes x views. Without a prior the penalty is that of τ²; it makes the minimum unique.
    It is reached to rounding, so that a small difference in `closeness` makes a small difference in τ. Most weights
    end at 0: a step of Newton's method is over the others, and over those that would be better above 0. A weight at a
    bound stays there for a step if it would go beyond (Bertsekas, 1982).
    """
    ahead, m = _ahead(closeness, label), closeness.shape[2]
    expects = np.zeros(m) if prior is None else prior
    tau = np.full(m, 10 / m) if prior is None else expects.clip(0, MOST)

    def likelihood(tau: Doubles) -> tuple[float, Doubles]:
        """What is minimised, and the probability of each rival."""
        loss, p = _rivals(ahead, tau)
        return loss + penalty * float(np.square(tau - expects).sum()), p

    loss, p = likelihood(tau)
    for _ in range(STEPS):
        slope = ahead.reshape(m, -1) @ p.ravel() / len(label) + 2 * penalty * (tau - expects)
        free = _free(tau, slope)
        if not (np.abs(slope[free]) > FLAT).any():
            break
        curve = _curvature(ahead[free], p)
        curve[np.diag_indices(len(curve))] += 2 * penalty
        step = np.zeros(m)
        step[free] = -np.linalg.solve(curve, slope[free])
        length, before = 1.0, tau
        while length > SHORTEST and tau is before:
            there = (before + length * step).clip(0, MOST)
            found = likelihood(there)
            if found[0] <= loss + SUFFICIENT * slope @ (there - before) + ROUNDING:
                tau, (loss, p) = there, found
            length /= 2
        if np.array_equal(before, tau):
            break
    return tau


def _ahead(closeness: Floats, label: Ints) -> Doubles:
    """How much closer each rival of the right class is than that: views x rivals x queries."""
    by_view = np.ascontiguousarray(closeness.transpose(2, 1, 0))
    right = by_view[:, label, np.arange(len(label))]
    ahead = np.empty((closeness.shape[2], closeness.shape[1] - 1, len(label)))
    for rival in range(ahead.shape[1]):  # the right class is left out
        other = np.where(rival < label, by_view[:, rival], by_view[:, rival + 1])
        np.subtract(other, right, out=ahead[:, rival], dtype=np.float64)
    return ahead


def _rivals(ahead: Doubles, tau: Doubles) -> tuple[float, Doubles]:
    """The negative log-likelihood of the right classes, and the probability of each rival."""
    some = tau > 0
    score = (tau[some] @ ahead.reshape(len(ahead), -1)[some]).reshape(ahead.shape[1:])
    top = np.maximum(score.max(axis=0), 0)  # the right class scores 0
    power = np.exp(score - top)
    total = power.sum(axis=0) + np.exp(-top)
    return float((np.log(total) + top).mean()), power / total


def _free(tau: Doubles, slope: Doubles) -> NDArray[np.bool_]:
    """Weights that a step may change: those above 0, and those of 0 that the loss falls most steeply along."""
    found = (tau > 0) & ((tau < MOST) | (slope > 0))
    zero = np.where(tau > 0, 0.0, slope)
    steepest = np.argsort(zero, kind="stable")[:TAKEN_UP]
    found[steepest] |= zero[steepest] < -FLAT
    return found


def _curvature(ahead: Doubles, p: Doubles) -> Doubles:
    """The mean over queries of the covariance of `ahead` under p, where the right class is ahead by 0."""
    mean = (ahead * p).sum(axis=1)
    apart = (ahead * np.sqrt(p)).reshape(len(ahead), -1)
    curve: Doubles = (apart @ apart.T - mean @ mean.T) / p.shape[1]
    return curve


# --- are views over kinds and directions of edges of use? -----------------------------------------------------------

FEWEST = 4
"""Known classes that a trial needs: two to weigh views by, two to judge by."""
SURE = 2.0
"""Standard errors that accuracy must gain by: there are many such views, and one of them always looks good."""


def on_trial(view: View) -> bool:
    """Weights are known to mean something; kinds and directions are not."""
    return view.name in KIND_VIEWS and view.name not in BY_WEIGHT


def trial_tasks(views: Sequence[View], known: Sequence[Ints], seed: int) -> list[list[PracticeTasks]]:
    """Tasks of one half of the known classes and of the other, where there is something to judge."""
    if not any(map(on_trial, views)) or len(known) < FEWEST:
        return []
    halves = [practice_tasks(known[start::2], seed + 2) for start in (0, 1)]
    return halves if all(halves) else []


def gains(
    halves: Sequence[Sequence[PracticeTasks]],
    closeness: Sequence[Floats],
    plain: NDArray[np.bool_],
    prior: Doubles,
    penalty: float,
) -> bool:
    """Whether accuracy is better with views that are not `plain`, beyond chance, on classes that did not weigh them.

    `closeness` is that of each of the tasks; `prior` is what is expected of each view.
    """
    sides = [slice(0, len(halves[0])), slice(len(halves[0]), None)] if halves else []
    tasks, gained = [each for half in halves for each in half], []
    for own, other in zip(sides, sides[::-1], strict=True):
        tau, without = (
            tasks_weights(tasks[own], closeness[own], chosen, prior, penalty) for chosen in (plain | True, plain)
        )
        for close, each in zip(closeness[other], tasks[other], strict=True):
            right = [(close @ by.astype(np.float32)).argmax(axis=2) == each.query_y for by in (tau, without)]
            gained.append(right[0].mean(axis=1) - right[1].mean(axis=1))
    gain = np.concatenate(gained or [np.zeros(1)])
    return bool(gain.mean() > SURE * gain.std() / gain.size**0.5)


def tasks_weights(
    tasks: Sequence[PracticeTasks],
    closeness: Sequence[Floats],
    chosen: NDArray[np.bool_],
    prior: Doubles,
    penalty: float,
) -> Doubles:
    """The weight of each view by these tasks, 0 of those that are not chosen."""
    tau = np.zeros(chosen.size)
    close = stacked([part[..., chosen] for part in closeness])
    tau[chosen] = mix_weights(close, np.concatenate([each.query_y.ravel() for each in tasks]), prior[chosen], penalty)
    return tau
