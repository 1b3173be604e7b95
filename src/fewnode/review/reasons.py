"""Why a node is in a class, or is not: what it shares with examples, how it is linked to them, which view says so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from fewnode.dataset import Dataset
from fewnode.embedding.attributes import inverse_document_frequency
from fewnode.errors import FewnodeError
from fewnode.graph import Ints, is_sparse
from fewnode.recognition.answers import NONE, Answers
from fewnode.recognition.description import Description, has_words, word_block
from fewnode.recognition.question import Question
from fewnode.vectors import Floats, unit_rows

WORDS, NEIGHBOURS, AROUND = 6, 5, 300
"""Shared words and neighbours that are named; neighbours that are looked at, those with the fewest edges."""
DESCRIBED = 5
"""Words of a description that are named."""
COMMON = 1 + np.log(1 / 0.8)
"""The idf of what four of five nodes have: it is no reason."""
LIKE = 0.1
"""A vote from which on a view says that a node is like the class."""
EXAMPLES = 200
"""Of a class, that a node is compared with at most."""
EXTREME, MOST, NUMBERS = 0.9, 2 / 3, 3
"""A number is told if it is beyond this share of all nodes, and so are most of the examples; so many of them."""
NUMBER = " (number)"
"""How the names of attributes that are numbers end."""


@dataclass(frozen=True)
class SharedWord:
    """A word, or another attribute, that a node has and so many of the examples."""

    word: str
    in_examples: int


@dataclass(frozen=True)
class Link:
    """A neighbour that a node shares with an example; `kind` is of the edge that leads to it, if there are kinds."""

    node: str
    example: str
    kind: str | None


@dataclass(frozen=True)
class Step:
    """A node on the way to an example, and the kind of the edge that leads to it."""

    node: str
    kind: str | None


@dataclass(frozen=True)
class Nearest:
    """The example, or the counter-example, that is most like a node: the cosine of both."""

    node: str
    similarity: float


@dataclass(frozen=True)
class Vote:
    """What one view of a node says: how like it is to the examples, from -1 to 1."""

    view: str
    vote: float


@dataclass(frozen=True)
class TellingNumber:
    """A number that is larger, or smaller, than that of most nodes, as it is with so many examples.

    >>> print(TellingNumber("in_6m", 12400.0, 0.98, 3, 3))
    in_6m 12,400: above 98 % of nodes, as 3 of 3 examples
    """

    name: str
    value: float | None
    """None where the scale of a column is not known."""
    share: float
    """Of all nodes, those below; or -1 times those above."""
    in_examples: int
    examples: int

    def __str__(self) -> str:
        value = "" if self.value is None else f" {self.value:,.4g}" if abs(self.value) < 100 else f" {self.value:,.0f}"
        side = "above" if self.share > 0 else "below"
        share = f"{abs(self.share):.1%}".replace(".0%", "%").replace("%", " %")
        return f"{self.name}{value}: {side} {share} of nodes, as {self.in_examples} of {self.examples} examples"


@dataclass(frozen=True)
class Reasons:
    """All that speaks for or against a node in a class."""

    node: str
    label: str
    words: tuple[SharedWord, ...]
    neighbours: tuple[Link, ...]
    path: tuple[Step, ...] | None
    """From the node to an example, at most three edges; None if there is no such way."""
    nearest_example: Nearest | None
    nearest_counter: Nearest | None
    views: tuple[Vote, ...]
    numbers: tuple[TellingNumber, ...] = ()
    """Unusual ones, in which most examples are unusual, too."""

    def to_json(self) -> dict[str, Any]:
        """What the service tells, with the sentence."""
        found = asdict(self)
        label = found.pop("label")
        return {**found, "class": label, "sentence": self.sentence}

    @property
    def sentence(self) -> str:
        """The reasons for people, short."""
        said = [str(number) for number in self.numbers[:2]]
        if self.words:
            said.append(f"has {', '.join(each.word for each in self.words[:3])} like the examples")
        if self.path is not None and len(self.path) == 1:
            kind = "" if self.path[0].kind is None else f" ({self.path[0].kind})"
            said.append(f"is linked to {self.path[0].node}{kind}")
        elif self.neighbours:
            said.append(f"shares the neighbour {self.neighbours[0].node} with {self.neighbours[0].example}")
        elif self.path:
            said.append(f"is {len(self.path)} edges from {self.path[-1].node}")
        if self.nearest_example is not None:
            said.append(f"is most like {self.nearest_example.node} ({self.nearest_example.similarity:.2f})")
        if self.nearest_counter is not None:
            said.append(f"against it: like {self.nearest_counter.node} ({self.nearest_counter.similarity:.2f})")
        best = max(self.views, key=lambda each: each.vote, default=None)
        if not said and best is not None and best.vote > LIKE:
            said.append(f"is like what stands for the class by its {best.view} ({best.vote:+.2f})")
        return "; ".join(said) if said else "has nothing that examples have"


def neighbours(adj: sp.csr_array, node: int) -> Ints:
    """The columns of a row that are filled."""
    return np.asarray(adj.indices[adj.indptr[node] : adj.indptr[node + 1]])


class Number(NamedTuple):
    """A number of all nodes, as it was in a table, and in order; `known`: whether its scale is."""

    values: NDArray[np.float64]
    ordered: NDArray[np.float64]
    known: bool


@dataclass(frozen=True, eq=False)
class Columns:
    """What of a network can be a reason."""

    idf: NDArray[np.float32]
    """How telling each attribute is; 0 where it says nothing, as a column of a vector, or an amount that is not 0."""
    numbers: Mapping[str, Number]

    @classmethod
    def of(cls, data: Dataset) -> Columns:
        graph, idf = data.graph, inverse_document_frequency(data.graph.x).copy()
        for block in graph.blocks:
            if block.kind != "words":
                x = sp.csc_array(graph.x[:, block.start : block.stop])
                same = np.isclose(x.sum(axis=0), np.diff(x.indptr) * np.ravel(x.max(axis=0).toarray()))
                idf[block.start : block.stop] *= 0 if block.kind == "vector" else same
        encoding, found = (data.encoding or {}).get("encoding", {}), dict[str, Number]()
        dates = encoding.get("dates", {})
        scales = {name: scale for name, scale in encoding.get("numeric", {}).items() if name not in dates}
        for place, title in enumerate(data.feature_names or ()):
            if title.endswith(NUMBER):
                name = title.removesuffix(NUMBER)
                mean, deviation = map(float, scales.get(name, (0.0, 1.0)))
                values = sp.csr_array(graph.x[:, [place]]).toarray().ravel() * deviation + mean
                found[name] = Number(values, np.sort(values), name in scales)
        for relation in graph.relations:
            sides = {"in-degree" if relation.directed else "degree": np.diff(relation.adj.indptr)}
            sides |= {"out-degree": np.bincount(relation.adj.indices, minlength=graph.n)} if relation.directed else {}
            found |= {f"{relation.name}, {side}": Number(n, np.sort(n), True) for side, n in sides.items()}
        return cls(idf, found)

    def telling(self, node: int, examples: Ints) -> tuple[TellingNumber, ...]:
        """The most unusual numbers of a node in which most examples are unusual in the same direction."""
        others, found = examples[examples != node], list[TellingNumber]()
        for name, (values, ordered, known) in self.numbers.items():
            asked = values[np.append(node, others)]
            below = np.searchsorted(ordered, asked, "left") / ordered.size
            above = 1 - np.searchsorted(ordered, asked, "right") / ordered.size
            for sign, beyond in ((1, below), (-1, above)):
                alike = int(np.count_nonzero(beyond[1:] >= EXTREME))
                if beyond[0] >= EXTREME and alike and alike >= MOST * others.size:
                    value = float(asked[0]) if known else None
                    found.append(TellingNumber(name, value, sign * round(float(beyond[0]), 4), alike, others.size))
        return tuple(sorted(found, key=lambda each: -abs(each.share))[:NUMBERS])


@dataclass(frozen=True, eq=False)
class ClassReasons:
    """A class made ready to give reasons: what its examples have is looked up once."""

    question: Question
    label: str

    def __post_init__(self) -> None:
        if self.label not in self.question.classes:
            raise FewnodeError(f"there is no class {self.label!r} to give reasons for")

    def of(self, nodes: Sequence[int] | Ints) -> list[Reasons]:
        """The reasons of each node."""
        asked, place = np.asarray(nodes, np.int64), self.question.classes.index(self.label)
        counter = self.question.given.no.get(place, np.zeros(0, np.int64))[-EXAMPLES:]
        nearest = zip(self._nearest(asked, self.examples), self._nearest(asked, counter), strict=True)
        rows = zip(asked.tolist(), nearest, self._votes(asked), strict=True)
        found = []
        for node, both, views in rows:
            shown = (self._words(node), self._shared(node), self._path(node), *both, views)
            numbers = self._columns.telling(node, self.examples)
            found.append(Reasons(self.data.node_name(node), self.label, *shown, numbers))
        return found

    @property
    def data(self) -> Dataset:
        return self.question.data

    @cached_property
    def examples(self) -> Ints:
        given = self.question.given
        return np.asarray(given.support[given.y == self.question.classes.index(self.label)][-EXAMPLES:])

    # --- attributes ---

    @cached_property
    def _columns(self) -> Columns:
        columns: Columns = self.question.embedded.kept("reasons", lambda: Columns.of(self.data))
        return columns

    @cached_property
    def _has(self) -> Ints:
        """How many of the examples have each attribute."""
        return np.asarray((self.data.graph.x[self.examples] != 0).sum(axis=0), np.int64).reshape(-1)

    def _words(self, node: int) -> tuple[SharedWord, ...]:
        """Attributes that the node shares with examples, those that are rare and that many of them have first."""
        x, idf, names = self.data.graph.x, self._columns.idf, self.data.feature_names
        columns = neighbours(x, node) if is_sparse(x) else np.flatnonzero(x[node])
        columns = columns[(self._has[columns] > (node in self.examples)) & (idf[columns] > COMMON)]
        weight = np.log1p(self._has[columns]) * np.square(idf[columns])
        best = columns[np.argsort(-weight, kind="stable")[:WORDS]]
        return tuple(SharedWord(names[c] if names else f"attribute {c}", int(self._has[c])) for c in best.tolist())

    # --- the graph ---

    def _near(self, node: int) -> list[int]:
        """Neighbours, those with the fewest edges first: a hub links everything to everything."""
        found, degree = neighbours(self.data.graph.adj, node), self.data.graph.degree
        first: list[int] = found[np.argsort(degree[found], kind="stable")[:AROUND]].tolist()
        return first

    @cached_property
    def _around(self) -> dict[int, int]:
        """Nodes next to an example, and that example; the examples themselves are their own."""
        found: dict[int, int] = {}
        for example in self.examples.tolist():
            for node in self._near(example):
                found.setdefault(node, example)
        return found | {example: example for example in self.examples.tolist()}

    def _shared(self, node: int) -> tuple[Link, ...]:
        """Neighbours that the node has in common with an example."""
        pairs = ((near, self._around.get(near, near)) for near in self._near(node))
        some = [(near, example) for near, example in pairs if example not in (near, node)][:NEIGHBOURS]
        name = self.data.node_name
        return tuple(Link(name(near), name(example), self._kind(node, near)) for near, example in some)

    def _path(self, node: int) -> tuple[Step, ...] | None:
        """The shortest way to another example, of at most three edges."""
        way = next(self._ways(node), None)
        if way is None:
            return None
        return tuple(Step(self.data.node_name(b), self._kind(a, b)) for a, b in zip([node, *way], way, strict=False))

    def _ways(self, node: int) -> Iterator[list[int]]:
        """To neighbours that are examples; then by those next to one; then by neighbours of neighbours that are."""
        every = np.intersect1d(neighbours(self.data.graph.adj, node), self.examples).tolist()
        yield from ([example] for example in every if example != node)
        near, around = self._near(node), {v: e for v, e in self._around.items() if node not in (v, e)}
        yield from ([v, around[v]] for v in near if v in around)
        yield from ([*dict.fromkeys((v, far, around[far]))] for v in near for far in self._near(v) if far in around)

    def _kind(self, start: int, end: int) -> str | None:
        """The first kind of edge that joins two nodes, in either direction; None in a plain network."""
        relations = self.data.graph.relations
        for relation in relations if len(relations) > 1 else ():
            if end in neighbours(relation.adj, start) or start in neighbours(relation.adj, end):
                return relation.name
        return None

    # --- the embedding ---

    def _rows(self, nodes: Ints) -> Floats:
        return unit_rows(self.question.embedded.look(nodes).z)

    def _nearest(self, asked: Ints, others: Ints) -> list[Nearest | None]:
        """The one of the others that is most like each node, but not itself."""
        if not others.size:
            return [None] * asked.size
        like = self._rows(asked) @ self._rows(others).T
        like[asked[:, None] == others[None, :]] = -2.0
        pairs = zip(like.max(axis=1).tolist(), others[like.argmax(axis=1)].tolist(), strict=True)
        return [None if best < -1.5 else Nearest(self.data.node_name(node), round(best, 4)) for best, node in pairs]

    def _votes(self, asked: Ints) -> list[tuple[Vote, ...]]:
        """How like each node is to the class by each part of z: the cosine with the mean of what stands for it.

        The parts are attributes and structure of GPN+; z as a whole of other methods.
        """
        given, embedding = self.question.prepared.given, self.question.embedded.embedding
        mean = given.z[given.y == self.question.classes.index(self.label)].mean(axis=0)
        rows, own, width = self._rows(asked), embedding.attribute_columns, mean.size
        parts = [("attributes", 0, own), ("structure", own, width)]
        parts = parts if own or embedding.structure_share else [("embedding", 0, width)]
        votes = []
        for view, low, high in parts:
            if low < high:
                like = unit_rows(rows[:, low:high]) @ unit_rows(mean[None, low:high])[0]
                votes.append([Vote(view, round(vote, 4)) for vote in like.tolist()])
        return list(zip(*votes, strict=True))


class SharedWords(NamedTuple):
    """Words of a description that a node has itself, and those that only nodes next to it have."""

    own: tuple[str, ...]
    near: tuple[tuple[str, int], ...]
    """With the neighbour that has the word most often."""


def shared_words(
    description: Description, data: Dataset, nodes: Sequence[int] | Ints, idf: NDArray[np.float32] | None = None
) -> list[SharedWords]:
    """For each node the words that it shares with a description, those that tell most first: by tf-idf.

    `idf`: that of the attributes, for who asks often.
    """
    if data.graph.blocks and not has_words(data):
        return [SharedWords((), ()) for _ in nodes]
    names, block, x = data.feature_names or (), word_block(data), data.graph.x
    row = sp.csr_array(description.x).toarray()[0]
    columns = block.start + np.flatnonzero(row[block.start : block.stop])
    weight = row[columns] * np.square((inverse_document_frequency(x) if idf is None else idf)[columns])
    found = []
    for node in nodes:
        around = neighbours(data.graph.adj, node)
        held = sp.csr_array(x[np.append(around, node)][:, columns]).toarray()
        mine, theirs = held[-1], held[:-1]
        own = _leading(np.log1p(mine) * weight)
        near = _leading(np.where(mine > 0, 0, np.log1p(theirs.max(axis=0, initial=0))) * weight)
        who = around[theirs.argmax(axis=0)] if around.size else around
        words = tuple(names[columns[i]] for i in own)
        found.append(SharedWords(words, tuple((names[columns[i]], int(who[i])) for i in near)))
    return found


def _leading(weight: NDArray[np.float32]) -> list[int]:
    """The places of the largest weights that are not zero."""
    return [i for i in np.argsort(-weight, kind="stable")[:DESCRIBED].tolist() if weight[i] > 0]


def with_reasons(question: Question, found: Answers, rows: Ints) -> Answers:
    """With a sentence for each node that has a label, and with the words that it shares with a description.

    First its own words, then those of its neighbours, each with the neighbour that has it.
    """
    best, descriptions = found.probabilities.argmax(axis=1), question.given.descriptions
    words, because = [""] * rows.size, [""] * rows.size
    labelled = np.array([label != NONE for label in found.labels], bool)
    for c, name in enumerate(question.classes):
        places = np.flatnonzero((best == c) & labelled)
        if name in descriptions:
            shared = shared_words(descriptions[name], question.data, rows[places])
            for place, own in zip(places.tolist(), shared, strict=True):
                near = [f"{word} ({question.data.node_name(neighbour)})" for word, neighbour in own.near]
                words[place] = " ".join([*own.own, *near])
        if places.size:
            for place, each in zip(places.tolist(), ClassReasons(question, name).of(rows[places]), strict=True):
                because[place] = each.sentence
    return replace(found, words=words if descriptions else None, because=because)
