"""MAML, Meta-GNN, GCN and SGC: the inner loop, its gradient, and what is learned around it."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch import Tensor
from torch.nn import functional as F

import oracle
from fewnode.dataset import Dataset
from fewnode.episodes import EpisodeSampler
from fewnode.errors import FewnodeError
from fewnode.formats.checkpoint import CHECKPOINT, Checkpoints
from fewnode.graph import Graph
from fewnode.methods import adapt as adaptation
from fewnode.methods.adapt import ENCODERS, FIRST, Adapt, Field, Reading, Weights, adapt, logits
from fewnode.train import Diverged, History, Journal

METHODS: dict[str, dict[str, Any]] = {
    "maml": {"encoder": "mlp", "hidden": (8, 8)},
    "meta-gnn": {},
    "gcn": {"meta": False, "encoder": "gcn", "hidden": (8, 8), "dropout": 0.5},
    "sgc": {"meta": False},
}
WIDTHS = {"sgc": (4,), "gcn": (5, 4), "mlp": (5, 4)}
Y = torch.tensor([0, 1, 1, 2, 2, 2])
NODES = np.array([3, 7, 19, 11, 5, 6])
"""Three classes with one, two and three shots; node 19 is isolated."""
QUERY, QUERY_Y = np.array([1, 8, 9, 4]), torch.tensor([0, 1, 2, 1])


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


def read(encoder: str) -> tuple[Reading, Weights]:
    """The graph in double precision, and weights; biases too, for at zero ReLU has a kink."""
    graph = small_graph()
    reading = Reading.of(encoder, len(WIDTHS[encoder]), graph, graph.x)
    reading = Reading(encoder, reading.layers, reading.a_hat.astype(float), reading.x.astype(float))
    torch.manual_seed(0)
    widths, weights = (12, *WIDTHS[encoder]), {}
    for layer, (a, b) in enumerate(pairwise(widths)):
        weights[f"encoder.weight.{layer}"] = (0.7 * torch.randn(a, b, dtype=torch.float64)).requires_grad_()
        weights[f"encoder.bias.{layer}"] = (0.3 * torch.randn(b, dtype=torch.float64)).requires_grad_()
    return reading, weights


def query_loss(reading: Reading, weights: Weights, second_order: bool) -> Tensor:
    adapted = adapt(reading, weights, reading.field(NODES), Y, steps=4, lr=0.4, second_order=second_order)
    return F.cross_entropy(logits(reading, adapted, reading.field(QUERY)), QUERY_Y)


def plain_adapt(reading: Reading, weights: Weights, field: Field, steps: int, lr: float) -> Weights:
    """Each weight follows its own gradient, the widest one too: Algorithm 2 as it is written."""
    width = reading.encode(weights, field).shape[1]
    head = {"head": torch.zeros(width, 3).double(), "bias": torch.zeros(3).double()}
    weights = {**weights, **{name: tensor.requires_grad_() for name, tensor in head.items()}}
    for _ in range(steps):
        loss = F.cross_entropy(logits(reading, weights, field), Y, 1 / torch.bincount(Y).double())
        slopes = torch.autograd.grad(loss, list(weights.values()))
        weights = {name: weight - lr * slope for (name, weight), slope in zip(weights.items(), slopes, strict=True)}
    return weights


# --- the inner loop -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gram", [0, 1024], ids=["many rows", "few rows"])
@pytest.mark.parametrize("encoder", ENCODERS)
def test_second_order_gradient_equals_finite_differences(
    encoder: str, gram: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adaptation, "MAX_GRAM", gram)
    reading, weights = read(encoder)
    slopes = torch.autograd.grad(query_loss(reading, weights, True), list(weights.values()))
    for weight, slope in zip(weights.values(), slopes, strict=True):
        direction, value = torch.randn_like(weight), weight.detach().clone()
        around = []
        for sign in (1, -1):
            weight.data = value + sign * 1e-6 * direction
            around.append(query_loss(reading, weights, False).item())
        weight.data = value
        assert (around[0] - around[1]) / 2e-6 == pytest.approx(float((slope * direction).sum()), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("encoder", ENCODERS)
def test_first_order_gradient_is_the_one_at_the_adapted_weights(encoder: str) -> None:
    reading, weights = read(encoder)
    first = torch.autograd.grad(query_loss(reading, weights, False), list(weights.values()))
    adapted = plain_adapt(reading, weights, reading.field(NODES), steps=4, lr=0.4)
    loss = F.cross_entropy(logits(reading, adapted, reading.field(QUERY)), QUERY_Y)
    there = torch.autograd.grad(loss, [adapted[name] for name in weights])
    second = torch.autograd.grad(query_loss(reading, weights, True), list(weights.values()))
    assert all(torch.allclose(a, b) for a, b in zip(first, there, strict=True))
    assert not all(torch.allclose(a, b, rtol=1e-3) for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize("gram", [0, 1024], ids=["many rows", "few rows"])
@pytest.mark.parametrize("encoder", ENCODERS)
def test_the_widest_weight_moves_as_if_it_followed_its_gradient(
    encoder: str, gram: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adaptation, "MAX_GRAM", gram)
    reading, weights = read(encoder)
    for nodes in (NODES, np.arange(6), np.array([19, 18, 17, 16, 2, 2])):
        field = reading.field(nodes)
        ours, plain = adapt(reading, weights, field, Y, 6, 0.4), plain_adapt(reading, weights, field, 6, 0.4)
        assert ours.keys() == plain.keys()
        assert all(torch.allclose(ours[name], plain[name]) for name in plain)


@pytest.mark.parametrize("encoder", ENCODERS)
def test_encoders_are_products_of_dense_matrices(encoder: str) -> None:
    reading, weights = read(encoder)
    a, x = oracle.dense(small_graph(), torch.float64)
    hat = oracle.propagation_matrix(a)
    w, b = ([weights[f"encoder.{what}.{i}"] for i in range(reading.layers)] for what in ("weight", "bias"))
    expected = {
        "sgc": lambda: hat @ hat @ x @ weights[FIRST] + b[0],
        "gcn": lambda: torch.relu(hat @ torch.relu(hat @ x @ w[0] + b[0]) @ w[1] + b[1]),
        "mlp": lambda: torch.relu(torch.relu(x @ w[0] + b[0]) @ w[1] + b[1]),
    }[encoder]()
    for nodes in (np.arange(20), np.array([0, 19, 4, 4])):
        assert torch.allclose(reading.encode(weights, reading.field(nodes)), expected[nodes], atol=1e-6)


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
