"""The grid file: what it expands to, and what is said of a wrong one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from fewnode.errors import FewnodeError
from fewnode.experiment.grid import Cell, read_grid, read_grids, read_reported

Write = Callable[..., Path]

GOOD = """
title = "Mine"
[defaults]
datasets = ["b", "a"]
seeds = 2
[[compare]]
methods = ["gpn", "wide"]
way = [5, 10]
shot = 3
tasks = 7
[[sweep]]
methods = "gpn"
way = 5
shot = 5
query = [1, 5]
seeds = [4]
[methods.wide]
method = "gpn"
seeds = 3
options = { hidden = [64] }
"""


def test_lists_multiply_in_the_order_of_the_file(grid_file: Write) -> None:
    grid = read_grid(grid_file(GOOD))
    compared, swept = grid.parts
    assert [(r.label, r.cells[0].dataset, r.cells[0].way) for r in compared.rows] == [
        (label, dataset, way) for dataset in "ba" for label in ("gpn", "wide") for way in (5, 10)
    ]
    wide = compared.rows[2]
    assert (wide.cells[0].method, wide.cells[0].options, len(wide.cells)) == ("gpn", {"hidden": [64]}, 3)
    assert (wide.cells[0].query, wide.cells[0].tasks) == (3, 7)  # M is K unless the grid says otherwise
    assert (swept.along, [r.cells[0].query for r in swept.rows]) == ("query", [1, 5, 1, 5])
    assert swept.rows[0].cells[0].seed == 4
    assert (grid.title, len(grid.cells)) == ("Mine", 2 * (2 * 2 + 2 * 3) + 4)


def test_several_files_are_one_grid(grid_file: Write) -> None:
    both = read_grids([grid_file(GOOD), grid_file(GOOD.replace("Mine", "Other"), "other.toml")])
    assert (both.title, len(both.parts), len(both.folders)) == ("Mine", 4, 1)


@pytest.mark.parametrize(
    ("find", "put", "said"),
    [
        ("methods = [", "method = [", "[[compare]] 1: unknown key 'method' (did you mean 'methods'?)"),
        ("[[compare]]", "[[compares]]", "unknown key 'compares' (did you mean 'compare'?)"),
        ("[defaults]\n", "[defaults]\ndatsets = 'x'\n", "[defaults]: unknown key 'datsets' (did you mean 'datasets'?)"),
        ("options = {", "option = {", "[methods.wide]: unknown key 'option' (did you mean 'options'?)"),
        ("way = [5, 10]", "way = [5, 1]", "[[compare]] 1: way is [5, 1], expected a whole number from 2 or a list"),
        ("way = [5, 10]", "way = '5'", "[[compare]] 1: way is '5', expected a whole number"),
        ("way = [5, 10]", "way = []", "way is [], expected a list"),
        ("way = [5, 10]", "way = [5, 5]", "in which nothing is twice"),
        ("way = [5, 10]\n", "", "[[compare]] 1: way is missing"),
        ("tasks = 7", "tasks = true", "tasks is True, expected a whole number from 2"),
        ("tasks = 7", "seeds = 0", "seeds is 0, expected a whole number from 1"),
        ('datasets = ["b", "a"]\n', "", "[[compare]] 1: datasets is missing"),
        ("query = [1, 5]", "query = 1", "one of way, shot, query must be a list, the axis of the sweep; 0 are"),
        (
            "tasks = 7",
            "queries = 'long'",
            "queries is 'long' (did you mean 'long-tail'?), expected balanced",
        ),
        ("seeds = 3", "mode = 'x'", "[methods.wide]: mode is 'x', expected inductive or transductive"),
        ("hidden = [64]", "seed = 3", "[methods.wide]: options: 'seed' is not an option of a method"),
        ('title = "Mine"', "title = 3", "title is 3, expected text"),
        ("[[compare]]", "[[ablation]]", "[[ablation]] 1: way is a list, expected one number"),
        ('title = "Mine"', "title =", "not TOML"),
        ('title = "Mine"', 'reported = "none.toml"', "none.toml: no such file"),
        ("[defaults]", "[[defaults]]", "[defaults]: expected a table"),
        ("[[compare]]", "[compare]", "compare: expected tables that begin with [[compare]]"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(grid_file: Write, find: str, put: str, said: str) -> None:
    assert find in GOOD
    with pytest.raises(FewnodeError) as error:
        read_grid(grid_file(GOOD.replace(find, put, 1)))
    assert said in str(error.value)
    assert ".toml: " in str(error.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("way = 5", "[[result]] 1: shot is missing"),
        ("way = 5\nshot = 3\naccuracy = { GPN = '71' }", "accuracy of GPN is '71', expected a number"),
        ("way = 5\nshot = 3\nf1 = { GPN = true }", "f1 of GPN is True, expected a number"),
    ],
)
def test_published_numbers_are_numbers(grid_file: Write, text: str, said: str) -> None:
    grid_file(f'[[result]]\ndataset = "a"\n{text}', "paper.toml")
    with pytest.raises(FewnodeError) as error:
        read_grid(grid_file(GOOD.replace('title = "Mine"', 'reported = "paper.toml"')))
    assert said in str(error.value)


def test_a_grid_without_parts(grid_file: Write) -> None:
    with pytest.raises(FewnodeError, match="no part in it"):
        read_grid(grid_file('title = "x"'))
    with pytest.raises(FewnodeError, match="no such file"):
        read_grid(Path("missing.toml"))


def test_too_many_cells_are_counted_before_they_are_made(grid_file: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FewnodeError, match=r"\[\[compare\]\] 1: more than 1,000,000 cells"):
        read_grid(grid_file(GOOD.replace("seeds = 2", "seeds = 2147483647")))
    monkeypatch.setattr("fewnode.experiment.grid.MAX_CELLS", 20)  # each part has fewer, both together have more
    with pytest.raises(FewnodeError, match=r"grid.toml: more than 20 cells"):
        read_grid(grid_file(GOOD))


@pytest.mark.parametrize("text", ["a = " + "9" * 5000, "[" * 5000, "a = 1\x00", "# " + "x" * (1 << 18)])
def test_what_is_no_grid_is_refused_in_a_line(grid_file: Write, text: str) -> None:
    with pytest.raises(FewnodeError, match=r"grid\.toml: (not TOML|larger than)"):
        read_grid(grid_file(text))


def test_a_cell_is_named_by_what_is_not_usual_about_it() -> None:
    cell = Cell("debian", "gpn", 5, 3, query=3, seed=4, tasks=500)
    assert str(cell) == "debian gpn 5-way 3-shot seed 4"
    odd = replace(cell, query=10, options={"hidden": 64, "eps": 2}, mode="transductive", queries="long-tail")
    assert str(odd) == "debian gpn hidden=64 eps=2 5-way 3-shot 10-query transductive long-tail seed 4"
    assert str(replace(cell, kind="case")) == "debian gpn 5-way 3-shot case study"


def test_published_numbers(tmp_path: Path) -> None:
    path = tmp_path / "ours.toml"
    result = '[[result]]\ndataset = "d"\nway = 2\nshot = 1\naccuracy = { gpn = 70, pn = 60.5 }\nf1 = { gpn = 69.5 }\n'
    key = {"dataset": "d", "way": 2, "shot": 1}
    numbers = (
        {**key, "method": "gpn", "metric": "accuracy", "value": 70.0},
        {**key, "method": "pn", "metric": "accuracy", "value": 60.5},
        {**key, "method": "gpn", "metric": "f1", "value": 69.5},
    )
    path.write_text(result)
    assert read_reported(path) == tuple({"source": "ours", **each} for each in numbers)
    path.write_text(f'source = "Us, 2026"\n{result}')
    assert read_reported(path) == tuple({"source": "Us, 2026", **each} for each in numbers)


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("way = 2", "way = 1", "[[result]] 1: way is 1"),
        ("shot = 1", "shot = 0", "[[result]] 1: shot is 0"),
        ("shot = 1", "shots = 1", "[[result]] 1: unknown key 'shots'"),
        ("[[result]]", "[[results]]", "unknown key 'results'"),
        ("70", "true", "[[result]] 1: accuracy of gpn is True, expected a number"),
    ],
)
def test_published_numbers_that_are_wrong(tmp_path: Path, before: str, after: str, message: str) -> None:
    path = tmp_path / "ours.toml"
    path.write_text('[[result]]\ndataset = "d"\nway = 2\nshot = 1\naccuracy = { gpn = 70 }\n'.replace(before, after))
    with pytest.raises(FewnodeError) as refused:
        read_reported(path)
    assert str(refused.value).startswith(f"{path}: ")
    assert message in str(refused.value)
