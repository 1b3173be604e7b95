"""Words: how they are counted, which are chosen, and words as people write them, found in a vocabulary as it is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewnode.errors import FewnodeError
from fewnode.tables.words import Vocabulary, choose_vocabulary, encode, words


def matched(text: str, *vocabulary: str) -> list[str]:
    return [match.matched for match in Vocabulary(vocabulary).read(text).matches]


FORMS = (
    "e-mail:mail e-mail:email e‑mails:email email:emails emails:email emails:mail E-MAIL:email wi-fi:wifi "
    "libraries:library movies:movie boxes:box classes:class caches:cache library:libraries "
    "filtering:filter running:run filing:file embedded:embed stored:store recordings:record "
    "filtered:filtering naïve:naive cafe\u0301:café python3:python user's:users co-operate:operate "
)
"""Words as people write them, and the word of the vocabulary that they are a form of."""
NO_FORMS = "event:vent status:statu string:str speed:spe filing:filling"


@pytest.mark.parametrize("pair", FORMS.split())
def test_forms_of_a_word(pair: str) -> None:
    given, known = pair.split(":")
    assert matched(given, known) == [known]


@pytest.mark.parametrize("pair", NO_FORMS.split())
def test_what_is_no_form_of_a_word(pair: str) -> None:
    assert matched(*pair.split(":")) == []


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


TEXTS = ["red fox, red den", "red owl", "the blue owl", "blue whale"]


def test_counts_by_hand() -> None:
    counts = encode([*TEXTS, "", "unknown"], ("blue", "owl", "red"))
    assert counts.dtype == np.float32
    assert counts.indices.dtype == counts.indptr.dtype == np.int32
    assert counts.has_canonical_format
    expected = [[0, 0, 2], [0, 1, 1], [1, 1, 0], [1, 0, 0], [0, 0, 0], [0, 0, 0]]
    np.testing.assert_array_equal(counts.toarray(), expected)


def test_impossible_vocabularies_are_refused() -> None:
    with pytest.raises(FewnodeError, match=r"^vocabulary of 0 words, expected at least 1$"):
        choose_vocabulary(TEXTS, size=0)
    with pytest.raises(FewnodeError, match=r"^the vocabulary has 2 repeated words$"):
        encode(TEXTS, ("owl", "owl", "fox", "owl"))


def test_words_that_do_not_fit_are_counted_in_files(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    texts = [" ".join(f"w{chr(97 + i % 26)}{chr(97 + i // 26)}" for i in rng.integers(0, 400, 9)) for _ in range(300)]
    whole = choose_vocabulary(texts, size=120)
    monkeypatch.setattr("fewnode.tables.words.MAX_HELD", 50)
    assert choose_vocabulary(texts, size=120) == whole
