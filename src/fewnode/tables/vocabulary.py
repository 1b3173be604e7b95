"""A vocabulary that is asked by people: a word that it lacks is found by its stem or as a compound, or is told."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple, TypeAlias

from fewnode.tables.bag import STOP_WORDS, words

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
        """Of each word, its place among the names. Of several that differ in case only, the first one's."""
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
        """Of each stem, the shortest word that is a form of it."""
        found: dict[str, str] = {}
        for word in sorted(self.column, key=lambda word: (len(word), word)):
            for base in _bases(word):
                found.setdefault(base, word)
        return found


@lru_cache(maxsize=8)
def vocabulary_of(names: tuple[str, ...]) -> Vocabulary:
    """The same vocabulary for the same names: what it looks up by is made once."""
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
