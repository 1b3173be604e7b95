"""The paper's numbers, the grids and the ledger, as data."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from fewnode._system.sheets import csv_text
from fewnode.experiment.grid import read_grid, read_grids, read_reported
from fewnode.experiment.ledger import read_ledger
from fewnode.experiment.report import render
from fewnode.experiment.results import read_results, table

PAPER = Path(__file__).parents[1] / "paper"
REPORTED = PAPER.parent / "src" / "fewnode" / "paper" / "reported.toml"
RESEARCH = PAPER.with_name("research")
NETWORKS = ("amazon-clothing", "amazon-electronics", "dblp", "reddit")
METHODS = ("deepwalk", "node2vec", "gcn", "sgc", "pn", "maml", "meta-gnn", "gpn")
SETTINGS = ((5, 3), (5, 5), (10, 3), (10, 5))


def test_every_number_of_the_results_table_is_there_once() -> None:
    numbers = read_reported(REPORTED)
    of = {(n.dataset, (n.way, n.shot)): n for n in numbers}
    assert sorted(of) == sorted(product(NETWORKS, SETTINGS))
    assert {tuple(part) for n in numbers for part in (n.accuracy, n.f1)} == {METHODS}
    assert of["amazon-clothing", (5, 3)].accuracy["deepwalk"] == 36.7
    assert of["amazon-electronics", (10, 5)].f1["gcn"] == 48.3
    assert of["dblp", (5, 5)].f1["meta-gnn"] == 78.2
    assert of["reddit", (10, 5)].f1["gpn"] == 59.2


def test_the_papers_grid_has_1280_cells() -> None:
    grid = read_grid(PAPER / "grid.toml")
    assert sum(len(row.seeds) for row in grid.rows) == 4 * 4 * 8 * 10
    assert {row.tasks for row in grid.rows} == {50}
    assert {row.method for row in grid.rows} == set(METHODS)


GRIDS = [
    *(PAPER / name for name in ("grid.toml", "sweeps.toml", "case_study.toml")),
    *(RESEARCH / name for name in ("at_hand.toml", "since.toml")),
]


@pytest.mark.parametrize("path", GRIDS, ids=lambda path: path.name)
def test_every_grid_can_be_read(path: Path) -> None:
    assert read_grid(path).rows


HOME = RESEARCH / "results"


def test_the_results_that_are_here_give_the_tables_that_are_here() -> None:
    """Cells of the grids that were not run are missing in both; none is damaged, failed or of another grid."""
    records, damaged = read_ledger(HOME)
    assert damaged == 0
    assert {record.status for record in records.values()} <= {"done", "impossible"}
    results = read_results(HOME)
    assert {record.id for record in results.records} == set(records)
    grids = read_grids([RESEARCH / "since.toml", RESEARCH / "at_hand.toml"])
    assert [part.title for part in grids.parts] == [section.part.title for section in results.sections]
    assert csv_text(table(results)) == (HOME / "table.csv").read_text()
    assert render(results, "markdown") == (HOME / "table.md").read_text()
