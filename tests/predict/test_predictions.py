"""Answers as tables, as JSON and for people, by hand; support and query tables, and what is refused in them."""

from __future__ import annotations

import csv
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fewnode.dataset import ClassSplit, Dataset
from fewnode.errors import FewnodeError
from fewnode.model.estimator import Estimator
from fewnode.recognition.answers import NONE, Answers
from fewnode.recognition.classes import read_query, read_support
from fewnode.recognition.space import Explanation
from graphs import predictions_of

SUPPORT = [("a", "mail"), ("bb", "vpn"), ("c", "vpn")]


def answer(why: Explanation | None = None, **more: object) -> Answers:
    """Two nodes: one likely in mail, one likely in neither."""
    probabilities, member = np.array([[0.6, 0.2], [0.15, 0.15]]), np.array([0.8, 0.3])
    return Answers(["x", "=y"], ["mail", "vpn"], probabilities, member, SUPPORT, why, **more)  # type: ignore[arg-type]


def closed(member: np.ndarray | None = None) -> Answers:
    probabilities = np.array([[0.75, 0.25], [0.5, 0.5]])
    return Answers(["x", "=y"], ["mail", "vpn"], probabilities, member, SUPPORT, closed_set=True, reason="so")


def test_a_table_has_a_label_its_probability_a_column_a_class_and_member() -> None:
    """A name that a spreadsheet would compute is text."""
    assert answer().to_csv().splitlines() == [
        "node,label,probability,mail,vpn,member",
        "x,mail,0.600000,0.600000,0.200000,0.800000",
        "'=y,none of these,0.700000,0.150000,0.150000,0.300000",
    ]


def test_what_is_not_a_number_is_not_shown() -> None:
    for number in (np.nan, np.inf):
        with pytest.raises(FewnodeError, match=r"^node '=y': its probability is not a finite number; look for"):
            Answers(["x", "=y"], ["mail"], np.array([[0.5], [number]]), None, SUPPORT, closed_set=True)
        with pytest.raises(FewnodeError, match=r"^node 'x': "):
            Answers(["x", "=y"], ["mail"], np.array([[0.5], [0.5]]), np.array([number, 1.0]), SUPPORT)


@pytest.fixture(scope="module")
def model(planted: Dataset) -> Estimator:
    return Estimator("propagation", way=3, shot=2, steps=1, scaling="l2", centre=False, distance="cosine").fit(planted)


def ask(model: Estimator, data: Dataset, **how: Any) -> tuple[Answers, list[int], list[str], list[int]]:
    """A node of each of two test classes and of a third, against a node of one and two of the other, named by hand."""
    first, second, third = (np.flatnonzero(data.y == c).tolist() for c in data.split.test[:3])
    support, labels, query = [*second[:1], *first[:2]], ["vpn", "mail", "mail"], [first[5], second[5], third[5]]
    return predictions_of(model, data, support, labels, query, **how), support, labels, query


def test_a_table_json_and_python_say_the_same_numbers(model: Estimator, planted: Dataset) -> None:
    told = ask(model, planted)[0]
    assert told.member is not None
    rows = list(csv.DictReader(told.to_csv().splitlines()))
    for i, (row, object_) in enumerate(zip(rows, told.to_json()["predictions"], strict=True)):
        assert row["label"] == object_["label"] == told.labels[i]
        assert float(row["probability"]) == object_["probability"] == told.probability[i]
        assert float(row["member"]) == object_["member"] == told.member[i]
        assert {name: float(row[name]) for name in told.classes} == object_["probabilities"]
        of_label = object_["probabilities"].get(row["label"], 1 - told.member[i])
        assert object_["probability"] == pytest.approx(of_label, abs=1e-9)


def test_none_of_these_takes_what_is_not_a_member(model: Estimator, planted: Dataset) -> None:
    told, support, labels, query = ask(model, planted)
    member = model.member(planted.graph, support, labels, query)
    assert told.labels == ["mail", "vpn", NONE]
    np.testing.assert_allclose(told.member, member, atol=1e-6)
    np.testing.assert_allclose(told.probabilities.sum(axis=1), member, atol=2e-6)
    among = ask(model, planted, closed_set=True)[0].probabilities
    np.testing.assert_allclose(told.probabilities, member[:, None] * among, atol=2e-6)
    assert told.nodes == [planted.node_name(v) for v in query]
    with pytest.raises(FewnodeError, match=r"^a class is called 'none of these', as is "):
        predictions_of(model, planted, support, [NONE, "mail", "mail"], query)
    assert NONE in predictions_of(model, planted, support, [NONE, "mail", "mail"], query, closed_set=True).labels


def test_one_class_alone_means_more_like_these(model: Estimator, planted: Dataset) -> None:
    own = np.flatnonzero(planted.y == planted.split.test[0])
    told = predictions_of(model, planted, own[:4].tolist(), ["vpn"] * 4, range(planted.graph.n))
    assert told.member is not None
    np.testing.assert_array_equal(told.probabilities[:, 0], told.member)
    best = np.argsort(-told.member, kind="stable")[: own.size]
    assert np.isin(best, own).mean() > 0.9
    claimed = np.flatnonzero(np.array(told.labels) == "vpn")
    assert 0.7 * own.size < claimed.size < 1.3 * own.size
    p = model.predict_proba(planted.graph, own[:4], ["vpn"] * 4, [int(own[5]), 0])
    np.testing.assert_allclose(p[:, 0], told.member[[own[5], 0]], atol=1e-6)
    assert model.predict(planted.graph, own[:4], ["vpn"] * 4, [int(own[5]), 0]) == ["vpn", NONE]
    with pytest.raises(FewnodeError, match=r"^one class alone asks which nodes are like 'vpn': in a closed set"):
        predictions_of(model, planted, [0], ["vpn"], [1], closed_set=True)


def test_what_cannot_tell_members_does_not_claim_to(planted: Dataset) -> None:
    walks = Estimator("deepwalk", 3, 3, dimensions=8, walks=1, length=5).fit(planted)
    few = replace(planted, split=ClassSplit(planted.split.train, planted.split.valid[:2], planted.split.test))
    for model, why in ((walks, "deepwalk cannot tell"), (Estimator("gpn", 2, 2, episodes=2).fit(few), "too few")):
        told = predictions_of(model, planted, [0, 1], ["a", "b"], [2, 3])
        assert (told.closed_set, told.member) == (True, None)
        assert why in told.reason
        assert "use gpn-plus" in told.reason
        one_class = (planted.graph, [0], ["a"], [2])
        for ask in (partial(predictions_of, model, planted, *one_class[1:]), partial(model.predict_proba, *one_class)):
            with pytest.raises(FewnodeError, match=f"{why}.*; use gpn-plus, or give a second class$"):
                ask()
        with pytest.raises(FewnodeError, match=f"the threshold is of no use: .*{why}"):
            predictions_of(model, planted, [0, 1], ["a", "b"], [2, 3], threshold=0.4)


@pytest.mark.parametrize(
    ("read", "text", "message"),
    [
        (read_support, "node,class\nnode-1,a\nnode-2,\n", "line 3: node 'node-2' has no class"),
        (read_support, "node,class\nnode-1,a\nnode-1,b\n", "line 3: node 'node-1' is in 'b', but in 'a' on line 2"),
        (read_support, "node,class\n", "no support node in it"),
        (read_query, "node\n", "no node in it"),
        (read_query, "node\nnode-1\nnobody\n", "line 3: unknown node 'nobody'"),
        (read_support, "node,class\nnode-1,a\nnobody,a\n", "line 3: unknown node 'nobody'"),
    ],
)
def test_what_is_refused_is_named_with_its_line(
    read, text: str, message: str, planted: Dataset, tmp_path: Path
) -> None:
    table = tmp_path / "t.csv"
    table.write_text(text)
    with pytest.raises(FewnodeError) as refused:
        read(table, planted)
    assert str(refused.value).startswith(f"{table}: ")
    assert message in str(refused.value)
