"""The grid file: what it expands to, and what is said of a wrong one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fewnode.errors import FewnodeError
from fewnode.experiment.grid import GridRow, read_grid, read_reported

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


@pytest.mark.parametrize(
    ("find", "put", "said"),
    [
        (
            "methods = [",
            "method = [",
            "[[compare]] 1: unknown key 'method' (did you mean 'methods'?); known are title",
        ),
        ("[[compare]]", "[[compares]]", "unknown key 'compares' (did you mean 'compare'?); known are title, reported"),
        ("[defaults]\n", "[defaults]\ndatsets = 'x'\n", "[defaults]: unknown key 'datsets' (did you mean 'datasets'?)"),
        (
            "options = {",
            "option = {",
            "[methods.wide]: unknown key 'option' (did you mean 'options'?); known",
        ),
        ("way = [5, 10]", "way = [5, 1]", "[[compare]] 1: way.1 is 1: Input should be greater than or equal to 2"),
        (
            "way = [5, 10]",
            "way = []",
            "[[compare]] 1: way is []: expected a list in which nothing is twice, and",
        ),
        ("way = [5, 10]", "way = [5, 5]", "[[compare]] 1: way is [5, 5]: expected a list in which nothing is twice"),
        ("way = [5, 10]\n", "", "[[compare]] 1: way is missing"),
        ("shot = 3", "shot = 0", "[[compare]] 1: shot.0 is 0: Input should be greater"),
        ("tasks = 7", "tasks = true", "[[compare]] 1: tasks is True: Input should be a valid integer"),
        ("tasks = 7", "tasks = 1", "[[compare]] 1: tasks is 1: Input should be greater"),
        ("tasks = 7", "tasks = 2147483648", "[[compare]] 1: tasks is 2147483648: Input should be less"),
        ("tasks = 7", "pool_seed = -1", "[[compare]] 1: pool_seed is -1: Input should be greater"),
        ("tasks = 7", "seeds = 0", "[[compare]] 1: seeds is 0: expected 1 to 100,000 seeds"),
        ('datasets = ["b", "a"]\n', "", "[[compare]] 1: datasets is missing"),
        ('["b", "a"]', '["b", ""]', "[defaults]: datasets.1 is '': String should have at least 1 character"),
        (
            "query = [1, 5]",
            "query = 1",
            "[[sweep]] 1: one of way, shot, query must be a list, the axis of the s",
        ),
        (
            "way = 5\n",
            "way = [5, 6]\n",
            "[[sweep]] 1: one of way, shot, query must be a list, the axis of the s",
        ),
        ("seeds = 3", "mode = 'x'", "[methods.wide]: mode is 'x': Input should be 'inductive' or 'transductive'"),
        (
            "options = { hidden = [64] }",
            "options = 3",
            "[methods.wide]: options is 3: Input should be a valid dict",
        ),
        ('[methods.wide]\nmethod = "gpn"', "[methods]\nwide = 3", "[methods.wide]: expected a table"),
        ("[[compare]]", "[[ablation]]", "[[ablation]] 1: way is a list, expected one number"),
        ("[[sweep]]", "[[case]]", "[[case]] 1: query is a list, expected one number"),
        ("[[sweep]]", "[[compare]]\ntitel = 1", "[[compare]] 2: unknown key 'titel' (did you mean 'title'?)"),
        ('title = "Mine"', "title =", "not TOML: Invalid value (at line 2, column 8)"),
        ("[[compare]]", "[compare]", "compare: Input should be a valid list"),
        ("hidden = [64]", "way = 3", "[methods.wide]: options: 'way' is not an option of a method; the parts"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(grid_file: Write, find: str, put: str, said: str) -> None:
    assert find in GOOD
    path = grid_file(GOOD.replace(find, put, 1))
    with pytest.raises(FewnodeError) as error:
        read_grid(path)
    assert str(error.value).startswith(f"{path}: {said}")
    assert "\n" not in str(error.value)


def row(*values: Any, **more: Any) -> GridRow:
    names = ("label", "method", "way", "shot", "query", "seeds")
    return GridRow(dataset="d", **dict(zip(names, values, strict=True)), **more)


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
    shared: dict[str, Any] = {"tasks": 2, "pool_seed": 9, "queries": "long-tail", "kind": "case"}
    wide: dict[str, Any] = {"options": {"hidden": 64}, "mode": "transductive"}
    narrow: dict[str, Any] = {"options": {"hidden": 8}, "tasks": 50, "pool_seed": 8}
    ablation, case = read_grid(path).parts
    assert ablation.rows == [
        row("wide", "gpn", 4, 2, 2, [5, 0], tasks=50, pool_seed=8, **wide),
        row("narrow", "narrow", 4, 2, 2, [0, 1], **narrow),
    ]
    assert case.rows == [
        row("wide", "gpn", 4, 2, 2147483647, [7], **shared, **wide),
        row("plain", "plain", 4, 2, 2147483647, [7], **shared),
    ]


def test_too_many_cells_are_counted_before_they_are_made(grid_file: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    """The parts have 20 and 4: exactly so many are still welcome."""
    path = grid_file(GOOD.replace("seeds = 2", "seeds = 100000"))
    with pytest.raises(FewnodeError, match=r"\[\[compare\]\] 1: more than 100,000 cells$"):
        read_grid(path)
    path.write_text(GOOD)
    for most, place in ((24, None), (23, "sweep"), (20, "sweep"), (19, "compare")):
        monkeypatch.setattr("fewnode.experiment.grid.MAX_CELLS", most)
        if place is None:
            assert sum(len(row.seeds) for row in read_grid(path).rows) == 24
            continue
        with pytest.raises(FewnodeError, match=rf"\[\[{place}\]\] 1: more than {most} cells$"):
            read_grid(path)


@pytest.mark.parametrize("text", ["a = " + "9" * 5000, "[" * 5000, "a = 1\x00", "# " + "x" * (1 << 18)])
def test_what_is_no_grid_is_refused_in_a_line(grid_file: Write, text: str) -> None:
    with pytest.raises(FewnodeError, match=r"grid\.toml: (not TOML|larger than)"):
        read_grid(grid_file(text))


RESULT = '[[result]]\ndataset = "d"\nway = 2\nshot = 1\naccuracy = { gpn = 70, pn = 60.5 }\nf1 = { gpn = 69.5 }\n'


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("way = 2", "way = 1", "[[result]] 1: way is 1: Input should be greater"),
        ("accuracy", "acuracy", "[[result]] 1: unknown key 'acuracy' (did you mean 'accuracy'?); known are source"),
        ("[[result]]", "[[results]]", "unknown key 'results' (did you mean 'result'?); known are source, result"),
        ('dataset = "d"\n', "", "[[result]] 1: dataset: Field required"),
        ("60.5", "true", "[[result]] 1: accuracy.pn is True: Input should be a valid number"),
    ],
)
def test_published_numbers_that_are_wrong(tmp_path: Path, before: str, after: str, message: str) -> None:
    path = tmp_path / "ours.toml"
    path.write_text(RESULT.replace(before, after))
    with pytest.raises(FewnodeError) as refused:
        read_reported(path)
    assert str(refused.value).startswith(f"{path}: {message}")


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


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            'protocol = "all-classes"',
            'protocol = "all"',
            "protocol is 'all': Input should be 'episodes' or 'all-classes'",
        ),
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
