"""MAML, Meta-GNN, GCN and SGC: the inner loop, its gradient, and what is learned around it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import oracle
from fewnode.dataset import Dataset
from fewnode.engine.fields import ReceptiveFields
from fewnode.engine.sparse import CSR
from fewnode.episodes import EpisodeSampler
from fewnode.errors import FewnodeError
from fewnode.graph import Graph
from fewnode.methods import inner
from fewnode.methods.adapt import LENGTH, Adapt, typical_length
from fewnode.methods.inner import SGC, FieldEncoder, Prepared, Support, adapt, logits, times
from fewnode.represent.attributes import scale
from fewnode.storage.checkpoint import CHECKPOINT, Checkpoints
from fewnode.train import Diverged, History, Journal
from graphs import planted as planted_network

OWN, PYG = ("sgc", "gcn", "mlp"), ("sage", "gat", "gin")
METHODS: dict[str, dict[str, Any]] = {
    "maml": {"encoder": "mlp", "hidden": (8, 8)},
    "meta-gnn": {},
    "gcn": {"meta": False, "encoder": "gcn", "hidden": (8, 8), "dropout": 0.5},
    "sgc": {"meta": False},
}


@pytest.fixture(autouse=True)
def _few_validation_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Enough to be validated; a training of twenty episodes is not worth fifty tasks."""
    monkeypatch.setattr("fewnode.methods.adapt.VALID_TASKS", 8)


def small_graph() -> Graph:
    """Twenty nodes, twelve sparse attributes, a hub and an isolated node."""
    rng = np.random.default_rng(5)
    edges = np.concatenate([rng.integers(0, 19, (2, 30)), [[0] * 15, list(range(1, 16))]], axis=1)
    x = rng.normal(size=(20, 12)) * (rng.random((20, 12)) < 0.4)
    return Graph.from_edges(edges, 20, sp.csr_array(x.astype(np.float32)))


def prepared() -> Prepared:
    graph = small_graph()
    return Prepared(graph, ReceptiveFields.of(graph, dtype=np.float64))


def network(name: str, g: Prepared) -> nn.Module:
    torch.manual_seed(0)
    width = g.graph.n_features
    module = SGC(width, 4) if name == "sgc" else FieldEncoder(width, (5, 4), 0.0, name == "gcn")
    for parameter in module.parameters():
        parameter.data.add_(0.3 * torch.randn_like(parameter))  # biases too: at zero, ReLU has a kink
    return module.double()


def task_of(net: nn.Module, g: Prepared, nodes: tuple[int, ...] = (3, 7, 19, 11, 5, 6)) -> Support:
    """Three classes with one, two and three shots; node 19 is isolated."""
    return Support.read(net, g, np.array(nodes), torch.tensor([0, 1, 1, 2, 2, 2]))


def query_loss(net: nn.Module, g: Prepared, task: Support, second_order: bool) -> Tensor:
    weights = adapt(net, task, steps=4, lr=0.4, second_order=second_order)
    return F.cross_entropy(logits(net, net.read(g, np.array([1, 8, 9, 4])), weights), torch.tensor([0, 1, 2, 1]))


def plain_adapt(net: nn.Module, task: Support, steps: int, lr: float, second_order: bool = False) -> dict[str, Tensor]:
    """Each weight follows its own gradient, the widest one too: Algorithm 2 as it is written."""
    width = net(task.field).shape[1]
    weights = dict(net.named_parameters())
    weights |= {inner.HEAD: torch.zeros(width, 3).double(), inner.BIAS: torch.zeros(3).double()}
    weights[inner.HEAD].requires_grad_(), weights[inner.BIAS].requires_grad_()
    for _ in range(steps):
        loss = task.loss(logits(net, task.field, weights))
        slopes = torch.autograd.grad(loss, list(weights.values()), create_graph=second_order)
        weights = {name: weight - lr * slope for (name, weight), slope in zip(weights.items(), slopes, strict=True)}
    return weights


# --- the inner loop -----------------------------------------------------------------------------------------------


def test_sparse_product_has_all_orders_of_gradient() -> None:
    matrix = sp.random_array((5, 4), density=0.5, rng=np.random.default_rng(0), format="csr")
    csr = CSR.of(matrix)
    dense = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    assert torch.allclose(times(csr, dense), torch.from_numpy(matrix.toarray()) @ dense)
    assert torch.autograd.gradcheck(lambda d: times(csr, d), (dense,))
    assert torch.autograd.gradgradcheck(lambda d: (times(csr, d)).pow(2), (dense,))


@pytest.mark.parametrize("encoder", OWN)
def test_second_order_gradient_equals_finite_differences(encoder: str) -> None:
    g = prepared()
    net = network(encoder, g)
    task, weights = task_of(net, g), list(net.parameters())
    for weight, slope in zip(weights, torch.autograd.grad(query_loss(net, g, task, True), weights), strict=True):
        direction, value = torch.randn_like(weight), weight.detach().clone()
        around = []
        for sign in (1, -1):
            weight.data = value + sign * 1e-6 * direction
            around.append(query_loss(net, g, task, False).item())
        weight.data = value
        assert (around[0] - around[1]) / 2e-6 == pytest.approx(float((slope * direction).sum()), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("encoder", OWN)
def test_first_order_gradient_is_the_one_at_the_adapted_weights(encoder: str) -> None:
    g = prepared()
    net = network(encoder, g)
    task, weights = task_of(net, g), list(net.parameters())
    first = torch.autograd.grad(query_loss(net, g, task, False), weights)
    adapted = plain_adapt(net, task, steps=4, lr=0.4)
    loss = F.cross_entropy(logits(net, net.read(g, np.array([1, 8, 9, 4])), adapted), torch.tensor([0, 1, 2, 1]))
    there = torch.autograd.grad(loss, [adapted[name] for name, _ in net.named_parameters()])
    second = torch.autograd.grad(query_loss(net, g, task, True), weights)
    assert all(torch.allclose(a, b) for a, b in zip(first, there, strict=True))
    assert not all(torch.allclose(a, b, rtol=1e-3) for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize("gram", [0, 1024], ids=["many rows", "few rows"])
@pytest.mark.parametrize("encoder", OWN)
def test_the_widest_weight_moves_as_if_it_followed_its_gradient(
    encoder: str, gram: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inner, "MAX_GRAM", gram)
    g = prepared()
    net = network(encoder, g)
    for nodes in ((3, 7, 19, 11, 5, 6), (0, 1, 2, 3, 4, 5), (19, 18, 17, 16, 2, 2)):
        task = task_of(net, g, nodes)
        ours, plain = adapt(net, task, steps=6, lr=0.4), plain_adapt(net, task, steps=6, lr=0.4)
        assert ours.keys() == plain.keys()
        assert all(torch.allclose(ours[name], plain[name]) for name in plain)


@pytest.mark.parametrize("encoder", OWN)
def test_adapting_lowers_the_support_loss(encoder: str) -> None:
    g = prepared()
    net = network(encoder, g)
    task = task_of(net, g)
    before = {name: weight.detach().clone() for name, weight in net.named_parameters()}
    losses = [task.loss(logits(net, task.field, adapt(net, task, steps, lr=0.1))).item() for steps in (1, 5, 20)]
    assert np.log(3) > losses[0] > losses[1] > losses[2]
    assert all(torch.equal(before[name], weight) for name, weight in net.named_parameters())


def test_unequal_shots_count_classes_equally() -> None:
    logits = torch.tensor([[2.0, 0, 0], [0, 1, 0], [0, 3, 0], [0, 0, 1], [0, 0, 2], [1, 0, 0]])
    y = torch.tensor([0, 1, 1, 2, 2, 2])
    nll = -F.log_softmax(logits, dim=1)[torch.arange(6), y]
    expected = (nll[0] + nll[1:3].mean() + nll[3:].mean()) / 3
    assert Support(None, y, None).loss(logits) == pytest.approx(float(expected))


def test_sgc_is_two_steps_of_propagation_and_one_product() -> None:
    g, graph = prepared(), small_graph()
    sgc = SGC(graph.n_features, 4).double()
    sgc.bias.data.uniform_()
    a, x = oracle.dense(graph, torch.float64)
    hat = oracle.propagation_matrix(a)
    expected = hat @ hat @ x @ sgc.weight + sgc.bias
    assert torch.allclose(sgc(sgc.read(g, None)), expected)
    nodes = np.array([0, 19, 4, 4])
    assert torch.allclose(sgc(sgc.read(g, nodes)), expected[nodes])


# --- the methods --------------------------------------------------------------------------------------------------


def samplers(data: Dataset) -> tuple[EpisodeSampler, EpisodeSampler]:
    return EpisodeSampler(data, "train", 3, 3), EpisodeSampler(data, "valid", 3, 3)


def fitted(data: Dataset, journal: Journal | None = None, **options: Any) -> Adapt:
    method = Adapt(**{"episodes": 20, "steps": 5, **options})
    return method.fit_in_steps(data.graph, *samplers(data), journal or Journal())


def ask(method: Adapt, data: Dataset, n_way: int = 4) -> np.ndarray:
    task = EpisodeSampler(data, "test", n_way, 3)[0]
    return method.predict_proba(data.graph, task.task)


@pytest.mark.parametrize("name", METHODS)
def test_a_task_may_have_another_number_of_classes_than_in_training(name: str, planted: Dataset) -> None:
    method = fitted(planted, **METHODS[name])
    for n_way in (2, 5):
        task = EpisodeSampler(planted, "test", n_way, 5)[1]
        p = method.predict_proba(planted.graph, task.task)
        assert p.shape == (5 * n_way, n_way)
        assert (p.argmax(axis=1) == task.query_y).mean() > 1.5 / n_way
        order = np.roll(np.arange(n_way), 1)
        renamed = method.predict_proba(planted.graph, replace(task.task, support_y=order[task.support_y]))
        assert np.allclose(p, renamed[:, order], atol=1e-5)


@pytest.mark.parametrize("name", METHODS)
def test_training_lowers_the_loss(name: str, planted: Dataset) -> None:
    history = fitted(planted, **METHODS[name], episodes=60, lr=0.02).history_
    assert history.points[-1].loss < history.points[0].loss


@pytest.mark.parametrize("name", METHODS)
def test_a_resumed_training_ends_with_the_same_bits(name: str, planted: Dataset, tmp_path: Path) -> None:
    whole = fitted(planted, **METHODS[name], episodes=40)

    def interrupt(step: int, loss: float, history: History) -> None:
        if step == 34:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fitted(planted, Checkpoints(tmp_path, on_step=interrupt), **METHODS[name], episodes=40)
    assert (tmp_path / CHECKPOINT).exists()
    resumed = fitted(planted, Checkpoints(tmp_path), **METHODS[name], episodes=40)
    assert resumed.history_ == whole.history_
    assert np.array_equal(ask(resumed, planted), ask(whole, planted))


@pytest.mark.parametrize("name", METHODS)
def test_state_restores_the_method(name: str, planted: Dataset) -> None:
    method = fitted(planted, **METHODS[name], scaling="tf-idf", seed=3)
    again = Adapt(**METHODS[name], steps=5, scaling="tf-idf").restore(planted.graph.n_features, method.state())
    assert np.array_equal(ask(method, planted), ask(again, planted))
    with pytest.raises(ValueError, match="expected"):
        Adapt(**METHODS[name], scaling="tf-idf").restore(planted.graph.n_features + 1, method.state())


@pytest.mark.parametrize("name", METHODS)
def test_the_caller_s_random_numbers_are_left_alone(name: str, planted: Dataset) -> None:
    before = torch.random.get_rng_state(), np.random.get_state()[1].copy()
    ask(fitted(planted, **METHODS[name], episodes=2), planted)
    assert torch.equal(before[0], torch.random.get_rng_state())
    assert np.array_equal(before[1], np.random.get_state()[1])


@pytest.mark.parametrize("meta", [True, False])
@pytest.mark.parametrize("encoder", PYG)
def test_any_pyg_encoder_can_be_adapted(encoder: str, meta: bool, planted: Dataset) -> None:
    method = fitted(planted, encoder=encoder, meta=meta, hidden=(8, 8), episodes=3, inner_lr=0.05)
    p = ask(method, planted)
    assert np.allclose(p.sum(axis=1), 1, atol=1e-5)
    task = EpisodeSampler(planted, "test", 4, 3)[0]
    everyone = method.predict_proba(planted.graph, replace(task.task, query=np.arange(planted.graph.n)))
    assert np.allclose(everyone[task.query], p, atol=1e-4)


def test_a_module_of_one_s_own_can_be_adapted(planted: Dataset) -> None:
    from torch_geometric.nn import GCNConv

    class Mine(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = GCNConv(planted.graph.n_features, 7)
            self.unused = nn.Parameter(torch.ones(2))

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            return self.conv(x, edge_index)

    mine = Mine()
    before = mine.conv.lin.weight.detach().clone()
    for meta in (True, False):
        assert ask(fitted(planted, encoder=mine, meta=meta, episodes=3), planted).shape == (12, 4)
    assert torch.equal(before, mine.conv.lin.weight)


@pytest.mark.parametrize("encoder", OWN)
def test_all_nodes_get_the_answers_that_some_get(encoder: str) -> None:
    data = planted_network(size=80)  # more nodes than are read at a time
    method = fitted(data, encoder=encoder, hidden=(8,), episodes=1)
    task = EpisodeSampler(data, "test", 3, 3)[0]
    everyone = method.predict_proba(data.graph, replace(task.task, query=np.arange(data.graph.n)))
    some = method.predict_proba(data.graph, task.task)
    assert np.allclose(everyone[task.query], some, atol=1e-5)


def test_the_unit_of_attributes_does_not_matter(planted: Dataset) -> None:
    """And a second network is read in the unit of the first: the model is the same function of a node everywhere."""
    graph = planted.graph
    louder = Graph(graph.adj, graph.x * np.float32(1000))
    one, two = (Adapt(scaling="raw", episodes=5).fit(g, *samplers(planted)) for g in (graph, louder))
    task = EpisodeSampler(planted, "test", 4, 3)[0].task
    assert np.allclose(one.predict_proba(graph, task), two.predict_proba(louder, task), atol=1e-4)
    assert not np.allclose(one.predict_proba(graph, task), one.predict_proba(louder, task), atol=1e-4)


@pytest.mark.parametrize("name", METHODS)
def test_divergence_names_the_episode(name: str, planted: Dataset) -> None:
    with pytest.raises(Diverged, match=r"the loss of episode \d+ is (nan|inf)"):
        fitted(planted, **METHODS[name], lr=1e30)


def test_divergence_in_an_answer_is_said(planted: Dataset) -> None:
    method = fitted(planted, episodes=2)
    method.inner_lr = 3e38
    with pytest.raises(Diverged, match="inner_lr below 3e"):
        ask(method, planted)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"encoder": "gcnn"}, "did you mean 'gcn'"),
        ({"hidden": (16, 8)}, "sgc has one layer"),
        ({"hidden": ()}, "expected 1 to 64 of them"),
        ({"steps": 0}, "at least one"),
        ({"inner_lr": float("nan")}, "above 0"),
        ({"dropout": 1.0}, "below 1"),
        ({"scaling": "tfidf"}, "did you mean 'tf-idf'"),
    ],
)
def test_wrong_options_are_refused_in_a_sentence(options: dict[str, Any], said: str, planted: Dataset) -> None:
    with pytest.raises(FewnodeError, match=said):
        fitted(planted, **options)


def test_a_network_without_attributes_is_refused_with_advice(planted: Dataset) -> None:
    bare = Graph(planted.graph.adj, sp.csr_array((planted.graph.n, 0), dtype=np.float32))
    with pytest.raises(FewnodeError, match="--features"):
        Adapt().fit(bare, *samplers(planted))


@pytest.mark.parametrize("dense", [False, True])
def test_steps_are_in_units_of_rows_that_are_not_empty(dense: bool) -> None:
    """By hand: rows of length 3, 4 and 5, and any number of empty ones."""
    x = sp.csr_array(np.array([[3, 0], [0, 4], [3, 4], *[[0, 0]] * 50], np.float32))
    assert typical_length(x.toarray() if dense else x) == pytest.approx((50 / 3) ** 0.5)
    assert typical_length(x[3:].toarray() if dense else x[3:]) == 0


def test_nodes_without_attributes_do_not_change_what_is_learned(planted: Dataset) -> None:
    """They are far away, in no class and of no edge: the same episodes, the same steps."""
    graph = planted.graph
    x = sp.vstack([graph.x, sp.csr_array((300, graph.n_features), dtype=np.float32)], format="csr")
    larger = replace(
        planted,
        graph=Graph.from_edges(graph.edge_index(), graph.n + 300, x),
        y=np.concatenate([planted.y, np.full(300, -1)]),
        node_names=None,
    )
    learned = []
    for data in (planted, larger):
        train, valid = (EpisodeSampler(data, part, 3, 3) for part in ("train", "valid"))
        learned.append(Adapt(**METHODS["maml"], episodes=10).fit(data.graph, train, valid))
    assert learned[0].unit_ == learned[1].unit_
    assert learned[0].unit_ * typical_length(scale(graph.x, "l2")) == pytest.approx(LENGTH)
    for name, tensor in learned[0].state().items():
        assert np.array_equal(tensor, learned[1].state()[name])
