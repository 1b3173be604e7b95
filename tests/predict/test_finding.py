"""What to ask so that a class is found: nodes in doubt, unlike each other."""

from __future__ import annotations

import numpy as np
import pytest

from fewnode import FewnodeError
from fewnode.dataset import Dataset
from fewnode.predict.finding import ask_next, find, in_doubt
from fewnode.predict.labelling import suggest
from fewnode.predict.untrained import untrained


def test_nodes_at_the_threshold_come_before_sure_ones() -> None:
    z = np.eye(6, dtype=np.float32)
    p = np.array([0.99, 0.52, 0.001, 0.45, 0.9, 0.0])
    assert set(in_doubt(p, z, z[:1], 2, doubted=2).tolist()) == {1, 3}
    assert in_doubt(p, z, z[:1], 1, threshold=0.9, doubted=1).tolist() == [4]


def test_copies_are_not_asked_about_twice() -> None:
    z = np.array([[1, 0], [1, 0], [0, 1], [0, 1]], np.float32)
    first = in_doubt(np.full(4, 0.5), z, z[:0], 2)
    assert len({tuple(row) for row in z[first].tolist()}) == 2


def test_what_was_answered_is_not_asked_again(worded: Dataset) -> None:
    model = untrained(worded)
    asked = model.recogniser(worded, [0, 1], ["mail"] * 2, rejected={"mail": [30, 31]})
    nodes, probability = ask_next(asked, "mail", np.arange(100), 96)
    assert sorted(nodes.tolist()) == sorted({*range(100)} - {0, 1, 30, 31})
    assert np.allclose(probability, asked.judge(nodes)[0][:, 0])
    assert ask_next(asked, "mail", np.array([0, 30]))[0].size == 0


def test_classes_take_turns(worded: Dataset) -> None:
    found = find(untrained(worded), worded, [0, 30], ["mail", "vpn"], count=5)
    assert [each.likely for each in found].count("mail") == 3
    assert len({each.node for each in found}) == 5
    with pytest.raises(FewnodeError, match="no node left"):
        find(untrained(worded), worded, [0], ["mail"], among=[0])


def test_nodes_rejected_for_every_class_are_suggested_no_more(worded: Dataset) -> None:
    model = untrained(worded)
    first = suggest(model, worded, [0, 30], ["mail", "vpn"], count=3)[0].node
    no = {"mail": [first], "vpn": [first]}
    assert first not in [s.node for s in suggest(model, worded, [0, 30], ["mail", "vpn"], 20, rejected=no)]


def test_a_truthful_labeller_finds_a_class_by_few_questions(worded: Dataset) -> None:
    """Each of 25 nodes among 100; a quarter of them are known after as many questions at random."""
    model, yes, no = untrained(worded), [3], []
    for _ in range(12):
        asked = model.recogniser(worded, yes, ["mail"] * len(yes), rejected={"mail": no})
        (node,) = ask_next(asked, "mail", np.arange(100))[0].tolist()
        (yes if worded.y[node] == worded.y[3] else no).append(node)
    asked = model.recogniser(worded, yes, ["mail"] * len(yes), rejected={"mail": no})
    claimed = asked.judge(range(100))[0][:, 0] >= 0.5
    members = worded.y == worded.y[3]
    assert (claimed & members).sum() >= 0.8 * members.sum()
    assert (claimed & members).sum() >= 0.8 * claimed.sum()
