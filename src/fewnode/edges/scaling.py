"""Weights of edges on one scale: their mean is 1, as that of the self-loop that stands beside them in Â."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fewnode.errors import FewnodeError, closest

Weights: TypeAlias = NDArray[np.float64]

SCALES = ("none", "log", "rank")
HEAVY = 2.0
"""Weights whose deviation is over so many times their mean are heavy-tailed: a few of them would drown the others."""
POINTS = 256
"""Of the curve that `rank` reads."""
CLOSE = 1e-6
"""A mean so near to 1 is 1: what was scaled before keeps its bits."""

EXTREME = 1e100
"""Weights beyond this, or so small, cannot be added up and squared."""


def unfit(amounts: Weights) -> NDArray[np.bool_]:
    """Amounts that are no weights: below 0, not finite, or too far from 1 to be computed with."""
    return np.asarray(~((amounts == 0) | ((amounts >= 1 / EXTREME) & (amounts <= EXTREME))))


@dataclass(frozen=True)
class Scaling:
    """How amounts become weights: as they are, by `log` or by `rank`, and then divided by their mean.

    >>> scaling = Scaling.learn(np.array([1.0, 2.0, 3.0]))
    >>> scaling.kind, scaling.apply(np.array([2.0, 4.0])).tolist()
    ('none', [1.0, 2.0])
    """

    kind: str
    unit: float = 1.0
    """The median, by which an amount is divided before its logarithm."""
    mean: float = 1.0
    """Of the scaled amounts, before they were divided by it."""
    curve: tuple[float, ...] = ()
    """Ascending amounts at equal steps of rank."""

    @classmethod
    def learn(cls, amounts: Weights, kind: str | None = None) -> Scaling:
        """From positive amounts. `kind` None: by logarithm where a few are far larger than the rest.

        Those whose mean is 1 have been scaled already.
        """
        if kind is not None and kind not in SCALES:
            raise FewnodeError(
                f"unknown scale {kind!r} of weights{closest(kind, SCALES)}; known are {', '.join(SCALES)}"
            )
        if not amounts.size:
            return cls(kind or "none")
        usual = abs(float(amounts.mean()) - 1) < CLOSE or amounts.std() <= HEAVY * amounts.mean()
        chosen = kind or ("none" if usual else "log")
        curve = tuple(np.quantile(amounts, np.linspace(0, 1, POINTS)).tolist()) if chosen == "rank" else ()
        raw = cls(chosen, float(np.median(amounts)), 1.0, curve)
        mean = float(raw.apply(amounts).mean())
        return cls(chosen, raw.unit, 1.0 if abs(mean - 1) < CLOSE else mean, curve)

    def apply(self, amounts: Weights) -> Weights:
        if self.kind == "log":
            return np.asarray(np.log1p(amounts / self.unit) / self.mean)
        if self.kind == "rank":
            steps, first = np.unique(self.curve, return_index=True)
            last = np.append(first[1:], len(self.curve)) - 1
            height = (0.5 * (first + last) + 1) / len(self.curve)  # what is equal has one rank
            return np.asarray(np.interp(amounts, steps, height) / self.mean)
        return amounts / self.mean

    def invert(self, weights: Weights) -> Weights:
        """The amounts that have these weights; by `rank` about those."""
        if self.kind == "log":
            return np.expm1(weights * self.mean) * self.unit
        if self.kind == "rank":
            steps = np.unique(self.curve)
            return np.interp(weights, self.apply(steps), steps)
        return weights * self.mean

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "unit": self.unit, "mean": self.mean, "curve": list(self.curve)}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Scaling:
        """What `to_json` gave; it may come from anybody."""
        try:
            unit, mean, *curve = (float(each) for each in (stored["unit"], stored["mean"], *stored["curve"]))
            fits = stored["kind"] in SCALES and 0 < unit < np.inf and 0 < mean < np.inf and len(curve) <= POINTS
            fits &= all(0 <= a <= b < np.inf for a, b in pairwise(curve)) and (stored["kind"] != "rank" or bool(curve))
            if fits:
                return cls(stored["kind"], unit, mean, tuple(curve))
        except (KeyError, TypeError, ValueError):
            pass
        raise FewnodeError("the stored scale of its weights is not one that fewnode wrote")
