"""Engines compute the numbers of `gpn.py`: in values and gradients, with dropout on, for any batch and any nodes."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

import fewnode
from fewnode import gpn
from fewnode.dataset import Dataset
from fewnode.engine.compiled import Compiled, first_weights, weight_shapes
from fewnode.engine.fields import ReceptiveFields
from fewnode.engine.sparse import normalised
from fewnode.episodes import Batch, EpisodeSampler
from fewnode.errors import FewnodeError
from fewnode.gpn import Neighbourhood, Networks
from fewnode.graph import Graph
from fewnode.methods.gpn import GPN
from fewnode.methods.networks import ModuleEncoder, Reference, pyg_encoder, weights_of
from fewnode.seeds import seeded, stream
from graphs import random_graph, weighted_graph
from test_gpn import random_episode, random_networks

FEW, MANY = 80, 1000
TOLERANCE = {np.float32: 1e-5, np.float64: 1e-10}


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
    dtype: type, drawn: Callable[[int], Graph], graphs: range
) -> None:
    """On random graphs: GCN and MLP, with and without a valuator, with and without dropout, some nodes and all."""
    worst = 0.0
    for seed in graphs:
        graph, rng = drawn(seed), np.random.default_rng(seed)
        networks = random_networks(
            graph, seed, torch.float64 if dtype is np.float64 else torch.float32, mlp=seed % 5 == 0
        )
        if seed % 4 == 0:
            networks = Networks(networks.encoder, None)
        with_scores, eps = networks.valuator is not None, 0.5 + seed % 3
        weights, batch = weights_of(networks), Batch.of([random_episode(graph, seed)])
        plain = Reference(networks, graph)
        fast = Compiled(ReceptiveFields.of(graph, dtype=dtype), seed % 5 != 0, with_scores, eps)
        rate, nodes = (0.0, 0.3, 0.5)[seed % 3], rng.integers(0, graph.n, 3)
        (value, gradients), (expected, theirs) = (
            engine.loss_and_gradients(weights, batch, rate, 1 << 62 | seed) for engine in (fast, plain)
        )
        assert gradients.keys() == theirs.keys()
        pairs = [(np.array(value), np.array(expected)), *((gradients[name], theirs[name]) for name in theirs)]
        pairs.append((fast.answerer(batch)(weights), plain.answerer(batch)(weights)))
        for asked in (None, nodes):
            pairs += zip(fast.embed(weights, asked), plain.embed(weights, asked), strict=True)
        worst = max([worst, *(float(np.abs(a - b).max() / max(np.abs(b).max(), 1)) for a, b in pairs)])
    assert worst < TOLERANCE[dtype]


@pytest.mark.parametrize("formulation", ["paper", "authors"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_what_an_episode_sees_is_the_whole_graph_to_it(dtype: torch.dtype, formulation: str) -> None:
    """`gpn.py` on a neighbourhood: values and gradients, with dropout on."""
    worst = 0.0
    for seed in range(FEW // 2):
        graph = random_graph(seed)
        batch = Batch.of([random_episode(graph, seed)])
        networks = random_networks(graph, seed, dtype)
        if formulation == "authors":
            networks = GPN(formulation="authors", hidden=(6, 4)).build(graph.n_features, 0.0).to(dtype)
        nodes = np.concatenate([batch.support, batch.query])
        around = Neighbourhood.of(graph, nodes, networks.hops, dtype=dtype)
        both = (Neighbourhood.of(graph, dtype=dtype), around)
        losses = [gpn.loss(networks, g, batch, "sqeuclidean", (0.0, 0.5)[seed % 2], seed) for g in both]
        parameters = list(networks.parameters())
        slopes = [torch.autograd.grad(loss, parameters, materialize_grads=True, allow_unused=True) for loss in losses]
        pairs = [[loss.detach() for loss in losses], *zip(*slopes, strict=True)]
        worst = max([worst, *(float((b - a).abs().max() / a.abs().max().clamp(min=1)) for a, b in pairs)])
    assert worst < (1e-5 if dtype == torch.float32 else 1e-10)


@pytest.mark.parametrize("valuator", [True, False])
def test_first_weights_are_those_of_the_reference(valuator: bool) -> None:
    for seed in (0, 7, 2**62 + 5):
        with seeded(seed):
            networks = Networks(gpn.Encoder(31, (32, 16)), gpn.Valuator(31) if valuator else None)
        ours, theirs = first_weights(weight_shapes(31, (32, 16), valuator), stream(seed)), weights_of(networks)
        assert list(ours) == list(theirs)
        for name, array in ours.items():
            np.testing.assert_allclose(array, theirs[name], rtol=1e-6, atol=1e-7)


def trained_by(data: Dataset, **options: object) -> tuple[str, np.ndarray]:
    """Which engine trained a GPN, as the model says, and what it answers."""
    model = fewnode.Estimator("gpn", 3, 2, episodes=10, dropout=0.0, **options).fit(data)
    return model.trained_["history"]["engine"], model.predict_proba(data, [0, 40], ["a", "b"], np.arange(60))


def test_whoever_replaces_an_equation_is_answered_by_it(planted: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    """As published the loops compute it, and the same by `gpn.py`; nothing that is changed there is passed over."""
    name, published = trained_by(planted)
    other, again = trained_by(planted, engine="reference")
    assert (name, other) == ("compiled", "reference")
    assert np.allclose(published, again, atol=0.1), "Adam enlarges what rounding makes of small gradients"
    monkeypatch.setattr(gpn, "aggregate_scores", lambda s, target, source, a: torch.zeros_like(s) * a.sum())
    name, changed = trained_by(planted)
    assert name == "reference"
    assert not np.allclose(changed, published, atol=1e-3)
    with pytest.raises(FewnodeError, match="the compiled engine has not what replaced an equation"):
        trained_by(planted, engine="compiled")
    monkeypatch.undo()
    assert trained_by(planted)[0] == "compiled"
    monkeypatch.setattr(gpn.Valuator, "forward", lambda self, g: self.w.sum() * g.degree)
    assert trained_by(planted)[0] == "reference"


class ByDegree(gpn.Valuator):
    """What a researcher would try: nothing but the centrality."""

    def forward(self, g: Neighbourhood) -> torch.Tensor:
        return 3 * gpn.centrality(g.degree, self.eps) + 0 * self.w.sum()


def test_a_valuator_of_ones_own_takes_effect_and_comes_back(planted: Dataset, tmp_path: Path) -> None:
    _, published = trained_by(planted)
    name, by_class = trained_by(planted, valuator=ByDegree)
    assert name == "reference"
    assert not np.allclose(by_class, published, atol=1e-3)
    model = fewnode.Estimator("gpn", 3, 2, episodes=10, valuator=ByDegree(planted.graph.n_features)).fit(planted)
    model.save(tmp_path / "run")
    with pytest.raises(FewnodeError, match=r"its own valuator, ByDegree; pass load_model\(…, valuator=…\)"):
        fewnode.load_model(tmp_path / "run")
    again = fewnode.load_model(tmp_path / "run", valuator=ByDegree)
    asked = planted, [0, 40, 41], ["a", "b", "b"], np.arange(60)
    assert np.array_equal(again.predict_proba(*asked), model.predict_proba(*asked))


def test_weights_are_normalised_as_in_pyg() -> None:
    from torch_geometric.nn.conv.gcn_conv import gcn_norm

    for seed in range(50):
        graph = weighted_graph(seed)
        edges, weight = torch.from_numpy(graph.edge_index()), torch.from_numpy(graph.adj.data.copy())
        edges, values = gcn_norm(edges, weight.double(), graph.n, add_self_loops=True, dtype=torch.float64)
        expected = torch.zeros(graph.n, graph.n, dtype=torch.float64)
        expected[edges[1], edges[0]] = values
        np.testing.assert_allclose(normalised(graph).toarray(), expected.numpy(), rtol=1e-12)
        whole = Neighbourhood.of(graph, dtype=torch.float64)
        assert torch.allclose(whole.a_hat.to_dense(), expected, rtol=1e-12)
        assert whole.degree.tolist() == graph.degree.tolist()


@pytest.mark.parametrize(
    "options", [{}, {"valuator": False}, {"distance": "cosine"}, {"encoder": "mlp"}, {"encoder": "sage"}]
)
def test_the_gradient_of_a_meta_batch_is_the_mean_of_its_tasks(planted: Dataset, options: dict[str, object]) -> None:
    tasks = EpisodeSampler(planted, "train", 3, 2, 4)
    together, alone = (
        [GPN(dropout=0.0, batch=size, **options).learner(0.0, planted.graph, tasks)[2](k)[1] for k in range(8 // size)]
        for size in (8, 1)
    )
    for name, ours in together[0].items():
        assert np.allclose(ours, np.mean([each[name] for each in alone], axis=0), atol=1e-6)


@pytest.mark.parametrize("name", ["sage", "gat", "gin", "gcnconv"])
@pytest.mark.parametrize("directed", [False, True])
def test_pyg_encoders_see_exactly_their_receptive_field(name: str, directed: bool) -> None:
    from torch_geometric.nn import models

    rng = np.random.default_rng(1)
    x = rng.normal(size=(60, 5)).astype(np.float32)
    graph = Graph.from_edges(rng.integers(0, 60, (2, 70)), 60, x, directed=directed)
    encoder = ModuleEncoder(models.GCN(5, 4, 2, 3), hops=2) if name == "gcnconv" else pyg_encoder(name, 5, (4, 3), 0.0)
    encoder.eval()
    nodes = np.array([3, 50, 17])
    around = Neighbourhood.of(graph, nodes, encoder.hops)
    assert around.nodes.numel() < graph.n, "the test needs a field smaller than the graph"
    assert torch.allclose(encoder(around)[around.places(nodes)], encoder(Neighbourhood.of(graph))[nodes], atol=1e-5)


@pytest.mark.parametrize(("device", "said"), [("cuda", "there is no GPU"), ("gpu", "unknown device 'gpu'")])
def test_a_device_that_is_not_there_is_said_in_a_sentence(planted: Dataset, device: str, said: str) -> None:
    if device == "cuda" and torch.cuda.is_available():
        pytest.skip("there is one")
    with pytest.raises(FewnodeError, match=said):
        trained_by(planted, device=device)
