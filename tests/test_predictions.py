"""Answers as tables, as JSON and for people, by hand; support and query tables, and what is refused in them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from fewnode.errors import FewnodeError
from fewnode.estimator import Estimator
from fewnode.graph import Dataset
from fewnode.methods.gpn import Explanation
from fewnode.predictions import NONE, Answerer, Predictions, read_query, read_support

SUPPORT = [("a", "mail"), ("bb", "vpn"), ("c", "vpn")]
WHY = Explanation(np.array([1.0, 0.25, 0.75], np.float32), np.array([[0, 2], [1, 0]]))


def answer(why: Explanation | None = None) -> Predictions:
    return Predictions(["x", "=y"], ["mail", "vpn"], np.array([[0.75, 0.25], [0.5, 0.5]]), SUPPORT, why)


def test_a_table_has_a_column_a_class() -> None:
    """The first of two equals wins; a name that a spreadsheet would compute is text."""
    assert answer().to_csv() == "node,label,mail,vpn\nx,mail,0.750000,0.250000\n'=y,mail,0.500000,0.500000\n"


def test_an_explained_table_names_the_nearest() -> None:
    assert answer(WHY).to_csv().splitlines() == [
        "node,label,mail,vpn,nearest",
        "x,mail,0.750000,0.250000,a c",
        "'=y,mail,0.500000,0.500000,bb a",
    ]
    assert answer(WHY).nearest == [["a", "c"], ["bb", "a"]]
    assert answer().nearest == []


def test_a_class_may_be_called_like_a_column() -> None:
    named = Predictions(["x"], ["label", "nearest", "node", "other"], np.array([[0.1, 0.2, 0.3, 0.4]]), [])
    assert named.to_csv().splitlines()[0] == "node,label,p(label),p(nearest),p(node),other"


def test_none_wins_only_over_all_classes_together() -> None:
    classes = ["mail", "vpn", NONE]
    open_set = Predictions(["x", "y"], classes, np.array([[0.2, 0.3, 0.5], [0.3, 0.15, 0.55]]), SUPPORT)
    assert open_set.labels == ["vpn", NONE]


def test_weights_of_support_nodes() -> None:
    assert answer(WHY).support_csv() == "node,class,beta\na,mail,1.000000\nbb,vpn,0.250000\nc,vpn,0.750000\n"
    assert answer().support_csv() == "node,class,beta\n"
    lines = ["  a   β = 1.000  mail", "  c   β = 0.750  vpn", "  bb  β = 0.250  vpn"]
    assert answer(WHY).support_table() == "\n".join(lines)
    assert answer().support_table() == ""


def test_files(tmp_path: Path) -> None:
    answer().write(tmp_path / "p.csv")
    assert [file.name for file in tmp_path.iterdir()] == ["p.csv"]
    assert (tmp_path / "p.csv").read_text() == answer().to_csv()
    answer(WHY).write(tmp_path / "p.csv")
    assert (tmp_path / "p.csv").read_text() == answer(WHY).to_csv()
    assert (tmp_path / "p.support.csv").read_text() == answer(WHY).support_csv()


def test_json() -> None:
    plain = {
        "classes": ["mail", "vpn"],
        "support": [{"node": node, "class": label} for node, label in SUPPORT],
        "predictions": [
            {"node": "x", "label": "mail", "probability": {"mail": 0.75, "vpn": 0.25}},
            {"node": "=y", "label": "mail", "probability": {"mail": 0.5, "vpn": 0.5}},
        ],
    }
    assert json.loads(json.dumps(answer().to_json())) == plain
    told = answer(WHY).to_json()
    assert [row["beta"] for row in told["support"]] == [1.0, 0.25, 0.75]
    assert [row["nearest"] for row in told["predictions"]] == [["a", "c"], ["bb", "a"]]
    assert {key: value for key, value in told["predictions"][0].items() if key != "nearest"} == plain["predictions"][0]


@pytest.fixture(scope="module")
def model(planted: Dataset) -> Estimator:
    return Estimator("propagation", way=3, shot=2, steps=1, scaling="l2", centre=False, distance="cosine").fit(planted)


def ask(model: Estimator, data: Dataset, **how: bool) -> tuple[Predictions, list[int], list[str], list[int]]:
    """One node of a test class and two of another, against a node of each and of a third, named by hand."""
    first, second, third = (np.flatnonzero(data.y == c).tolist() for c in data.split.test[:3])
    support, labels, query = [*second[:1], *first[:2]], ["vpn", "mail", "mail"], [first[5], second[5], third[5]]
    return Predictions.of(model, data, support, labels, query, **how), support, labels, query


def test_an_answer_has_the_probabilities_of_the_model_under_the_names_of_the_tables(
    model: Estimator, planted: Dataset
) -> None:
    told, support, labels, query = ask(model, planted)
    assert told.classes == ["mail", "vpn"]
    assert told.nodes == [planted.node_name(v) for v in query]
    assert told.support == [(planted.node_name(v), label) for v, label in zip(support, labels, strict=True)]
    assert told.why is None
    expected = model.predict_proba(planted.graph, support, labels, query)
    np.testing.assert_array_equal(told.probability, expected)
    answerer = Answerer(model, planted, support, labels)
    assert (answerer.nodes, answerer.data, answerer.classes) == (support, planted, ["mail", "vpn"])


def test_an_answer_may_be_explained(model: Estimator, planted: Dataset) -> None:
    told, support, labels, query = ask(model, planted, explain=True)
    why = model.explain(planted.graph, support, labels, query)
    assert told.why is not None
    np.testing.assert_array_equal(told.why.beta, why.beta)
    np.testing.assert_array_equal(told.why.nearest, why.nearest)


def test_a_transductive_answer_is_that_of_the_model(model: Estimator, planted: Dataset) -> None:
    told, support, labels, query = ask(model, planted, transductive=True)
    expected = model.predict_proba(planted.graph, support, labels, query, transductive=True)
    np.testing.assert_array_equal(told.probability, expected)
    assert not np.array_equal(expected, ask(model, planted)[0].probability)


def test_none_of_these_takes_what_is_not_familiar(model: Estimator, planted: Dataset) -> None:
    told, support, labels, query = ask(model, planted, open_set=True)
    familiar = model.familiar(planted.graph, support, labels, query)
    assert told.classes == ["mail", "vpn", NONE]
    np.testing.assert_array_equal(told.probability[:, 2], 1 - familiar)
    np.testing.assert_allclose(told.probability[:, :2], familiar[:, None] * ask(model, planted)[0].probability)
    assert told.nodes == [planted.node_name(v) for v in query]
    with pytest.raises(FewnodeError, match=r"^a class is called 'none of these' already; rename it,"):
        Answerer(model, planted, support, [NONE, "mail", "mail"]).predictions(query, open_set=True)
    assert NONE in Answerer(model, planted, support, [NONE, "mail", "mail"]).predictions(query).classes


def test_tables_of_nodes(planted: Dataset, tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("node,class\nnode-3,b\nnode-1,'=a\nnode-3,b\n")
    assert read_support(table, planted) == ([3, 1], ["b", "=a"])
    assert read_query(table, planted) == [3, 1, 3]


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
