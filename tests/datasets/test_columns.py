"""Columns as labels, numbers and vectors: what is missing is unknown, what is ambiguous is asked for."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from fewnode.datasets import columns
from fewnode.datasets.arrow import Dialect, Table
from fewnode.errors import FewnodeError


def table(cells: Any, **dialect: Any) -> Table:
    return Table("t", pa.table({"a": cells}), ("a",), Dialect(**dialect))


def refusal(method: str, cells: Any, **dialect: Any) -> str:
    with pytest.raises(FewnodeError) as caught:
        getattr(table(cells, **dialect), method)("a")
    return str(caught.value).removeprefix("t: ")


# --- labels -------------------------------------------------------------------------------------------------------


def test_words_for_a_missing_value_are_no_classes() -> None:
    words = ["NA", "N/A", "#N/A", "NaN", "nan", "None", "NULL", "null", "-"]
    found = table(["x", *words, "NA ", "", None, "na-me"])
    assert found.labels("a").to_pylist() == ["x", *[None] * 12, "na-me"]
    assert found.missing_tokens("a") == {**dict.fromkeys(words, 1), "NA": 2}
    assert found.texts("a").to_pylist()[1:4] == words[:3]


def test_more_words_for_a_missing_value_and_none() -> None:
    cells = ["x", "NA", "unknown", ""]
    assert table(cells, missing=("unknown",)).labels("a").to_pylist() == ["x", None, None, None]
    assert table(cells, missing=("",)).labels("a").to_pylist() == ["x", "NA", "unknown", None]
    assert table(cells, missing=("",)).missing_tokens("a") == {}


# --- numbers ------------------------------------------------------------------------------------------------------

nan = np.nan


@pytest.mark.parametrize(
    ("cells", "dialect", "numbers"),
    [
        (["1", "N/A", "-", "", "2.5", "nan"], {}, [1, nan, nan, nan, 2.5, nan]),
        (["1,5", "2", "NA"], {}, [1.5, 2, nan]),
        (["0,123", "1,234"], {}, [0.123, 1.234]),  # no thousands begin with a zero
        (["1.234,5", "2"], {}, [1234.5, 2]),
        (["1,234,567", "1,234"], {}, [1234567, 1234]),
        (["1,234.5", "1,234"], {}, [1234.5, 1234]),
        (["1,234"], {"decimal": ","}, [1.234]),
        (["1,234"], {"decimal": "."}, [1234]),
        (["1.234"], {"decimal": ","}, [1234]),
        (["1.234"], {}, [1.234]),
        (["1e5", "-2,5e3", ",5", "+3,"], {}, [1e5, -2500, 0.5, 3]),
        (["1", "x"], {"missing": ("x",)}, [1, nan]),
        ([1.0, nan, None], {}, [1, nan, nan]),
        (pa.array([b"1", b"2,5"]), {}, [1, 2.5]),
        (pa.array(["1", "NA"]).dictionary_encode(), {}, [1, nan]),
    ],
    ids=itertools.count(),
)
def test_numbers_and_missing_ones(cells: Any, dialect: dict[str, Any], numbers: list[float]) -> None:
    found = table(cells, **dialect)
    np.testing.assert_array_equal(found.numbers("a"), numbers)
    assert found.is_numeric("a")
    assert found.not_numbers("a") == (0, "")


@pytest.mark.parametrize(
    ("cells", "dialect", "odd"),
    [
        (["1", "2", "about 3", "?"], {}, (1, "about 3")),
        (["1,5", "2.5", "3,5"], {}, (1, "2.5")),
        (["1,5", "2"], {"decimal": "."}, (1, "1,5")),
        (["1.5", "2"], {"decimal": ","}, (1, "1.5")),
        (["1", "NA"], {"missing": ("",)}, (1, "NA")),
        (["."], {}, (1, ".")),
        (["NA", ""], {}, (0, "")),
        (["x", "y"], {}, (2, "x")),
        (pa.array([], pa.string()), {}, (0, "")),
        ([True, False], {}, (2, "true")),
        ([[1], [2]], {}, (0, "")),
    ],
    ids=itertools.count(),
)
def test_columns_that_are_not_numeric(cells: Any, dialect: dict[str, Any], odd: tuple[int, str]) -> None:
    found = table(cells, **dialect)
    assert not found.is_numeric("a")
    assert found.not_numbers("a") == odd


def test_a_number_that_may_be_two_is_asked_for() -> None:
    message = "data row 2, column 'a': '1,234' may be a fraction or thousands; say --decimal , or --decimal ."
    assert refusal("numbers", ["7", "1,234", "2,345"]) == message
    assert table(["7", "1,234"]).is_numeric("a")  # what it is, is known; only not which
    message = "data row 2, column 'a': '1.200' may be a fraction or thousands; say --decimal , or --decimal ."
    assert refusal("numbers", ["950", "1.200", "0", "12.500", ""]) == message
    for cells in (
        ["950", "1.200"],
        ["1.200", "12.500"],
        ["7", "1.200", "12.5", "3.125"],
        ["0.125", "2", "1.125", "3.250"],
    ):
        assert table(cells).numbers("a").tolist() == list(map(float, cells))
    assert table(["950", "1.200", "12.500"], decimal=",").numbers("a").tolist() == [950, 1200, 12500]


def test_a_word_among_numbers_is_named_with_the_remedy() -> None:
    assert refusal("numbers", ["1", "x"]).startswith("data row 2, column 'a': found 'x', expected a number (leave the")
    assert refusal("numbers", ["1", "inf"]).startswith("data row 2, column 'a': inf is no finite number")
    assert "--missing" in refusal("numbers", ["1", "NaN", "x"])


# --- ids ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "digits"), [(np.float16, 11), (np.float32, 24), (np.float64, 53)])
@pytest.mark.parametrize("sign", [1, -1])
def test_floats_that_cannot_tell_ids_apart_are_refused(kind: type, digits: int, sign: int) -> None:
    last = sign * (2**digits - 1)
    assert table(pa.array(np.array([1, last], kind))).texts("a").to_pylist() == ["1", str(last)]
    message = refusal("texts", pa.array(np.array([1, sign * 2**digits], kind)))
    assert message.startswith(f"data row 2, column 'a': {sign * 2**digits} as ")
    assert message.endswith(f"beyond 2^{digits} not all fit); store the column as integers or text")
    assert len(table(pa.array(np.array([0.5, 2**digits], kind))).texts("a")) == 2  # these are no ids


# --- vectors ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cells", "vectors"),
    [
        ([[0.5, 2.0], [3.0, 4.0]], [[0.5, 2], [3, 4]]),
        (pa.array([[1, 2], [3, 4]], pa.list_(pa.float32(), 2)), [[1, 2], [3, 4]]),
        (pa.array([[1, 2], [3, 4]], pa.large_list(pa.int8())), [[1, 2], [3, 4]]),
        (pa.array([np.array([1, 2], np.float16)]), [[1, 2]]),
        ([[2**60 + 1]], [[2**60]]),
        (["[0.5, 2]", "[3,4]"], [[0.5, 2], [3, 4]]),
        (["[0.5 2 ]", " [ 3  4]"], [[0.5, 2], [3, 4]]),
        (["[1e-3, -2E+3,]"], [[0.001, -2000]]),
    ],
    ids=itertools.count(),
)
@pytest.mark.parametrize("rows", [1, 1 << 14])
def test_vectors(cells: Any, vectors: list[list[float]], rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "SLICE", rows)
    found = table(cells)
    assert found.is_vector("a")
    assert not found.is_numeric("a")
    assert found.vectors("a").dtype == np.float32
    np.testing.assert_array_equal(found.vectors("a"), np.array(vectors, np.float32))


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ([[1, 2], [3]], "data row 2, column 'a': a vector of 1 numbers, expected 2 as in data row 1"),
        (["[1,2]", "[3]"], "data row 2, column 'a': a vector of 1 numbers, expected 2 as in data row 1"),
        ([[1.0], None], "data row 2, column 'a': empty, expected a vector in every row"),
        (["[1]", "NA"], "data row 2, column 'a': empty, expected a vector in every row"),
        ([[1.0, 2], [1, None]], "data row 2, column 'a': number 2 of the vector is 'None', expected a finite number"),
        (["[1, 2]", "[null, 1]"], "data row 2, column 'a': number 1 of the vector is 'null', expected a finite number"),
        ([[1.0], [nan]], "data row 2, column 'a': number 1 of the vector is 'nan', expected a finite number"),
        (["[1]", "[-inf]"], "data row 2, column 'a': number 1 of the vector is '-inf', expected a finite number"),
        ([[1.0], [1e300]], "data row 2, column 'a': number 1 of the vector is '1e+300', expected a finite number"),
        (["[1,,2]"], "data row 1, column 'a': number 2 of the vector is '', expected a finite number"),
        ([[1], []], "data row 2, column 'a': a vector of 0 numbers, expected 1 as in data row 1"),
        (
            pa.array([[], []], pa.list_(pa.int8())),
            "data row 1, column 'a': a vector of 0 numbers, expected at least one",
        ),
        (["[1, 2]", "1, 2"], "data row 2, column 'a': found '1, 2', expected numbers such as [0.1, 0.2]"),
        (["[[1]]"], "data row 1, column 'a': found '[[1]]', expected numbers such as [0.1, 0.2]"),
        ([["x"]], "data row 1, column 'a': found list<item: string>, expected lists of numbers"),
    ],
    ids=itertools.count(),
)
@pytest.mark.parametrize("rows", [1, 1 << 14])
def test_what_is_no_vector_is_told_with_its_row(
    cells: Any, message: str, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(columns, "SLICE", rows)
    assert refusal("vectors", cells).replace("element:", "item:") == message


def test_no_vectors_at_all() -> None:
    assert table(pa.array([], pa.list_(pa.float32()))).vectors("a").shape == (0, 0)
    for cells in ([["x"]], [[True]], ["x"], ["", None], [1], [{"b": 1}]):
        assert not table(cells).is_vector("a")
