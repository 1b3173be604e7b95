"""Prototypes by ridge regression, each labelled node left out by a formula; descriptions beside labelled nodes."""

from __future__ import annotations

import numpy as np
import pytest

from fewnode.recognition.prototypes import (
    DOUBTED,
    ODDS,
    LabelledRows,
    class_weights,
    left_out,
    ridge_prototypes,
)
from fewnode.vectors import unit_rows


@pytest.mark.parametrize("shots", [(3, 3, 3), (1, 2, 6), (8, 1)])
@pytest.mark.parametrize("width", [4, 30])
def test_left_out_is_refitting_without_each_node(rng: np.random.Generator, shots: tuple[int, ...], width: int) -> None:
    label = np.repeat(np.eye(len(shots), dtype=np.float32), shots, axis=0)
    z, weight = unit_rows(rng.normal(size=(len(label), width)).astype(np.float32)), class_weights(label)
    found = left_out(z, label, weight)
    for i in range(len(label)):
        rest = np.arange(len(label)) != i
        assert np.allclose(found[i], z[i] @ ridge_prototypes(z[rest], label[rest], weight[rest]), atol=1e-4), i


@pytest.mark.parametrize("rows", [4, 40], ids=["fewer rows than columns", "more"])
def test_what_is_no_number_gives_no_prototype_that_looks_like_one(rng: np.random.Generator, rows: int) -> None:
    z, label = rng.normal(size=(2, rows, 8)).astype(np.float32), np.tile(np.eye(2, dtype=np.float32), (rows // 2, 1))
    z[1, 2, 3] = np.nan
    found = ridge_prototypes(z, label, class_weights(label))
    assert np.isfinite(found[0]).all()
    assert not np.isfinite(found[1]).any()


def test_a_description_that_fits_counts_and_one_of_another_class_does_not() -> None:
    z, y = np.eye(4, dtype=np.float32)[:2], np.array([0, 1])
    right, wrong = (LabelledRows.of(z, y, said, y) for said in (z, z[::-1]))
    assert (right.count[2:] > ODDS / (1 + ODDS)).all()
    assert (wrong.count[2:] < DOUBTED).all()
    assert right.count[:2].tolist() == [1, 1], "nodes always count"
