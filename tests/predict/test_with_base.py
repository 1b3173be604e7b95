"""New classes beside base classes, and known shares of classes, from Python."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fewnode
from fewnode.dataset import ClassSplit, Dataset
from fewnode.errors import FewnodeError
from fewnode.model.estimator import Estimator


@pytest.fixture(scope="module")
def model(planted: Dataset) -> Estimator:
    return Estimator("gpn-plus", way=3, shot=1).fit(planted)


def new_classes(data: Dataset, shots: int = 1) -> dict[str, list[int]]:
    return {name: np.flatnonzero(data.y == c)[:shots].tolist() for name, c in zip("xy", data.split.test, strict=False)}


# --- base classes ---


def test_nodes_are_found_in_new_and_in_base_classes(model: Estimator, planted: Dataset) -> None:
    given = new_classes(planted, 5)
    first, base = planted.split.test[0], planted.split.train[0]
    asked = [*np.flatnonzero(planted.y == first)[5:], *np.flatnonzero(planted.y == base)]
    found = fewnode.recognise(planted, given, asked, model=model, with_base=True, closed_set=True)
    known = [planted.class_names[c] for c in (*planted.split.train, *planted.split.valid)]
    assert found.classes == sorted(["x", "y", *known])
    truth = ["x"] * (len(asked) - 24) + [planted.class_names[base]] * 24
    assert np.mean([a == b for a, b in zip(found.labels, truth, strict=True)]) > 0.8
    assert found.probabilities.sum(axis=1) == pytest.approx(1, abs=1e-4)


def test_a_node_given_for_a_new_class_does_not_stand_for_its_base_class(model: Estimator, planted: Dataset) -> None:
    stolen = np.flatnonzero(planted.y == planted.split.train[0])
    found = fewnode.recognise(planted, {"x": stolen[:-2]}, [0], model=model, with_base=True)
    name = planted.class_names[planted.split.train[0]]
    assert [label for _, label in found.support].count(name) == 2
    assert [label for node, label in found.support if node == planted.node_name(stolen[0])] == ["x"]
    with pytest.warns(fewnode.UnusedInput, match=f"base class '{name}': all its nodes are given for new classes"):
        assert name not in fewnode.recognise(planted, {"x": stolen}, [0], model=model, with_base=True).classes


def test_a_base_class_stands_by_as_many_nodes_as_the_largest_new_class() -> None:
    y = np.repeat(range(6), 80)
    data = Dataset.from_scipy(y[:, None] == y, np.eye(6)[y], y, split=ClassSplit((0, 1), (2, 3), (4, 5)))
    model = Estimator("gpn-plus", way=2, shot=1, seed=3).fit(data)
    given = {"new": [400], "newer": [320, 321, 322]}
    found = [fewnode.recognise(data, given, [401, 3], model=model, with_base=True) for _ in range(2)]
    assert len(found[0].support) == 1 + 3 + 4 * 3
    assert found[0].support == found[1].support
    assert found[0].labels == ["new", "0"]


def test_what_cannot_be_is_refused(model: Estimator, planted: Dataset) -> None:
    name = planted.class_names[planted.split.valid[0]]
    with pytest.raises(FewnodeError, match=f"class '{name}' is a base class of planted already"):
        fewnode.recognise(planted, {name: [0]}, [1], model=model, with_base=True)
    with pytest.raises(FewnodeError, match=r"differ only in case, .*; the first is a base class of planted: give the"):
        fewnode.recognise(planted, {name.upper(): [0]}, [1], model=model, with_base=True)
    bare = replace(planted, split=ClassSplit((), (), planted.split.test))
    with pytest.raises(FewnodeError, match="planted has no base classes to stand beside the new ones"):
        fewnode.recognise(bare, {"x": [0]}, [1], model=model, with_base=True)


# --- known shares ---


@pytest.mark.parametrize("closed_set", [False, True])
def test_classes_get_their_shares(model: Estimator, planted: Dataset, closed_set: bool) -> None:
    given, shares = new_classes(planted, 2), {"x": 0.2, "y": 0.8}
    found = fewnode.recognise(planted, given, model=model, closed_set=closed_set, proportions=shares)
    assert found.probabilities.sum(axis=0) / found.probabilities.sum() == pytest.approx([0.2, 0.8], abs=1e-4)
    plain = fewnode.recognise(planted, given, model=model, closed_set=closed_set)
    assert found.member == pytest.approx(plain.member), "who is a member does not change"
    for name, nodes in given.items():
        assert found.probabilities[nodes, "xy".index(name)].tolist() == [1, 1]
