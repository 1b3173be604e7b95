"""Walks against their closed form, vectors against gensim, and the method on top of both."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from scipy import stats

from fewnode.dataset import ClassSplit, Dataset
from fewnode.edges.relations import EdgeRows, read_relations
from fewnode.episodes import EpisodeSampler, Task
from fewnode.errors import FewnodeError
from fewnode.evaluation import evaluate
from fewnode.graph import Graph
from fewnode.methods.walks import Walks, structure_hash
from fewnode.represent import skipgram
from fewnode.represent.random_walks import random_walks
from fewnode.represent.skipgram import skip_gram
from graphs import random_graph

SMALL: dict[str, Any] = {"dimensions": 16, "walks": 5, "length": 20, "window": 5}


def partition(classes: int, size: int, inside: float, outside: float, seed: int = 0) -> Dataset:
    """A planted partition without attributes: `inside` edges a node within its class, `outside` to anywhere."""
    rng = np.random.default_rng(seed)
    n = classes * size
    y = rng.permutation(np.repeat(np.arange(classes), size))
    members = np.argsort(y, kind="stable").reshape(classes, size)
    source = rng.integers(0, n, int(inside * n / 2))
    edges = [np.stack([source, members[y[source], rng.integers(0, size, source.size)]])]
    edges.append(rng.integers(0, n, (2, int(outside * n / 2))))
    third = classes // 3
    split = ClassSplit(tuple(range(third)), tuple(range(third, 2 * third)), tuple(range(2 * third, classes)))
    return Dataset(Graph.from_edges(np.concatenate(edges, axis=1), n), y, split)


def fit(data: Dataset, **options: Any) -> Walks:
    train, valid = (EpisodeSampler(data, part, 3, 3) for part in ("train", "valid"))
    return Walks(**{**SMALL, **options}).fit(data.graph, train, valid)


@pytest.fixture(name="blocks", scope="module")
def _blocks() -> Dataset:
    return partition(classes=9, size=40, inside=8, outside=2)


@pytest.fixture(name="fitted", scope="module")
def _fitted(blocks: Dataset) -> Walks:
    return fit(blocks)


# --- walks --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(12))
def test_a_walk_follows_edges_and_ends_only_where_none_leads_on(seed: int) -> None:
    graph = random_graph(seed)
    p, q = [(1.0, 1.0), (0.25, 4.0), (1e9, 0.01)][seed % 3]
    rows = random_walks(graph, p, q, walks=3, length=12, seed=seed)
    leads = graph.adj.toarray().T > 0
    assert Counter(rows[:, 0].tolist()) == dict.fromkeys(range(graph.n), 3)
    for row in rows:
        for u, v in pairwise(row):
            assert leads[u, v] if v >= 0 else u < 0 or not leads[u].any()


def step_probability(leads: np.ndarray, before: int, v: int, p: float, q: float) -> np.ndarray:
    """π of section 3.2.2 of the node2vec paper, with the distance from the node before counted along edges."""
    bias = np.where(leads[before] > 0, 1, 1 / q)
    bias[before] = 1 / p
    return leads[v] * bias / (leads[v] * bias).sum()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize(("p", "q"), [(1, 1), (0.25, 4), (4, 0.25), (0.5, 0.5), (100, 1)])
def test_steps_have_the_probabilities_of_the_closed_form(p: float, q: float, directed: bool, weighted: bool) -> None:
    rng = np.random.default_rng(4)
    edges = rng.integers(0, 8, (2, 34 if directed else 14))
    graph = Graph.from_edges(np.concatenate([edges, [[7], [0]]], axis=1), 9, directed=directed)  # node 8 is isolated
    if weighted:
        rows = EdgeRows(graph.edge_index(), rng.lognormal(0, 1, graph.adj.nnz))
        graph = read_relations(rows, 9, directed=directed, scale="none")[0]
    leads = graph.adj.toarray().T.astype(np.float64)
    path = random_walks(graph, p, q, walks=400, length=60, seed=1).astype(int)
    steps = np.concatenate([path[:, i : i + 3] for i in range(58)])
    count = np.zeros((9, 9, 9))
    np.add.at(count, tuple(steps[steps.min(axis=1) >= 0].T), 1)
    statistic, freedom = 0.0, 0
    for before, v in np.argwhere(count.sum(axis=2) > 50):
        expected = step_probability(leads, before, v, p, q) * count[before, v].sum()
        possible = expected > 0
        assert count[before, v][~possible].sum() == 0
        statistic += (np.square(count[before, v] - expected)[possible] / expected[possible]).sum()
        freedom += possible.sum() - 1
    assert freedom > 20
    assert 0.001 < stats.chi2.sf(statistic, freedom) < 0.999


def test_a_walk_goes_from_source_to_target() -> None:
    path = Graph.from_edges([[0, 1], [1, 2]], 3, directed=True)
    rows = random_walks(path, 1, 1, walks=1, length=4, seed=0)
    assert sorted(rows.tolist()) == [[0, 1, 2, -1], [1, 2, -1, -1], [2, -1, -1, -1]]


# --- skip-gram ----------------------------------------------------------------------------------------------------


def test_the_seed_decides(blocks: Dataset) -> None:
    first, again, other = (Walks(**SMALL, seed=seed).embed(blocks.graph) for seed in (3, 3, 4))
    assert np.array_equal(first, again)
    assert not np.allclose(first, other)


def test_vectors_of_a_block_are_near_each_other(blocks: Dataset, fitted: Walks) -> None:
    z = fitted.embedding_ - fitted.embedding_.mean(axis=0)
    z /= np.linalg.norm(z, axis=1, keepdims=True)
    same = blocks.y[:, None] == blocks.y
    cosine = z @ z.T
    assert cosine[same].mean() > cosine[~same].mean() + 0.3


def test_diverging_vectors_are_an_error(blocks: Dataset) -> None:
    with pytest.raises(FewnodeError, match="diverged; try a smaller learning rate"):
        Walks(**SMALL, lr=1e30).embed(blocks.graph)


def few_shot_accuracy(z: np.ndarray, data: Dataset) -> float:
    state = {"embedding": torch.from_numpy(z), "graph": torch.from_numpy(structure_hash(data.graph))}
    method = Walks(dimensions=z.shape[1]).restore(0, state)
    return evaluate(method, data, way=5, shot=5, query=15, tasks=150).accuracy.mean


def test_as_accurate_as_gensim(monkeypatch: pytest.MonkeyPatch) -> None:
    """With negatives of a pair's own, and with shared ones."""
    try:
        from gensim.models import Word2Vec
    except ImportError:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip("gensim is not installed")
    data = partition(classes=24, size=90, inside=4, outside=3)
    n, options = data.graph.n, {"window": 5, "epochs": 1}
    walks = random_walks(data.graph, 1, 1, walks=10, length=40, seed=0)
    sentences = [[str(v) for v in row if v >= 0] for row in walks.tolist()]
    model = Word2Vec(sentences, vector_size=64, sg=1, negative=5, min_count=0, sample=0, seed=1, workers=1, **options)
    theirs = few_shot_accuracy(model.wv[[str(v) for v in range(n)]], data)
    assert 0.4 < theirs < 0.95  # neither chance nor so easy that nothing could differ
    for many in (skipgram.MANY_PAIRS, 0):
        monkeypatch.setattr(skipgram, "MANY_PAIRS", many)
        ours = few_shot_accuracy(skip_gram(walks, n, 64, **options), data)
        assert ours >= theirs - 0.01


# --- the method ---------------------------------------------------------------------------------------------------


def task(data: Dataset) -> Task:
    """1, 4 and 2 shots of three test classes, in no order, and twelve queries."""
    nodes = [np.flatnonzero(data.y == c) for c in data.split.test[:3]]
    support = np.concatenate([nodes[0][:1], nodes[1][:4], nodes[2][:2]])
    order = np.array([3, 0, 6, 2, 5, 1, 4])
    query = np.concatenate([part[10:14] for part in nodes])
    return Task(support[order], np.array([0, 1, 1, 1, 1, 2, 2])[order], query)


def test_unequal_shots(blocks: Dataset, fitted: Walks) -> None:
    p = fitted.predict_proba(blocks.graph, task(blocks))
    assert p.dtype == np.float32
    assert np.allclose(p.sum(axis=1), 1, atol=1e-6)
    assert np.mean(p.argmax(axis=1) == np.repeat([0, 1, 2], 4)) > 0.6


def test_one_shot_of_one_class_or_of_two(blocks: Dataset, fitted: Walks) -> None:
    support, query = task(blocks).support, task(blocks).query
    one = Task(support[:1], np.array([0]), query)
    assert np.array_equal(fitted.predict_proba(blocks.graph, one), np.ones((12, 1)))
    p = fitted.predict_proba(blocks.graph, Task(support[:2], np.array([1, 0]), support[:2]))
    assert p.argmax(axis=1).tolist() == [1, 0]
    assert fitted.predict_proba(blocks.graph, Task(support[:2], np.array([0, 1]), query[:0])).shape == (0, 2)


def test_above_chance_with_one_shot_and_better_with_five(blocks: Dataset, fitted: Walks) -> None:
    one, five = (evaluate(fitted, blocks, way=3, shot=shot, query=5, tasks=60).accuracy.mean for shot in (1, 5))
    assert 0.5 < one < five


def test_restored_vectors_answer_the_same_for_the_same_structure(
    blocks: Dataset, fitted: Walks, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = Walks(**SMALL).restore(0, {name: array.copy() for name, array in fitted.state().items()})
    monkeypatch.setattr(Walks, "embed", lambda self, graph: pytest.fail("embedded again"))
    graph = Graph(blocks.graph.adj, np.ones((blocks.graph.n, 2), np.float32))
    expected = fitted.predict_proba(blocks.graph, task(blocks))
    assert np.array_equal(loaded.predict_proba(graph, task(blocks)), expected)


def test_another_network_is_embedded_once(blocks: Dataset, fitted: Walks, monkeypatch: pytest.MonkeyPatch) -> None:
    other = partition(classes=9, size=40, inside=8, outside=2, seed=1)
    embedded = []
    embed = Walks.embed
    monkeypatch.setattr(Walks, "embed", lambda self, graph: embedded.append(graph) or embed(self, graph))
    loaded = Walks(**SMALL).restore(0, fitted.state())
    assert evaluate(loaded, replace(other), way=3, shot=5, tasks=30).accuracy.mean > 0.6
    assert embedded == [other.graph]
    assert np.array_equal(loaded.embedding(blocks.graph), fitted.embedding_)


def test_vectors_of_another_width_are_not_restored(fitted: Walks) -> None:
    with pytest.raises(ValueError, match=r"expected \(\d+, 8\)"):
        Walks(dimensions=8).restore(0, fitted.state())


@pytest.mark.parametrize("n", [0, 1, 5])
def test_nodes_without_edges_have_finite_vectors(n: int) -> None:
    z = Walks(**SMALL).embed(Graph(sp.csr_array((n, n)), np.zeros((n, 0), np.float32)))
    assert z.shape == (n, 16)
    assert np.isfinite(z).all()


@pytest.mark.parametrize(
    "options",
    [{"p": 0}, {"q": -1}, {"q": 1e4}, {"p": float("nan")}, {"dimensions": 0}, {"length": 0}, {"lr": 0}],
    ids=str,
)
def test_impossible_options_are_refused(options: dict[str, Any], star: Graph) -> None:
    with pytest.raises(FewnodeError, match=f"^{next(iter(options))} is .*, expected"):
        Walks(**options).embed(star)
