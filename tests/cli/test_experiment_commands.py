"""`fewnode experiment` and `fewnode report`, as a user calls them."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from fewnode._system.files import exclusive

EXAMPLES = Path(__file__).parents[2] / "examples"
GRID = """
[[compare]]
datasets = "planted"
methods = ["gpn", "propagation"]
way = [3, 6]
shot = 3
tasks = 4
[methods.gpn]
options = { episodes = 10 }
"""


@pytest.fixture(name="grid")
def _grid(tmp_path: Path) -> Path:
    path = tmp_path / "grid.toml"
    path.write_text(GRID)
    return path


def test_what_is_wrong_is_one_line(fewnode, grid: Path, dataset_dir: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    grid.write_text(GRID.replace("methods = ", "methds = "))
    bad = fewnode("experiment", grid, "--out", out)
    assert (bad.code, bad.out) == (2, "")
    assert "grid.toml: [[compare]] 1: unknown key 'methds' (did you mean 'methods'?)" in bad.err
    assert bad.err.count("\n") == 1
    assert fewnode("report", tmp_path).code == 2
    assert fewnode("report", tmp_path / "nowhere", "--format", "latex").code == 2
    grid.write_text(GRID)
    with exclusive(out):
        second = fewnode("experiment", grid, "--out", out, "--data-dir", dataset_dir.parent)
    assert (second.code, "another process is writing to it" in second.err) == (2, True)
    there = ("--backend", "ray", "--address", "here")
    assert fewnode("experiment", grid, "--out", out, "--data-dir", dataset_dir.parent, *there).code == 2


@pytest.mark.usefixtures("small_debian")
def test_the_example_runs(fewnode, tmp_path: Path) -> None:
    """With a tenth of its training: the whole takes a minute."""
    text = (EXAMPLES / "grid.toml").read_text()
    found = tomllib.loads(text)
    (compare,) = found["compare"]
    assert len(compare["methods"]) == 3
    assert len(compare["shot"]) == found["defaults"]["seeds"] == 2
    small = text.replace("tasks = 50", "tasks = 5").replace("seeds = 2", "seeds = 1")
    small += "[methods.gpn]\noptions = { episodes = 10 }\n[methods.pn]\noptions = { episodes = 10 }\n"
    (tmp_path / "grid.toml").write_text(small)
    done = fewnode("experiment", tmp_path / "grid.toml", "--out", tmp_path / "out", "--json", "-q")
    assert (done.code, done.json["done"]) == (0, 6)
