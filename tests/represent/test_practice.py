"""Weights of views by what known classes show, and the metric that is learned from them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax

from fewnode.represent.practice import mix_weights
from fewnode.represent.projection import within_class_metric


def test_mix_finds_the_view_that_tells(rng: np.random.Generator) -> None:
    """Three views: one tells the class, one is noise, one misleads."""
    label = rng.integers(0, 4, 500)
    right, noise = 0.5 * np.eye(4)[label] + 0.2 * rng.normal(size=(500, 4)), rng.normal(size=(500, 4))
    tau = mix_weights(np.stack([right, noise, -right + noise], axis=2).astype(np.float32), label)
    assert tau[0] > 5
    assert tau[1:].max() < 0.2 * tau[0]


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


def test_a_small_difference_in_views_makes_a_small_one_in_their_weights(
    practice: tuple[np.ndarray, np.ndarray], rng: np.random.Generator
) -> None:
    views, label = practice
    nudged = (views + 1e-7 * rng.normal(size=views.shape)).astype(np.float32)
    assert np.abs(mix_weights(views, label) - mix_weights(nudged, label)).max() < 1e-4


def test_the_metric_shortens_the_direction_in_which_classes_vary(rng: np.random.Generator) -> None:
    """Classes differ along axis 0 and vary within along axis 1."""
    centre = np.repeat([-1.0, 1.0], 50)
    z = np.stack([centre + 0.1 * rng.normal(size=100), rng.normal(size=100)], axis=1)
    metric = within_class_metric(z.astype(np.float32), [np.arange(50), np.arange(50, 100)])
    ratio = np.linalg.norm(metric[0]) / np.linalg.norm(metric[1])
    assert ratio > 1.3


def test_the_metric_is_the_identity_where_within_is_as_total(rng: np.random.Generator) -> None:
    z = (rng.normal(size=(4000, 3)) * [3, 1, 0.5]).astype(np.float32)
    metric = within_class_metric(z, [np.arange(2000), np.arange(2000, 4000)])
    assert np.allclose(metric / metric[0, 0], np.eye(3), atol=0.05)
