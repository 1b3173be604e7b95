"""GPN+: each part against a slow computation, by hand or against what it must not do."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge
from torch.nn import functional as F

from fewnode.dataset import ClassSplit, Dataset
from fewnode.episodes import Episode, EpisodeSampler, Task
from fewnode.estimator import Estimator, load_model
from fewnode.evaluation import evaluate
from fewnode.graph import Graph
from fewnode.methods import plus
from fewnode.recognition.ridge import RIDGE, class_weights, ridge_prototypes, ridge_weights
from fewnode.recognition.transductive import MEAN_WEIGHT, QUERY_WEIGHT, rectified_prototypes
from fewnode.represent.mixture import MixedViews
from fewnode.represent.projection import AS_IT_IS
from fewnode.represent.sources import STRUCTURE, read_along
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


def test_a_prototype_is_the_weighted_sum_of_support_nodes(rng: np.random.Generator) -> None:
    z = torch.from_numpy(rng.normal(size=(6, 20))).float()
    label, weight = F.one_hot(torch.arange(6) % 2, 2).float(), torch.ones(6)
    assert torch.allclose(z.T @ ridge_weights(z, label, weight), ridge_prototypes(z, label, weight), atol=1e-5)


def test_a_support_node_given_twice_counts_less_than_twice() -> None:
    """What the paper's valuator cannot do: a mean would count it twice, ridge regression shares its weight."""
    z = F.normalize(torch.tensor([[1.0, 0, 0], [1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0]]))
    alpha = ridge_weights(z, F.one_hot(torch.tensor([0, 0, 0, 1]), 2).float(), torch.ones(4))
    assert alpha[0, 0] == pytest.approx(float(alpha[1, 0]))
    assert alpha[0, 0] < 0.8 * alpha[2, 0]


def test_classes_of_unequal_shots_count_the_same() -> None:
    weight = class_weights(F.one_hot(torch.tensor([0, 1, 1, 1])).float())
    assert weight[0] == pytest.approx(float(weight[1:].sum()))
    assert torch.equal(class_weights(F.one_hot(torch.tensor([0, 0, 1, 1])).float()), torch.ones(4))


def test_nodes_that_are_partly_in_a_class_count_partly() -> None:
    """One labelled node each, and three that are most of all in the second class: by hand, 1.5 and 3.5 of mass."""
    counted = torch.tensor([[1.0, 0], [0, 1], [0.2, 0.8], [0.2, 0.8], [0.1, 0.9]])
    by_hand = [a / 1.5 + b / 3.5 for a, b in counted.tolist()]
    assert torch.allclose(class_weights(counted), 2.5 * torch.tensor(by_hand))


def test_an_attribute_that_is_the_same_everywhere_stands_in_nobodys_way(rng: np.random.Generator) -> None:
    y = np.repeat(range(3), 20)
    x = np.zeros((60, 1), np.float32)  # what a constant number is once it is standardised
    graph = Graph.from_edges(rng.integers(0, 60, (2, 180)), 60, x)
    data = Dataset(graph, y, ClassSplit((0, 1), (), (2,)))
    answers = Estimator("gpn-plus").fit(data).predict_proba(data, [40, 0], ["a", "b"], [41, 1])
    assert np.allclose(answers.sum(axis=1), 1)


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


def test_no_label_of_validation_or_training_is_read_by_the_embedding_of_structure(planted: Dataset) -> None:
    bare = replace(planted, graph=Graph(planted.graph.adj, np.zeros((planted.graph.n, 0), np.float32)))
    model = Estimator("gpn-plus", way=3, shot=3, rank=32).fit(bare)
    assert evaluate(model, bare, 5, 5, 5).accuracy.mean > 0.5, "a network without attributes needs no other command"
    assert model.method_.state().keys() == {"views", "tau", "modes"}


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


def test_tasks_answered_together_are_answered_as_each_alone(fitted: Estimator, planted: Dataset) -> None:
    tasks = [e.task for k_shot in (1, 3) for e in EpisodeSampler(planted, "test", 4, k_shot, 4).take(6)]
    for transductive in (False, True):
        together = fitted.predict_tasks(planted.graph, tasks, transductive)
        alone = [fitted.predict_tasks(planted.graph, [task], transductive)[0] for task in tasks]
        assert max(np.abs(one - other).max() for one, other in zip(together, alone, strict=True)) < 1e-5


def test_saved_and_loaded_it_answers_the_same(fitted: Estimator, planted: Dataset, tmp_path) -> None:
    fitted.save(tmp_path / "run")
    task = ([0, 5, 9], ["a", "b", "b"], [1, 2, 3])
    for transductive in (False, True):
        before = fitted.predict_proba(planted.graph, *task, transductive=transductive)
        after = load_model(tmp_path / "run").predict_proba(planted.graph, *task, transductive=transductive)
        # together, the crowd around nodes counts, which is computed for all of them once many were asked about
        assert np.allclose(before, after, rtol=0, atol=1e-8 if transductive else 0)


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


def test_few_validation_classes_leave_the_trust_to_training_classes_as_well(
    planted: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    train, valid = (EpisodeSampler(planted, part, 2, 1, 1) for part in ("train", "valid"))
    seen: list[int] = []
    monkeypatch.setattr(plus.GPNPlus, "_trust", lambda self, graph, members: seen.append(len(members)) or False)
    for way in (len(valid.members) + 1, len(valid.members)):
        monkeypatch.setattr(plus, "WAY", way)
        plus.GPNPlus(rank=32).fit(planted.graph, train, valid)
    assert seen == [len(train.members) + len(valid.members), len(valid.members)]


def test_a_second_fit_does_not_see_what_the_first_knew_of_strangers(
    planted: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[object] = []
    monkeypatch.setattr(plus.GPNPlus, "_trust", lambda self, graph, members: seen.append(self.membership) or True)
    model = Estimator("gpn-plus", 3, 3, rank=16).fit(planted)
    assert model.method_.membership is not None
    model.fit(planted)
    assert seen == [None, None]


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


def test_strangers_do_not_move_prototypes() -> None:
    """Nodes that count in no class are as good as absent."""
    z, task = two_clouds(10, 5, 0.3)
    query, share = z[torch.from_numpy(task.query)], torch.rand(15, 2)
    stranger, none = F.normalize(torch.randn(20, 8)), torch.zeros(20, 2)
    without = rectified_prototypes(z[task.support], torch.eye(2), query, share)
    among = rectified_prototypes(z[task.support], torch.eye(2), torch.cat([query, stranger]), torch.cat([share, none]))
    assert torch.allclose(without, among, atol=1e-5)


def test_beta_are_shares_of_the_prototype(fitted: Estimator, planted: Dataset) -> None:
    why = fitted.explain(planted.graph, [0, 1, 2, 3, 4], [0, 0, 0, 1, 1], [7])
    assert why.beta[:3].sum() == pytest.approx(1)
    assert why.beta[3:].sum() == pytest.approx(1)


def test_numbers_that_are_never_zero_are_read_in_units_of_their_deviation(rng: np.random.Generator) -> None:
    x = (rng.normal(size=(50, 3)) * [1000, 1, 1]).astype(np.float32)
    axes = read_along(x, "", 256, 0)
    assert np.allclose(axes.idf, 1 / x.std(axis=0), rtol=1e-5)
    words = (rng.random((50, 3)) < 0.3).astype(np.float32)
    assert read_along(words, "", 256, 0).scaling == "log-tf-idf"


def test_known_classes_may_differ_in_size(planted: Dataset) -> None:
    """Then tasks of one shot have more classes than those of five."""
    y = np.where(planted.y > 5, -1, planted.y)
    for c in (2, 3):
        y[np.flatnonzero(y == c)[7:]] = -1
    data = replace(planted, y=y, split=ClassSplit((0, 1, 2), (3,), (4, 5)))
    model = Estimator("gpn-plus").fit(data)
    assert evaluate(model, data, 2, 3, tasks=20).accuracy.mean > 0.7
