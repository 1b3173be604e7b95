"""The case study (section 5.4): one task looked at closely, small enough to be kept with the results."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewnode.dataset import Dataset
from fewnode.embedding.projection import Plane
from fewnode.episodes import EpisodeSampler, TaskSampler
from fewnode.errors import FewnodeError
from fewnode.interchange import PARTS
from fewnode.method import Embeds, SeesTask
from fewnode.model.estimator import Estimator
from fewnode.recognition.space import Space

CLOUD = 40
"""Nodes of a class on the map."""
WEIGHED = 300
"""Support nodes whose β is kept, at most."""

Vectors = NDArray[np.floating[Any]]


def look(model: Estimator, data: Dataset, way: int, shot: int, pool_seed: int) -> dict[str, Any]:
    """What the report draws of the first task of the pool: similarities, a map, β against degree, class sizes."""
    method, space = model.method_, None
    if isinstance(method, Embeds):
        space = model.space(data.graph)
    elif not isinstance(method, SeesTask):
        raise FewnodeError(f"{model.method} has no embedding to look at")
    sampler = EpisodeSampler(data, "test", way, shot, shot, pool_seed)
    task = sampler[0].task
    label = [int(data.y[task.support[task.support_y == c][0]]) for c in range(task.n_way)]
    members = [np.flatnonzero(data.y == c)[:CLOUD] for c in label]
    nodes = np.concatenate([task.support, task.query, *members])
    z = method.rows_in(data.graph, task, nodes) if space is None else space.embedding.z[nodes]
    support, query, cloud = np.split(z, np.cumsum([task.support.size, task.query.size]))
    beta = None if space is None else space.prepare(task).beta
    # β times the number of shots: an embedding of average weight stays where it is, and their mean is the prototype
    weighed = support if beta is None else support * (shot * beta)[:, None]
    prototypes = np.stack([weighed[task.support_y == c].mean(axis=0) for c in range(task.n_way)])
    plane = Plane.of(np.concatenate([support, cloud]))
    places = {"support": support, "prototypes": prototypes, "cloud": cloud}
    return {
        "classes": [data.class_names[c] for c in label],
        "similarity": _rounded(-np.linalg.norm(weighed[:, None] - query[None], axis=2)),
        "map": {
            "share": _rounded(plane.share),
            **{name: _rounded(plane.place(rows)) for name, rows in places.items()},
            "cloud_y": np.repeat(np.arange(task.n_way), [nodes.size for nodes in members]).tolist(),
        },
        "beta": None if space is None else _beta_by_degree(space, data, sampler),
        "class_sizes": {part: data.class_sizes[list(data.split.part(part))].tolist() for part in PARTS},
    }


def _beta_by_degree(space: Space, data: Dataset, sampler: TaskSampler) -> dict[str, Any] | None:
    """Degree and β of support nodes of many tasks; None for a method that weighs all alike."""
    tasks = [episode.task for episode in sampler.take(-(-WEIGHED // (sampler.n_way * sampler.k_shot)))]
    weights = [space.prepare(task).beta for task in tasks]
    beta = np.concatenate([b for b in weights if b is not None] or [np.zeros(0, np.float32)])
    if beta.size == 0 or np.ptp(beta) < 1e-6:
        return None
    degree = data.graph.degree[np.concatenate([task.support for task in tasks])]
    return {"degree": degree[:WEIGHED].tolist(), "beta": _rounded(beta[:WEIGHED]), "even": 1 / sampler.k_shot}


def _rounded(values: Vectors) -> Any:
    """Four significant digits: a figure shows no more."""
    return np.vectorize(lambda value: float(f"{value:.4g}"), otypes=[float])(values).tolist()
