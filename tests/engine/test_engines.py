"""Engines compute the numbers of `gpn.py`: in values and gradients, with dropout on, for any batch and any nodes."""

from collections.abc import Callable

import numpy as np
import pytest
import torch

from fewnode.dataset import Dataset
from fewnode.engine import episode
from fewnode.engine.compiled import Compiled
from fewnode.engine.door import engine_for
from fewnode.engine.fields import ReceptiveFields
from fewnode.engine.lanes import compiled
from fewnode.engine.reference import Reference
from fewnode.engine.sparse import normalised
from fewnode.engine.subgraph import ModuleEncoder, Subgraph, pyg_encoder
from fewnode.episodes import EpisodeSampler
from fewnode.errors import FewnodeError
from fewnode.gpn import Networks, TrainingBatch, WholeGraph, aggregate_scores
from fewnode.graph import Graph
from fewnode.methods.gpn import GPN
from graphs import random_graph, weighted_graph
from test_gpn import random_episode, random_networks

FEW, MANY = 200, 1000
TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-10}


@pytest.mark.parametrize(
    ("drawn", "graphs"),
    [
        (random_graph, range(FEW)),
        (weighted_graph, range(FEW // 5)),
        pytest.param(random_graph, range(FEW, MANY), marks=pytest.mark.check),
        pytest.param(weighted_graph, range(FEW // 5, MANY // 5), marks=pytest.mark.check),
    ],
)
@pytest.mark.parametrize("dtype", list(TOLERANCE))
def test_compiled_equals_the_reference_in_values_and_gradients(
    dtype: torch.dtype, drawn: Callable[[int], Graph], graphs: range
) -> None:
    """On random graphs: GCN and MLP, with and without a valuator, with and without dropout, some nodes and all."""
    worst = 0.0
    for seed in graphs:
        graph, rng = drawn(seed), np.random.default_rng(seed)
        networks = random_networks(graph, seed, dtype, mlp=seed % 5 == 0)
        if seed % 4 == 0:
            networks = Networks(networks.encoder, None)
        batch = TrainingBatch([random_episode(graph, seed)])
        plain = Reference(WholeGraph.of(graph, dtype=dtype), "sqeuclidean")
        fast = Compiled(ReceptiveFields.of(graph, dtype=dtype))
        rate, nodes = (0.0, 0.3, 0.5)[seed % 3], rng.integers(0, graph.n, 3)
        (value, gradients), (expected, theirs) = (
            engine.loss_and_gradients(networks, batch, rate, 1 << 62 | seed) for engine in (fast, plain)
        )
        pairs = [(torch.tensor(value), torch.tensor(expected)), *zip(gradients, theirs, strict=True)]
        for asked in (None, nodes):
            pairs += zip(fast.embed(networks, asked), plain.embed(networks, asked), strict=True)
        worst = max([worst, *(float((a - b).abs().max() / b.abs().max().clamp(min=1)) for a, b in pairs)])
    assert worst < TOLERANCE[dtype]


def test_weights_are_normalised_as_in_pyg() -> None:
    from torch_geometric.nn.conv.gcn_conv import gcn_norm

    for seed in range(50):
        graph = weighted_graph(seed)
        edges, weight = torch.from_numpy(graph.edge_index()), torch.from_numpy(graph.adj.data.copy())
        edges, values = gcn_norm(edges, weight.double(), graph.n, add_self_loops=True, dtype=torch.float64)
        expected = torch.zeros(graph.n, graph.n, dtype=torch.float64)
        expected[edges[1], edges[0]] = values
        np.testing.assert_allclose(normalised(graph).toarray(), expected.numpy(), rtol=1e-12)
        whole = WholeGraph.of(graph, dtype=torch.float64)
        assert torch.allclose(whole.a_hat.to_dense(), expected, rtol=1e-12)
        assert whole.degree.tolist() == graph.degree.tolist()


def test_only_the_valued_nodes_have_an_importance(planted: Dataset) -> None:
    networks = random_networks(planted.graph, 0, torch.float32)
    nodes, valued = np.array([5, 9, 200]), np.array([9])
    for engine in (Compiled(ReceptiveFields.of(planted.graph)), Reference(WholeGraph.of(planted.graph), "sqeuclidean")):
        z, importance = engine.embed(networks, nodes, valued)
        both = engine.embed(networks, nodes)
        assert torch.allclose(z, both[0])
        assert torch.allclose(importance, both[1][1:2])


def test_what_is_kept_of_nodes_asked_about_again_follows_the_weights(planted: Dataset) -> None:
    engine, nodes = Compiled(ReceptiveFields.of(planted.graph)), np.arange(40)
    one, other = (random_networks(planted.graph, seed, torch.float32) for seed in (1, 2))
    first, second, again = (engine.embed(networks, nodes)[0] for networks in (one, other, one))
    assert torch.equal(first, again)
    assert not torch.allclose(first, second)


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({}, Compiled),
        ({"valuator": False}, Compiled),
        ({"encoder": "mlp"}, Compiled),
        ({"distance": "cosine"}, Reference),
        ({"hidden": (8, 8, 4)}, Reference),
        ({"hidden": (8,)}, Reference),
        ({"encoder": "sage"}, Subgraph),
    ],
)
def test_one_place_chooses_the_engine(planted: Dataset, options: dict[str, object], kind: type) -> None:
    method = GPN(**options)
    networks = method.build(planted.graph.n_features, 0.0)
    assert type(engine_for(networks, planted.graph, method.distance)) is kind


@pytest.mark.parametrize(
    "options", [{}, {"valuator": False}, {"distance": "cosine"}, {"encoder": "mlp"}, {"encoder": "sage"}]
)
def test_the_gradient_of_a_meta_batch_is_the_mean_of_its_tasks(planted: Dataset, options: dict[str, object]) -> None:
    method = GPN(dropout=0.0, **options)
    networks = method.build(planted.graph.n_features, 0.0)
    engine = engine_for(networks, planted.graph, method.distance)
    tasks = EpisodeSampler(planted, "train", 3, 2, 4).take(8)
    _, together = engine.loss_and_gradients(networks, TrainingBatch(tasks), 0.0, 0)
    alone = zip(*(engine.loss_and_gradients(networks, TrainingBatch([task]), 0.0, 0)[1] for task in tasks), strict=True)
    for ours, each in zip(together, alone, strict=True):
        assert torch.allclose(ours, torch.stack(each).mean(dim=0), atol=1e-6)


def test_meta_batches_train(planted: Dataset) -> None:
    train, valid = (EpisodeSampler(planted, part, 3, 2, 4) for part in ("train", "valid"))
    model = GPN(episodes=10, batch=4).fit(planted.graph, train, valid)
    assert model.history_.done == 10
    with pytest.raises(FewnodeError, match="a batch of 0 tasks"):
        GPN(batch=0).fit(planted.graph, train, valid)


def test_no_episode_is_trained_on_twice(planted: Dataset) -> None:
    asked: list[int] = []

    class Counted(EpisodeSampler):
        def __getitem__(self, t: int):
            asked.append(t)
            return super().__getitem__(t)

    train, valid = Counted(planted, "train", 3, 2, 4), EpisodeSampler(planted, "valid", 3, 2, 4)
    GPN(episodes=10, batch=4, dropout=0.5).fit(planted.graph, train, valid)
    assert asked == list(range(40))


@pytest.mark.parametrize("size", [1, 400], ids=["small", "exponents that would overflow"])
@pytest.mark.parametrize("seed", range(20))
def test_compiled_aggregation_equals_autograd(seed: int, size: int) -> None:
    """Eqs. (6)-(7) as written, against the loops: scores and derivatives."""
    graph = random_graph(seed)
    g, hop = WholeGraph.of(graph, dtype=torch.float64), ReceptiveFields.of(graph, dtype=torch.float64).adj
    generator = torch.Generator().manual_seed(seed)
    s = torch.rand(graph.n, dtype=torch.float64, generator=generator).requires_grad_()
    a = (size * torch.randn(2, dtype=torch.float64, generator=generator)).requires_grad_()
    upstream = torch.randn(graph.n, dtype=torch.float64, generator=generator)
    plain = aggregate_scores(s, g.target, g.source, a)
    by_s, by_a = torch.autograd.grad(plain, (s, a), upstream)
    hops, scores, pair = hop.arrays[:3], s.detach().numpy(), a.detach().numpy()
    found = episode.aggregate(*hops, scores, scores, pair)
    by_scores, pair = episode.aggregate_gradient(*hops, np.arange(graph.n), scores, pair, *found, upstream.numpy())
    assert np.allclose(found[0], plain.detach().numpy())
    assert np.allclose(by_scores, by_s.numpy())
    assert np.allclose(pair, by_a.numpy())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_tanh_by_an_exponential_is_a_tanh(dtype: type) -> None:
    x = np.concatenate([[0.0], np.logspace(-6, 3, 200), -np.logspace(-6, 3, 200)]).astype(dtype)
    with np.errstate(over="ignore"):
        found = episode.squashed(x.copy(), dtype(0.25))
    assert found.dtype == dtype
    assert np.abs(found - np.tanh(x + dtype(0.25))).max() < 2 * np.finfo(dtype).eps


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_power_in_compiled_code_is_exact_to_the_last_bits(dtype: type) -> None:
    """In place of the library's, and without an overflow beyond what it can hold."""
    x = np.linspace(-86, 86, 20_001).astype(dtype)
    exact = np.exp(x.astype(np.longdouble))
    assert np.abs(_powers(x) / exact - 1).max() < 3 * np.finfo(dtype).eps
    assert _powers(np.zeros(1, dtype)) == 1
    assert (np.diff(_powers(np.array([-1e4, -50, 0, 50, 85], dtype))) > 0).all()


@compiled
def _powers(x: np.ndarray) -> np.ndarray:
    out = np.empty_like(x)
    for i in range(x.size):
        out[i] = episode.power(x[i])
    return out


@pytest.mark.parametrize("name", ["sage", "gat", "gin", "gcnconv"])
@pytest.mark.parametrize("directed", [False, True])
def test_pyg_encoders_see_exactly_their_receptive_field(name: str, directed: bool) -> None:
    from torch_geometric.nn import models

    rng = np.random.default_rng(1)
    x = rng.normal(size=(60, 5)).astype(np.float32)
    graph = Graph.from_edges(rng.integers(0, 60, (2, 70)), 60, x, directed=directed)
    g = ReceptiveFields.of(graph)
    encoder = ModuleEncoder(models.GCN(5, 4, 2, 3)) if name == "gcnconv" else pyg_encoder(name, 5, (4, 3), 0.0)
    encoder.eval()
    nodes = np.array([3, 50, 17])
    assert g.ball(nodes, 3).size < graph.n, "the test needs a field smaller than the graph"
    assert torch.allclose(encoder(g, nodes), encoder(g, None)[nodes], atol=1e-5)


def test_a_module_of_unknown_depth_is_refused() -> None:
    with pytest.raises(FewnodeError, match="hops"):
        ModuleEncoder(torch.nn.Linear(2, 2))


def test_unknown_encoder_is_named() -> None:
    with pytest.raises(FewnodeError, match=r"unknown encoder 'gnc'.*gcn"):
        GPN("gnc").build(2, 0.0)
