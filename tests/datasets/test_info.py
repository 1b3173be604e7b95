"""The facts about a dataset, by hand, and that they fit a terminal."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fewnode.dataset import ClassSplit, Dataset
from fewnode.graph import Graph
from fewnode.tables.extend import extend
from fewnode.tables.read import read_tables
from fewnode.tables.report import count_by_size, name_some, report, statistics


def small() -> Dataset:
    """A star of 13 nodes and a lone one. Class a: the middle and 3 leaves, b: 6 leaves, c: 2 leaves; two unknown."""
    graph = Graph.from_edges([[0] * 12, range(1, 13)], 14, np.ones((14, 2), np.float32))
    y = np.array([0, 0, 0, 0, *[1] * 6, 2, 2, -1, -1])
    return Dataset(graph, y, ClassSplit((0, 1), (), ()), ("a", "b", "c"), name="star")


def test_a_node_with_edges_that_only_leave_it_is_not_isolated() -> None:
    graph = Graph.from_edges([[0, 1], [1, 2]], 4, np.ones((4, 1), np.float32), directed=True)
    facts = statistics(Dataset(graph, np.full(4, -1), ClassSplit((), (), ())))
    assert facts["isolated"] == 1


def test_facts_by_hand() -> None:
    facts = statistics(small())
    assert (facts["nodes"], facts["edges"], facts["labelled"], facts["isolated"]) == (14, 12, 12, 1)
    assert facts["homophily"] == 3 / 11  # of the 11 edges with a labelled leaf
    assert facts["degree"] == {
        "mean": 24 / 14,
        "median": 1,
        "max": 12,
        "histogram": [
            {"from": 0, "to": 0, "count": 1},
            {"from": 1, "to": 2, "count": 12},
            {"from": 3, "to": 9, "count": 0},
            {"from": 10, "to": 29, "count": 1},
        ],
    }
    assert facts["class_sizes"] == {"b": 6, "a": 4, "c": 2}
    assert facts["class_size_histogram"] == [{"from": 1, "to": 2, "count": 1}, {"from": 3, "to": 9, "count": 2}]
    assert facts["few_shot_classes"] == {"under": 10, "share": 1.0}
    assert facts["outside_split"] == {"c": 2}
    assert facts["largest_tasks"]["train"] == {"way": 2, "shot": 2, "smallest_class": "a", "nodes": 4}
    assert facts["largest_tasks"]["test"] == {"way": 0, "shot": 0, "smallest_class": None, "nodes": 0}
    json.dumps(facts, allow_nan=False)


@given(st.lists(st.integers(0, 10**6)))
def test_every_value_is_in_one_bin(values: list[int]) -> None:
    bins = count_by_size(np.array(values, np.int64))
    assert sum(each["count"] for each in bins) == len(values)
    for each in bins:
        assert each["count"] == sum(each["from"] <= value <= each["to"] for value in values)
    assert all(one["to"] + 1 == other["from"] for one, other in pairwise(bins))


def test_the_text_fits_eighty_columns_and_moves_no_cursor() -> None:
    names = tuple(f"\x1b[31m class {'long ' * 20}{i}" for i in range(40))
    y = np.repeat(np.arange(40), 30)
    data = Dataset(Graph.from_edges([[0], [1]], y.size), y, ClassSplit((0,), (1,), tuple(range(2, 9))), names)
    for text in (report(data), report(small())):
        assert max(map(len, text.splitlines())) <= 80
        assert "\x1b" not in text
    text = report(small())
    assert "train classes     up to 2-way 2-shot, as many queries (a has 4)" in text
    assert "valid classes     none" in text
    assert "in no part        c (2)" in text


def test_an_empty_dataset_can_be_described() -> None:
    data = Dataset(Graph.from_edges(np.zeros((2, 0), int), 0), np.zeros(0, int), ClassSplit((), (), ()))
    assert "0 nodes, 0 undirected edges" in report(data)


def test_a_list_too_long_for_the_line_says_how_many_more() -> None:
    assert name_some(["a", "b"]) == "a, b"
    names = [f"class{i}" for i in range(50)]
    some = name_some(names)
    assert len(some) <= 62
    assert some.endswith(f" and {50 - some.count('class')} more")


def test_what_was_understood_of_tables() -> None:
    nodes = {"id": ["a", "b", "c"], "label": ["x", "x", None], "size": ["1", "", "3"], "url": ["u", "v", "w"]}
    data = read_tables(nodes, {"s": ["a", "a", "b", "z"], "t": ["a", "b", "a", "a"]}, unknown_ends="drop")
    assert report(data).splitlines()[1:12] == [
        "the nodes table: 3 nodes",
        "  id        id",
        "  label     label (1 unknown: 1 empty)",
        "  numeric   size (numbers)",
        "  not used  url (3 distinct values of 1.0 words; --text or --category uses it)",
        "  missing   size 1: the mean and a flag",
        "the edges table: 4 edges, s to t",
        "  dropped: 1 self-loops, 1 with an unknown end",
        "repeated edges, counted once: 1",
        "made of           1 numbers, 1 missing flags",
        "attributes        2, 2.0 of them a node",
    ]
    more = extend(data, {"id": ["d"], "label": ["new"], "size": [2], "u": [1]})
    assert report(more, latest=True).splitlines()[1:7] == [
        "the nodes table: 1 nodes",
        "  id        id",
        "  label     label (all known)",
        "  numeric   size",
        "  not used  u (no attribute of the nodes table)",
        "new classes, in no part: new",
    ]


def test_a_report_fits_a_screen_whatever_there_is() -> None:
    nodes = {
        "id": list("abcdef"),
        **{f"{'long ' * 9}{i}": [f"{'w' * 50} {i} {j}" for j in range(6)] for i in range(60)},
    }
    edges = [{"s": ["a"], "t": ["b"], "kind": [f"k{i}"]} for i in range(40)]
    lines = report(read_tables(nodes, edges, relation="kind")).splitlines()
    assert (len(lines) <= 30, max(map(len, lines)) <= 80) == (True, True)
    assert any("--json has all" in line for line in lines)


def test_the_difference_to_the_paper_is_told() -> None:
    info = {
        "skipped": {"not JSON": 3},
        "expected": {"nodes": 24919, "split": [40, 17, 20]},
        "difference": {"nodes": -12, "split": [0, 1, -1]},
    }
    text = report(replace(small(), info=info))
    for words in ("lines skipped: 3 not JSON", "nodes of the paper: 24,919, here -12", "40/17/20, here +0/+1/-1"):
        assert words in text
