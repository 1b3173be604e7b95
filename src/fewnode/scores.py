"""How well answers agree with labels (section 5.2), and how sure a mean over tasks and trainings is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isnan, nan, sqrt
from statistics import NormalDist
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

from fewnode.graph import Ints

Floats = NDArray[np.float64]
METRICS = ("accuracy", "macro_f1", "weighted_f1")
BINS = 15
"""Of probability, for the calibration error."""
WIDE = NormalDist().inv_cdf(0.975)
"""Standard deviations from the middle of a normal distribution to the end of its 95 % interval."""
Terms: TypeAlias = Sequence[tuple[float, int]]
"""What makes a mean uncertain, part by part: a squared standard error, and its degrees of freedom."""


# --- tasks --------------------------------------------------------------------------------------------------------


def confusions(answers: Sequence[NDArray[np.floating]], truth: Sequence[Ints]) -> Ints:
    """How often class i was taken for class j in each task: tasks x N x N."""
    predicted = np.concatenate([probability.argmax(axis=1) for probability in answers])
    n_way = max(probability.shape[1] for probability in answers)
    task = np.repeat(np.arange(len(truth)), [labels.size for labels in truth])
    cell = (task * n_way + np.concatenate(truth)) * n_way + predicted
    return np.bincount(cell, minlength=len(truth) * n_way**2).reshape(-1, n_way, n_way)


def measure(confusion: Ints) -> dict[str, Floats]:
    """The metrics of tasks, from `confusions`.

    Deviation D4: Micro-F1 equals accuracy when every node has one label, so it is not among them.
    """
    hit = np.diagonal(confusion, axis1=1, axis2=2)
    true, claimed = confusion.sum(axis=2), confusion.sum(axis=1)
    f1 = 2 * hit / np.maximum(true + claimed, 1)
    return {
        "accuracy": hit.sum(axis=1) / true.sum(axis=1),
        "macro_f1": f1.sum(axis=1) / ((true + claimed) > 0).sum(axis=1),
        "weighted_f1": (f1 * true).sum(axis=1) / true.sum(axis=1),
    }


def several_scores(
    probabilities: Floats, claimed: NDArray[np.bool_], truth: NDArray[np.bool_], precision_at: int
) -> dict[str, float]:
    """F1 of what is claimed, and scores of nodes ranked for each class: all nodes x classes.

    Means are over the classes that have a member.

    >>> probabilities, truth = np.array([[0.9, 0.6], [0.7, 0.1]]), np.array([[True, True], [False, False]])
    >>> scores = several_scores(probabilities, probabilities > 0.5, truth, 10)
    >>> {name: round(score, 3) for name, score in scores.items()}
    {'micro_f1': 0.8, 'macro_f1': 0.833, 'average_precision': 1.0, 'precision_at_k': 1.0}
    """
    hit, both, members = (claimed & truth).sum(axis=0), claimed.sum(axis=0) + truth.sum(axis=0), truth.sum(axis=0)
    columns = np.flatnonzero(members)
    right = [truth[np.argsort(-probabilities[:, c], kind="stable"), c] for c in columns]
    top = [row[: min(precision_at, members[c])].mean() for c, row in zip(columns, right, strict=True)]
    f1 = (2 * hit / np.maximum(both, 1))[both > 0]
    return {
        "micro_f1": float(2 * hit.sum() / max(1, both.sum())),
        "macro_f1": _mean(f1),
        "average_precision": _mean([average_precision(probabilities[:, c], truth[:, c]) for c in columns]),
        "precision_at_k": _mean(top),
    }


def auroc(score: NDArray[np.floating], truth: NDArray[np.bool_]) -> float:
    """The chance that a node which is meant has a higher score than one which is not; half of it where they tie."""
    ours, others = score[truth], np.sort(score[~truth])
    if not ours.size or not others.size:
        return nan
    below, upto = np.searchsorted(others, ours, "left"), np.searchsorted(others, ours, "right")
    return float((below + upto).mean() / 2 / others.size)


def average_precision(score: NDArray[np.floating], truth: NDArray[np.bool_]) -> float:
    """The mean, over the nodes that are meant, of the precision among those with at least their score."""
    order = np.argsort(-score, kind="stable")
    right, ranked = truth[order], score[order]
    last = np.searchsorted(-ranked, -ranked, "right")  # nodes of equal score stand side by side
    return _mean((right.cumsum()[last - 1] / last)[right])


def two_class_scores(probabilities: NDArray[np.floating], y: Ints) -> dict[str, float]:
    """How well the nodes are ranked between two classes; the mean of both."""
    columns = [(probabilities[:, c].astype(np.float64), y == c) for c in range(2)]
    return {
        "auroc": _mean([auroc(score, truth) for score, truth in columns]),
        "average_precision": _mean([average_precision(score, truth) for score, truth in columns]),
    }


def calibration_gaps(confidence: NDArray[np.floating], right: NDArray[np.bool_]) -> Floats:
    """Confidence less accuracy, summed over the answers of each bin of confidence: tasks can be added up.

    The sum of their sizes by the number of answers is the expected calibration error (Guo et al., 2017).
    """
    confidence = confidence.astype(np.float64).ravel()
    place = np.minimum((confidence * BINS).astype(int), BINS - 1)
    return np.bincount(place, confidence - right.ravel(), minlength=BINS).astype(np.float64)


def _mean(values: Iterable[float] | Floats) -> float:
    found = np.array(list(values), np.float64)
    return float(found.mean()) if found.size else 0.0


# --- how sure a mean is -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Interval:
    """A mean and the half-width of its 95 % interval, which is NaN if it cannot be told: of one task."""

    mean: float
    ci95: float

    def __str__(self) -> str:
        return f"{100 * self.mean:.1f} ± " + ("?" if isnan(self.ci95) else f"{100 * self.ci95:.1f}")

    def to_json(self) -> dict[str, float | None]:
        return {"mean": self.mean, "ci95": None if isnan(self.ci95) else self.ci95}


def interval(scores: Floats) -> Interval:
    """Mean and 95 % half-width of repeats x tasks, where every repeat (another training seed) sees the same tasks."""
    known = scores.shape[1] > 1  # of one task nobody knows how far others are from it
    return Interval(float(scores.mean()), half_width(terms(scores.mean(axis=0), scores.mean(axis=1))) if known else nan)


def terms(*samples: Floats) -> Terms:
    """What makes a sum of independent means uncertain. A sample of one says nothing of its variance."""
    found = [(float(sample.var(ddof=1)) / sample.size, sample.size - 1) for sample in samples if sample.size > 1]
    return [(variance, free) for variance, free in found if variance > 0]


def half_width(of: Terms, tail: float = 0.025) -> float:
    """Of the interval that leaves so much out on either side: the half-widths of its parts, added as squares.

    Each part has its own quantile of Student's t. (One quantile of pooled degrees of freedom, as Satterthwaite's, can
    grow narrower when a part is added: two seeds that differ much would seem to be known better beside noisy tasks.)
    """
    return sqrt(sum(variance * stdtrit(free, tail) ** 2 for variance, free in of))


def tail(distance: float, of: Terms) -> float:
    """The one-sided p of a distance: what `half_width` leaves out beyond it, so that marks and intervals agree."""
    if not of:
        return 0.5 if distance == 0 else float(distance < 0)
    if distance < 0:
        return 1 - tail(-distance, of)
    if len(of) == 1:
        return float(stdtr(of[0][1], -distance / sqrt(of[0][0])))
    low, high = -700.0, float(np.log(0.5))  # of log p
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if half_width(of, float(np.exp(middle))) > distance else (low, middle)
    return float(np.exp(high))


def wilson(right: int, asked: int) -> tuple[float, float]:
    """The 95 % interval of a share that was counted (Wilson, 1927)."""
    share, z2 = right / asked, WIDE * WIDE / asked
    middle, half = share + z2 / 2, WIDE * sqrt(share * (1 - share) / asked + z2 / asked / 4)
    return max(0.0, (middle - half) / (1 + z2)), min(1.0, (middle + half) / (1 + z2))
