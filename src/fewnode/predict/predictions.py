"""Support and query tables in, predictions and their reasons out."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial, reduce
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewnode.classes.definitions import Class, Definitions
from fewnode.classes.description import Description, shared_words
from fewnode.dataset import Dataset
from fewnode.display import SHOWN, Shown
from fewnode.errors import FewnodeError, warn_unused
from fewnode.estimator import Estimator
from fewnode.graph import Attributes, Ints
from fewnode.machine.files import write_text
from fewnode.model.recogniser import DIGITS, NO_DESCRIPTIONS, NO_REJECTED, Recogniser
from fewnode.model.recogniser import NONE as NONE
from fewnode.nodes import Network, Nodes, as_dataset
from fewnode.predict import prediction_tables as tables
from fewnode.predict.labelling import blank, claimable, left_out
from fewnode.predict.multi_label import IndependentClasses, joined_labels, refuse_names
from fewnode.predict.prediction_plots import draw
from fewnode.predict.prediction_tables import COLUMNS as COLUMNS
from fewnode.predict.prediction_tables import class_columns as class_columns
from fewnode.predict.reasons import ClassReasons, Reasons
from fewnode.predict.untrained import untrained, unused_edges
from fewnode.predict.with_base import joined_by_base
from fewnode.recognition.prototypes import Explanation

DESCRIPTION = "(description)"
"""What stands in place of a node where a description is named as the reason of an answer."""


@dataclass(frozen=True, eq=False, repr=False)
class Predictions(Shown):
    """The answer for some nodes: a label, its probability, one a class, that of being in any and, if asked, why.

    `probabilities` has a row a node and a column a class: P(the node is in that class). A row's sum is `member`, the
    probability of being in any of them. Where `closed_set` is true, every node is taken to be in one of them: then the
    sum is 1, `reason` says why it is so, and `member` is None where it cannot be told. If `multi_label`, each
    class is judged on its own: a row need not sum to anything, and `member` is the probability of at least one.

    >>> found = Predictions(["a", "b"], ["mail", "vpn"], np.array([[0.7, 0.2], [0.1, 0.1]]), np.array([0.9, 0.2]), [])
    >>> found.labels, found.probability.tolist()
    (['mail', 'none of these'], [0.7, 0.8])
    """

    nodes: list[str]
    classes: list[str]
    probabilities: NDArray[np.float64]
    member: NDArray[np.float64] | None
    support: list[tuple[str, str]]
    why: Explanation | None = None
    closed_set: bool = False
    reason: str = ""
    threshold: float = 0.5
    multi_label: bool = False
    words: list[str] | None = None
    """Of each node, the words that it shares with the description of its class, if there is one."""
    because: list[str] | None = None
    """Of each node that has a label, a sentence: what it shares with the examples of its class, and who is like it."""
    recogniser: Recogniser | None = None
    """What gave the answers."""
    embedding: Callable[[], NDArray[np.float32]] | None = None
    """Gives z of each node, for a map; None if the method has none."""

    def __post_init__(self) -> None:
        for numbers in (self.probabilities, self.member):
            if numbers is None:
                continue
            bad = ~np.isfinite(numbers if numbers.ndim == 1 else numbers.sum(axis=1))
            if bad.any():
                name = self.nodes[int(bad.argmax())]
                raise FewnodeError(
                    f"node {name!r}: its probability is not a finite number; look for numbers too large in the model "
                    "or in the attributes of the node"
                )

    def only(self, rows: Sequence[int], why: Explanation | None = None) -> Predictions:
        """The answer for some of the nodes."""
        member = None if self.member is None else self.member[rows]
        names = [self.nodes[i] for i in rows]
        words, because = (None if texts is None else [texts[i] for i in rows] for texts in (self.words, self.because))
        kept: dict[str, Any] = {"nodes": names, "member": member, "why": why, "words": words, "embedding": None}
        return replace(self, probabilities=self.probabilities[rows], because=because, **kept)

    def explain(self, node: str | int, label: str | None = None) -> Reasons:
        """What speaks for and against a node in a class, its likeliest one unless told otherwise.

        Attributes and neighbours that it shares with the examples, the way to one of them in the graph, the nearest
        example and counter-example, and how each view votes.
        """
        if self.recogniser is None:
            raise FewnodeError("these predictions came without the model that made them, so nothing explains them")
        row = int(self.recogniser.rows([node])[0])
        if label is None:
            label = self.classes[int(self.recogniser.judge([row])[0].argmax())]
        return ClassReasons(self.recogniser, label).of([row])[0]

    def with_reasons(self) -> Predictions:
        """The same, and `because`: a sentence for each node that has a label. Without an embedding there is none."""
        if self.recogniser is None or not self.recogniser.embeds:
            return self
        best, told, idf = self.probabilities.argmax(axis=1), [""] * len(self.nodes), None
        labelled = np.array([label != NONE for label in self.labels], bool)
        for place, name in enumerate(self.classes):
            rows = np.flatnonzero((best == place) & labelled)
            if not rows.size:
                continue
            reasons = ClassReasons(self.recogniser, name, idf)
            for row, each in zip(rows, reasons.of(self.recogniser.rows([self.nodes[i] for i in rows])), strict=True):
                told[row] = each.sentence
            idf = reasons.idf
        return replace(self, because=told)

    def with_words(self, data: Dataset, descriptions: Mapping[str, Description]) -> Predictions:
        """The same, and for each node that is in a described class the words that speak for it.

        First those of the node itself, then those of its neighbours, each with the neighbour that has it.
        """
        best = [self.classes[c] for c in self.probabilities.argmax(axis=1)]
        words = [""] * len(self.nodes)
        for name, description in descriptions.items():
            places = [i for i, label in enumerate(self.labels) if label != NONE and best[i] == name]
            shared = shared_words(description, data, [data.node(self.nodes[i]) for i in places])
            for place, found in zip(places, shared, strict=True):
                near = [f"{word} ({data.node_name(neighbour)})" for word, neighbour in found.near]
                words[place] = " ".join([*found.own, *near])
        return replace(self, words=words)

    @cached_property
    def labels(self) -> list[str]:
        """The most likely class; none of these where being in any of them is less likely than the threshold.

        If `multi_label`, all classes that are at least as likely as the threshold, joined by `|`.
        """
        if self.multi_label:
            return joined_labels(self.classes, self.probabilities, self.threshold)
        names = [*self.classes, NONE]
        return [names[place] for place in self.places.tolist()]

    @cached_property
    def places(self) -> Ints:
        """Of each node, the place of its label among the classes; -1 for none of these. Not for `multi_label`."""
        best: Ints = self.probabilities.argmax(axis=1)
        if self.closed_set or self.member is None:
            return best
        refused = reduce(np.maximum, self.probabilities.T) <= 0  # said by somebody; holds at a threshold of 0
        return np.where((self.member < self.threshold) | refused, -1, best)

    @cached_property
    def probability(self) -> NDArray[np.float64]:
        """Of the label that each node has; of none of these it is 1 - member.

        If `multi_label`, of the likeliest class, whatever the label.
        """
        top: NDArray[np.float64] = reduce(np.maximum, self.probabilities.T)  # sooner than by rows, which are short
        if self.multi_label or self.closed_set or self.member is None:
            return top
        return np.where(self.places < 0, np.round(1 - self.member, DIGITS), top)

    @property
    def nearest(self) -> list[list[str]]:
        """The support nodes nearest to each node, nearest first; empty unless explained."""
        return [[self.support[i][0] for i in row] for row in self.why.nearest] if self.why else []

    def to_csv(self) -> str:
        """`node,label,probability`, one column a class, `member` (empty: not known) and, if explained, `nearest`."""
        return tables.csv(self)

    def support_csv(self) -> str:
        """`node,class,beta`: the weight of each support node in its class's prototype."""
        return tables.support_csv(self)

    def support_table(self) -> str:
        """The same for people: the heaviest support node of each class first."""
        return tables.support_text(self)

    def to_pandas(self) -> Any:
        """A `pandas.DataFrame` with the columns of `to_csv`."""
        return tables.frame(self)

    def to_json(self) -> dict[str, Any]:
        """The same as an object; `probabilities` by the name of the class, `member` null where it is not known."""
        return tables.as_object(self)

    def write(self, path: Path) -> None:
        write_text(path, self.to_csv())
        if self.why:
            write_text(path.with_suffix(".support.csv"), self.support_csv())

    def plot(self, kind: str = "map", truth: Dataset | Sequence[str | None] | None = None) -> Any:
        """A picture, a matplotlib `Figure` that notebooks show: `map`, `calibration` or `precision-recall`.

        The map shows the nodes by their embedding. The other two need the `truth`: a class for each node (None:
        unknown), or a dataset that has them.
        """
        return draw(self, kind, truth)

    def facts(self) -> dict[str, object]:
        """How many nodes have each label."""
        counts = Counter(self.labels)
        return {"nodes": f"{len(self.nodes):,}", **{name: f"{count:,}" for name, count in counts.most_common(SHOWN)}}

    def _repr_html_(self) -> str:
        return tables.html(self)


class Answerer:
    """A model and classes by name; whatever is asked about then, the classes are read once."""

    def __init__(
        self,
        model: Estimator,
        data: Network,
        support: Nodes,
        labels: Sequence[str],
        described: Mapping[Hashable, Attributes] = NO_DESCRIPTIONS,
        multi_label: bool = False,
        rejected: Mapping[Hashable, Nodes] = NO_REJECTED,
    ) -> None:
        """`rejected`: for some classes, nodes that are not in them."""
        self.data = data = as_dataset(data)
        self.recogniser = model.recogniser(data, support, labels, described, multi_label, rejected)
        self.nodes: list[int] = self.recogniser.support.tolist()
        self.classes = [str(name) for name in self.recogniser.classes]
        self.support = [(data.node_name(node), label) for node, label in zip(self.nodes, labels, strict=True)]
        self.support += [(DESCRIPTION, str(name)) for name in described]
        self.independent: IndependentClasses | None = None
        if multi_label:
            refuse_names(self.classes)
            self.independent = IndependentClasses(self.recogniser)

    def elsewhere(self, data: Dataset, method: Any) -> Answerer:
        """The same classes for other nodes, as `Recogniser.elsewhere` has them."""
        found = copy.copy(self)
        found.data, found.recogniser = data, self.recogniser.elsewhere(data, method)
        return found

    def rejecting(self, rejected: Mapping[Hashable, Nodes]) -> Answerer:
        """The same classes with other rejected nodes, in less time than anew."""
        found = copy.copy(self)
        found.recogniser = self.recogniser.rejecting(rejected)
        if self.independent is not None:
            found.independent = IndependentClasses(found.recogniser)
        return found

    @property
    def remarks(self) -> list[str]:
        """Descriptions that the labelled nodes of their class disagree with, a sentence each."""
        return [
            f"class {str(name)!r}: its description disagrees with its nodes, so it counts little"
            for name in self.recogniser.disagreeing
        ]

    def predictions(
        self,
        query: Nodes,
        explain: bool = False,
        transductive: bool = False,
        *,
        closed_set: bool = False,
        threshold: float | None = None,
        proportions: Mapping[str, float] | None = None,
    ) -> Predictions:
        """A node may be in none of the classes, unless `closed_set`, or unless the model cannot tell that.

        `threshold`: where P(it is in any of them) is below, it is in none; 0.5 unless told otherwise. A support node
        is in the class it was given for. `proportions`: the share of each class among the members of the query, if
        that is known.
        """
        reason = self.closed_because(closed_set, threshold)
        rows = self.recogniser.rows(query)
        if self.independent is None:
            probabilities, member = self.recogniser.judge(rows, transductive, closed_set, proportions)
        elif transductive:
            raise FewnodeError("several classes a node: each node is judged on its own; leave out --transductive")
        else:
            probabilities, member = self.independent.judge(rows)
        return Predictions(
            nodes=self._names(rows),
            classes=self.classes,
            probabilities=probabilities,
            member=member,
            support=self.support,
            why=self.recogniser.explain(rows) if explain else None,
            closed_set=bool(reason),
            reason=reason,
            threshold=0.5 if threshold is None else threshold,
            multi_label=self.independent is not None,
            embedding=partial(self.recogniser.embedding, rows) if self.recogniser.embeds else None,
            recogniser=self.recogniser,
        )

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
        if self.independent is not None:
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
) -> Predictions:
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
    >>> found = recognise(data, {"mail": [0, 1], "vpn": fewnode.Class(nodes=[25, 26])}, query=[3, 30])
    >>> found.labels
    ['mail', 'vpn']
    """
    network = as_dataset(data)
    given = Definitions.of(network, classes)
    model = model or untrained(network)
    if with_base:
        given = joined_by_base(network, given, model.seed)
    asked = np.flatnonzero(claimable(network, given.support)) if query is None else query
    others = left_out(network, given.support) if query is None else ""
    if multi_label and (with_base or proportions):
        raise FewnodeError("several classes a node: each is judged on its own; leave out with_base and proportions")
    mode: dict[str, Any] = {"closed_set": closed_set, "threshold": threshold, "proportions": proportions}
    more = (given.rows, multi_label, given.rejected)
    answerer = Answerer(model, network, given.support, given.labels, *more)
    told = filter(None, [others, blank(network, answerer.recogniser.rows(asked))])
    if remarks := [*given.remarks, *answerer.remarks, *unused_edges(model, network), *told]:
        warn_unused(remarks, stacklevel=3)
    found = answerer.predictions(asked, explain, transductive, **mode)
    if explain and given.descriptions:
        found = found.with_words(network, given.descriptions)
    return found.with_reasons() if explain else found
