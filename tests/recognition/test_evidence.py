"""Rejected nodes teach: what is like them becomes less likely, and nothing changes where nobody rejected anything."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.optimize

from fewnode import Class, Estimator, FewnodeError, recognise
from fewnode.dataset import Dataset
from fewnode.model.recognise import untrained
from fewnode.recognition.calibration import sigmoid
from fewnode.recognition.classes import Given
from fewnode.recognition.rejection import VARIANCE, learned_direction
from fewnode.vectors import unit_rows
from graphs import TOPICS

MAIL, OTHERS = [0, 1], [30, 31, 55]


def test_the_direction_is_that_of_a_general_optimiser(rng: np.random.Generator) -> None:
    z, offset, wanted = rng.normal(size=(12, 5)), rng.normal(size=12), rng.random(12)
    unit = unit_rows(z)

    def loss(w: np.ndarray) -> float:
        score = offset + unit @ w
        return float(np.logaddexp(0, score).sum() - wanted @ score + w @ w / (2 * VARIANCE))

    best = scipy.optimize.minimize(loss, np.zeros(5), tol=1e-12).x
    assert np.allclose(learned_direction(z, sigmoid(offset), wanted), best, atol=1e-4)


@pytest.mark.parametrize("mode", ["one class", "two classes", "closed set", "several classes", "transductive"])
def test_a_rejected_node_takes_down_itself_and_what_is_like_it(worded: Dataset, mode: str) -> None:
    more = {"closed set": {"closed_set": True}, "several classes": {"multi_label": True}}.get(mode, {})
    more |= {"transductive": True} if mode == "transductive" else {}
    others: dict[str, Class] = {} if mode == "one class" else {"vpn": Class(OTHERS[:2])}
    query = np.arange(2, 25).tolist()
    before, after = (
        recognise(worded, {"mail": Class(MAIL, no=no), **others}, query, **more).probabilities[:, 0] for no in ([], [5])
    )
    assert after[query.index(5)] == 0
    z = unit_rows(untrained(worded).embedding(worded))
    like = np.argsort(-(z[query] @ z[5]))[1:6]
    assert after[like[0]] < before[like[0]]
    assert after[like].mean() < before[like].mean()


def test_a_rejection_that_was_expected_teaches_nothing(worded: Dataset) -> None:
    """Strangers that nobody took for members."""
    query = np.arange(2, 25).tolist()
    before = recognise(worded, {"mail": MAIL}, query).probabilities
    after = recognise(worded, {"mail": Class(MAIL, no=[60, 80, 90])}, query).probabilities
    assert np.abs(after - before).max() < 0.05


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (Class(MAIL, no=[1]), "'n1' is given for class 'mail', and as not in it"),
        (Class(MAIL, no=["nobody"]), "unknown node 'nobody'"),
        (Class(no=[4]), "class 'mail' has no node and no description"),
    ],
)
def test_what_contradicts_itself_is_refused(worded: Dataset, given: Class, message: str) -> None:
    with pytest.raises(FewnodeError, match=message):
        recognise(worded, {"mail": given})


def test_a_method_that_cannot_learn_from_them_says_so(planted: Dataset) -> None:
    model = Estimator("sgc").fit(planted)
    with pytest.raises(FewnodeError, match="sgc cannot learn from rejected nodes; gpn-plus can"):
        model.ask(planted, {"a": Class([0], [7]), "b": [50]})
    asked = model.ask(planted, {"a": [0], "b": [50]})
    with pytest.raises(FewnodeError, match="'c' is none of the classes"):
        asked.answered({("c", 7): True})
    assert asked.answered({("a", 7): True}).given.support.tolist() == [0, 50, 7]


def test_a_table_has_answers(worded: Dataset, tmp_path: Path) -> None:
    table = tmp_path / "answers.csv"
    table.write_text("node,class,answer\nn0,mail,yes\nn5,mail,NO\nn30,vpn,\n")
    found = Given.read(worded, table, None)
    assert (found.support.tolist(), found.labels, found.no[0].tolist()) == ([0, 30], ["mail", "vpn"], [5])
    assert found.remarks == ()
    table.write_text("node,class,answer\nn0,mail,perhaps\n")
    with pytest.raises(FewnodeError, match="line 2: the answer is 'perhaps', expected yes or no"):
        Given.read(worded, table, None)
    table.write_text("node,class,answer\nn0,mail,no\nn30,vpn,yes\n")
    with pytest.raises(FewnodeError, match="class 'mail' has only nodes that are not in it"):
        Given.read(worded, table, None)
    classes = tmp_path / "classes.csv"
    classes.write_text(f"class,description\nmail,{TOPICS['mail']}\n")
    assert Given.read(worded, table, classes).no[0].tolist() == [0]
    table.write_text("node,class,Answer\nn0,mail,yes\nn5,mail,no\nn30,vpn,yes\n")
    with pytest.raises(FewnodeError, match="the column 'Answer' must be called 'answer'"):
        Given.read(worded, table, None)
