"""The bag of words: what is a word, which words are chosen, and that counts come out right."""

import numpy as np
import pytest

from fewnode.errors import FewnodeError
from fewnode.tables.bag import choose_vocabulary, encode

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
    monkeypatch.setattr("fewnode.tables.bag.MAX_HELD", 50)
    assert choose_vocabulary(texts, size=120) == whole
