"""The head start of base classes: found where one was planted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from fewnode.episodes import Episode, Task
from fewnode.method import Probabilities
from fewnode.recognition.base_bias import SHOTS, best_bias, bias_at, fit_base_bias
from fewnode.recognition.class_bias import biased

MEMBERS = [np.arange(40 * c, 40 * c + 40) for c in range(10)]


def answer(tasks: Sequence[Task], head_start: float, new: int) -> list[Probabilities]:
    """Right mostly, but base classes have a head start: P(class) by a noisy score of the class of each node."""
    found = []
    for task in tasks:
        rng = np.random.default_rng(task.query)
        class_of = {int(node) // 40: int(y) for node, y in zip(task.support, task.support_y, strict=True)}
        truth = np.array([class_of[int(node) // 40] for node in task.query])
        score = 4.0 * (truth[:, None] == np.arange(task.n_way)) + rng.normal(0, 1, (task.query.size, task.n_way))
        p = np.exp(score) / np.exp(score).sum(axis=1, keepdims=True)
        found.append(biased(p.astype(np.float32), head_start * (np.arange(task.n_way) >= new)))
    return found


@pytest.mark.parametrize("head_start", [-4.0, 0.0, 2.0, 6.0])
def test_it_is_found(head_start: float) -> None:
    found = fit_base_bias(lambda tasks: answer(tasks, head_start, 3), MEMBERS[:5], MEMBERS[5:], way=3)
    assert list(found) == ["1", "3", "5"]
    assert list(found.values()) == pytest.approx([head_start] * 3, abs=0.75)


@pytest.mark.parametrize(("base", "new"), [(0, 5), (1, 5), (5, 0), (5, 1)])
def test_too_few_classes_tell_nothing(base: int, new: int) -> None:
    found = fit_base_bias(lambda tasks: answer(tasks, 3.0, 2), MEMBERS[:base], MEMBERS[5 : 5 + new], way=2)
    assert found == {}
    assert bias_at(found, 1) == 0


def test_new_classes_too_small_for_some_shots_tell_of_the_others() -> None:
    small = [nodes[:12] for nodes in MEMBERS[5:]]
    assert list(fit_base_bias(lambda tasks: answer(tasks, 1.0, 3), MEMBERS[:5], small, way=3)) == ["1"]


def test_base_classes_without_queries_tell_nothing() -> None:
    episode = Episode(Task(np.array([0, 40]), np.array([0, 1]), np.array([1])), np.array([0]))
    assert best_bias([np.array([[0.1, 0.9]], np.float32)], [episode], 1) == 0


def test_where_everything_is_right_nothing_is_taken_off() -> None:
    task = Task(np.array([0, 40]), np.array([0, 1]), np.array([1, 41]))
    sure = np.array([[1, 0], [0, 1]], np.float32)
    assert best_bias([sure], [Episode(task, np.array([0, 1]))], 1) == 0


def test_it_falls_with_labels_and_ends_where_a_new_class_has_as_many() -> None:
    fitted = dict(zip(map(str, SHOTS), (6.0, 4.0, 3.0), strict=True))
    values = [bias_at(fitted, shots) for shots in (0.5, 1, 2, 3, 4, 5, 10, 49, 50, 500)]
    assert values == sorted(values, reverse=True)
    assert values[1], values[3] == (6.0, 4.0)
    assert values[-2:] == [0.0, 0.0]
