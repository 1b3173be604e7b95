import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewnode.dataset import ClassSplit, Dataset
from fewnode.episodes import Episode, EpisodeSampler, Task, choose, uniform
from fewnode.errors import FewnodeError
from fewnode.graph import Graph


def test_a_task_is_a_pure_function_of_seed_and_index(planted: Dataset) -> None:
    one, other = (EpisodeSampler(planted, "train", 3, 2, 4, seed=7) for _ in range(2))
    other[3], other[99]  # what was drawn before does not matter
    assert np.array_equal(one[5].support, other[5].support)
    assert np.array_equal(one[5].query, other[5].query)
    assert not np.array_equal(one[5].support, one[6].support)
    assert not np.array_equal(one[5].support, EpisodeSampler(planted, "train", 3, 2, 4, seed=8)[5].support)


def test_the_stream_of_tasks_never_changes() -> None:
    """These numbers are the protocol: if this test fails, every published pool has changed."""
    y = np.arange(60) % 6
    data = Dataset(Graph.from_edges(np.zeros((2, 0), int), 60), y, ClassSplit((), (), tuple(range(6))))
    task = EpisodeSampler(data, "test", 3, 2, 1, seed=0)[0]
    assert task.support.tolist() == TASK["support"]
    assert task.query.tolist() == TASK["query"]


TASK = {"support": [3, 51, 38, 44, 55, 49], "query": [57, 2, 13]}


def test_shape_and_disjointness(planted: Dataset) -> None:
    for t in range(50):
        task = EpisodeSampler(planted, "valid", 4, 3, 5)[t]
        assert task.support_y.tolist() == [0] * 3 + [1] * 3 + [2] * 3 + [3] * 3
        assert np.bincount(task.query_y).tolist() == [5] * 4
        nodes = np.r_[task.support, task.query]
        assert np.unique(nodes).size == nodes.size
        classes = planted.y[task.support].reshape(4, 3)
        assert (classes == classes[:, :1]).all()
        assert set(classes[:, 0]) <= set(planted.split.valid)
        assert np.array_equal(classes[task.query_y, 0], planted.y[task.query])


def test_every_class_and_node_is_drawn_equally_often(planted: Dataset) -> None:
    sampler = EpisodeSampler(planted, "train", 2, 1, 1)
    tasks = [sampler[t] for t in range(3000)]
    counts = np.bincount(planted.y[np.concatenate([task.support for task in tasks])], minlength=5)[:5]
    assert counts.sum() == 6000
    assert abs(counts / 6000 - 0.2).max() < 0.02
    nodes = np.bincount(np.concatenate([np.r_[t.support, t.query] for t in tasks]), minlength=planted.graph.n)
    assert nodes[np.isin(planted.y, planted.split.train)].min() > 50, "100 expected of each"


@given(st.integers(0, 2**32), st.integers(1, 40), st.data())
def testchoose_is_without_replacement(seed: int, n: int, data: st.DataObject) -> None:
    k = data.draw(st.integers(0, n))
    chosen = choose(uniform(seed, 0, k), n, k)
    assert len(set(chosen)) == k
    assert all(0 <= c < n for c in chosen)


@pytest.mark.parametrize(
    ("way", "shot", "query", "message"),
    [
        (6, 1, 1, "6-way tasks need 6 test classes, there are 5"),
        (5, 20, 5, "test class 'class k' has 24 nodes, but 20 shots and 5 queries need 25"),
        (0, 1, 1, "must be at least 1"),
        (2, 0, 1, "must be at least 1"),
    ],
)
def test_an_impossible_task_is_refused_when_the_sampler_is_built(
    planted: Dataset, way: int, shot: int, query: int, message: str
) -> None:
    with pytest.raises(FewnodeError, match=message):
        EpisodeSampler(planted, "test", way, shot, query)


@pytest.mark.parametrize(
    ("support_y", "query_y"), [([0, 2], [0]), ([], []), ([0, 1], [2]), ([0, 1], [-1]), ([1, 1], [1])]
)
def test_a_malformed_episode_is_refused(support_y: list[int], query_y: list[int]) -> None:
    support, query = np.arange(len(support_y)), np.arange(len(query_y))
    with pytest.raises(FewnodeError):
        Episode(Task(support, np.array(support_y, int), query), np.array(query_y, int))


def test_no_base_classes_is_a_sampler_without_tasks() -> None:
    nothing = EpisodeSampler.none()
    assert not nothing.members
    for ask in (lambda: nothing[0], lambda: nothing.take(1)):
        with pytest.raises(FewnodeError, match="there are no base classes to learn from; choose a method"):
            ask()
