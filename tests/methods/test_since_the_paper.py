"""Methods since the paper, each against its source's equations, computed plainly."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from torch.nn import functional as F

from fewnode.dataset import Dataset
from fewnode.episodes import EpisodeSampler, Task
from fewnode.errors import FewnodeError
from fewnode.graph import Graph
from fewnode.methods.grace import info_nce, prelu
from fewnode.methods.graph_views import EdgeDropping, View
from fewnode.methods.naq import NaQ, NeighbourEpisodes
from fewnode.methods.table import build_method
from graphs import random_graph

NONE = EpisodeSampler.none()
QUICK: dict[str, dict[str, Any]] = {
    "grace": {"epochs": 3, "hidden": 6, "lr": 0.01},
    "naq": {"episodes": 3, "hidden": 6, "batch": 3, "lr": 0.01},
}


def dense(graph: Graph) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    x = graph.x if isinstance(graph.x, np.ndarray) else graph.x.toarray()
    return graph.adj.toarray().astype(np.float64), x.astype(np.float64)


def normalised(adj: NDArray[np.float64]) -> torch.Tensor:
    closed = adj + np.eye(len(adj))
    scale = closed.sum(axis=1) ** -0.5
    return torch.from_numpy(scale[:, None] * closed * scale)


def unit(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(length == 0, 1, length))


def encoded(weights: dict[str, torch.Tensor], a_hat: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Two GCN layers with ReLU on the whole graph, in dense matrices: NaQ's."""
    h = F.relu(a_hat @ x @ weights["directions"] @ weights["weight.0"] + weights["bias.0"])
    return F.relu(a_hat @ h @ weights["weight.1"] + weights["bias.1"])


def contrasted(
    weights: dict[str, torch.Tensor], a_hat: torch.Tensor, x: torch.Tensor, training: bool = False
) -> torch.Tensor:
    """Two GCN layers with batch normalisation and PReLU on the whole graph, in dense matrices: GRACE's."""
    h = a_hat @ x @ weights["directions"] @ weights["weight.0"]
    mean, variance = (h.mean(dim=0), h.var(dim=0, correction=0)) if training else (weights["mean"], weights["variance"])
    h = (h - mean) / (variance + 1e-5).sqrt() * weights["scale"] + weights["shift"]
    return bent(a_hat @ bent(h, weights["slope"]) @ weights["weight.1"] + weights["bias"], weights["slope"])


def bent(h: torch.Tensor, slope: torch.Tensor) -> torch.Tensor:
    return torch.where(h > 0, h, slope * h)


def tf_idf(x: NDArray[np.float64]) -> NDArray[np.float64]:
    return unit(x * (np.log((1 + len(x)) / (1 + (x != 0).sum(axis=0))) + 1))


def encoder_of(method: Any) -> dict[str, torch.Tensor]:
    return {name.removeprefix("module."): tensor.double() for name, tensor in method.state().items()}


def test_info_nce_is_the_equation_of_grace() -> None:
    """Eqs. (1)-(2), written as sums over pairs."""
    u, v, tau = torch.randn(7, 4).double(), torch.randn(7, 4).double(), 0.6

    def similar(a: torch.Tensor, b: torch.Tensor) -> float:
        return float(torch.exp(a @ b / (a.norm() * b.norm()) / tau))

    total = 0.0
    for one, other in ((u, v), (v, u)):
        for i in range(7):
            pairs = [similar(one[i], other[k]) for k in range(7)] + [
                similar(one[i], one[k]) for k in range(7) if k != i
            ]
            total -= np.log(similar(one[i], other[i]) / sum(pairs))
    assert float(info_nce(u, v, tau)) == pytest.approx(total / 14, abs=1e-6)


def test_a_view_is_the_normalised_matrix_of_the_edges_that_are_left(planted: Dataset) -> None:
    dropping, adj = EdgeDropping(planted.graph.adj), planted.graph.adj.toarray()
    assert np.allclose(dropping.view(0.0, np.random.default_rng(0)).to_dense(), normalised(adj), atol=1e-6)
    found = dropping.view(0.3, np.random.default_rng(0)).to_dense().numpy()
    left = (found > 0) & (adj > 0)
    assert abs(1 - left.sum() / (adj > 0).sum() - 0.3) < 0.05
    assert np.allclose(found, normalised(left.astype(float)), atol=1e-6)


@pytest.mark.parametrize(("name", "encode"), [("grace", contrasted), ("naq", encoded)])
@pytest.mark.parametrize("sparse", [False, True])
def test_the_answer_is_regression_on_centred_rows_of_the_encoder(name: str, encode: Any, sparse: bool) -> None:
    graph = random_graph(7)
    x = dense(graph)[1]
    graph = graph if sparse else Graph(graph.adj, x.astype(np.float32))
    method = build_method(name, 0, QUICK[name])
    method.fit(graph, NONE, NONE)
    a_hat = torch.from_numpy(np.asarray(normalised_in(graph)))
    z = unit(encode(encoder_of(method), a_hat, torch.from_numpy(tf_idf(x))).numpy())
    known = z.any(axis=1, keepdims=True)
    z = unit(z - z.sum(axis=0) / max(1, known.sum())) * known
    task = Task(np.array([0, 1, graph.n - 1]), np.array([0, 1, 0]), np.arange(graph.n))
    model = LogisticRegression(C=method.c, class_weight="balanced", tol=1e-8, max_iter=10_000)
    expected = model.fit(z[task.support], task.support_y).predict_proba(z)
    assert np.allclose(method.predict_proba(graph, task), expected, atol=1e-3)


def normalised_in(graph: Graph) -> NDArray[np.float64]:
    adj = graph.adj.toarray().astype(np.float64)
    scale = (adj.sum(axis=1) + 1) ** -0.5
    return np.asarray(scale[:, None] * (adj + np.eye(graph.n)) * scale)


def test_grace_takes_a_step_of_adam_down_its_loss(planted: Dataset) -> None:
    """All nodes in the batch and nothing dropped: both views are the graph, and the loss can be followed densely."""
    still: dict[str, Any] = {
        "hidden": 6,
        "drop_edges": (0, 0),
        "drop_columns": (0, 0),
        "weight_decay": 0.0,
        "batch": 10**6,
    }
    method = build_method("grace", 3, {**still, "epochs": 1, "lr": 0.01})
    before = start_of(method, planted.graph)
    method.fit(planted.graph, NONE, NONE)
    adj, x = dense(planted.graph)
    weights = {name: tensor.double().requires_grad_() for name, tensor in before.items()}
    z = contrasted(weights, normalised(adj), torch.from_numpy(tf_idf(x)), training=True)
    h = (
        F.elu(z @ weights["head.0.weight"].T + weights["head.0.bias"]) @ weights["head.2.weight"].T
        + weights["head.2.bias"]
    )
    info_nce(h, h, method.tau).backward()
    for name, tensor in method.module_.named_parameters():
        gradient = weights[name].grad
        assert gradient is not None
        clear = gradient.abs() > 1e-5  # the first step of Adam is lr times the sign
        assert torch.allclose((before[name] - tensor).double()[clear], 0.01 * gradient.sign()[clear], atol=1e-4)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("batch", [4, 60, 10**6])
def test_a_view_is_encoded_as_from_the_masked_attributes_themselves(planted: Dataset, sparse: bool, batch: int) -> None:
    """X V is known beforehand, and what is masked taken off: as X without those columns, times V, for all nodes."""
    adj, x = dense(planted.graph)
    graph = planted.graph if sparse else Graph(planted.graph.adj, x.astype(np.float32))
    method = build_method("grace", 3, {**QUICK["grace"], "scaling": "raw"}).fit(graph, NONE, NONE)
    method.module_.eval()
    rng = np.random.default_rng(5)
    for rate in (0.0, 0.4, 0.9):
        view = View(rng.random(graph.n_features) < rate, EdgeDropping(graph.adj).view(rate, rng))
        anchors = torch.from_numpy(rng.permutation(graph.n)[:batch])
        with torch.no_grad():
            found = method.module_(method._read(graph), anchors, view)
            whole = method.module_(method._read(graph), anchors)
        a_hat, weights = view.adj.to_dense().double(), encoder_of(method)
        assert torch.allclose(
            found.double(), contrasted(weights, a_hat, torch.from_numpy(x * ~view.masked))[anchors], atol=1e-5
        )
        assert torch.allclose(
            whole.double(), contrasted(weights, normalised(adj), torch.from_numpy(x))[anchors], atol=1e-5
        )


def test_prelu_is_that_of_torch_backwards_too() -> None:
    h, slope = torch.randn(30, 7, requires_grad=True), torch.tensor([0.3], requires_grad=True)
    up = torch.randn(30, 7)
    found, expected = (torch.autograd.grad((f(h, slope) * up).sum(), [h, slope]) for f in (prelu, F.prelu))
    assert torch.equal(prelu(h, slope), F.prelu(h, slope))
    assert all(torch.allclose(a, b, atol=1e-5) for a, b in zip(found, expected, strict=True))


def start_of(method: Any, graph: Graph) -> dict[str, torch.Tensor]:
    """The weights that `fit` begins with: those of no learning at all."""
    twin = build_method("grace", method.seed, {"hidden": method.hidden, "epochs": 1, "lr": 1e-30})
    twin.fit(graph, NONE, NONE)
    return {name: tensor.clone() for name, tensor in twin.module_.state_dict().items()}


@pytest.mark.parametrize("similarity", ["attributes", "diffusion"])
def test_queries_of_naq_are_the_most_similar_nodes(planted: Dataset, similarity: str) -> None:
    graph = planted.graph
    drawn = NeighbourEpisodes(graph, NaQ(similarity=similarity, classes=4, queries=3, alpha=0.2, seed=5))
    adj, x = dense(graph)
    if similarity == "attributes":
        rows = unit(x)
        expected = rows @ rows.T
    else:
        expected = 0.2 * np.linalg.inv(np.eye(graph.n) - 0.8 * normalised(adj).numpy())
    np.fill_diagonal(expected, -np.inf)
    seen = set()
    for t in range(20):
        episode = drawn[t]
        seen |= set(episode.support.tolist())
        assert episode.support_y.tolist() == [0, 1, 2, 3]
        assert episode.query_y.tolist() == np.repeat(range(4), 3).tolist()
        for node, queries in zip(episode.support, episode.query.reshape(4, 3), strict=True):
            best = np.sort(expected[node])[::-1][:3]
            assert np.allclose(expected[node][queries], best, atol=1e-4)  # ties may fall either way
    assert len(seen) > 30


def test_naq_learns_by_distance_to_prototypes_of_one_node(planted: Dataset) -> None:
    """The first step of Adam goes down Eq. (4), the loss of a prototypical network, of the drawn episode."""
    options: dict[str, Any] = {"hidden": 6, "batch": 1, "episodes": 1, "classes": 3, "queries": 2}
    before, after = ({}, {})
    for lr, into in ((1e-30, before), (0.01, after)):
        method = build_method("naq", 2, {**options, "lr": lr})
        method.fit(planted.graph, NONE, NONE)
        into.update({name: tensor.clone() for name, tensor in method.module_.state_dict().items()})
    episode = NeighbourEpisodes(planted.graph, method)[0]
    adj, x = dense(planted.graph)
    weights = {name: tensor.double().requires_grad_() for name, tensor in before.items()}
    z = encoded(weights, normalised(adj), torch.from_numpy(tf_idf(x)))
    distance = torch.stack([((z[q] - z[episode.support]) ** 2).sum(dim=1) for q in episode.query])
    F.cross_entropy(-distance, torch.from_numpy(episode.query_y)).backward()
    assert torch.equal(before["directions"], after.pop("directions"))
    for name, tensor in after.items():
        gradient = weights[name].grad
        assert gradient is not None
        clear = gradient.abs() > 1e-5
        assert clear.any()
        assert torch.allclose((before[name] - tensor).double()[clear], 0.01 * gradient.sign()[clear], atol=1e-4)


@pytest.mark.parametrize("name", QUICK)
def test_other_seeds_other_weights(name: str, planted: Dataset) -> None:
    found = [
        build_method(name, seed, QUICK[name]).fit(planted.graph, NONE, NONE).embedding(planted.graph)
        for seed in (0, 0, 1)
    ]
    assert np.array_equal(found[0], found[1])
    assert not np.allclose(found[0], found[2])


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("grace", {"tau": 0.0}, "tau is 0.0"),
        ("grace", {"batch": 1}, "at least 2"),
        ("grace", {"drop_edges": (0.1,)}, "drop_edges is .0.1., expected two rates"),
        ("grace", {"drop_columns": (0.1, 1.0)}, "expected two rates from 0 to below 1"),
        ("grace", {"rank": 0}, "a rank of 0, expected 1 to 4096"),
        ("grace", {"epochs": 0}, "0 steps of training"),
        ("grace", {"c": 0.0}, "c is 0.0, expected a number above 0"),
        ("grace", {"lr": 0.0}, "lr is 0.0"),
        ("naq", {"similarity": "words"}, "unknown similarity 'words', expected attributes or diffusion"),
        ("naq", {"classes": 1}, "1 classes, 10 queries"),
        ("naq", {"alpha": 1.0}, "alpha is 1.0"),
        ("naq", {"hidden": 0}, "0 units"),
    ],
)
def test_options_that_cannot_be_are_refused(name: str, options: dict[str, Any], message: str, planted: Dataset) -> None:
    with pytest.raises(FewnodeError, match=message):
        build_method(name, 0, options).fit(planted.graph, NONE, NONE)
