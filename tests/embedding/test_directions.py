"""Leading directions are those of a singular value decomposition, however the work is cut."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from fewnode.embedding import directions
from fewnode.embedding.directions import Axes, leading_rows


def nearly_of_rank(rank: int, shape: tuple[int, int], seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    noise = 0.01 * rng.normal(size=shape)
    return (rng.normal(size=(shape[0], rank)) @ rng.normal(size=(rank, shape[1])) + noise).astype(np.float32)


@pytest.mark.parametrize("form", ["dense", "dense, many columns", "sparse"])
def test_directions_span_what_the_svd_does(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if form != "dense":
        monkeypatch.setattr(directions, "EXACT", 10)
    x = nearly_of_rank(4, (80, 50))
    ours = Axes.of(sp.csr_array(x) if form == "sparse" else x, "raw", 4, seed=0).directions
    theirs = np.linalg.svd(x)[2][:4].T
    assert np.allclose(ours.T @ ours, np.eye(4), atol=1e-4)
    assert np.allclose(ours @ ours.T, theirs @ theirs.T, atol=1e-3)


@pytest.mark.parametrize("symmetric", [False, True])
def test_rows_have_the_products_of_those_of_the_svd(symmetric: bool) -> None:
    m = nearly_of_rank(3, (60, 60))
    m = m + m.T if symmetric else m
    ours = leading_rows(sp.csr_array(m), 6, seed=1, symmetric=symmetric).whole()
    u, s, _ = np.linalg.svd(m)
    theirs = u[:, :6] * s[:6]
    assert np.allclose(ours @ ours.T, theirs @ theirs.T, rtol=1e-3, atol=1e-3 * s[0] ** 2)
