"""Words as people write them, found in a vocabulary as it is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewnode.tables.bag import encode, words
from fewnode.tables.vocabulary import Vocabulary


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


def test_names_that_are_no_single_word_are_left_out() -> None:
    vocabulary = Vocabulary(("New York", "Mail", "mail", "size=7", "x"))
    assert vocabulary.column == {"mail": 1}
    assert not vocabulary.speaks
    assert Vocabulary(("mail", "f1", "send")).speaks
    assert not Vocabulary(("f1", "f2", "send")).speaks
    assert not Vocabulary(()).speaks


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
