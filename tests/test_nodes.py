"""Every door that takes nodes takes row numbers, names and masks, and says what else it was given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import fewnode
from fewnode.dataset import ClassSplit, Dataset
from fewnode.episodes import EpisodeSampler, Task
from fewnode.errors import FewnodeError, UnusedInput
from fewnode.graph import Graph
from fewnode.model.estimator import Estimator
from fewnode.nodes import as_dataset
from fewnode.recognition.classes import Given
from fewnode.tasks import read_pool
from graphs import predictions_of

Ask = Callable[[Any, Any, Any], Any]
SUPPORT, LABELS, QUERY = [3, 40, 77], ["a", "b", "b"], [5, 9, 200]


@pytest.fixture(scope="module", name="model")
def _model(planted: Dataset) -> Estimator:
    return Estimator("propagation", way=3, shot=2, steps=1).fit(planted)


@pytest.fixture(name="doors")
def _doors(model: Estimator) -> dict[str, Ask]:
    """What takes a network, support nodes and others, with what it answers as something that can be compared."""

    def tasks(network: Any, support: Any, query: Any) -> Any:
        given = np.asarray(support)
        asked = np.array(query, object) if isinstance(query, list) and "node-5" in query else np.asarray(query)
        y = np.array([0, 1, 1])
        if given.dtype == bool:  # then labels are a value a node, too
            y = np.zeros(given.size, int)
            y[SUPPORT[1:]] = 1
        return model.predict_tasks(network, [Task(given, y, asked)])[0].tolist()

    def suggested(network: Any, support: Any, query: Any) -> Any:
        data = as_dataset(network)
        given = Given.of_support(data, support, LABELS, no={"a": [11], "b": [11]})
        return [(each.node, each.label) for each in model.question(data, given).next(2, among=query)]

    return {
        "predict_proba": lambda n, s, q: model.predict_proba(n, s, LABELS, q).tolist(),
        "predict": lambda n, s, q: model.predict(n, s, LABELS, q),
        "familiar": lambda n, s, q: model.familiar(n, s, LABELS, q).tolist(),
        "explain": lambda n, s, q: model.explain(n, s, LABELS, q).nearest.tolist(),
        "predict_tasks": tasks,
        "Answers": lambda n, s, q: predictions_of(model, n, s, LABELS, q, explain=True).to_json()["predictions"],
        "suggest": suggested,
    }


NAMES = ["predict_proba", "predict", "familiar", "explain", "predict_tasks", "Answers", "suggest"]


def mask(rows: list[int], n: int = 360) -> np.ndarray:
    found = np.zeros(n, bool)
    found[rows] = True
    return found


def names(rows: list[int]) -> list[str]:
    return [f"node-{row}" for row in rows]


@pytest.mark.parametrize("door", NAMES)
def test_rows_names_and_masks_are_the_same_nodes(doors: dict[str, Ask], planted: Dataset, door: str) -> None:
    expected = doors[door](planted, SUPPORT, QUERY)
    assert len(expected) in (2, len(QUERY))
    for form in (names, mask, np.array, torch.tensor, pd.Series, lambda rows: torch.from_numpy(mask(rows))):
        assert doors[door](planted, form(SUPPORT), form(QUERY)) == expected
    assert doors[door](planted, SUPPORT, ["node-5", 9, "node-200"]) == expected
    assert doors[door](planted, SUPPORT, mask(QUERY).tolist()) == expected


@pytest.mark.parametrize("door", NAMES)
def test_a_network_is_a_graph_a_dataset_or_pygs(doors: dict[str, Ask], planted: Dataset, door: str) -> None:
    expected = doors[door](planted, SUPPORT, QUERY)
    if door not in ("Answers", "suggest"):  # which answers with names
        assert doors[door](planted.graph, SUPPORT, QUERY) == expected
    pyg = planted.to_pyg(sparse=True)  # dense attributes are the same but for the last bit
    pyg.test_mask = torch.from_numpy(mask(QUERY))
    assert doors[door](pyg, names(SUPPORT), pyg.test_mask) == expected, "and its masks are no unused input"
    pyg.edge_attr = torch.ones(pyg.num_edges, 2)
    with pytest.warns(UnusedInput, match="not used: edge_attr"):
        doors[door](pyg, SUPPORT, QUERY)
    with pytest.raises(FewnodeError, match=r"a ndarray is no network; expected a fewnode\.Graph"):
        doors[door](planted.graph.adj.toarray(), SUPPORT, QUERY)


WRONG: dict[str, tuple[Any, str]] = {
    "a mask of another length": (mask([1], 359), "{} is a mask of length 359, expected 360"),
    "a list of truth values": ([True, False, True], "{} is a mask of length 3, expected 360"),
    "numbers with a point": ([1.0, 2.0, 4.0], r"{} holds 1\.0, expected row numbers, node names, or a boolean mask"),
    "a negative number": ([-1, 2, 4], "{}: node -1 is out of range, expected 0 to 359"),
    "a number too large": (np.array([1, 2, 360]), "{}: node 360 is out of range, expected 0 to 359"),
    "a number larger than all": (np.array([1, 2, 2**63], np.uint64), "{}: node 9223372036854775808 is out of range"),
    "truth among numbers": ([True, 2, 4], "{} holds True, expected row numbers"),
    "no name of a node": (["node-1", "nod-2", "node-4"], r"{}: unknown node 'nod-2' \(did you mean 'node-2'"),
    "nothing": ([None, 2, 4], "{} holds None, expected"),
    "rows of rows": (np.array([[1, 2, 4]]), r"{} has shape \(1, 3\), expected one list"),
    "a set": ({1, 2, 4}, "{} is a set, expected a list of row numbers"),
    "a dictionary": ({1: 2, 2: 3, 4: 5}, "{} is a dict, expected a list"),
}


@pytest.mark.parametrize("case", WRONG)
@pytest.mark.parametrize("door", ["predict_proba", "familiar", "explain", "Answers", "suggest"])
def test_what_is_no_node_is_refused_by_the_arguments_name(
    doors: dict[str, Ask], planted: Dataset, door: str, case: str
) -> None:
    nodes, message = WRONG[case]
    with pytest.raises(FewnodeError, match=message.format("support")):
        doors[door](planted, nodes, QUERY)
    what = "among" if door == "suggest" else "query"
    with pytest.raises(FewnodeError, match=message.format(what)):
        doors[door](planted, SUPPORT, nodes)


def test_a_graph_alone_has_no_names(model: Estimator, planted: Dataset) -> None:
    with pytest.raises(FewnodeError, match="unknown node 'node-1': nodes have no names here"):
        model.predict(planted.graph, SUPPORT, LABELS, ["node-1"])


def test_a_name_that_is_a_number_is_written_as_text(model: Estimator, planted: Dataset) -> None:
    numbered = replace(planted, node_names=tuple(str(5000 + row) for row in range(360)))
    assert model.predict(numbered, ["5003", "5040"], ["a", "b"], ["5003"]) == ["a"]
    with pytest.raises(FewnodeError, match=r"node 5003 is out of range.*written as text, '5003'"):
        model.predict(numbered, SUPPORT, LABELS, [5003])


def test_a_node_counts_once_in_the_support(model: Estimator, planted: Dataset, tmp_path: Path) -> None:
    with pytest.raises(FewnodeError, match="support has node 'node-3' twice"):
        model.predict(planted, ["node-3", "node-40", 3], ["a", "b", "a"], QUERY)
    with pytest.raises(FewnodeError, match="support node 3 is in two classes, 'a' and 'b'"):
        model.predict(planted.graph, [3, 3], ["a", "b"], QUERY)
    line = '{"support": ["node-3", "node-3"], "support_y": ["a", "a"], "query": ["node-1"], "query_y": ["a"]}\n'
    (tmp_path / "pool.jsonl").write_text(line)
    with pytest.raises(FewnodeError, match=r"pool.jsonl: line 1: support has node 'node-3' twice"):
        read_pool(tmp_path / "pool.jsonl", planted)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["a", "b"], "3 support nodes and 2 labels; expected one label a node"),
        (["a"] * 360, "3 support nodes and 360 labels.*give the labels of the marked nodes alone"),
        ("abb", "support_y is 'abb', expected a list"),
        ({"a": 1, "b": 2, "c": 3}, "support_y is a dict, expected a list"),
        ([None, "a", "b"], "label 0 is None, which names no class"),
        (["a", float("nan"), "b"], "label 1 is nan, which names no class"),
        (["a", pd.NA, "b"], "label 1 is <NA>, which names no class"),
        (["a", " ", "b"], "label 1 is ' ', which names no class"),
        (np.array([0, -1, 1]), "label 1 is -1, which names no class; leave that node out"),
        ([1, "1", 2], "the labels 1 and '1' look the same"),
        (["vpn", "VPN", "mail"], "the labels 'vpn' and 'VPN' look the same"),
        ([["a"], ["b"], ["b"]], "label 0 is a list, expected a name or a number"),
        (np.eye(3), r"support_y has shape \(3, 3\)"),
    ],
)
def test_labels_that_name_no_class_are_refused(model: Estimator, planted: Dataset, labels: Any, message: str) -> None:
    for ask in (model.predict, model.predict_proba, model.familiar, model.explain):
        with pytest.raises(FewnodeError, match=message):
            ask(planted, SUPPORT, labels, QUERY)


@pytest.mark.parametrize("method", ["propagation", "sgc"])
def test_no_nodes_are_no_answers(model: Estimator, planted: Dataset, method: str) -> None:
    if method != model.method:
        model = Estimator(method, way=3, shot=2, episodes=2).fit(planted)
    for query in ([], np.zeros(360, bool), np.zeros(0, int)):
        assert model.predict_proba(planted, SUPPORT, LABELS, query).shape == (0, 2)
        assert model.predict(planted, SUPPORT, LABELS, query) == []


class Nearest:
    """The class whose first support node has the nearest row number."""

    def fit(self, graph: Graph, train: EpisodeSampler, valid: EpisodeSampler) -> Nearest:
        return self

    def predict_proba(self, graph: Graph, task: Task) -> np.ndarray:
        nearest = np.abs(task.query[:, None] - task.support).argmin(axis=1)
        return np.eye(task.n_way, dtype=np.float32)[task.support_y[nearest]]


def test_pyg_data_can_be_fitted_embedded_and_evaluated(model: Estimator, planted: Dataset) -> None:
    pyg = planted.to_pyg()
    assert np.allclose(model.embedding(pyg), model.embedding(planted), atol=1e-6)
    ours, theirs = (Estimator(Nearest, way=3, shot=2).fit(data) for data in (planted, pyg))
    one, other = fewnode.evaluate(ours, planted, tasks=5), fewnode.evaluate(theirs, pyg, tasks=5)
    assert one.per_task["accuracy"].tolist() == other.per_task["accuracy"].tolist()
    assert len(EpisodeSampler(pyg, "test", 3, 2).members) == 5
    with pytest.raises(FewnodeError, match="a Graph has no labels to learn from"):
        model.fit(planted.graph)
    with pytest.raises(FewnodeError, match="a Graph has no labels"):
        fewnode.evaluate(model, planted.graph)


@pytest.mark.parametrize(("given", "meant"), [("6", "00006"), ("00007", "7"), ("8.0", "8"), ("Nine", "nine")])
def test_a_name_as_a_spreadsheet_changes_it_is_recognised(given: str, meant: str) -> None:
    graph = Graph.from_edges([[0], [1]], 4)
    data = Dataset(graph, np.full(4, -1), ClassSplit((), (), ()), node_names=("00006", "7", "8", "nine"))
    with pytest.raises(FewnodeError, match=f"unknown node '{given}' .did you mean '{meant}'"):
        data.node(given)
