"""Bag of words: texts as sparse rows of word counts, over a vocabulary that is a plain tuple of words."""

from __future__ import annotations

import re
import sqlite3
from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from contextlib import closing

import numpy as np
import scipy.sparse as sp

from fewnode.errors import FewnodeError

_STOP_WORDS = (
    "about after all also although an and another any are as at be because been before being between both but by can "
    "could do does each either etc even every few for from had has have having he her here him his how however if in "
    "into is it its itself just less like many may might more most much must no nor not of off on once one only or "
    "other others our out over own same several she should since so some still such than that the their them then "
    "there therefore these they this those through thus to too two under until up upon us use used uses using very "
    "via was we well were what when where whether which while who whose why will with within without would yet you "
    "your "
)
STOP_WORDS = frozenset(_STOP_WORDS.split())
"""English words that tell classes of texts apart by their style, hardly by their subject."""

MAX_HELD = 1 << 21
"""Different words that are counted in memory at once, some 200 MB; more of them are counted in a file."""

_WORD = re.compile(r"[^\W\d_][^\W_]+")


def words(text: str) -> list[str]:
    """The lower-case words of `text` in reading order: a letter, then one or more letters or digits.

    Two characters are enough, as `go`, `qt` and `tk` are names; a lone letter is mostly an initial or an article.
    """
    return _WORD.findall(text.lower())


def choose_vocabulary(
    documents: Iterable[str],
    *,
    size: int = 10_000,
    min_documents: int = 2,
    max_share: float = 0.5,
    stop_words: Collection[str] = STOP_WORDS,
) -> tuple[str, ...]:
    """The `size` words that are in most documents, sorted.

    A word in fewer than `min_documents` documents cannot be learned from, and one in more than `max_share` of them
    tells nothing. Ties at the size limit fall to the word that sorts first, so the choice depends on nothing else.
    """
    if size < 1:
        raise FewnodeError(f"vocabulary of {size} words, expected at least 1")
    counts, n, stopped = Counter[str](), 0, frozenset(stop_words)
    with closing(sqlite3.connect("")) as overflow:  # a file of SQLite's own, which goes with the connection
        overflow.execute("CREATE TABLE counts (word TEXT PRIMARY KEY, count INTEGER) WITHOUT ROWID")

        def write() -> None:
            add = "INSERT INTO counts VALUES (?, ?) ON CONFLICT DO UPDATE SET count = count + excluded.count"
            overflow.executemany(add, sorted(counts.items()))
            counts.clear()

        for document in documents:
            counts.update(set(words(document)) - stopped)
            n += 1
            if len(counts) > MAX_HELD:
                write()
        write()
        fit = "SELECT word FROM counts WHERE count BETWEEN ? AND ? ORDER BY count DESC, word LIMIT ?"
        return tuple(sorted(word for (word,) in overflow.execute(fit, (min_documents, max_share * n, size))))


def encode(documents: Iterable[str], vocabulary: Sequence[str]) -> sp.csr_array:
    """Word counts as float32, a row per document and a column per word; words outside the vocabulary are ignored."""
    column = {word: i for i, word in enumerate(vocabulary)}
    if len(column) < len(vocabulary):
        raise FewnodeError(f"the vocabulary has {len(vocabulary) - len(column)} repeated words")
    indices, ends = array("i"), array("q", [0])
    for document in documents:
        indices.extend([column[word] for word in words(document) if word in column])
        ends.append(len(indices))
    ones = np.ones(len(indices), np.float32)
    ids = np.int32 if len(indices) < 2**31 else np.int64
    shape = (len(ends) - 1, len(column))
    counts = sp.csr_array((ones, np.array(indices, ids), np.array(ends, ids)), shape)
    counts.sum_duplicates()
    return counts
