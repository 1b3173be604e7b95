"""Being sure, and strangers: temperatures and thresholds against known truths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from fewnode import vectors
from fewnode.dataset import ClassSplit, Dataset
from fewnode.episodes import Described, Episode, EpisodeSampler, Task
from fewnode.errors import FewnodeError
from fewnode.evaluation import evaluate
from fewnode.model.estimator import Estimator
from fewnode.recognition.calibration import LeftOut, Temperature, calibration_tasks, fit_temperature, mean_shots
from fewnode.recognition.fit_membership import fit_membership
from fewnode.recognition.membership import MembershipModel, sigmoid
from fewnode.recognition.nearness import nearness
from fewnode.recognition.space import Head, Space
from fewnode.recognition.transductive import rectify
from fewnode.scores import calibration_gaps
from fewnode.tasks import strangers
from fewnode.vectors import Embedding, crowding, survey, unit_rows


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


def asked(support_y: np.ndarray, described_y: tuple[int, ...] = ()) -> Task:
    """A task with these labels, and with descriptions of these classes."""
    described = Described(np.zeros((len(described_y), 1), np.float32), np.array(described_y)) if described_y else None
    return Task(np.arange(support_y.size), support_y, np.arange(3), described)


def test_a_temperature_undoes_overconfidence_of_each_shot(rng: np.random.Generator) -> None:
    """Probabilities that are right, cubed at 1 shot and squared at 5: the powers found are 1/3 and 1/2."""
    tasks, answers = [], []
    for shots, power in ((1, 3), (5, 2)):
        for task in tasks_of(rng, shots):
            p = rng.dirichlet([1, 1, 1], 20)
            drawn = np.array([rng.choice(3, p=row) for row in p])
            tasks.append(replace(task, query_y=drawn))
            answers.append((p**power / (p**power).sum(axis=1, keepdims=True)).astype(np.float32))
    found = fit_temperature(answers, tasks)
    assert found.power(tasks[0].task) == pytest.approx(1 / 3, abs=0.06)
    assert found.power(tasks[-1].task) == pytest.approx(1 / 2, abs=0.08)
    tempered = [found(p, task.task) for p, task in zip(answers, tasks, strict=True)]
    assert calibration_error(tempered, tasks) < 0.5 * calibration_error(answers, tasks)
    assert all((a.argmax(1) == b.argmax(1)).all() for a, b in zip(answers, tempered, strict=True))


def test_a_temperature_undoes_overconfidence_of_each_number_of_classes(rng: np.random.Generator) -> None:
    """The same with 2 and 8 classes; between them, the power is between."""
    tasks, answers = [], []
    for ways, power in ((2, 3), (8, 2)):
        for task in tasks_of(rng, 3, ways, count=120):
            p = rng.dirichlet([1] * ways, 20)
            tasks.append(replace(task, query_y=np.array([rng.choice(ways, p=row) for row in p])))
            answers.append((p**power / (p**power).sum(axis=1, keepdims=True)).astype(np.float32))
    found = fit_temperature(answers, tasks)
    powers = [found.power(asked(np.repeat(np.arange(ways), 3))) for ways in (2, 4, 8)]
    assert powers[0] == pytest.approx(1 / 3, abs=0.06)
    assert powers[2] == pytest.approx(1 / 2, abs=0.08)
    assert powers == sorted(powers)


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


@pytest.mark.parametrize("transductive", [False, True])
def test_an_answer_is_as_sure_as_its_query_is_near(model: Estimator, planted: Dataset, transductive: bool) -> None:
    """The power of each query by hand: its cosine to the support node most like it."""
    task = EpisodeSampler(planted, "test", 3, 2, 5)[0].task
    z = unit_rows(model.embedding(planted.graph))
    near = 10 * (z[task.query] @ z[task.support].T).max(axis=1)
    constants = model.trained_["temperature"]["transductive" if transductive else "inductive"]
    assert constants["by_nearness"] != 0
    raw = model.space(planted.graph).answer_tasks([task], transductive)[0].astype(np.float64)
    level = constants["level"] + constants["by_shots"] * np.log(2) + constants["by_ways"] * np.log(3)
    right = raw ** np.exp(level + constants["by_nearness"] * near)[:, None]
    right /= right.sum(axis=1, keepdims=True)
    assert np.allclose(model.predict_tasks(planted.graph, [task], transductive)[0], right, atol=1e-5)
    again = model.predict_proba(planted.graph, task.support, task.support_y, task.query, transductive)
    assert np.allclose(again, right, atol=1e-5)


def test_calibration_error_by_hand() -> None:
    task = Episode(Task(np.array([0, 1]), np.array([0, 1]), np.arange(4)), np.array([0, 0, 1, 1]))
    p = np.array([[0.9, 0.1], [0.9, 0.1], [0.9, 0.1], [0.3, 0.7]], np.float32)
    # three with 0.9 of which two are right, one with 0.7 that is: (3 |2/3 - 0.9| + |1 - 0.7|) / 4
    assert calibration_error([p], [task]) == pytest.approx((3 * abs(2 / 3 - 0.9) + 0.3) / 4, abs=1e-6)


def test_shots_of_unequal_classes_are_averaged_harmonically() -> None:
    assert mean_shots(asked(np.array([0, 1, 1, 1, 1]))) == pytest.approx(2 / (1 + 1 / 4))


def test_a_description_alone_counts_as_one_shot() -> None:
    """Class 1 has four nodes, class 0 a sentence; beside nodes a sentence is no shot."""
    only_said = asked(np.array([1, 1, 1, 1]), (0,))
    assert only_said.n_way == 2
    assert mean_shots(only_said) == pytest.approx(2 / (1 + 1 / 4))
    assert mean_shots(asked(np.array([0, 1, 1]), (0, 1))) == mean_shots(asked(np.array([0, 1, 1])))
    assert mean_shots(asked(np.zeros(0, np.int64), (0, 1))) == 1


def test_the_power_depends_on_the_share_of_classes_that_only_a_description_stands_for() -> None:
    """By hand: 2 of 4 classes are only described, and each of the others has 3 nodes."""
    temperature = Temperature(level=0.1, by_shots=0.2, by_ways=0.3, by_nearness=0.05, by_words=-0.4)
    task = asked(np.repeat([0, 1], 3), (1, 2, 3))
    level = 0.1 + 0.2 * np.log(4 / (1 / 3 + 1 / 3 + 1 + 1)) + 0.3 * np.log(4) - 0.4 * 0.5
    assert temperature.power(task, np.array([0.0, 6.0])) == pytest.approx(np.exp([level, level + 0.05 * 6]))


def test_without_a_task_the_temperature_is_the_priors() -> None:
    prior = Temperature(-0.5, -0.2, 0.25, 0.003, 0.1)
    assert fit_temperature([], [], None, prior) == prior


def test_the_more_it_costs_the_nearer_a_temperature_stays_to_its_prior(rng: np.random.Generator) -> None:
    tasks = tasks_of(rng, 3)
    answers = [rng.dirichlet([1, 1, 1], 20).astype(np.float32) for _ in tasks]  # labels are drawn by chance
    prior = Temperature(level=0.5)
    level = [fit_temperature(answers, tasks, None, prior, doubt).level for doubt in (1e-3, 1.0, 1e3)]
    assert level[0] < level[1] < level[2]
    assert level[0] < -0.5, "answers that are no better than chance deserve no trust"
    assert level[2] == pytest.approx(0.5, abs=0.01)


@pytest.fixture(name="model")
def _model(fitted_plus: Estimator) -> Estimator:
    return fitted_plus


def test_labelled_nodes_predicted_from_the_others_revise_how_sure_to_be() -> None:
    label = np.repeat(np.arange(2), 20)
    said = np.where(label[:, None] == np.arange(2), 0.8, 0.2)
    task = asked(label)
    right, wrong = LeftOut(said, label), LeftOut(said[:, ::-1], label)
    sometimes = LeftOut(said, np.where(np.arange(40) % 5 == 0, 1 - label, label))  # 4 of 5, as was said
    assert Temperature().revision(task, right) > 0.3
    assert Temperature().revision(task, wrong) < -0.3
    assert Temperature().revision(task, sometimes) == pytest.approx(0, abs=0.05)
    assert Temperature(level=1).revision(task, sometimes) < -0.5


def test_with_few_labels_the_revision_stays_near_what_other_networks_taught() -> None:
    said, label = np.array([[0.8, 0.2], [0.2, 0.8]]), np.arange(2)
    few = Temperature().revision(asked(label.repeat(1)), LeftOut(said, label))
    many = Temperature().revision(asked(label.repeat(1)), LeftOut(said.repeat(20, axis=0), label.repeat(20)))
    assert 0 < few < many


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


def test_strangers_are_of_classes_outside_the_task_and_of_test_classes_first(planted: Dataset) -> None:
    for way, part in ((3, planted.split.test), (5, (*planted.split.train, *planted.split.valid))):
        task = EpisodeSampler(planted, "test", way, 2, 3)[0]
        found = strangers(planted, task, 0, 0)
        assert found.size == task.query.size
        assert set(planted.y[found]) <= set(part) - set(planted.y[task.support])


def test_too_few_classes_leave_strangers_unknown(planted: Dataset) -> None:
    """Training classes count where nothing was trained on them."""
    few = replace(planted, split=ClassSplit(planted.split.train, planted.split.valid[:2], planted.split.test))
    assert Estimator("propagation", 2, 2, rank=16).fit(few).trained_["membership"]
    model = Estimator("gpn", 2, 2, episodes=20).fit(few)
    assert model.trained_["membership"] is None
    with pytest.raises(FewnodeError, match="three are needed"):
        model.familiar(planted.graph, [0, 1], [0, 1], [2])


def test_a_nearer_node_is_likelier_known(model: Estimator, planted: Dataset) -> None:
    members = [np.flatnonzero(planted.y == c) for c in planted.split.valid]
    known = fit_membership(model.space(planted.graph), members, 3)
    assert known is not None
    assert known.slope > 0
    p = MembershipModel(1.0, 0.0, -2.0).probability(np.array([[1.0, 0.0], [5.0, 0.0]]), np.ones(2))
    assert np.allclose(p, sigmoid(np.array([-1.0, 3.0])))


def test_being_near_says_less_in_a_crowd(rng: np.random.Generator) -> None:
    """Classes of two kinds: close together, where strangers are near as well, and far apart."""
    p = MembershipModel(1.0, 0.0, -2.0, -1.0).probability(np.full((2, 1), 4.0), np.ones(1), np.array([0.0, 3.0]))
    assert np.allclose(p, sigmoid(np.array([2.0, -1.0])))
    centre = unit_rows(rng.normal(size=(12, 8)))
    centre[6:] = unit_rows(centre[6] + 0.3 * centre[6:])  # half of the classes are alike
    z = unit_rows((np.repeat(centre, 40, axis=0) + 0.15 * rng.normal(size=(480, 8))).astype(np.float32))
    space = Space(Embedding.of(z), Head("cosine", crowds=True))
    found = fit_membership(space, list(np.arange(480).reshape(12, 40)), 5)
    assert found is not None
    assert found.slope > 0 > found.by_crowd


def test_a_crowd_is_as_close_as_the_tenth_of_the_nodes_drawn(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    z = rng.normal(size=(30, 4)).astype(np.float32)  # few enough for all to be drawn
    rows = z[[3, 7, 3]]
    tenth = np.sort(nearness(rows, z, "cosine"), axis=1)[:, -10]
    assert np.allclose(crowding(rows, survey(z).landmarks), tenth, atol=1e-5)
    assert crowding(rows[:1], survey(z[:4]).landmarks).shape == (1,)  # another network, of fewer nodes than ten
    monkeypatch.setattr(vectors, "NUMBERS_AT_ONCE", 1)  # one node at a time
    assert np.allclose(crowding(rows, survey(z).landmarks), tenth, atol=1e-5)
    many = np.tile(z, (40, 1))
    assert np.array_equal(survey(many).landmarks, survey(many).landmarks), "always the same"


def test_calibration_tasks_are_of_classes_that_have_the_nodes() -> None:
    members = [np.arange(7), np.arange(10, 17), np.arange(20, 50), np.arange(60, 90)]
    shots = {np.bincount(task.support_y)[0]: task for task in calibration_tasks(members, 4)}
    assert set(shots) == {1, 2, 5, 10}
    assert shots[2].n_way == 4
    assert shots[10].n_way == 2
    assert Temperature()(np.array([[0.25, 0.75]], np.float32), shots[2].task)[0].tolist() == pytest.approx([0.25, 0.75])


# --- the transductive mode -------------------------------------------------------------------------------------------


def test_rectifying_moves_a_bad_prototype_to_its_class(rng: np.random.Generator) -> None:
    """Two clouds, and a support node of the first at its very edge."""
    query = np.concatenate([rng.normal(size=(30, 2)) * 0.3 + [-2.0, 0.0], rng.normal(size=(30, 2)) * 0.3 + 2.0])
    support = np.array([[-0.2, 0.3], [2.0, 2.0]], np.float32)
    share = rectify(support, np.ones(2), np.eye(2), query.astype(np.float32), "sqeuclidean")
    assert share[:30, 0].min() > 0.9
    assert share[30:, 1].min() > 0.9


def test_rectifying_learns_how_common_a_class_is() -> None:
    """A node as near to the one as to the other is what most are; ten of each are imagined beside them."""
    query = np.repeat(np.array([[-3.0], [3.0], [0.0]]), [4500, 500, 1], axis=0)
    share = rectify(np.array([[-3.0], [3.0]]), np.ones(2), np.eye(2), query, "sqeuclidean")
    assert share[-1, 0] / share[-1, 1] == pytest.approx((4500 + 10) / (500 + 10), rel=0.05)


def test_rectifying_leaves_strangers_out() -> None:
    """Fifty nodes of no class lie between; with a sense for strangers the prototypes stay where they are."""
    query = np.concatenate([np.tile([[-3.0], [3.0]], (20, 1)), np.full((50, 1), 0.5)])
    given = (np.array([[-3.0], [3.0]]), np.ones(2), np.eye(2), query, "sqeuclidean")
    with_all, careful = rectify(*given), rectify(*given, MembershipModel(4.0, 0.0, 4.0))
    assert with_all[40:].sum() > 40
    assert careful[40:].sum() < 1
    assert careful[:40].sum() > 39


def test_nodes_asked_together_tell_how_many_of_them_are_members() -> None:
    """Logistic data with one member in five; learned as if every second were one."""
    rng = np.random.default_rng(0)
    member = np.arange(5000) % 5 == 0
    near = rng.normal(np.where(member, 1.0, -1.0))[:, None]
    known, shots = MembershipModel(2.0, 0.0, 0.0), np.ones(1)  # the log-odds of N(1, 1) against N(-1, 1)
    assert known.probability(near, shots).mean() > 0.25
    among = known.among(near, shots)
    assert among.mean() == pytest.approx(0.2, abs=0.01)
    right = (near[:, 0] + np.log(0.2 / 0.8) / 2) * 2  # Bayes' rule, by hand
    assert np.allclose(among, sigmoid(right), atol=0.01)
    assert known.among(near[member], shots).mean() > 0.95
    assert np.isfinite(known.among(np.array([[9.0]]), shots)).all()


@pytest.mark.parametrize("name", ["propagation", "gpn-plus"])
def test_among_strangers_each_query_is_answered_on_its_own(name: str, planted: Dataset) -> None:
    space = Estimator(name, 3, 3, rank=16).fit(planted).space(planted.graph)
    space = replace(space, head=replace(space.head, membership=MembershipModel(4.0, 0.0, -50.0)))  # nothing is near
    task = EpisodeSampler(planted, "test", 3, 1, 10)[0].task
    assert np.allclose(*(space.answer_tasks([task], mode)[0] for mode in (False, True)), atol=1e-6)


def test_transductive_is_better_at_one_shot_and_queries_may_be_few(model: Estimator, planted: Dataset) -> None:
    words = Estimator("propagation", way=3, shot=3, rank=32, steps=0).fit(planted)
    one, all_ = (evaluate(words, planted, 5, 1, 8, tasks=60, transductive=mode).accuracy.mean for mode in (False, True))
    assert all_ > one + 0.02
    alone = model.predict_proba(planted.graph, [0, 1], [0, 1], [2], transductive=True)
    assert alone.shape == (1, 2)
    assert np.isfinite(alone).all()


def test_methods_that_answer_each_query_alone_say_so(planted: Dataset) -> None:
    model = Estimator("deepwalk", 3, 3, dimensions=8, walks=1, length=5).fit(planted)
    with pytest.raises(FewnodeError, match="no transductive mode"):
        evaluate(model, planted, 3, 3, transductive=True, tasks=2)
    with pytest.raises(FewnodeError, match="deepwalk cannot tell whether a node is in none of the classes"):
        evaluate(model, planted, 3, 3, open_set=True, tasks=2)


@pytest.mark.parametrize("name", ["gpn", "gpn-naive", "pn", "propagation", "gpn-plus"])
def test_every_prototypical_method_has_both_modes(name: str, planted: Dataset) -> None:
    quick = {} if name == "propagation" else {"rank": 16} if name == "gpn-plus" else {"episodes": 20}
    model = Estimator(name, 3, 3, **quick).fit(planted)
    for queries in ("balanced", "long-tail"):
        result = evaluate(model, planted, 3, 3, 5, tasks=10, transductive=True, queries=queries)
        assert 1 / 3 < result.accuracy.mean <= 1
        assert 0 <= result.ece < 0.5
