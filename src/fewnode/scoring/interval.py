"""The mean of scores over tasks and trainings, or a share that was counted, and its 95 % interval."""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan, nan, sqrt
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

WIDE = NormalDist().inv_cdf(0.975)
"""Standard deviations from the middle of a normal distribution to the end of its 95 % interval."""


@dataclass(frozen=True)
class Interval:
    """A mean and the half-width of its 95 % interval, which is NaN if it cannot be told: of one task."""

    mean: float
    ci95: float

    def __str__(self) -> str:
        return f"{100 * self.mean:.1f} ± " + ("?" if isnan(self.ci95) else f"{100 * self.ci95:.1f}")

    def to_json(self) -> dict[str, float | None]:
        return {"mean": self.mean, "ci95": None if isnan(self.ci95) else self.ci95}


def interval(scores: NDArray[np.float64]) -> Interval:
    """Mean and 95 % half-width of repeats x tasks, where every repeat (another training seed) sees the same tasks.

    Tasks and seeds are both samples, so both variances count; with one repeat this is the t interval over tasks.
    """
    error, freedom = spread(scores.mean(axis=0), scores.mean(axis=1))
    known = scores.shape[1] > 1  # of one task nobody knows how far others are from it
    return Interval(float(scores.mean()), float(stdtrit(freedom, 0.975) * error) if known else nan)


def spread(*samples: NDArray[np.float64]) -> tuple[float, float]:
    """The standard error of a sum of independent means, and Welch and Satterthwaite's degrees of freedom.

    A sample of one says nothing of its variance, and counts as if it had none.
    """
    terms = [(sample.var(ddof=1) / sample.size, sample.size - 1) for sample in samples if sample.size > 1]
    variance = sum(term for term, _ in terms)
    if variance <= 0:
        return 0.0, 1.0
    return float(np.sqrt(variance)), float(variance**2 / sum(term**2 / free for term, free in terms))


def wilson(right: int, asked: int) -> tuple[float, float]:
    """The 95 % interval of a share that was counted (Wilson, 1927)."""
    share, z2 = right / asked, WIDE * WIDE / asked
    middle, half = share + z2 / 2, WIDE * sqrt(share * (1 - share) / asked + z2 / asked / 4)
    return max(0.0, (middle - half) / (1 + z2)), min(1.0, (middle + half) / (1 + z2))
