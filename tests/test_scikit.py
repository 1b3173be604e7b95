"""scikit-learn's contract: its own checks, grid searches, pipelines, and nodes of a graph as samples."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedShuffleSplit, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import (
    check_estimator_cloneable,
    check_estimator_repr,
    check_get_params_invariance,
    check_set_params,
)
from sklearn.utils.validation import check_is_fitted

import fewnode
from fewnode import Estimator, FewNodeClassifier, FewnodeError, NodeEmbedding
from fewnode.dataset import Dataset


@pytest.mark.parametrize("kind", [FewNodeClassifier, NodeEmbedding])
def test_scikit_learns_checks_of_parameters(planted: Dataset, kind: type) -> None:
    """The others ask about rows of numbers, and these are nodes of a graph."""
    for check in (check_estimator_cloneable, check_estimator_repr, check_get_params_invariance, check_set_params):
        check(kind.__name__, kind(planted))


@pytest.fixture(name="tested", scope="module")
def _tested(planted: Dataset) -> tuple[np.ndarray, np.ndarray]:
    """Nodes of three test classes, and their classes."""
    nodes = np.flatnonzero(np.isin(planted.y, [10, 11, 12]))
    return nodes, planted.y[nodes]


def test_it_answers_as_the_estimator_does(planted: Dataset, tested: tuple[np.ndarray, np.ndarray]) -> None:
    nodes, y = tested
    model = FewNodeClassifier(planted, base=True).fit(nodes[::7], y[::7])
    other = model.estimator_
    expected = other.predict_proba(planted, nodes[::7], y[::7], nodes)
    assert np.array_equal(model.predict_proba(nodes), expected)
    assert model.classes_.tolist() == [10, 11, 12] == other.classes_
    assert model.score(nodes, y) == other.score(planted, nodes[::7], y[::7], nodes, y) > 0.8
    frozen = FewNodeClassifier(planted, FrozenEstimator(other), base=True).fit(nodes[::7], y[::7])
    assert np.array_equal(frozen.predict_proba(nodes), expected)


def test_nodes_of_unknown_class_are_marked_and_do_not_count(planted: Dataset) -> None:
    nodes = [f"node-{i}" for i in range(12)]
    y = planted.y[:12] % 2
    hidden = np.where(np.arange(12) < 6, y, -1)
    model = FewNodeClassifier(planted, "logistic").fit(nodes, hidden)
    plain = FewNodeClassifier(planted, "logistic").fit(np.arange(6)[:, None], y[:6])
    assert np.array_equal(model.predict_proba(nodes), plain.predict_proba(np.arange(12.0)))
    names = np.array(["even", "odd"])[y]
    words = FewNodeClassifier(planted, "logistic").fit(nodes, [*names[:6], *[None] * 6])
    assert words.predict(nodes).tolist() == np.array(["even", "odd"])[model.predict(nodes)].tolist()
    assert model.score(nodes, hidden) == np.mean(model.predict(nodes[:6]) == y[:6])
    assert model.n_features_in_ == 1


def test_its_labels_are_not_looked_at_unless_asked(planted: Dataset, tested: tuple[np.ndarray, np.ndarray]) -> None:
    nodes, y = tested
    asked = (nodes[::5], y[::5])
    without = FewNodeClassifier(planted.graph).fit(*asked).predict_proba(nodes)
    assert np.array_equal(FewNodeClassifier(planted).fit(*asked).predict_proba(nodes), without)
    learned = FewNodeClassifier(planted, base=True).fit(*asked).predict_proba(nodes)
    assert not np.array_equal(learned, without)
    seen = np.flatnonzero(planted.y < 2)
    with pytest.raises(FewnodeError, match=r"node 'node-\d+' is of a class that the model learns from"):
        FewNodeClassifier(planted, base=True).fit(seen, planted.y[seen])


def test_grid_searches_and_pipelines(planted: Dataset, tested: tuple[np.ndarray, np.ndarray]) -> None:
    nodes, y = tested
    few = StratifiedShuffleSplit(3, train_size=3, test_size=60, random_state=0)  # one label a class
    grid = {"estimator__steps": [0, 2], "estimator__c": [1.0, 1000.0]}
    search = GridSearchCV(FewNodeClassifier(planted, Estimator("logistic")), grid, cv=few).fit(nodes, y)
    scores = search.cv_results_["mean_test_score"]
    steps = search.cv_results_["param_estimator__steps"]
    assert scores[steps == 0].tolist() != scores[steps == 2].tolist(), "with and without the graph"
    assert len(scores) == 4
    assert search.best_score_ == scores.max() > 0.6
    frame = pd.DataFrame({"name": [f"node-{i}" for i in nodes], "age": 3})
    only_names = FunctionTransformer(lambda table: table[["name"]])
    chained = make_pipeline(only_names, FewNodeClassifier(planted))
    assert chained.fit(frame[::7], y[::7]).score(frame, y) > 0.8
    head = make_pipeline(NodeEmbedding(planted), LogisticRegression())
    assert cross_val_score(head, nodes, y, cv=3).mean() > 0.8


@pytest.mark.parametrize(
    ("nodes", "y", "said"),
    [
        ([0, 1], ["a"], "2 nodes in X and 1 labels in y"),
        ([0, 1], None, "2 nodes in X and 1 labels in y"),
        ([0, 999], ["a", "b"], "X: node 999 is out of range"),
        ([0.5, 1], ["a", "b"], "X holds 0.5, expected row numbers"),
        ([[0, 1], [2, 3]], ["a", "b"], r"X has shape \(2, 2\)"),
        (["node-0", "nod-1"], ["a", "b"], "X: unknown node 'nod-1'"),
        ([0, 1], [-1, -1], "no node has a known class"),
        ([0, 1], ["a", "a"], "only one class, 'a'"),
        ([0, 0], ["a", "b"], "support node 'node-0' is in two classes"),
    ],
)
def test_what_cannot_be_used_is_refused_in_a_sentence(planted: Dataset, nodes: object, y: object, said: str) -> None:
    with pytest.raises(FewnodeError, match=said):
        FewNodeClassifier(planted, "logistic").fit(nodes, y)


def test_before_fit_it_says_so(planted: Dataset) -> None:
    with pytest.raises(NotFittedError, match="not fitted yet"):
        FewNodeClassifier(planted).predict([0])
    with pytest.raises(NotFittedError, match="not fitted yet"):
        NodeEmbedding(planted).transform([0])
    with pytest.raises(FewnodeError, match="gpn learns from base classes: give a Dataset that has them and base=True"):
        FewNodeClassifier(planted, "gpn").fit([0, 1], ["a", "b"])
    fitted = FewNodeClassifier(planted, "logistic").fit([0, 1], ["a", "b"])
    with pytest.raises(FewnodeError, match="X has no nodes"):
        fitted.predict([])
    with pytest.raises(FewnodeError, match="2 nodes in X and 1 labels in y"):
        fitted.score([0, 1], ["a"])


# --- the estimator itself -----------------------------------------------------------------------------------------


def test_parameters_make_the_same_estimator_again(planted: Dataset) -> None:
    model = fewnode.Estimator("gpn", way=3, shot=2, episodes=10)
    assert model.get_params() == {
        "method": "gpn",
        "way": 3,
        "shot": 2,
        "query": None,
        "seed": 0,
        "features": None,
        "episodes": 10,
    }
    assert repr(model) == "Estimator(method='gpn', way=3, shot=2, episodes=10)"
    assert repr(Estimator("sgc", seed=1)) == "Estimator(method='sgc', seed=1)"
    again = clone(model.fit(planted))
    assert again.get_params() == model.get_params()
    assert not hasattr(again, "n_features_in_")
    assert not hasattr(again, "classes_")
    check_is_fitted(model)
    assert model.n_features_in_ == planted.graph.n_features
    assert model.set_params(shot=1) is model
    assert (model.shot, model.query) == (1, 1), "as many queries as shots, unless told otherwise"
    with pytest.raises(FewnodeError, match="not fitted yet"):
        model.predict(planted, [0], ["a"], [1])
    with pytest.raises(FewnodeError, match="episods"):
        model.set_params(episods=3)
