"""The bag of words: what is a word, which words are chosen, and that counts come out right."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewnode.errors import FewnodeError
from fewnode.tables.bag import STOP_WORDS, choose_vocabulary, encode, words

TEXTS = ["red fox, red den", "red owl", "the blue owl", "blue whale"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Real-time X11 game", ["real", "time", "x11", "game"]),
        ("C++ is 3d, in 2024", ["is", "in"]),
        ("snake_case\nvi\tQt", ["snake", "case", "vi", "qt"]),
        ("Größe naïve", ["größe", "naïve"]),
        ("", []),
    ],
)
def test_words_start_with_a_letter_and_are_lower_case(text: str, expected: list[str]) -> None:
    assert words(text) == expected


def test_vocabulary_is_sorted_and_drops_rare_common_and_stop_words() -> None:
    assert choose_vocabulary(TEXTS) == ("blue", "owl", "red")
    assert choose_vocabulary(TEXTS, min_documents=1) == ("blue", "den", "fox", "owl", "red", "whale")
    assert "the" in choose_vocabulary(TEXTS, min_documents=1, stop_words=())
    assert choose_vocabulary([*TEXTS, "red", "red"], max_share=0.5) == ("blue", "owl")


def test_the_size_limit_prefers_frequent_words_then_those_that_sort_first() -> None:
    assert choose_vocabulary([*TEXTS, "owl", "x"], size=2) == ("blue", "owl")


def test_counts_by_hand() -> None:
    counts = encode([*TEXTS, "", "unknown"], ("blue", "owl", "red"))
    assert counts.dtype == np.float32
    assert counts.indices.dtype == counts.indptr.dtype == np.int32
    assert counts.has_canonical_format
    expected = [[0, 0, 2], [0, 1, 1], [1, 1, 0], [1, 0, 0], [0, 0, 0], [0, 0, 0]]
    np.testing.assert_array_equal(counts.toarray(), expected)


def test_no_documents_and_no_words() -> None:
    assert choose_vocabulary([]) == ()
    assert encode([], ("owl",)).shape == (0, 1)
    assert encode(["owl"], ()).shape == (1, 0)


def test_impossible_vocabularies_are_refused() -> None:
    with pytest.raises(FewnodeError, match=r"^vocabulary of 0 words, expected at least 1$"):
        choose_vocabulary(TEXTS, size=0)
    with pytest.raises(FewnodeError, match=r"^the vocabulary has 2 repeated words$"):
        encode(TEXTS, ("owl", "owl", "fox", "owl"))


def test_a_vocabulary_may_have_one_word_and_has_ten_thousand_if_nothing_is_said() -> None:
    assert choose_vocabulary(TEXTS, size=1) == ("blue",)
    text = " ".join(f"w{i:05}" for i in range(10_001))
    assert choose_vocabulary([text, text, "", ""]) == tuple(f"w{i:05}" for i in range(10_000))


def test_a_word_in_just_as_many_documents_as_allowed_stays() -> None:
    assert choose_vocabulary(["red", "red fox", "fox", "den", "red"], min_documents=2, max_share=0.6) == ("fox", "red")
    assert choose_vocabulary(["red", "red fox", "fox", "den", "red"], min_documents=3, max_share=0.6) == ("red",)
    assert choose_vocabulary(["red", "red fox", "fox", "den", "red"], min_documents=2, max_share=0.59) == ("fox",)


def test_many_words_are_counted_in_single_precision() -> None:
    counts = encode(["owl " * 100], ("owl",))
    assert (counts.dtype, counts.indices.dtype, counts.toarray().tolist()) == (np.float32, np.int32, [[100]])


@given(st.lists(st.text(max_size=30), max_size=8))
def test_a_new_text_gets_the_row_it_would_have_had_among_others(texts: list[str]) -> None:
    vocabulary = choose_vocabulary(texts, min_documents=1, max_share=1)
    assert list(vocabulary) == sorted({word for text in texts for word in words(text)} - STOP_WORDS)
    together = encode(texts, vocabulary).toarray()
    for i, text in enumerate(texts):
        np.testing.assert_array_equal(encode([text], vocabulary).toarray(), together[[i]])
    assert together.sum() == sum(word not in STOP_WORDS for text in texts for word in words(text))


def test_words_that_do_not_fit_are_counted_in_files(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    texts = [" ".join(f"w{chr(97 + i % 26)}{chr(97 + i // 26)}" for i in rng.integers(0, 400, 9)) for _ in range(300)]
    whole = choose_vocabulary(texts, size=120)
    monkeypatch.setattr("fewnode.tables.bag.MOST_HELD", 50)
    assert choose_vocabulary(texts, size=120) == whole
