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
from fewnode.episodes import EpisodeSampler
from fewnode.errors import FewnodeError
from fewnode.formats.checkpoint import CHECKPOINT, Checkpoints
from fewnode.graph import Graph
from fewnode.methods import inner
from fewnode.methods.adapt import Adapt
from fewnode.methods.inner import SGC, FieldEncoder, Prepared, Support, adapt, logits
from fewnode.train import Diverged, History, Journal

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


def test_sgc_is_two_steps_of_propagation_and_one_product() -> None:
    g, graph = prepared(), small_graph()
    sgc = SGC(graph.n_features, 4).double()
    sgc.bias[0].data.uniform_()
    a, x = oracle.dense(graph, torch.float64)
    hat = oracle.propagation_matrix(a)
    expected = hat @ hat @ x @ sgc.weight[0] + sgc.bias[0]
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


@pytest.mark.parametrize("meta", [True, False])
@pytest.mark.parametrize("encoder", PYG)
def test_any_pyg_encoder_can_be_adapted(encoder: str, meta: bool, planted: Dataset) -> None:
    method = fitted(planted, encoder=encoder, meta=meta, hidden=(8, 8), episodes=3, inner_lr=0.05)
    p = ask(method, planted)
    assert np.allclose(p.sum(axis=1), 1, atol=1e-5)
    task = EpisodeSampler(planted, "test", 4, 3)[0]
    everyone = method.predict_proba(planted.graph, replace(task.task, query=np.arange(planted.graph.n)))
    assert np.allclose(everyone[task.query], p, atol=1e-4)


@pytest.mark.parametrize("name", METHODS)
def test_divergence_names_the_episode(name: str, planted: Dataset) -> None:
    with pytest.raises(Diverged, match=r"the loss of episode \d+ is (nan|inf)"):
        fitted(planted, **METHODS[name], lr=1e30)


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
