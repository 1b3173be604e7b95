"""Neighbour sampling: on average the exact aggregation, and exactly that where nothing is left out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from fewnode.errors import FewnodeError
from fewnode.estimator import Estimator
from fewnode.graph import Dataset, Graph
from fewnode.nn import Prepared
from graphs import planted

pytest.importorskip("torch_geometric")
from fewnode.sampling import NeighbourSampler, node_loader


@pytest.fixture(scope="module", name="graph")
def _graph() -> Graph:
    """A hub, isolated nodes, and degrees between."""
    rng = np.random.default_rng(1)
    edges = np.concatenate([rng.integers(0, 30, (2, 60)), np.stack([np.zeros(25, int), np.arange(1, 26)])], axis=1)
    return Graph.from_edges(edges, 33, rng.normal(size=(33, 4)).astype(np.float32))


def test_the_expected_aggregate_is_the_exact_one(graph: Graph) -> None:
    g, nodes = Prepared(graph, graph.x), torch.arange(graph.n)
    h = torch.randn(graph.n, 3, generator=torch.Generator().manual_seed(0))
    exact, draws = g.adj @ h, []
    for seed in range(2000):
        hop, around = g.sampled(3, seed).hop(nodes)
        draws.append(hop @ h[around])
    found = torch.stack(draws)
    error = found.std(dim=0) / len(draws) ** 0.5
    assert ((found.mean(dim=0) - exact).abs() <= 4.5 * error + 1e-5).all()
    assert (found.std(dim=0)[0] > 0.01).all()  # the hub's, of which most is left out


def test_nothing_left_out_is_exact(graph: Graph) -> None:
    g, nodes = Prepared(graph, graph.x), torch.tensor([0, 3, 32, 7])
    hop, around = g.sampled(40, 1).hop(nodes)
    exact, expected = g.hop(nodes)
    assert torch.equal(around, expected)
    assert torch.equal(hop.to_dense(), exact.to_dense())
    counts = g.sampled(2, 5).hop(torch.arange(graph.n))[0]
    assert int((counts.stop - counts.start).max()) == 3  # two neighbours, and the node itself


def test_another_seed_is_another_choice_and_the_same_the_same(graph: Graph) -> None:
    g, nodes = Prepared(graph, graph.x), torch.tensor([0])
    rows = [g.sampled(3, seed).hop(nodes)[1].tolist() for seed in (1, 1, 2, 3)]
    assert rows[0] == rows[1]
    assert len({tuple(row) for row in rows}) > 1


@pytest.mark.parametrize("dense", [False, True])
def test_training_by_samples_learns(dense: bool) -> None:
    data: Dataset = planted()
    if dense:
        data = replace(data, graph=Graph(data.graph.adj, data.graph.x.toarray()))
    one, same = (Estimator("gpn", 3, 3, episodes=20, fanout=2).fit(data) for _ in range(2))
    exact = Estimator("gpn", 3, 3, episodes=20).fit(data)
    assert one.method_.history_.best.accuracy > exact.method_.history_.best.accuracy - 0.1
    for name, tensor in one.method_.state().items():
        assert torch.equal(tensor, same.method_.state()[name])
    assert any(not torch.equal(t, exact.method_.state()[n]) for n, t in one.method_.state().items())


def test_a_fanout_that_is_none_is_refused() -> None:
    for options in ({"fanout": -1}, {"fanout": 3, "encoder": "sage"}):
        with pytest.raises(FewnodeError, match="fanout"):
            Estimator("gpn", 3, 3, **options).fit(planted())
    with pytest.raises(FewnodeError, match="fanouts"):
        NeighbourSampler(planted().graph, [])
    with pytest.raises(FewnodeError, match="sparse attributes"):
        node_loader(planted().graph, torch.arange(3), [2])


def test_pyg_loads_batches_whose_expected_aggregate_is_exact(graph: Graph) -> None:
    nodes = torch.arange(graph.n)
    exact = Prepared(graph, graph.x).p
    draws = []
    loader = node_loader(graph, nodes, [3, 2], batch_size=graph.n)
    for _ in range(800):
        (batch,) = list(loader)
        source, target = batch.edge_index
        out = batch.loop_weight[:, None] * batch.x
        out = out.index_add(0, target, batch.edge_weight[:, None] * batch.x[source])
        draws.append(out[: graph.n])
    found = torch.stack(draws)
    error = found.std(dim=0) / len(draws) ** 0.5
    assert ((found.mean(dim=0) - exact).abs() <= 4.5 * error + 1e-5).all()


def test_a_batch_has_its_nodes_first_and_no_node_twice(graph: Graph) -> None:
    for batch in node_loader(graph, torch.tensor([5, 0, 9]), [2, 2], batch_size=2):
        assert batch.n_id.unique().numel() == batch.n_id.numel()
        assert batch.n_id[: batch.batch_size].tolist() == batch.input_id.new_tensor([5, 0, 9])[batch.input_id].tolist()
        adj = graph.adj.toarray()
        for s, t in batch.n_id[batch.edge_index].T.tolist():
            assert adj[t, s] == 1
