"""The case study: what is drawn of one task."""

from __future__ import annotations

import json

import numpy as np
import pytest

from fewnode.dataset import Dataset
from fewnode.embedding.projection import Plane
from fewnode.episodes import EpisodeSampler
from fewnode.errors import FewnodeError
from fewnode.model.estimator import Estimator
from fewnode.paper.case import look

TASK = (4, 3, 0)
"""N, K and the seed of the pool."""


@pytest.mark.parametrize("method", ["gpn", "gpn-naive", "meta-gnn", "maml", "propagation"])
def test_a_task_as_a_method_sees_it(planted: Dataset, method: str) -> None:
    options = {} if method == "propagation" else {"episodes": 10}
    model = Estimator(method, 4, 3, **options).fit(planted)
    found = look(model, planted, *TASK)
    matrix = np.array(found["similarity"])
    assert matrix.shape == (12, 12)
    assert (matrix <= 0).all()
    own = np.kron(np.eye(4, dtype=bool), np.ones((3, 3), dtype=bool))
    assert matrix[own].mean() > matrix[~own].mean()  # nearer within a class
    assert len(found["classes"]) == len(found["map"]["prototypes"]) == 4
    assert (found["beta"] is not None) == (method == "gpn")
    assert len(json.dumps(found)) < 20_000


def test_weighed_by_beta_the_mean_is_the_prototype(planted: Dataset) -> None:
    model = Estimator("gpn", 4, 3, episodes=10).fit(planted)
    task = EpisodeSampler(planted, "test", 4, 3, 3)[0]
    z = model.embedding(planted)
    beta = model.explain(planted.graph, task.support, task.support_y, task.query).beta
    prototype = (beta[:3, None] * z[task.support[:3]]).sum(axis=0)
    found = look(model, planted, *TASK)["map"]
    cloud = np.concatenate([np.flatnonzero(planted.y == planted.y[task.support[3 * c]])[:40] for c in range(4)])
    plane = Plane.of(np.concatenate([z[task.support], z[cloud]]))
    assert np.allclose(found["prototypes"][0], plane.place(prototype), rtol=1e-3, atol=1e-3)


def test_a_method_without_an_embedding_says_so(planted: Dataset, tmp_path) -> None:
    (tmp_path / "own.py").write_text(
        "class Own:\n    def fit(self, *a): return self\n    def predict_proba(self, *a): return None\n"
    )
    model = Estimator(f"{tmp_path}/own.py:Own", 4, 3).fit(planted)
    with pytest.raises(FewnodeError, match="has no embedding to look at"):
        look(model, planted, *TASK)
