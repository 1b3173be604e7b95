"""Words as people write them, found in a vocabulary as it is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewnode.tables.bag import encode, words
from fewnode.tables.vocabulary import Vocabulary, is_code


def matched(text: str, *vocabulary: str) -> list[str]:
    return [match.matched for match in Vocabulary(vocabulary).read(text).matches]


@pytest.mark.parametrize(
    ("given", "vocabulary", "expected"),
    [
        ("e-mail", "mail", ["mail"]),  # as the tokeniser reads it in the text of a node
        ("e-mail", "email", ["email"]),
        ("e‑mails", "email", ["email"]),
        ("email", "emails", ["emails"]),
        ("emails", "email", ["email"]),
        ("emails", "mail", ["mail"]),
        ("E-MAIL", "email", ["email"]),
        ("event", "vent", []),
        ("wi-fi", "wifi", ["wifi"]),
        ("libraries", "library", ["library"]),
        ("movies", "movie", ["movie"]),
        ("boxes", "box", ["box"]),
        ("classes", "class", ["class"]),
        ("caches", "cache", ["cache"]),
        ("library", "libraries", ["libraries"]),
        ("filtering", "filter", ["filter"]),
        ("running", "run", ["run"]),
        ("filing", "file", ["file"]),
        ("embedded", "embed", ["embed"]),
        ("stored", "store", ["store"]),
        ("recordings", "record", ["record"]),
        ("filtered", "filtering", ["filtering"]),
        ("naïve", "naive", ["naive"]),
        ("cafe\u0301", "café", ["café"]),
        ("python3", "python", ["python"]),
        ("user's", "users", ["users"]),
        ("status", "statu", []),
        ("string", "str", []),
        ("speed", "spe", []),
        ("filing", "filling", []),
        ("co-operate", "operate", ["operate"]),
    ],
)
def test_forms_of_a_word(given: str, vocabulary: str, expected: list[str]) -> None:
    assert matched(given, vocabulary) == expected


def test_the_word_itself_is_preferred_to_its_forms_and_the_shortest_form_to_others() -> None:
    assert matched("files filing", "file", "files", "filing") == ["files", "filing"]
    assert matched("filters", "filtering", "filtered") == ["filtered"]


def test_halves_of_a_word_only_if_they_are_found_together() -> None:
    vocabulary, asked = Vocabulary(("wi", "fi", "old", "libs")), []

    def together(one: str, other: str) -> bool:
        asked.append((one, other))
        return one == "wi"

    found = vocabulary.read("wifi oldlibs", together)
    assert [tuple(match) for match in found.matches] == [("wifi", "wi"), ("wifi", "fi")]
    assert found.unknown == ("oldlibs",)
    assert asked == [("wi", "fi"), ("old", "libs")]


def test_what_is_not_known_is_told_once_and_fillers_are_not() -> None:
    found = Vocabulary(("mail",)).read(
        "A mail server, or anything with which I don't send 'mail': the C# server; R, C++."
    )
    assert [tuple(match) for match in found.matches] == [("mail", "mail"), ("mail", "mail")]
    assert found.unknown == ("server", "send", "c#", "r", "c++")


def test_a_filler_counts_where_it_is_in_the_vocabulary() -> None:
    assert matched("something about the mail", "the", "mail", "something") == ["something", "the", "mail"]


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("balance > 10,000 and 2.5mm", ("10,000", "2.5")),
        ("since 2020-01-02, 10:30", ("2020-01-02", "10:30")),
        ("3D on the 2nd of May, 802.11b", ("3d", "2nd", "802.11b")),
        ("5 and 5", ("5",)),
        ("x11 mp3 utf8", ()),
    ],
)
def test_numbers_are_told(text: str, numbers: tuple[str, ...]) -> None:
    assert Vocabulary(("mail",)).read(text).numbers == numbers


def test_nearest_words() -> None:
    vocabulary = Vocabulary(("library", "librarian", "liberty", "zebra"))
    assert vocabulary.nearest("libary") == ("library", "liberty", "librarian")
    assert vocabulary.nearest("libary", count=1) == ("library",)
    assert vocabulary.nearest("qq") == vocabulary.nearest("xylo") == ()


def test_names_that_are_no_single_word_are_left_out() -> None:
    vocabulary = Vocabulary(("New York", "Mail", "mail", "size=7", "x"))
    assert vocabulary.column == {"mail": 1}
    assert not vocabulary.speaks
    assert Vocabulary(("mail", "f1", "send")).speaks
    assert not Vocabulary(("f1", "f2", "send")).speaks
    assert not Vocabulary(()).speaks


@pytest.mark.parametrize(("word", "code"), [("c17", True), ("17", True), ("x", True), ("x11r", False), ("mail", False)])
def test_codes(word: str, code: bool) -> None:
    assert is_code(word) == code


@given(st.text(max_size=60))
def test_a_text_that_the_tokeniser_knows_is_read_as_it_does(text: str) -> None:
    vocabulary = Vocabulary(tuple(dict.fromkeys(words(text))))
    row = encode([text], list(vocabulary.names)).toarray()[0]
    found = [match.matched for match in vocabulary.read(text).matches]
    if text.isascii() and not any(c.isdigit() for c in text):
        assert sorted(found) == sorted(words(text))
        assert [found.count(name) for name in vocabulary.names] == row.tolist()


@given(st.text(max_size=60), st.lists(st.text(min_size=1, max_size=8), max_size=5))
def test_no_text_breaks_it(text: str, names: list[str]) -> None:
    vocabulary = Vocabulary(tuple(names))
    found = vocabulary.read(text, lambda one, other: True)
    assert {match.matched for match in found.matches} <= set(vocabulary.column)
    for word in found.unknown:
        assert set(vocabulary.nearest(word)) <= set(vocabulary.column)
