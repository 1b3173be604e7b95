"""What a practitioner has without base classes, each against its equations, computed plainly."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from torch.nn import functional as F

from fewnode.dataset import Dataset
from fewnode.episodes import EpisodeSampler, Task
from fewnode.errors import FewnodeError
from fewnode.estimator import Estimator
from fewnode.graph import Graph
from fewnode.methods.table import build_method
from graphs import random_graph

NONE = EpisodeSampler.none()
GRAPHS = [random_graph(seed) for seed in (1, 4, 7, 12, 20)]


def answers(name: str, graph: Graph, task: Task, **options: Any) -> NDArray[np.float32]:
    method = build_method(name, 0, options)
    method.fit(graph, NONE, NONE)
    found: NDArray[np.float32] = method.predict_proba(graph, task)
    return found


def dense(graph: Graph) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    x = graph.x.toarray() if sp.issparse(graph.x) else graph.x
    return graph.adj.toarray().astype(np.float64), x.astype(np.float64)


def normalised(adj: NDArray[np.float64]) -> NDArray[np.float64]:
    closed = adj + np.eye(len(adj))
    scale = (adj.sum(axis=1) + 1) ** -0.5
    return np.asarray(scale[:, None] * closed * scale)


def unit(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(length == 0, 1, length))


def tf_idf(x: NDArray[np.float64]) -> NDArray[np.float64]:
    return unit(x * (np.log((1 + len(x)) / (1 + (x != 0).sum(axis=0))) + 1))


def task_of(graph: Graph) -> Task:
    """Two classes, of two nodes and of one, and every node asked about."""
    support = np.array([0, 1, graph.n - 1]) if graph.n > 2 else np.array([0, 1])
    return Task(support, np.array([0, 1, 0])[: support.size], np.arange(graph.n))


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("steps", [0, 2])
def test_logistic_is_scikit_learns_on_unit_rows_of_the_whole_product(graph: Graph, steps: int) -> None:
    adj, x = dense(graph)
    task = task_of(graph)
    h = unit(np.linalg.matrix_power(normalised(adj), steps) @ tf_idf(x))
    known = h.any(axis=1, keepdims=True)
    for centre, rows in ((False, h), (True, unit(h - h.sum(axis=0) / known.sum()) * known)):
        model = LogisticRegression(C=3.0, class_weight="balanced", tol=1e-8, max_iter=10_000)
        model.fit(rows[task.support], task.support_y)
        found = answers("logistic", graph, task, steps=steps, c=3.0, centre=centre)
        assert np.allclose(found, model.predict_proba(rows), atol=1e-4)


def spreading_matrix(graph: Graph) -> NDArray[np.float64]:
    adj = dense(graph)[0]
    adj = np.maximum(adj, adj.T)
    degree = np.maximum(adj.sum(axis=1), 1)
    return np.asarray(adj / np.sqrt(degree[:, None] * degree))


@pytest.mark.parametrize("graph", GRAPHS)
def test_label_spreading_is_where_the_iteration_comes_to_rest(graph: Graph) -> None:
    s, task = spreading_matrix(graph), task_of(graph)
    y = np.zeros((graph.n, 2))
    y[task.support, task.support_y] = 1
    f = y
    for _ in range(500):
        f = 0.9 * s @ f + 0.1 * y
    total = f.sum(axis=1, keepdims=True)
    expected = np.where(total > 1e-12, f / np.maximum(total, 1e-12), 0.5)
    assert np.allclose(answers("label-spreading", graph, task, alpha=0.9), expected, atol=1e-4)


@pytest.mark.parametrize("graph", GRAPHS)
def test_correct_and_smooth_by_the_equations(graph: Graph) -> None:
    s, task = spreading_matrix(graph), task_of(graph)
    z = answers("logistic", graph, task).astype(np.float64)
    y = np.eye(2)[task.support_y]

    def spread(start: NDArray[np.float64], alpha: float) -> NDArray[np.float64]:
        return np.asarray(np.linalg.solve(np.eye(graph.n) - alpha * s, (1 - alpha) * start))

    error = np.zeros_like(z)
    error[task.support] = y - z[task.support]
    moved = spread(error, 0.7)
    length = np.abs(moved).sum(axis=1)
    reached = length > 1e-6
    z[reached] += np.abs(error[task.support]).sum(axis=1).mean() * moved[reached] / length[reached, None]
    z[task.support] = y
    smooth = np.maximum(spread(z, 0.6), 0)
    expected = smooth / smooth.sum(axis=1, keepdims=True)
    found = answers("correct-and-smooth", graph, task, correct=0.7, smooth=0.6)
    assert np.allclose(found[length > 1e-4], expected[length > 1e-4], atol=1e-3)


@pytest.mark.parametrize("graph", GRAPHS)
def test_linear_gnns_by_the_pseudo_inverse(graph: Graph) -> None:
    adj, x = dense(graph)
    adj, x = np.maximum(adj, adj.T), unit(x)
    task = task_of(graph)
    p = adj / np.maximum(adj.sum(axis=1, keepdims=True), 1)
    high = np.eye(graph.n) - p
    filters = {"x": np.eye(graph.n), "sgc1": p, "sgc2": p @ p, "hgc1": high, "hgc2": high @ high}
    y = np.eye(2)[task.support_y]
    for channels in (("x",), ("sgc2", "hgc1"), tuple(filters)):
        each = [
            filters[name] @ x @ np.linalg.pinv((filters[name] @ x)[task.support], rcond=1e-6) @ y for name in channels
        ]
        expected = torch.softmax(torch.from_numpy(2 * np.mean(each, axis=0)), dim=1)
        found = answers("graphany", graph, task, channels=channels, sharpness=2.0)
        assert np.allclose(found, expected, atol=1e-4)


def test_nearest_mean_by_hand(star: Graph) -> None:
    """Fewer attributes than directions, so nothing is projected."""
    task = Task(np.array([0, 1, 2]), np.array([0, 0, 1]), np.arange(4))
    adj, x = dense(star)
    for steps in (0, 2):
        h = unit(np.linalg.matrix_power(normalised(adj), steps) @ tf_idf(x))
        z = unit(h - h.mean(axis=0))
        means = unit(np.stack([z[:2].mean(axis=0), z[2]]))
        expected = torch.softmax(torch.from_numpy(10 * z @ means.T), dim=1)
        assert np.allclose(answers("nearest-mean", star, task, steps=steps), expected, atol=1e-4)


@pytest.mark.parametrize("sparse", [False, True])
def test_the_gcn_is_kipf_and_wellings(planted: Dataset, sparse: bool) -> None:
    """Without dropout every step can be followed on the whole graph, with dense matrices and torch's own Adam."""
    graph = Graph(planted.graph.adj, planted.graph.x if sparse else planted.graph.x.toarray())
    task = Task(np.array([5, 9, 30, 31]), np.array([1, 1, 0, 2]), np.arange(graph.n))
    adj, x = dense(graph)
    a, h = (torch.from_numpy(m).float() for m in (normalised(adj), unit(x)))
    from fewnode.seeds import seeded

    with seeded(0):
        w0, w1 = (torch.nn.init.xavier_uniform_(torch.empty(s)).requires_grad_() for s in ((x.shape[1], 16), (16, 3)))
    adam = torch.optim.Adam([{"params": [w0], "weight_decay": 5e-4}, {"params": [w1]}], lr=0.01)
    y = torch.tensor([0, 0, 1, 2])  # classes in the order of their first node
    for _ in range(30):
        loss = F.cross_entropy((a @ (F.relu(a @ h @ w0) @ w1))[task.support], y)
        adam.zero_grad()
        loss.backward()
        adam.step()
    expected = (a @ (F.relu(a @ h @ w0) @ w1)).softmax(dim=1).detach().numpy()
    found = answers("gcn-support", graph, task, dropout=0.0, epochs=30)
    assert np.allclose(found[:, [1, 0, 2]], expected, atol=1e-3)


def test_dropout_is_drawn_by_the_seed(planted: Dataset) -> None:
    task = Task(np.array([5, 9, 30]), np.array([0, 1, 2]), np.arange(50, 60))
    found = [
        Estimator("gcn-support", seed=seed, epochs=20).method_.fit(planted.graph, NONE, NONE) for seed in (0, 0, 1)
    ]
    one, again, other = (method.predict_proba(planted.graph, task) for method in found)
    assert np.array_equal(one, again)
    assert not np.allclose(one, other)


@pytest.mark.parametrize("name", ["nearest-mean", "logistic", "correct-and-smooth", "graphany", "gcn-support"])
def test_without_attributes_they_say_what_to_do(name: str) -> None:
    bare = Graph.from_edges([[0, 1], [1, 2]], 3)
    with pytest.raises(FewnodeError, match="no attributes; use --features"):
        build_method(name, 0, {}).fit(bare, NONE, NONE)


def test_labels_spread_without_attributes_and_stay_within_reach() -> None:
    bare = Graph.from_edges([[0, 1, 3], [1, 2, 4]], 6)
    found = answers("label-spreading", bare, Task(np.array([0, 3]), np.array([0, 1]), np.array([2, 4, 5])))
    assert found.round(3).tolist() == [[1, 0], [0, 1], [0.5, 0.5]]


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("logistic", {"steps": -1}, "-1 steps, expected 0 to"),
        ("logistic", {"c": 0.0}, "c is 0.0, expected a number above 0"),
        ("logistic", {"scaling": "tfidf"}, "unknown scaling 'tfidf'"),
        ("label-spreading", {"alpha": 1.0}, "alpha is 1.0, expected 0 to below 1"),
        ("correct-and-smooth", {"smooth": -0.1}, "smooth is -0.1, expected 0 to below 1"),
        ("graphany", {"channels": ("sgc3",)}, "unknown channel 'sgc3'"),
        ("graphany", {"channels": ()}, "expected some of x, sgc1"),
        ("graphany", {"sharpness": 0.0}, "sharpness is 0.0"),
        ("gcn-support", {"epochs": 0}, "expected at least 1"),
        ("gcn-support", {"dropout": 1.0}, "dropout is 1.0"),
        ("gcn-support", {"lr": 0.0}, "lr is 0.0"),
    ],
)
def test_options_that_cannot_be_are_refused(name: str, options: dict[str, Any], message: str, planted: Dataset) -> None:
    with pytest.raises(FewnodeError, match=message):
        build_method(name, 0, options).fit(planted.graph, NONE, NONE)
