"""What known classes teach about views: how much each counts, and which directions to play down."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from fewnode.episodes import EpisodeSampler
from fewnode.graph import Ints
from fewnode.represent.views import sampled

SHOTS, QUERIES, TASKS, WAY = (1, 5), 5, 150, 5
"""The tasks of training and validation classes that weights are learned from: shots, queries a class, how many."""
TOLERANCE = 2.220446049250313e-09
"""That of SciPy."""


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
        p = F.normalize(F.embedding(support, z).mean(dim=2), dim=2)  # rows of z, in a third of the time of z[support]
        return torch.einsum("tqd,tnd->tqn", F.embedding(query, z), p)

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


FAR = -100.0
"""The closeness to a class that a task does not have: no answer goes there."""


def stacked(closeness: Sequence[Float[Tensor, "t q _"]]) -> Float[Tensor, "r n"]:
    """A row a query of all these tasks; those of fewer classes have more that nothing is near to."""
    n_way = max(part.shape[2] for part in closeness)
    return torch.cat([F.pad(part, (0, n_way - part.shape[2]), value=FAR).flatten(0, 1) for part in closeness])


def mix_weights(
    closeness: Float[Tensor, "q n m"],
    label: Int[Tensor, " q"],
    prior: NDArray[np.float64] | None = None,
    penalty: float = 1e-4,
    tolerance: float = TOLERANCE,
) -> NDArray[np.float64]:
    """τ ≥ 0 that minimise the negative log-likelihood of softmax(Σ_m τ_m closeness_m), and a little of |τ - prior|².

    Without a prior that is of τ². The search ends where a step gains less than `tolerance`, as a share.
    """
    expects = torch.zeros(closeness.shape[2]) if prior is None else torch.from_numpy(prior).float()
    row, flat = torch.arange(label.numel()), closeness.flatten(0, 1)
    told = closeness[row, label].mean(dim=0)

    def loss(weights: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        tau = torch.from_numpy(weights).float()
        log_prob = torch.log_softmax((flat @ tau).view(closeness.shape[:2]), dim=1)
        expected = log_prob.exp().flatten() @ flat / label.numel()
        away = tau - expects
        value = -log_prob[row, label].mean() + penalty * away.square().sum()
        return float(value), (expected - told + 2 * penalty * away).double().numpy()

    m = closeness.shape[2]
    start, bounds = np.full(m, 10 / m), [(0, 100)] * m
    from scipy.optimize import minimize  # half a second to import, and only a fit needs it

    options = {"ftol": tolerance}
    found: NDArray[np.float64] = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options).x
    return found


def within_class_metric(
    z: Float[Tensor, "n d"], members: Sequence[Ints], shrink: float = 0.3, power: float = 0.25
) -> Float[Tensor, "d d"]:
    """Directions along which classes vary within more than nodes vary at all are shortened, others lengthened.

    W is the covariance within classes, each counting once, drawn towards the covariance T of all nodes; the map is
    T^-1/2 (T^-1/2 W T^-1/2)^-power T^1/2, the identity where W is proportional to T.
    """
    within = torch.zeros(z.shape[1], z.shape[1], dtype=torch.float64)
    for nodes in members:
        own = z[torch.from_numpy(nodes)]
        own -= own.mean(dim=0)
        within += (own.T @ own).double() / nodes.size
    some = z[torch.from_numpy(sampled(len(z)))]
    total = (some.T @ some).double()
    within, total = within / within.trace(), total / total.trace()
    eye = torch.eye(z.shape[1], dtype=torch.float64) / z.shape[1]
    total = total + 1e-4 * eye
    within = (1 - shrink) * within + shrink * total
    half, inverse = _root(total, 0.5), _root(total, -0.5)
    metric: Tensor = inverse @ _root(inverse @ within @ inverse, -power) @ half
    return metric.float()


def _root(matrix: Float[Tensor, "d d"], power: float) -> Float[Tensor, "d d"]:
    values, vectors = torch.linalg.eigh((matrix + matrix.T) / 2)
    root: Tensor = (vectors * values.clamp(min=1e-12) ** power) @ vectors.T
    return root
