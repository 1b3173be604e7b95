"""Rows of new and changed nodes, against embedding everything."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from fewnode.serve.overlay import Change, EmbeddedNetwork, Overlay

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
    assert torch.cosine_similarity(made, z).min() > 0.999
    for name in kept:
        if name[1] in SHORT or isinstance(name, str):
            assert np.allclose(kept[name], stored.kept[name], atol=1e-5)


@pytest.mark.parametrize("views", [SHORT, (*SHORT, "near", "far")])
def test_a_node_that_was_taken_out_and_attached_again(planted: Dataset, views: tuple[str, ...]) -> None:
    """Two steps reach what changes: such a row is exact where the neighbours of its neighbours kept their edges."""
    whole = planted.graph
    first = whole.n - 1
    part = Graph(whole.adj[:first][:, :first], whole.x[:first])
    mix = mixture(part, views)
    overlay = Overlay(EmbeddedNetwork(part, mix.embed(part), StoredViews.of(mix, part, empty)))
    near = whole.adj[[first]].indices.tolist()
    arcs = [(first, other) for other in near] + [(other, first) for other in near]
    after = overlay.changed(Change([], {first: whole.x[[first]]}, arcs, []))
    made, expected = after.rows([first]), mix.embed(whole)[[first]]
    assert torch.cosine_similarity(made, expected).item() > (0.9999 if views == SHORT else 0.99)
    assert after.drift > 0
    assert not overlay.nodes, "an overlay is never changed"


def test_a_node_that_goes_leaves_its_neighbours_as_if_it_had_never_been(planted: Dataset) -> None:
    graph = planted.graph
    mix = mixture(graph, SHORT)
    overlay = Overlay(EmbeddedNetwork(graph, mix.embed(graph), StoredViews.of(mix, graph, empty)))
    after = overlay.changed(Change([5], {}, [], []))
    rest = np.delete(np.arange(graph.n), 5)
    expected = mix.embed(Graph(graph.adj[rest][:, rest], graph.x[rest]))
    near = graph.adj[[5]].indices.tolist()
    places = [int(np.flatnonzero(rest == node)[0]) for node in near]
    assert torch.cosine_similarity(after.rows(near), expected[places]).min() > 0.995
    assert all(5 not in after.near(node) for node in near)


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
