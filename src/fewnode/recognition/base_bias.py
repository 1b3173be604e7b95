"""The head start of base classes, which have many labels, before new ones: learned on validation classes.

Validation classes play new classes of 1, 3 and 5 labels, training classes play base classes. What must be subtracted
from the log-probability of base classes is what makes the harmonic mean of both accuracies largest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from fewnode.episodes import Episode, EpisodeSampler, Task
from fewnode.graph import Ints
from fewnode.method import Probabilities
from fewnode.recognition.base_tasks import MOST, BaseTasks
from fewnode.recognition.class_bias import LEAST

SHOTS, QUERIES, TASKS = (1, 3, 5), 10, 20
GRID = np.linspace(-12, 12, 97)
SMOOTHED = 5
"""Neighbours on the grid whose mean counts, so that one lucky task does not decide."""
BaseBias: TypeAlias = Mapping[str, float]
"""The bias at each number of labels of a new class; empty: none."""
Answer: TypeAlias = Callable[[Sequence[Task]], Sequence[Probabilities]]


def fit_base_bias(answer: Answer, base: Sequence[Ints], new: Sequence[Ints], way: int) -> dict[str, float]:
    """The bias by which base classes lose their head start, at each of `SHOTS` that the new classes have nodes for.

    Two classes of each kind are needed; else there is none, and new classes stand as they are.
    """
    found: dict[str, float] = {}
    for k_shot in SHOTS:
        large = [nodes for nodes in new if nodes.size >= k_shot + QUERIES]
        if len(base) > 1 and len(large) > 1:
            sampler = EpisodeSampler.among(large, min(way, len(large)), k_shot, QUERIES, seed=2)
            episodes = BaseTasks(sampler, base).take(TASKS)
            found[str(k_shot)] = best_bias(answer([each.task for each in episodes]), episodes, sampler.n_way)
    return found


def bias_at(fitted: BaseBias, shots: float) -> float:
    """Between the numbers of labels by their logarithm. A new class of `MOST` labels is no worse off than a base class.

    >>> bias_at({"1": 6.0, "5": 3.0}, 1), bias_at({"1": 6.0, "5": 3.0}, 5**0.5), bias_at({"1": 6.0, "5": 3.0}, 80)
    (6.0, 4.5, 0.0)
    """
    if not fitted:
        return 0.0
    known = sorted((int(k), bias) for k, bias in fitted.items())
    labels, bias = zip(*known, (MOST, 0.0), strict=True)
    return float(np.interp(np.log(shots), np.log(labels), bias))


def best_bias(answers: Sequence[Probabilities], episodes: Sequence[Episode], n_new: int) -> float:
    """The bias of the grid with the largest harmonic mean; of equal ones the smallest."""
    each = [_margins(answer, episode, n_new) for answer, episode in zip(answers, episodes, strict=True)]
    margin, right = (np.concatenate(part) for part in zip(*each, strict=True))
    is_new = np.concatenate([episode.query_y < n_new for episode in episodes])
    if is_new.all():
        return 0.0
    accuracy = [
        np.mean(right[kind, None] & ((margin[kind, None] < GRID) == new), axis=0)
        for kind, new in ((is_new, True), (~is_new, False))
    ]
    mean = harmonic_mean(accuracy[0], accuracy[1])
    padded = np.pad(mean, SMOOTHED // 2, mode="edge")
    smooth = np.convolve(padded, np.full(SMOOTHED, 1 / SMOOTHED), mode="valid")
    best = np.flatnonzero(smooth >= smooth.max() - 1e-9)
    return float(GRID[best[np.abs(GRID[best]).argmin()]])


def _margins(answer: Probabilities, episode: Episode, n_new: int) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """How far the best base class of each query is ahead of the best new one; is the best of its own kind right?"""
    score = np.log(np.maximum(answer, LEAST, dtype=np.float64))
    margin = score[:, n_new:].max(axis=1) - score[:, :n_new].max(axis=1)
    new, base = score[:, :n_new].argmax(axis=1), n_new + score[:, n_new:].argmax(axis=1)
    return margin, np.where(episode.query_y < n_new, new, base) == episode.query_y


def harmonic_mean(new: NDArray[np.float64], base: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of two accuracies: near the lower one, and 0 if either is.

    >>> harmonic_mean(np.array([1.0, 0.0]), np.array([0.5, 0.0])).round(3).tolist()
    [0.667, 0.0]
    """
    return 2 * new * base / np.maximum(new + base, 1e-12)
