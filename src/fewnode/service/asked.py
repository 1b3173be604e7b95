"""Classes that are made ready for questions about nodes of a network: all calls into recognition and review."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewnode.errors import FewnodeError
from fewnode.graph import Attributes, Ints
from fewnode.recognition.answers import Answers
from fewnode.recognition.classes import Given
from fewnode.recognition.description import Description
from fewnode.recognition.population import may_have_class
from fewnode.review.reasons import ClassReasons
from fewnode.review.shared_words import shared_words
from fewnode.service.bodies import Judging
from fewnode.service.network import Network, NotFound
from fewnode.service.state import GivenClass
from fewnode.vectors import drawn

MAX_USED = 1_000
"""Examples, and counter-examples, of a class that are compared with nodes; of more, a random sample."""


class NothingToAsk(FewnodeError):
    """There is no class, or none that has an example in the dataset."""


@dataclass(frozen=True, eq=False)
class Judged:
    """What some nodes are taken for, a row each."""

    rows: Ints
    classes: list[str]
    probabilities: NDArray[np.float64]
    member: NDArray[np.float64] | None
    place: Ints
    """The place of the class that claims the node, or -1."""
    probability: NDArray[np.float64]
    closed_set: bool
    note: str
    threshold: float
    as_predicted: Answers

    def only(self, rows: Ints) -> Judged:
        """Some of all nodes, as they were judged among all."""
        member = None if self.member is None else self.member[rows]
        columns: dict[str, Any] = {"probabilities": self.probabilities[rows], "probability": self.probability[rows]}
        return replace(self, rows=rows, member=member, place=self.place[rows], **columns)

    def csv(self) -> str:
        """As `fewnode predict` writes it."""
        return self.as_predicted.to_csv()

    def labels(self) -> list[str | None]:
        names = [*self.classes, None]
        return [names[place] for place in self.place.tolist()]


class Asked:
    """Classes that are made ready for questions about nodes. What of them is not in the network is passed over."""

    def __init__(self, network: Network, given: tuple[GivenClass, ...]) -> None:
        if not given:
            raise NothingToAsk('there is no class yet; put one, or give "support" or "descriptions"')
        self.network, self.remarks = network, dict[str, list[str]]()
        self.examples, self.rejected, described = dict[str, Ints](), dict[str, Ints](), dict[str, Description]()
        self.descriptions: dict[str, Given] = {}
        seen: dict[int, str] = {}
        for each in given:
            rows, no = network.rows(each.nodes), network.rows(each.rejected)
            gone = len(each.nodes) + len(each.rejected) - rows.size - no.size
            told = [f"{gone:,} of its nodes are not in the dataset"] if gone else []
            if not rows.size and each.description is None:
                self.remarks[each.name] = [*told, "no example is left, so it claims nothing"]
                continue
            for row in rows.tolist():
                if seen.setdefault(row, each.name) != each.name:
                    node = network.data.node_name(row)
                    raise FewnodeError(f"node {node!r} is in two classes, {seen[row]!r} and {each.name!r}")
            for what, found in (("examples", rows), ("counter-examples", no)):
                if found.size > MAX_USED:
                    told.append(f"of {found.size:,} {what} a random sample of {MAX_USED:,} is compared with nodes")
            self.examples[each.name], self.rejected[each.name] = rows, no
            if each.description is not None:
                read = network.definition(each.name, each.nodes, each.description)
                described |= read.descriptions
                self.descriptions[each.name] = read
                about = f"class {each.name!r}: "
                told += [remark.removeprefix(about) for remark in read.remarks]
            self.remarks[each.name] = told
        if not self.examples:
            raise NothingToAsk("no class has an example that is in this dataset; give one")
        used = [(row, name) for name, rows in self.examples.items() for row in _sample(rows)]
        rejected: dict[Hashable, Any] = {name: _sample(rows) for name, rows in self.rejected.items() if rows.size}
        nodes, labels = [row for row, _ in used], [name for _, name in used]
        said: dict[Hashable, Attributes] = {name: each.x for name, each in described.items()}
        read_classes = Given.of_support(network.data, nodes, labels, said, rejected)
        self.question = network.question(replace(read_classes, descriptions=described))
        self.classes: list[str] = self.question.classes
        self.support = used
        for remark in self.question.remarks:
            for name in self.remarks:
                if remark.startswith(f"class {name!r}: "):
                    self.remarks[name].append(remark.removeprefix(f"class {name!r}: "))
        self._reasons = lru_cache(maxsize=4)(self._of_class)

    def place(self, label: str) -> int:
        if label not in self.classes:
            raise NotFound(f"class {label!r} has no example that is in this dataset")
        return self.classes.index(label)

    def judge(self, how: Judging, mode: str, rows: Ints | None = None) -> Judged:
        """What some nodes, or all, are taken for. An example is in its class, and no class claims what is not in it."""
        asked = np.arange(self.network.n) if rows is None else rows
        transductive = (how.mode or mode) == "transductive"
        threshold = how.threshold
        if threshold is None and not how.closed_set and self.question.ranks_only:
            threshold = 0.5  # one example claims some nodes, so that there is something to answer
        found: Answers = self.question.judge(
            asked, transductive=transductive, closed_set=how.closed_set, threshold=threshold
        )
        if any(rows.size > MAX_USED for rows in (*self.examples.values(), *self.rejected.values())):
            found = self._with_all(asked, found)
        place = found.places.copy()
        for name, no in self.rejected.items():
            place[np.isin(asked, no) & (place == self.classes.index(name))] = -1
        note = found.reason if found.member is None else ""
        probabilities, probability = found.probabilities, found.probability
        kept = (found.member, place, probability, found.closed_set, note, found.threshold, found)
        return Judged(asked, self.classes, probabilities, *kept)

    def _with_all(self, asked: Ints, found: Answers) -> Answers:
        """Examples and counter-examples beyond the sample are still what somebody said they are."""
        probabilities, member = found.probabilities.copy(), None if found.member is None else found.member.copy()
        for name, no in self.rejected.items():
            probabilities[np.isin(asked, no), self.classes.index(name)] = 0
        for name, rows in self.examples.items():
            own = np.isin(asked, rows)
            probabilities[own] = np.arange(len(self.classes)) == self.classes.index(name)
            if member is not None:
                member[own] = 1
        return replace(found, probabilities=probabilities, member=member)

    # --- reasons ---

    @cached_property
    def beta(self) -> tuple[NDArray[np.float64], dict[str, float]]:
        """The weight of each used example in its prototype, and of each description."""
        beta = np.asarray(self.question.prepared.beta, np.float64)
        described = [label for _, label in self.question.support[len(self.support) :]]
        return beta, dict(zip(described, beta[len(self.support) :].tolist(), strict=True))

    def prototypes(self) -> dict[str, tuple[float, float]]:
        """The place of each prototype on the map."""
        z, beta = self.question.prepared.given.z, np.asarray(self.question.prepared.beta, np.float64)
        labels, found = [label for _, label in self.question.support], {}
        picture, keep = self.network.picture, self.question.embedded.kept
        for name in self.classes:
            places = [i for i, label in enumerate(labels) if label == name]
            row = (beta[places] @ z[places])[None].astype(np.float32)
            x, y = keep(("beside", picture.how, row.tobytes()), lambda row=row: picture.beside(row)[0].tolist())  # type: ignore[misc]
            found[name] = (round(x, 4), round(y, 4))
        return found

    def _own_words(self, name: str, row: int) -> list[str]:
        """The words that a node shares with the description of a class."""
        read = self.descriptions.get(name)
        if read is None or name not in read.descriptions:
            return []
        ((own, _),) = shared_words(read.descriptions[name], self.network.data, [row], idf=self.network.idf)
        return list(own)

    def why(self, row: int, label: str | None) -> dict[str, Any]:
        """What speaks for a node in a class, or in the one that it is most likely in, and what against it."""
        probabilities = self.question.probabilities(np.array([row]))[0][0]
        place = int(probabilities.argmax()) if label is None else self.place(label)
        (reasons,) = self._reasons(self.classes[place]).of([row])
        found = {**reasons.to_json(), "probability": float(probabilities[place])}
        if own := self._own_words(self.classes[place], row)[:3]:
            rest = "" if found["sentence"].startswith("has nothing") else f"; {found['sentence']}"
            found["sentence"] = f"has {', '.join(own)} like the description{rest}"
        return found

    def _of_class(self, label: str) -> ClassReasons:
        return ClassReasons(self.question, label, self.network.idf)

    # --- what to ask next ---

    @cached_property
    def askable(self) -> Ints:
        """Nodes that may be in a class at all."""
        return np.flatnonzero(may_have_class(self.network.data, self.question.given.support))


def _sample(rows: Ints) -> list[int]:
    """So many of them at random, always the same."""
    found: list[int] = rows[drawn(rows.size, MAX_USED)].tolist()
    return found
