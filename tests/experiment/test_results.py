"""Numbers of a results directory: intervals, what is significant, and the table."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from fewnode.errors import FewnodeError
from fewnode.experiment.results import (
    LAYOUT,
    MARGIN,
    against_best,
    difference,
    holm,
    margin_p_value,
    p_value,
    read_results,
)
from fewnode.scores import interval
from synthetic import noisy, part, write


def test_one_seed_is_the_paired_t_test(rng: np.random.Generator) -> None:
    a, b = rng.random((1, 40)), rng.random((1, 40))
    assert p_value(a, b) == pytest.approx(stats.ttest_rel(a[0], b[0]).pvalue)
    assert difference(a, b).mean == pytest.approx((a - b).mean())


def test_marks_agree_with_intervals(rng: np.random.Generator) -> None:
    """What is called worse is so by its interval, too: two seeds that differ say hardly anything."""
    tasks = rng.normal(0, 0.1, 30)
    best, other = 0.95 + tasks[None] / 10, np.stack([0.6 + tasks, 0.68 + tasks])
    assert interval(other).ci95 > 0.3
    assert p_value(best, other) > 0.05
    gap = difference(other, best)
    assert abs(gap.mean) < gap.ci95
    a, b = (np.repeat(rng.random((n, 1)), 30, axis=1) for n in (5, 8))
    assert p_value(a, b) >= stats.ttest_ind(a[:, 0], b[:, 0], equal_var=False).pvalue, "on the safe side of Welch's"


@pytest.mark.parametrize(("seeds", "seed_noise"), [(1, 0.0), (2, 0.02), (10, 0.05)])
def test_claims_keep_their_level(rng: np.random.Generator, seeds: int, seed_noise: float) -> None:
    """Of equal methods, and of those that are the margin apart, one in twenty is called different or equally good."""
    different = equal = 0
    for _ in range(300):
        hard = rng.normal(0, 0.2, 30)
        a, b = (hard + rng.normal(0, seed_noise, (seeds, 1)) + rng.normal(0, 0.1, (seeds, 30)) for _ in range(2))
        different += p_value(a, b) < 0.05
        equal += margin_p_value(a + MARGIN, b) < 0.05
        gap = difference(a, b)
        assert (abs(gap.mean) > gap.ci95) == (p_value(a, b) < 0.05), "the interval and the test say the same"
    assert different / 300 < 0.09
    assert equal / 300 < 0.09


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == [True, False, False, True]  # 0.005 < .05/4, 0.01 < .05/3, 0.03 > .05/2
    assert holm([0.01, 0.02, 0.03]) == [True, True, True]
    assert holm([]) == []


def test_the_best_and_what_is_level_with_it(tmp_path: Path) -> None:
    means = {"gpn": 0.70, "pn": 0.50, "sgc": 0.698}
    results = read_results(write(tmp_path, [part("compare", noisy(means, noise=0.02), labels=means)]))
    (section,) = results.sections
    found, comparisons = against_best(section)
    marks = {entry.label: mark for entry, mark in found.items()}
    assert marks["pn"] == "worse"
    assert sorted([marks["gpn"], marks["sgc"]]) == ["best", "level"]
    assert comparisons == 2


def test_what_is_no_results_directory(tmp_path: Path) -> None:
    with pytest.raises(FewnodeError, match="no results of fewnode experiment in it"):
        read_results(tmp_path)
    parts = (
        '{"kind": "x", "title": "", "along": null, "rows": []}',
        '{"kind": "sweep", "title": "", "along": 3, "rows": []}',
    )
    odd = [f'{{"title": "", "reported": [], "parts": [{each}]}}' for each in parts]
    odd.append('{"title": "", "parts": [], "reported": [{"value": 3}]}')
    for text in (*odd, "{", "[]", '{"parts": [{}]}', '{"title": 1, "parts": [], "reported": 3}'):
        (tmp_path / LAYOUT).write_text(text)
        with pytest.raises(FewnodeError, match="damaged"):
            read_results(tmp_path)
