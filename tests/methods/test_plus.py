"""GPN+: each part against a slow computation, by hand or against what it must not do."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from fewnode.dataset import Dataset
from fewnode.embedding.projection import AS_IT_IS
from fewnode.embedding.sources import STRUCTURE
from fewnode.episodes import Episode, Task
from fewnode.evaluation import evaluate
from fewnode.graph import Graph
from fewnode.methods import plus
from fewnode.model.estimator import Estimator
from fewnode.recognition.prototypes import RIDGE, class_weights, ridge_prototypes
from fewnode.recognition.space import Head, Space
from fewnode.vectors import Embedding, unit_rows
from graphs import fitted_method


def test_ridge_prototypes_are_scikit_learns(rng: np.random.Generator) -> None:
    for k, d in ((6, 20), (40, 5)):  # in the dual and in the primal form
        z, label = rng.normal(size=(k, d)).astype(np.float32), np.eye(3, dtype=np.float32)[np.arange(k) % 3]
        weight = class_weights(np.concatenate([label[:-1], label[:1]]))
        oracle = Ridge(alpha=RIDGE, fit_intercept=False).fit(z, label - 1 / 3, sample_weight=weight)
        assert np.allclose(ridge_prototypes(z, label, weight).T, oracle.coef_, atol=1e-4)


@pytest.fixture(name="fitted")
def _fitted(fitted_plus: Estimator) -> Estimator:
    return fitted_plus


def test_parts_can_be_taken_out(fitted: Estimator, planted: Dataset) -> None:
    whole = evaluate(fitted, planted, 5, 1, 5).accuracy.mean
    for part in ({"views": "structure"}, {"mix": False}, {"sharpen": False}, {"metric": False}, {"ridge": False}):
        model = fitted_method(plus.GPNPlus(rank=32, **part), planted, 3, 3)
        assert 0.5 < evaluate(model, planted, 5, 1, 5).accuracy.mean <= whole + 0.05, part
        if "views" in part:
            assert {view.source for view in model.mixture_.weight} == {STRUCTURE}
        if "sharpen" in part:
            assert {view.rank for view in model.mixture_.weight} == {AS_IT_IS}


def test_weights_follow_the_network(planted: Dataset) -> None:
    """Edges drawn anew tell nothing: the views that use them lose their weight."""
    rng = np.random.default_rng(0)
    noise = Graph.from_edges(rng.integers(0, planted.graph.n, (2, 1500)), planted.graph.n, planted.graph.x)
    share = []
    for graph in (planted.graph, noise):
        weight = fitted_method(plus.GPNPlus(rank=32), replace(planted, graph=graph), 3, 3).mixture_.weight
        plain = sum(tau for view, tau in weight.items() if (view.source, view.name) == ("attributes", "itself"))
        share.append(plain / sum(weight.values()))
    assert share[1] > share[0] + 0.2


# --- the transductive mode -------------------------------------------------------------------------------------------


def two_clouds(first: int, second: int, spread: float) -> tuple[np.ndarray, Episode]:
    """Nodes along two directions that are not far apart, the first of each labelled, and that of the first far off."""
    rng, centre = np.random.default_rng(0), np.eye(8)[:2] + 0.4
    z = np.repeat(centre, [first + 1, second + 1], axis=0) + spread * rng.normal(size=(first + second + 2, 8))
    z[0] = centre[0] + 0.9 * (centre[1] - centre[0])
    query = np.setdiff1d(np.arange(len(z)), [0, first + 1])
    task = Task(np.array([0, first + 1]), np.array([0, 1]), query)
    return unit_rows(z.astype(np.float32)), Episode(task, (query > first).astype(np.int64))


@pytest.mark.parametrize("adapts", [False, True])
@pytest.mark.parametrize("sizes", [(20, 20), (30, 4), (4, 30)])
def test_unlabelled_nodes_make_up_for_a_bad_example(sizes: tuple[int, int], adapts: bool) -> None:
    """And a class that few of them are in is not drawn to the other."""
    z, task = two_clouds(*sizes, 0.1)
    space, right = Space(Embedding.of(z), Head(ridge=True, adapts=adapts, crowds=True)), []
    for transductive in (False, True):
        found = space.predict_tasks([task.task], transductive)[0].argmax(axis=1)
        right.append(np.mean([np.mean(found[task.query_y == c] == c) for c in (0, 1)]))
    assert right[0] < 0.9
    assert right[1] > 0.97
