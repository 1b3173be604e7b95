from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fewnode
from fewnode.dataset import ClassSplit, Dataset
from fewnode.episodes import Task
from fewnode.errors import FewnodeError
from fewnode.graph import Graph
from fewnode.method import Probabilities
from fewnode.tasks import AllClassesSampler


def _evaluate(method: object, data: Dataset, **how: object) -> fewnode.Result:
    return fewnode.evaluate(method, data, classes="all", **how)


def lonely(counts: tuple[int, ...], unknown: int = 3) -> Dataset:
    """Classes of so many nodes, and nodes of unknown class; no edges."""
    y = np.concatenate([np.repeat(np.arange(len(counts)), counts), np.full(unknown, -1)])
    x = np.eye(len(counts) + 1, dtype=np.float32)[y]
    return Dataset(Graph.from_edges(np.zeros((2, 0), int), y.size, x), y, ClassSplit((), (), ()), name="lonely")


def test_the_stream_of_draws_never_changes() -> None:
    """These numbers are the protocol: if this test fails, every published figure has changed."""
    sampler = AllClassesSampler(lonely((6, 5, 7)), 2)
    assert sampler[0].support.tolist() == SUPPORT[0]
    assert sampler[1].support.tolist() == SUPPORT[1]


SUPPORT = ([3, 2, 6, 7, 16, 17], [5, 3, 10, 6, 11, 13])


def test_every_other_labelled_node_is_asked_about_once(planted: Dataset) -> None:
    y = planted.y.copy()
    y[:40] = -1
    data = replace(planted, y=y)
    draw = AllClassesSampler(data, 2)[0]
    assert np.bincount(draw.support_y).tolist() == [2] * 15
    assert sorted([*draw.support, *draw.query]) == np.flatnonzero(y >= 0).tolist()
    assert np.array_equal(data.y[draw.query], draw.query_y), "class c of the draw is class c of the data"
    assert np.array_equal(data.y[draw.support], draw.support_y)


def test_classes_too_small_are_left_out_and_named() -> None:
    data = lonely((6, 2, 5, 3))
    sampler = AllClassesSampler(data, 3)
    assert sampler.left_out == ("1", "3")
    assert np.unique(data.y[sampler[0].support]).tolist() == [0, 2]
    result = _evaluate("nearest-mean", data, shot=3, tasks=2, options={"steps": 0})
    assert result.provenance["left_out"] == ["1", "3"]
    assert result.provenance["way"] == 2


def test_too_few_classes_too_few_draws_and_shots_are_refused() -> None:
    with pytest.raises(FewnodeError, match="lonely: 1 of 3 classes have more than 5 labelled nodes, two are needed"):
        AllClassesSampler(lonely((9, 5, 2)), 5)
    with pytest.raises(FewnodeError, match="0 of 0 classes"):
        AllClassesSampler(lonely(()), 5)
    with pytest.raises(FewnodeError, match="must be at least 1"):
        AllClassesSampler(lonely((9, 5)), 0)
    with pytest.raises(FewnodeError, match="tasks: found 0"):
        _evaluate("nearest-mean", lonely((9, 5)), shot=1, tasks=0)


class Watched:
    """Gives what class 0 is with certainty, and keeps what it was shown."""

    def fit(self, graph: Graph, train: object, valid: object) -> Watched:
        self.seen = [train, valid]
        return self

    def predict_proba(self, graph: Graph, task: Task) -> Probabilities:
        p = np.zeros((task.query.size, task.n_way), np.float32)
        p[:, 0] = 1
        return p


def test_scores_by_hand() -> None:
    method = Watched()
    result = _evaluate(method.fit(lonely((8, 4)).graph, None, None), lonely((8, 4)), shot=2, tasks=3)
    assert result.per_task["accuracy"].tolist() == [[0.75] * 3], "6 of 8 queries are of class 0"
    f1 = 2 * 6 / (6 + 8)
    assert result["macro_f1"].mean == pytest.approx(f1 / 2)
    assert result["weighted_f1"].mean == pytest.approx(0.75 * f1)
    assert result.ece == pytest.approx(0.25)
    shown = result.to_json()
    assert {key: shown[key] for key in ("tasks", "draws", "shot", "way", "query", "protocol", "method")} == {
        "tasks": 3,
        "draws": 3,
        "shot": 2,
        "way": 2,
        "query": None,
        "protocol": "all-classes",
        "method": "Watched",
    }


def test_a_method_that_needs_base_classes_says_so(planted: Dataset) -> None:
    with pytest.raises(FewnodeError, match="no base classes to learn from"):
        _evaluate("gpn", planted, tasks=1)
    with pytest.raises(FewnodeError, match="no transductive mode"):
        _evaluate("logistic", planted, tasks=1, transductive=True)
    with pytest.raises(FewnodeError, match="has no option 'stepps'"):
        _evaluate("logistic", planted, tasks=1, options={"stepps": 2})
