"""Being sure, and strangers: temperatures and thresholds against known truths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from fewnode.dataset import ClassSplit, Dataset
from fewnode.episodes import Episode, Task
from fewnode.errors import FewnodeError
from fewnode.evaluation import evaluate
from fewnode.model.estimator import Estimator
from fewnode.recognition.calibration import fit_temperature
from fewnode.scores import calibration_gaps


def calibration_error(answers: Sequence[np.ndarray], tasks: Sequence[Episode]) -> float:
    """As an evaluation adds it up."""
    gaps = [
        calibration_gaps(answer.max(axis=1), answer.argmax(axis=1) == task.query_y)
        for answer, task in zip(answers, tasks, strict=True)
    ]
    return float(np.abs(np.sum(gaps, axis=0)).sum() / sum(task.query.size for task in tasks))


def tasks_of(rng: np.random.Generator, shots: int, ways: int = 3, count: int = 60) -> list[Episode]:
    support = np.arange(ways * shots)
    label = np.repeat(np.arange(ways), shots)
    return [Episode(Task(support, label, np.arange(20)), rng.integers(0, ways, 20)) for _ in range(count)]


@pytest.mark.parametrize("kinds", [((1, 3, 3), (5, 3, 2)), ((3, 2, 3), (3, 8, 2))], ids=["shots", "ways"])
def test_a_temperature_undoes_overconfidence(rng: np.random.Generator, kinds: tuple[tuple[int, int, int], ...]) -> None:
    """Probabilities that are right, cubed with few shots or ways and squared with many: the roots are found."""
    tasks, answers = [], []
    for shots, ways, power in kinds:
        for task in tasks_of(rng, shots, ways, count=120):
            p = rng.dirichlet([1] * ways, 20)
            tasks.append(replace(task, query_y=np.array([rng.choice(ways, p=row) for row in p])))
            answers.append((p**power / (p**power).sum(axis=1, keepdims=True)).astype(np.float32))
    found = fit_temperature(answers, tasks)
    assert found.power(tasks[0].task) == pytest.approx(1 / 3, abs=0.06)
    assert found.power(tasks[-1].task) == pytest.approx(1 / 2, abs=0.08)
    tempered = [found(p, task.task) for p, task in zip(answers, tasks, strict=True)]
    assert calibration_error(tempered, tasks) < 0.5 * calibration_error(answers, tasks)
    assert all((a.argmax(1) == b.argmax(1)).all() for a, b in zip(answers, tempered, strict=True))


def test_a_temperature_undoes_overconfidence_far_from_labelled_nodes(rng: np.random.Generator) -> None:
    """Probabilities that are right where a query is near, and cubed where it is far: the powers found are 1 and 1/3."""
    tasks, answers, near = [], [], []
    for task in tasks_of(rng, 2, count=120):
        p, far = rng.dirichlet([1, 1, 1], 20), rng.random(20) < 0.5
        tasks.append(replace(task, query_y=np.array([rng.choice(3, p=row) for row in p])))
        told = p ** np.where(far, 3, 1)[:, None]
        answers.append((told / told.sum(axis=1, keepdims=True)).astype(np.float32))
        near.append(np.where(far, 2.0, 7.0))
    found = fit_temperature(answers, tasks, near)
    power = found.power(tasks[0].task, np.array([2.0, 7.0]))
    assert power == pytest.approx([1 / 3, 1], abs=0.08)
    blind = fit_temperature(answers, tasks)
    assert blind.by_nearness == 0
    assert blind.power(tasks[0].task) == blind.power(tasks[0].task, 9.0)
    sure = [found(p, task.task, s) for p, task, s in zip(answers, tasks, near, strict=True)]
    once = [blind(p, task.task) for p, task in zip(answers, tasks, strict=True)]
    assert calibration_error(sure, tasks) < calibration_error(once, tasks)
    assert all((a.argmax(1) == b.argmax(1)).all() for a, b in zip(answers, sure, strict=True))


@pytest.fixture(name="model")
def _model(fitted_plus: Estimator) -> Estimator:
    return fitted_plus


def test_without_base_classes_an_answer_is_less_sure_where_labels_mean_nothing(planted: Dataset) -> None:
    rng = np.random.default_rng(0)
    data = replace(planted, split=ClassSplit((), (), ()))
    model = Estimator("gpn-plus").fit(data)
    members = [np.flatnonzero(planted.y == c) for c in range(4)]
    support = np.concatenate([nodes[:8] for nodes in members])
    label, query = np.arange(4).repeat(8), np.concatenate([nodes[8:] for nodes in members])
    sure = model.predict_proba(data, support, label, query).max(axis=1).mean()
    guessed = model.predict_proba(data, support, rng.permutation(label), query).max(axis=1).mean()
    assert guessed < sure - 0.2
    one_each = Task(support[::8], np.arange(4), query)
    assert model.space(data.graph).prepare(one_each).left_out is None


def test_strangers_are_told_from_members(model: Estimator, planted: Dataset) -> None:
    result = evaluate(model, planted, 3, 5, 5, tasks=40, open_set=True)
    assert result["auroc"].mean > 0.85
    assert 0.6 < result["known"].mean <= 1
    assert 0.6 < result["unknown"].mean <= 1


def test_too_few_classes_leave_strangers_unknown(planted: Dataset) -> None:
    """Training classes count where nothing was trained on them."""
    few = replace(planted, split=ClassSplit(planted.split.train, planted.split.valid[:2], planted.split.test))
    assert Estimator("propagation", 2, 2, rank=16).fit(few).trained_["membership"]
    model = Estimator("gpn", 2, 2, episodes=20).fit(few)
    assert model.trained_["membership"] is None
    with pytest.raises(FewnodeError, match="three are needed"):
        model.familiar(planted.graph, [0, 1], [0, 1], [2])


# --- the transductive mode -------------------------------------------------------------------------------------------


def test_transductive_is_better_at_one_shot_and_queries_may_be_few(model: Estimator, planted: Dataset) -> None:
    words = Estimator("propagation", way=3, shot=3, rank=32, steps=0).fit(planted)
    one, all_ = (evaluate(words, planted, 5, 1, 8, tasks=60, transductive=mode).accuracy.mean for mode in (False, True))
    assert all_ > one + 0.02
    alone = model.predict_proba(planted.graph, [0, 1], [0, 1], [2], transductive=True)
    assert alone.shape == (1, 2)
    assert np.isfinite(alone).all()
