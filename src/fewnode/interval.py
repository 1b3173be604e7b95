"""The mean of scores over tasks and trainings, and its 95 % interval."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit


@dataclass(frozen=True)
class Interval:
    """A mean and the half-width of its 95 % interval."""

    mean: float
    ci95: float

    def __str__(self) -> str:
        return f"{100 * self.mean:.1f} ± {100 * self.ci95:.1f}"


def interval(scores: NDArray[np.float64]) -> Interval:
    """Mean and 95 % half-width of repeats x tasks, where every repeat (another training seed) sees the same tasks.

    Tasks and seeds are both samples, so both variances count; with one repeat this is the t interval over tasks.
    """
    repeats, tasks = scores.shape
    variance = 0.0
    for count, means in ((tasks, scores.mean(axis=0)), (repeats, scores.mean(axis=1))):
        if count > 1:
            variance += stdtrit(count - 1, 0.975) ** 2 * means.var(ddof=1) / count
    return Interval(float(scores.mean()), float(np.sqrt(variance)))
