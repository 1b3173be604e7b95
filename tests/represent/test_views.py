"""Views are read at an effective rank, and a vector means the same however it is turned."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fewnode.dataset import Dataset
from fewnode.estimator import Estimator
from fewnode.graph import Block, Graph
from fewnode.protocols.all_classes import evaluate_all_classes
from fewnode.represent.projection import AS_IT_IS, LEAST_POWER, ViewFusion, ViewProjection, centred, effective_rank
from fewnode.represent.sources import attribute_sources, read_along
from fewnode.represent.views import RANKS
from fewnode.vectors import unit_rows


@pytest.fixture(name="h")
def _h(rng: np.random.Generator) -> np.ndarray:
    """Rows whose axes matter less and less, along no axis of the coordinates."""
    turned, _ = np.linalg.qr(rng.normal(size=(60, 60)))
    scale = np.arange(1, 61.0) ** -0.7
    return ((rng.normal(size=(900, 60)) * scale) @ turned + 0.3).astype(np.float32)


def test_effective_rank_by_hand() -> None:
    assert effective_rank(np.ones(7)) == pytest.approx(7)
    assert effective_rank(np.array([5.0, 0, 0])) == pytest.approx(1)
    assert effective_rank(np.array([3.0, 1.0])) == pytest.approx(16 / 10)


@pytest.mark.parametrize("rank", [32, 16, 8])
def test_a_view_is_stretched_until_its_participation_ratio_is_the_rank(h: np.ndarray, rank: int) -> None:
    """The covariance of the stretched rows, by numpy."""
    projection = ViewProjection.of(h)
    stretched = centred(h, projection.mean) @ (projection.axes * projection.variance ** projection.power(rank))
    values = np.linalg.svd(stretched.astype(np.float64), compute_uv=False) ** 2
    assert values.sum() ** 2 / (values**2).sum() == pytest.approx(rank, rel=0.01)
    assert np.allclose(projection.read(h, rank), unit_rows(stretched), atol=1e-5)


def test_the_smaller_the_rank_the_more_the_leading_axes_count(h: np.ndarray) -> None:
    projection = ViewProjection.of(h)
    powers = [projection.power(rank) for rank in RANKS if rank != AS_IT_IS]
    assert powers == sorted(powers)
    seen = [effective_rank(np.linalg.svd(projection.read(h, rank), compute_uv=False) ** 2) for rank in (32, 16, 8)]
    assert seen == sorted(seen, reverse=True)


def test_a_rank_that_a_view_does_not_have_is_as_near_as_can_be(rng: np.random.Generator) -> None:
    h = (rng.normal(size=(50, 3)) * [5, 1, 0.1]).astype(np.float32)
    projection = ViewProjection.of(h)
    assert projection.power(64) == pytest.approx(LEAST_POWER, abs=1e-6)
    assert np.isfinite(projection.read(h, 64)).all()


def test_as_it_is_a_view_is_only_centred(h: np.ndarray) -> None:
    projection = ViewProjection.of(h)
    assert np.array_equal(projection.read(h), centred(h, projection.mean))


def test_rows_of_zeros_stay_zeros_at_every_rank(h: np.ndarray) -> None:
    h = np.concatenate([h, np.zeros((1, h.shape[1]), np.float32)])
    projection = ViewProjection.of(h)
    assert all(not projection.read(h, rank)[-1].any() for rank in RANKS)


def test_a_fusion_keeps_the_products_of_rows_that_it_has_room_for(h: np.ndarray) -> None:
    away = h - h.mean(axis=0)
    for rank in (60, 100):
        z = ViewFusion.of([[h[:300]], [h[300:]]], rank).read([h])
        assert np.allclose(z @ z.T, unit_rows(away) @ unit_rows(away).T, atol=1e-4)
    assert ViewFusion.of([[h]], 10).read([h]).shape == (900, 10)


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
        z = model.embedded(data.graph).z
        seen.append(z @ z.T)
    assert np.allclose(*seen, atol=2e-3)


def test_turning_a_block_of_vectors_changes_no_accuracy(planted: Dataset) -> None:
    plain = vectors(planted)
    found = [evaluate_all_classes("gpn-plus", data, shot=3, draws=5).accuracy for data in (plain, turned(plain, 3))]
    assert abs(found[0].mean - found[1].mean) < 0.005
    assert 0.3 < found[0].mean < 0.99, "not so easy that nothing could change it"


def test_turning_numbers_does_change_them(planted: Dataset) -> None:
    """What makes the test above worth something: columns with a meaning of their own are scaled one by one."""
    plain = vectors(planted)
    numbers = [
        replace(data, graph=Graph(data.graph.adj, data.graph.x, blocks=(Block("numbers", 0, 40),)))
        for data in (plain, turned(plain, 2))
    ]
    z = [attribute_sources(data.graph, 64, 0)[0].read(data.graph.x) for data in numbers]
    assert not np.allclose(z[0] @ z[0].T, z[1] @ z[1].T, atol=0.05)


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


def test_a_number_that_is_the_same_everywhere_is_no_reason_to_divide_by_zero() -> None:
    x = np.array([[5, 1], [5, 2], [5, 4]], np.float32)
    axes = read_along(x, "numbers", 8, 0)
    assert axes.idf is not None
    assert axes.idf[0] == 1
    assert np.isfinite(axes.read(x)).all()


def test_columns_outside_of_blocks_are_a_source_of_their_own() -> None:
    x = np.random.default_rng(0).random((20, 9)).astype(np.float32)
    blocks = (Block("words", 1, 3), Block("vector", 3, 6), Block("vector", 7, 9))
    graph = Graph.from_edges(np.zeros((2, 0), np.int64), 20, x, blocks=blocks)
    found = [(source.name, source.start, source.stop) for source in attribute_sources(graph, 8, 0)]
    assert found == [
        ("attributes", 0, 1),
        ("words", 1, 3),
        ("vector", 3, 6),
        ("attributes 2", 6, 7),
        ("vector 2", 7, 9),
    ]


def test_the_fusion_sees_along_the_leading_axes_of_all_products() -> None:
    """Of few axes among many columns only those are computed, and of products only one half."""
    e = (np.random.default_rng(0).normal(size=(400, 600)) * np.linspace(0.1, 2, 600)).astype(np.float32)
    found = ViewFusion.of([[e[:150]], [e[150:]]], 32)
    centred_rows = e - e.mean(axis=0, dtype=np.float64)
    axes = np.linalg.eigh(centred_rows.T @ centred_rows)[1][:, -32:]
    assert np.allclose(found.projection @ found.projection.T, axes @ axes.T, atol=1e-4)
