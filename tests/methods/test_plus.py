"""GPN+: each part against a slow computation, by hand or against what it must not do."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge
from torch.nn import functional as F

from fewnode.dataset import Dataset
from fewnode.episodes import Episode, EpisodeSampler, Task
from fewnode.estimator import Estimator
from fewnode.evaluation import evaluate
from fewnode.graph import Graph
from fewnode.methods import plus
from fewnode.recognition.ridge import RIDGE, class_weights, ridge_prototypes
from fewnode.recognition.transductive import MEAN_WEIGHT, QUERY_WEIGHT, rectified_prototypes
from fewnode.represent.mixture import MixedViews
from fewnode.represent.projection import AS_IT_IS
from fewnode.represent.sources import STRUCTURE
from fewnode.represent.views import View
from fewnode.vectors import Embedding
from graphs import fitted_method


def test_ridge_prototypes_are_scikit_learns(rng: np.random.Generator) -> None:
    for k, d in ((6, 20), (40, 5)):  # in the dual and in the primal form
        z = torch.from_numpy(rng.normal(size=(k, d))).float()
        y = torch.arange(k) % 3
        weight = class_weights(F.one_hot(torch.cat([y[:-1], torch.tensor([0])]), 3).float())
        p = ridge_prototypes(z, F.one_hot(y, 3).float(), weight)
        oracle = Ridge(alpha=RIDGE, fit_intercept=False)
        oracle.fit(z, F.one_hot(y, 3).float() - 1 / 3, sample_weight=weight)
        assert np.allclose(p.T, oracle.coef_, atol=1e-4)


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


@pytest.mark.parametrize(("better", "trusted"), [((0.1, 0.1), True), ((0.1, -0.1), False), ((-0.1, 0.1), False)])
def test_unlabelled_nodes_are_trusted_if_that_costs_nothing_with_either_kind_of_queries(
    planted: Dataset, monkeypatch: pytest.MonkeyPatch, better: tuple[float, float], trusted: bool
) -> None:
    members = EpisodeSampler(planted, "valid", 2, 1, 1).members

    def answers(self: plus.GPNPlus, graph: Graph, tasks: list[Task], transductive: bool) -> list[np.ndarray]:
        return [answer(task, transductive) for task in tasks]

    def answer(task: Task, transductive: bool) -> np.ndarray:
        """Right half of the time alone; together a few more or fewer, as the kind of queries asks for."""
        label = dict(zip(planted.y[task.support].tolist(), task.support_y.tolist(), strict=True))
        query_y = np.array([label[c] for c in planted.y[task.query].tolist()])
        tail = int(np.unique(np.bincount(query_y, minlength=task.n_way)).size > 1)
        right = np.arange(task.query.size) < task.query.size * (0.5 + transductive * better[tail])
        found = np.where(right, query_y, (query_y + 1) % task.n_way)
        return np.eye(task.n_way)[found]

    monkeypatch.setattr(plus.GPNPlus, "predict_tasks", answers)
    assert plus.GPNPlus()._trust(planted.graph, members) == trusted


# --- the transductive mode -------------------------------------------------------------------------------------------


def two_clouds(first: int, second: int, spread: float) -> tuple[torch.Tensor, Episode]:
    """Nodes along two directions that are not far apart, the first of each labelled, and that of the first far off."""
    torch.manual_seed(0)
    centre = torch.eye(8)[:2] + 0.4
    z = torch.cat([centre[0] + spread * torch.randn(first + 1, 8), centre[1] + spread * torch.randn(second + 1, 8)])
    z[0] = centre[0] + 0.8 * (centre[1] - centre[0])
    query = np.array([i for i in range(len(z)) if i not in (0, first + 1)])
    return F.normalize(z), Episode(
        Task(np.array([0, first + 1]), np.array([0, 1]), query), (query > first).astype(np.int64)
    )


def recognising(z: torch.Tensor, adapts: bool) -> tuple[plus.GPNPlus, Graph]:
    """GPN+ that sees these vectors in a graph, as if it had been fitted without base classes, or with some."""
    graph, method = Graph.from_edges(np.zeros((2, 0), np.int64), len(z), np.zeros((len(z), 0))), plus.GPNPlus()
    method.mixture_ = MixedViews((), {View(STRUCTURE, "itself", AS_IT_IS): 1.0})
    method.adapts_, method.trust_ = adapts, True
    method.remember(graph, Embedding.of(z.numpy()))
    return method, graph


@pytest.mark.parametrize("adapts", [False, True])
@pytest.mark.parametrize("sizes", [(20, 20), (30, 4), (4, 30)])
def test_unlabelled_nodes_make_up_for_a_bad_example(sizes: tuple[int, int], adapts: bool) -> None:
    """And a class that few of them are in is not drawn to the other."""
    z, task = two_clouds(*sizes, 0.1)
    method, graph = recognising(z, adapts)
    right = []
    for transductive in (False, True):
        found = method.predict_tasks(graph, [task.task], transductive)[0].argmax(axis=1)
        right.append(np.mean([np.mean(found[task.query_y == c] == c) for c in (0, 1)]))
    assert right[0] < 0.9
    assert right[1] > 0.97


def test_a_round_of_rectified_prototypes_is_a_ridge_regression_on_three_kinds_of_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    z, task = two_clouds(10, 5, 0.3)
    label, share = torch.eye(2), torch.rand(15, 2)
    query = z[torch.from_numpy(task.query)]
    means = [F.normalize(z[s] + (share[:, c, None] * query).sum(dim=0), dim=0) for c, s in enumerate(task.support)]
    weight = class_weights(torch.cat([label, QUERY_WEIGHT * share]))
    oracle = Ridge(alpha=RIDGE, fit_intercept=False).fit(
        torch.cat([z[task.support], query, torch.stack(means)]),
        torch.cat([label, share / share.sum(dim=1, keepdim=True), label]) - 0.5,
        sample_weight=torch.cat([weight, torch.full((2,), MEAN_WEIGHT)]),
    )
    p = rectified_prototypes(z[task.support], label, query, share, rounds=1)
    assert np.allclose(p.T, oracle.coef_, atol=1e-4)
