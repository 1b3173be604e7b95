"""A grid from start to end: each cell once, the same table however it was run."""

from __future__ import annotations

import resource
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from fewnode.dataset import Dataset
from fewnode.errors import FewnodeError
from fewnode.evaluation import evaluate
from fewnode.experiment import run
from fewnode.experiment.grid import read_grid
from fewnode.experiment.ledger import FILE, read_ledger
from fewnode.experiment.report import render
from fewnode.experiment.results import TABLE, read_results
from fewnode.experiment.run import GridProgress, experiment
from fewnode.formats.published import EXPECTED
from fewnode.model.estimator import Estimator
from planted_grid import fill
from sizes import begun, command, kill_once

Write = Callable[..., Path]

GRID = """
[defaults]
datasets = "planted"
tasks = 6
seeds = 2
[[compare]]
methods = ["gpn", "methods.py:Other", "methods.py:Nearest"]
way = [3, 5]
shot = 3
[methods.gpn]
options = { episodes = 10 }
"""
QUICK = GRID.partition("[methods.gpn]")[0].replace('"gpn"', '"methods.py:Third"')
"""The same where any methods will do."""


def run_grid(path: Path, out: Path, **more: object) -> GridProgress:
    return experiment(read_grid(path), out, **more)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Finished:
    """A grid that was run once, and its results."""

    grid: Path
    out: Path
    progress: GridProgress

    def copied(self, to: Path) -> Path:
        return Path(shutil.copytree(self.out, to))


@pytest.fixture(name="finished", scope="module")
def _finished(planted: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Finished:
    folder = tmp_path_factory.mktemp("finished")
    fill(folder, planted)
    (folder / "grid.toml").write_text(GRID)
    return Finished(folder / "grid.toml", folder / "out", run_grid(folder / "grid.toml", folder / "out"))


def test_a_cell_is_what_evaluate_says(finished: Finished, planted: Dataset) -> None:
    done = finished.progress
    assert (done.total, done.done, done.failed, done.impossible) == (12, 12, 0, 0)
    entry = next(e for e in read_results(finished.out).sections[0].entries if (e.label, e.row.way) == ("gpn", 3))
    model = Estimator("gpn", 3, 3, seed=1, episodes=10).fit(planted)
    expected = evaluate(model, planted, 3, 3, tasks=6).per_task["accuracy"][0]
    assert np.allclose(entry.scores["accuracy"][1], expected, atol=1e-4)
    record = entry.done[1]
    assert record.cell["data_sha256"] == planted.sha256
    assert record.cell["options"]["hidden"] == [32, 16]  # all of them: defaults may change
    assert record.provenance["versions"]["fewnode"]
    assert record.provenance["memory_mb"] > 10
    assert set(record.seconds) == {"fit", "evaluate"}


def test_a_finished_cell_is_never_run_twice(
    finished: Finished, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, out = finished.grid, finished.copied(tmp_path / "out")
    lines, table = (out / FILE).read_bytes(), (out / TABLE).read_bytes()
    monkeypatch.setattr(run, "work", lambda group: pytest.fail("run again"))
    again = run_grid(path, out)
    assert (again.kept, (out / FILE).read_bytes(), (out / TABLE).read_bytes()) == (12, lines, table)
    monkeypatch.undo()
    more = run_grid(beside(finished.grid, GRID.replace("seeds = 2", "seeds = 3")), out)
    assert (more.kept, more.done) == (12, 18)


def beside(grid: Path, text: str) -> Path:
    path = grid.with_name("another.toml")
    path.write_text(text)
    return path


def test_what_fails_or_cannot_be_is_recorded_and_stops_nobody(grid_file: Write, tmp_path: Path) -> None:
    text = QUICK.replace("methods.py:Nearest", "methods.py:Broken").replace("[3, 5]", "[3, 6]")
    path, out = grid_file(text), tmp_path / "out"
    found = run_grid(path, out)
    assert (found.done, found.failed, found.impossible) == (4, 2, 6)
    reasons = {record.status: record.reason for record in read_ledger(out)[0].values()}
    assert reasons["failed"] == "RuntimeError: no luck"
    assert reasons["impossible"] == "6-way tasks need 6 test classes, there are 5: choose a smaller way"
    assert b'impossible,"6-way tasks' in (out / TABLE).read_bytes()
    assert run_grid(path, out).failed == 2
    size = (out / FILE).stat().st_size
    run_grid(path, out)
    assert (out / FILE).stat().st_size == size
    fixed = (path.parent / "methods.py").read_text().replace('raise RuntimeError("no luck")', "return self")
    (path.parent / "methods.py").write_text(fixed)  # another file is another cell
    assert run_grid(path, out).failed == 0


def test_the_same_table_for_two_workers_and_after_a_kill(grid_file: Write, tmp_path: Path) -> None:
    slow = GRID.replace("way = [3, 5]", "way = 3") + '[methods."methods.py:Nearest"]\noptions = { wait = 0.3 }\n'
    path, once, killed = grid_file(slow), tmp_path / "once", tmp_path / "killed"
    run_grid(path, once)
    process = begun(command(tmp_path / "said", "experiment", path, "--out", killed, "-q"))
    kill_once(lambda: len(read_ledger(killed)[0]) >= 2, process)
    kept = len(read_ledger(killed)[0])
    assert 2 <= kept < 6
    assert run_grid(path, killed, workers=2).kept == kept
    assert (killed / TABLE).read_bytes() == (once / TABLE).read_bytes()


def test_a_full_disk_keeps_the_earlier_cells(finished: Finished, tmp_path: Path) -> None:
    path, out = finished.grid, finished.copied(tmp_path / "out")
    lines = (out / FILE).read_bytes().splitlines(keepends=True)
    (out / FILE).write_bytes(b"".join(lines[:10]))
    limit = (out / FILE).stat().st_size + 100  # no more room than for half a line
    room = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, room[1]))
    try:
        with pytest.raises(OSError, match="too large"):
            run_grid(path, out)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, room)
    assert (out / FILE).read_bytes() == b"".join(lines[:10])


@pytest.mark.parametrize(
    ("find", "put", "said"),
    [
        ('"planted"', '"plantd"', "plantd: no such dataset in"),
        ('"planted"', '"dblp"', "fewnode data build dblp makes it"),
        ('"gpn", ', '"gnp", ', r"unknown method 'gnp' \(did you mean 'gpn'\?\)"),
        ("episodes = 10", "episods = 10", r"no option 'episods' \(did you mean 'episodes'\?\)"),
        ("methods.py:Nearest", "methods.py:Nearst", r"no class 'Nearst' in it \(did you mean 'Nearest'\?\)"),
        ("methods.py:Nearest", "method.py:Nearest", "no such file"),
    ],
)
def test_a_grid_that_names_what_is_not_there(grid_file: Write, tmp_path: Path, find: str, put: str, said: str) -> None:
    with pytest.raises(FewnodeError, match=said):
        run_grid(grid_file(GRID.replace(find, put)), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_process_that_dies_costs_its_own_cells_alone(grid_file: Write, tmp_path: Path) -> None:
    path = grid_file(QUICK.replace("methods.py:Nearest", "methods.py:Dies").replace("way = [3, 5]", "way = 3"))
    found = run_grid(path, tmp_path / "out", workers=2)
    assert (found.done, found.failed) == (4, 2)
    assert "its process died" in (tmp_path / "out" / TABLE).read_text()


ALL_CLASSES = """
[defaults]
datasets = "planted"
tasks = 4
[[compare]]
title = "A graph and a handful of labels"
protocol = "all-classes"
methods = ["logistic", "far", "pn"]
shot = [1, 3, 24]
[[compare]]
methods = ["logistic"]
way = 3
shot = 3
[methods.far]
method = "nearest-mean"
mode = "transductive"
options = { steps = 4 }
"""


def test_all_classes_in_a_grid_are_those_of_evaluate(grid_file: Write, tmp_path: Path, planted: Dataset) -> None:
    path, out = grid_file(ALL_CLASSES), tmp_path / "out"
    progress = run_grid(path, out)
    assert (progress.done, progress.failed, progress.impossible) == (5, 2, 3)
    records = read_ledger(out)[0].values()
    named = {record.name: record for record in records}
    assert "no base classes" in str(named["planted pn all classes 1-shot seed 0"].reason)
    assert "0 of 15 classes have more than 24" in str(named["planted logistic all classes 24-shot seed 0"].reason)
    far = named["planted nearest-mean all classes 3-shot seed 0"]
    found = evaluate("nearest-mean", planted, shot=3, tasks=4, classes="all", transductive=True, options={"steps": 4})
    assert far.per_task["accuracy"] == found.per_task["accuracy"][0].round(4).tolist()
    assert far.cell["way"] == 15
    assert sum(record.provenance.get("shared_training", False) for record in records) == 2, "one fit for all shots"
    assert run_grid(path, out).kept == 7
    first, second = read_results(out).sections
    assert first.settings == ["all classes 1-shot", "all classes 3-shot", "all classes 24-shot"]
    assert second.settings == ["3-way 3-shot"]


# --- the paper's own numbers --------------------------------------------------------------------------------------


def test_a_network_of_the_paper_finds_its_numbers_whatever_it_is_called(
    grid_file: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, planted: Dataset
) -> None:
    degrees = sha256(np.sort(planted.graph.degree).astype("<i8").tobytes()).hexdigest()
    sizes = {"nodes": planted.graph.n, "edges": planted.graph.n_edges, "attributes": planted.graph.n_features}
    same = EXPECTED["dblp"].model_copy(update={**sizes, "degrees_sha256": degrees})
    text = QUICK.replace("way = [3, 5]", "way = 5").replace("shot = 3", "shot = 3\ntitle = 'x'")
    text = text.replace('["methods.py:Third", "methods.py:Other", "methods.py:Nearest"]', '["Known as gpn", "gpn"]')
    text += '[methods.gpn]\nmethod = "methods.py:Nearest"\n[methods."Known as gpn"]\nmethod = "methods.py:Other"\n'
    for name, expected, beside in (("same", same, 1), ("other", same.model_copy(update={"degrees_sha256": "0"}), 0)):
        monkeypatch.setitem(EXPECTED, "dblp", expected)
        out = tmp_path / name
        run_grid(grid_file(text), out)
        assert render(read_results(out), "markdown").count("reported 74.5") == beside
        assert {number.dataset for number in read_results(out).reported} == ({"planted"} if beside else set())
