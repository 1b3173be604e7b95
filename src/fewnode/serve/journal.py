"""The journal for people: each change in a sentence, and which of them can be undone and redone.

Undoing is a change itself: it puts the rows that a change touched back as they were, and is kept like all others. The
last change is undone first, so what that leads to is a state that was there before.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

UNDO = 200
"""Changes that can be undone, the last ones."""
SHOWN = 3
"""Names that a sentence lists."""


class Entry(NamedTuple):
    """A change as the journal has it."""

    number: int
    when: str
    who: str | None
    change: Mapping[str, Any]


class History:
    """What can be undone and redone, by the numbers of changes; it follows from the journal alone."""

    def __init__(self) -> None:
        self.undoable: deque[int] = deque(maxlen=UNDO)
        self.redoable: deque[tuple[int, int]] = deque(maxlen=UNDO)
        """Changes that were undone, each with the change that did it."""
        self.undone: set[int] = set()

    def add(self, number: int, change: Mapping[str, Any]) -> None:
        """The next change of the journal."""
        if "undo" in change:
            done = self.undoable.pop()
            self.redoable.append((done, number))
            self.undone.add(done)
        elif "redo" in change:
            done, _ = self.redoable.pop()
            self.undoable.append(done)
            self.undone.discard(done)
        else:
            self.undoable.append(number)
            self.redoable.clear()


def sentence(change: Mapping[str, Any]) -> str:
    """What a change did."""
    ((kind, what),) = change.items()
    return _SENTENCES[kind](what) if kind in _SENTENCES else f"{kind}."


def _put_class(what: Mapping[str, Any]) -> str:
    said = ["a description"] if "description" in what else []
    return f"{what['name']} is given by {' and '.join([*_counted('example', what['support']), *said])}."


def _answers(what: Sequence[Mapping[str, Any]]) -> str:
    if len(what) == 1:
        node, name, verdict = (what[0][key] for key in ("node", "class", "verdict"))
        said = {"yes": "is in", "no": "is not in", None: "is no longer answered for"}
        return f"{node} {said[verdict]} {name}."
    counts = {said: sum(each["verdict"] == said for each in what) for said in ("yes", "no", None)}
    names = {"yes": "yes", "no": "no", None: "withdrawn"}
    told = ", ".join(f"{count} {names[said]}" for said, count in counts.items() if count)
    return f"{len(what)} answers for {_listed(dict.fromkeys(each['class'] for each in what))}: {told}."


def _attach(what: Sequence[Mapping[str, Any]]) -> str:
    return f"{_listed([each['node'] for each in what])} came."


def _edges(what: Mapping[str, Any]) -> str:
    ties = what.get("ties", ())
    added = len(what["add"]) + sum(amount > 0 for *_, amount in ties)
    removed = len(what["remove"]) + sum(amount == 0 for *_, amount in ties)
    return f"{added} edges added, {removed} removed."


def _label(what: Mapping[str, Any]) -> str:
    return f"{what['node']} has no known label." if what["class"] is None else f"{what['node']} is {what['class']}."


_SENTENCES: Mapping[str, Callable[[Any], str]] = {
    "put class": _put_class,
    "delete class": lambda name: f"{name} was forgotten.",
    "answers": _answers,
    "check": lambda what: f"{_answers(what)[:-1]} (checked).",
    "attach": _attach,
    "put node": lambda what: f"{what['node']} was replaced.",
    "delete node": lambda name: f"{name} was deleted.",
    "edges": _edges,
    "label": _label,
    "undo": lambda what: f"Undone: {what['what']}",
    "redo": lambda what: f"Again: {what['what']}",
}


def _counted(noun: str, things: Sequence[Any]) -> list[str]:
    return [f"{len(things)} {noun}{'s' * (len(things) != 1)}"] if things else []


def _listed(names: Any) -> str:
    each = list(names)
    more = f" and {len(each) - SHOWN} more" if len(each) > SHOWN else ""
    return f"{', '.join(each[:SHOWN])}{more}"
