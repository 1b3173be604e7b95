"""What people say of nodes: whether one is in a class, and that the data has a label wrong; and taking it back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter

from fewnode.errors import FewnodeError, closest
from fewnode.naming import alike
from fewnode.serve.bodies import ATTACHED_IN_ALL, SHOTS, SHOTS_IN_ALL, VERDICTS_IN_ALL, ClassName
from fewnode.serve.dialogue_bodies import GivenAnswers, PutLabel
from fewnode.serve.edits import Edit
from fewnode.serve.journal import sentence
from fewnode.serve.snapshot import Condition, Conflict, NearDuplicate, NotFound, NothingLeft, Snapshot
from fewnode.serve.state import State, Verdict
from fewnode.serve.store import Store
from fewnode.serve.store import now as this_moment

_CLASS_NAME: TypeAdapter[str] = TypeAdapter(ClassName)


def answer(now: Snapshot, body: GivenAnswers, condition: Condition) -> Edit:
    """All answers or none. A yes makes a node an example of its class, a no a counter-example, null neither."""
    condition.check(now, "state of the service", exists=True)
    when, state, told = this_moment(), now.state, []
    asked: set[tuple[str, str]] = set()
    for each in body.answers:
        name, node = each.label, now.name(each.node)
        if name not in state.classes:
            raise NotFound(f"there is no class {name!r}{closest(name, state.classes)}")
        if (name, node) in asked:
            raise FewnodeError(f"node {node!r} is answered twice for class {name!r}")
        asked.add((name, node))
        check = body.check or _is_check(state, name, node)
        verdict = None if each.verdict is None else Verdict(each.verdict == "yes", check, body.by, when)
        state = _answered(state, name, node, verdict)
        told.append({"node": node, "class": name, "verdict": each.verdict})
    for name in {name for name, _ in asked}:
        _refuse_empty(state, name)
    _within(state)
    return Edit(state, {"check" if body.check else "answers": told}, who=body.by)


def _answered(state: State, name: str, node: str, verdict: Verdict | None) -> State:
    support, before = state.classes[name], state.verdicts.get((name, node))
    if verdict is not None and before is not None and (before.yes, before.check) == (verdict.yes, verdict.check):
        return state  # said already; who said it first is kept
    if verdict is not None and verdict.yes:
        other = next((other for other, nodes in state.classes.items() if other != name and node in nodes), None)
        if other is not None:
            raise Conflict(f"node {node!r} is in class {other!r} already; a node is in one class at most")
        support = support if node in support else (*support, node)
    else:
        support = tuple(each for each in support if each != node)
    state = state.with_class(name, support, state.descriptions.get(name)).without_verdict(name, node)
    return state if verdict is None else state.with_verdict(name, node, verdict)


def _is_check(state: State, name: str, node: str) -> bool:
    """A node that was drawn by chance stays in the sample, also if it is answered again: else only its noes would."""
    before = state.verdicts.get((name, node))
    return before is not None and before.check


def _refuse_empty(state: State, name: str) -> None:
    if not state.classes[name] and name not in state.descriptions:
        raise Conflict(f"class {name!r} would have no example and no description; describe it, or delete it")


def _within(state: State) -> None:
    if many := next((name for name, nodes in state.classes.items() if len(nodes) > SHOTS), None):
        raise FewnodeError(f"class {many!r} has {SHOTS:,} examples already, which is the limit")
    if sum(map(len, state.classes.values())) > SHOTS_IN_ALL:
        raise FewnodeError(f"more than {SHOTS_IN_ALL:,} examples in all classes")
    if len(state.verdicts) > VERDICTS_IN_ALL:
        raise FewnodeError(f"more than {VERDICTS_IN_ALL:,} answers")


def put_label(now: Snapshot, given: str, body: PutLabel, condition: Condition) -> Edit:
    """The label of a node as it is from now on; the one that the data has is no correction."""
    name = now.base.form(given)
    condition.check(now, f"node {name!r}", now.has(name))
    if not now.has(name):
        raise NotFound(f"unknown node {name!r}{closest(name, now.base.names)}")
    label = body.label
    if label is not None:
        _CLASS_NAME.validate_python(label)
        if why := alike(label, now.network.data.class_names):
            raise NearDuplicate(why)
    own = now.without_corrections(name)
    state = now.state.without_label(name) if own == label else now.state.with_label(name, label)
    if len(state.labels) > ATTACHED_IN_ALL:
        raise FewnodeError(f"more than {ATTACHED_IN_ALL:,} corrected labels; import the data anew")
    return Edit(state, {"label": {"node": name, "class": label}}, who=body.by)


# --- taking it back -----------------------------------------------------------------------------------------------


def undo(now: Snapshot, store: Store, by: str | None, condition: Condition) -> Edit:
    """The last change that is not undone is undone."""
    condition.check(now, "state of the service", exists=True)
    if not store.history.undoable:
        raise NothingLeft("there is nothing to undo")
    return _back("undo", now, store, store.history.undoable[-1], None, by)


def redo(now: Snapshot, store: Store, by: str | None, condition: Condition) -> Edit:
    """The change that was undone last is made again."""
    condition.check(now, "state of the service", exists=True)
    if not store.history.redoable:
        raise NothingLeft("there is nothing to redo")
    return _back("redo", now, store, *store.history.redoable[-1], by)


def _back(what: str, now: Snapshot, store: Store, number: int, undone_by: int | None, by: str | None) -> Edit:
    entry, rows = store.undoing(number)
    if undone_by is not None:
        _, rows = store.undoing(undone_by)
    change: Mapping[str, Any] = {what: {"number": number, "what": sentence(entry.change)}}
    return Edit(now.state.with_rows(rows), change, who=by)
