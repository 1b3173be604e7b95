"""Diffusions and coordinates: by hand, against dense matrices, and what must not matter."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from fewnode.embedding.diffusion import WALK, Diffusion, diffused, operators, random_walk
from fewnode.embedding.structure import structure, two_step_information, walked
from fewnode.engine.sparse import normalised
from fewnode.graph import Graph
from fewnode.vectors import unit_rows
from graphs import random_graph, weighted_graph


@pytest.mark.parametrize("diffusion", [Diffusion(0), Diffusion(3), Diffusion(4, 0.15), Diffusion(2, over=WALK)])
@pytest.mark.parametrize("drawn", [random_graph, weighted_graph])
def test_diffusion_is_that_of_dense_matrices(diffusion: Diffusion, drawn: Callable[[int], Graph]) -> None:
    for seed in range(20):
        graph = drawn(seed)
        z = np.random.default_rng(seed).normal(size=(graph.n, 3))
        matrix = random_walk(graph).toarray() if diffusion.over == WALK else normalised(graph).toarray()
        slow = z
        for _ in range(diffusion.steps):
            slow = (1 - diffusion.teleport) * matrix @ slow + diffusion.teleport * z
        fast = diffusion(graph, z.astype(np.float32))
        assert np.allclose(fast, slow, atol=1e-5)


@pytest.mark.parametrize("drawn", [random_graph, weighted_graph])
@pytest.mark.parametrize("rows", [None, np.array([2, 0])])
def test_diffusions_that_share_powers_are_those_alone(drawn: Callable[[int], Graph], rows: np.ndarray | None) -> None:
    """To the last bit, however few columns are diffused at a time."""
    wanted = {d: d for d in (Diffusion(0), Diffusion(2), Diffusion(6, 0.5), Diffusion(9, 0.1), Diffusion(3, over=WALK))}
    for seed in range(10):
        graph = drawn(seed)
        matrices, z = operators(graph), np.random.default_rng(seed).normal(size=(graph.n, 7)).astype(np.float32)
        together = diffused(matrices, z, wanted, rows)
        for diffusion in wanted:
            parts = [
                diffused(matrices, np.ascontiguousarray(z[:, low:high]), {"": diffusion}, rows)[""]
                for low, high in ((0, 1), (1, 3), (3, 7))
            ]
            assert np.array_equal(together[diffusion], np.concatenate(parts, axis=1))


def test_a_walk_leaves_by_weight() -> None:
    for seed in range(20):
        graph = weighted_graph(seed)
        dense = graph.adj.toarray().astype(np.float64)
        expected = dense / np.maximum(dense.sum(axis=1, keepdims=True), 1e-300)
        np.testing.assert_allclose(random_walk(graph).toarray(), expected, rtol=1e-6)


def plain_information(walk: np.ndarray, leaving: np.ndarray) -> np.ndarray:
    """PPMI of one or two steps, where the second leaves from some nodes alone."""
    near = (walk + walk @ np.diag(leaving) @ walk) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.log(near * near.sum() / np.outer(near.sum(axis=1), near.sum(axis=0)))
    return np.where(near > 0, np.maximum(found, 0), 0)


@pytest.mark.parametrize("drawn", [random_graph, weighted_graph])
def test_information_of_two_steps_is_that_of_dense_matrices(drawn: Callable[[int], Graph]) -> None:
    for seed in range(20):
        graph = drawn(seed)
        expected = plain_information(random_walk(graph).toarray(), np.ones(graph.n))
        np.testing.assert_allclose(two_step_information(graph).toarray(), expected, atol=2e-5)


def test_meetings_in_walks_are_within_the_window_and_go_both_ways() -> None:
    path = Graph.from_edges([[0, 1, 2, 3], [1, 2, 3, 4]], 5)
    near = walked(path, seed=0, walks=50, length=5, window=2).toarray()
    assert np.allclose(near, near.T)
    assert near[0, 1] > near[0, 2] > 0
    assert near[0, 3] == near[0, 4] == 0
    assert not near.diagonal().any()


@pytest.mark.parametrize("thorough", [False, True])
def test_structure_puts_nodes_of_one_part_together(thorough: bool) -> None:
    """Two cliques joined by an edge: nodes of one are nearer to each other than to any of the other."""
    clique = np.array([(i, j) for i in range(8) for j in range(i)]).T
    graph = Graph.from_edges(np.concatenate([clique, clique + 8, [[0], [8]]], axis=1), 16)
    z = structure(graph, 4, seed=0, thorough=thorough).whole()
    z = unit_rows(Diffusion(4, 0.2)(graph, z))
    like = z @ z.T
    assert like[1:8, 1:8].min() > like[1:8, 9:].max()
