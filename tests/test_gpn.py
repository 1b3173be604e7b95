"""The equations of sections 4.2 to 4.4, by hand, by PyG's operators, and against dense matrices."""

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch

import oracle
from fewnode.dataset import Dataset
from fewnode.episodes import Batch, Episode, EpisodeSampler, Task
from fewnode.errors import FewnodeError
from fewnode.formats.checkpoint import Checkpoints
from fewnode.gpn import (
    Encoder,
    Neighbourhood,
    Networks,
    Valuator,
    aggregate_scores,
    kept_units,
    log_prob,
    loss,
    prototypes,
    splitmix,
)
from fewnode.graph import Graph
from fewnode.method import predict_tasks
from fewnode.methods.gpn import GPN
from fewnode.train import QUIET, Journal
from graphs import random_graph, weighted_graph


def random_networks(graph: Graph, seed: int, dtype: torch.dtype, mlp: bool = False) -> Networks:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        encoder = Encoder(graph.n_features, (6, 4), graph=not mlp)
        networks = Networks(encoder, Valuator(graph.n_features, eps=0.5 + seed % 3)).to(dtype)
        for parameter in networks.parameters():
            torch.nn.init.normal_(parameter, std=0.5)
    return networks


def random_episode(graph: Graph, seed: int) -> Episode:
    rng = np.random.default_rng(seed)
    support_y = np.array([0, 1, 1, 0, 0][: rng.integers(2, 6)])
    task = Task(rng.integers(0, graph.n, support_y.size), support_y, rng.integers(0, graph.n, 4))
    return Episode(task, rng.integers(0, 2, 4))


@pytest.mark.parametrize("drawn", [random_graph, weighted_graph])
def test_the_loss_and_its_gradients_are_those_of_dense_matrices(drawn: Callable[[int], Graph]) -> None:
    for seed in range(100):
        graph = drawn(seed)
        networks, task = random_networks(graph, seed, torch.float64), random_episode(graph, seed)
        ours = loss(networks, Neighbourhood.of(graph, dtype=torch.float64), Batch.of([task]), "sqeuclidean")
        a, x = oracle.dense(graph, torch.float64)
        encoder, valuator = networks.encoder, networks.valuator
        z = oracle.encode(a, x, list(encoder.weight), list(encoder.bias))
        s = oracle.importance(a, x, valuator.w, valuator.b, valuator.a, valuator.eps)
        whole = oracle.loss(z, s, *map(torch.from_numpy, (task.support, task.support_y, task.query, task.query_y)))
        assert torch.allclose(ours, whole, atol=1e-12)
        parameters = list(networks.parameters())
        for mine, theirs in zip(*(torch.autograd.grad(each, parameters) for each in (ours, whole)), strict=True):
            assert torch.allclose(mine, theirs, atol=1e-10)


def test_the_normalised_adjacency_of_the_star_by_hand(star: Graph) -> None:
    middle, leaf, edge = 1 / 4, 1 / 2, 1 / math.sqrt(4 * 2)
    expected = torch.diag(torch.tensor([middle, leaf, leaf, leaf]))
    expected[0, 1:] = expected[1:, 0] = edge
    assert torch.allclose(Neighbourhood.of(star).a_hat.to_dense(), expected)


def test_a_layer_is_gcnconv(star: Graph) -> None:
    from torch_geometric.nn import GCNConv

    encoder = Encoder(2, (3,))
    conv = GCNConv(2, 3)
    conv.lin.weight.data = encoder.weight[0].data.T.contiguous()
    conv.bias.data = encoder.bias[0].data
    theirs = torch.relu(conv(torch.from_numpy(star.x.copy()), torch.from_numpy(star.edge_index())))
    assert torch.allclose(encoder(Neighbourhood.of(star)), theirs, atol=1e-6)


def test_the_hash_is_splitmix64() -> None:
    """The first outputs from state 0, as published with the algorithm."""
    golden, state = 0x9E3779B97F4A7C15 - (1 << 64), torch.tensor(0)
    words = [int(splitmix(state)), int(splitmix(state + golden)), int(splitmix(state + golden + golden))]
    assert [word % (1 << 64) for word in words] == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]


def test_dropout_drops_its_share_and_depends_on_seed_layer_node_and_unit() -> None:
    kept = kept_units(torch.arange(500), 40, 0.2, 7, 1)
    assert abs(float((~kept).float().mean()) - 0.2) < 0.01
    assert torch.equal(kept[:100, :10], kept_units(torch.arange(100), 10, 0.2, 7, 1)), "whatever else is there"
    for seed, layer in ((8, 1), (7, 2)):
        other = kept_units(torch.arange(500), 40, 0.2, seed, layer)
        assert abs(float((kept == other).float().mean()) - (0.8**2 + 0.2**2)) < 0.02, "as if drawn independently"


def test_score_aggregation_by_hand(star: Graph) -> None:
    """The middle of the star sees all four scores, a leaf sees the middle's and its own: Eqs. (6)-(7)."""
    s = torch.tensor([0.5, -0.5, 0.0, 1.0])
    a = torch.tensor([1.0, -2.0])
    g = Neighbourhood.of(star)
    ours = aggregate_scores(s, g.target, g.source, a)

    def leaky(v: float) -> float:
        return v if v > 0 else 0.2 * v

    weight = [math.exp(leaky(0.5 - 2 * s_k)) for s_k in (0.5, -0.5, 0.0, 1.0)]
    assert ours[0].item() == pytest.approx(
        sum(w * s_k for w, s_k in zip(weight, s.tolist(), strict=True)) / sum(weight)
    )
    weight = [math.exp(leaky(1.0 - 2 * 0.5)), math.exp(leaky(1.0 - 2 * 1.0))]
    assert ours[3].item() == pytest.approx((weight[0] * 0.5 + weight[1] * 1.0) / sum(weight))


def test_score_aggregation_is_gatconv_with_unit_weight(star: Graph) -> None:
    from torch_geometric.nn import GATConv

    s, a = torch.randn(4), torch.randn(2)
    conv = GATConv(1, 1, negative_slope=0.2, bias=False)
    conv.lin.weight.data = torch.ones(1, 1)
    conv.att_dst.data, conv.att_src.data = a[0].view(1, 1, 1), a[1].view(1, 1, 1)
    theirs = conv(s[:, None], torch.from_numpy(star.edge_index())).squeeze(1)
    g = Neighbourhood.of(star)
    assert torch.allclose(aggregate_scores(s, g.target, g.source, a), theirs, atol=1e-6)


def test_importance_of_an_isolated_node_is_finite() -> None:
    graph = Graph.from_edges([[0], [1]], 3, np.ones((3, 2), np.float32))
    for eps in (1.0, 1e-6):
        assert torch.isfinite(Valuator(2, eps=eps)(Neighbourhood.of(graph))).all()


def test_prototypes_by_hand() -> None:
    z = torch.tensor([[0.0, 0.0], [4.0, 0.0], [1.0, 1.0]])
    p = prototypes(z, torch.tensor([0.0, math.log(3.0), 9.0]), torch.tensor([0, 0, 1]), 2)
    assert torch.allclose(p, torch.tensor([[3.0, 0.0], [1.0, 1.0]]))


def test_log_prob_by_hand() -> None:
    z, p = torch.tensor([[0.0, 0.0]]), torch.tensor([[[1.0, 0.0], [0.0, 2.0]]])
    expected = torch.log_softmax(torch.tensor([[-1.0, -4.0]]), 1)
    assert torch.allclose(log_prob(z, p), expected)
    assert torch.allclose(log_prob(z, p, "euclidean"), torch.log_softmax(torch.tensor([[-1.0, -2.0]]), 1), atol=1e-6)
    z, p = torch.tensor([[1.0, 0.0]]), torch.tensor([[[3.0, 0.0], [0.0, 2.0]]])
    assert torch.allclose(log_prob(z, p, "cosine"), torch.log_softmax(torch.tensor([[10.0, 0.0]]), 1), atol=1e-5)


def test_a_batch_of_tasks_equals_the_tasks_one_by_one(planted: Dataset) -> None:
    model = _fit(planted)
    tasks = [EpisodeSampler(planted, "test", n, k, 3)[t].task for n, k, t in ((3, 2, 0), (4, 1, 1), (3, 5, 2))]
    together = predict_tasks(model, planted.graph, tasks)
    for task, rows in zip(tasks, together, strict=True):
        (alone,) = predict_tasks(model, planted.graph, [task])
        assert np.allclose(rows, alone, atol=1e-6)


def test_dropout_by_validation_keeps_the_rate_that_validated_best(planted: Dataset, tmp_path) -> None:
    seen: dict[str, float] = {}

    def on_step(step: int, loss: float, history) -> None:
        if history.points:
            seen[history.part] = max(point.accuracy for point in history.points)

    model = _fit(planted, dropout="auto", journal=Checkpoints(tmp_path, on_step=on_step))
    assert set(seen) == {f"dropout-{rate}" for rate in GPN.DROPOUTS}
    assert seen[f"dropout-{model.dropout_}"] == max(seen.values()) == model.history_.best.accuracy


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("eps", 0.0, "eps"),
        ("dropout", 1.0, "dropout"),
        ("distance", "cosin", "did you mean 'cosine'"),
        ("hidden", (), "hidden"),
    ],
)
def test_impossible_options_are_refused(planted: Dataset, option: str, value: object, message: str) -> None:
    with pytest.raises(FewnodeError, match=message):
        _fit(planted, **{option: value})


def _fit(data: Dataset, journal: Journal = QUIET, **options: object) -> GPN:
    train, valid = (EpisodeSampler(data, part, 3, 2, 4) for part in ("train", "valid"))
    return GPN(episodes=20, **options).fit_in_steps(data.graph, train, valid, journal)
