"""Views are read at an effective rank, and a vector means the same however it is turned."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fewnode.dataset import Dataset
from fewnode.embedding.projection import ViewProjection, centred
from fewnode.embedding.sources import read_along
from fewnode.graph import Block, Graph
from fewnode.model.estimator import Estimator
from fewnode.vectors import unit_rows


@pytest.fixture(name="h")
def _h(rng: np.random.Generator) -> np.ndarray:
    """Rows whose axes matter less and less, along no axis of the coordinates."""
    turned, _ = np.linalg.qr(rng.normal(size=(60, 60)))
    scale = np.arange(1, 61.0) ** -0.7
    return ((rng.normal(size=(900, 60)) * scale) @ turned + 0.3).astype(np.float32)


@pytest.mark.parametrize("rank", [32, 16, 8])
def test_a_view_is_stretched_until_its_participation_ratio_is_the_rank(h: np.ndarray, rank: int) -> None:
    """The covariance of the stretched rows, by numpy."""
    projection = ViewProjection.of(h)
    stretched = centred(h, projection.mean) @ (projection.axes * projection.variance ** projection.power(rank))
    values = np.linalg.svd(stretched.astype(np.float64), compute_uv=False) ** 2
    assert values.sum() ** 2 / (values**2).sum() == pytest.approx(rank, rel=0.01)
    assert np.allclose(projection.read_all(h, [rank])[0], unit_rows(stretched), atol=1e-5)


# --- a vector means something as a whole ----------------------------------------------------------------------------


def vectors(data: Dataset, width: int = 40) -> Dataset:
    """The same network with dense vectors, whose axes matter more or less, in place of words."""
    rng = np.random.default_rng(1)
    middle = rng.normal(size=(len(data.class_names), width))
    x = (0.2 * middle[data.y] + 1.5 * rng.normal(size=(data.graph.n, width))) * np.linspace(3, 0.1, width)
    graph = Graph(data.graph.adj, x.astype(np.float32), blocks=(Block("vector", 0, width, "v"),))
    return replace(data, graph=graph)


def turned(data: Dataset, seed: int) -> Dataset:
    width = data.graph.n_features
    rotation, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(width, width)))
    x = (data.graph.x.astype(np.float64) @ rotation).astype(np.float32)
    return replace(data, graph=Graph(data.graph.adj, x, blocks=data.graph.blocks))


@pytest.mark.parametrize("rank", [64, 40])
def test_turning_a_block_of_vectors_changes_no_product_of_two_nodes(planted: Dataset, rank: int) -> None:
    plain = vectors(planted)
    seen = []
    for data in (plain, turned(plain, 2)):
        model = Estimator("gpn-plus", rank=rank).fit(replace(data, split=type(data.split)((), (), ())))
        z = model.embedding(data.graph)
        seen.append(z @ z.T)
    assert np.allclose(*seen, atol=2e-3)


def test_blocks_are_scaled_by_what_they_are(rng: np.random.Generator) -> None:
    x = rng.random((30, 4)).astype(np.float32)
    found = {kind: read_along(x, kind, 8, 0) for kind in ("words", "vector", "numbers", "")}
    assert {kind: axes.scaling for kind, axes in found.items()} == {
        "words": "log-tf-idf",
        "vector": "l2",
        "numbers": "tf-idf",
        "": "tf-idf",
    }
    assert found["vector"].idf is None
    assert np.allclose(found["numbers"].idf, 1 / x.std(axis=0), rtol=1e-5)
