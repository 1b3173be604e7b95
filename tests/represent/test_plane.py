"""The plane of pictures, by hand and against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fewnode.represent.projection import Plane


def test_axes_and_shares_by_hand() -> None:
    plane = Plane.of(torch.tensor([[-1.0, 0, 0], [1, 0, 0], [0, 0.1, 0], [0, -0.1, 0]]) + 3)
    assert np.allclose(plane.mean, 3)
    assert np.allclose(plane.axes, [[1, 0], [0, 1], [0, 0]], atol=1e-6)
    assert np.allclose(plane.share, [2 / 2.02, 0.02 / 2.02])
    assert np.allclose(plane.place(torch.tensor([[4.0, 5, 6]])), [[1, 2]], atol=1e-6)


@pytest.mark.parametrize("d", [2, 7, 40])
def test_it_is_that_of_scikit_learn_but_for_signs(d: int) -> None:
    from sklearn.decomposition import PCA

    z = torch.randn(60, d, generator=torch.Generator().manual_seed(d)) * torch.linspace(1, 3, d)
    plane, theirs = Plane.of(z), PCA(2, svd_solver="full").fit(z.double().numpy())
    assert np.allclose(plane.place(z).abs(), np.abs(theirs.transform(z.double().numpy())), atol=1e-4)
    assert np.allclose(plane.share, theirs.explained_variance_ratio_, atol=1e-5)
    assert (plane.axes.gather(0, plane.axes.abs().argmax(dim=0, keepdim=True)) > 0).all()


def test_of_one_column_the_second_axis_is_nothing() -> None:
    plane = Plane.of(torch.tensor([[1.0], [3.0]]))
    assert plane.place(torch.tensor([[4.0]])).tolist() == [[2.0, 0.0]]
    assert plane.share.tolist() == [1.0, 0.0]


def test_of_equal_rows_every_place_is_the_middle() -> None:
    assert (Plane.of(torch.ones(5, 3)).place(torch.ones(5, 3)) == 0).all()
