"""Weights of views by what known classes show, and the metric that is learned from them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax

from fewnode.embedding.practice import mix_weights
from fewnode.embedding.projection import within_class_metric


@pytest.fixture(name="practice")
def _practice(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Sixty views of 900 queries, most of them much alike: eight things to see, each in several ways."""
    label = rng.integers(0, 4, 900)
    seen = 0.3 * rng.normal(size=(900, 4, 8))
    seen[np.arange(900), label] += 0.2
    views = seen @ rng.normal(size=(8, 60)) / 8 + 0.02 * rng.normal(size=(900, 4, 60))
    return views.astype(np.float32), label


def test_mix_is_at_the_minimum(practice: tuple[np.ndarray, np.ndarray]) -> None:
    """The conditions of the minimum: no slope where a weight is positive, none that goes down where it is 0."""
    views, label = practice
    for prior in (None, np.linspace(0, 1, 60)):
        tau = mix_weights(views, label, prior, penalty=1e-3)
        expected = np.zeros(60) if prior is None else prior
        p = softmax(views.astype(np.float64) @ tau, axis=1)
        wrong = (p - np.eye(4)[label]) / len(label)
        slope = np.einsum("qc,qcm->m", wrong, views.astype(np.float64)) + 2e-3 * (tau - expected)
        assert 5 < (tau > 0).sum() < 58
        assert np.abs(slope[tau > 0]).max() < 1e-8
        assert slope[tau == 0].min() > -1e-8


def test_the_metric_shortens_the_direction_in_which_classes_vary(rng: np.random.Generator) -> None:
    """Classes differ along axis 0 and vary within along axis 1."""
    centre = np.repeat([-1.0, 1.0], 50)
    z = np.stack([centre + 0.1 * rng.normal(size=100), rng.normal(size=100)], axis=1)
    metric = within_class_metric(z.astype(np.float32), [np.arange(50), np.arange(50, 100)])
    ratio = np.linalg.norm(metric[0]) / np.linalg.norm(metric[1])
    assert ratio > 1.3
