import re
from html.parser import HTMLParser
from pathlib import Path

import pytest


class _Outside(HTMLParser):
    """Collects whatever a page would fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.fetched: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.fetched += [v or "" for k, v in attrs if k in ("src", "href") and not (v or "").startswith("#")]


def test_demo_from_network_to_report(fewnode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = fewnode("demo", "--episodes", 20, "--tasks", 20)
    assert done.code == 0
    assert max(map(len, done.out.splitlines())) <= 80, "it must fit a terminal"
    methods = ["GPN, as published", "nearest class mean", "GPN+", "GPN+, transductive"]
    rows = dict(re.findall(r"^(\S.*?)  +(?:yes|none) .*?(\d+\.\d ± \d+\.\d)", done.out, re.MULTILINE))
    assert list(rows) == methods
    assert len(re.findall(r"β = 0\.\d{3}", done.out)) == 5
    page = (tmp_path / "demo" / "report.html").read_text()
    assert all(value in page for value in rows.values())
    assert page.count("<svg") == 2
    outside = _Outside()
    outside.feed(page)
    assert outside.fetched == []
    assert fewnode("evaluate", "--run", "demo/run", "--tasks", 5, "--json").json["tasks"] == 5
    assert fewnode("demo", "--episodes", 10, "--tasks", 5, "-q").code == 0, "it can be run again"
