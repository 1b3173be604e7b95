"""Tables with weights, kinds and directions of edges: what becomes of them, later edges, and the way out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from fewnode.dataset import Dataset
from fewnode.errors import FewnodeError
from fewnode.formats.directory import load_dataset, save_dataset
from fewnode.formats.sources import load
from fewnode.tables.extend import extend
from fewnode.tables.read import read_tables
from fewnode.tables.report import report

NODES = {"id": list("abcd"), "label": list("xyxy"), "size": [1.0, 2.0, 3.0, 4.0]}
EDGES = {
    "source": list("abca"),
    "target": list("bcdd"),
    "amount": [1.0, 2.0, 3.0, 2.0],
    "sort": ["pays", "pays", "owns", "owns"],
}


def weights(data: Dataset, relation: int | None = None) -> dict[str, float]:
    """The weight of each edge, by its source and target."""
    adj = data.graph.adj if relation is None else data.graph.relations[relation].adj
    names = data.node_names or ()
    target, source = adj.tocoo().coords
    return {names[s] + names[t]: float(adj[t, s]) for s, t in zip(source, target, strict=True) if s < t}


def test_amounts_become_weights_of_mean_one() -> None:
    data = read_tables(NODES, EDGES, weight="amount")
    assert weights(data) == pytest.approx({"ab": 0.5, "bc": 1, "cd": 1.5, "ad": 1})
    [told] = data.info["relations"]
    assert told["weights"] == {"min": 1, "median": 2, "max": 3}
    assert (told["scale"], told["scale_asked"]) == ("none", False)
    assert "edges edges: 4 undirected, same class 0.00, weights 1 to 3, median 2, taken as" in report(data)


# --- later edges --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {"weight": "amount"},
        {"weight": "amount", "weight_scale": "log"},
        {"weight": "amount", "relation": "sort", "directed": ["owns"]},
        {"relation": "sort", "directed": True},
    ],
)
def test_edges_that_come_later_are_as_those_that_were_there(options: dict[str, Any]) -> None:
    """Scaled as at the import: up to a factor of each relation, the result is that of one import of everything."""
    first = {name: cells[:3] for name, cells in EDGES.items()}
    later = {name: [*cells[3:], cells[0]] for name, cells in EDGES.items()}  # one is new, and one is there already
    data = extend(read_tables(NODES, first, **options), {"id": ["e"], "size": [2]}, later)
    nodes = {"id": list("abcde"), "size": [1.0, 2.0, 3.0, 4.0, 2.0]}
    together = read_tables(nodes, {name: [*cells, cells[0]] for name, cells in EDGES.items()}, **options)
    assert data.graph.n == 5
    assert data.info["extended"][0]["repeated_edges"] == 1
    for ours, theirs in zip(data.graph.relations, together.graph.relations, strict=True):
        assert (ours.name, ours.directed) == (theirs.name, theirs.directed)
        np.testing.assert_array_equal(ours.adj.toarray() > 0, theirs.adj.toarray() > 0)
        if options.get("weight_scale") != "log":
            ratio = ours.adj.data / theirs.adj.data
            np.testing.assert_allclose(ratio, ratio[0], rtol=1e-5)
    assert (np.diff(data.graph.adj.indptr) == np.diff(together.graph.adj.indptr)).all()


def test_old_edges_keep_their_bits(tmp_path: Path) -> None:
    data = read_tables(NODES, EDGES, weight="amount", relation="sort", directed=["owns"])
    save_dataset(data, tmp_path / "d")
    more = extend(load_dataset(tmp_path / "d"), {"id": ["e"], "size": [1]}, {**EDGES, "source": ["e"] * 4})
    for old, new in zip(data.graph.relations, more.graph.relations, strict=True):
        np.testing.assert_array_equal(new.adj[:4, :4].toarray(), old.adj.toarray())
    edge = {"source": ["e"], "target": ["f"], "amount": [4], "sort": ["owns"]}
    alone = extend(data, {"id": ["e", "f"], "size": [1, 2]}, edge, alone=True)
    assert [r.n_edges for r in alone.graph.relations] == [0, 1]


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ({"likes": {"s": ["e"], "t": ["a"], "amount": [1]}}, "unknown relation 'likes'; mine has pays, owns"),
        ({"s": ["e"], "t": ["a"], "amount": [1]}, "no column 'sort'"),
        ({"s": ["e"], "t": ["a"], "sort": ["pays"]}, "no column 'amount'"),
        ({"s": ["e"], "t": ["a"], "amount": [-1], "sort": ["pays"]}, "data row 1, column 'amount': -1 is below 0"),
    ],
)
def test_later_edges_that_do_not_fit_are_refused(edges: Any, message: str) -> None:
    data = read_tables(NODES, EDGES, weight="amount", relation="sort", name="mine")
    with pytest.raises(FewnodeError, match=message):
        extend(data, {"id": ["e"], "size": [1]}, edges)
    with pytest.raises(FewnodeError, match="has neither weights nor kinds of edges"):
        extend(read_tables(NODES, EDGES), {"id": ["e"], "size": [1]}, {"pays": {"s": ["e"], "t": ["a"]}})


# --- Arrow streams ------------------------------------------------------------------------------------------------


class Stream:
    """What a database gives: nothing but Arrow's C stream."""

    def __init__(self, columns: dict[str, Any]) -> None:
        self.table = pa.table(columns)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.table.__arrow_c_stream__(requested_schema)


class Cursor:
    """What ADBC gives after a query."""

    def fetch_arrow_table(self) -> pa.Table:
        return pa.table(EDGES)


def test_any_arrow_stream_is_a_table() -> None:
    expected = weights(read_tables(NODES, EDGES, weight="amount"))
    assert weights(read_tables(Stream(NODES), Stream(EDGES), weight="amount")) == expected
    readers = [pa.table(columns).to_reader() for columns in (NODES, EDGES)]
    assert weights(read_tables(*readers, weight="amount")) == expected
    assert weights(read_tables(NODES, Cursor(), weight="amount")) == expected
    kinds = {"pays": Stream(EDGES), "owns": pa.table(EDGES).to_reader(), "likes": Cursor()}
    assert [r.name for r in read_tables(NODES, kinds).graph.relations] == ["pays", "owns", "likes"]


# --- files of graphs ----------------------------------------------------------------------------------------------

GRAPHML = """<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key id="d0" for="node" attr.name="class" attr.type="string"/>
  <key id="d1" for="edge" attr.name="weight" attr.type="double"><default>2.0</default></key>
  <key id="d2" for="edge" attr.name="sort" attr.type="string"/>
  <graph edgedefault="directed">
    <node id="a"><data key="d0">x</data></node>
    <node id="b &amp; c"><data key="d0">y</data></node>
    <edge source="a" target="b &amp; c"><data key="d1">1</data><data key="d2">pays</data></edge>
    <edge source="b &amp; c" target="a"><data key="d2">owns</data></edge>
  </graph>
</graphml>
"""
GML = """# a comment
graph [
  directed 0
  node [ id 1 label "a" kind "x" graphics [ x 1.0 y 2 ] ]
  node [ id 2 label "b &quot;c&quot;" kind "y" ]
  edge [ source 1 target 2 weight 3 ]
]
"""


BOMB = '<!DOCTYPE lolz [<!ENTITY lol "lol"><!ENTITY lol2 "&lol;&lol;">]>'


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.graphml", GRAPHML.replace("?>\n", f"?>\n{BOMB}\n", 1), "line 2: a DOCTYPE, which may refer to other files"),
        ("a.graphml", '<!DOCTYPE graphml SYSTEM "file:///etc/passwd"><graphml/>', "line 1: a DOCTYPE"),
        ("a.graphml", GRAPHML[:-12], "not XML"),
        ("a.graphml", "<html></html>", "not readable as GraphML"),
        ("a.graphml", "<graphml>" + "<a>" * 100, "over 64 deep"),
        ("a.graphml", "<graphml><graph><node/></graph></graphml>", "no edge in it|no node"),
        ("a.graphml", "<graphml><graph><hyperedge/></graph></graphml>", "<hyperedge> is not read"),
        ("a.graphml", "<graphml><graph><node id='a'><graph/></node></graph></graphml>", "a second graph"),
        ("a.graphml", "<graphml><graph></graph></graphml>", "no node in it"),
        ("a.graphml", GRAPHML.replace('target="a"', 'target="z"'), "1 ends of edges are no nodes"),
        ("a.graphml", GRAPHML.replace(">1<", ">-1<"), "data row 1, column 'weight': -1 is below 0"),
        ("a.gml", GML[:-3], "not readable as GML"),
        ("a.gml", GML.replace('"a"', '"a'), "not readable as GML"),
        ("a.gml", GML.replace("id 1", ""), "not readable as GML"),
        ("a.gml", "[ graph ]", "not readable as GML"),
        ("a.gml", "x [ " * 100, "not readable as GML"),
    ],
)  # fmt: skip
def test_bad_files_of_graphs_are_one_line(name: str, content: str, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(FewnodeError, match=message) as caught:
        load(tmp_path / name)
    assert "\n" not in str(caught.value)
    assert str(tmp_path / name) in str(caught.value)
