"""The case study (section 5.4): one task looked at closely, small enough to be kept with the results."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from fewnode.dataset import Dataset
from fewnode.episodes import EpisodeSampler, Task
from fewnode.errors import FewnodeError
from fewnode.estimator import Estimator
from fewnode.experiment.grid import Cell
from fewnode.graph import Ints
from fewnode.methods.adapt import Adapt
from fewnode.recognition.prototypes import Prototypical
from fewnode.represent.projection import Plane

PARTS = ("train", "valid", "test")
CLOUD = 40
"""Nodes of a class on the map."""
WEIGHED = 300
"""Support nodes whose β is kept, at most."""

Vectors = NDArray[np.floating[Any]]


def look(model: Estimator, data: Dataset, cell: Cell) -> dict[str, Any]:
    """What the report draws of the first task of the pool: similarities, a map, β against degree, class sizes."""
    sampler = EpisodeSampler(data, "test", cell.way, cell.shot, cell.shot, cell.pool_seed)
    task = sampler[0].task
    label = [int(data.y[task.support[task.support_y == c][0]]) for c in range(task.n_way)]
    members = [np.flatnonzero(data.y == c)[:CLOUD] for c in label]
    z = _embed(model, data, task, np.concatenate([task.support, task.query, *members]))
    support, query, cloud = np.split(z, np.cumsum([task.support.size, task.query.size]))
    weight = _beta(model, data, task)
    # β times the number of shots: an embedding of average weight stays where it is, and their mean is the prototype
    weighed = support if weight is None else support * (cell.shot * weight)[:, None]
    prototypes = np.stack([weighed[task.support_y == c].mean(axis=0) for c in range(task.n_way)])
    plane = Plane.of(np.concatenate([support, cloud]))
    return {
        "classes": [data.class_names[c] for c in label],
        "similarity": _rounded(-distances(weighed, query)),
        "map": {
            "share": _rounded(plane.share),
            "support": _rounded(plane.place(support)),
            "prototypes": _rounded(plane.place(prototypes)),
            "cloud": _rounded(plane.place(cloud)),
            "cloud_y": np.repeat(np.arange(task.n_way), [nodes.size for nodes in members]).tolist(),
        },
        "beta": _beta_by_degree(model, data, sampler),
        "class_sizes": {part: data.class_sizes[list(data.split.part(part))].tolist() for part in PARTS},
    }


def _embed(model: Estimator, data: Dataset, task: Task, nodes: Ints) -> Vectors:
    """z of the nodes, as the method sees them in this task: an encoder that adapts to its support has done so."""
    method, graph = model.method_, model._read(data.graph)
    if isinstance(method, Adapt):
        return method.rows_in(graph, task, nodes).numpy()
    if not hasattr(method, "embedding"):
        raise FewnodeError(f"{model.method} has no embedding to look at")
    found = method.embedding(graph)
    z = found[0] if isinstance(found, tuple) else found
    return np.asarray(z.numpy() if isinstance(z, torch.Tensor) else z, np.float32)[nodes]


def _beta(model: Estimator, data: Dataset, task: Task) -> Vectors | None:
    """The weight of each support node in its prototype, if the method weighs them."""
    method = model.method_
    if not isinstance(method, Prototypical):
        return None
    return method.prepare(model._read(data.graph), task.support, task.support_y).beta.numpy()


def _beta_by_degree(model: Estimator, data: Dataset, sampler: EpisodeSampler) -> dict[str, list[float]] | None:
    """Degree and β of support nodes of many tasks; None for a method that weighs all alike."""
    tasks = [episode.task for episode in sampler.take(-(-WEIGHED // (sampler.n_way * sampler.k_shot)))]
    found = [_beta(model, data, task) for task in tasks]
    beta = np.concatenate([b for b in found if b is not None] or [np.zeros(0, np.float32)])
    if beta.size == 0 or np.ptp(beta) < 1e-6:
        return None
    degree = data.graph.degree[np.concatenate([task.support for task in tasks])]
    return {"degree": degree[:WEIGHED].tolist(), "beta": _rounded(beta[:WEIGHED]), "even": 1 / sampler.k_shot}


def distances(a: Vectors, b: Vectors) -> Vectors:
    """Euclidean, of each row of a to each row of b."""
    found: Vectors = np.linalg.norm(a[:, None] - b[None], axis=2)
    return found


def _rounded(values: Vectors) -> Any:
    """Four significant digits: a figure shows no more."""
    return [[_short(v) for v in row] if isinstance(row, np.ndarray) else _short(row) for row in values]


def _short(value: np.floating[Any]) -> float:
    return float(f"{float(value):.4g}")
