"""Words of texts: counted over a vocabulary that is a plain tuple, and asked for by people.

A word that the vocabulary lacks is found by its stem or as a compound, or is told.
"""

from __future__ import annotations

import difflib
import re
import sqlite3
import unicodedata
from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple, TypeAlias

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


# --- words as people write them -----------------------------------------------------------------------------------

Together: TypeAlias = Callable[[str, str], bool]
"""Whether two words of the vocabulary are so often in the same nodes that they are halves of one word."""

_NUMBER = re.compile(r"(?<![^\W_])\d+(?:[.,:/-]\d+)*(?:(?:st|nd|rd|th|[^\W\d_])(?![^\W_]))?")
_CHUNK = re.compile(r"[^\W_]+(?:[-‐‑'’][^\W_]+)*[+#]*")
_CODE = re.compile(r"[^\W\d_]{0,12}\d+|[^\W\d_]")
_JOINT = re.compile(r"[-‐‑'’]")
_VOWEL = re.compile(r"[aeiouyäöüáéíóúàèìòùâêîôûåæø]")
_FILLERS = (
    "am anything anywhere concerning did didn doesn doing don done else everything everywhere hasn haven isn kind "
    "kinds ll me my nothing related re something somewhere sort sorts stuff thing things various ve wasn weren won"
)
_SILENT = STOP_WORDS | frozenset(_FILLERS.split())
"""Words that say nothing about a subject: they are not told if the vocabulary lacks them."""

_ELECTRONIC = frozenset(("book", "business", "commerce", "government", "learning", "mail", "reader", "shop", "voting"))
"""Words with which `e-` makes one that is also written without its hyphen."""

MIN_SHARED_STEM = 4
"""Letters that two forms of a word have in common, if the vocabulary has neither their stem."""


class Match(NamedTuple):
    """A word as it was given, and the word of the vocabulary that it counts as."""

    given: str
    matched: str


class Reading(NamedTuple):
    """What a vocabulary makes of a text."""

    matches: list[Match]
    """In reading order, repetitions too."""
    unknown: tuple[str, ...]
    numbers: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """The names of attributes that count words. Names that are no single word are not found.

    >>> found = Vocabulary(("email", "filter", "wifi")).read("Filtering e-mails on Wi-Fi, 2.4 GHz")
    >>> [tuple(match) for match in found.matches]
    [('filtering', 'filter'), ('e-mails', 'email'), ('wi-fi', 'wifi')]
    >>> found.unknown, found.numbers
    (('ghz',), ('2.4',))
    """

    names: tuple[str, ...]

    @cached_property
    def column(self) -> dict[str, int]:
        """The place of each word among the names. Of several that differ in case only, the first one's."""
        found: dict[str, int] = {}
        for i, name in enumerate(self.names):
            if words(name) == [name.lower()]:
                found.setdefault(name.lower(), i)
        return found

    @cached_property
    def speaks(self) -> bool:
        """Whether most of the names are words, and not as `f17`."""
        return 2 * sum(not is_code(word) for word in self.column) > len(self.names)

    def read(self, text: str, together: Together = lambda one, other: False) -> Reading:
        """The words of a text, found as the tokeniser of `bag` would or else by stem and compound."""
        plain = unicodedata.normalize("NFC", text).lower()
        numbers = tuple(dict.fromkeys(_NUMBER.findall(plain)))
        matches: list[Match] = []
        unknown: list[str] = []
        for chunk in _CHUNK.findall(_NUMBER.sub(" ", plain)):
            found, lacking = self._chunk(chunk, together)
            matches += found
            unknown += lacking
        return Reading(matches, tuple(dict.fromkeys(unknown)), numbers)

    def _chunk(self, chunk: str, together: Together) -> tuple[list[Match], list[str]]:
        """A word, or several with hyphens between them: first its parts, then all of them as one."""
        parts, tokens = _JOINT.split(chunk), words(chunk)
        exact = [Match(token, token) for token in tokens if token in self.column]
        missing = [token for token in tokens if token not in self.column and token not in _SILENT]
        if len(parts) > 1 and (missing or not tokens) and (whole := self.find("".join(parts))):
            return [*exact, Match(chunk, whole)], []
        if not tokens:
            silent = chunk in ("a", "i") or len(parts) > 1
            return [], [] if silent else [chunk]
        unknown = []
        for token in missing:
            if found := self.find(token, together):
                exact += [Match(token, word) for word in found.split()]
            else:
                unknown.append(token)
        return exact, unknown

    def find(self, word: str, together: Together = lambda one, other: False) -> str | None:
        """The word itself, another form of it, or its two halves with a space between them."""
        if word in self.column:
            return word
        bases = list(_bases(word))
        if base := next((base for base in bases if base in self.column), None):
            return base
        shared = [word, *(base for base in bases if len(base) >= MIN_SHARED_STEM)]
        if form := next((self._forms[base] for base in shared if base in self._forms), None):
            return form
        return self._halves(word, together)

    def _halves(self, word: str, together: Together) -> str | None:
        """`email` in texts that write `e-mail`, and `wifi` in those that write `wi-fi`."""
        if word[0] == "e" and not _ELECTRONIC.isdisjoint((word[1:], *_bases(word[1:]))):
            return self.find(word[1:])
        for cut in range(2, len(word) - 1):
            one, other = word[:cut], word[cut:]
            if one in self.column and other in self.column and together(one, other):
                return f"{one} {other}"
        return None

    def nearest(self, word: str) -> tuple[str, ...]:
        """The three words that are most like this one; none if all are very different."""
        return tuple(difflib.get_close_matches(word, self.column))

    @cached_property
    def _forms(self) -> dict[str, str]:
        """The shortest word of each stem."""
        found: dict[str, str] = {}
        for word in sorted(self.column, key=lambda word: (len(word), word)):
            for base in _bases(word):
                found.setdefault(base, word)
        return found


@lru_cache(maxsize=8)
def vocabulary_of(names: tuple[str, ...]) -> Vocabulary:
    """The vocabulary of some names: what it looks up by is made once."""
    return Vocabulary(names)


def is_code(word: str) -> bool:
    """Whether it is a letter, or letters and a number: `c17` tells one from another and says nothing."""
    return _CODE.fullmatch(word) is not None


def _bases(word: str) -> Iterator[str]:
    """What a word may be a form of, the likeliest first: one, not done or doing, without accents or a number."""
    plain = "".join(letter for letter in unicodedata.normalize("NFD", word) if not unicodedata.combining(letter))
    singles = [*([plain] if plain != word else []), *_singulars(plain)]
    yield from singles
    for one in (plain, *singles):
        yield from _verbs(one)
    bare = plain.rstrip("0123456789")
    if bare != plain and len(bare) > 2:
        yield bare


def _singulars(word: str) -> list[str]:
    if len(word) > 4 and word.endswith("ies"):
        return [f"{word[:-3]}y", word[:-1]]
    if len(word) > 4 and word.endswith(("sses", "xes", "ches", "shes", "zes")):
        return [word[:-2], word[:-1]]
    return [word[:-1]] if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")) else []


def _verbs(word: str) -> list[str]:
    """Of `running` and `edited` the verb, if that still has a vowel: there is none in `string`."""
    base = (
        word if word.endswith("eed") else word.removesuffix("ing") if word.endswith("ing") else word.removesuffix("ed")
    )
    if base == word or len(base) < 3 or not _VOWEL.search(base):
        return []
    return [base, *([base[:-1]] if base[-1] == base[-2] else []), f"{base}e"]
