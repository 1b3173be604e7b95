"""Descriptions beside labelled nodes: how much they count, what disagrees, and who speaks for them, too."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from fewnode.recognition.labelled import DOUBTED, ECHO, ODDS, LabelledRows, agreement, echoed

EYE = torch.eye(4)
NONE = np.zeros(0, np.int64)


def test_agreement_is_the_gain_over_chance_of_each_label(rng: np.random.Generator) -> None:
    """Log-likelihoods by the prototypes of scikit-learn, summed for each class."""
    from sklearn.linear_model import Ridge

    said = F.normalize(torch.from_numpy(rng.normal(size=(3, 6))).float())
    z, y = F.normalize(torch.from_numpy(rng.normal(size=(5, 6))).float()), torch.tensor([0, 0, 2, 2, 2])
    p = Ridge(alpha=1.0, fit_intercept=False).fit(said, np.eye(3) - 1 / 3).coef_
    log_prob = torch.log_softmax(torch.from_numpy(15 * z.numpy() @ p.T), dim=1)
    by_hand = [0.0, 0.0, 0.0]
    for i, c in enumerate(y.tolist()):
        by_hand[c] += float(log_prob[i, c]) + math.log(3)
    assert agreement(z, y, said, torch.arange(3)).tolist() == pytest.approx(by_hand, abs=1e-3)


def test_a_description_that_fits_counts_and_one_of_another_class_does_not() -> None:
    right = LabelledRows.of(EYE[:2], np.array([0, 1]), EYE[:2], np.array([0, 1]))
    wrong = LabelledRows.of(EYE[:2], np.array([0, 1]), EYE[[1, 0]], np.array([0, 1]))
    assert (right.count[2:] > ODDS / (1 + ODDS)).all()
    assert (wrong.count[2:] < DOUBTED).all()
    assert torch.equal(right.count[:2], torch.ones(2)), "nodes always count"


def test_more_labels_can_overrule_a_description_that_one_could_not() -> None:
    said, near = EYE[:2], F.normalize(EYE[1] + 0.9 * EYE[0], dim=0)  # nodes of class 0 look a little more like 1
    worth = []
    for shots in (1, 5):
        z = torch.cat([near.repeat(shots, 1), EYE[1:2]])
        given = LabelledRows.of(z, np.array([0] * shots + [1]), said, np.array([0, 1]))
        worth.append(float(given.count[shots + 1]))
    assert worth[1] < worth[0]


def test_a_description_alone_stands_for_its_class() -> None:
    """Class 1 has no node: its description counts in full, and is no shot; that of class 0 counts by its odds."""
    given = LabelledRows.of(EYE[:3], np.array([0, 0, 2]), EYE[[3]], np.array([1]))
    assert given.count.tolist() == [1, 1, 1, 1]
    assert given.shots.tolist() == [2, 0, 1]
    assert given.is_node.tolist() == [True, True, True, False]
    lonely = LabelledRows.of(EYE[:3], np.array([0, 1, 2]), EYE[[3]], np.array([0]))
    assert float(lonely.count[3]) == pytest.approx(ODDS / (1 + ODDS)), "with no other to compare, nothing is known"


def test_without_any_node_descriptions_stand_alone() -> None:
    given = LabelledRows.of(torch.zeros(0, 4), NONE, EYE[:3], np.arange(3))
    assert given.n_way == 3
    assert given.shots.tolist() == [0, 0, 0]
    assert torch.allclose(given.means, EYE[:3])


def test_means_are_weighted_by_what_counts() -> None:
    given = LabelledRows(EYE[:3], torch.tensor([0, 0, 1]), torch.tensor([1.0, 0.25, 1.0]), torch.tensor([1, 0, 1]) > 0)
    assert torch.allclose(given.means[0], (EYE[0] + 0.25 * EYE[1]) / 1.25)


def test_an_echo_is_the_mean_of_the_nodes_most_like_a_description(rng: np.random.Generator) -> None:
    z = F.normalize(torch.from_numpy(rng.normal(size=(200, 8))).float())
    said = F.normalize(torch.from_numpy(rng.normal(size=(2, 8))).float())
    for own, found in zip(said, echoed(said, z), strict=True):
        best = np.argsort(-(z @ own).numpy())[:ECHO]
        middle = F.normalize(z[torch.from_numpy(best.copy())].mean(dim=0), dim=0)
        assert torch.allclose(found, F.normalize(own + middle, dim=0), atol=1e-5)


def test_a_network_smaller_than_an_echo_echoes_in_whole() -> None:
    assert torch.allclose(echoed(EYE[:1], EYE), F.normalize(EYE[:1] + 0.5), atol=1e-6)
