"""Rows of new and changed nodes, against embedding everything."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from fewnode.dataset import Dataset
from fewnode.graph import Graph
from fewnode.represent.mixture import MixedViews
from fewnode.represent.new_rows import Neighbourhood, StoredViews, can_be_updated
from fewnode.represent.sources import attribute_sources
from fewnode.represent.views import View

SHORT = ("itself", "two steps", "neighbours' neighbours")


def mixture(graph: Graph, names: tuple[str, ...]) -> MixedViews:
    weight = {View("attributes", name, rank): 1.0 for name in names for rank in (0, 16)}
    sources = attribute_sources(graph, 32, 0)
    return MixedViews(tuple(sources), weight, rank=32).learned(graph)[0]


def empty(shape: tuple[int, int]) -> np.ndarray:
    return np.empty(shape, np.float32)


def test_a_row_is_made_from_those_around_it(planted: Dataset) -> None:
    """Nothing has changed: every row comes out as it was."""
    graph = planted.graph
    mix = mixture(graph, (*SHORT, "near", "far"))
    stored, z = StoredViews.of(mix, graph, empty), mix.embed(graph)
    near = [graph.adj[[node]].indices.astype(np.int64) for node in range(graph.n)]
    kept, made = stored.made(Neighbourhood(near, graph.degree), stored.kept, np.zeros(graph.n, bool))
    assert (made * z).sum(axis=1).min() > 0.999
    for name in kept:
        if name[1] in SHORT or isinstance(name, str):
            assert np.allclose(kept[name], stored.kept[name], atol=1e-5)


def test_views_over_kinds_of_edges_need_all_nodes() -> None:
    plain = MixedViews((), {View("structure", "near", 0): 1.0})
    typed = MixedViews((), {View("structure", "near by weight", 0): 1.0})
    assert can_be_updated(plain)
    assert not can_be_updated(typed)


def test_a_node_without_neighbours_has_no_place_in_the_structure(planted: Dataset) -> None:
    graph = Graph(planted.graph.adj, sp.csr_array((planted.graph.n, 0), dtype=np.float32))
    mix = MixedViews((), {View("structure", "itself", 0): 1.0, View("structure", "far", 0): 1.0}, rank=16)
    stored = StoredViews.of(mix, graph, empty)
    assert not stored.placed(np.zeros((0, 16), np.float32)).any()
    between = stored.placed(stored.kept["structure"][:4])
    assert np.linalg.norm(between) == pytest.approx(1, abs=1e-5)
