"""What a practitioner has without base classes, each against its equations, computed plainly."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from fewnode.episodes import EpisodeSampler, Task
from fewnode.graph import Graph
from fewnode.method import predict_tasks
from fewnode.methods.table import build_method
from graphs import random_graph

NONE = EpisodeSampler.none()
GRAPHS = [random_graph(seed) for seed in (1, 4, 7, 12, 20)]


def answers(name: str, graph: Graph, task: Task, **options: Any) -> NDArray[np.float32]:
    method = build_method(name, 0, options)
    method.fit(graph, NONE, NONE)
    found: NDArray[np.float32] = predict_tasks(method, graph, [task])[0]
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
