"""A model, a network and classes, prepared once: judge nodes, say why, what to ask next, and what to trust."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from fewnode.classes.definitions import Class, Definitions
from fewnode.classes.description import shared_words
from fewnode.errors import FewnodeError, warn_unused
from fewnode.estimator import Estimator
from fewnode.graph import Ints
from fewnode.model.recogniser import NONE, Recogniser
from fewnode.nodes import Network, Nodes, as_dataset, node_rows
from fewnode.predict import finding, labelling
from fewnode.predict.answers import DESCRIPTION, Answers
from fewnode.predict.labelling import blank, claimable, left_out
from fewnode.predict.multi_label import IndependentClasses, refuse_names
from fewnode.predict.reasons import ClassReasons, Reasons
from fewnode.predict.trust import Estimate, curve, estimated_members
from fewnode.predict.untrained import untrained, unused_edges
from fewnode.predict.with_base import joined_by_base


class Suggested(NamedTuple):
    """A node to ask about: whether it is in that class, P(it is in it), and what the answer is for."""

    node: str
    label: str
    probability: float
    purpose: str
    """`learn`: it teaches most; `find`: it decides which other nodes are members."""


class ClassTrust(NamedTuple):
    """What to expect of a class: how many nodes are in it, and of its claims how many are right, and complete."""

    members: Estimate
    precision: float | None
    recall: float | None


class Question:
    """A model, a network and classes, prepared once; then any nodes can be judged, over and over.

    Names of nodes and classes go in, values come out. A question never changes: `answered` gives another one.
    """

    def __init__(self, model: Estimator, data: Network, given: Definitions, several: bool = False) -> None:
        """`several`: a node may be in several of the classes, each of which is judged on its own."""
        self.model, self.data, self.given, self.several = model, as_dataset(data), given, several
        more = (given.rows, several, given.rejected)
        self._prepare(model.recogniser(self.data, given.support, given.labels, *more))

    def _prepare(self, recogniser: Recogniser) -> None:
        self.recogniser = recogniser
        self.nodes: list[int] = recogniser.support.tolist()
        self.classes = [str(name) for name in recogniser.classes]
        pairs = zip(self.nodes, self.given.labels, strict=True)
        self.support = [(self.data.node_name(node), label) for node, label in pairs]
        self.support += [(DESCRIPTION, str(name)) for name in self.given.descriptions]
        self._independent: IndependentClasses | None = None
        if self.several:
            refuse_names(self.classes)
            self._independent = IndependentClasses(recogniser)

    def rejecting(self, rejected: Mapping[Hashable, Nodes]) -> Question:
        """The same classes with other nodes that are not in them, in less time than anew."""
        found = object.__new__(Question)
        found.model, found.data, found.several = self.model, self.data, self.several
        no = {name: node_rows(self.data, nodes, "rejected").tolist() for name, nodes in rejected.items()}
        found.given = replace(self.given, rejected=no)
        found._prepare(self.recogniser.rejecting(rejected))
        return found

    def answered(self, answers: Mapping[tuple[str, str | int], bool]) -> Question:
        """The question with more answers: is that node in that class?"""
        support, labels = list(self.given.support), list(self.given.labels)
        rejected = {name: list(rows) for name, rows in self.given.rejected.items()}
        for (name, node), yes in answers.items():
            if name not in self.classes:
                raise FewnodeError(f"{name!r} is none of the classes")
            row = int(node_rows(self.data, [node], "answers")[0])
            kept = [pair for pair in zip(support, labels, strict=True) if pair != (row, name)]
            support, labels = [row for row, _ in kept], [label for _, label in kept]
            rejected[name] = [other for other in rejected.get(name, []) if other != row]
            if yes:
                support, labels = [*support, row], [*labels, name]
            else:
                rejected[name].append(row)
        given = replace(self.given, support=support, labels=labels, rejected=rejected)
        return Question(self.model, self.data, given, self.several)

    @property
    def remarks(self) -> list[str]:
        """Descriptions that the labelled nodes of their class disagree with, a sentence each."""
        return [
            f"class {str(name)!r}: its description disagrees with its nodes, so it counts little"
            for name in self.recogniser.disagreeing
        ]

    # --- answers ---

    def judge(
        self,
        nodes: Nodes | None = None,
        *,
        closed_set: bool = False,
        threshold: float | None = None,
        transductive: bool = False,
        explain: bool = False,
    ) -> Answers:
        """What these nodes are taken for, or all that may have a class.

        A node may be in none of the classes, unless `closed_set`, or unless the model cannot tell that. `threshold`:
        where P(it is in any of them) is below, it is in none; 0.5 unless told otherwise. A given node is in the class
        it was given for. `transductive`: the nodes help each other. `explain`: with reasons for each node.
        """
        reason = self.closed_because(closed_set, threshold)
        everyone = np.flatnonzero(claimable(self.data, self.given.support)) if nodes is None else nodes
        rows = node_rows(self.data, everyone, "query")
        if self._independent is None:
            probabilities, member = self.recogniser.judge(rows, transductive, closed_set)
        elif transductive:
            raise FewnodeError("several classes a node: each node is judged on its own; leave out --transductive")
        else:
            probabilities, member = self._independent.judge(rows)
        found = Answers(
            nodes=self._names(rows),
            classes=self.classes,
            probabilities=probabilities,
            member=member,
            support=self.support,
            why=self.recogniser.explain(rows) if explain else None,
            closed_set=bool(reason),
            reason=reason,
            threshold=0.5 if threshold is None else threshold,
            multi_label=self.several,
            embedding=partial(self.recogniser.embedding, rows) if self.recogniser.embeds else None,
        )
        return self._explained(found, rows) if explain else found

    def _names(self, rows: Ints) -> list[str]:
        names = self.data.node_names
        return list(map(str, rows.tolist())) if names is None else list(map(names.__getitem__, rows.tolist()))

    def closed_because(self, closed_set: bool, threshold: float | None) -> str:
        """Why every node is taken to be in one of the classes, or nothing; what makes no sense is refused."""
        cannot = self.recogniser.cannot_tell
        if threshold is not None and not 0 <= threshold <= 1:
            raise FewnodeError(f"the threshold is {threshold}; a probability from 0 to 1 is expected")
        if threshold is not None and closed_set:
            raise FewnodeError("a closed set has no threshold: leave out --threshold or --closed-set")
        if self._independent is not None:
            if closed_set:
                raise FewnodeError("--closed-set means one class a node: leave it out, or --multi-label")
            return ""
        if threshold is not None and cannot:
            raise FewnodeError(f"the threshold is of no use: {cannot}")
        if len(self.classes) == 1 and (closed_set or cannot):
            cause = cannot or "with --closed-set that is every node; leave it out"
            raise FewnodeError(f"one class alone asks which nodes are like {self.classes[0]!r}: {cause}")
        if closed_set or cannot:
            return cannot or "asked for"
        if NONE in self.classes:
            raise FewnodeError(f"a class is called {NONE!r}, as is what is in no class: rename it, or use --closed-set")
        return ""

    # --- why ---

    def why(self, node: str | int, label: str | None = None) -> Reasons:
        """What speaks for and against a node in a class, its likeliest one unless told otherwise.

        Attributes and neighbours that it shares with the examples, the way to one of them in the graph, the nearest
        example and counter-example, and how each view votes.
        """
        row = int(node_rows(self.data, [node], "why")[0])
        if label is None:
            label = self.classes[int(self.recogniser.judge([row])[0].argmax())]
        return ClassReasons(self.recogniser, label).of([row])[0]

    def _explained(self, found: Answers, rows: Ints) -> Answers:
        """With a sentence for each node that has a label, and with the words that it shares with a description.

        First its own words, then those of its neighbours, each with the neighbour that has it.
        """
        best, idf = found.probabilities.argmax(axis=1), None
        words, because = [""] * rows.size, [""] * rows.size
        labelled = np.array([label != NONE for label in found.labels], bool)
        for c, name in enumerate(self.classes):
            places = np.flatnonzero((best == c) & labelled)
            if name in self.given.descriptions:
                shared = shared_words(self.given.descriptions[name], self.data, rows[places])
                for place, own in zip(places.tolist(), shared, strict=True):
                    near = [f"{word} ({self.data.node_name(neighbour)})" for word, neighbour in own.near]
                    words[place] = " ".join([*own.own, *near])
            if places.size and self.recogniser.embeds:
                reasons = ClassReasons(self.recogniser, name, idf)
                for place, each in zip(places.tolist(), reasons.of(rows[places]), strict=True):
                    because[place] = each.sentence
                idf = reasons.idf
        told = because if self.recogniser.embeds else None
        return replace(found, words=words if self.given.descriptions else None, because=told)

    # --- what to ask, and what to trust ---

    def next(self, count: int = 10, purpose: str = "learn", among: Nodes | None = None) -> list[Suggested]:
        """The nodes to ask about. To `learn`: those that teach most; to `find`: those that decide who is a member."""
        given = self.given
        asked: Any = (self.model, self.data, given.support, given.labels, count, among, given.rejected, given.rows)
        found = finding.find(*asked) if purpose == "find" else labelling.suggest(*asked)
        name = self.data.node_name
        return [Suggested(name(each.node), str(each.likely), each.probability, purpose) for each in found]

    def trust(self) -> dict[str, ClassTrust]:
        """What to expect of each class, over all nodes that may be in one."""
        answers = self.judge()
        rows = node_rows(self.data, answers.nodes if self.data.node_names else list(map(int, answers.nodes)), "query")
        found: dict[str, ClassTrust] = {}
        for c, name in enumerate(self.classes):
            own = [node for node, label in zip(self.nodes, self.given.labels, strict=True) if label == name]
            open_ = ~np.isin(rows, [*own, *self.given.rejected.get(name, [])])
            (point,) = curve(answers.probabilities[:, c], [answers.threshold])
            members = estimated_members(answers.probabilities[open_, c], known=len(own))
            found[name] = ClassTrust(members, point.precision, point.recall)
        return found


def ask(
    model: Estimator,
    data: Network,
    classes: Mapping[str, Nodes | str | Class],
    *,
    multi_label: bool = False,
    with_base: bool = False,
) -> tuple[Question, list[str]]:
    """Classes, read by a model for a network; and what of them is not used, a sentence each."""
    network = as_dataset(data)
    given = Definitions.of(network, classes)
    if multi_label and with_base:
        raise FewnodeError("several classes a node: each is judged on its own; leave out with_base")
    question = Question(model, network, joined_by_base(network, given, model.seed) if with_base else given, multi_label)
    return question, [*question.given.remarks, *question.remarks, *unused_edges(model, network)]


def recognise(
    data: Network,
    classes: Mapping[str, Nodes | str | Class],
    query: Nodes | None = None,
    *,
    model: Estimator | None = None,
    explain: bool = False,
    transductive: bool = False,
    closed_set: bool = False,
    threshold: float | None = None,
    proportions: Mapping[str, float] | None = None,
    with_base: bool = False,
    multi_label: bool = False,
) -> Answers:
    """Judge every node, or those of `query`, by classes that are given as nodes, as a sentence, or both.

    Every node means those of the kinds that have labels, or nodes of a class. If `multi_label`, each class is judged on
    its own, and a given node may be in several. Name it in all of them: it speaks against the others.

    No training is needed: without a `model`, GPN+ answers from what base classes the dataset has and from its prior.
    What it could not use of a description, and a description that the nodes of its class disagree with, is named by an
    `UnusedInput` warning. `proportions`: the share of each class among those nodes that are in any, if that is
    known. `with_base`: nodes may also be in one of the base classes of the dataset, each by as many of its labelled
    nodes as the largest new class has.

    >>> import fewnode
    >>> y = np.repeat(range(4), 20)
    >>> data = fewnode.Dataset.from_scipy(y[:, None] == y, np.eye(4)[y], y)
    >>> found = recognise(data, {"mail": [0, 1], "vpn": fewnode.Class(yes=[25, 26])}, query=[3, 30])
    >>> found.labels
    ['mail', 'vpn']
    """
    network = as_dataset(data)
    if multi_label and proportions:
        raise FewnodeError("several classes a node: each is judged on its own; leave out proportions")
    question, remarks = ask(model or untrained(network), network, classes, multi_label=multi_label, with_base=with_base)
    if query is None:
        remarks.append(left_out(network, question.given.support))
    asked = np.flatnonzero(claimable(network, question.given.support)) if query is None else query
    remarks.append(blank(network, node_rows(network, asked, "query")))
    if told := [*filter(None, remarks)]:
        warn_unused(told, stacklevel=3)
    mode: dict[str, Any] = {"closed_set": closed_set, "threshold": threshold}
    found = question.judge(asked, **mode, transductive=transductive, explain=explain)
    return found if proportions is None else found.in_proportion(proportions)
