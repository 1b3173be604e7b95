"""Tables of nodes and edges as a dataset: values by hand, what is said about them, and every way to get it wrong."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from fewnode import ImportSpec
from fewnode.dataset import Dataset
from fewnode.errors import FewnodeError
from fewnode.tables.extend import extend
from fewnode.tables.read import read_tables
from fewnode.tables.report import report, warnings_of
from fewnode.tables.splits import choose_split

NODES = {
    "id": ["007", "fox", "ünde", "owl"],
    "label": ["bird", None, "plant", "bird"],
    "title": ["red den", "red fox, red den", None, "blue owl"],
    "body": ["owl", "a fox", "blue", "owl"],
    "size": ["1", "3", None, "5"],
    "kind": ["x", "y", "x", None],
}
EDGES = {"source": ["007", "fox", "owl", "fox", "owl"], "target": ["fox", "007", "owl", "ünde", "fox"]}
ROLES = {"text": ["title", "body"], "numeric": ["size"], "category": ["kind"]}
WORDS: dict[str, Any] = {"min_count": 1, "max_share": 1.0, "stop_words": ()}


def read(nodes: Any = NODES, edges: Any = EDGES, **options: Any) -> Dataset:
    return read_tables(nodes, edges, **{**ROLES, **WORDS, "only": True, **options})


# --- what comes out -----------------------------------------------------------------------------------------------


def test_values_by_hand() -> None:
    data = read()
    assert data.node_names == ("007", "fox", "ünde", "owl")
    assert data.class_names == ("bird", "plant")
    assert data.y.tolist() == [0, -1, 1, 0]
    words = ("blue", "den", "fox", "owl", "red")
    assert data.feature_names == (*words, "size (number)", "kind=x", "kind=y", "size (missing)")
    # sizes 1, 3, 5: mean 3, deviation sqrt(8/3)
    high = 2 / np.sqrt(8 / 3)
    expected = [
        [0, 1, 0, 1, 1, -high, 1, 0, 0],
        [0, 1, 2, 0, 2, 0, 0, 1, 0],
        [1, 0, 0, 0, 0, 0, 1, 0, 1],
        [1, 0, 0, 2, 0, high, 0, 0, 0],
    ]
    np.testing.assert_allclose(data.graph.x.toarray(), expected, rtol=1e-6)
    expected_adj = [[0, 1, 0, 0], [1, 0, 1, 1], [0, 1, 0, 0], [0, 1, 0, 0]]
    np.testing.assert_array_equal(data.graph.adj.toarray(), expected_adj)


def test_frames_and_arrow_tables_give_the_same() -> None:
    typed = {**NODES, "size": [1, 3, None, 5]}
    frame = pd.DataFrame(typed).astype({"kind": "category"})
    for nodes, edges in [(frame, pd.DataFrame(EDGES)), (frame.set_index("id"), EDGES), (pa.table(typed), EDGES)]:
        assert read(nodes, edges).sha256 == read().sha256
    filtered = pd.concat([frame[:1], frame])[1:]  # its index is no 0, 1, 2 …, and not an attribute
    assert read_tables(filtered, EDGES).graph.n_features == read_tables(typed, EDGES).graph.n_features


# --- what users get wrong -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("nodes", "edges", "options", "message"),
    [
        ({}, {}, {"id": "idd"}, r"the nodes table: no column 'idd' \(did you mean 'id'\?\); there are id, label"),
        ({}, {}, {"label": "lable"}, r"no column 'lable' \(did you mean 'label'\?\)"),
        ({}, {}, {"source": "form"}, "the edges table: no column 'form'"),
        ({}, {}, {"source": "target"}, "column 'target' is both ends of an edge"),
        ({}, {}, {"numeric": ["label"]}, "column 'label' is the id or the label"),
        ({}, {}, {"text": ["kind"]}, "column 'kind' is given as text and as category"),
        ({}, {}, {"unknown_ends": "keep"}, "expected 'refuse' or 'drop'"),
        ({"id": ["a", "b", " ", "c"]}, {}, {}, "data row 3, column 'id': empty, expected a node id"),
        ({"size": ["1", "-inf", "2", "3"]}, {}, {}, "data row 2, column 'size': -inf is no finite number; leave"),
        ({"size": [1.0, 2.0, 3.0, float("inf")]}, {}, {}, "data row 4, column 'size': inf is no finite number"),
        ({"size": ["1", "2", "3", "4 kB"]}, {}, {}, "data row 4, column 'size': found '4 kB', expected a number"),
        ({}, {"target": ["fox", "007", "owl", "cat", "dog"]}, {},
         "data row 4, column 'target': node 'cat' is not in the nodes table; 2 such edges"),
        ({}, {"source": ["007", None, "owl", "fox", "owl"]}, {},
         "data row 2, column 'source': empty, expected a node id; 1 such edge "),
        ({k: [] for k in NODES}, {}, {}, "the nodes table: no node in it"),
        ({}, {k: [] for k in EDGES}, {}, "the edges table: no edge in it"),
    ],
)  # fmt: skip
def test_bad_tables_are_refused_with_the_place(nodes: Any, edges: Any, options: Any, message: str) -> None:
    with pytest.raises(FewnodeError, match=message) as caught:
        read({**NODES, **nodes}, {**EDGES, **edges}, **options)
    assert "\n" not in str(caught.value)


def test_what_goes_beyond_all_reason_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fewnode.tables.encode.MAX_CATEGORIES", 1)
    with pytest.raises(FewnodeError, match="column 'kind' has 2 distinct values, too many for categories; is it text"):
        read()
    monkeypatch.setattr("fewnode.tables.encode.MAX_LENGTH", 2)
    for vectors, length in (([None] * 4, 0), ([[1, 2, 3]] * 4, 3)):
        with pytest.raises(FewnodeError, match=f"column 'v' has vectors of {length} numbers, expected 1 to 2"):
            with_vectors(vectors, vector=["v"])
    for tables, what in (((NODES, []), "edges"), (([], ONE), "nodes")):
        with pytest.raises(FewnodeError, match=f"no table of {what}"):
            read_tables(*tables)


ONE = {"s": ["a"], "t": ["b"]}


# --- vectors ------------------------------------------------------------------------------------------------------


def with_vectors(vectors: Any, **options: Any) -> Dataset:
    cells = pa.array(vectors, pa.list_(pa.float64()))
    return read_tables(pa.table({"id": list("abcd"), "v": cells}), ONE, **options)


def test_a_rotated_block_is_the_rotated_encoding() -> None:
    rng = np.random.default_rng(1)
    vectors, rotation = rng.normal(size=(4, 6)), np.linalg.qr(rng.normal(size=(6, 6)))[0]
    plain, turned = with_vectors(vectors.tolist()), with_vectors((vectors @ rotation).tolist())
    np.testing.assert_allclose(turned.graph.x, plain.graph.x @ rotation, atol=1e-5)


def test_vectors_later_must_be_as_long() -> None:
    data = with_vectors([[1, 2], None, [3, 4], [5, 9]])
    assert data.feature_names == ("v[0]", "v[1]", "v (missing)")
    np.testing.assert_array_equal(data.graph.x[1], [0, 0, 1])
    more = extend(data, {"id": ["e", "f"], "v": ["[1, 2]", ""]})
    np.testing.assert_array_equal(more.graph.x[4:], data.graph.x[:2])
    for vectors in (["[1, 2, 3]"], ["[1]"]):
        with pytest.raises(FewnodeError, match=r"data row 1, column 'v': a vector of . numbers, expected 2"):
            extend(data, {"id": ["e"], "v": vectors})
    with pytest.raises(FewnodeError, match="the vector is too far from the mean"):
        extend(with_vectors([[1e-30, 0]] * 3 + [[0, 0]]), {"id": ["e"], "v": [[3e38, 1.0]]})
    none = extend(data, {"id": ["e"], "v": pa.array([None], pa.string())})
    np.testing.assert_array_equal(none.graph.x[4], [0, 0, 1])


SIZES = {"id": list("abcd"), "label": list("xyxy"), "size": [1.0, 2.0, 3.0, 4.0]}


# --- encodings and accounts of strangers --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "forged",
    [
        {"numeric": {"size": [float("inf"), 1.0]}},
        {"numeric": {"size": ["x", 1.0]}},
        {"numeric": {5: [0.0, 1.0]}},
        {"category": {"c": "pq"}},
        {"category": {"c": ["p", "p"]}},
        {"vocabulary": [1]},
        {"vector": {"v": {"mean": [], "deviation": 1.0}}},
        {"vector": {"v": {"mean": [float("nan")], "deviation": 1.0}}},
        {"vector": {"v": {"mean": [1.0], "deviation": None}}},
        {"flags": ["nobody"]},
        {"flags": 3},
        {"dates": {"nobody": "year first"}},
    ],
    ids=str,
)
def test_a_forged_encoding_is_refused(forged: dict[str, Any]) -> None:
    data = read_tables({"id": ["a", "b"], "size": [1, 2]}, ONE)
    assert data.encoding is not None
    stored = {**data.encoding, "encoding": {**data.encoding["encoding"], **forged}}
    with pytest.raises(FewnodeError, match="the stored encoding of its columns is not one that fewnode wrote"):
        extend(replace(data, encoding=stored), {"id": ["c"], "size": [1]})


@pytest.mark.parametrize(
    ("forged", "message"),
    [
        ({"encoding": {}}, r"the stored encoding has 0 attributes and the graph 1"),
        ({"spec": {"missing": [3]}}, "not one that fewnode wrote"),
        ({"spec": {"decimal": "x"}}, "not one that fewnode wrote"),
        ({"spec": {"id": ["x"]}}, "not one that fewnode wrote"),
        ({"spec": {"label": 3}}, "not one that fewnode wrote"),
        ({"optional": 3}, "not one that fewnode wrote"),
    ],
)
def test_a_forged_dataset_is_not_extended(forged: dict[str, Any], message: str) -> None:
    data = read_tables(SIZES, ONE)
    data.encoding.update(forged)  # type: ignore[union-attr]
    with pytest.raises(FewnodeError, match=message):
        extend(data, {"id": ["e"], "size": [1]})


@pytest.mark.parametrize(
    "forged", [{"nodes": [3]}, {"extended": [3]}, {"extended": {"a": 1}}, {"notes": 3}, {"skipped": 3}]
)
def test_a_forged_account_is_refused_in_a_sentence(forged: dict[str, Any]) -> None:
    data = read_tables(SIZES, ONE)
    data.info.update(forged)
    with pytest.raises(FewnodeError, match="is not what fewnode wrote"):
        report(data)
    with pytest.raises(FewnodeError, match="is not what fewnode wrote"):
        warnings_of({"warnings": 3})


# --- what is said about tables -----------------------------------------------------------------------------------


def spec(**given: Any) -> ImportSpec:
    return ImportSpec.of({name: value for name, value in given.items() if value is not None})


@pytest.mark.parametrize("given", ["", ";;", "a", "7", '"', "\n", "\r", "\0", "·", "comma"])
def test_what_cannot_separate_is_refused(given: str) -> None:
    with pytest.raises(
        FewnodeError, match=r"^separator: found .*, expected one character such as ; or \|, or tab or space$"
    ):
        spec(separator=given)


NO_TEXT = (
    *("rot13", "hex", "zlib", "base64", "idna", "punycode", "unicode_escape", "raw_unicode_escape", "utf-7"),
    *("cp037", "undefined", "no such one", "a\0b", "", "../x", "ü", "x" * 10_000),
)


@pytest.mark.parametrize("name", NO_TEXT)
def test_what_is_no_encoding_of_text_is_refused(name: str) -> None:
    with pytest.raises(FewnodeError, match=r"not known for text; try latin-1, cp1252, utf-16 or utf-8$") as caught:
        spec(encoding=name)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"lable": "x"}, "there is no option 'lable' (did you mean 'label'?)"),
        ({"weight": "a", "relation": "a"}, "weight and relation are two columns, and the two of them have one name"),
        ({"min_count": 0}, "min_count: found 0, expected at least 1"),
        ({"missing": ("", "x")}, "missing '' says that only empty cells are missing"),
        ({"hierarchy": " "}, "hierarchy ' ': expected a mark such as | or /"),
        ({"split": "1,1,1", "test_classes": "t"}, "split deals the classes, and train_classes"),
        ({"directed": ["", "pays"]}, "directed: give it alone, for all edges, or only with names of relations"),
        ({"vocabulary": "many"}, "vocabulary: found 'many', expected a valid integer"),
    ],
)
def test_a_fault_is_one_sentence_at_every_door(given: dict[str, Any], message: str) -> None:
    with pytest.raises(FewnodeError) as caught:
        spec(**given)
    assert message in str(caught.value)
    with pytest.raises(FewnodeError) as again:
        read_tables({"id": ["a"]}, {"s": ["a"], "t": ["a"]}, **given)
    assert str(again.value) == str(caught.value)


# --- class splits -------------------------------------------------------------------------------------------------

Y = np.repeat(np.arange(12), np.arange(5, 17))
NAMES = tuple("abcdefghijkl")


@pytest.mark.parametrize(
    "split", ["", "a/b/c", "50/50", "1,2", "1,2,3,4", "-1,2,3", "1.5,2,3", "0/0/0", "nan/1/1", "inf/1/1"]
)
def test_a_split_that_is_none_is_refused(split: str) -> None:
    with pytest.raises(
        FewnodeError, match="expected three shares such as 50/20/30 or three class counts such as 40,17,20"
    ):
        choose_split(Y, NAMES, split)


def test_one_list_is_enough_and_the_rest_is_dealt_by_shares() -> None:
    split = choose_split(Y, NAMES, {"test": ["a", "l"]}, seed=4)  # a is too small to be dealt, but may be listed
    assert split.test == (0, 11)
    assert list(map(len, (split.train, split.valid))) == [4, 2]  # of 6 others with ten nodes, 50 to 20
    assert min(split.train + split.valid) >= 5
    assert split == choose_split(Y, NAMES, {"test": ["a", "l"]}, seed=4)
    both = choose_split(Y, NAMES, {"train": ["a"], "test": ["l"]})
    assert (both.train, both.valid, both.test) == ((0,), tuple(range(5, 11)), (11,))


@pytest.mark.parametrize(
    ("lists", "message"),
    [
        ({}, "class lists for no part: expected train, valid or test"),
        ({"train": ["a"], "tests": ["b"]}, "class lists for train, tests: expected train, valid or test"),
        ({"train": ["a"], "valid": ["b"], "test": ["bird"]}, "test class 1: no node is of class 'bird'"),
        ({"train": ["a", "b"], "valid": ["b"], "test": ["c"]}, "valid class 1: class 'b' is at train class 2 already"),
        ({"train": [], "valid": ["b"], "test": ["c"]}, "train classes: no class in it"),
    ],
)
def test_lists_that_do_not_fit_are_refused(lists: dict[str, list[str]], message: str) -> None:
    with pytest.raises(FewnodeError, match=message):
        choose_split(Y, NAMES, lists)
