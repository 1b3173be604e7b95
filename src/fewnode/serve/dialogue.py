"""Question and answer: what to ask next, what people answered, the journal of it, and taking it back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fewnode.serve import answers
from fewnode.serve.bodies import GivenAnswers, NextQuestion, PutLabel, Suggest
from fewnode.serve.edits import Edit
from fewnode.serve.journal import sentence
from fewnode.serve.rendering import class_list
from fewnode.serve.session import Session
from fewnode.serve.snapshot import Condition, NotFound, Snapshot


class Dialogue:
    """What a session is told, and what it asks."""

    def __init__(self, session: Session) -> None:
        self.session, self.store = session, session.store

    # --- answers ---

    def answer(self, body: GivenAnswers, condition: Condition) -> dict[str, Any]:
        edit = answers.answer(self.session.now, body, condition)
        return self._change(edit, lambda then: {"classes": class_list(then.network, then.state)})

    def put_label(self, node: str, body: PutLabel, condition: Condition) -> dict[str, Any]:
        edit = answers.put_label(self.session.now, node, body, condition)
        return self._change(edit, lambda _: {"node": self.session.base.form(node), "class": body.label})

    def undo(self, by: str | None, condition: Condition) -> dict[str, Any]:
        return self._back(answers.undo(self.session.now, self.store, by, condition))

    def redo(self, by: str | None, condition: Condition) -> dict[str, Any]:
        return self._back(answers.redo(self.session.now, self.store, by, condition))

    def _back(self, edit: Edit) -> dict[str, Any]:
        return self._change(edit, lambda _: {"what": sentence(edit.change)})

    def _change(self, edit: Edit, told: Callable[[Snapshot], dict[str, Any]]) -> dict[str, Any]:
        found = self.session.change(edit, told)
        return {**found, "number": self.session.now.state.changes, **self._ways()}

    def _ways(self) -> dict[str, bool]:
        history = self.store.history
        return {"undo": bool(history.undoable), "redo": bool(history.redoable)}

    # --- the journal ---

    def journal(self, limit: int, offset: int) -> dict[str, Any]:
        undone, state = self.store.history.undone, self.session.now.state
        entries = [
            {
                "number": each.number,
                "when": each.when,
                "by": each.who,
                "what": sentence(each.change),
                "undone": each.number in undone,
            }
            for each in self.store.entries(limit, offset)
        ]
        return {"version": state.version, **self._ways(), "total": state.changes, "entries": entries}

    # --- what to ask next ---

    def ask(self, body: NextQuestion) -> dict[str, Any]:
        now = self.session.now
        if body.label is not None and body.label not in now.state.classes:
            raise NotFound(f"there is no class {body.label!r}")
        rejected = [node for each in now.state.given for node in each.rejected]
        found = self.session.suggest(Suggest(count=body.count, exclude=[*rejected, *body.exclude]))
        questions = [{**each, "purpose": "learn"} for each in found["nodes"]]
        return {"version": found["version"], "questions": questions}
