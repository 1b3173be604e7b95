"""Logistic regression on the rows of a task, against scikit-learn's."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from fewnode.episodes import Task
from fewnode.methods.linear import logistic_heads


def rows_of_classes(d: int, n_way: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    y = rng.integers(0, n_way, 400)
    z = rng.normal(size=(400, d)) + 2 * rng.normal(size=(n_way, d))[y]
    return (z / np.linalg.norm(z, axis=1, keepdims=True)).astype(np.float32), y


def drawn(y: np.ndarray, counts: list[int], rng: np.random.Generator) -> Task:
    support = np.concatenate([rng.choice(np.flatnonzero(y == c), k, replace=False) for c, k in enumerate(counts)])
    order = rng.permutation(support.size)
    return Task(support[order], y[support[order]], rng.choice(y.size, 17))


@pytest.mark.parametrize("c", [1.0, 1000.0])
@pytest.mark.parametrize("d", [3, 40])
def test_what_a_support_spans_is_enough_for_the_whole_regression(c: float, d: int) -> None:
    """Unequal classes, and rows that span all columns or a few."""
    z, y = rows_of_classes(d, 4)
    z[5] = 0
    rng = np.random.default_rng(1)
    tasks = [drawn(y, counts, rng) for counts in ([1, 1, 1, 1], [5, 5, 5, 5], [1, 4, 2], [3, 9], [2, 1])]
    for task, found in zip(tasks, logistic_heads(z, tasks, c), strict=True):
        model = LogisticRegression(C=c, class_weight="balanced", solver="newton-cholesky", tol=1e-12, max_iter=10_000)
        wide = z.astype(np.float64)
        expected = model.fit(wide[task.support], task.support_y).predict_proba(wide[task.query])
        assert np.allclose(found, expected, atol=1e-4)
