"""Heads that are solved together, against scikit-learn's, one by one."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from fewnode.episodes import Task
from fewnode.methods.logistic_heads import logistic_head, logistic_heads


def rows_of_classes(d: int, n_way: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    y = rng.integers(0, n_way, 400)
    z = rng.normal(size=(400, d)) + 2 * rng.normal(size=(n_way, d))[y]
    return (z / np.linalg.norm(z, axis=1, keepdims=True)).astype(np.float32), y


def drawn(y: np.ndarray, counts: list[int], rng: np.random.Generator) -> Task:
    support = np.concatenate([rng.choice(np.flatnonzero(y == c), k, replace=False) for c, k in enumerate(counts)])
    order = rng.permutation(support.size)
    return Task(support[order], y[support[order]], rng.choice(y.size, 17))


@pytest.mark.parametrize("c", [1.0, 100.0, 1e5])
@pytest.mark.parametrize("d", [3, 40])
def test_they_are_the_optimum_that_scikit_learn_finds(c: float, d: int) -> None:
    """Several shapes at once, unequal classes and rows that span all columns or a few."""
    z, y = rows_of_classes(d, 4)
    z[5] = 0
    rng = np.random.default_rng(1)
    tasks = [drawn(y, counts, rng) for counts in ([1, 1, 1, 1], [5, 5, 5, 5], [1, 4, 2], [5, 5, 5, 5], [3, 9], [2, 1])]
    for task, found in zip(tasks, logistic_heads(z, tasks, c), strict=True):
        model = LogisticRegression(C=c, class_weight="balanced", solver="newton-cholesky", tol=1e-12, max_iter=10_000)
        wide = z.astype(np.float64)
        expected = model.fit(wide[task.support], task.support_y).predict_proba(wide[task.query])
        assert np.allclose(found, expected, atol=2e-6)
        if c <= 100:  # beyond, the gradient at which it stops is far from the optimum
            assert np.allclose(found, logistic_head(z, task, c), atol=1e-3)
        assert np.allclose(found, logistic_heads(z, [task], c)[0], atol=1e-7)


def test_one_class_no_query_and_heads_too_large_to_form() -> None:
    z, y = rows_of_classes(60, 10)
    rng = np.random.default_rng(1)
    alone = Task(np.array([0, 1]), np.array([0, 0]), np.arange(3))
    silent = Task(np.array([0, 1]), np.array([0, 1]), np.arange(0))
    large = drawn(y, [8] * 10, rng)
    found = logistic_heads(z, [alone, silent, large], 10.0)
    assert found[0].tolist() == [[1], [1], [1]]
    assert found[1].shape == (0, 2)
    assert np.array_equal(found[2], logistic_head(z, large, 10.0))
