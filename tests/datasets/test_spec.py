"""What is said about tables: one model at every door, which refuses what means nothing."""

from __future__ import annotations

from typing import Any

import pytest

from fewnode import ImportSpec, read_tables
from fewnode.errors import FewnodeError


def spec(**given: Any) -> ImportSpec:
    return ImportSpec.of({name: value for name, value in given.items() if value is not None})


@pytest.mark.parametrize("given", ["", ";;", "a", "7", '"', "\n", "\r", "\0", "·", "comma"])
def test_what_cannot_separate_is_refused(given: str) -> None:
    with pytest.raises(
        FewnodeError, match=r"^separator: found .*, expected one character such as ; or \|, or tab or space$"
    ):
        spec(separator=given)


NO_TEXT = (
    "rot13",
    "hex",
    "zlib",
    "base64",
    "idna",
    "punycode",
    "unicode_escape",
    "raw_unicode_escape",
    "utf-7",
    "cp037",
)


@pytest.mark.parametrize("name", [*NO_TEXT, "undefined", "no such one", "a\0b", "", "../x", "ü", "x" * 10_000])
def test_what_is_no_encoding_of_text_is_refused(name: str) -> None:
    with pytest.raises(FewnodeError, match=r"not known for text; try latin-1, cp1252, utf-16 or utf-8$") as caught:
        spec(encoding=name)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"lable": "x"}, "there is no option 'lable' (did you mean 'label'?)"),
        ({"weight": "a", "relation": "a"}, "weight and relation are two columns, and the two of them have one name"),
        ({"min_count": 0}, "expected at least 1, 0 to 1, at least 1"),
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
