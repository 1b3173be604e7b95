"""What is known of a class from answers, by hand and against known truth."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fewnode import Class, FewnodeError
from fewnode.dataset import Dataset
from fewnode.model.recognise import untrained
from fewnode.review.near_duplicates import grouped
from fewnode.review.trust import Evidence
from fewnode.review.wrong import wrong_labels


def answers(rng: np.random.Generator, p: np.ndarray, true: np.ndarray, count: int) -> Evidence:
    """Some nodes with probabilities, of which others are right, and answers about nodes drawn by the first."""
    asked = rng.choice(p.size, count, replace=False, p=p / p.sum())
    yes = rng.random(count) < true[asked]
    left = np.setdiff1d(np.arange(p.size), asked)
    age = np.arange(count, 0, -1).astype(float)
    return Evidence(p[left], p[left] >= 0.5, int(yes.sum()), p[asked], yes, age)


@pytest.mark.parametrize("off", [-1.0, 0.0, 1.0])
def test_intervals_cover_where_the_model_is_too_sure_or_too_timid(off: float, rng: np.random.Generator) -> None:
    """Of 30 classes whose log-odds are all off by as much; nine of ten would be 27."""
    covered = np.zeros((30, 3))
    for turn in range(30):
        p = np.concatenate([rng.beta(4, 1, 150), rng.beta(1, 4, 300), rng.beta(0.05, 40, 4000)])
        odds = np.log(p.clip(1e-6, 1 - 1e-6) / (1 - p.clip(1e-6, 1 - 1e-6))) + off
        true = 1 / (1 + np.exp(-odds))
        known = answers(rng, p, true, 100)
        odds = np.log(known.probability.clip(1e-6, 1 - 1e-6) / (1 - known.probability.clip(1e-6, 1 - 1e-6))) + off
        member = rng.random(odds.size) < 1 / (1 + np.exp(-odds))
        right, every = known.found + (member & known.claimed).sum(), known.found + member.sum()
        truth = (every, right / (known.found + known.claimed.sum()), right / every)
        covered[turn] = [each.low <= value <= each.high for each, value in zip(known.trust(), truth, strict=True)]
    assert (covered.mean(axis=0) >= 0.8).all(), covered.mean(axis=0)


def test_nothing_is_said_before_an_answer_was_asked_for(worded: Dataset) -> None:
    asked = untrained(worded).ask(worded, {"mail": Class([3])})
    assert asked.trust()["mail"] == (None, None, None)
    assert not asked.stop("mail").now
    assert asked.stop("mail").answers_left is None
    far = asked.next(90)[-1].node
    volunteered = asked.answered({("mail", far): False})
    assert volunteered.trust()["mail"].members is None, "nobody asked about that node"
    with pytest.raises(FewnodeError, match="between 0 and 1"):
        asked.stop("mail", recall=80)
    with pytest.raises(FewnodeError, match="none of the classes"):
        asked.stop("male")


def test_a_labeller_is_told_to_stop_when_most_are_found(worded: Dataset) -> None:
    asked, members = untrained(worded).ask(worded, {"mail": Class([3])}), worded.y == worded.y[3]
    for _ in range(9):
        questions = asked.next(10)
        assert {each.purpose for each in questions} == {"find", "check"}
        before = asked
        asked = asked.answered({("mail", each.node): bool(members[worded.node(each.node)]) for each in questions})
        assert asked.stop("mail", 0.8).now or asked.stop("mail", 0.8).answers_left
        if asked.stop("mail", 0.8).now:
            break
    assert asked.stop("mail", 0.8).now
    assert before.asked != asked.asked
    claimed = asked.judge().probabilities[:, 0] >= 0.5
    assert (claimed & members).sum() >= 0.8 * members.sum()
    found = asked.trust()["mail"]
    assert found.members
    assert found.members.low <= members.sum() <= found.members.high


def test_planted_labels_are_found_and_corrected(worded: Dataset) -> None:
    y = worded.y.copy()
    y[[3, 30, 60]] = worded.y[[30, 60, 3]]
    found = wrong_labels(untrained(worded).embedding(worded), replace(worded, y=y), 3)
    assert {worded.node(each.node) for each in found} == {3, 30, 60}
    for each in found:
        assert each.likelier == worded.class_names[worded.y[worded.node(each.node)]]
        assert each.agreement < 0.5


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
