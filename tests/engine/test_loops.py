"""Loops over sparse rows, and receptive fields, against SciPy and by hand."""

import re
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import fewnode
from fewnode.engine import loops
from fewnode.engine.fields import ReceptiveFields
from fewnode.engine.settled import SETTLED
from fewnode.engine.sparse import CSR
from fewnode.graph import Graph


@given(st.integers(0, 10**6))
@settings(max_examples=100, deadline=None)
def test_rows_of_a_sparse_matrix(seed: int) -> None:
    rng = np.random.default_rng(seed)
    matrix = sp.random_array((7, 5), density=0.4, rng=rng, format="csr")
    nodes = rng.integers(0, 7, rng.integers(0, 10))
    rows = CSR.of(matrix).rows(nodes)
    assert np.array_equal(rows.scipy.toarray(), matrix.toarray()[nodes])


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
    assert np.allclose(CSR(*given, (80, 50)).multiply(dense[:50]), chosen @ dense[:50], atol=tolerance)
    assert np.allclose(CSR(*given, (80, 50)).multiply_transposed(dense), chosen.T @ dense, atol=tolerance)
    vector = np.ascontiguousarray(dense[:, 0])
    assert np.allclose(loops.dots(*given, vector[:50]), chosen @ vector[:50], atol=tolerance)
    assert np.allclose(loops.spread(*given, vector, 50)[:, 0], chosen.T @ vector, atol=tolerance)


def test_a_very_wide_product_has_the_bits_of_the_narrow_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its columns are taken in panels; rows of a matrix that no cache holds are asked for in advance."""
    rng = np.random.default_rng(0)
    matrix = sp.random_array((900, 20), density=0.5, rng=rng, format="csr", dtype=np.float32)
    dense = rng.standard_normal((20, 600)).astype(np.float32)
    expected = np.concatenate([CSR.of(matrix).multiply(part.copy()) for part in np.split(dense, 3, axis=1)], axis=1)
    assert np.array_equal(CSR.of(matrix).multiply(dense), expected)
    monkeypatch.setattr(loops, "FAR", 100)
    few = CSR.of(matrix).rows(np.array([4, 899, 4]))
    assert np.array_equal(few.multiply(dense[:, :300]), expected[[4, 899, 4], :300])


def test_a_wide_transposed_product_has_the_bits_of_the_narrow_one() -> None:
    """It is computed from the transposed matrix, whose entries are in the same order."""
    rng = np.random.default_rng(0)
    matrix = sp.random_array((60, 50), density=0.3, rng=rng, format="csr", dtype=np.float32)
    rows = CSR.of(matrix).rows(rng.integers(0, 60, 80))
    dense = rng.standard_normal((80, 300)).astype(np.float32)
    parts = [rows.multiply_transposed(np.ascontiguousarray(part)) for part in np.split(dense, 3, axis=1)]
    assert np.array_equal(rows.multiply_transposed(dense), np.concatenate(parts, axis=1))


def test_a_product_with_columns_that_lie_apart_is_refused() -> None:
    eye = sp.eye_array(40, format="csr", dtype=np.float32)
    for multiply in (CSR.of(eye).multiply, CSR.of(eye).multiply_transposed):
        with pytest.raises(ValueError, match="side by side"):
            multiply(np.ones((40, 40), np.float32).T)


@given(st.integers(1, 200), st.integers(0, 10**6))
@settings(max_examples=30, deadline=None)
def test_columns_numbered_anew_are_the_same_columns(n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    place, local = np.full(5000, -1, np.int32), rng.integers(0, 5000, n).astype(np.int32)
    for in_order in (False, True):
        given = local.copy()
        columns, own = loops.renumber(given, local[:3].astype(np.int64), place, in_order)
        assert np.array_equal(columns[given], local)
        assert np.array_equal(columns[own], local[:3])
        assert len(set(columns.tolist())) == columns.size
        assert (place == -1).all()
    assert (np.diff(columns // 8) >= 0).all(), "in ascending parts of eight"


def test_a_hop_is_the_closed_neighbourhood(star: Graph) -> None:
    hop = ReceptiveFields.of(star).hop(np.array([2]))
    assert hop.around.tolist() == [0, 2]
    assert hop.own.tolist() == [1]
    assert np.allclose(hop.matrix.scipy.toarray(), [[8**-0.5, 0.5]])


def test_a_hub_is_seen_by_one_row_of_its_sum() -> None:
    """A star whose middle sees more attributes than there are columns: the first layer is the same without them."""
    x = sp.random_array((41, 20), density=0.25, rng=np.random.default_rng(0), dtype=np.float32, format="csr")
    graph = Graph.from_edges([[0] * 40, range(1, 41)], 41, x)
    fields = ReceptiveFields.of(graph, dtype=np.float64)
    x, adj = fields.lean
    assert x.shape[0] == 42, "one hub"
    assert np.diff([adj.start[0], adj.stop[0]]) == 1
    assert np.allclose((adj.scipy @ x.scipy).toarray(), fields.p.scipy.toarray())


def test_a_matrix_of_all_rows_is_scipys_without_a_copy() -> None:
    matrix = sp.random_array((7, 5), density=0.4, rng=np.random.default_rng(0), format="csr")
    assert np.shares_memory(CSR.of(matrix).scipy.data, matrix.data)
    assert np.array_equal(CSR.of(matrix).rows(np.array([2, 2, 0])).scipy.toarray(), matrix.toarray()[[2, 2, 0]])


def test_functions_whose_first_call_may_be_inaccurate_are_called_by_one_thread_first() -> None:
    """Which are looked up on the first call is MKL's business; those that the methods use are all on the list."""
    looked_up = r"\b(acos|asin|atan|cos|erf|exp|expm1|log|log10|log1p|log2|sin|sqrt|tan|tanh)_?\("
    source = [path.read_text() for path in Path(fewnode.__file__).parent.rglob("*.py")]
    used = {name for text in source for name in re.findall(looked_up, text)}
    assert {"exp", "log", "tanh"} <= used <= set(SETTLED)
