import math
import re
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle
from fewnode import kernels, nn
from fewnode.errors import FewnodeError
from fewnode.graph import Graph
from fewnode.nn import CSR, GCN, Module, Prepared, build_encoder, normalised, segment_softmax
from graphs import random_graph


def test_segment_softmax_by_hand() -> None:
    weight = segment_softmax(torch.tensor([0.0, math.log(3.0), 5.0]), torch.tensor([1, 1, 0]), 2)
    assert torch.allclose(weight, torch.tensor([0.25, 0.75, 1.0]))


def test_segment_softmax_of_huge_scores_is_finite() -> None:
    weight = segment_softmax(torch.tensor([1e30, 1e30, -1e30]), torch.tensor([0, 0, 0]), 1)
    assert torch.allclose(weight, torch.tensor([0.5, 0.5, 0.0]))


def test_normalised_adjacency_of_the_star_by_hand(star: Graph) -> None:
    middle, leaf = 1 / 4, 1 / 2
    edge = 1 / np.sqrt(4 * 2)
    expected = np.diag([middle, leaf, leaf, leaf])
    expected[0, 1:] = expected[1:, 0] = edge
    assert np.allclose(normalised(star).toarray(), expected)


def test_sparse_product_has_all_orders_of_gradient() -> None:
    matrix = sp.random_array((5, 4), density=0.5, rng=np.random.default_rng(0), format="csr")
    csr = CSR.from_scipy(matrix, torch.float64)
    dense = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    assert torch.allclose(csr @ dense, torch.from_numpy(matrix.toarray()) @ dense)
    assert torch.autograd.gradcheck(lambda d: csr @ d, (dense,))
    assert torch.autograd.gradgradcheck(lambda d: (csr @ d).pow(2), (dense,))


@given(st.integers(0, 10**6))
@settings(max_examples=100, deadline=None)
def test_rows_of_a_sparse_matrix(seed: int) -> None:
    rng = np.random.default_rng(seed)
    matrix = sp.random_array((7, 5), density=0.4, rng=rng, format="csr")
    nodes = rng.integers(0, 7, rng.integers(0, 10))
    rows = CSR.from_scipy(matrix, torch.float64).rows(torch.from_numpy(nodes))
    assert np.array_equal(rows.to_dense().numpy(), matrix.toarray()[nodes])


@pytest.mark.parametrize("width", [1, 7, 16, 31, 32, 40, 48, 100])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_products_of_any_width_are_scipys(width: int, dtype: type, index: type) -> None:
    """Rows long, short and empty, scattered and some of them twice; a part of the columns of a wider matrix."""
    rng = np.random.default_rng(width)
    full = rng.standard_normal((60, 50)) * (rng.random((60, 50)) < 0.3)
    full[[3, 59]] = 0
    matrix = sp.csr_array(full.astype(dtype))
    rows = rng.integers(0, 60, 80)
    starts, stops = (part[rows].astype(index) for part in (matrix.indptr[:-1], matrix.indptr[1:]))
    given = (starts, stops, matrix.indices.astype(index), matrix.data)
    wide = rng.standard_normal((80, width + 5)).astype(dtype)
    dense, chosen, tolerance = wide[:, 2 : width + 2], matrix[rows], 1e-4 if dtype == np.float32 else 1e-12
    assert np.allclose(kernels.multiply(*given, dense[:50]), chosen @ dense[:50], atol=tolerance)
    assert np.allclose(kernels.multiply_transposed(*given, dense, 50), chosen.T @ dense, atol=tolerance)
    vector = np.ascontiguousarray(dense[:, 0])
    assert np.allclose(kernels.dots(*given, vector[:50]), chosen @ vector[:50], atol=tolerance)
    assert np.allclose(kernels.spread(*given, vector, 50)[:, 0], chosen.T @ vector, atol=tolerance)


def test_a_product_with_columns_that_lie_apart_is_refused() -> None:
    eye = sp.eye_array(40, format="csr", dtype=np.float32)
    for multiply, rest in ((kernels.multiply, ()), (kernels.multiply_transposed, (40,))):
        with pytest.raises(ValueError, match="side by side"):
            multiply(eye.indptr[:-1], eye.indptr[1:], eye.indices, eye.data, np.ones((40, 40), np.float32).T, *rest)


@given(st.integers(1, 200), st.integers(0, 10**6))
@settings(max_examples=30, deadline=None)
def test_columns_numbered_anew_are_the_same_columns(n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    place, local = np.full(5000, -1, np.int32), rng.integers(0, 5000, n).astype(np.int32)
    for in_order in (False, True):
        given = local.copy()
        columns, own = kernels.renumber(given, local[:3].astype(np.int64), place, in_order)
        assert np.array_equal(columns[given], local)
        assert np.array_equal(columns[own], local[:3])
        assert len(set(columns.tolist())) == columns.size
        assert (place == -1).all()
    assert (np.diff(columns // 8) >= 0).all(), "in ascending parts of eight"


def test_a_hop_is_the_closed_neighbourhood(star: Graph) -> None:
    hop, around = Prepared(star, star.x).hop(torch.tensor([2]))
    assert around is not None
    assert around.tolist() == [0, 2]
    assert torch.allclose(hop.to_dense(), torch.tensor([[8**-0.5, 0.5]]))


@pytest.mark.parametrize("hidden", [(4,), (5, 3), (5, 4, 3)])
def test_encoder_on_some_nodes_equals_the_whole_graph(hidden: tuple[int, ...]) -> None:
    for seed in range(60):
        graph = random_graph(seed)
        g = Prepared(graph, graph.x, torch.float64)
        encoder = GCN(graph.n_features, hidden).double()
        nodes = torch.from_numpy(np.random.default_rng(seed).integers(0, graph.n, 3))
        whole = oracle.encode(*oracle.dense(graph, torch.float64), list(encoder.weight), list(encoder.bias))
        assert torch.allclose(encoder(g, None), whole, atol=1e-12)
        assert torch.allclose(encoder(g, nodes), whole[nodes], atol=1e-12)


def test_gcn_equals_pygs(star: Graph) -> None:
    from torch_geometric.nn import GCNConv

    encoder = GCN(2, (3,))
    conv = GCNConv(2, 3)
    conv.lin.weight.data = encoder.weight[0].data.T.contiguous()
    conv.bias.data = encoder.bias[0].data
    theirs = torch.relu(conv(torch.from_numpy(star.x.copy()), torch.from_numpy(star.edge_index())))
    assert torch.allclose(encoder(Prepared(star, star.x), None), theirs, atol=1e-6)


@pytest.mark.parametrize("name", ["sage", "gat", "gin", "gcnconv"])
@pytest.mark.parametrize("directed", [False, True])
def test_pyg_encoders_see_exactly_their_receptive_field(name: str, directed: bool) -> None:
    from torch_geometric.nn import models

    rng = np.random.default_rng(1)
    x = rng.normal(size=(60, 5)).astype(np.float32)
    graph = Graph.from_edges(rng.integers(0, 60, (2, 70)), 60, x, directed=directed)
    g = Prepared(graph, x)
    encoder = Module(models.GCN(5, 4, 2, 3)) if name == "gcnconv" else build_encoder(name, 5, (4, 3), 0.0)
    encoder.eval()
    nodes = torch.tensor([3, 50, 17])
    assert g.ball(nodes, 3).numel() < graph.n, "the test needs a field smaller than the graph"
    assert torch.allclose(encoder(g, nodes), encoder(g, None)[nodes], atol=1e-5)


def test_a_module_of_unknown_depth_is_refused() -> None:
    with pytest.raises(FewnodeError, match="hops"):
        Module(torch.nn.Linear(2, 2))


def test_unknown_encoder_is_named() -> None:
    with pytest.raises(FewnodeError, match=r"unknown encoder 'gnc'.*gcn"):
        build_encoder("gnc", 2, (2,), 0.0)


def test_functions_whose_first_call_may_be_inaccurate_are_called_by_one_thread_first() -> None:
    """Which are looked up on the first call is MKL's business; those that the methods use are all on the list."""
    looked_up = r"\b(acos|asin|atan|cos|erf|exp|expm1|log|log10|log1p|log2|sin|sqrt|tan|tanh)_?\("
    source = [path.read_text() for path in Path(nn.__file__).parent.rglob("*.py")]
    used = {name for text in source for name in re.findall(looked_up, text)}
    assert {"exp", "log", "tanh"} <= used <= set(nn.SETTLED)
