"""The page and the tables of a grid: the right marks, nothing unescaped, no outside host, not too large."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from fewnode.errors import FewnodeError
from fewnode.experiment.report import render, write_report
from fewnode.experiment.results import Results, read_results
from synthetic import case_part, noisy, part, write

MEANS = {"gpn": 0.70, "pn": 0.50, "sgc": 0.699}
NASTY = "<script>alert(1)</script> | $x_1$ & 50% \\end{table} *b*"
REPORTED = [
    {"source": "Somebody, 2020", "dataset": "dblp", "way": 5, "shot": 5, "accuracy": {"gpn": 75.4}, "f1": {"gpn": 74.7}}
]


class Page(HTMLParser):
    """The text of the cells of large tables, with their class, and every tag that opens."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.cells: list[tuple[str, str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag == "table":
            self.glance = ("class", "glance") in attrs
        if tag == "td" and not self.glance:
            self.cells.append((dict(attrs).get("class") or "", ""))

    def handle_data(self, data: str) -> None:
        if self.cells:
            kind, text = self.cells[-1]
            self.cells[-1] = (kind, text + data)


def page(results: Results, path: Path) -> str:
    write_report(results, path)
    return path.read_text()


def test_the_best_is_bold_and_its_equals_are_marked(tmp_path: Path) -> None:
    results = read_results(write(tmp_path, [part("compare", noisy(MEANS, noise=0.02), labels=MEANS)]))
    text = page(results, tmp_path / "r.html")
    marks = [kind for kind, _ in Page(text).cells]
    assert sorted(marks) == ["best", "level", "worse"]
    assert marks[1] == "worse"  # PN, twenty points below
    assert "2 comparisons" in text
    markdown = render(results, "markdown")
    assert len(re.findall(r"\*\*\d+\.\d ± \d+\.\d\*\*", markdown)) == 2  # accuracy and macro-F1
    assert len(re.findall(r"\d†", markdown)) == 2
    assert render(results, "latex").count("\\textbf{") == 2
    assert re.findall(r"mark|best|level|worse", render(results, "csv")) == ["mark", *marks]


def test_published_numbers_stand_beside_ours(tmp_path: Path) -> None:
    score = lambda *_: np.full((2, 4), 0.8)  # noqa: E731
    parts = [part("compare", score, ("dblp", "mine"), ("gpn",))]
    results = read_results(write(tmp_path, parts, reported=REPORTED))
    cells = [" ".join(text.split()) for _, text in Page(page(results, tmp_path / "r.html")).cells]
    assert "reported 75.4 / 74.7 (+4.6)" in cells[0]
    assert "reported" not in cells[1].split("How to read")[0]  # another network is another network
    assert "(reported 75.4, +4.6)" in render(results, "markdown").replace("\\", "")
    assert ",75.4,74.7" in render(results, "csv")


def test_names_are_text_wherever_they_stand(tmp_path: Path) -> None:
    means = {NASTY: 0.5, "gpn": 0.6}
    sweep = part("sweep", noisy(means), (NASTY,), means, ((3, 5, 5), (5, 5, 5)), along="way", title=NASTY)
    parts = [
        part("compare", noisy(means), (NASTY,), means, title=NASTY),
        part("ablation", noisy(means), (NASTY,), means, title=NASTY),
        part("compare", lambda *_: NASTY, ("empty",), title="none"),
        sweep,
        case_part((NASTY,), means, [NASTY, "$b_$", "c", "d", "e"]),
    ]
    results = read_results(write(tmp_path, parts, title=NASTY))
    tags = Page(page(results, tmp_path / "r.html")).tags
    assert "script" not in tags
    assert "svg" in tags
    latex = render(results, "latex")
    assert "\\end{table} " not in latex
    assert latex.count("\\begin{table}") == latex.count("\\end{table}") == latex.count("\\caption{")
    for line in render(results, "markdown").splitlines():
        if line.startswith("| "):
            assert len(re.findall(r"(?<!\\)\|", line)) in (3, 4)  # a comparison says how many seeds there are
    assert "<script>" not in render(results, "markdown").replace("\\<script\\>", "")


def test_an_unfinished_grid_is_reported_as_far_as_it_is(tmp_path: Path) -> None:
    layout, records = part("compare", noisy(MEANS), labels=MEANS)
    sweep = part("sweep", noisy({"gpn": 0.5}), labels=("gpn",), settings=((2, 5, 5), (3, 5, 5)), along="way")[0]
    ablation = part("ablation", noisy(MEANS), labels=MEANS)[0]
    case = case_part(("mine",), ("gpn",), list("abcde"))[0]
    parts = [(layout, records[:4]), (sweep, []), (ablation, []), (case, [])]
    text = page(read_results(write(tmp_path, parts)), tmp_path / "r.html")
    assert "not run yet" in text
    assert "1 of 3 seeds" in text
    assert "missing" in text


@pytest.mark.parametrize("change", [{"similarity": []}, {"classes": 3}, {"map": {}}, {"beta": [1]}])
def test_a_strangers_case_study(tmp_path: Path, change: dict[str, object]) -> None:
    layout, records = case_part(("mine",), ("gpn",), list("abcde"))
    bad = [record.model_copy(update={"case": {**(record.case or {}), **change}}) for record in records]
    with pytest.raises(FewnodeError, match="the case study of mine is not what"):
        page(read_results(write(tmp_path, [(layout, bad)])), tmp_path / "r.html")
