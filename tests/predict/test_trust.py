"""What to trust of claims, by hand and against known truth."""

from __future__ import annotations

import numpy as np
import pytest

from fewnode.review.near_duplicates import grouped
from fewnode.review.trust import curve, estimated_members, fair_sample, known_curve, measured


def test_members_are_expected_of_probabilities_and_counted_where_they_were_sampled() -> None:
    p = np.array([0.9] * 10 + [0.1] * 100)
    plain = estimated_members(p, known=2)
    assert plain.value == pytest.approx(21)
    assert plain.low < 21 < plain.high
    claimed = p >= 0.5
    better = estimated_members(p, claimed, measured(5, 10), known=2)
    assert better.value == pytest.approx(2 + 10 + 10 * 0.5)
    assert estimated_members(p, claimed, None).value == plain.value - 2
    assert estimated_members(p, claimed, measured(50, 100)).high < estimated_members(p, claimed, measured(5, 10)).high


def test_an_interval_stays_within_what_there_is() -> None:
    found = estimated_members(np.array([0.0, 1.0]))
    assert 0 <= found.low <= found.value <= found.high <= 2


def test_the_expected_curve_is_the_known_one_where_probabilities_are_frequencies(rng: np.random.Generator) -> None:
    p = rng.random(200_000)
    member = rng.random(p.size) < p
    for expected, known in zip(curve(p), known_curve(p, member), strict=True):
        assert expected.claimed == known.claimed == int((p >= expected.threshold).sum())
        if known.claimed > 1000:
            assert expected.precision == pytest.approx(known.precision, abs=0.02)
            assert expected.recall == pytest.approx(known.recall, abs=0.02)
    assert curve(np.zeros(3), [0.5])[0] == (0.5, 0, None, None)


def test_a_sample_is_fair_and_stays_one_while_claims_change() -> None:
    claimed = np.arange(0, 3000, 3)
    counts = np.zeros(3000)
    for seed in range(300):
        counts[fair_sample(claimed, 100, seed)] += 1
    own = counts[claimed]
    assert counts.sum() == own.sum() == 300 * 100
    assert own.std() == pytest.approx(np.sqrt(300 * 0.1 * 0.9), rel=0.15)
    first = fair_sample(claimed, 50)
    later = fair_sample(np.union1d(claimed, np.arange(1, 600, 3)), 60)
    assert set(first[:20]) <= set(later)


def test_groups_are_those_of_a_plain_loop(rng: np.random.Generator) -> None:
    kinds = rng.normal(size=(40, 8))
    z = (kinds[rng.integers(0, 40, 1500)] + 0.1 * rng.normal(size=(1500, 8))).astype(np.float32)
    unit, leaders, expected = z / np.linalg.norm(z, axis=1, keepdims=True), [], []
    for i in range(len(z)):
        own = [j for j in leaders if unit[i] @ unit[j] >= 0.9]
        leaders += [] if own else [i]
        expected.append(own[0] if own else i)
    found = grouped(z)
    assert found.tolist() == expected
    first = grouped(z, count=5)
    assert set(first) == {-1, *leaders[:5]}
    assert np.array_equal(first[first >= 0], found[first >= 0])
    assert np.array_equal(np.flatnonzero(first >= 0), np.flatnonzero(np.isin(found, leaders[:5])))
    assert grouped(z[:0]).size == 0
