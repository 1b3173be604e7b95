"""The state of the service, which its changes add up to: classes, answers about nodes, and new nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from fewnode.service.bodies import AnswerChange, AttachChange, Change, ClassChange, Forget, NewNode, OneAnswer

SHOWN = 3
"""Names that a sentence lists."""


class GivenClass(NamedTuple):
    """A class as somebody gave it: the names of some of its nodes, a description, or both."""

    name: str
    nodes: tuple[str, ...] = ()
    description: str | None = None
    """An empty one means that the name speaks."""
    rejected: tuple[str, ...] = ()
    """Nodes that somebody said are not in it."""


class Verdict(NamedTuple):
    """What somebody answered when asked whether a node is in a class."""

    yes: bool
    check: bool
    """Whether it was asked as one of a sample of what the class claims, and not to learn from it."""
    who: str | None
    when: str
    probability: float | None = None
    """Of the node when it was asked about; None if nobody asked."""


@dataclass(eq=False)
class State:
    """What all changes so far add up to. `apply` changes it; whoever shows a state to others changes a copy."""

    support: dict[str, dict[str, None]] = field(default_factory=dict)
    """Of each class, the names of its examples in order; none where a description alone stands for it."""
    descriptions: dict[str, str] = field(default_factory=dict)
    verdicts: dict[str, dict[str, Verdict]] = field(default_factory=dict)
    """Of each class, what was answered of nodes. The node of a yes is among its examples, that of a no is not."""
    nodes: dict[str, NewNode] = field(default_factory=dict)
    """Nodes that came later, in order."""
    arrivals: dict[str, str] = field(default_factory=dict)
    """When each of them came."""

    def copied(self) -> State:
        return replace(
            self,
            support={name: {**nodes} for name, nodes in self.support.items()},
            descriptions={**self.descriptions},
            verdicts={name: {**verdicts} for name, verdicts in self.verdicts.items()},
            nodes={**self.nodes},
            arrivals={**self.arrivals},
        )

    def apply(self, change: Change, who: str | None, when: str) -> None:
        """Add a change that was checked before."""
        match change:
            case ClassChange():
                self._put(change)
            case Forget():
                for table in (self.support, self.descriptions, self.verdicts):
                    table.pop(change.name, None)
            case AnswerChange():
                for each in change.answers:
                    self._answer(each, change.check, who, when)
            case AttachChange():
                self.nodes |= {node.node: node for node in change.nodes}
                self.arrivals |= dict.fromkeys((node.node for node in change.nodes), when)

    def _put(self, change: ClassChange) -> None:
        """Answers that the class contradicts from now on are no answers any more."""
        self.support[change.name] = dict.fromkeys(change.support)
        self.descriptions.pop(change.name, None)
        if change.description is not None:
            self.descriptions[change.name] = change.description
        own = self.verdicts.setdefault(change.name, {})
        for node in [node for node, verdict in own.items() if verdict.yes != (node in self.support[change.name])]:
            del own[node]

    def _answer(self, answer: OneAnswer, check: bool, who: str | None, when: str) -> None:
        """A node that was drawn by chance stays in the sample if it is answered again: else only its noes would."""
        node, verdict = answer.node, answer.verdict
        own, support = self.verdicts[answer.label], self.support[answer.label]
        before = own.get(node)
        check = check or (before is not None and before.check)
        if verdict is not None and before is not None and (before.yes, before.check) == (verdict == "yes", check):
            return  # said already; who said it first is kept
        own.pop(node, None)
        if verdict == "yes":
            support.setdefault(node)
        else:
            support.pop(node, None)
        if verdict is not None:
            asked = answer.probability if before is None else before.probability
            own[node] = Verdict(verdict == "yes", check, who, when, asked)

    # --- what it says ---

    @property
    def names(self) -> list[str]:
        return list(self.support)

    @property
    def answers(self) -> int:
        return sum(map(len, self.verdicts.values()))

    @property
    def examples(self) -> int:
        return sum(map(len, self.support.values()))

    @property
    def given(self) -> tuple[GivenClass, ...]:
        return tuple(
            GivenClass(
                name,
                tuple(nodes),
                self.descriptions.get(name),
                tuple(node for node, verdict in self.verdicts[name].items() if not verdict.yes),
            )
            for name, nodes in self.support.items()
        )

    def same_as(self, other: State) -> bool:
        """Whether nothing differs, the order of classes and examples included."""
        tables = ("support", "descriptions", "verdicts", "nodes")
        if any(getattr(self, each) != getattr(other, each) for each in tables) or self.names != other.names:
            return False
        return all([*nodes] == [*other.support[name]] for name, nodes in self.support.items())


# --- changes in sentences -----------------------------------------------------------------------------------------


def sentence(change: Change) -> str:
    """What a change did."""
    match change:
        case ClassChange():
            said = ["a description"] if change.description is not None else []
            return f"{change.name} is given by {' and '.join([*_counted('example', change.support), *said])}."
        case Forget():
            return f"{change.name} was forgotten."
        case AttachChange():
            return f"{_listed([node.node for node in change.nodes])} came."
        case AnswerChange():
            told = _answers(change)
            return f"{told[:-1]} (checked)." if change.check else told


def _answers(change: AnswerChange) -> str:
    if len(change.answers) == 1:
        one = change.answers[0]
        said = {"yes": "is in", "no": "is not in", None: "is no longer answered for"}
        return f"{one.node} {said[one.verdict]} {one.label}."
    words = {"yes": "yes", "no": "no", None: "withdrawn"}
    counts = {word: sum(each.verdict == said for each in change.answers) for said, word in words.items()}
    told = ", ".join(f"{count} {word}" for word, count in counts.items() if count)
    return f"{len(change.answers)} answers for {_listed(list(dict.fromkeys(a.label for a in change.answers)))}: {told}."


def _counted(noun: str, things: Sequence[Any]) -> list[str]:
    return [f"{len(things)} {noun}{'s' * (len(things) != 1)}"] if things else []


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"{', '.join(names[:SHOWN])}{more}"
