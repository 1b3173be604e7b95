"""The plane of pictures, by hand and against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest

from fewnode.embedding.projection import Plane


@pytest.mark.parametrize("d", [2, 7, 40])
def test_it_is_that_of_scikit_learn_but_for_signs(d: int) -> None:
    from sklearn.decomposition import PCA

    z = (np.random.default_rng(d).normal(size=(60, d)) * np.linspace(1, 3, d)).astype(np.float32)
    plane, theirs = Plane.of(z), PCA(2, svd_solver="full").fit(z.astype(np.float64))
    assert np.allclose(np.abs(plane.place(z)), np.abs(theirs.transform(z.astype(np.float64))), atol=1e-4)
    assert np.allclose(plane.share, theirs.explained_variance_ratio_, atol=1e-5)
    assert (plane.axes[np.abs(plane.axes).argmax(axis=0), [0, 1]] > 0).all()
