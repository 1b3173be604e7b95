"""What a notebook shows: short texts, small tables, pictures, bars. Names in them are somebody's, and are escaped."""

from __future__ import annotations

import numpy as np
import pytest

import fewnode
from fewnode.dataset import Dataset
from fewnode.errors import FewnodeError
from fewnode.recognition.answers import NONE, Answers


@pytest.fixture(name="found", scope="module")
def _found(worded: Dataset) -> Answers:
    return fewnode.recognise(worded, {"mail": [0, 1, 2], "vpn": [25, 26, 27]})


def test_texts_are_short(worded: Dataset, planted: Dataset, found: Answers) -> None:
    assert repr(worded) == (
        "<Dataset: name worded, nodes 100, edges 273, attributes 32, "
        "classes 4 (0 training, 0 validation, 0 test), labelled 100 nodes>"
    )
    assert repr(found).startswith("<Answers: nodes 100, ")
    model = fewnode.Estimator("propagation", way=3, shot=2)
    result = fewnode.evaluate(model.fit(planted), planted, tasks=10)
    assert repr(result).startswith("<Result: tasks 10, on planted, accuracy ")
    for shown in (worded, planted, result, found):
        assert shown._repr_html_().count("<tr>") >= 4


def test_the_table_of_answers_begins_with_the_surest(found: Answers) -> None:
    html = found._repr_html_()
    first = found.nodes[int(np.argmax(found.member))]
    assert html.index(f"<td>{first}</td>") < html.index("</tr>", html.index("<tbody>"))
    assert "and 90 more" in html
    assert found.to_pandas().columns.tolist() == ["node", "label", "probability", "mail", "vpn", "member"]


def test_names_are_escaped() -> None:
    evil = "<script>alert(1)</script>\x1b[31m"
    answers = Answers([evil, "b"], [evil], np.array([[0.7], [0.1]]), np.array([0.7, 0.1]), [])
    for shown in (answers._repr_html_(), repr(answers)):
        assert "\x1b" not in shown
    assert "<script>" not in answers._repr_html_()


# --- pictures -----------------------------------------------------------------------------------------------------


def test_pictures_are_shown_by_themselves(found: Answers, worded: Dataset) -> None:
    names = [worded.class_names[c] for c in worded.y]
    for picture in (found.plot(), found.plot("calibration", worded), found.plot("precision-recall", truth=names)):
        assert picture._repr_png_().startswith(b"\x89PNG")
    labels = {text.get_text() for text in found.plot().axes[0].get_legend().get_texts()}
    assert labels == {*found.labels, "given"}
    curves = found.plot("precision-recall", worded).axes[0].get_legend().get_texts()
    assert [text.get_text().split(":")[0] for text in curves] == ["mail", "vpn"]


def test_points_of_the_calibration_are_shares() -> None:
    said = np.array([[0.9, 0.05]] * 10 + [[0.1, 0.1]] * 4)
    answers = Answers([str(i) for i in range(14)], ["a", "b"], said, said.sum(axis=1), [])
    truth = ["a"] * 8 + ["b"] * 2 + ["a", "elsewhere", "elsewhere", None]
    line = answers.plot("calibration", truth).axes[0].lines[-1]
    assert line.get_xydata().tolist() == [[pytest.approx(0.8), pytest.approx(2 / 3)], [0.9, 0.8]]
    assert answers.labels[-1] == NONE


@pytest.mark.parametrize(
    ("kind", "truth", "said"),
    [
        ("chart", None, "there is no picture 'chart'"),
        ("calibration", None, "give truth="),
        ("calibration", ["a"], "1 classes in truth for 2 nodes"),
        ("calibration", [None, None], "none of the nodes has a known class"),
        ("precision-recall", ["x", "x"], "truth has no node of any of the classes: a"),
        ("map", None, "there is no map"),
    ],
)
def test_what_cannot_be_drawn_is_refused(kind: str, truth: list[str | None] | None, said: str) -> None:
    answers = Answers(["x", "y"], ["a"], np.array([[0.7], [0.1]]), np.array([0.7, 0.1]), [])
    with pytest.raises(FewnodeError, match=said):
        answers.plot(kind, truth)
