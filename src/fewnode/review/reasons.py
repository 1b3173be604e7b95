"""Why a node is in a class, or is not: what it shares with examples, how it is linked to them, which view says so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewnode.embedding.attributes import inverse_document_frequency
from fewnode.errors import FewnodeError
from fewnode.graph import Attributes, Ints, is_sparse
from fewnode.recognition.answers import NONE, Answers
from fewnode.recognition.question import Question
from fewnode.review.shared_words import shared_words
from fewnode.review.telling_numbers import Numbers, TellingNumber
from fewnode.vectors import Floats, unit_rows

WORDS, NEIGHBOURS, AROUND = 6, 5, 300
"""Shared words and neighbours that are named; neighbours that are looked at, those with the fewest edges."""
COMMON = 1 + np.log(1 / 0.8)
"""The idf of what four of five nodes have: it is no reason."""
LIKE = 0.1
"""A vote from which on a view says that a node is like the class."""
EXAMPLES = 200
"""Of a class, that a node is compared with at most."""


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
        """As the service has it, with the sentence."""
        found = asdict(self)
        label = found.pop("label")
        return {**found, "class": label, "sentence": self.sentence}

    @property
    def sentence(self) -> str:
        """The same for people, short."""
        said = [str(number) for number in self.numbers[:2]]
        if self.words:
            said.append(f"has {', '.join(each.word for each in self.words[:3])} like the examples")
        if self.path is not None and len(self.path) == 1:
            said.append(f"is linked to {self.path[0].node}{_of_kind(self.path[0].kind)}")
        elif self.neighbours:
            first = self.neighbours[0]
            said.append(f"shares the neighbour {first.node} with {first.example}")
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


def _of_kind(kind: str | None) -> str:
    return "" if kind is None else f" ({kind})"


def _is_flag(x: Attributes) -> NDArray[np.bool_]:
    """Which columns are there or not, as a category is. An amount is not shared by not being 0."""
    count, total, most = ((x != 0).sum(axis=0), x.sum(axis=0), x.max(axis=0))
    most = most.toarray() if is_sparse(x) else most
    found: NDArray[np.bool_] = np.isclose(np.ravel(total), np.ravel(count) * np.ravel(most))
    return found


class ClassReasons:
    """A class made ready to give reasons: what its examples have is looked up once."""

    def __init__(self, question: Question, label: str, idf: NDArray[np.float32] | None = None) -> None:
        """`idf`: that of the attributes, for who asks about several classes."""
        if label not in question.classes:
            raise FewnodeError(f"there is no class {label!r} to give reasons for")
        self.space, given = question.embedded, question.given
        self.label, self.place, self.question, self.data = label, question.classes.index(label), question, question.data
        self.examples: Ints = given.support[given.y == self.place][-EXAMPLES:]
        self.counter: Ints = given.no.get(self.place, np.zeros(0, np.int64))[-EXAMPLES:]
        self._idf = idf

    def of(self, nodes: Sequence[int] | Ints) -> list[Reasons]:
        """The reasons of each node."""
        asked = np.asarray(nodes, np.int64)
        example, counter = self._nearest(asked, self.examples), self._nearest(asked, self.counter)
        votes, numbers = self._votes(asked), Numbers(self.data)
        return [
            Reasons(
                node=self.data.node_name(node),
                label=self.label,
                words=self._words(node),
                neighbours=self._shared(node),
                path=self._path(node),
                nearest_example=example[i],
                nearest_counter=counter[i],
                views=votes[i],
                numbers=numbers.telling(node, self.examples),
            )
            for i, node in enumerate(asked.tolist())
        ]

    # --- attributes ---

    @cached_property
    def _has(self) -> NDArray[np.int64]:
        """How many of the examples have each attribute."""
        x = self.data.graph.x[self.examples]
        found: NDArray[np.int64] = np.asarray((x != 0).sum(axis=0), np.int64).reshape(-1)
        for block in self.data.graph.blocks:
            if block.kind == "vector":  # its columns mean nothing by themselves
                found[block.start : block.stop] = 0
            elif block.kind == "numbers":
                found[block.start : block.stop] *= _is_flag(self.data.graph.x[:, block.start : block.stop])
        return found

    @cached_property
    def idf(self) -> NDArray[np.float32]:
        return inverse_document_frequency(self.data.graph.x) if self._idf is None else self._idf

    def _words(self, node: int) -> tuple[SharedWord, ...]:
        """Attributes that the node shares with examples, those that are rare and that many of them have first."""
        x = self.data.graph.x
        columns = x.indices[x.indptr[node] : x.indptr[node + 1]] if is_sparse(x) else np.flatnonzero(x[node])
        columns = columns[(self._has[columns] > 0) & (node not in self.examples or self._has[columns] > 1)]
        columns = columns[self.idf[columns] > COMMON]
        weight = np.log1p(self._has[columns]) * np.square(self.idf[columns])
        best = columns[np.argsort(-weight, kind="stable")[:WORDS]]
        names = self.data.feature_names
        return tuple(SharedWord(names[c] if names else f"attribute {c}", int(self._has[c])) for c in best.tolist())

    # --- the graph ---

    def _near(self, node: int) -> Ints:
        """Neighbours, those with the fewest edges first: a hub links everything to everything."""
        adj, degree = self.data.graph.adj, self.data.graph.degree
        found: Ints = adj.indices[adj.indptr[node] : adj.indptr[node + 1]].astype(np.int64)
        first: Ints = found[np.argsort(degree[found], kind="stable")[:AROUND]]
        return first

    @cached_property
    def _around(self) -> dict[int, int]:
        """Nodes next to an example, and that example; the examples themselves are their own."""
        found: dict[int, int] = {}
        for example in self.examples.tolist():
            for node in self._near(example).tolist():
                found.setdefault(node, example)
        return found | {example: example for example in self.examples.tolist()}

    def _shared(self, node: int) -> tuple[Link, ...]:
        """Neighbours that the node has in common with an example."""
        found = []
        for near in self._near(node).tolist():
            example = self._around.get(near)
            if example is None or example in (near, node):
                continue
            found.append(Link(self.data.node_name(near), self.data.node_name(example), self._kind(node, near)))
            if len(found) == NEIGHBOURS:
                break
        return tuple(found)

    def _path(self, node: int) -> tuple[Step, ...] | None:
        """The shortest way to another example, of at most three edges."""
        known = self._around
        for way in self._ways(node):
            last = way[-1]
            example = known.get(last)
            if example is None or example == node:
                continue
            if example != last:
                way = [*way, example]
            steps = zip([node, *way], way, strict=False)
            return tuple(Step(self.data.node_name(end), self._kind(start, end)) for start, end in steps)
        return None

    def _ways(self, node: int) -> list[list[int]]:
        """Its neighbours that are examples; else those next to one; else neighbours of neighbours that are."""
        adj, near = self.data.graph.adj, self._near(node).tolist()
        every = adj.indices[adj.indptr[node] : adj.indptr[node + 1]]
        if (direct := np.intersect1d(every, self.examples)).size:
            return [[each] for each in direct.tolist()]
        known = {each for each, example in self._around.items() if example != node and each != node}
        if one := [[each] for each in near if each in known]:
            return one
        return [[each, far] for each in near for far in self._near(each).tolist() if far in known]

    def _kind(self, start: int, end: int) -> str | None:
        """The first kind of edge that joins two nodes, in either direction; None in a plain network."""
        relations = self.data.graph.relations
        for relation in relations if len(relations) > 1 else ():
            for one, other in ((start, end), (end, start)):
                adj = relation.adj
                if other in adj.indices[adj.indptr[one] : adj.indptr[one + 1]]:
                    return relation.name
        return None

    # --- the embedding ---

    def _rows(self, nodes: Ints) -> Floats:
        return unit_rows(self.space.look(nodes).z)

    def _nearest(self, asked: Ints, others: Ints) -> list[Nearest | None]:
        """Of each node, the one of the others that is most like it, but not itself."""
        if not others.size:
            return [None] * asked.size
        like = self._rows(asked) @ self._rows(others).T
        like[asked[:, None] == others[None, :]] = -2.0
        pairs = zip(like.max(axis=1).tolist(), others[like.argmax(axis=1)].tolist(), strict=True)
        return [None if best < -1.5 else Nearest(self.data.node_name(node), round(best, 4)) for best, node in pairs]

    def _votes(self, asked: Ints) -> list[tuple[Vote, ...]]:
        """How like each node is to the class by each part of z: the cosine with the mean of what stands for it."""
        given = self.question.prepared.given
        mean = given.z[given.y == self.place].mean(axis=0)
        rows, parts = self._rows(asked), []
        for view, low, high in self._parts(rows.shape[1]):
            like = unit_rows(rows[:, low:high]) @ unit_rows(mean[None, low:high])[0]
            parts.append([Vote(view, round(vote, 4)) for vote in like.tolist()])
        return list(zip(*parts, strict=True))

    def _parts(self, width: int) -> list[tuple[str, int, int]]:
        """The columns of each view in z: attributes and structure of GPN+; z as a whole of other methods."""
        own, share = self.space.embedding.attribute_columns, self.space.embedding.structure_share
        if not own and not share:
            return [("embedding", 0, width)]
        return [part for part in (("attributes", 0, own), ("structure", own, width)) if part[1] < part[2]]


def with_reasons(question: Question, found: Answers, rows: Ints) -> Answers:
    """With a sentence for each node that has a label, and with the words that it shares with a description.

    First its own words, then those of its neighbours, each with the neighbour that has it.
    """
    best, idf, descriptions = found.probabilities.argmax(axis=1), None, question.given.descriptions
    words, because = [""] * rows.size, [""] * rows.size
    labelled = np.array([label != NONE for label in found.labels], bool)
    for c, name in enumerate(question.classes):
        places = np.flatnonzero((best == c) & labelled)
        if name in descriptions:
            shared = shared_words(descriptions[name], question.data, rows[places])
            for place, own in zip(places.tolist(), shared, strict=True):
                near = [f"{word} ({question.data.node_name(neighbour)})" for word, neighbour in own.near]
                words[place] = " ".join([*own.own, *near])
        if places.size and question.space is not None:
            reasons = ClassReasons(question, name, idf)
            for place, each in zip(places.tolist(), reasons.of(rows[places]), strict=True):
                because[place] = each.sentence
            idf = reasons.idf
    told = because if question.space is not None else None
    return replace(found, words=words if descriptions else None, because=told)
