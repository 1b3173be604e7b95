"""GPN+: each part against a slow computation, by hand or against what it must not do."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge
from torch.nn import functional as F

from fewnode.episodes import EpisodeSampler
from fewnode.estimator import Estimator, load_model
from fewnode.evaluation import evaluate
from fewnode.graph import Dataset, Graph
from fewnode.methods import plus
from fewnode.methods.plus import class_weights, mix_weights, ridge_prototypes, ridge_weights, within_class_metric


def test_ridge_prototypes_are_scikit_learns(rng: np.random.Generator) -> None:
    for k, d in ((6, 20), (40, 5)):  # in the dual and in the primal form
        z = torch.from_numpy(rng.normal(size=(k, d))).float()
        y = torch.arange(k) % 3
        weight = class_weights(torch.cat([y[:-1], torch.tensor([0])]), 3)
        p = ridge_prototypes(z, F.one_hot(y, 3).float(), weight)
        oracle = Ridge(alpha=plus.RIDGE, fit_intercept=False)
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
    weight = class_weights(torch.tensor([0, 1, 1, 1]), 2)
    assert weight[0] == pytest.approx(float(weight[1:].sum()))
    assert torch.equal(class_weights(torch.tensor([0, 0, 1, 1]), 2), torch.ones(4))


def test_mix_finds_the_view_that_tells(rng: np.random.Generator) -> None:
    """Three views: one tells the class, one is noise, one misleads."""
    label = torch.from_numpy(rng.integers(0, 4, 500))
    right = 0.5 * F.one_hot(label, 4).float() + 0.2 * torch.from_numpy(rng.normal(size=(500, 4))).float()
    noise = torch.from_numpy(rng.normal(size=(500, 4))).float()
    tau = mix_weights(torch.stack([right, noise, -right + noise], dim=2), label)
    assert tau[0] > 5
    assert tau[1:].max() < 0.2 * tau[0]


def test_mix_is_at_the_minimum(rng: np.random.Generator) -> None:
    label = torch.from_numpy(rng.integers(0, 3, 200))
    views = torch.from_numpy(rng.normal(size=(200, 3, 2))).float()
    views[torch.arange(200), label] += 0.5

    def loss(tau: np.ndarray) -> float:
        fit = F.cross_entropy((views @ torch.from_numpy(tau).float()), label)
        return float(fit) + 1e-4 * float((tau**2).sum())

    tau = mix_weights(views, label)
    for nudge in ([0.05, 0], [-0.05, 0], [0, 0.05], [0, -0.05]):
        assert loss(tau) <= loss(tau + nudge) + 1e-6


def test_the_metric_shortens_the_direction_in_which_classes_vary(rng: np.random.Generator) -> None:
    """Classes differ along axis 0 and vary within along axis 1."""
    centre = np.repeat([-1.0, 1.0], 50)
    z = np.stack([centre + 0.1 * rng.normal(size=100), rng.normal(size=100)], axis=1)
    metric = within_class_metric(torch.from_numpy(z).float(), [np.arange(50), np.arange(50, 100)])
    ratio = (torch.tensor([1.0, 0.0]) @ metric).norm() / (torch.tensor([0.0, 1.0]) @ metric).norm()
    assert ratio > 1.3


def test_the_metric_is_the_identity_where_within_is_as_total(rng: np.random.Generator) -> None:
    z = torch.from_numpy(rng.normal(size=(4000, 3)) * [3, 1, 0.5]).float()
    metric = within_class_metric(z, [np.arange(2000), np.arange(2000, 4000)])
    assert torch.allclose(metric / metric[0, 0], torch.eye(3), atol=0.05)


@pytest.fixture(name="fitted", scope="module")
def _fitted(planted: Dataset) -> Estimator:
    return Estimator("gpn-plus", way=3, shot=3, rank=32).fit(planted)


def test_parts_can_be_taken_out(fitted: Estimator, planted: Dataset) -> None:
    whole = evaluate(fitted, planted, 5, 1, 5).accuracy.mean
    for part in ({"views": "structure"}, {"mix": False}, {"sharpen": False}, {"metric": False}, {"ridge": False}):
        model = Estimator("gpn-plus", way=3, shot=3, rank=32, **part).fit(planted)
        assert 0.5 < evaluate(model, planted, 5, 1, 5).accuracy.mean <= whole + 0.05, part
        if "views" in part:
            assert all(name.startswith("structure") for name, _ in model.method_.weight_)
        if "sharpen" in part:
            assert {power for _, power in model.method_.weight_} == {0.0}


def test_no_label_of_validation_or_training_is_read_by_the_embedding_of_structure(planted: Dataset) -> None:
    bare = replace(planted, graph=Graph(planted.graph.adj, np.zeros((planted.graph.n, 0), np.float32)))
    model = Estimator("gpn-plus", way=3, shot=3, rank=32).fit(bare)
    assert evaluate(model, bare, 5, 5, 5).accuracy.mean > 0.5, "a network without attributes needs no other command"
    assert model.method_.state().keys() == {"tau", "mean", "trust"}


def test_weights_follow_the_network(planted: Dataset) -> None:
    """Edges drawn anew tell nothing: the views that use them lose their weight."""
    rng = np.random.default_rng(0)
    noise = Graph.from_edges(rng.integers(0, planted.graph.n, (2, 1500)), planted.graph.n, planted.graph.x)
    share = []
    for graph in (planted.graph, noise):
        weight = Estimator("gpn-plus", 3, 3, rank=32).fit(replace(planted, graph=graph)).method_.weight_
        plain = sum(tau for (name, _), tau in weight.items() if name == "attributes")
        share.append(plain / sum(weight.values()))
    assert share[1] > share[0] + 0.2


def test_saved_and_loaded_it_answers_the_same(fitted: Estimator, planted: Dataset, tmp_path) -> None:
    fitted.save(tmp_path / "run")
    task = ([0, 5, 9], ["a", "b", "b"], [1, 2, 3])
    for transductive in (False, True):
        before = fitted.predict_proba(planted.graph, *task, transductive=transductive)
        after = load_model(tmp_path / "run").predict_proba(planted.graph, *task, transductive=transductive)
        assert np.array_equal(before, after)


def test_a_trust_is_that_of_the_nearest_number_of_shots_and_of_two_in_files_that_have_two(
    fitted: Estimator, planted: Dataset
) -> None:
    def asked(method: plus.GPNPlus) -> list[float]:
        samplers = (EpisodeSampler(planted, "test", 3, k_shot, 1) for k_shot in (1, 2, 3, 4, 9))
        return [method._trust_for(sampler[0]) for sampler in samplers]

    state = {**fitted.method_.state(), "trust": torch.tensor([2.0, 1.0, 0.0])}
    assert asked(plus.GPNPlus(rank=32).restore(planted.graph.n_features, state)) == [2, 1, 1, 0, 0]
    state["trust"] = torch.tensor([2.0, 0.0])
    assert asked(plus.GPNPlus(rank=32).restore(planted.graph.n_features, state)) == [2, 2, 0, 0, 0]
    state["trust"] = torch.zeros(4)
    with pytest.raises(ValueError, match="trust"):
        plus.GPNPlus(rank=32).restore(planted.graph.n_features, state)


def test_few_validation_classes_leave_the_trust_to_training_classes_as_well(
    planted: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    train, valid = (EpisodeSampler(planted, part, 2, 1, 1) for part in ("train", "valid"))
    seen: list[int] = []
    monkeypatch.setattr(plus.GPNPlus, "_trust", lambda self, z, members, k_shot: seen.append(len(members)) or 0.0)
    for way in (len(valid.members) + 1, len(valid.members)):
        monkeypatch.setattr(plus, "WAY", way)
        plus.GPNPlus(rank=32).fit(planted.graph, train, valid)
    assert seen == 3 * [len(train.members) + len(valid.members)] + 3 * [len(valid.members)]


def test_beta_are_shares_of_the_prototype(fitted: Estimator, planted: Dataset) -> None:
    why = fitted.explain(planted.graph, [0, 1, 2, 3, 3], [0, 0, 0, 1, 1], [7])
    assert why.beta[:3].sum() == pytest.approx(1)
    assert why.beta[3:].tolist() == pytest.approx([0.5, 0.5])


def test_numbers_that_are_never_zero_are_read_in_units_of_their_deviation(rng: np.random.Generator) -> None:
    x = (rng.normal(size=(50, 3)) * [1000, 1, 1]).astype(np.float32)
    axes = plus.read_along(x, 256, 0)
    assert np.allclose(axes.idf, 1 / x.std(axis=0), rtol=1e-5)
    words = (rng.random((50, 3)) < 0.3).astype(np.float32)
    assert plus.read_along(words, 256, 0).scaling == "log-tf-idf"
