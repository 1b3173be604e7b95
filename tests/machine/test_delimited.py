"""How tables of text are written: what is recognised, what must be said, and rows that are never swallowed."""

import pytest

from fewnode._system.sheets import (
    MAX_COLUMNS,
    column_names,
    first_lines,
    recognise_separator,
    rows,
)
from fewnode.errors import FewnodeError

# --- separators ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "separator"),
    [
        ("a,b\n1,2\n", ","),
        ("a;b\n1,5;2,5\n", ";"),
        ("a\tb\n1, 2\tx; y\n", "\t"),
        ("a|b\n1,2|3\n", "|"),
        ("id;label\n", ";"),
        ("id,text\na,x;y\nb,z;w\n", ","),  # all rows hold it, but not the header
        ("id,text\na,x|y|z\nb,z\n", ","),
        ('id,"text; long"\na,x\n', ","),
        ('id;"size, cm";label\na;"1,5";x\nb;"2,5";y\n', ";"),  # a comma would cut through the quotes
        ("id;label\na;x\nb\n", ";"),  # a broken row is told later, with its line
        ("id,a;b\n1,2\n", ","),
        ("\nid;label\n\na;x\n", ";"),
        ("id\na\n", ","),
        ("text\na;b\nc;d\n", ","),
        ("", ","),
        ("a b\n", ","),
        ("a,b\r1,2\r", ","),  # lines are cut by others
    ],
)
def test_separators_are_recognised(text: str, separator: str) -> None:
    assert recognise_separator("t", text.splitlines(keepends=True)) == separator


@pytest.mark.parametrize("text", ["id,a|b\n1,x|y\n", "a;b,c\n1;2,5\n"])
def test_what_could_be_either_is_asked_for(text: str) -> None:
    with pytest.raises(FewnodeError, match=r"^t: it reads as 2 columns by ',' and 2 columns by .*`separator`$"):
        recognise_separator("t", text.splitlines(keepends=True))


def test_the_first_line_is_not_taken_apart_if_it_is_too_wide() -> None:
    assert recognise_separator("t", [";" * (MAX_COLUMNS - 1)]) == ";"
    with pytest.raises(FewnodeError, match=r"^t: line 1: over 10,000 columns; a column can hold a vector of numbers$"):
        recognise_separator("t", [";" * MAX_COLUMNS])


def test_lines_that_are_too_long_to_look_at_are_left_out() -> None:
    long = "x" * (1 << 20)
    assert first_lines([long, "a"]) == [long]
    assert first_lines(["a", "b", long, "c"]) == ["a", "b"]
    assert first_lines(map(str, range(50))) == [str(i) for i in range(20)]


# --- rows ---------------------------------------------------------------------------------------------------------


LOST = "a quoted cell does not end on this line; is a quote missing?"


@pytest.mark.parametrize(
    ("text", "multiline", "message"),
    [
        ("a,b\n1\n", False, "line 2: 1 cells, expected 2"),
        ("a,b\n1,2\n3,4,5\n", True, "line 3: 3 cells, expected 2"),
        ('a,b\n1,"2\n3,4\n5,6"\n', False, f"line 2: {LOST} (so)"),
        ('a,b\n"1,2\n3,4\n"5,6\n', False, f"line 2: {LOST}"),
        ('a,b\n"1,2\n3,4\n"5,6\n', True, f"line 2: {LOST}"),
        ('a,b\n1,2\n3,"4\n', False, f"line 3: {LOST}"),
        ('a,b\n1,2\n3,"4\n' + "5,6\n" * 50_000 + '"\n', True, f"line 3: {LOST}"),
        ('a,b\n1,"2"3\n', False, "line 2: ',' expected after '\"'"),
        ("a,b\n1" + "," * 1_000_001, False, "line 2: over 1,000,000 separators ','"),
        ("a,b\n1," + "x" * 200_000, False, "line 2: field larger than field limit (131072)"),
    ],
)
def test_a_row_that_is_none_is_told_with_the_line_it_begins_on(text: str, multiline: bool, message: str) -> None:
    with pytest.raises(FewnodeError) as caught:
        list(rows("t", text.splitlines(keepends=True), ",", multiline=multiline, remedy=" (so)"))
    assert str(caught.value) == f"t: {message}"


def test_column_names() -> None:
    assert column_names("t", [" a", 7]) == ["a", "7"]
    for header, message in [
        (["a", "b", "a "], "column 'a' is there twice; rename one"),
        (["a", "", " "], "several columns without a name; name them"),
        (range(MAX_COLUMNS + 1), "over 10,000 columns; a column can hold a vector of numbers"),
    ]:
        with pytest.raises(FewnodeError, match=f"^t: {message}$"):
            column_names("t", header)
