"""The demo, run once as `make demo` runs it: what it prints, its model, and the README's picture of it."""

import re
from pathlib import Path

import pytest

README = (Path(__file__).parents[2] / "README.md").read_text()


@pytest.fixture(name="demo", params=["quick", pytest.param("whole", marks=pytest.mark.check)])
def _demo(fewnode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """What it prints, on a part of the network or on the whole of it."""
    monkeypatch.chdir(tmp_path)
    sizes: tuple[object, ...] = ()
    if request.param == "quick":
        request.getfixturevalue("small_debian")
        sizes = ("--episodes", 60, "--tasks", 40)
    done = fewnode("demo", "--out", "demo", *sizes)
    assert done.code == 0
    if request.param == "whole":
        the_demos_output_is_the_readmes(done.out)
    return str(done.out)


def test_demo_from_network_to_report(fewnode, demo: str, tmp_path: Path) -> None:
    """One test, because it is one long run."""
    assert max(map(len, demo.splitlines())) <= 80, "it must fit a terminal"
    methods = ["GPN", "Propagation, no search", "GPN+", "GPN+, transductive"]
    rows = dict(re.findall(r"^(\S.*?)  +(?:yes|none) .*?(\d+\.\d ± \d+\.\d)", demo, re.MULTILINE))
    assert list(rows) == methods
    assert len(re.findall(r"β = 0\.\d{3}", demo)) == 5
    assert (tmp_path / "demo" / "results.txt").read_text() in demo
    assert fewnode("evaluate", "--run", "demo/run", "--tasks", 5, "--json").json["tasks"] == 5


def the_demos_output_is_the_readmes(demo: str) -> None:
    """Accuracies may differ by a little on another processor."""
    number = re.compile(r"\d+\.\d+")
    block = re.findall(r"```console\n(.*?)```", README, re.DOTALL)[0]
    for line in [line for line in block.splitlines()[2:] if line and "…" not in line]:
        match = [other for other in demo.splitlines() if number.sub("#", other) == number.sub("#", line)]
        assert match, f"the demo no longer prints {line!r}"
        for ours, theirs in zip(number.findall(line), number.findall(match[0]), strict=True):
            assert float(ours) == pytest.approx(float(theirs), abs=2.0 if float(ours) > 1 else 0.05)
