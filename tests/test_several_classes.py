"""Tasks of several classes a node, and how answers to them are scored."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, f1_score

import fewnode
from fewnode.dataset import Dataset
from fewnode.evaluation import evaluate
from fewnode.model.estimator import Estimator
from fewnode.scores import several_scores
from fewnode.tasks import SeveralSampler


@pytest.fixture(name="data")
def _data(several: Dataset) -> Dataset:
    return several


@pytest.fixture(name="model")
def _model(fitted_several: Estimator) -> Estimator:
    return fitted_several


def test_scores_are_those_of_scikit_learn(rng: np.random.Generator) -> None:
    found, truth = rng.random((200, 5)), rng.random((200, 5)) < 0.2
    scores = several_scores(found, found >= 0.5, truth, 10)
    assert scores["micro_f1"] == pytest.approx(f1_score(truth, found >= 0.5, average="micro"))
    assert scores["macro_f1"] == pytest.approx(f1_score(truth, found >= 0.5, average="macro"))
    assert scores["average_precision"] == pytest.approx(average_precision_score(truth, found))
    first = np.argsort(-found, axis=0)[:10]
    assert scores["precision_at_k"] == pytest.approx(np.take_along_axis(truth, first, axis=0).mean())


def test_a_support_node_comes_with_all_its_classes(data: Dataset) -> None:
    assert data.labels is not None
    sampler = SeveralSampler(data, data.split.test, way=4, shot=5, query=6, seed=3)
    drawn = sampler[2]
    task = drawn.task
    chosen = list(data.split.test)
    assert np.intersect1d(task.support, task.query).size == 0
    assert len(set(zip(task.support.tolist(), task.support_y.tolist(), strict=True))) == task.support.size
    assert np.bincount(task.support_y).min() >= 5
    # every class of a task is one of the test classes, and everything said of a node is true of that class
    for c in range(4):
        same = [t for t in chosen if data.labels[task.support[task.support_y == c]][:, [t]].sum() >= 5]
        full = data.labels[:, same].toarray()
        assert any(
            (full[task.query, i] == drawn.truth[:, c]).all()
            and set(task.support[full[task.support, i]]) == set(task.support[task.support_y == c])
            for i in range(len(same))
        )
    again = sampler[2].task
    assert (again.query.tolist(), again.support.tolist()) == (task.query.tolist(), task.support.tolist())
    assert sampler[3].task.query.tolist() != task.query.tolist()


def test_a_run_is_above_chance_and_calibrated(data: Dataset, model: Estimator) -> None:
    result = evaluate(model, data, several=True, way=3, shot=5, query=10, tasks=10)
    assert result["average_precision"].mean > 0.7
    assert result["micro_f1"].mean > 0.6
    assert result["precision_at_k"].mean > 0.7
    assert result.ece < 0.1
    assert result.to_json()["tasks"] == 10
    shuffled = np.random.default_rng(0).permutation(data.graph.n)
    assert data.labels is not None
    wrong = replace(data, y=data.y[shuffled], labels=data.labels[shuffled])
    chance = evaluate(model, wrong, several=True, way=3, shot=5, query=10, tasks=10)
    assert chance["average_precision"].mean < result["average_precision"].mean - 0.2


def test_every_class_without_base_classes(data: Dataset) -> None:
    result = evaluate("gpn-plus", data, shot=5, tasks=2, classes="all", several=True)
    assert result["average_precision"].mean > 0.5, "of a class, one node in eight is a member"
    assert result.ece < 0.1
    assert (result.provenance["way"], result.provenance["multi_label"]) == (12, True)


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"way": 9}, "9-way tasks need 9 classes, there are 5"),
        ({"way": 1}, "two are needed"),
        ({"shot": 0}, "at least 1"),
        ({"query": 10_000}, "are needed; ask for fewer"),
        ({"tasks": 0}, "tasks: found 0"),
        ({"precision_at": 0}, "precision_at: found 0"),
    ],
)
def test_impossible_tasks_are_refused(data: Dataset, model: Estimator, asked: dict[str, int], sentence: str) -> None:
    with pytest.raises(fewnode.FewnodeError, match=sentence):
        evaluate(model, data, several=True, **asked)
