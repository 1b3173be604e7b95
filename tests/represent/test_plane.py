"""The plane of pictures, by hand and against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest

from fewnode.represent.projection import Plane


def test_axes_and_shares_by_hand() -> None:
    plane = Plane.of(np.array([[-1.0, 0, 0], [1, 0, 0], [0, 0.1, 0], [0, -0.1, 0]], np.float32) + 3)
    assert np.allclose(plane.mean, 3)
    assert np.allclose(plane.axes, [[1, 0], [0, 1], [0, 0]], atol=1e-6)
    assert np.allclose(plane.share, [2 / 2.02, 0.02 / 2.02])
    assert np.allclose(plane.place(np.array([[4.0, 5, 6]], np.float32)), [[1, 2]], atol=1e-6)


@pytest.mark.parametrize("d", [2, 7, 40])
def test_it_is_that_of_scikit_learn_but_for_signs(d: int) -> None:
    from sklearn.decomposition import PCA

    z = (np.random.default_rng(d).normal(size=(60, d)) * np.linspace(1, 3, d)).astype(np.float32)
    plane, theirs = Plane.of(z), PCA(2, svd_solver="full").fit(z.astype(np.float64))
    assert np.allclose(np.abs(plane.place(z)), np.abs(theirs.transform(z.astype(np.float64))), atol=1e-4)
    assert np.allclose(plane.share, theirs.explained_variance_ratio_, atol=1e-5)
    assert (plane.axes[np.abs(plane.axes).argmax(axis=0), [0, 1]] > 0).all()


def test_of_one_column_the_second_axis_is_nothing() -> None:
    plane = Plane.of(np.array([[1.0], [3.0]], np.float32))
    assert plane.place(np.array([[4.0]], np.float32)).tolist() == [[2.0, 0.0]]
    assert plane.share.tolist() == [1.0, 0.0]


def test_of_equal_rows_every_place_is_the_middle() -> None:
    assert (Plane.of(np.ones((5, 3), np.float32)).place(np.ones((5, 3), np.float32)) == 0).all()
