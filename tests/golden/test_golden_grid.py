"""A small grid: killed and gone on with, on Ray the same, as tables and as a page.

`PYTHONPATH=tests python tests/golden/test_golden_grid.py` writes the committed answers anew.
"""

from __future__ import annotations

import csv
import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from doors import commit, committed, done
from golden_networks import opposites

from sizes import until

GRID = """
[defaults]
datasets = "network.npz"
tasks = 10
seeds = 2
[[compare]]
title = "Results"
methods = ["gpn", "propagation", "gpn-plus"]
way = [5, 6]
shot = 3
[[sweep]]
title = "Shots"
methods = "propagation"
way = 5
shot = [1, 3]
[methods.gpn]
options = { episodes = 20 }
"""
EXPERIMENT = (sys.executable, "-m", "fewnode", "experiment", "grid.toml", "-q")


def network(folder: Path) -> None:
    data = opposites()
    classes = {f"{part}_classes": data.split.part(part) for part in ("train", "valid", "test")}
    np.savez(folder / "network.npz", edge_index=data.graph.edge_index(), x=data.graph.x, y=data.y, **classes)
    (folder / "grid.toml").write_text(GRID)


def killed(folder: Path, out: str) -> None:
    """Started in a process of its own, and killed with some cells done and some not."""
    ledger = folder / out / "cells.jsonl"
    with subprocess.Popen([*EXPERIMENT, "--out", out], cwd=folder) as process:
        try:
            until(lambda: ledger.exists() and ledger.read_bytes().count(b'"done"') >= 2)
        finally:
            process.kill()


def rows(folder: Path) -> dict[str, Any]:
    """Scores and their intervals, or why there are none, by what a row of the table is about."""
    found = {}
    with (folder / "table.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            name = " ".join(row[column] for column in ("part", "method", "way", "shot", "seeds", "tasks"))
            scores = [round(float(row[column]), 4) for column in ("accuracy", "macro_f1") if row[column]]
            found[name] = [row["status"], *scores]
    return found


def best(markdown: str) -> list[str]:
    """Which method is in front in each table."""
    return re.findall(r"^\| (.+?) \|.*\*\*", markdown, re.MULTILINE)


def day(folder: Path) -> dict[str, Any]:
    network(folder)
    killed(folder, "out")
    resumed = done("experiment", "grid.toml", "--out", "out", "--json", "-q", folder=folder).json
    assert resumed["kept"] >= 2
    assert (resumed["done"], resumed["impossible"], resumed["failed"]) == (8, 6, 0)
    again = done("experiment", "grid.toml", "--out", "out", "--json", "-q", folder=folder).json
    assert again["kept"] == again["done"]
    done("report", "out", "--out", "page.html", folder=folder)
    page = (folder / "page.html").read_text()
    assert re.findall(r"(?:src|href)=[\"']?(?!#|data:)[^\"'\s>]+", page) == [], "a page that needs no other file"
    assert "6-way tasks need 6 test classes" in page
    markdown = done("report", "out", "--format", "markdown", "--out", "-", folder=folder).out
    assert done("report", "out", "--format", "latex", "--out", "-", folder=folder).out.count("\\begin{tabular}") >= 2
    return {"rows": rows(folder / "out"), "best": best(markdown)}


def test_a_grid_is_what_it_was_also_after_a_kill_and_on_ray(tmp_path: Path) -> None:
    today, before = day(tmp_path), committed("grid")
    assert today["best"] == before["best"]
    assert today["rows"].keys() == before["rows"].keys()
    for name, (status, *scores) in today["rows"].items():
        assert status == before["rows"][name][0]
        assert scores == pytest.approx(before["rows"][name][1:], abs=0.02), name
    pytest.importorskip("ray")
    command = [*EXPERIMENT, "--out", "ray", "--backend", "ray", "--workers", "2", "--address", "local"]  # a new cluster
    subprocess.run(command, cwd=tmp_path, check=True)
    assert (tmp_path / "ray" / "table.csv").read_bytes() == (tmp_path / "out" / "table.csv").read_bytes()


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        commit("grid", day(Path(folder)))
