"""Descriptions beside labelled nodes: how much they count, what disagrees, and who speaks for them, too."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fewnode.recognition.labelled import DOUBTED, ECHO, ODDS, LabelledRows, agreement, echoed
from fewnode.vectors import unit_rows

EYE = np.eye(4, dtype=np.float32)


def test_agreement_is_the_gain_over_chance_of_each_label(rng: np.random.Generator) -> None:
    """Log-likelihoods by the prototypes of scikit-learn, summed for each class."""
    from sklearn.linear_model import Ridge

    said, z = (unit_rows(rng.normal(size=(count, 6)).astype(np.float32)) for count in (3, 5))
    y = np.array([0, 0, 2, 2, 2])
    score = 15 * z @ Ridge(alpha=1.0, fit_intercept=False).fit(said, np.eye(3) - 1 / 3).coef_.T
    log_prob = score - np.log(np.exp(score).sum(axis=1, keepdims=True))
    by_hand = [0.0, 0.0, 0.0]
    for i, c in enumerate(y.tolist()):
        by_hand[c] += float(log_prob[i, c]) + math.log(3)
    assert agreement(z, y, said, np.arange(3)).tolist() == pytest.approx(by_hand, abs=1e-3)


def test_a_description_that_fits_counts_and_one_of_another_class_does_not() -> None:
    right = LabelledRows.of(EYE[:2], np.array([0, 1]), EYE[:2], np.array([0, 1]))
    wrong = LabelledRows.of(EYE[:2], np.array([0, 1]), EYE[[1, 0]], np.array([0, 1]))
    assert (right.count[2:] > ODDS / (1 + ODDS)).all()
    assert (wrong.count[2:] < DOUBTED).all()
    assert right.count[:2].tolist() == [1, 1], "nodes always count"


def test_a_description_alone_stands_for_its_class() -> None:
    """Class 1 has no node: its description counts in full, and is no shot; that of class 0 counts by its odds."""
    given = LabelledRows.of(EYE[:3], np.array([0, 0, 2]), EYE[[3]], np.array([1]))
    assert given.count.tolist() == [1, 1, 1, 1]
    assert given.shots.tolist() == [2, 0, 1]
    lonely = LabelledRows.of(EYE[:3], np.array([0, 1, 2]), EYE[[3]], np.array([0]))
    assert float(lonely.count[3]) == pytest.approx(ODDS / (1 + ODDS)), "with no other to compare, nothing is known"


def test_an_echo_is_the_mean_of_the_nodes_most_like_a_description(rng: np.random.Generator) -> None:
    z, said = (unit_rows(rng.normal(size=(count, 8)).astype(np.float32)) for count in (200, 2))
    for own, found in zip(said, echoed(said, z), strict=True):
        middle = unit_rows(z[np.argsort(-(z @ own))[:ECHO]].mean(axis=0)[None])[0]
        assert np.allclose(found, unit_rows((own + middle)[None])[0], atol=1e-5)
    assert np.allclose(echoed(EYE[:1], EYE), unit_rows(EYE[:1] + 0.5), atol=1e-6)
