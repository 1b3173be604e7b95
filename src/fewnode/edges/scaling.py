"""Weights of edges on one scale: their mean is 1, as that of the self-loop that stands beside them in Â."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fewnode.errors import FewnodeError, closest

Weights: TypeAlias = NDArray[np.float64]

SCALES = ("none", "log")
HEAVY = 2.0
"""Weights whose deviation is over so many times their mean are heavy-tailed: a few of them would drown the others."""
CLOSE = 1e-6
"""A mean so near to 1 is 1: what was scaled before keeps its bits."""
EXTREME = 1e100
"""Weights beyond this, or so small, cannot be added up and squared."""


def unfit(amounts: Weights) -> NDArray[np.bool_]:
    """Amounts that are no weights: below 0, not finite, or too far from 1 to be computed with."""
    return np.asarray(~((amounts == 0) | ((amounts >= 1 / EXTREME) & (amounts <= EXTREME))))


def check_scale(kind: str | None) -> None:
    if kind is not None and kind not in SCALES:
        raise FewnodeError(f"unknown scale {kind!r} of weights{closest(kind, SCALES)}; known are {', '.join(SCALES)}")


@dataclass(frozen=True)
class Scaling:
    """How amounts become weights: as they are or by logarithm, and then divided by their mean.

    >>> scaling = Scaling.learn(np.array([1.0, 2.0, 3.0]))
    >>> scaling.kind, scaling.apply(np.array([2.0, 4.0])).tolist()
    ('none', [1.0, 2.0])
    """

    kind: str
    unit: float = 1.0
    """The median, by which an amount is divided before its logarithm."""
    mean: float = 1.0
    """Of the scaled amounts, before they were divided by it."""

    @classmethod
    def learn(cls, amounts: Weights, kind: str | None = None) -> Scaling:
        """From positive amounts. `kind` None: by logarithm where a few are far larger than the rest.

        Those whose mean is 1 have been scaled already.
        """
        check_scale(kind)
        if not amounts.size:
            return cls(kind or "none")
        usual = abs(float(amounts.mean()) - 1) < CLOSE or amounts.std() <= HEAVY * amounts.mean()
        raw = cls(kind or ("none" if usual else "log"), float(np.median(amounts)))
        mean = float(raw.apply(amounts).mean())
        return cls(raw.kind, raw.unit, 1.0 if abs(mean - 1) < CLOSE else mean)

    def apply(self, amounts: Weights) -> Weights:
        return np.asarray((np.log1p(amounts / self.unit) if self.kind == "log" else amounts) / self.mean)

    def invert(self, weights: Weights) -> Weights:
        """The amounts that have these weights."""
        raw = weights * self.mean
        return np.expm1(raw) * self.unit if self.kind == "log" else raw

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Scaling:
        """What `to_json` gave; it may come from anybody."""
        try:
            unit, mean = float(stored["unit"]), float(stored["mean"])
            if stored["kind"] in SCALES and 0 < unit < np.inf and 0 < mean < np.inf:
                return cls(stored["kind"], unit, mean)
        except (KeyError, TypeError, ValueError):
            pass
        raise FewnodeError("the stored scale of its weights is not one that fewnode wrote")
