"""Classes that are made ready for questions about nodes of a network: all calls into recognition and review."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from fewnode.errors import FewnodeError
from fewnode.graph import Ints
from fewnode.recognition.answers import Answers
from fewnode.recognition.classes import Class, Given
from fewnode.recognition.population import may_have_class
from fewnode.recognition.question import Question
from fewnode.review.reasons import shared_words
from fewnode.service.bodies import Judging
from fewnode.service.network import Network, NotFound
from fewnode.service.state import GivenClass
from fewnode.vectors import drawn

MAX_USED = 1_000
"""Examples, and counter-examples, of a class that are compared with nodes; of more, a random sample."""


@dataclass(frozen=True, eq=False)
class Asked:
    """Classes that are made ready for questions about nodes. What of them is not in the network is passed over."""

    network: Network
    ready: Question | None
    """None where there is no class, or none that has an example in the dataset."""
    examples: Mapping[str, Ints]
    rejected: Mapping[str, Ints]
    remarks: Mapping[str, list[str]]
    """What of each class was not understood, not believed or not used, a sentence each."""

    @classmethod
    def of(cls, network: Network, classes: Mapping[str, GivenClass]) -> Asked:
        examples, rejected, remarks = dict[str, Ints](), dict[str, Ints](), dict[str, list[str]]()
        here: dict[str, Class] = {}
        for name, given in classes.items():
            yes, no = network.rows(given.support), network.rows(given.rejected)
            gone = len(given.support) + len(given.rejected) - yes.size - no.size
            told = remarks[name] = [f"{gone:,} of its nodes are not in the dataset"] if gone else []
            if not yes.size and given.description is None:
                told.append("no example is left, so it claims nothing")
                continue
            for what, rows in (("examples", yes), ("counter-examples", no)):
                if rows.size > MAX_USED:
                    told.append(f"of {rows.size:,} {what} a random sample of {MAX_USED:,} is compared with nodes")
            examples[name], rejected[name] = yes, no
            compared = [rows[drawn(rows.size, MAX_USED)].tolist() for rows in (yes, no)]
            here[name] = Class(compared[0], compared[1], given.description)
        question = network.question(Given.of(network.data, here)) if here else None
        for remark in question.remarks if question else []:
            for name, told in remarks.items():
                if remark.startswith(about := f"class {name!r}: "):
                    told.append(remark.removeprefix(about))
        return cls(network, question, examples, rejected, remarks)

    @property
    def question(self) -> Question:
        if self.ready is None:
            raise FewnodeError('no class has an example here; put a class, or give "support" or "descriptions"')
        return self.ready

    @property
    def classes(self) -> list[str]:
        return [] if self.ready is None else self.ready.classes

    def place(self, label: str) -> int:
        if label not in self.classes:
            raise NotFound(f"class {label!r} has no example that is in this dataset")
        return self.classes.index(label)

    def judge(self, how: Judging, rows: Ints | None = None) -> Answers:
        """What some nodes, or all, are taken for. An example is in its class, and no class claims what is not in it."""
        asked = np.arange(self.network.n) if rows is None else rows
        ranks = "" if how.closed_set else self.question.ranks_only
        found = self.question.judge(
            asked,
            transductive=how.mode == "transductive",
            closed_set=how.closed_set,
            threshold=0.5 if ranks and how.threshold is None else how.threshold,  # a guess: somebody has to answer
        )
        probabilities, member = found.probabilities.copy(), None if found.member is None else found.member.copy()
        for place, name in enumerate(self.classes):  # also of what is beyond the sample
            probabilities[np.isin(asked, self.rejected[name]), place] = 0
            own = np.isin(asked, self.examples[name])
            probabilities[own] = np.arange(len(self.classes)) == place
            if member is not None:
                member[own] = 1
        told = found.reason or (f"{ranks}; until then what is claimed is a guess" if ranks else "")
        note = "" if how.closed_set and member is not None else told
        return replace(found, probabilities=probabilities, member=member, reason=note)

    # --- reasons ---

    @property
    def beta(self) -> tuple[dict[tuple[int, str], float], dict[str, float]]:
        """The weight of each used example, by row and class, and of each description in its prototype."""
        if self.ready is None or not self.network.embeds:
            return {}, {}
        given, names, beta = self.question.given, self.classes, self.question.prepared.beta.tolist()
        nodes = zip(given.support.tolist(), map(str, given.labels), strict=True)
        said = [] if given.described is None else [names[c] for c in given.described.y.tolist()]
        return dict(zip(nodes, beta, strict=False)), dict(zip(said, beta[given.support.size :], strict=True))

    def prototypes(self) -> dict[str, tuple[float, float]]:
        """The place of each prototype on the map."""
        found, picture = dict[str, tuple[float, float]](), self.network.picture
        if self.ready is None or picture is None:
            return found
        prepared, keep = self.question.prepared, self.question.embedded.kept
        beta, labels = np.asarray(prepared.beta, np.float32), np.array([label for _, label in self.question.support])
        for name in self.classes:
            z = (beta[labels == name] @ prepared.given.z[labels == name])[None]
            x, y = keep(("beside", picture.how, z.tobytes()), partial(picture.beside, z))[0].tolist()
            found[name] = (round(x, 4), round(y, 4))
        return found

    def why(self, row: int, label: str | None) -> dict[str, Any]:
        """What speaks for a node in a class, or in the one that it is most likely in, and what against it."""
        probabilities = self.question.probabilities(np.array([row]))[0][0]
        place = int(probabilities.argmax()) if label is None else self.place(label)
        name = self.classes[place]
        found = {**self.question.why(row, name).to_json(), "probability": float(probabilities[place])}
        if (description := self.question.given.descriptions.get(name)) is not None:
            ((own, _),) = shared_words(description, self.network.data, [row], idf=self.network.idf)
            rest = "" if found["sentence"].startswith("has nothing") else f"; {found['sentence']}"
            if own:
                found["sentence"] = f"has {', '.join(own[:3])} like the description{rest}"
        return found

    @cached_property
    def askable(self) -> Ints:
        """Nodes that may be in a class at all."""
        return np.flatnonzero(may_have_class(self.network.data, self.question.given.support))
