"""The mixed views of GPN+: the prior that they begin with, and nodes without edges."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from fewnode.dataset import Dataset
from fewnode.episodes import EpisodeSampler
from fewnode.graph import Graph
from fewnode.methods.plus import GPNPlus
from fewnode.recognition.calibration import MODES
from fewnode.represent.sources import STRUCTURE
from fewnode.represent.views import ATTRIBUTE_VIEWS, RANKS, STRUCTURE_VIEWS, View, prior, prior_weights
from fewnode.vectors import unit_rows

NONE = EpisodeSampler.none()


def test_the_prior_names_views_and_ranks_that_there_are() -> None:
    views = prior()["views"]
    assert views["attributes"].keys() <= ATTRIBUTE_VIEWS.keys()
    assert views[STRUCTURE].keys() <= STRUCTURE_VIEWS.keys()
    assert {views["rank"], views["structure_rank"]} <= set(RANKS)
    assert all(tau > 0 for side in ("attributes", STRUCTURE) for tau in views[side].values())
    assert set(prior()["temperature"]) == set(MODES)


def test_blocks_of_attributes_share_the_weight_that_one_would_have() -> None:
    one, two = prior_weights(["attributes", STRUCTURE]), prior_weights(["words", "vector", STRUCTURE])
    assert sum(one.values()) == pytest.approx(sum(two.values()))
    for view, tau in two.items():
        if view.source != STRUCTURE:
            assert tau == pytest.approx(one[View("attributes", view.name, view.rank)] / 2)
        else:
            assert tau == one[view]


def test_a_network_of_one_side_has_the_weights_of_that_side() -> None:
    assert {view.source for view in prior_weights([STRUCTURE])} == {STRUCTURE}
    assert {view.source for view in prior_weights(["words"])} == {"words"}


def with_a_node_without_edges(graph: Graph, x: sp.csr_array) -> Graph:
    n = graph.n
    adj = sp.csr_array((graph.adj.data, graph.adj.indices, np.append(graph.adj.indptr, graph.adj.nnz)), (n + 1, n + 1))
    return Graph(adj, sp.vstack([graph.x, x], format="csr"), blocks=graph.blocks)


@pytest.mark.parametrize("views", ["attributes", "all"])
def test_unlinked_is_what_a_node_without_edges_would_be(worded: Dataset, views: str) -> None:
    """What the attributes say of it: the place in the structure that an isolated node has says nothing."""
    method = GPNPlus(views=views, rank=24).fit(worded.graph, NONE, NONE)
    x = worded.graph.x[[7]] + worded.graph.x[[60]]
    mixture, width = method.mixture_, method.embed(worded.graph).z.shape[1]
    found = mixture.unlinked(x, width)
    own = mixture.attribute_width
    right = mixture.embed(with_a_node_without_edges(worded.graph, x))[-1:, :own]
    assert found.shape == (1, width)
    assert np.allclose(unit_rows(found[:, :own]), unit_rows(right), atol=1e-5)
    assert not found[:, own:].any()
    assert float(np.linalg.norm(found)) == pytest.approx(1, abs=1e-5)


def test_without_attributes_an_unlinked_node_is_nothing(worded: Dataset) -> None:
    method = GPNPlus(views="structure", rank=16).fit(worded.graph, NONE, NONE)
    assert not method.mixture_.unlinked(worded.graph.x[[0]], 16).any()


def test_the_share_of_each_side_is_its_share_of_the_weight(worded: Dataset) -> None:
    method = GPNPlus(rank=24).fit(worded.graph, NONE, NONE)
    mixture = method.mixture_
    z = mixture.embed(worded.graph)[:, mixture.attribute_width :]
    linked = worded.graph.degree > 0
    share = np.square(z[linked]).sum(axis=1)
    assert np.allclose(share, mixture.structure_share, atol=1e-4)


def test_views_that_do_not_count_are_not_computed(worded: Dataset) -> None:
    mixture = GPNPlus(rank=24).fit(worded.graph, NONE, NONE).mixture_
    seen = [place for place, _ in mixture.diffused(worded.graph)]
    assert sorted(seen) == sorted({(view.source, view.name) for view in mixture.weight})
    few = replace(mixture, weight=dict(list(mixture.weight.items())[:1]))
    assert len(list(few.diffused(worded.graph))) == 1
