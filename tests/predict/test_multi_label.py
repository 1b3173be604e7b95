"""Several classes a node: each class a probability of its own."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest

import fewnode
from fewnode.dataset import Dataset
from fewnode.model.estimator import Estimator
from fewnode.model.recognise import recognise
from fewnode.recognition.answers import NONE, Answers
from fewnode.recognition.classes import Given
from fewnode.review.labelling import unlabelled
from multi_label_graphs import with_words


@pytest.fixture(name="data")
def _data(several: Dataset) -> Dataset:
    return several


@pytest.fixture(name="model")
def _model(fitted_several: Estimator) -> Estimator:
    return fitted_several


def truth(data: Dataset, classes: list[int]) -> np.ndarray:
    assert data.labels is not None
    return data.labels[:, classes].toarray()


def support_of(data: Dataset, classes: list[int], shot: int = 5) -> dict[str, list[int]]:
    """Some members of each class, each of them in all of these classes that it is in."""
    drawn = np.unique(np.concatenate([data.members(c)[:shot] for c in classes]))
    own = truth(data, classes)[drawn]
    return {data.class_names[c]: drawn[own[:, i]].tolist() for i, c in enumerate(classes)}


def rest(data: Dataset, given: dict[str, list[int]]) -> np.ndarray:
    return np.setdiff1d(np.arange(data.graph.n), np.concatenate([np.array(nodes) for nodes in given.values()]))


def test_members_of_several_classes_are_found_in_each(data: Dataset, model: Estimator) -> None:
    classes = [7, 8, 9, 10]
    given = support_of(data, classes)
    asked = rest(data, given)
    found = recognise(data, given, asked, model=model, multi_label=True)
    right = truth(data, classes)[asked]
    for c in range(4):
        own, other = found.probabilities[right[:, c], c], found.probabilities[~right[:, c], c]
        assert (own[:, None] > other).mean() > 0.85
    both = right & (right.sum(axis=1) > 1)[:, None]
    assert found.probabilities[both].mean() > 0.3, "a node of two classes is likely in both"
    assert found.probabilities[~right].mean() < 0.05
    gap = [abs(found.probabilities[:, c].mean() - right[:, c].mean()) for c in range(4)]
    assert max(gap) < 0.1


def test_what_else_is_asked_about_changes_nothing(data: Dataset, model: Estimator) -> None:
    given = support_of(data, [7, 8, 9])
    every = recognise(data, given, model=model, multi_label=True)
    some = recognise(data, given, [400, 3], model=model, multi_label=True)
    assert some.probabilities == pytest.approx(every.probabilities[[400, 3]], abs=1e-5)
    assert len(recognise(data, given, [], model=model, multi_label=True).nodes) == 0


def test_tables_and_objects_hold_all_classes() -> None:
    found = Answers(
        ["n", "m"], ["a", "b"], np.array([[0.9, 0.6], [0.2, 0.3]]), np.array([0.96, 0.44]), [], multi_label=True
    )
    rows = list(csv.DictReader(io.StringIO(found.to_csv())))
    assert [row["label"] for row in rows] == ["a|b", NONE]
    assert [row["probability"] for row in rows] == ["0.900000", "0.300000"]
    assert [row["labels"] for row in found.to_json()["predictions"]] == [["a", "b"], []]
    assert found.to_json()["multi_label"] is True


@pytest.mark.parametrize(
    ("classes", "more", "sentence"),
    [
        ({"a": [0], "b": [0]}, {"multi_label": False}, "is in two classes, 'a' and 'b'; .*`multi_label`"),
        ({"a": [0, 0], "b": [1]}, {}, "support has node 'node-0' twice"),
        ({"a|b": [0], "c": [1]}, {}, r"class 'a\|b': '\|' stands between the classes of a node; rename it"),
        ({NONE: [0], "c": [1]}, {}, "a class is called 'none of these'"),
        ({"a": [0], "b": [1]}, {"closed_set": True}, "a closed set means one class a node"),
        ({"a": [0], "b": [1]}, {"transductive": True}, "leave out the transductive mode"),
        ({"a": [0], "b": [1]}, {"threshold": 1.5}, "a probability from 0 to 1 is expected"),
    ],
)
def test_what_makes_no_sense_is_refused(
    data: Dataset, model: Estimator, classes: dict[str, list[int]], more: dict[str, bool], sentence: str
) -> None:
    with pytest.raises(fewnode.FewnodeError, match=sentence):
        recognise(data, classes, [5], model=model, **{"multi_label": True, **more})


def test_only_kinds_that_have_labels_are_claimed_and_suggested(data: Dataset) -> None:
    both = with_words(data)
    model = Estimator("gpn-plus", way=3, shot=3).fit(both)
    given = support_of(data, [7, 8])
    with pytest.warns(fewnode.UnusedInput, match=r"30 nodes of kinds without any label \(word\)"):
        found = recognise(both, given, model=model)
    assert found.nodes == list(data.node_names or ())
    assert recognise(both, given, ["word-3"], model=model).nodes == ["word-3"]
    assert max(unlabelled(both, np.array(given["class h"]))) < data.graph.n
    assert max(unlabelled(both, np.array([data.graph.n]))) >= data.graph.n, (
        "a word is labelled: words may be in a class"
    )
    asked = model.question(both, Given.of(both, {"h": given["class h"]}))
    assert not any(each.node.startswith("word") for each in asked.next(20))
    assert asked.next(among=["word-1"])[0].node == "word-1"
