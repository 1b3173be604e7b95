"""A network of somebody else's: no base classes, a few examples or a sentence, and plain evidence beside z."""

from __future__ import annotations

import numpy as np
import pytest

import fewnode

MULES, N = 12, 600


@pytest.fixture(scope="module")
def bank() -> fewnode.Dataset:
    """Accounts with amounts of heavy tails. The first ones get much from many, and give it all to one."""
    rng = np.random.default_rng(0)
    amount = np.exp(rng.normal(6, 1.5, N))
    source, target = rng.integers(N, size=1500), rng.integers(N, size=1500)
    inflow = [(int(s), v) for v in range(MULES) for s in rng.integers(N, size=25)]
    pairs = [(s, t) for s, t in [*zip(source.tolist(), target.tolist(), strict=True), *inflow] if s != t]
    amount[:MULES] = np.exp(rng.normal(10, 0.3, MULES))
    nodes = {"id": [f"a{i}" for i in range(N)], "in_6m": amount.round(2), "status": ["A"] * (N - 9) + ["B"] * 9}
    edges = {"from": [f"a{s}" for s, _ in pairs], "to": [f"a{t}" for _, t in pairs], "kind": ["pays"] * len(pairs)}
    links = {"source": "from", "target": "to", "relation": "kind", "directed": True}
    return fewnode.read_tables(nodes, edges, id="id", category=["status"], no_label=True, **links)


@pytest.fixture(scope="module")
def packages() -> fewnode.Dataset:
    """Short texts. Four of 400 nodes have the word `telescope`; each is linked to nodes of other subjects."""
    rng = np.random.default_rng(1)
    common = np.array([f"{a}{b}" for a in ("mor", "tel", "pri", "dov") for b in ("na", "lus", "tek", "vid", "sor")])
    texts = [" ".join(rng.choice(common, 7)) for _ in range(400)]
    texts[:4] = [f"{text} telescope" for text in texts[:4]]
    edges = {"a": [f"p{i}" for i in rng.integers(400, size=900)], "b": [f"p{i}" for i in rng.integers(400, size=900)]}
    return fewnode.read_tables(
        {"id": [f"p{i}" for i in range(400)], "about": texts}, edges, text="about", no_label=True
    )


def first(answers: fewnode.Answers, count: int) -> set[str]:
    return {answers.nodes[i] for i in np.argsort(-answers.probabilities[:, 0], kind="stable")[:count]}


def test_nodes_with_the_rare_word_of_a_sentence_come_first(packages: fewnode.Dataset) -> None:
    answers = fewnode.recognise(packages, {"stars": "a telescope"})
    assert first(answers, 4) == {"p0", "p1", "p2", "p3"}
    assert answers.member is not None
    assert answers.member.sum() < 100


def test_a_name_does_not_join_its_sentence(packages: fewnode.Dataset) -> None:
    with pytest.raises(fewnode.FewnodeError, match="no word of it"):
        fewnode.recognise(packages, {"telescope": "unheard-of things"})
    named = fewnode.recognise(packages, {"telescope": ""})
    assert first(named, 4) == {"p0", "p1", "p2", "p3"}


def test_amounts_and_degrees_find_what_three_examples_show(bank: fewnode.Dataset) -> None:
    answers = fewnode.recognise(bank, {"mules": ["a0", "a1", "a2"]})
    assert len(first(answers, MULES) & {f"a{i}" for i in range(MULES)}) >= MULES - 1
    assert answers.member is not None
    assert MULES / 3 < answers.member.sum() < 3 * MULES + 20
    assert answers.left_out["mules"] <= MULES
    assert "left out" in answers.check


def test_one_example_ranks_and_says_no_number(bank: fewnode.Dataset) -> None:
    answers = fewnode.recognise(bank, {"mules": ["a0"]})
    assert answers.member is None
    assert not answers.closed_set
    assert [node for node, label in zip(answers.nodes, answers.labels, strict=True) if label == "mules"] == ["a0"]
    assert "how many" in answers.check
    question = fewnode.Estimator("gpn-plus").fit(bank).ask(bank, {"mules": ["a0"]})
    known = question.judge(expected=50)
    assert known.member is not None
    assert 35 < known.member.sum() < 65
    assert known.labels.count("mules") > 5


def test_a_class_of_ordinary_nodes_closes_the_question(bank: fewnode.Dataset) -> None:
    ordinary = [f"a{i}" for i in range(100, 110)]
    answers = fewnode.recognise(bank, {"mules": [f"a{i}" for i in range(6)], "ok": ordinary})
    assert answers.closed_set
    assert "'ok'" in answers.reason
    assert answers.labels.count("ok") > N - 60


def test_tasks_are_answered_as_a_question_is(bank: fewnode.Dataset) -> None:
    model, support, y = fewnode.Estimator("gpn-plus").fit(bank), np.arange(0, 120, 6), np.repeat([0, 1], [2, 18])
    task = fewnode.Task(support, y, np.arange(1, 60, 2))
    expected = model.predict_proba(bank, support, y.tolist(), task.query)
    np.testing.assert_allclose(model.predict_tasks(bank, [task])[0], expected, atol=1e-6)


def test_reasons_name_numbers_and_nothing_that_most_nodes_share(bank: fewnode.Dataset) -> None:
    question = fewnode.Estimator("gpn-plus").fit(bank).ask(bank, {"mules": ["a0", "a1", "a2"]})
    reasons = question.why("a5")
    assert reasons.numbers
    assert "3 of 3 examples" in reasons.sentence
    assert not any("status=A" in each.word for each in reasons.words)
