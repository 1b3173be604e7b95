"""How views are looked at: from their mean, along principal axes, several fused; a metric; the plane of maps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from fewnode._system import memory
from fewnode.engine import rows
from fewnode.graph import Ints
from fewnode.vectors import Floats, unit_rows

AS_IT_IS = 0
"""The rank of a view that is not stretched."""
LEAST_POWER, MOST_POWER = -0.4, 2.0
SIDE = 256
"""Columns whose products with others are computed at a time."""
SAMPLE = 12_000
"""Rows, or up to twice as many, that tell how a view is to be looked at."""
NOTHING = 1e-12
"""No variance at all: attributes that are the same everywhere, or in all nodes of each class."""
Doubles = NDArray[np.float64]


def sampled(n: int) -> Ints:
    """The rows, at equal distances, that means and axes of n rows are taken from: all, of so few."""
    return np.arange(0, n, max(1, n // SAMPLE))


# --- rows as directions from their mean: what all nodes share tells none of them apart ------------------------------


def mean_direction(z: Floats) -> Floats:
    """The mean of the unit rows of z, of those that are not zero."""
    mean: Floats = unit_rows(z).sum(axis=0) / np.float32(max(1, int(np.count_nonzero(z.any(axis=1)))))
    return mean


def centred(z: Floats, mean: Floats) -> Floats:
    """Unit rows, moved by the mean, of unit length again. A node that nothing is known of (zeros) stays zero."""
    out = np.empty_like(z)
    rows.centre_rows(_fixed(z), _fixed(mean), out)
    return out


def stretched(z: Floats, factor: Floats) -> Floats:
    """Unit rows, each column multiplied by its factor before. Zeros stay zero."""
    out = np.empty_like(z)
    rows.stretch_rows(_fixed(z), _fixed(factor), out)
    return out


def _fixed(array: Floats) -> Floats:
    """Read-only, as what is mapped from a file: else loops would be compiled for both."""
    view = array.view()
    view.flags.writeable = False
    return view


# --- one view -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ViewProjection:
    """How a view is looked at: from its mean, along its principal axes."""

    mean: Floats
    axes: Floats
    variance: Floats
    """The variance along each axis, as a share of the largest."""
    _stretches: dict[int, Floats] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def of(cls, h: Floats) -> ViewProjection:
        mean = mean_direction(h)
        variance, axes = principal_axes(centred(h, mean))
        share = np.maximum(variance / max(float(variance.max()), 1e-30), 1e-4)
        return cls(mean, axes.astype(np.float32), share.astype(np.float32))

    def read_all(self, h: Floats, ranks: Sequence[int]) -> list[Floats]:
        """Unit rows at several ranks: axis i is stretched by its variance to a power, for that effective rank.

        Few labels fix few directions. How many directions of a view matter differs between networks by far more than
        how many tell classes apart: a common effective rank is what makes views of different networks alike.
        """
        z = centred(h, self.mean)
        along = z @ self.axes if any(rank != AS_IT_IS for rank in ranks) else z
        return [z if rank == AS_IT_IS else stretched(along, self.stretch(rank)) for rank in ranks]

    def along(self, h: Floats) -> Floats:
        """Unit rows, by their coordinates along the axes: `read` stretches these."""
        return centred(h, self.mean) @ self.axes

    def stretch(self, rank: int) -> Floats:
        """What each axis is stretched by; computed once."""
        if rank not in self._stretches:
            self._stretches[rank] = self.variance ** (0.0 if rank == AS_IT_IS else self.power(rank))
        return self._stretches[rank]

    def power(self, rank: int) -> float:
        """The power for an effective rank, by bisection: the larger the power, the fewer axes count."""
        low, high = LEAST_POWER, MOST_POWER
        variance = self.variance.astype(np.float64)
        for _ in range(30):
            middle = (low + high) / 2
            low, high = (middle, high) if effective_rank(variance ** (1 + 2 * middle)) > rank else (low, middle)
        return (low + high) / 2


def effective_rank(variance: NDArray[np.floating]) -> float:
    """How many axes share the variance: its participation ratio (Σ v)² / Σ v²."""
    return float(variance.sum() ** 2 / max(float(np.square(variance).sum()), 1e-300))


# --- several views --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ViewFusion:
    """Several views side by side, seen along their common leading axes."""

    mean: Floats
    projection: Floats
    metric: Floats | None = None

    @classmethod
    def of(cls, rows_of_views: Iterable[Sequence[Floats]], rank: int) -> ViewFusion:
        """From rows of each view, some at a time."""
        count, total, products = 0, np.zeros(()), np.zeros((0, 0))
        for parts in rows_of_views:
            e = np.concatenate(list(parts), axis=1)
            if not count:
                products = np.zeros((e.shape[1], e.shape[1]))
            count, total = count + len(e), total + e.sum(axis=0, dtype=np.float64)
            for low in range(0, e.shape[1], SIDE):  # what is below the diagonal says the same again
                products[low : low + SIDE, low:] += e[:, low : low + SIDE].T @ e[:, low:]
        for low in range(0, len(products), SIDE):
            products[low + SIDE :, low : low + SIDE] = products[low : low + SIDE, low + SIDE :].T
        mean = total / max(1, count)
        products /= max(1, count)
        products -= np.outer(mean, mean)
        return cls(mean.astype(np.float32), np.ascontiguousarray(_leading_axes(products, rank), np.float32))

    def read(self, parts: Sequence[Floats]) -> Floats:
        """From rows of each view."""
        z, low = np.tile(-self.mean @ self.projection, (len(parts[0]), 1)), 0
        for part in parts:
            z += part @ self.projection[low : low + part.shape[1]]
            low += part.shape[1]
        z = unit_rows(z)
        return z if self.metric is None else unit_rows(z @ self.metric)


def _leading_axes(scatter: Doubles, rank: int) -> Doubles:
    """The last `rank` axes. Where they are few, the others are not computed."""
    size = scatter.shape[0]
    if 2 * rank >= size:
        return axes_of(scatter)[1][:, -rank:]
    from scipy.linalg import eigh

    found: Doubles = eigh(scatter, subset_by_index=(size - rank, size - 1), overwrite_a=True, check_finite=False)[1]
    return found


def principal_axes(z: Floats) -> tuple[Doubles, Doubles]:
    """Variances and axes (columns), ascending."""
    return axes_of((z.T @ z / np.float32(max(1, z.shape[0]))).astype(np.float64))


def axes_of(scatter: Doubles) -> tuple[Doubles, Doubles]:
    """Principal variances and axes from the matrix of mean products."""
    variance, axes = np.linalg.eigh(scatter)
    return variance, np.ascontiguousarray(axes)  # as a file has them: the last bit depends on the order in memory


# --- a metric learned on known classes ------------------------------------------------------------------------------


def within_class_metric(z: Floats, members: Sequence[Ints], shrink: float = 0.3, power: float = 0.25) -> Floats:
    """Directions along which classes vary within more than nodes vary at all are shortened, others lengthened.

    W is the covariance within classes, each counting once, drawn towards the covariance T of all nodes; the map is
    T^-1/2 (T^-1/2 W T^-1/2)^-power T^1/2, the identity where W is proportional to T.
    """
    within = np.zeros((z.shape[1], z.shape[1]))
    for nodes in members:
        own = memory.taken(z, nodes)
        own -= own.mean(axis=0)
        within += (own.T @ own).astype(np.float64) / nodes.size
    some = memory.taken(z, sampled(len(z)))
    total = (some.T @ some).astype(np.float64)
    within, total = (matrix / max(float(np.trace(matrix)), NOTHING) for matrix in (within, total))
    total = total + 1e-4 * np.eye(z.shape[1]) / z.shape[1]
    within = (1 - shrink) * within + shrink * total
    half, inverse = _root(total, 0.5), _root(total, -0.5)
    metric: Doubles = inverse @ _root(inverse @ within @ inverse, -power) @ half
    return metric.astype(np.float32)


def _root(matrix: Doubles, power: float) -> Doubles:
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    root: Doubles = (vectors * np.maximum(values, 1e-12) ** power) @ vectors.T
    return root


# --- the plane on which pictures are drawn --------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Plane:
    """A linear map of vectors to two numbers each. Whatever has the same coordinates, a prototype too, has a place."""

    mean: Floats
    axes: Floats
    share: Floats
    """Of the variance, along each axis."""

    @classmethod
    def of(cls, z: Floats) -> Plane:
        """Of a single column, the second axis is nothing."""
        mean = z.mean(axis=0)
        variance, axes = principal_axes(z - mean)
        longest_first = axes[:, :-3:-1]
        # an eigenvector's sign is anybody's choice: its largest entry is positive
        largest = np.take_along_axis(longest_first, np.abs(longest_first).argmax(axis=0)[None], axis=0)
        share = variance[:-3:-1] / max(float(variance.sum()), NOTHING)
        missing = 2 - share.size
        axes = np.pad(longest_first * np.sign(largest), ((0, 0), (0, missing)))
        return cls(mean, axes.astype(np.float32), np.pad(share, (0, missing)).astype(np.float32))

    def place(self, z: Floats) -> Floats:
        found: Floats = np.matmul(z - self.mean, self.axes)
        return found
