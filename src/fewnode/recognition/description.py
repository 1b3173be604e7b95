"""A class described in words: its name or a sentence, encoded as the text of a node of that network would be."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from fewnode._system.sheets import bare, read_table
from fewnode.dataset import Dataset
from fewnode.errors import FewnodeError
from fewnode.graph import Attributes, Block, Ints, is_sparse
from fewnode.tables.words import Match, Reading, Vocabulary, is_code, vocabulary_of, words

if TYPE_CHECKING:
    from fewnode.tables.encoder import EncoderSource

MAX_LENGTH = 10_000
"""Characters of a description: more is a document."""
MAX_NAME = 1_000
SHOWN = 10
"""Unknown words for which the nearest ones of the vocabulary are looked up."""
HALVES = 0.8
"""Two words are halves of one if this share of the nodes with the rarer one has the other, too."""

_INSTEAD = "give nodes instead of a description, or import the texts of nodes"
_EMPTY = "it has no description, and its name has no word of this network; describe it in a sentence, or give nodes"
_CAMEL = re.compile(r"(?<=[a-zà-ÿ])(?=[A-ZÀ-Þ])")
_NO_TOPIC = "category class classes cluster group kind label misc miscellaneous none other others topic type unknown"
_NOTHING = Reading([], (), ())
_SAYS_NOTHING = frozenset(_NO_TOPIC.split())
"""In a class's name: `class 3` says as little as `3`."""


@dataclass(frozen=True, eq=False)
class Description:
    """What a network makes of a description, and what it could not use."""

    x: Attributes
    """One row, as the graph has them: the attributes of a node with this text."""
    known: tuple[Match, ...] = ()
    """Each word that counts, as it was given and as the vocabulary has it."""
    unknown: tuple[str, ...] = ()
    """Words that the vocabulary does not have in any form."""
    numbers: tuple[str, ...] = ()
    """They are not used: a word cannot be compared with them."""
    nearest: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Words of the vocabulary that look like an unknown one."""

    def remarks(self) -> list[str]:
        """What of it was not used, a sentence each."""
        told = []
        for word in self.unknown:
            near = f" (near: {', '.join(self.nearest[word])})" if self.nearest.get(word) else ""
            told.append(f"{word!r} is not a word of this network{near}")
        if self.numbers:
            told.append(f"numbers in a description are not used: {', '.join(self.numbers)}")
        return told


def describe(data: Dataset, text: str, name: str = "", encoder: EncoderSource | None = None) -> Description:
    """A class's name and description as a node without edges would have them. An empty text: the name speaks.

    Words are found as in the texts of nodes, or else by their stem (`emails`) and as compounds (`e-mail`, `wi-fi`).
    What is not known, and numbers, are told. A description without any known word is refused. If the texts of nodes
    went through an encoder, so does this one: through the folder that the dataset remembers, or through `encoder`.

    >>> import fewnode
    >>> data = fewnode.read_tables(
    ...     {"id": ["a", "b", "c"], "about": ["an email filter", "email over wifi", "wifi filter"]},
    ...     {"from": ["a", "b"], "to": ["b", "c"]}, text="about", max_share=1)
    >>> found = fewnode.describe(data, "Filtering e-mails quickly")
    >>> [tuple(match) for match in found.known], found.unknown
    ([('filtering', 'filter'), ('e-mails', 'email')], ('quickly',))
    """
    who = f"class {name[:60]!r}" if name else "the description"
    if not isinstance(text, str) or not isinstance(name, str):
        raise FewnodeError(f"a description is {text!r:.60}, expected text")
    _limited(who, name, text)
    stored, reader, values = (data.encoding or {}).get("encoder"), _reader(data), dict[int, float]()
    said = _NOTHING if reader is None or text.strip() else reader.read_name(name)
    about = _NOTHING if reader is None else reader.read(text)
    matches, unknown = [*said.matches, *about.matches], tuple(dict.fromkeys((*said.unknown, *about.unknown)))
    if reader is not None:
        if not matches and (stored is None or not text.strip()):
            raise FewnodeError(f"{who}: {reader.refusal(unknown) if text.strip() else _EMPTY}")
        values |= Counter(reader.column(match.matched) for match in matches)
    if stored is not None:
        speaks = said.matches if reader is not None else not is_code(name.lower())
        values |= _encoded(data, stored, ": ".join(filter(str.strip, [name if speaks else "", text])), encoder, who)
    elif encoder is not None:
        raise FewnodeError(f"texts of {data.name} went through no encoder, so a description cannot")
    nearest = {word: reader.vocabulary.nearest(word) for word in unknown[:SHOWN]} if reader is not None else {}
    row = np.zeros((1, data.graph.n_features), np.float32)
    row[0, list(values)] = list(values.values())
    x = sp.csr_array(row) if is_sparse(data.graph.x) else row
    return Description(x, tuple(dict.fromkeys(matches)), unknown, about.numbers, nearest)


def _limited(where: str, name: str, text: str, of_text: str = "text") -> None:
    for what, given, most in ((of_text, text, MAX_LENGTH), ("name", name, MAX_NAME)):
        if len(given) > most:
            raise FewnodeError(f"{where}: a {what} of {len(given):,} characters, expected at most {most:,}")


def _encoded(
    data: Dataset, stored: Mapping[str, Any], text: str, encoder: EncoderSource | None, who: str
) -> dict[int, float]:
    """What the encoder of the nodes' texts makes of a text, scaled as theirs, by the columns of the attributes."""
    from fewnode.tables.encode import scale_vectors  # brings DuckDB; only encoders need it
    from fewnode.tables.encoder import COLUMN, Encoder
    from fewnode.tables.read import Imported

    block = next((block for block in data.graph.blocks if block.kind == "vector" and block.name == COLUMN), None)
    scale = Imported.of(data).encoding.vector.get(COLUMN)
    if block is None or scale is None or len(scale.mean) != block.width:
        raise FewnodeError(f"{data.name}: the stored encoding of its columns is not one that fewnode wrote")
    if not text.strip():
        raise FewnodeError(f"{who}: {_EMPTY}")
    vector = Encoder.of_dataset(stored, encoder, data.name).vectors([text])
    scaled = scale_vectors(vector, scale, lambda _, what: FewnodeError(f"{who}: {what}"))[0]
    return dict(enumerate(scaled.tolist(), block.start))


def opaque(data: Dataset, name: str) -> bool:
    """Whether the name of a class says nothing, as `c17`, `class 3` or one that has no word of this network."""
    reader = _reader(data)
    return all(map(is_code, words(name))) if reader is None else not reader.read_name(name).matches


@dataclass(frozen=True, eq=False)
class _Reader:
    """Which attributes of a network count words, and what these words make of a text."""

    data: Dataset
    start: int
    """Of the columns of the attributes that count words."""
    vocabulary: Vocabulary

    def column(self, word: str) -> int:
        return self.start + self.vocabulary.column[word]

    def read(self, text: str) -> Reading:
        return self.vocabulary.read(text, self._are_halves)

    def read_name(self, name: str) -> Reading:
        """The words of a class's name. What only tells classes apart, as a number, is neither known nor unknown."""
        found, split = self.read(name), self.read(_CAMEL.sub(" ", name))
        if len(split.unknown) < len(found.unknown):
            found = split
        matches = [match for match in found.matches if match.given not in _SAYS_NOTHING]
        unknown = [word for word in found.unknown if word not in _SAYS_NOTHING and not is_code(word)]
        return Reading(matches, tuple(unknown), ())

    def refusal(self, unknown: Sequence[str]) -> str:
        """Why a text without a known word is refused, and words that would not be."""
        lookup = self.vocabulary.nearest
        near = list(dict.fromkeys(word for given in unknown[:SHOWN] for word in lookup(given)))
        known = list(self.vocabulary.column)
        shown = ", ".join(map(repr, near[:6] or known[:: max(1, len(known) // 5)][:5]))
        given = f" ({', '.join(unknown[:SHOWN])})" if unknown else ""
        nearest = "the nearest that it has are" if near else "it has words such as"
        return f"no word of it{given} is in the vocabulary of {self.data.name}; {nearest} {shown}"

    def _are_halves(self, one: str, other: str) -> bool:
        """Whether the nodes that have the rarer word nearly all have the other one."""
        first, second = (_nodes_with(self.data.graph.x, self.column(word)) for word in (one, other))
        both = np.intersect1d(first, second, assume_unique=True).size
        return both > 0 and both >= HALVES * min(first.size, second.size)


def _reader(data: Dataset) -> _Reader | None:
    """None where texts of nodes went through an encoder and no word is counted; else what has no words is refused."""
    if (data.encoding or {}).get("encoder") is not None and not has_words(data):
        return None
    block = word_block(data)
    vocabulary = vocabulary_of((data.feature_names or ())[block.start : block.stop])
    if not vocabulary.speaks:
        shown = ", ".join(map(repr, vocabulary.names[:3]))
        raise FewnodeError(f"attributes of {data.name}, as {shown}, are no words; {_INSTEAD}")
    return _Reader(data, block.start, vocabulary)


def has_words(data: Dataset) -> bool:
    return any(block.kind == "words" for block in data.graph.blocks)


def word_block(data: Dataset) -> Block:
    graph = data.graph
    if not graph.n_features:
        raise FewnodeError(f"{data.name} has no attributes, so there is no word to compare; {_INSTEAD}")
    block = next((block for block in graph.blocks if block.kind == "words"), None)
    if block is None and (graph.blocks or (graph.x.data if is_sparse(graph.x) else graph.x).min(initial=0) < 0):
        kinds = sorted({"vectors" if block.kind == "vector" else "numbers" for block in graph.blocks})
        raise FewnodeError(f"attributes of {data.name} are {' and '.join(kinds) or 'numbers'}, not words; {_INSTEAD}")
    if data.feature_names is None:
        raise FewnodeError(f"attributes of {data.name} have no names, so words cannot be compared; {_INSTEAD}")
    return block or Block("words", 0, graph.n_features)


def _nodes_with(x: Attributes, column: int) -> Ints:
    if not is_sparse(x):
        return np.flatnonzero(x[:, column])
    places = np.flatnonzero(x.indices == column)
    return np.asarray(np.searchsorted(x.indptr, places, side="right") - 1)


def read_classes(path: Path) -> dict[str, str]:
    """Class names and their descriptions from a table `class,description`. An empty description: the name speaks."""
    found: dict[str, str] = {}
    lines: dict[str, int] = {}
    for line, (cell, description) in read_table(path, ["class", "description"]):
        name, where = bare(cell), f"{path}: line {line}"
        if not name:
            raise FewnodeError(f"{where}: a description without a class")
        if name in found:
            raise FewnodeError(f"{where}: class {name!r} is on line {lines[name]} already")
        _limited(where, name, bare(description), "description")
        found[name], lines[name] = bare(description), line
    if not found:
        raise FewnodeError(f"{path}: no class in it")
    return found
