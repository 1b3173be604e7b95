"""Question and answer: what to ask next, what people answered, the journal of it, and taking it back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import numpy as np
import orjson

import fewnode
from fewnode.errors import FewnodeError, closest
from fewnode.machine.sheets import csv_text
from fewnode.predict.predictions import Answerer
from fewnode.predict.reasons import ClassReasons
from fewnode.serve import answers
from fewnode.serve.bodies import Judging
from fewnode.serve.claim_list import ClaimList, as_cell
from fewnode.serve.dialogue_bodies import (
    AskAlerts,
    AskTrust,
    GivenAnswers,
    GivenList,
    ListClaims,
    NextQuestion,
    PutLabel,
)
from fewnode.serve.edits import Edit
from fewnode.serve.journal import sentence
from fewnode.serve.lists import read_list
from fewnode.serve.network import ServedNetwork
from fewnode.serve.projection import claims_file
from fewnode.serve.questions import questions
from fewnode.serve.rendering import class_list
from fewnode.serve.session import Session
from fewnode.serve.snapshot import Condition, NotFound, Snapshot
from fewnode.serve.state_rows import as_moment
from fewnode.serve.trust_report import trust_report


class Dialogue:
    """What a session is told, and what it asks."""

    def __init__(self, session: Session) -> None:
        self.session, self.store = session, session.store
        self._claim_list = lru_cache(maxsize=1)(ClaimList.of)
        self._reasons = lru_cache(maxsize=4)(_reasons)

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

    # --- the list of claims ---

    def claims(self, body: ListClaims) -> dict[str, Any]:
        now = self.session.now
        self._refuse_unknown(now, body.label)
        if not now.state.classes:
            return {"version": now.version, "total": 0, "rows": []}
        return self._listed(body).page(body)

    def _listed(self, how: Judging) -> ClaimList:
        now = self.session.now
        answerer = now.answerer()
        return self._claim_list(now, answerer, self.session.judged(answerer, how))

    def claims_file(self, body: ListClaims, kind: str) -> bytes:
        found = self._listed(body)
        answer = found.answer
        about = {
            "threshold": None if answer.closed_set else answer.threshold,
            "closed_set": answer.closed_set,
            "mode": body.mode or self.session.mode,
            "model": f"{found.network.model.method.rsplit('/', 1)[-1]}, fewnode {fewnode.__version__}",
            "data": found.network.data.name,
            "version": found.now.version,
        }
        return found.file(body, kind, about)

    def alerts(self, wanted: AskAlerts) -> dict[str, Any]:
        """Nodes that were attached since then, and that some class claims."""
        when, now = _moment(wanted.since), self.session.now
        if not now.state.classes:
            return {"since": as_moment(when), "version": now.version, "nodes": []}
        found = self._listed(wanted)
        late = [name for name, came in found.now.state.arrivals.items() if datetime.fromisoformat(came) >= when]
        rows = np.array([found.network.data.node(name) for name in late], np.int64)
        claimed = rows[found.place[rows] >= 0]
        return {"since": as_moment(when), "version": found.now.version, "nodes": found.told(claimed)}

    def map_claims(self, how: Judging) -> bytes:
        now = self.session.now
        if not now.state.classes:
            return claims_file(np.full(now.online.n, -1), [], now.version)
        found = self._listed(how)
        return claims_file(found.place, found.answer.classes, found.now.version)

    def read_list(self, body: GivenList) -> dict[str, Any]:
        return read_list(self.session.now, body.text)

    # --- the journal ---

    def journal(self, limit: int, offset: int) -> dict[str, Any]:
        state = self.session.now.state
        entries = list(self._entries(limit, offset))
        return {"version": state.version, **self._ways(), "total": state.changes, "entries": entries}

    def _entries(self, limit: int, offset: int) -> Iterator[dict[str, Any]]:
        for each in self.store.entries(limit, offset):
            yield {
                "number": each.number,
                "when": each.when,
                "by": each.who,
                "what": sentence(each.change),
                "undone": each.number in self.store.history.undone,
            }

    def journal_file(self, kind: str) -> bytes:
        """All of it, and what each answer was."""
        found = list(self._entries(-1, 0))
        if kind == "json":
            return orjson.dumps({"version": self.session.now.version, "entries": found})
        names = ("number", "when", "by", "what", "undone")
        rows = [[as_cell(each[name]) for name in names] for each in found]
        return csv_text([names, *rows]).encode()

    # --- what to trust, and why ---

    def trust(self, wanted: AskTrust) -> dict[str, Any]:
        now = self.session.now
        self._refuse_unknown(now, wanted.label)
        if not now.state.classes:
            return {"version": now.version, "classes": {}, "none": now.online.n}
        return trust_report(self._listed(wanted), wanted.label)

    def why(self, node: str, label: str | None) -> dict[str, Any]:
        """What speaks for a node in a class, or in the one that it is most likely in."""
        now = self.session.now
        self._refuse_unknown(now, label)
        answerer, row = now.answerer(), self.session.row(now, node)
        if label is None:
            label = answerer.classes[int(answerer.recogniser.judge([row])[0].argmax())]
        (found,) = self._reasons(answerer, label, now.network).of([row])
        return {"version": now.version, **found.to_json()}

    def _refuse_unknown(self, now: Snapshot, label: str | None) -> None:
        if label is not None and label not in now.state.classes:
            raise NotFound(f"there is no class {label!r}{closest(label, now.state.classes)}")

    # --- what to ask next ---

    def ask(self, body: NextQuestion) -> dict[str, Any]:
        """Questions to learn from and, now and then, one of a fair sample of what the class claims."""
        now = self.session.now
        self._refuse_unknown(now, body.label)
        names = list(now.state.classes) if body.label is None else [body.label]
        return {"version": now.version, "questions": questions(self._listed(body), names, body)}


def _reasons(answerer: Answerer, label: str, network: ServedNetwork) -> ClassReasons:
    return ClassReasons(answerer.recogniser, label, network.idf)


def _moment(text: str) -> datetime:
    try:
        when = datetime.fromisoformat(text)
        return when.replace(tzinfo=UTC) if when.tzinfo is None else when.astimezone(UTC)
    except (ValueError, OverflowError):
        raise FewnodeError(f"{text[:40]!r} is no time; write it as 2026-01-31 or 2026-01-31T12:00:00Z") from None
