"""How well answers agree with labels (section 5.2): accuracy, F1 and calibration error of the tasks of a pool."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fewnode.episodes import Episode
from fewnode.graph import Ints
from fewnode.vectors import Probabilities

METRICS = ("accuracy", "macro_f1", "weighted_f1")
BINS = 15
"""Of confidence, for the calibration error."""


def score_answers(answers: Sequence[Probabilities], pool: Sequence[Episode]) -> dict[str, NDArray[np.float64]]:
    predicted = np.concatenate([p.argmax(axis=1) for p in answers])
    truth = np.concatenate([task.query_y for task in pool])
    task = np.repeat(np.arange(len(pool)), [task.query.size for task in pool])
    n_way = max(task.n_way for task in pool)
    cell = (task * n_way + truth) * n_way + predicted
    return measure(np.bincount(cell, minlength=len(pool) * n_way**2).reshape(-1, n_way, n_way))


def calibration_error(answers: Sequence[Probabilities], pool: Sequence[Episode]) -> float:
    """Expected calibration error (Guo et al., 2017): the mean of |accuracy - confidence| over bins of equal width."""
    gaps = [calibration_gaps(answer, task.query_y) for answer, task in zip(answers, pool, strict=True)]
    return float(np.abs(np.sum(gaps, axis=0)).sum() / max(1, sum(task.query.size for task in pool)))


def calibration_gaps(answer: Probabilities, query_y: Ints) -> NDArray[np.float64]:
    """Confidence less accuracy, summed over the queries of each bin of confidence: tasks can be added up."""
    confidence = answer.max(axis=1).astype(np.float64)
    place = np.minimum((confidence * BINS).astype(int), BINS - 1)
    gap: NDArray[np.float64] = confidence - (answer.argmax(axis=1) == query_y)
    return np.bincount(place, gap, minlength=BINS).astype(np.float64)


def measure(confusion: Ints) -> dict[str, NDArray[np.float64]]:
    """The metrics of tasks, from how often class i was taken for class j: tasks x N x N.

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
