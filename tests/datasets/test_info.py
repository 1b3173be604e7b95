"""The facts about a dataset, by hand, and that they fit a terminal."""

from __future__ import annotations

import json

import numpy as np

from fewnode.dataset import ClassSplit, Dataset
from fewnode.graph import Graph
from fewnode.tables.extend import extend
from fewnode.tables.read import read_tables
from fewnode.tables.report import report, statistics


def small() -> Dataset:
    """A star of 13 nodes and a lone one. Class a: the middle and 3 leaves, b: 6 leaves, c: 2 leaves; two unknown."""
    graph = Graph.from_edges([[0] * 12, range(1, 13)], 14, np.ones((14, 2), np.float32))
    y = np.array([0, 0, 0, 0, *[1] * 6, 2, 2, -1, -1])
    return Dataset(graph, y, ClassSplit((0, 1), (), ()), ("a", "b", "c"), name="star")


def test_facts_by_hand() -> None:
    facts = statistics(small())
    assert (facts["nodes"], facts["edges"], facts["labelled"], facts["isolated"]) == (14, 12, 12, 1)
    assert facts["homophily"] == 3 / 11  # of the 11 edges with a labelled leaf
    assert facts["degree"] == {
        "mean": 24 / 14,
        "median": 1,
        "max": 12,
    }
    assert facts["class_sizes"] == {"b": 6, "a": 4, "c": 2}
    assert facts["few_shot_classes"] == {"under": 10, "share": 1.0}
    assert facts["outside_split"] == {"c": 2}
    assert facts["largest_tasks"]["train"] == {"way": 2, "shot": 2, "smallest_class": "a", "nodes": 4}
    assert facts["largest_tasks"]["test"] == {"way": 0, "shot": 0, "smallest_class": None, "nodes": 0}
    json.dumps(facts, allow_nan=False)


def test_what_was_understood_of_tables() -> None:
    nodes = {"id": ["a", "b", "c"], "label": ["x", "x", None], "size": ["1", "", "3"], "url": ["u", "v", "w"]}
    data = read_tables(nodes, {"s": ["a", "a", "b", "z"], "t": ["a", "b", "a", "a"]}, unknown_ends="drop")
    assert report(data).splitlines()[1:12] == [
        "the nodes table: 3 nodes",
        "  id        id",
        "  label     label (1 unknown: 1 empty)",
        "  numeric   size (numbers)",
        "  not used  url (3 distinct values of 1.0 words; `text` or `category` uses it)",
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
    assert any("`as_json` has all" in line for line in lines)
