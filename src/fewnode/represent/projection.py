"""How views are looked at: from their mean, along principal axes, several of them fused."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F
from torch.nn.functional import pad

from fewnode.engine import rows
from fewnode.graph import Ints
from fewnode.represent.tiles import rows_of

AS_IT_IS = 0
"""The rank of a view that is not stretched."""
LEAST_POWER, MOST_POWER = -0.4, 2.0
SIDE = 256
"""Columns whose products with others are computed at a time."""
SAMPLE = 12_000
"""Rows, or up to twice as many, that tell how a view is to be looked at."""


@dataclass(frozen=True, eq=False)
class ViewProjection:
    """How a view is looked at: from its mean, along its principal axes."""

    mean: Float[Tensor, " d"]
    axes: Float[Tensor, "d d"]
    variance: Float[Tensor, " d"]
    """Of each axis, as a share of the largest."""
    _stretches: dict[int, Tensor] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def of(cls, h: Float[Tensor, "n d"]) -> ViewProjection:
        mean = mean_direction(h)
        variance, axes = principal_axes(centred(h, mean))
        return cls(mean, axes.float(), (variance / variance.max().clamp(min=1e-30)).clamp(min=1e-4).float())

    def read(self, h: Float[Tensor, "k d"], rank: int = AS_IT_IS) -> Float[Tensor, "k d"]:
        """Unit rows. Axis i is stretched by its variance to a power, so that the effective rank is about `rank`.

        Few labels fix few directions. How many directions of a view matter differs between networks by far more than
        how many tell classes apart: a common effective rank is what makes views of different networks alike.
        """
        return self.read_all(h, [rank])[0]

    def read_all(self, h: Float[Tensor, "k d"], ranks: Sequence[int]) -> list[Float[Tensor, "k d"]]:
        """At several ranks."""
        z = centred(h, self.mean)
        along = z @ self.axes if any(rank != AS_IT_IS for rank in ranks) else z
        return [z if rank == AS_IT_IS else stretched(along, self.stretch(rank)) for rank in ranks]

    def along(self, h: Float[Tensor, "k d"]) -> Float[Tensor, "k d"]:
        """Unit rows, by their coordinates along the axes: `read` stretches these."""
        return centred(h, self.mean) @ self.axes

    def stretch(self, rank: int) -> Float[Tensor, " d"]:
        """What each axis is stretched by; computed once."""
        if rank not in self._stretches:
            ones = torch.ones_like(self.variance)
            self._stretches[rank] = ones if rank == AS_IT_IS else self.variance ** self.power(rank)
        return self._stretches[rank]

    def power(self, rank: int) -> float:
        """The power for an effective rank, by bisection: the larger the power, the fewer axes count."""
        low, high = LEAST_POWER, MOST_POWER
        for _ in range(30):
            middle = (low + high) / 2
            stretched = self.variance.double() ** (1 + 2 * middle)
            low, high = (middle, high) if effective_rank(stretched) > rank else (low, middle)
        return (low + high) / 2


def effective_rank(variance: Float[Tensor, " d"]) -> float:
    """How many axes share the variance: its participation ratio (Σ v)² / Σ v²."""
    return float(variance.sum() ** 2 / variance.square().sum().clamp(min=1e-300))


@dataclass(frozen=True, eq=False)
class ViewFusion:
    """Several views side by side, seen along their common leading axes."""

    mean: Float[Tensor, " e"]
    projection: Float[Tensor, "e d"]
    metric: Float[Tensor, "d d"] | None = None

    @classmethod
    def of(cls, rows: Iterable[Sequence[Float[Tensor, "k _"]]], rank: int) -> ViewFusion:
        """From rows of each view, some at a time."""
        count, total, products = 0, torch.zeros(()).double(), torch.zeros(0, 0).double()
        for parts in rows:
            e = torch.cat(list(parts), dim=1)
            if not count:
                products = torch.zeros(e.shape[1], e.shape[1]).double()
            count, total = count + len(e), total + e.sum(dim=0).double()
            for low in range(0, e.shape[1], SIDE):  # what is below the diagonal says the same again
                products[low : low + SIDE, low:] += e[:, low : low + SIDE].T @ e[:, low:]
        for low in range(0, len(products), SIDE):
            products[low + SIDE :, low : low + SIDE] = products[low : low + SIDE, low + SIDE :].T
        mean = total / max(1, count)
        scatter = products.div_(max(1, count)).addr_(mean, mean, alpha=-1)
        return cls(mean.float(), _leading_axes(scatter, rank).float().contiguous())

    def read(self, parts: Sequence[Float[Tensor, "n _"]]) -> Float[Tensor, "n d"]:
        """From rows of each view."""
        z, low = (-self.mean @ self.projection).repeat(len(parts[0]), 1), 0
        for part in parts:
            z.addmm_(part, self.projection[low : low + part.shape[1]])
            low += part.shape[1]
        z = F.normalize(z)
        return z if self.metric is None else F.normalize(z @ self.metric)


def _leading_axes(scatter: Float[Tensor, "e e"], rank: int) -> Float[Tensor, "e d"]:
    """The last `rank` of `axes_of`. Where they are few, the others are not computed."""
    size = scatter.shape[0]
    if 2 * rank >= size:
        return axes_of(scatter)[1][:, -rank:]
    from scipy.linalg import eigh

    return torch.from_numpy(
        eigh(scatter.numpy(), subset_by_index=(size - rank, size - 1), overwrite_a=True, check_finite=False)[1]
    )


def sampled(n: int) -> Ints:
    """The rows, at equal distances, that means and axes of n rows are taken from: all, of so few."""
    return np.arange(0, n, max(1, n // SAMPLE))


def principal_axes(z: Float[Tensor, "n d"]) -> tuple[Tensor, Tensor]:
    """Variances and axes (columns), ascending."""
    return axes_of((z.T @ z / max(1, z.shape[0])).double())


def axes_of(scatter: Float[Tensor, "d d"]) -> tuple[Tensor, Tensor]:
    """The same of a matrix of mean products."""
    variance, axes = np.linalg.eigh(scatter.numpy())  # torch's gives up where some entries are 1e-14 times the others
    # as a file has them: products depend on the order in memory, in the last bit
    return torch.from_numpy(variance), torch.from_numpy(np.ascontiguousarray(axes))


def mean_direction(z: Float[Tensor, "n d"]) -> Float[Tensor, " d"]:
    """The mean of the unit rows of z, of those that are not zero."""
    return F.normalize(z).sum(dim=0) / z.any(dim=1).sum().clamp(min=1)


def centred(z: Float[Tensor, "n d"], mean: Float[Tensor, " d"]) -> Float[Tensor, "n d"]:
    """Unit rows, moved by the mean, of unit length again. A node that nothing is known of (zeros) stays zero."""
    out = torch.empty_like(z)
    rows.centre_rows(z.numpy(), mean.numpy(), out.numpy())
    return out


def stretched(z: Float[Tensor, "n d"], factor: Float[Tensor, " d"]) -> Float[Tensor, "n d"]:
    """Unit rows, each column multiplied by its factor before. Zeros stay zero."""
    out = torch.empty_like(z)
    rows.stretch_rows(z.numpy(), factor.numpy(), out.numpy())
    return out


NOTHING = 1e-12
"""No variance at all: attributes that are the same everywhere, or in all nodes of each class."""


def within_class_metric(
    z: Float[Tensor, "n d"], members: Sequence[Ints], shrink: float = 0.3, power: float = 0.25
) -> Float[Tensor, "d d"]:
    """Directions along which classes vary within more than nodes vary at all are shortened, others lengthened.

    W is the covariance within classes, each counting once, drawn towards the covariance T of all nodes; the map is
    T^-1/2 (T^-1/2 W T^-1/2)^-power T^1/2, the identity where W is proportional to T.
    """
    within = torch.zeros(z.shape[1], z.shape[1], dtype=torch.float64)
    for nodes in members:
        own = rows_of(z, nodes)
        own -= own.mean(dim=0)
        within += (own.T @ own).double() / nodes.size
    some = rows_of(z, sampled(len(z)))
    total = (some.T @ some).double()
    within, total = (each / each.trace().clamp(min=NOTHING) for each in (within, total))
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


@dataclass(frozen=True, eq=False)
class Plane:
    """A linear map of vectors to two numbers each. Whatever has the same coordinates, a prototype too, has a place."""

    mean: Float[Tensor, " d"]
    axes: Float[Tensor, "d 2"]
    share: Float[Tensor, " 2"]
    """Of the variance, along each axis."""

    @classmethod
    def of(cls, z: Float[Tensor, "n d"]) -> Plane:
        """Of a single column, the second axis is nothing."""
        mean = z.mean(dim=0)
        variance, axes = principal_axes((z - mean).double())
        longest_first = axes[:, -2:].flip(1)
        # an eigenvector's sign is anybody's choice: its largest entry is positive
        largest = longest_first.gather(0, longest_first.abs().argmax(dim=0, keepdim=True))
        share = variance[-2:].flip(0) / variance.sum().clamp(min=1e-12)
        one_column = (0, 2 - share.shape[0])
        axes, share = (pad(part, one_column).to(z.dtype) for part in (longest_first * torch.sign(largest), share))
        return cls(mean, axes, share)

    def place(self, z: Float[Tensor, "k d"]) -> Float[Tensor, "k 2"]:
        return (z - self.mean) @ self.axes
