"""What to ask so that a class is found: nodes in doubt, unlike each other."""

from __future__ import annotations

import numpy as np
import pytest

from fewnode import FewnodeError
from fewnode.dataset import Dataset
from fewnode.model.recognise import untrained
from fewnode.review.finding import in_doubt, replayed


def test_nodes_at_the_threshold_come_before_sure_ones() -> None:
    z = np.eye(6, dtype=np.float32)
    p = np.array([0.99, 0.52, 0.001, 0.45, 0.9, 0.0])
    assert set(in_doubt(p, z.__getitem__, z[:1], 2, doubted=2)) == {1, 3}
    assert in_doubt(p, z.__getitem__, z[:1], 1, threshold=0.9, doubted=1) == [4]


def test_copies_are_not_asked_about_twice() -> None:
    z = np.array([[1, 0], [1, 0], [0, 1], [0, 1]], np.float32)
    first = in_doubt(np.full(4, 0.5), z.__getitem__, z[:0], 2)
    assert len({tuple(row) for row in z[first].tolist()}) == 2


def test_a_table_of_answers_says_what_the_answers_said(worded: Dataset) -> None:
    """Answers that are given back at once are those that were given one batch after the other."""
    model, members = untrained(worded), worded.y == worded.y[3]
    start = question = model.ask(worded, {"mail": [3]})
    told: list[tuple[str, int, bool]] = []
    for _ in range(3):
        rows = [worded.node(each.node) for each in question.next(10)]
        told += [("mail", row, bool(members[row])) for row in rows]
        question = question.answered({("mail", row): bool(members[row]) for row in rows})
    again = replayed(start.answered({(label, row): yes for label, row, yes in told}), told)
    assert again.asked == question.asked
    assert {(each.label, each.row, each.yes) for each in again.asked} == {*told}
    assert again.trust() == question.trust()


def test_classes_take_turns(worded: Dataset) -> None:
    model = untrained(worded)
    found = model.ask(worded, {"mail": [0], "vpn": [30]}).next(5, "find")
    assert [each.label for each in found].count("mail") == 3
    assert len({each.node for each in found}) == 5
    with pytest.raises(FewnodeError, match="no node left"):
        model.ask(worded, {"mail": [0]}).next(5, "find", among=[0])


def test_a_truthful_labeller_finds_a_class_by_few_questions(worded: Dataset) -> None:
    """Each of 25 nodes among 100; a quarter of them are known after as many questions at random."""
    question, members = untrained(worded).ask(worded, {"mail": [3]}), worded.y == worded.y[3]
    for _ in range(12):
        (each,) = question.next(1, "find")
        question = question.answered({("mail", each.node): bool(members[worded.node(each.node)])})
    claimed = question.judge(range(100)).probabilities[:, 0] >= 0.5
    assert (claimed & members).sum() >= 0.8 * members.sum()
    assert (claimed & members).sum() >= 0.8 * claimed.sum()
