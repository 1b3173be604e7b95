"""GPN+ with no base classes, with one, two or three, and with classes too small for a task."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from fewnode.dataset import ClassSplit, Dataset
from fewnode.episodes import Described, EpisodeSampler, Task
from fewnode.errors import FewnodeError
from fewnode.evaluation import evaluate
from fewnode.graph import Graph
from fewnode.method import space_of
from fewnode.methods.plus import GPNPlus
from fewnode.model.estimator import Estimator

NOBODY = ClassSplit((), (), ())


def fitted(data: Dataset, **options: object) -> Estimator:
    return Estimator("gpn-plus", way=3, shot=3, rank=32, **options).fit(data)


def test_labels_that_are_no_base_classes_are_not_looked_at(planted: Dataset) -> None:
    shuffled = np.random.default_rng(0).permutation(planted.y)
    task = ([0, 5, 9, 20], ["a", "a", "b", "b"], list(range(50, 90)))
    answers = [fitted(replace(planted, y=y, split=NOBODY)).predict_proba(planted, *task) for y in (planted.y, shuffled)]
    assert np.array_equal(*answers)


@pytest.mark.parametrize(
    ("train", "valid"),
    [((), ()), ((0,), ()), ((0, 1), ()), ((0,), (1,)), ((), (0, 1)), ((0, 1), (2,)), ((0, 1, 2), ())],
)
def test_any_number_of_base_classes_will_do(planted: Dataset, train: tuple[int, ...], valid: tuple[int, ...]) -> None:
    test = tuple(range(10, 15))
    model = fitted(replace(planted, split=ClassSplit(train, valid, test)))
    assert evaluate(model, planted, way=5, shot=3, tasks=30).accuracy.mean > 0.9
    assert evaluate(model, planted, way=5, shot=1, tasks=30, transductive=True).accuracy.mean > 0.8
    support = [int(np.flatnonzero(planted.y == c)[0]) for c in test[:2]]
    member = model.member(planted, support, ["a", "b"], np.flatnonzero(planted.y == 12)[:5])
    assert np.isfinite(member).all()


@pytest.mark.parametrize("sizes", [(1, 1, 1), (2, 2), (1, 3, 2), (3, 3, 3, 3)])
def test_base_classes_too_small_for_a_task_do_no_harm(planted: Dataset, sizes: tuple[int, ...]) -> None:
    y = np.where(planted.y >= 10, planted.y, -1)
    for c, size in enumerate(sizes):
        y[np.flatnonzero(planted.y == c)[:size]] = c
    split = ClassSplit(tuple(range(len(sizes))), (), tuple(range(10, 15)))
    model = fitted(replace(planted, y=y, split=split))
    assert evaluate(model, planted, way=5, shot=3, tasks=30).accuracy.mean > 0.9


@pytest.mark.parametrize(("tells", "gain"), [("structure", 0.02), ("attributes", 0.0)])
def test_it_finds_out_from_the_support_which_side_tells(planted: Dataset, tells: str, gain: float) -> None:
    """The other side is drawn anew, so it tells nothing. The prior expects most of attributes: less is to be gained."""
    rng = np.random.default_rng(0)
    graph = planted.graph
    if tells == "structure":
        other = Graph(graph.adj, graph.x[rng.permutation(graph.n)])
    else:
        other = Graph.from_edges(rng.integers(0, graph.n, (2, 1100)), graph.n, graph.x)
    data = replace(planted, graph=other)
    free = evaluate("gpn-plus", data, shot=5, tasks=5, classes="all").accuracy.mean
    method = GPNPlus().fit(other, EpisodeSampler.none(), EpisodeSampler.none())
    method.adapts_ = False
    stubborn = evaluate(method, data, shot=5, tasks=5, classes="all").accuracy.mean
    assert free > stubborn + gain


def test_a_task_may_have_descriptions_alone(worded: Dataset) -> None:
    """A row of attributes for each class, as a text of its words would have them; the probabilities are by column."""
    method = GPNPlus(rank=24).fit(worded.graph, EpisodeSampler.none(), EpisodeSampler.none())
    x = sp.csr_array(np.stack([worded.graph.x[worded.y == c].sum(axis=0) for c in range(4)]).astype(np.float32))
    nodes = np.arange(worded.graph.n)
    task = Task(np.zeros(0, np.int64), np.zeros(0, np.int64), nodes, Described(x, np.arange(4)))
    space = space_of(method, worded.graph)
    for transductive in (False, True):
        p = space.predict_tasks([task], transductive)[0]
        assert p.shape == (worded.graph.n, 4)
        assert np.allclose(p.sum(axis=1), 1, atol=1e-5)
        assert np.mean(p.argmax(axis=1) == worded.y) > 0.9
    assert np.allclose(space.prepare(task).beta, 1)


@pytest.mark.parametrize("x", [None, np.ones((80, 3)), np.zeros((80, 3)), sp.csr_array((80, 3))])
def test_a_network_in_which_nothing_tells_nodes_apart_is_refused(x: object) -> None:
    nothing = Graph.from_edges(np.zeros((2, 0), np.int64), 80, x)
    with pytest.raises(FewnodeError, match="give a table of edges, or columns that describe nodes"):
        GPNPlus().fit(nothing, EpisodeSampler.none(), EpisodeSampler.none())
    edge = Graph.from_edges(np.array([[0, 1], [1, 2]]), 80, x)
    GPNPlus().fit(edge, EpisodeSampler.none(), EpisodeSampler.none())
