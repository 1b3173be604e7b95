"""Loops over sparse rows, and receptive fields, against SciPy and by hand."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from fewnode.engine.fields import ReceptiveFields
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


def test_a_hop_is_the_closed_neighbourhood(star: Graph) -> None:
    hop = ReceptiveFields.of(star).hop(np.array([2]))
    assert hop.around.tolist() == [0, 2]
    assert hop.own.tolist() == [1]
    assert np.allclose(hop.matrix.scipy.toarray(), [[8**-0.5, 0.5]])
