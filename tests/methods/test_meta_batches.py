"""Several tasks a step, a pool that is read once, and compiled loops: each equals the plain computation."""

import numpy as np
import pytest
import torch

from fewnode import kernels
from fewnode.episodes import Episode, EpisodeSampler
from fewnode.errors import FewnodeError
from fewnode.evaluation import score
from fewnode.graph import Dataset
from fewnode.methods.gpn import GPN, Batch, _Pool, aggregate_scores
from fewnode.nn import Prepared
from fewnode.train import MetaBatches
from graphs import random_graph


@pytest.mark.parametrize("options", [{}, {"valuator": False}, {"distance": "cosine"}, {"encoder": "mlp"}])
def test_the_gradient_of_a_meta_batch_is_the_mean_of_its_tasks(planted: Dataset, options: dict[str, object]) -> None:
    model = GPN(dropout=0.0, **options)
    networks, g = model._build(planted.graph.n_features, 0.0), Prepared(planted.graph, planted.graph.x)
    tasks = MetaBatches(EpisodeSampler(planted, "train", 3, 2, 4), 8)[3]
    parameters = list(networks.parameters())

    def gradient(batch: Batch) -> tuple[torch.Tensor, ...]:
        return torch.autograd.grad(networks.loss(g, batch, model.distance), parameters)

    together = gradient(Batch(tasks, 3))
    alone = zip(*(gradient(Batch([task], 3)) for task in tasks), strict=True)
    for ours, each in zip(together, alone, strict=True):
        assert torch.allclose(ours, torch.stack(each).mean(dim=0), atol=1e-6)


def test_no_task_is_in_two_meta_batches(planted: Dataset) -> None:
    train = EpisodeSampler(planted, "train", 3, 2, 4)
    drawn = [task for t in range(3) for task in MetaBatches(train, 4)[t]]
    for t, task in enumerate(drawn):
        assert np.array_equal(task.support, train[t].support)


def test_meta_batches_train(planted: Dataset) -> None:
    train, valid = (EpisodeSampler(planted, part, 3, 2, 4) for part in ("train", "valid"))
    model = GPN(episodes=10, batch=4).fit(planted.graph, train, valid)
    assert model.history_.done == 10
    with pytest.raises(FewnodeError, match="a batch of 0 tasks"):
        GPN(batch=0).fit(planted.graph, train, valid)


@pytest.mark.parametrize("valuator", [True, False])
def test_a_pool_alone_is_answered_as_with_all_nodes(planted: Dataset, valuator: bool) -> None:
    train, valid = (EpisodeSampler(planted, part, 3, 2, 4) for part in ("train", "valid"))
    model = GPN(episodes=10, valuator=valuator).fit(planted.graph, train, valid)
    pool = valid.take(20)
    view = _Pool(model.networks_, model._prepared(planted.graph), pool, model.distance)
    theirs = model.predict_tasks(planted.graph, pool)
    for ours, whole in zip(view.predict_tasks(planted.graph, view.tasks), theirs, strict=True):
        assert np.allclose(ours, whole, atol=1e-6)
    assert view.accuracy(planted.graph) == pytest.approx(score(model, planted.graph, pool)["accuracy"].mean())


@pytest.mark.parametrize("size", [1, 400], ids=["small", "exponents that would overflow"])
@pytest.mark.parametrize("seed", range(20))
def test_compiled_aggregation_equals_autograd(seed: int, size: int) -> None:
    """The way that other devices go, Eqs. (6)-(7) as written, against the loops: scores and derivatives."""
    graph = random_graph(seed)
    hop, _ = Prepared(graph, graph.x, torch.float64).hop(None)
    generator = torch.Generator().manual_seed(seed)
    s = torch.rand(graph.n, dtype=torch.float64, generator=generator).requires_grad_()
    a = (size * torch.randn(2, dtype=torch.float64, generator=generator)).requires_grad_()
    upstream = torch.randn(graph.n, dtype=torch.float64, generator=generator)
    plain = aggregate_scores(s, s, hop, a)
    by_s, by_a = torch.autograd.grad(plain, (s, a), upstream)
    given = (*hop.arrays[:3], s.detach().numpy(), s.detach().numpy(), a.detach().numpy())
    found = kernels.aggregate(*given)
    own, others, pair = kernels.aggregate_gradient(*given, found, upstream.numpy())
    assert np.allclose(found[0], plain.detach().numpy())
    assert np.allclose(own + others, by_s.numpy())
    assert np.allclose(pair, by_a.numpy())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_tanh_by_an_exponential_is_a_tanh(dtype: type) -> None:
    x = np.concatenate([[0.0], np.logspace(-6, 3, 200), -np.logspace(-6, 3, 200)]).astype(dtype)
    with np.errstate(over="ignore"):
        found = kernels.squashed(x.copy(), dtype(0.25))
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


@kernels.compiled
def _powers(x: np.ndarray) -> np.ndarray:
    out = np.empty_like(x)
    for i in range(x.size):
        out[i] = kernels.power(x[i])
    return out


def test_dropout_drops_its_share_and_keeps_the_mean() -> None:
    h = np.ones((500, 40), np.float32)
    kernels.drop(h, 0.2, 7)
    assert abs((h == 0).mean() - 0.2) < 0.01
    assert abs(h.mean() - 1) < 0.02
    again = np.ones((500, 40), np.float32)
    kernels.drop(again, 0.2, 8)
    assert (h != again).any()


@pytest.mark.parametrize("seed", range(40))
def test_devices_without_compiled_loops_get_the_same_numbers(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a GPU would run, here by torch on the CPU: loss and every derivative."""
    graph = random_graph(seed)
    networks = GPN(hidden=(6, 4))._build(graph.n_features, 0.0).double()
    rng = np.random.default_rng(seed)
    y = np.array([0, 1, 1, 0])
    task = Episode(rng.integers(0, graph.n, 4), y, rng.integers(0, graph.n, 4), y)
    parameters = list(networks.parameters())

    def found() -> list[torch.Tensor]:
        g = Prepared(graph, graph.x, torch.float64)
        loss = networks.loss(g, Batch([task], 2), "sqeuclidean")
        whole = [networks.encoder(g, None).detach(), networks.importance(g, None).detach()]
        return [loss.detach(), *torch.autograd.grad(loss, parameters), *whole]

    compiled = found()
    monkeypatch.setattr("fewnode.nn.has_kernels", lambda tensor: False)
    monkeypatch.setattr("fewnode.methods.gpn.has_kernels", lambda tensor: False)
    for ours, theirs in zip(compiled, found(), strict=True):
        assert torch.allclose(ours, theirs, atol=1e-10)
