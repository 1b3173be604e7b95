"""A model, a network and classes, prepared once: judge nodes, say why, what to ask next, and what to trust."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np

from fewnode.dataset import Dataset
from fewnode.episodes import Task
from fewnode.errors import FewnodeError
from fewnode.evidence import Evidence
from fewnode.graph import Ints
from fewnode.nodes import Nodes, node_rows
from fewnode.recognition.answers import DESCRIPTION, DIGITS, SEPARATOR, Answers
from fewnode.recognition.calibration import Doubles
from fewnode.recognition.classes import Asked, Given
from fewnode.recognition.mixing import MIXED_NODES, Mixture, mixture
from fewnode.recognition.population import cannot_tell, claimable, closed_because
from fewnode.recognition.prototypes import DOUBTED
from fewnode.recognition.rejection import biased, remaining, shift
from fewnode.recognition.several import claimed_from, class_shares, each_on_its_own
from fewnode.recognition.space import Explanation, Prepared, Rows, Space
from fewnode.vectors import SAMPLE, Probabilities, drawn

if TYPE_CHECKING:
    from fewnode.review.finding import Stop
    from fewnode.review.labelling import Suggestion
    from fewnode.review.reasons import Reasons
    from fewnode.review.trust import ClassTrust
FEWEST = 3
"""Classes whose sizes tell how large another one may be."""


@dataclass(frozen=True, eq=False)
class Question:
    """A model, a network and classes, prepared once. It never changes: `answered` gives another one.

    >>> import fewnode; y = np.repeat(range(20), 20)  # twenty classes of nodes that know each other and look alike
    >>> data = Dataset.from_scipy(y[:, None] == y, np.eye(20)[y], y)
    >>> fewnode.recognise(data, {"mail": [0, 1], "vpn": [25, 26]}).labels[3:6]
    ['mail', 'mail', 'mail']
    """

    model: str
    """The name of the method."""
    data: Dataset
    given: Given
    space: Space | None
    """z of all nodes and how these become answers; None for a method without an embedding."""
    predict: Callable[[Task, bool], Probabilities] | None = None
    """How such a method answers a task, alone or together (transductive)."""
    several: bool = False
    """A node may be in several of the classes: each is judged on its own."""
    asked: tuple[Asked, ...] = ()
    """Answers that `next` asked for: what is known of all nodes is estimated from these."""
    expected: float | None = None
    """How many nodes are in the classes, where that is known."""

    def __post_init__(self) -> None:
        if self.space is None and self.given.no:
            raise FewnodeError(f"{self.model} cannot learn from rejected nodes; gpn-plus can")
        if self.given.described is not None and not (self.space and self.space.reads_descriptions):
            raise FewnodeError(f"{self.model} cannot read descriptions of classes; gpn-plus can")
        if self.expected is not None and (self.several or not 0 < self.expected <= self.data.graph.n):
            each = ": each class of several a node has a number of its own" if self.several else ""
            raise FewnodeError(f"{self.expected:,g} nodes cannot be expected in the classes{each}")
        if self.several and (name := next((name for name in self.classes if SEPARATOR in name), "")):
            raise FewnodeError(f"class {name!r}: {SEPARATOR!r} stands between the classes of a node; rename it")
        if self.several and self.cannot_tell:
            raise FewnodeError(f"several classes a node: each is told from all other nodes; {self.cannot_tell}")

    # --- what is known ---

    @property
    def classes(self) -> list[str]:
        return [str(name) for name in self.given.names]

    @property
    def support(self) -> list[tuple[str, str]]:
        """The name and the class of each given node, then each description."""
        nodes, labels = map(self.data.node_name, self.given.support.tolist()), map(str, self.given.labels)
        described = () if self.given.described is None else self.given.described.y.tolist()
        return [*zip(nodes, labels, strict=True), *((DESCRIPTION, self.classes[c]) for c in described)]

    @property
    def remarks(self) -> list[str]:
        """What of the classes is not used, and descriptions that their nodes disagree with, a sentence each."""
        doubted: list[int] = []
        if self.mixed is not None:
            doubted = self.mixed.doubted
        elif self.space is not None and self.given.described is not None:
            worth = self.prepared.given.count[self.given.support.size :] / self.space.head.worth
            doubted = self.given.described.y[worth < DOUBTED].tolist()
        said = "its description disagrees with its nodes, so it counts little"
        return [*self.given.remarks, *(f"class {self.classes[c]!r}: {said}" for c in doubted)]

    @property
    def cannot_tell(self) -> str:
        """Why it cannot be told whether a node is in any of the classes, and what would help; nothing if it can."""
        return cannot_tell(self.model, len(self.given.names), None if self.space is None else self.space.head)

    @property
    def embedded(self) -> Space:
        """What answers come from, where there is an embedding."""
        if self.space is None:
            raise FewnodeError(f"{self.model} has no embedding of nodes; use gpn-plus")
        return self.space

    @property
    def prepared(self) -> Prepared:
        space = self.embedded
        return space.kept(("prepared", *self.given.key), lambda: space.prepare(self.given.task(np.zeros(0, np.int64))))

    @property
    def mixed(self) -> Mixture | None:
        """What plain evidence says beside the embedding; None where base classes taught what counts."""
        space = self.space
        if space is None or self.several or self.cannot_tell or not space.head.adapts:
            return None
        if space.embedding.n > MIXED_NODES:
            return None
        z, evidence = space.embedding.z, space.kept("evidence", lambda: Evidence.of(self.data.graph))
        return space.kept(("mixed", *self.key), lambda: mixture(evidence, z, self.given, self.expected))

    @property
    def key(self) -> tuple[Hashable, ...]:
        return (*self.given.key, self.expected)

    @property
    def ranks_only(self) -> str:
        """Why answers rank nodes and do not say how many are in a class; nothing if they do."""
        return "" if self.mixed is None or self.expected is not None else self.mixed.ranks_only(self.classes)

    def rows(self, nodes: Nodes) -> Ints:
        return node_rows(self.data, nodes, "query")

    # --- probabilities ---

    def probabilities(
        self, rows: Ints, transductive: bool = False, closed_set: bool = False
    ) -> tuple[Doubles, Doubles | None]:
        """P(a node is in a class), a column each, and P(it is in any), which is their sum; in a closed set that is 1.

        The latter is None where it cannot be told: then the set is taken for closed. Steps: each expert's answer,
        mixed and tempered; membership; what was rejected; what was given. All is rounded, once for whoever shows it.
        """
        if self.several:
            return self._independent(rows)
        found, member = self._expected(rows, transductive)
        if self.given.no:
            by = shift(self, rows)
            member = None if member is None else remaining(member, found, by)
            found = biased(found, by)
        among = found.astype(np.float64)
        if member is not None and not closed_set:
            among *= member[:, None]
        for row in np.flatnonzero(np.isin(rows, self.given.support)):
            among[row] = np.arange(len(self.given.names)) == self.given.y[self.given.support == rows[row]][0]
            if member is not None:
                member[row] = 1.0
        return among.round(DIGITS), None if member is None else member.round(DIGITS)

    @cached_property
    def everyone(self) -> tuple[Doubles, Doubles | None]:
        """The probabilities of all nodes."""
        return self.probabilities(np.arange(self.data.graph.n))

    def _expected(self, rows: Ints, transductive: bool) -> tuple[Probabilities, Doubles | None]:
        """P(class) among the classes, and P(it is in any); whatever was rejected. That of all nodes is kept."""
        if self.space is None and self.predict is not None:
            answer = self.predict(self.given.task(rows), transductive)
            return (answer if len(self.given.names) > 1 else np.ones((rows.size, 1), np.float32)), None
        space = self.embedded
        looked = space.look(rows)
        if transductive and len(self.given.names) > 1:
            return space.predict(self.given.task(rows), True), self.is_in_any(looked)
        if not looked.whole:
            return self.alone(looked), self.is_in_any(looked)
        everyone = space.kept(("all", *self.key), lambda: (self.alone(looked), self.is_in_any(looked)))
        return everyone[0], None if everyone[1] is None else everyone[1].copy()

    def alone(self, rows: Rows) -> Probabilities:
        """P(class) among the classes of nodes that are judged one by one: each expert, mixed, then tempered."""
        if len(self.given.names) == 1:
            return np.ones((rows.nodes.size, 1), np.float32)
        space, prepared, task = self.embedded, self.prepared, self.given.task(rows.nodes)
        found = space.tempered(space.answer(prepared, rows.z), task, rows, prepared)
        return found if self.mixed is None else self.mixed.among(found, task, space.left_out(prepared, task))

    def is_in_any(self, rows: Rows) -> Doubles | None:
        """P(a node is in any of the classes), whatever was rejected; None where it cannot be told."""
        if self.cannot_tell:
            return None
        mixed = self.mixed
        return self.embedded.member(self.prepared, rows, self.share) if mixed is None else mixed.member(rows.nodes)

    def among(self, rows: Ints, transductive: bool = False) -> Probabilities:
        """P(class) of nodes that are in one of the classes; rows sum to 1."""
        found, _ = self._expected(rows, transductive)
        return biased(found, shift(self, rows)) if self.given.no else found

    def member(self, rows: Ints, share: float | None = None) -> Doubles:
        """P(a node is in one of the classes), if that share of the network is; else by what share seems to be."""
        if self.cannot_tell:
            raise FewnodeError(self.cannot_tell)
        if share is not None:
            return self.embedded.member(self.prepared, self.embedded.look(rows), share)
        found, member = self._expected(rows, False)
        assert member is not None, "it can be told"  # noqa: S101 # nosec B101
        return remaining(member, found, shift(self, rows)) if self.given.no else member

    @property
    def share(self) -> float:
        """What share of the network is in the classes."""
        space = self.embedded
        if self.expected is not None:
            return min(self.expected / self.data.graph.n, 0.999)
        return space.kept(("share", *self.key), lambda: space.share_of_members(self.prepared))

    def _independent(self, rows: Ints) -> tuple[Doubles, Doubles]:
        """P(a node is in a class), as if classes were independent, and P(it is in at least one)."""
        space, given, data, known = self.embedded, self.given, self.data, None
        population, key = np.flatnonzero(data.claimable_mask), ("shares", *given.key)
        if data.labels is not None:  # a model learned sizes by nodes of one class alone, of which there may be few
            sizes = data.class_sizes[[*data.split.train, *data.split.valid]]
            known = float(sizes.mean() / max(1, population.size)) if sizes.size >= FEWEST else None
        shares = space.kept(key, lambda: class_shares(space, given, population, known))
        found = each_on_its_own(space, given, rows, shares)
        if given.no:
            found = remaining(found, np.ones((*found.shape, 1)), shift(self, rows)[:, :, None])
        for row in np.flatnonzero(np.isin(rows, given.support)):
            found[row] = np.isin(np.arange(len(given.names)), given.y[given.support == rows[row]])
        found = found.round(DIGITS)
        return found, (1 - (1 - found).prod(axis=1)).round(DIGITS)

    @property
    def _claimed_from(self) -> tuple[float, ...]:
        """From which probability on each of several classes claims nodes, by all that may be in one."""
        some = np.flatnonzero(self.data.claimable_mask)
        found = partial(self._independent, some[drawn(some.size, SAMPLE)])
        return self.embedded.kept(("claimed from", *self.given.key), lambda: claimed_from(found()[0]))

    # --- answers ---

    def judge(
        self,
        nodes: Nodes | None = None,
        *,
        closed_set: bool = False,
        threshold: float | None = None,
        transductive: bool = False,
        explain: bool = False,
        expected: float | None = None,
        top: int = 0,
    ) -> Answers:
        """What these nodes are taken for, or all that may have a class.

        A node may be in none of the classes, unless `closed_set`, or unless the model cannot tell that. `threshold`:
        where P(it is in any of them) is below, it is in none; 0.5 unless told otherwise. A given node is in the class
        it was given for. `transductive`: the nodes help each other. `explain`: with reasons for each node.
        `expected`: how many nodes of the network are in the classes, where that is known. `top`: label so many
        of each class, the likeliest ones, beside those that are given.
        """
        if expected is not None:
            more = {"closed_set": closed_set, "threshold": threshold, "transductive": transductive, "explain": explain}
            return replace(self, expected=expected).judge(nodes, top=top, **more)  # type: ignore[arg-type]
        mixed = self.mixed
        rest = "" if mixed is None or not mixed.ordinary.any() else self.classes[int(mixed.ordinary.argmax())]
        reason = closed_because(self.classes, self.several, self.cannot_tell, closed_set, threshold, rest)
        ranked = self.ranks_only if threshold is None and not reason else ""
        if top and (why := reason or (self.several and "several classes") or (threshold is not None and "a threshold")):
            raise FewnodeError(f"no number of nodes is labelled beside this: {why}", remedy="leave out `top`")
        if self.several and transductive:
            raise FewnodeError("several classes a node: each is judged on its own; leave out the transductive mode")
        rows = np.flatnonzero(claimable(self.data, self.given.support)) if nodes is None else self.rows(nodes)
        probabilities, member = self.probabilities(rows, transductive, closed_set)
        space, names = self.space, self.data.node_names
        found = Answers(
            nodes=[str(row) if names is None else names[row] for row in rows.tolist()],
            classes=self.classes,
            probabilities=probabilities,
            member=None if ranked else member,
            support=self.support,
            why=self.explain(rows) if explain else None,
            closed_set=bool(reason),
            reason=reason or ranked,
            left_out={} if mixed is None else {n: c.rank for n, c in zip(self.classes, mixed.classes, strict=True)},
            threshold=0.5 if threshold is None else threshold,
            multi_label=self.several,
            claimed_from=self._claimed_from if self.several and threshold is None else (),
            top=top,
            embedding=None if space is None else partial(lambda space: space.look(rows).z, space),
        )
        if not explain:
            return found
        from fewnode.review.reasons import with_reasons

        return with_reasons(self, found, rows)

    def explain(self, rows: Ints) -> Explanation:
        """β of each support node, and the support nodes (their places) nearest to each of these nodes."""
        return self.embedded.explain(self.prepared, self.embedded.look(rows).z)

    # --- what comes after an answer ---

    def answered(self, answers: Mapping[tuple[str, str | int], bool]) -> Question:
        """The question with more answers: is that node in that class?"""
        from fewnode.review.finding import asked_among

        given = self.given.answered(self.data, answers, self.several)
        told = {(name, int(self.rows([node])[0])): yes for (name, node), yes in answers.items()}
        before = tuple(each for each in self.asked if (each.label, each.row) not in told)
        return replace(self, given=given, asked=before + asked_among(self, told))

    def why(self, node: str | int, label: str | None = None) -> Reasons:
        """What speaks for and against a node in a class, its likeliest one unless told otherwise."""
        from fewnode.review.reasons import ClassReasons

        row = self.rows([node])
        name = self.classes[int(self.probabilities(row)[0].argmax())] if label is None else label
        return ClassReasons(self, name).of(row)[0]

    def next(self, count: int = 10, purpose: str | None = None, among: Nodes | None = None) -> list[Suggestion]:
        """The nodes to ask about. To `learn`: those that teach most; to `find`: those that decide who is a member.

        Unless told otherwise it is to find, if it can be told at all what is in none of the classes.
        """
        from fewnode.review import finding, labelling

        purpose = purpose or ("learn" if self.cannot_tell else "find")
        if purpose not in ("learn", "find"):
            raise FewnodeError(f"the purpose of a question is {purpose!r}, expected learn or find")
        choose = finding.find if purpose == "find" else labelling.suggest
        return choose(self, count, None if among is None else node_rows(self.data, among, "among"))

    def trust(self) -> dict[str, ClassTrust]:
        """How many members each class has, which share of claims is right and which share of members is found."""
        from fewnode.review.trust import trust

        return trust(self)

    def stop(self, label: str, recall: float = 0.8) -> Stop:
        """Whether that share of the members of a class is found, so that it is not worth going on; and why."""
        from fewnode.review.finding import stop

        return stop(self, label, recall)
