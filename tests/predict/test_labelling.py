"""What to label next: coverage by hand, and better than chance."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from fewnode import Class
from fewnode.dataset import Dataset
from fewnode.model.estimator import Estimator
from fewnode.recognition.question import Question
from fewnode.review.labelling import Suggestion, unlabelled


def asked(model: Estimator, data: Dataset, first: list[int], names: str, no: list[int] | None = None) -> Question:
    """The question about classes of which these nodes are known, and these in none of them."""
    own = {name: [node for node, each in zip(first, names, strict=True) if each == name] for name in names}
    return model.ask(data, {name: Class(nodes, no or []) for name, nodes in own.items()})


def rows(data: Dataset, found: list[Suggestion]) -> list[int]:
    return [data.node(each.node) for each in found]


@pytest.fixture(name="model")
def _model(fitted_plus: Estimator) -> Estimator:
    return fitted_plus


def test_suggestions_are_mostly_of_the_classes(model: Estimator, planted: Dataset) -> None:
    """Of any three test classes out of five, from any two first nodes: chance would be 60 %."""
    inside = []
    for own, k in itertools.product(itertools.combinations(planted.split.test, 3), (0, 5)):
        first = [int(np.flatnonzero(planted.y == c)[k]) for c in own]
        found = asked(model, planted, first, "abc").next(12, "learn")
        inside.append(np.isin(planted.y[rows(planted, found)], own).mean())
        chance = np.isin(planted.y[unlabelled(planted, np.array(first))], own).mean()
    assert chance == pytest.approx(0.6)
    assert np.mean(inside) > chance + 0.2


def test_suggestions_are_new_and_distinct(model: Estimator, planted: Dataset) -> None:
    first = [int(np.flatnonzero(planted.y == c)[0]) for c in planted.split.test[:3]]
    question = asked(model, planted, first, "abc")
    found = question.next(12, "learn")
    assert len(set(rows(planted, found)) - set(first)) == 12
    assert {each.label for each in found} == set("abc")
    gains = [each.covers for each in found]
    assert gains == sorted(gains, reverse=True), "each adds less than the one before"
    assert question.next(12, "learn") == found
