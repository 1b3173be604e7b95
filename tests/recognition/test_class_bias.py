"""Answers with known shares of classes: against a general optimiser, and what must never change."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from fewnode.errors import FewnodeError
from fewnode.recognition.answers import checked_shares, in_proportion
from fewnode.recognition.rejection import biased


def brute_force(p: np.ndarray, shares: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """The bias is the minimum of Σ w log Σ p e^b - W s·b, which a general optimiser finds as well."""

    def loss(bias: np.ndarray) -> float:
        return float(weight @ np.log(p @ np.exp(bias)) / weight.sum() - shares @ bias)

    bias = minimize(loss, np.zeros(len(shares)), method="BFGS", options={"gtol": 1e-9}).x
    return biased(p, bias)


@pytest.mark.parametrize("ways", [2, 3, 7])
def test_it_is_the_optimum(rng: np.random.Generator, ways: int) -> None:
    p, shares = rng.dirichlet(np.full(ways, 0.5), 200), rng.dirichlet(np.ones(ways))
    weight = rng.random(200)
    found = in_proportion(p, shares, weight)
    assert found == pytest.approx(brute_force(np.maximum(p, 1e-30), shares, weight), abs=1e-4)
    assert weight @ found / weight.sum() == pytest.approx(shares, abs=1e-5)
    assert found.sum(axis=1) == pytest.approx(1)


@pytest.mark.parametrize(
    ("classes", "given", "message"),
    [
        ("ab", {"a": 0.5, "b": 0.5, "c": 0.0}, "'c' is none of the classes"),
        ("ab", {"a": 1.0}, "class 'b' has no share"),
        ("ab", {"a": -0.5, "b": 1.5}, "the share of 'a' is -0.5, expected a number from 0 to 1"),
        ("ab", {"a": float("nan"), "b": 1.0}, "the share of 'a' is nan"),
        ("ab", {"a": "half", "b": 0.5}, "the share of 'a' is 'half'"),
        ("ab", {"a": 30, "b": 70}, "the shares sum to 100, expected 1"),
        ("ab", {"a": 0.5, "b": 0.52}, "the shares sum to 1.02"),
        ("a", {"a": 1.0}, "'a' is given alone"),
    ],
)
def test_what_are_no_shares_is_refused(classes: str, given: dict[str, float], message: str) -> None:
    with pytest.raises(FewnodeError, match=message):
        checked_shares(list(classes), given)
