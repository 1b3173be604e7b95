"""COSMIC against its source's equations, computed plainly."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from fewnode.dataset import Dataset
from fewnode.engine.sparse import operand
from fewnode.engine.unit_rows import unit_rows
from fewnode.episodes import EpisodeSampler
from fewnode.errors import FewnodeError
from fewnode.graph import Graph, Ints
from fewnode.methods.cosmic import partners, supervised_contrast
from fewnode.methods.subgraphs import Subgraphs
from fewnode.methods.table import build_method
from graphs import random_graph


def test_the_loss_is_the_supervised_contrastive_one() -> None:
    """Both views of every node are anchors; a positive is another view, or a view of another node, of the class."""
    z, summary, y = torch.randn(5, 3).double(), torch.randn(5, 3).double(), torch.tensor([0, 0, 1, 1, 2])
    rows, label, tau = [*z, *summary], [*y.tolist()] * 2, 0.3
    total = 0.0
    for i, anchor in enumerate(rows):
        others = [k for k in range(10) if k != i]
        below = sum(float(torch.exp(anchor @ rows[k] / tau)) for k in others)
        good = [k for k in others if label[k] == label[i]]
        total -= sum(float(anchor @ rows[k] / tau) - np.log(below) for k in good) / len(good)
    assert float(supervised_contrast(z, summary, y, tau)) == pytest.approx(total / 10)


@pytest.mark.parametrize("graph", [random_graph(seed) for seed in (1, 7, 12, 20)])
def test_a_subgraph_has_the_nodes_most_visited_for_their_degree(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fewnode.methods.subgraphs.TOLERANCE", 1e-9)
    adj = graph.adj.toarray().astype(np.float64)
    adj = np.maximum(adj, adj.T)
    degree = adj.sum(axis=0)
    across = adj / np.where(degree == 0, 1, degree)
    size = min(4, graph.n)
    found = Subgraphs(graph, 4)
    edges = found.edges(found.place).numpy()
    for node in range(graph.n):
        start = visits = np.eye(graph.n)[node]
        for _ in range(200):
            visits = 0.15 * start + 0.85 * across @ visits
        score = np.where(degree > 0, visits / np.where(degree == 0, 1, degree), 0)
        score[node] = 0
        place = found.place[node]
        assert place[0] == node
        chosen = place[1:][place[1:] >= 0]
        assert chosen.size == min(size - 1, int((score > 1e-12).sum()))
        assert np.allclose(score[chosen], np.sort(score)[::-1][: chosen.size], rtol=1e-3)
        here = [node, *chosen]
        assert np.allclose(edges[node][: len(here), : len(here)], adj[np.ix_(here, here)], atol=1e-6)
        assert edges[node][len(here) :].sum() == edges[node][:, len(here) :].sum() == 0


def by_hand(data: Dataset, place: Ints, weights: dict[str, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    """The row of a node and the mean of its subgraph, from one GCN layer on that subgraph."""
    here = place[place >= 0]
    closed = data.graph.adj.toarray()[np.ix_(here, here)].astype(np.float64) + np.eye(here.size)
    scale = closed.sum(axis=1) ** -0.5
    a_hat = torch.from_numpy(scale[:, None] * closed * scale)
    x = F.normalize(torch.from_numpy(data.graph.x.toarray()[here].astype(np.float64)))
    h = F.normalize(F.prelu(a_hat @ x @ weights["weight"] + weights["bias"], weights["slope"]))
    return h[0], h.mean(dim=0)


def test_it_takes_a_step_of_adam_down_that_loss_and_embeds_by_its_subgraphs(planted: Dataset) -> None:
    options: dict[str, Any] = {"hidden": 5, "subgraph": 6, "mix": False, "episodes": 1}
    train = EpisodeSampler(planted, "train", 3, 2, 1, seed=4)
    valid = EpisodeSampler(planted, "valid", 3, 2)
    before, after = {}, {}
    for lr, into in ((1e-30, before), (0.01, after)):
        method = build_method("cosmic", 2, {**options, "lr": lr}).fit(planted.graph, train, valid)
        into.update({name: tensor.clone() for name, tensor in method.module_.state_dict().items()})
    weights = {name: tensor.double().requires_grad_() for name, tensor in before.items()}
    episode, places = train[0], Subgraphs(planted.graph, 6).place
    views = [by_hand(planted, places[v], weights) for v in (*episode.support, *episode.query)]
    y = torch.from_numpy(np.concatenate([episode.support_y, episode.query_y]))
    z, summary = (torch.stack(part) for part in zip(*views, strict=True))
    supervised_contrast(z, summary, y, 0.07).backward()
    for name, tensor in after.items():
        gradient = weights[name].grad
        assert gradient is not None
        clear = gradient.abs() > 1e-4
        assert clear.any()
        assert torch.allclose((before[name] - tensor).double()[clear], 0.01 * gradient.sign()[clear], atol=1e-4)
    learned = {name: tensor.double() for name, tensor in after.items()}
    rows = torch.stack([by_hand(planted, place, learned)[0] for place in places]).numpy()
    rows = rows - rows.mean(axis=0)
    expected = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    assert np.allclose(method.embedding(planted.graph), expected, atol=1e-4)


def test_rows_of_unit_length_and_their_means_are_those_of_torch_backwards_too() -> None:
    """Groups with missing rows, and one whose rows are all 0."""
    h, bias, slope = torch.randn(6, 4, 9), torch.randn(9), torch.rand(9)
    there = (torch.rand(6, 4) < 0.6).float()
    there[:, 0] = 1
    h[2] = -bias
    given = [part.requires_grad_() for part in (h, bias, slope)]
    up = torch.randn(2, 6, 9)

    def plainly() -> tuple[torch.Tensor, torch.Tensor]:
        raised = h + bias
        rows = F.normalize(torch.where(raised > 0, raised, slope * raised), dim=2)
        return rows[:, 0], (rows * there[:, :, None]).sum(dim=1) / there.sum(dim=1, keepdim=True)

    quick, plain = unit_rows(h, bias, slope, there), plainly()
    assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(quick, plain, strict=True))
    steep = torch.ones(6, 1, 1)
    steep[2] = 0  # at a row of length 0 the direction is anybody's
    found, expected = (
        torch.autograd.grad(sum((a * b * steep[:, 0]).sum() for a, b in zip(each, up, strict=True)), given)
        for each in (quick, plain)
    )
    for a, b in zip(found, expected, strict=True):
        assert torch.allclose(a, b, atol=1e-5)


def test_a_mixture_lies_between_a_node_and_one_of_the_next_class(planted: Dataset) -> None:
    y = np.array([0, 1, 2, 0, 1, 2, 2])
    other = partners(y, 3)
    assert (y[other] == (y + 1) % 3).all()
    around = Subgraphs(planted.graph, 6)
    parts = around.of(np.arange(7) * 30, operand(planted.graph.x), torch.eye(planted.graph.n_features))
    mixed = parts.mixed(other, np.random.default_rng(0))
    for own, mixture in ((parts.xw, mixed.xw), (parts.adj, mixed.adj)):
        low, high = torch.minimum(own, own[other]), torch.maximum(own, own[other])
        assert (mixture >= low - 1e-6).all()
        assert (mixture <= high + 1e-6).all()
    assert not torch.allclose(mixed.xw, parts.xw)


def test_the_more_alike_two_nodes_are_the_more_of_the_other_is_in_a_mixture(planted: Dataset) -> None:
    """Shares are drawn from Beta(10 sigmoid(-cosine), 1), whose mean is a / (a + 1)."""
    around, columns = Subgraphs(planted.graph, 1), planted.graph.n_features
    parts = around.of(np.zeros(2000, np.int64), operand(planted.graph.x), torch.eye(columns))
    other = np.arange(2000)[::-1].copy()
    opposite = parts._replace(mean=torch.cat([parts.mean[:1000], -parts.mean[1000:]]))
    for each, cosine in ((parts, 1.0), (opposite, -1.0)):
        marked = each._replace(xw=torch.cat([torch.ones(1000, 1, 1), torch.zeros(1000, 1, 1)]))
        share = float(marked.mixed(other, np.random.default_rng(0)).xw[:1000].mean())
        a = 10 / (1 + np.exp(cosine))
        assert share == pytest.approx(a / (a + 1), abs=0.02)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"subgraph": 0}, "subgraph is 0"), ({"tau": 0.0}, "tau 0.0"), ({"episodes": 0}, "0 steps of training")],
)
def test_options_that_cannot_be_are_refused(options: dict[str, Any], message: str, planted: Dataset) -> None:
    train = EpisodeSampler(planted, "train", 3, 2)
    with pytest.raises(FewnodeError, match=message):
        build_method("cosmic", 0, options).fit(planted.graph, train, train)
