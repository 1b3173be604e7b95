"""Names are somebody's text: nothing written or printed from them is a formula, markup or a command to a terminal."""

from __future__ import annotations

import csv
import html.parser
import io
import json
import os
import pty
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fewnode._system.sheets import csv_text
from fewnode.cli import main
from fewnode.dataset import Dataset
from fewnode.experiment.report import render, write_report
from fewnode.experiment.results import read_results
from fewnode.formats.directory import save_dataset
from fewnode.model.estimator import Estimator
from fewnode.tables.report import report
from graphs import predictions_of
from sizes import Figure, sizes
from synthetic import case_part, part, write

FORMULAS = ("=1+1", "+1+1", "-1+1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "＝1+1", "'=1+1", "''@x", "-2+3|' /C calc'!A0")
CONTROLS = (
    "\x1b[31mred",
    "\x1b]0;title\x07",
    "a\x9bc",
    "\u202egnp.exe",
    "line\rover",
    "nul\x00",
    "\x08\x7f",
    "\u2066x",
)
MARKUP = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</svg><script>",
    "{{7*7}}{% raw %}",
    "\\input{/etc/passwd}",
    "\\write18{id}",
    "%$#_{}~^&",
    "$x^2$ $\\foo$ $",
    "|a|b|",
    "[x](javascript:alert(1))",
    "![x](http://host/i.png)",
    "`code` *b* _i_ ~~s~~",
    "<!--",
    "&lt;&amp;",
    "a\nb",
)
Capture, Patch = pytest.CaptureFixture[str], pytest.MonkeyPatch
EVIL = (*FORMULAS, *CONTROLS, *MARKUP)


@pytest.fixture(scope="module")
def evil(planted: Dataset) -> Dataset:
    """A network whose names are all of it."""
    rest = [f"node {i}" for i in range(planted.graph.n - len(EVIL))]
    classes = [*EVIL[: len(planted.class_names)]]
    return replace(planted, node_names=(*EVIL, *rest), class_names=tuple(classes), name=EVIL[0] + EVIL[-4] + EVIL[11])


def is_formula(cell: str) -> bool:
    """What a spreadsheet would run."""
    return cell[:1] in tuple("=+-@\t\r\n＝＋－＠") and not re.fullmatch(r"[+-]?[\d.]+(e[+-]?\d+)?", cell)


def cells(text: str) -> list[str]:
    return [cell for row in csv.reader(io.StringIO(text, newline="")) for cell in row]


def test_no_table_holds_a_formula(evil: Dataset, tmp_path: Path, figure: Figure) -> None:
    model = Estimator("propagation", 3, 2, steps=1, teleport=0.0, scaling="l2", centre=False, distance="cosine")
    model.fit(evil)
    names = [f"{FORMULAS[v % len(FORMULAS)]}{v % len(FORMULAS)}" for v in range(22)]  # none looks like another
    answer = predictions_of(model, evil, range(22), names, range(40), explain=True)
    tables = [answer.to_csv(), answer.support_csv(), csv_text([EVIL])]
    layout, records = part("compare", lambda *_: np.ones((1, 3)) / 2, EVIL[:3], EVIL[3:6], title=EVIL[0])
    bad, more = part("compare", lambda *_: EVIL[3], EVIL[:1], EVIL[1:2], title=EVIL[2])
    results = read_results(write(tmp_path / "grid", [(layout, records), (bad, more)]))
    tables.append(render(results, "csv"))
    found = [cell for table in tables for cell in cells(table)]
    assert [cell for cell in found if is_formula(cell)] == []
    assert sum(cell.startswith("'") for cell in found) > 50, "there was something to neutralise"
    figure(
        "output.formulas",
        f"{len(found):,} cells of {len(tables)} tables with {len(FORMULAS)} kinds of formula: none runs",
    )


class Markup(html.parser.HTMLParser):
    """What a page would load or run."""

    def __init__(self) -> None:
        super().__init__()
        self.bad: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("script", "iframe", "object", "embed", "link", "base", "form"):
            self.bad.append(tag)
        for name, value in attrs:
            outside = name in ("src", "href", "xlink:href") and not (value or "").startswith(("#", "data:image/png"))
            if name.startswith("on") or outside:
                self.bad.append(f"{tag} {name}={value}")

    def handle_comment(self, data: str) -> None:
        if "MARK" in data:
            self.bad.append("comment")


@sizes(2, len(MARKUP), len(MARKUP))
def test_reports_escape_every_name(tmp_path: Path, figure: Figure, count: int) -> None:
    spread = np.random.default_rng(0).random((2, 6))
    for i in range(count):  # each name on its own or, where there is little time, some of them in one
        name = " ".join(MARKUP[i::count])
        names = [name, f"{name} 2"]
        parts = [
            part("compare", lambda *_: spread, names, names, title=name),
            part("compare", lambda *_, name=name: f"because {name}", names[:1], names[:1], title="none"),  # type: ignore[misc]
            part("ablation", lambda *_: spread, names[:1], names, title=name),
            part("sweep", lambda *_: spread, names[:1], names, ((3, 2, 2), (5, 2, 2)), "way", title=name),
            case_part(names[:1], names[:1], names),
        ]
        results = read_results(write(tmp_path / str(i), parts))
        write_report(results, tmp_path / "report.html")
        page = (tmp_path / "report.html").read_text()
        parser = Markup()
        parser.feed(page)
        assert parser.bad == [], name
        assert "default-src 'none'" in page
        latex = render(results, "latex")
        assert not re.search(r"\\(input|write|foo)", latex), name
        assert not re.search(r"(?<!\\)[%#]", latex), name
        markdown = render(results, "markdown")
        assert not re.search(r"(?<!\\)(!?\[|<|`)", markdown), name
        rows = [line for line in markdown.splitlines() if line.startswith("|")]
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in rows if row.count("---") == 0}) <= 2, name
    figure("output.markup", f"{len(MARKUP)} kinds of markup in HTML, LaTeX and Markdown: all escaped")


def obeyed(text: str) -> list[str]:
    """Characters that a terminal would act on."""
    return [c for c in text if not c.isprintable() and c not in "\n\r\t"]


@pytest.mark.parametrize("name", CONTROLS)
def test_no_control_character_reaches_a_terminal(
    planted: Dataset, tmp_path: Path, capfd: Capture, monkeypatch: Patch, name: str
) -> None:
    def said(*arguments: object) -> str:
        monkeypatch.setattr("sys.argv", ["fewnode", *map(str, arguments)])
        with pytest.raises(SystemExit):
            main()
        return "".join(capfd.readouterr())

    data = replace(planted, name=name, class_names=tuple(f"{name} {i}" for i in range(len(planted.class_names))))
    (tmp_path / "s.csv").write_text(f"node,class\n{name},{name}\n".replace("\x00", ""))
    (tmp_path / "g.toml").write_text(f"[[compare]]\n{json.dumps(name)} = 1\n".replace("\x7f", "\\u007f"))
    save_dataset(data, tmp_path / "d")
    assert not obeyed(report(data))
    texts = [said("data", "info", tmp_path / "d"), said("data", "info", tmp_path / "d", "--json")]
    texts += [
        said("experiment", tmp_path / "g.toml", "--out", tmp_path / "o"),
        said("data", "info", f"no{name}".replace("\0", "")),
    ]
    assert not obeyed("".join(texts))
    assert all(texts)


def test_a_result_is_exact_in_a_pipe_and_harmless_on_a_terminal(tmp_path: Path) -> None:
    """`show` as the commands call it, with a terminal and with a file behind standard output."""
    code = "from fewnode.cli.output import show; show('a\\x1b[31mb\\n')"
    piped = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout
    assert piped == b"a\x1b[31mb\n"
    main_end, terminal = pty.openpty()
    subprocess.run([sys.executable, "-c", code], stdout=terminal, check=True)
    assert os.read(main_end, 100).replace(b"\r\n", b"\n") == "a·[31mb\n".encode()
    os.close(main_end), os.close(terminal)
