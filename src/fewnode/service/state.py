"""The state of the service, which its changes add up to: classes, answers about nodes, and new nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from fewnode.service.bodies import AnswerChange, AttachChange, Change, ClassChange, Forget, NewNode, OneAnswer

SHOWN = 3
"""Names that a sentence lists."""
SAID = {"yes": "is in", "no": "is not in", None: "is no longer answered for"}
COUNTED = {"yes": "yes", "no": "no", None: "withdrawn"}


class Verdict(NamedTuple):
    """What somebody answered when asked whether a node is in a class."""

    yes: bool
    check: bool
    """Whether it was asked as one of a sample of what the class claims, and not to learn from it."""
    who: str | None
    when: str
    probability: float | None = None
    """Of the node when it was asked about; None if nobody asked."""


@dataclass
class GivenClass:
    """A class as somebody gave it: the names of its examples in order, a description, or both."""

    support: dict[str, None]
    description: str | None = None
    """An empty one means that the name speaks."""
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    """What was answered of nodes. The node of a yes is among the examples, that of a no is not."""

    @property
    def rejected(self) -> list[str]:
        return [node for node, verdict in self.verdicts.items() if not verdict.yes]

    def answer(self, answer: OneAnswer, check: bool, who: str | None, when: str) -> None:
        """A node that was drawn by chance stays in the sample if it is answered again: else only its noes would."""
        node, verdict, before = answer.node, answer.verdict, self.verdicts.get(answer.node)
        check = check or (before is not None and before.check)
        if verdict is not None and before is not None and (before.yes, before.check) == (verdict == "yes", check):
            return  # said already; who said it first is kept
        self.verdicts.pop(node, None)
        if verdict == "yes":
            self.support.setdefault(node)
        else:
            self.support.pop(node, None)
        if verdict is not None:
            probability = answer.probability if before is None else before.probability
            self.verdicts[node] = Verdict(verdict == "yes", check, who, when, probability)


@dataclass
class State:
    """What all changes so far add up to. `apply` changes it; whoever shows a state to others changes a copy."""

    classes: dict[str, GivenClass] = field(default_factory=dict)
    nodes: dict[str, NewNode] = field(default_factory=dict)
    """Nodes that came later, in order."""
    arrivals: dict[str, str] = field(default_factory=dict)
    """When each of them came."""

    def copied(self) -> State:
        classes = {
            name: replace(given, support={**given.support}, verdicts={**given.verdicts})
            for name, given in self.classes.items()
        }
        return State(classes, {**self.nodes}, {**self.arrivals})

    def apply(self, change: Change, who: str | None, when: str) -> None:
        """Add a change that was checked before."""
        match change:
            case ClassChange(name=name):
                support = dict.fromkeys(change.support)
                verdicts = self.classes[name].verdicts if name in self.classes else {}
                # answers that the class contradicts from now on are no answers any more
                kept = {node: verdict for node, verdict in verdicts.items() if verdict.yes == (node in support)}
                self.classes[name] = GivenClass(support, change.description, kept)
            case Forget():
                self.classes.pop(change.name, None)
            case AnswerChange():
                for each in change.answers:
                    self.classes[each.label].answer(each, change.check, who, when)
            case AttachChange():
                self.nodes |= {node.node: node for node in change.nodes}
                self.arrivals |= dict.fromkeys((node.node for node in change.nodes), when)

    def same_as(self, other: State) -> bool:
        """Whether nothing differs, the order of classes and examples included."""
        return self == other and self._order == other._order

    @property
    def _order(self) -> list[tuple[str, ...]]:
        return [(name, *given.support) for name, given in self.classes.items()]


def sentence(change: Change) -> str:
    """What a change did."""
    match change:
        case ClassChange(support=nodes):
            examples = [f"{len(nodes)} example{'s' * (len(nodes) != 1)}"] if nodes else []
            said = [*examples, *(["a description"] if change.description is not None else [])]
            return f"{change.name} is given by {' and '.join(said)}."
        case Forget():
            return f"{change.name} was forgotten."
        case AttachChange():
            return f"{_listed([node.node for node in change.nodes])} came."
    if len(change.answers) == 1:
        (one,) = change.answers
        told = f"{one.node} {SAID[one.verdict]} {one.label}"
    else:
        counts = Counter(COUNTED[each.verdict] for each in change.answers)
        told = ", ".join(f"{counts[word]} {word}" for word in COUNTED.values() if counts[word])
        told = f"{len(change.answers)} answers for {_listed([*{each.label: 0 for each in change.answers}])}: {told}"
    return f"{told} (checked)." if change.check else f"{told}."


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"{', '.join(names[:SHOWN])}{more}"
