"""The grid file: what it expands to, and what is said of a wrong one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from fewnode.errors import FewnodeError
from fewnode.experiment.grid import MAX_BYTES, Cell, Grid, GridPart, GridRow, read_grid, read_grids, read_reported

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


def test_several_files_are_one_grid(grid_file: Write, tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    for name in ("paper", "below/thesis"):
        text = f'source = "{name}"\n[[result]]\ndataset = "d"\nway = 2\nshot = 1\nf1 = {{ gpn = 70 }}'
        grid_file(text, f"{name}.toml")
    paths = [
        grid_file(f'reported = "paper.toml"\n{GOOD}'),
        grid_file(GOOD.replace("Mine", "Other").replace("tasks = 7", "tasks = 8"), "other.toml"),
        grid_file(f'reported = "thesis.toml"\n{GOOD}'.replace("tasks = 7", "tasks = 9"), "below/third.toml"),
    ]
    whole = read_grids(paths)
    assert (whole.title, whole.folders) == ("Mine", (tmp_path, tmp_path / "below"))
    assert whole.parts == tuple(part for path in paths for part in read_grid(path).parts)
    assert [part.rows[0].cells[0].tasks for part in whole.parts] == [7, 50, 8, 50, 9, 50]
    assert [number["source"] for number in whole.reported] == ["paper", "below/thesis"]


KNOWN = "title, datasets, methods, way, shot, query, seeds, tasks, pool_seed, queries, protocol"


@pytest.mark.parametrize(
    ("find", "put", "said"),
    [
        (
            "methods = [",
            "method = [",
            f"[[compare]] 1: unknown key 'method' (did you mean 'methods'?); known are {KNOWN}",
        ),
        (
            "[[compare]]",
            "[[compares]]",
            "unknown key 'compares' (did you mean 'compare'?); known are title, reported, defaults, methods, "
            "compare, sweep, ablation, case",
        ),
        (
            "[defaults]\n",
            "[defaults]\ndatsets = 'x'\n",
            f"[defaults]: unknown key 'datsets' (did you mean 'datasets'?); known are {KNOWN.removeprefix('title, ')}",
        ),
        (
            "options = {",
            "option = {",
            "[methods.wide]: unknown key 'option' (did you mean 'options'?); known are method, options, seeds, mode",
        ),
        (
            "way = [5, 10]",
            "way = [5, 1]",
            "[[compare]] 1: way is [5, 1], expected a whole number from 2 or a list of such",
        ),
        ("way = [5, 10]", "way = '5'", "[[compare]] 1: way is '5', expected a whole number from 2 or a list of such"),
        (
            "way = [5, 10]",
            "way = []",
            "[[compare]] 1: way is [], expected a list in which nothing is twice, and not empty",
        ),
        (
            "way = [5, 10]",
            "way = [5, 5]",
            "[[compare]] 1: way is [5, 5], expected a list in which nothing is twice, and not empty",
        ),
        ("way = [5, 10]\n", "", "[[compare]] 1: way is missing"),
        ("shot = 3\n", "", "[[compare]] 1: shot is missing"),
        ("shot = 3", "shot = 0", "[[compare]] 1: shot is 0, expected a whole number from 1 or a list of such"),
        (
            "query = [1, 5]",
            "query = [0]",
            "[[sweep]] 1: query is [0], expected a whole number from 1 or a list of such",
        ),
        ("tasks = 7", "tasks = true", "[[compare]] 1: tasks is True, expected a whole number from 2"),
        ("tasks = 7", "tasks = 1", "[[compare]] 1: tasks is 1, expected a whole number from 2"),
        ("tasks = 7", "tasks = 2147483648", "[[compare]] 1: tasks is 2147483648, expected a whole number from 2"),
        ("tasks = 7", "pool_seed = -1", "[[compare]] 1: pool_seed is -1, expected a whole number from 0"),
        ("tasks = 7", "seeds = 0", "[[compare]] 1: seeds is 0, expected a whole number from 1"),
        ("tasks = 7", "seeds = [-1]", "[[compare]] 1: seeds is [-1], expected a whole number from 0 or a list of such"),
        ('datasets = ["b", "a"]\n', "", "[[compare]] 1: datasets is missing"),
        ('["b", "a"]', '["b", ""]', "[[compare]] 1: datasets is ['b', ''], expected a name or a list of such"),
        ('["b", "a"]', "3", "[[compare]] 1: datasets is 3, expected a name or a list of such"),
        (
            "query = [1, 5]",
            "query = 1",
            "[[sweep]] 1: one of way, shot, query must be a list, the axis of the sweep; 0 are",
        ),
        (
            "way = 5\n",
            "way = [5, 6]\n",
            "[[sweep]] 1: one of way, shot, query must be a list, the axis of the sweep; 2 are",
        ),
        (
            "tasks = 7",
            "queries = 'long'",
            "[[compare]] 1: queries is 'long' (did you mean 'long-tail'?), expected balanced or long-tail",
        ),
        ("tasks = 7", "title = 3", "[[compare]] 1: title is 3, expected text"),
        ("seeds = 3", "mode = 'x'", "[methods.wide]: mode is 'x', expected inductive or transductive"),
        ("seeds = 3", "seeds = 'x'", "[methods.wide]: seeds is 'x', expected a whole number from 1"),
        ("options = { hidden = [64] }", "options = 3", "[methods.wide] options: expected a table"),
        ('[methods.wide]\nmethod = "gpn"', "[methods]\nwide = 3", "[methods.wide]: expected a table"),
        ('title = "Mine"', "title = 3", "title is 3, expected text"),
        ('title = "Mine"', "reported = 3", "reported is 3, expected text"),
        ("[[compare]]", "[[ablation]]", "[[ablation]] 1: way is a list, expected one number"),
        ("[[sweep]]", "[[case]]", "[[case]] 1: query is a list, expected one number"),
        (
            "[[sweep]]",
            "[[compare]]\ntitel = 1",
            f"[[compare]] 2: unknown key 'titel' (did you mean 'title'?); known are {KNOWN}",
        ),
        ('title = "Mine"', "title =", "not TOML: Invalid value (at line 2, column 8)"),
        ("[defaults]", "[[defaults]]", "[defaults]: expected a table"),
        ("[[compare]]", "[compare]", "compare: expected tables that begin with [[compare]]"),
        ('title = "Mine"', "case = [3]", "case: expected tables that begin with [[case]]"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(grid_file: Write, find: str, put: str, said: str) -> None:
    assert find in GOOD
    path = grid_file(GOOD.replace(find, put, 1))
    with pytest.raises(FewnodeError) as error:
        read_grid(path)
    assert str(error.value) == f"{path}: {said}"


@pytest.mark.parametrize("name", ["method", "seed", "way", "shot", "query"])
def test_an_option_is_not_what_the_grid_says_itself(grid_file: Write, name: str) -> None:
    path = grid_file(GOOD.replace("hidden = [64]", f"hidden = 8, {name} = 3"))
    with pytest.raises(FewnodeError) as error:
        read_grid(path)
    said = f"options: {name!r} is not an option of a method; the parts of the grid say it"
    assert str(error.value) == f"{path}: [methods.wide]: {said}"


def test_what_a_part_leaves_out_has_its_usual_value(grid_file: Write) -> None:
    path = grid_file("[[compare]]\ndatasets = 'd'\nmethods = 'gpn'\nway = 2\nshot = 1")
    cell = Cell("d", "gpn", 2, 1, query=1, seed=0, tasks=50, pool_seed=0, options={}, mode="inductive")
    part = GridPart("compare", "compare", (GridRow("gpn", (replace(cell, queries="balanced", kind="score"),)),), None)
    assert read_grid(path) == Grid("grid", (part,), (), (path.parent,))


def test_all_that_a_part_and_a_method_say_is_in_the_cell(grid_file: Write) -> None:
    """The part's own seeds count more than the method's, which count more than the defaults'; a case is of one."""
    path = grid_file("""
        [defaults]
        pool_seed = 8
        seeds = 2
        [[case]]
        title = "Closer"
        datasets = "d"
        methods = ["wide", "plain"]
        way = 4
        shot = 2
        query = 2147483647
        seeds = [7, 3]
        tasks = 2
        pool_seed = 9
        queries = "long-tail"
        [[ablation]]
        datasets = "d"
        methods = ["wide", "narrow"]
        way = 4
        shot = 2
        [methods.narrow]
        options = { hidden = 8 }
        [methods.wide]
        method = "gpn"
        mode = "transductive"
        options = { hidden = 64 }
        seeds = [5, 0]
        """)
    wide = Cell("d", "gpn", 4, 2, 2, 5, tasks=50, pool_seed=8, options={"hidden": 64}, mode="transductive")
    case = replace(wide, query=2147483647, seed=7, tasks=2, pool_seed=9, queries="long-tail", kind="case")
    plain = replace(case, method="plain", options={}, mode="inductive")
    narrow = replace(wide, method="narrow", options={"hidden": 8}, mode="inductive")
    assert read_grid(path).parts == (
        GridPart(
            "ablation",
            "ablation",
            (
                GridRow("wide", (wide, replace(wide, seed=0))),
                GridRow("narrow", (replace(narrow, seed=0), replace(narrow, seed=1))),
            ),
        ),
        GridPart("case", "Closer", (GridRow("wide", (case,)), GridRow("plain", (plain,)))),
    )


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
    path = grid_file('title = "x"')
    with pytest.raises(FewnodeError) as empty:
        read_grid(path)
    expected = "[[compare]], [[sweep]], [[ablation]], [[case]]"
    assert str(empty.value) == f"{path}: no part in it, expected at least one of {expected}"


def test_a_file_that_is_not_there_is_named(grid_file: Write) -> None:
    path = grid_file(f'reported = "none.toml"\n{GOOD}')
    for asked, missing in ((Path("missing.toml"), Path("missing.toml")), (path, path.with_name("none.toml"))):
        with pytest.raises(FewnodeError) as error:
            read_grid(asked)
        assert str(error.value) == f"{missing}: no such file"


def test_too_many_cells_are_counted_before_they_are_made(grid_file: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    """A part has 20 and the grid 24: exactly so many are still welcome."""
    path = grid_file(GOOD.replace("seeds = 2", "seeds = 2147483647"))
    with pytest.raises(FewnodeError) as error:
        read_grid(path)
    assert str(error.value) == f"{path}: [[compare]] 1: more than 1,000,000 cells"
    path.write_text(GOOD)
    for most, place in ((24, None), (23, ""), (20, ""), (19, "[[compare]] 1: ")):
        monkeypatch.setattr("fewnode.experiment.grid.MAX_CELLS", most)
        if place is None:
            assert len(read_grid(path).cells) == 24
            continue
        with pytest.raises(FewnodeError) as error:
            read_grid(path)
        assert str(error.value) == f"{path}: {place}more than {most} cells"


def test_a_grid_is_not_long(grid_file: Write) -> None:
    path = grid_file(GOOD + "#" * (MAX_BYTES - len(GOOD)))
    assert read_grid(path).title == "Mine"
    path.write_text(path.read_text() + "#")
    with pytest.raises(FewnodeError) as error:
        read_grid(path)
    assert str(error.value) == f"{path}: larger than 256 kB"


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
        ("way = 2", "way = 1", "[[result]] 1: way is 1, expected a whole number from 2"),
        ("shot = 1", "shot = 0", "[[result]] 1: shot is 0, expected a whole number from 1"),
        (
            "shot = 1",
            "shots = 1",
            "[[result]] 1: unknown key 'shots' (did you mean 'shot'?); known are dataset, way, shot, accuracy, f1",
        ),
        ("[[result]]", "[[results]]", "unknown key 'results' (did you mean 'result'?); known are source, result"),
        ("[[result]]", "source = 3\n[[result]]", "source is 3, expected text"),
        ('dataset = "d"\n', "", "[[result]] 1: dataset is missing"),
        ("shot = 1\n", "", "[[result]] 1: shot is missing"),
        ("{ gpn = 70 }", "70", "[[result]] 1 accuracy: expected a table"),
        ("70", "true", "[[result]] 1: accuracy of gpn is True, expected a number"),
        ("70 }\n", "70 }\n[[result]]\nway = 3", "[[result]] 2: dataset is missing"),
        ("70 }\n", "70 }\nf1 = { pn = '70' }\n", "[[result]] 1: f1 of pn is '70', expected a number"),
    ],
)
def test_published_numbers_that_are_wrong(tmp_path: Path, before: str, after: str, message: str) -> None:
    path = tmp_path / "ours.toml"
    path.write_text('[[result]]\ndataset = "d"\nway = 2\nshot = 1\naccuracy = { gpn = 70 }\n'.replace(before, after))
    with pytest.raises(FewnodeError) as refused:
        read_reported(path)
    assert str(refused.value) == f"{path}: {message}"


ALL_CLASSES = """
[defaults]
datasets = "a"
way = 5
queries = "long-tail"
[[compare]]
methods = ["gpn", "logistic"]
protocol = "all-classes"
shot = [1, 5]
[[sweep]]
methods = "gpn"
shot = [1, 3]
"""


def test_the_protocol_all_classes_has_shots_alone(grid_file: Write) -> None:
    """Ways and queries of the defaults are those of the other parts."""
    compare, sweep = read_grid(grid_file(ALL_CLASSES)).parts
    cell = compare.rows[0].cells[0]
    assert [str(row.cells[0]) for row in compare.rows[:2]] == [
        "a gpn all classes 1-shot seed 0",
        "a gpn all classes 5-shot seed 0",
    ]
    assert (cell.protocol, cell.tasks, cell.query, cell.queries) == ("all-classes", 30, 0, "balanced")
    assert str(sweep.rows[0].cells[0]) == "a gpn 5-way 1-shot long-tail seed 0"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('protocol = "all-classes"', 'protocol = "all"', "protocol is 'all' .*, expected episodes or all-classes"),
        ("shot = [1, 5]", "shot = 1\nway = 3", "way: by the protocol all-classes every class"),
        ("shot = [1, 5]", "shot = 1\nquery = 3", "query: by the protocol all-classes every class"),
        ("shot = [1, 5]", "", "shot is missing"),
        ("[[compare]]", "[[sweep]]\nseeds = 1\ntitle = 'no list'", None),
        ("[[compare]]", "[[case]]", "a case study is of one task of test classes; leave out protocol"),
    ],
)
def test_what_a_part_of_all_classes_cannot_say(grid_file: Write, old: str, new: str, message: str | None) -> None:
    path = grid_file(ALL_CLASSES.replace(old, new, 1))
    if message is None:
        assert read_grid(path).parts[0].along == "shot"
        return
    with pytest.raises(FewnodeError, match=message):
        read_grid(path)
