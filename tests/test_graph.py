import numpy as np
import pytest
import scipy.sparse as sp

from fewnode.dataset import ClassSplit, Dataset
from fewnode.episodes import EpisodeSampler
from fewnode.errors import FewnodeError
from fewnode.graph import Graph


def test_edges_become_symmetric_without_loops_or_duplicates() -> None:
    graph = Graph.from_edges([[0, 0, 1, 2, 2], [1, 1, 0, 2, 0]], 3)
    assert graph.adj.toarray().tolist() == [[0, 1, 1], [1, 0, 0], [1, 0, 0]]
    assert (graph.n_edges, graph.directed) == (2, False)
    assert graph.degree.tolist() == [2, 1, 1]


def test_directed_edges_point_from_source_to_target() -> None:
    graph = Graph.from_edges([[0, 0], [1, 2]], 3, directed=True)
    assert graph.adj.toarray().tolist() == [[0, 0, 0], [1, 0, 0], [1, 0, 0]]
    assert graph.degree.tolist() == [0, 1, 1], "degrees are in-degrees"
    assert graph.directed
    assert graph.edge_index().tolist() == [[0, 0], [1, 2]]


@pytest.mark.parametrize("bad", [-1, 3, 4_000_000_000])
def test_a_node_id_out_of_range_is_named_with_its_place(bad: int) -> None:
    with pytest.raises(FewnodeError, match=rf"edge 1: node {bad} is out of range, expected 0 to 2"):
        Graph.from_edges(np.array([[0, bad], [1, 2]]), 3)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("sparse", [False, True])
def test_attributes_that_are_no_numbers_are_named_with_their_node(value: float, sparse: bool) -> None:
    x = np.array([[0, 1], [1, 0], [1, value]], np.float32)
    with pytest.raises(FewnodeError, match="attribute of node 2"):
        Graph.from_edges([[0], [1]], 3, sp.csr_array(x) if sparse else x)


def test_a_graph_is_read_only_and_leaves_its_input_writable() -> None:
    x = np.ones((2, 2), np.float32)
    graph = Graph.from_edges([[0], [1]], 2, x)
    x[0, 0] = 5
    with pytest.raises(ValueError, match="read-only"):
        graph.x[0, 0] = 1
    with pytest.raises(ValueError, match="read-only"):
        graph.adj.indices[0] = 1


def test_equal_graphs_have_equal_identity_whatever_their_index_type(star: Graph) -> None:
    x32, x64 = (sp.csr_array(star.x) for _ in range(2))
    x64.indices, x64.indptr = x64.indices.astype(np.int64), x64.indptr.astype(np.int64)
    split = ClassSplit((0,), (), ())
    one, other = (
        Dataset(Graph.from_edges(star.edge_index(), 4, x), np.zeros(4, int), split).sha256 for x in (x32, x64)
    )
    assert one == other


def test_a_class_in_two_parts_is_refused() -> None:
    with pytest.raises(FewnodeError, match="class 3 is in the split twice"):
        ClassSplit((1, 3), (2,), (3,))


def test_random_split_is_disjoint_complete_and_reproducible() -> None:
    y = np.repeat(np.arange(20), 12)
    split = ClassSplit.random(y, (50, 20, 30), seed=4)
    assert [len(part) for part in (split.train, split.valid, split.test)] == [10, 4, 6]
    assert sorted(split.train + split.valid + split.test) == list(range(20))
    assert split == ClassSplit.random(y, (50, 20, 30), seed=4)
    assert split != ClassSplit.random(y, (50, 20, 30), seed=5)


def test_masks_mark_the_nodes_of_the_parts(star: Graph) -> None:
    data = Dataset(star, np.array([0, 1, -1, 2]), ClassSplit((0,), (1,), (2,)))
    assert data.train_mask.tolist() == [True, False, False, False]
    assert data.valid_mask.tolist() == [False, True, False, False]
    assert data.test_mask.tolist() == [False, False, False, True]


def test_a_wrong_part_is_named_with_the_right_ones(planted: Dataset) -> None:
    with pytest.raises(FewnodeError, match=r"no part 'validation' .did you mean 'valid'.*train, valid, test"):
        EpisodeSampler(planted, "validation", 3, 2)
