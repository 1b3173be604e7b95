"""Columns as attributes, one function at a time: what is learned, what it becomes, and which column looks like what."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp

from fewnode.datasets import encode
from fewnode.datasets.arrow import Table
from fewnode.datasets.encode import Encoding, Words
from fewnode.datasets.roles import guess_role
from fewnode.datasets.rows import NodeRows, NodeTable
from fewnode.datasets.standardise import VectorScale
from fewnode.errors import FewnodeError

WORDS = Words(min_count=1, max_share=1)


def table(**columns: Any) -> Table:
    return Table("t", pa.table(columns))


def learn(cells: Any, role: str) -> Encoding:
    return Encoding.learn(table(a=cells), {"a": role}, WORDS)


# --- words --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("min_count", "max_share"), [(0, 0.5), (2, 0), (2, -0.1), (2, 1.01), (0, 0)])
def test_words_that_cannot_be_chosen_are_refused(min_count: int, max_share: float) -> None:
    with pytest.raises(FewnodeError) as caught:
        Words(min_count=min_count, max_share=max_share)
    shares = f"words of {min_count} nodes to a share of {max_share}"
    assert str(caught.value) == f"{shares}: expected at least 1 and 0 to 1"


def test_the_smallest_and_largest_shares_of_words() -> None:
    documents = ["red the", "red fox", "fox den", "den owl"]
    assert Words(min_count=1, max_share=1).choose(iter(documents)) == ("den", "fox", "owl", "red")
    assert Words(min_count=1, max_share=0.25, stop_words=()).choose(iter(documents)) == ("owl", "the")
    assert Words(size=1, stop_words=["den"]).choose(iter(documents)) == ("fox",)


def test_no_words_are_chosen_where_there_is_no_text() -> None:
    assert Encoding.learn(table(a=[1.0, 2.0]), {"a": "numeric"}, Words(size=0)).vocabulary == ()


def test_every_row_is_one_document_however_many_there_are() -> None:
    n = 40_000
    rows = table(a=[str(i) if i % 3 else None for i in range(n)], b=["x"] * n)
    documents = list(encode.documents(rows, ["a", "b"]))
    assert documents == [f"{i}\nx" if i % 3 else "x" for i in range(n)]


# --- numbers ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "mean", "deviation"),
    [
        ([1, 3], 2, 1),
        ([-6, 2], -2, 4),
        ([1, None, 3], 2, 1),
        ([1e300, 3e300], 2e300, 1e300),
        ([1e-200, 3e-200], 2e-200, 1e-200),
        ([0.1, 0.1, 0.1], 0.1, 0),
        ([1, 1 + 1e-13], 1, 0),  # what rounding may leave is no deviation
        ([0, 0], 0, 0),
        ([1, 1], 1, 0),
        ([None, None], 0, 0),
    ],
    ids=itertools.count(),
)
def test_mean_and_deviation_by_hand(values: list[float | None], mean: float, deviation: float) -> None:
    learned = learn(pa.array(values, pa.float64()), "numeric").numeric["a"]
    np.testing.assert_allclose(learned, (mean, deviation), rtol=1e-12)
    assert (learned[1] == 0) == (deviation == 0)


@pytest.mark.parametrize("deviation", [0.0, 2.0])
def test_numbers_are_standardised_and_missing_ones_counted(deviation: float) -> None:
    found, missing = Encoding(numeric={"a": (3.0, deviation)}).encode(table(a=[1.0, None, 7.0]))
    assert (found.dtype, missing) == (np.float32, {"a": 1})
    assert found[:, 0].tolist() == ([-1, 0, 2] if deviation else [0, 0, 0])


def test_a_number_too_far_from_the_mean_is_refused() -> None:
    with pytest.raises(FewnodeError) as caught:
        Encoding(numeric={"a": (3.0, 2.0)}).encode(table(a=[1.0, None, -1e300, 1e301]))
    problem = "-1e+300 is too far from the mean 3 to be standardised"
    assert str(caught.value) == f"t: data row 3, column 'a': {problem}"


# --- categories ---------------------------------------------------------------------------------------------------


def test_a_column_may_have_as_many_categories_as_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encode, "MAX_CATEGORIES", 1200)
    cells = [f"c{i:04}" for i in range(1200)]
    assert learn([*cells[::-1], None, *cells], "category").category == {"a": tuple(cells)}
    with pytest.raises(FewnodeError) as caught:
        learn([*cells, "one more"], "category")
    message = "t: column 'a' has 1,201 distinct values, too many for categories; is it text?"
    assert str(caught.value) == message


def test_a_column_without_categories_has_no_attributes() -> None:
    cells = pa.array([None, " "], pa.string())
    encoding = learn(cells, "category")
    x, unknown = encoding.encode(table(a=cells))
    assert (encoding.category, x.shape, unknown) == ({"a": ()}, (2, 0), {"a": 2})


# --- all together -------------------------------------------------------------------------------------------------


def test_blocks_stand_in_order_and_are_single_precision() -> None:
    rows = table(c=["q", "p", None], n=[1.0, 3.0, None], t=["red", "fox red", None], m=[5.0, 5.0, 5.0])
    roles = {"c": "category", "n": "numeric", "t": "text", "m": "numeric"}
    encoding = Encoding.learn(rows, roles, WORDS)
    assert encoding.columns == ["t", "n", "m", "c"]
    assert encoding.counts == {"words": 2, "numbers": 2, "categories": 2, "in vectors": 0, "missing flags": 1}
    assert encoding.feature_names == ("fox", "red", "n (number)", "m (number)", "c=p", "c=q", "n (missing)")
    x, unknown = encoding.encode(rows)
    assert isinstance(x, sp.csr_array)
    assert x.dtype == np.float32
    assert x.toarray().tolist() == [[0, 1, -1, 0, 0, 1, 0], [1, 1, 1, 0, 1, 0, 0], [0, 0, 0, 0, 0, 0, 1]]
    assert unknown == {"n": 1, "m": 0, "c": 1}


@pytest.mark.parametrize(
    ("role", "expected", "kind"),
    [
        ("numeric", [[-1], [1]], np.ndarray),
        ("text", [[1], [0]], sp.csr_array),
        ("category", [[0, 1], [1, 0]], sp.csr_array),
        ("none", [[], []], sp.csr_array),
    ],
)
def test_one_column_alone(role: str, expected: list[list[float]], kind: type) -> None:
    cells = ["red", "1"] if role != "numeric" else ["1", "3"]
    x, _ = learn(cells, role).encode(table(a=cells))
    assert (type(x), x.dtype) == (kind, np.float32)
    assert (x.toarray() if isinstance(x, sp.csr_array) else x).tolist() == expected


def test_what_is_stored_of_an_encoding() -> None:
    scale = VectorScale((0.5, -1.0), 3.0)
    encoding = Encoding(("t", "u"), ("fox", "red"), {"n": (1.5, 2.0)}, {"c": ("p", "q")}, {"v": scale}, ("n", "v"))
    stored = {
        "text": {"columns": ["t", "u"], "vocabulary": ["fox", "red"]},
        "numeric": [{"column": "n", "mean": 1.5, "deviation": 2.0}],
        "category": [{"column": "c", "values": ["p", "q"]}],
        "vector": [{"column": "v", "mean": [0.5, -1.0], "deviation": 3.0}],
        "flags": ["n", "v"],
    }
    assert encoding.to_json() == stored
    assert Encoding.from_json(stored) == encoding
    for name in stored:
        with pytest.raises(FewnodeError) as caught:
            Encoding.from_json({**stored, name: 7})
        assert str(caught.value) == "the stored encoding of its columns is not one that fewnode wrote"


# --- what a column looks like -------------------------------------------------------------------------------------


def guess(rows: Table, column: str) -> tuple[str | None, str]:
    return guess_role(NodeRows((NodeTable(rows, "no id", None),)), column)


FIFTY = [f"word{i}" for i in range(50)]


@pytest.mark.parametrize(
    ("cells", "role", "why"),
    [
        ([1, 2], "numeric", "numbers"),
        ([1.5, None], "numeric", "numbers"),
        (["1", "", "2.5"], "numeric", "numbers"),
        ([True, True, False, False], "category", "2 distinct values"),
        (pa.array([1], pa.timestamp("s")), None, "dates or times, timestamp[s]"),
        (pa.array([1], pa.date32()), None, "dates or times, date32[day]"),
        ([{"b": 1}], None, "nested, struct<b: int64>"),
        (pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())), None, "nested, map<string, int64>"),
        (["31.01.2024", "1.2.2024 12:30", None], None, "dates"),
        (["01/31/2024", "2024-01-31T12:00"], None, "dates"),
        (["", None, " "], None, "empty"),
        ([*FIFTY, *FIFTY], "category", "50 distinct values"),
        ([*FIFTY, *FIFTY, None], "category", "50 distinct values"),
        ([*FIFTY, *FIFTY[1:], None], None, "50 distinct values of 1.0 words; --text or --category uses it"),
        ([f"word{i}" for i in range(100)] * 2, "category", "100 distinct values"),
        ([f"word{i}" for i in range(101)] * 2, None, "101 distinct values of 1.0 words; --text or --category uses it"),
        ([f"word{i}" for i in range(1001)], None, "1,001 distinct values of 1.0 words; --text or --category uses it"),
        (["two words", "three\t small words", "word", None], "text", "2.0 words a cell"),
        (
            ["two words", "two  more", "word", None],
            None,
            "3 distinct values of 1.7 words; --text or --category uses it",
        ),
    ],
    ids=itertools.count(),
)
def test_what_a_column_is_taken_for_and_why(cells: Any, role: str | None, why: str) -> None:
    assert guess(table(a=cells), "a") == (role, why)


def test_a_column_without_a_name_is_not_taken() -> None:
    assert guess(Table("t", pa.table({"": [1, 2]})), "") == (None, "no name")
