"""A class in words: what is read, what is told, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import fewnode
from fewnode.dataset import ClassSplit, Dataset
from fewnode.errors import FewnodeError
from fewnode.graph import Block, Graph
from fewnode.recognition.description import describe, opaque, read_classes
from fewnode.review.reasons import shared_words
from fewnode.tables.extend import extend
from fewnode.tables.read import read_tables

NODES: dict[str, list[Any]] = {
    "id": ["a", "b", "c", "d"],
    "about": ["filter email, email", "email over wi-fi", "a wi-fi driver", "driver for a printer"],
    "size": [1.0, 2.0, 3.0, None],
}
EDGES = {"source": ["a", "b", "c"], "target": ["b", "c", "d"]}
WORDS = {"min_count": 1, "max_share": 1.0}


@pytest.fixture(name="data")
def _data() -> Dataset:
    return read_tables(NODES, EDGES, text="about", numeric="size", **WORDS, name="net")


def names_of(data: Dataset, x: Any) -> dict[str, float]:
    assert isinstance(x, sp.csr_array) == isinstance(data.graph.x, sp.csr_array)
    assert (x.shape, x.dtype) == ((1, data.graph.n_features), np.float32)
    row = x.toarray()[0] if isinstance(x, sp.csr_array) else x[0]
    assert data.feature_names is not None
    return {name: value for name, value in zip(data.feature_names, row.tolist(), strict=True) if value}


def test_a_text_is_encoded_as_that_of_a_node(data: Dataset) -> None:
    text = "An email driver: filter email, over wi-fi"
    node = extend(data, {"id": ["new"], "about": [text], "size": [2.0]}, alone=True).graph.x
    found = describe(data, text)
    words = slice(0, data.graph.blocks[0].stop)
    np.testing.assert_array_equal(found.x.toarray()[:, words], node.toarray()[:, words])
    assert names_of(data, found.x) == {"driver": 1, "email": 2, "filter": 1, "wi": 1, "fi": 1}


def test_text_counts_and_what_is_not_used_is_told(data: Dataset) -> None:
    found = describe(data, "Printing e-mails, wifi drivers and 2 faxes", "e-mail")
    read = [("e-mails", "email"), ("wifi", "wi"), ("wifi", "fi"), ("drivers", "driver")]
    assert [tuple(match) for match in found.known] == read
    assert (found.unknown, found.numbers) == (("printing", "faxes"), ("2",))
    assert found.nearest == {"printing": ("printer",), "faxes": ()}
    assert found.remarks() == [
        "'printing' is not a word of this network (near: printer)",
        "'faxes' is not a word of this network",
        "numbers in a description are not used: 2",
    ]
    assert names_of(data, found.x) == {"email": 1, "wi": 1, "fi": 1, "driver": 1}


# --- other networks -----------------------------------------------------------------------------------------------


def network(x: Any, names: tuple[str, ...] | None) -> Dataset:
    graph = Graph.from_edges([[0], [1]], 2, x)
    return Dataset(graph, np.array([-1, -1]), ClassSplit((), (), ()), feature_names=names, name="net")


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (network(np.ones((2, 2), np.float32), None), "attributes of net have no names"),
        (network(np.ones((2, 2), np.float32), ("f1", "f2")), "attributes of net, as 'f1', 'f2', are no words"),
        (network(-np.ones((2, 2), np.float32), ("mail", "filter")), "attributes of net are numbers, not words"),
        (network(None, None), "net has no attributes"),
        (Dataset.from_scipy(np.eye(2), np.eye(2), blocks=[Block("words", 0, 2)], name="net"), "net have no names"),
        (Dataset.from_scipy(np.eye(2), np.array([[1.5, -1.0]] * 2), name="net"), "attributes of net are vectors"),
        (read_tables({"id": ["a", "b"], "size": [1, 2]}, {"s": ["a"], "t": ["b"]}, name="net"), "net are numbers"),
    ],
)
def test_attributes_that_are_no_words(data: Dataset, problem: str) -> None:
    for ask in (lambda: describe(data, "mail"), lambda: opaque(data, "mail")):
        with pytest.raises(FewnodeError) as caught:
            ask()
        assert problem in str(caught.value)
        assert "give nodes instead" in str(caught.value)


def test_debian() -> None:
    data = fewnode.load("debian")
    found = describe(data, "Fonts: typefaces, e-mail and howtos", "fonts")
    assert [tuple(match) for match in found.known if match.given != match.matched] == [("typefaces", "typeface")]
    assert found.unknown == ("howtos",)
    assert names_of(data, found.x) == {"fonts": 1, "typeface": 1, "mail": 1}
    assert [name for name in data.class_names if opaque(data, name)] == [
        "comm", "libdevel", "misc", "oldlibs", "otherosfs"
    ]  # fmt: skip


# --- why a node ---------------------------------------------------------------------------------------------------


def test_words_that_a_node_and_its_neighbours_share_with_a_description(data: Dataset) -> None:
    found = shared_words(describe(data, "email filter printer"), data, [0, 1, 2, 3])
    assert [set(each.own) for each in found] == [{"email", "filter"}, {"email"}, set(), {"printer"}]
    assert [set(each.near) for each in found] == [set(), {("filter", 0)}, {("email", 1), ("printer", 3)}, set()]
    assert found[0].own[0] == "filter"  # only one node has it


# --- tables of classes --------------------------------------------------------------------------------------------


def test_classes_of_a_table(tmp_path: Path) -> None:
    path = tmp_path / "classes.csv"
    path.write_text('\ufeffdescription;class;note\r\n"mail; news";mail;1\r\n\r\n;vpn;2\r\nx;\'=c;3\r\n')
    assert read_classes(path) == {"mail": "mail; news", "vpn": "", "=c": "x"}
