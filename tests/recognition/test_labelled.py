"""Descriptions beside labelled nodes: how much they count, what disagrees, and who speaks for them, too."""

from __future__ import annotations

import numpy as np

from fewnode.recognition.prototypes import DOUBTED, ECHO, ODDS, LabelledRows, echoed
from fewnode.vectors import unit_rows

EYE = np.eye(4, dtype=np.float32)


def test_a_description_that_fits_counts_and_one_of_another_class_does_not() -> None:
    right = LabelledRows.of(EYE[:2], np.array([0, 1]), EYE[:2], np.array([0, 1]))
    wrong = LabelledRows.of(EYE[:2], np.array([0, 1]), EYE[[1, 0]], np.array([0, 1]))
    assert (right.count[2:] > ODDS / (1 + ODDS)).all()
    assert (wrong.count[2:] < DOUBTED).all()
    assert right.count[:2].tolist() == [1, 1], "nodes always count"


def test_an_echo_is_the_mean_of_the_nodes_most_like_a_description(rng: np.random.Generator) -> None:
    z, said = (unit_rows(rng.normal(size=(count, 8)).astype(np.float32)) for count in (200, 2))
    for own, found in zip(said, echoed(said, z), strict=True):
        middle = unit_rows(z[np.argsort(-(z @ own))[:ECHO]].mean(axis=0)[None])[0]
        assert np.allclose(found, unit_rows((own + middle)[None])[0], atol=1e-5)
    assert np.allclose(echoed(EYE[:1], EYE), unit_rows(EYE[:1] + 0.5), atol=1e-6)
