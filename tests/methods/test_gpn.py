import math

import numpy as np
import pytest
import torch

import oracle
from fewnode.episodes import Episode, EpisodeSampler
from fewnode.errors import FewnodeError
from fewnode.graph import Dataset, Graph
from fewnode.methods.gpn import (
    GPN,
    Batch,
    Networks,
    Valuator,
    aggregate_scores,
    centrality,
    closeness,
    log_prob,
    nearness,
    prototypes,
)
from fewnode.nn import GCN, Prepared
from fewnode.train import Journal
from graphs import random_graph

GRAPHS = 1000
TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-10}


@pytest.mark.parametrize("dtype", list(TOLERANCE))
def test_receptive_field_equals_the_whole_graph_in_values_and_gradients(dtype: torch.dtype) -> None:
    """The loss of an episode and every parameter's gradient, on random graphs, against dense whole-graph matrices."""
    worst = 0.0
    for seed in range(GRAPHS):
        graph = random_graph(seed)
        networks, task = _networks(graph, seed, dtype), _random_task(graph, seed)
        ours = networks.loss(Prepared(graph, graph.x, dtype), Batch([task], task.n_way), "sqeuclidean")
        whole = _whole_graph_loss(networks, graph, task, dtype)
        pairs = [(ours, whole)]
        parameters = list(networks.parameters())
        pairs += zip(torch.autograd.grad(ours, parameters), torch.autograd.grad(whole, parameters), strict=True)
        worst = max([worst, *(float(((a - b).abs().max() / b.abs().max().clamp(min=1)).detach()) for a, b in pairs)])
    assert worst < TOLERANCE[dtype]


def _networks(graph: Graph, seed: int, dtype: torch.dtype) -> Networks:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        networks = Networks(GCN(graph.n_features, (6, 4)), Valuator(graph.n_features, eps=0.5 + seed % 3)).to(dtype)
        for parameter in networks.parameters():
            torch.nn.init.normal_(parameter, std=0.5)
    return networks


def _random_task(graph: Graph, seed: int) -> Episode:
    rng = np.random.default_rng(seed)
    support_y = np.array([0, 1, 1, 0, 0][: rng.integers(2, 6)])
    return Episode(
        rng.integers(0, graph.n, support_y.size), support_y, rng.integers(0, graph.n, 4), rng.integers(0, 2, 4)
    )


def _whole_graph_loss(networks: Networks, graph: Graph, task: Episode, dtype: torch.dtype) -> torch.Tensor:
    a, x = oracle.dense(graph, dtype)
    encoder, valuator = networks.encoder, networks.valuator
    assert isinstance(encoder, GCN)
    assert valuator is not None
    z = oracle.encode(a, x, list(encoder.weight), list(encoder.bias))
    s = oracle.importance(a, x, valuator.w, valuator.b, valuator.a, valuator.eps)
    return oracle.loss(z, s, *(torch.from_numpy(part) for part in vars(task).values()))


def test_score_aggregation_by_hand(star: Graph) -> None:
    """The middle of the star sees all four scores, a leaf sees the middle's and its own: Eqs. (6)-(7)."""
    s = torch.tensor([0.5, -0.5, 0.0, 1.0])
    a = torch.tensor([1.0, -2.0])
    hop, _ = Prepared(star, star.x).hop(None)
    ours = aggregate_scores(s, s, hop, a)

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
    hop, _ = Prepared(star, star.x).hop(None)
    assert torch.allclose(aggregate_scores(s, s, hop, a), theirs, atol=1e-6)


def test_centrality_by_hand() -> None:
    assert torch.allclose(centrality(torch.tensor([0.0, 1.0, 3.0]), 1.0), torch.tensor([1.0, 2.0, 4.0]).log())


def test_importance_of_an_isolated_node_is_finite() -> None:
    graph = Graph.from_edges([[0], [1]], 3, np.ones((3, 2), np.float32))
    for eps in (1.0, 1e-6):
        assert torch.isfinite(Valuator(2, eps=eps)(Prepared(graph, graph.x), torch.tensor([2]))).all()


def test_prototypes_by_hand() -> None:
    z = torch.tensor([[0.0, 0.0], [4.0, 0.0], [1.0, 1.0]])
    p = prototypes(z, torch.tensor([0.0, math.log(3.0), 9.0]), torch.tensor([0, 0, 1]), 2)
    assert torch.allclose(p, torch.tensor([[3.0, 0.0], [1.0, 1.0]]))


def test_equal_importance_gives_the_plain_mean() -> None:
    z = torch.randn(6, 3)
    p = prototypes(z, torch.full((6,), 0.7), torch.tensor([0, 0, 0, 1, 1, 2]), 3)
    assert torch.allclose(p, torch.stack([z[:3].mean(0), z[3:5].mean(0), z[5]]), atol=1e-6)


def test_log_prob_by_hand() -> None:
    z, p = torch.tensor([[0.0, 0.0]]), torch.tensor([[[1.0, 0.0], [0.0, 2.0]]])
    expected = torch.log_softmax(torch.tensor([[-1.0, -4.0]]), 1)
    assert torch.allclose(log_prob(z, p), expected)
    assert torch.allclose(log_prob(z, p, "euclidean"), torch.log_softmax(torch.tensor([[-1.0, -2.0]]), 1), atol=1e-6)
    z, p = torch.tensor([[1.0, 0.0]]), torch.tensor([[[3.0, 0.0], [0.0, 2.0]]])
    assert torch.allclose(log_prob(z, p, "cosine"), torch.log_softmax(torch.tensor([[10.0, 0.0]]), 1), atol=1e-5)


@pytest.mark.parametrize("distance", ["cosine", "sqeuclidean", "euclidean"])
def test_nearness_to_shared_prototypes_is_closeness_to_each(distance: str) -> None:
    """Also of a node that nothing is known of: zeros are like nothing."""
    z, p = torch.cat([torch.randn(5, 3), torch.zeros(1, 3)]), torch.randn(4, 3)
    query = torch.tensor([5, 0, 2, 2])
    each = closeness(z[query], p.expand(4, -1, -1), distance)
    assert torch.allclose(nearness(z, query, p, distance), each, atol=1e-5)


def test_one_shot_makes_the_valuator_irrelevant(planted: Dataset) -> None:
    task = EpisodeSampler(planted, "test", 3, 1, 4)[0]
    g = Prepared(planted.graph, planted.graph.x)
    networks = _networks(planted.graph, 0, torch.float32)
    naive = Networks(networks.encoder, None)
    batch = Batch([task], 3)
    assert torch.allclose(networks.loss(g, batch, "sqeuclidean"), naive.loss(g, batch, "sqeuclidean"))


def test_duplicate_edges_and_far_away_nodes_change_nothing() -> None:
    graph = random_graph(11)
    rng = np.random.default_rng(0)
    x = np.asarray(graph.x.todense() if hasattr(graph.x, "todense") else graph.x)
    edges = graph.edge_index()
    island = rng.integers(graph.n, graph.n + 20, (2, 60))
    bigger = Graph.from_edges(
        np.concatenate([edges, edges[:, ::2], island], axis=1),
        graph.n + 20,
        np.concatenate([x, rng.normal(size=(20, x.shape[1])).astype(np.float32)]),
        directed=graph.directed,
    )
    networks, task = _networks(graph, 0, torch.float64), _random_task(graph, 0)
    batch = Batch([task], task.n_way)
    before, after = (networks.loss(Prepared(g, g.x, torch.float64), batch, "sqeuclidean") for g in (graph, bigger))
    assert torch.allclose(before, after, atol=1e-12)


def test_a_batch_of_tasks_equals_the_tasks_one_by_one(planted: Dataset) -> None:
    model = _fit(planted)
    tasks = [EpisodeSampler(planted, "test", n, k, 3)[t] for n, k, t in ((3, 2, 0), (4, 1, 1), (3, 5, 2))]
    together = model.predict_tasks(planted.graph, tasks)
    for task, rows in zip(tasks, together, strict=True):
        alone = model.predict_proba(planted.graph, task.support, task.support_y, task.query)
        assert np.allclose(rows, alone, atol=1e-6)


def test_dropout_by_validation_keeps_the_rate_that_validated_best(planted: Dataset, tmp_path) -> None:
    seen: dict[str, float] = {}

    def report(part: str, episode: int, loss: float, history) -> None:
        if history.points:
            seen[part] = max(point.accuracy for point in history.points)

    model = _fit(planted, dropout="auto", journal=Journal(tmp_path, report=report))
    assert set(seen) == {f"dropout-{rate}" for rate in GPN.DROPOUTS}
    assert seen[f"dropout-{model.dropout_}"] == max(seen.values()) == model.history_.best.accuracy


def test_a_module_encoder_is_copied_and_trained(planted: Dataset) -> None:
    from torch_geometric.nn.models import GraphSAGE

    module = GraphSAGE(planted.graph.n_features, 8, 2, 4)
    before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    model = _fit(planted, encoder=module)
    assert all(torch.equal(before[name], tensor) for name, tensor in module.state_dict().items())
    trained = model.networks_.encoder.module.state_dict()
    assert any(not torch.equal(before[name], trained[name]) for name in before)


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


def test_a_network_without_attributes_is_refused(planted: Dataset) -> None:
    bare = Graph.from_edges(planted.graph.edge_index(), planted.graph.n)
    sampler = EpisodeSampler(planted, "train", 3, 2)
    with pytest.raises(FewnodeError, match="no attributes"):
        GPN().fit(bare, sampler, sampler)


def _fit(data: Dataset, journal: Journal | None = None, **options: object) -> GPN:
    train, valid = (EpisodeSampler(data, part, 3, 2, 4) for part in ("train", "valid"))
    return GPN(episodes=20, **options).fit(data.graph, train, valid, **({"journal": journal} if journal else {}))
