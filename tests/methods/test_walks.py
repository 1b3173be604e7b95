"""Walks against their closed form, vectors against gensim, and the method on top of both."""

from __future__ import annotations

import os
from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats

from fewnode.dataset import ClassSplit, Dataset
from fewnode.embedding.random_walks import random_walks
from fewnode.errors import FewnodeError
from fewnode.evaluation import evaluate
from fewnode.graph import Graph
from fewnode.methods import walks as methods_walks
from fewnode.methods.walks import Walks, structure_hash, vectors_of_walks
from fewnode.relations import EdgeRows, read_relations
from graphs import random_graph


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


# --- skip-gram ----------------------------------------------------------------------------------------------------


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
    n, how = data.graph.n, Walks(dimensions=64, window=5)
    walks = random_walks(data.graph, 1, 1, walks=10, length=40, seed=0)
    sentences = [[str(v) for v in row if v >= 0] for row in walks.tolist()]
    how_theirs = {"vector_size": 64, "sg": 1, "negative": 5, "min_count": 0, "sample": 0, "window": 5, "epochs": 1}
    model = Word2Vec(sentences, seed=1, workers=1, **how_theirs)
    theirs = few_shot_accuracy(model.wv[[str(v) for v in range(n)]], data)
    assert 0.4 < theirs < 0.95  # neither chance nor so easy that nothing could differ
    for many in (methods_walks.MANY_PAIRS, 0):
        monkeypatch.setattr(methods_walks, "MANY_PAIRS", many)
        ours = few_shot_accuracy(vectors_of_walks(walks, n, how), data)
        assert ours >= theirs - 0.01


# --- the method ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [{"p": 0}, {"q": -1}, {"q": 1e4}, {"p": float("nan")}, {"dimensions": 0}, {"length": 0}, {"lr": 0}],
    ids=str,
)
def test_impossible_options_are_refused(options: dict[str, Any], star: Graph) -> None:
    with pytest.raises(FewnodeError, match=f"^{next(iter(options))} is .*, expected"):
        Walks(**options).vectors(star)
