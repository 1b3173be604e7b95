"""The client where people answer: verdicts, the journal, what to ask next, the list of claims, what to trust, why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from fewnode.client.wire import Connection, address, in_address, judging


@dataclass(frozen=True)
class Kept:
    """A change that was kept: its number, and whether there is something to undo and to redo now."""

    version: str
    number: int
    undo: bool
    redo: bool
    what: str | None = None
    """What was undone or redone, in a sentence."""


@dataclass(frozen=True)
class JournalEntry:
    """A change in a sentence, who made it and when."""

    number: int
    when: str
    by: str | None
    what: str
    undone: bool


@dataclass(frozen=True)
class Question:
    """A node to ask somebody about: to `learn` from the answer, or as a `check` of what the class claims."""

    node: str
    label: str
    probability: float
    purpose: str
    why: str
    known: str | None = None


@dataclass(frozen=True)
class Claim:
    """A node that a class claims, and what is known of it."""

    node: str
    label: str | None
    probability: float
    member: float | None
    degree: int
    known: str | None
    attached: str | None
    verdict: str | None
    by: str | None
    when: str | None
    attributes: dict[str, Any]
    group: list[str] | None = None
    """Names of nodes that are nearly the same, some of them; None if there are none or nobody asked."""


@dataclass(frozen=True)
class ClaimPage:
    """A page of the list of claims, and how many there are in all."""

    version: str
    total: int
    rows: list[Claim]
    groups: int | None = None


@dataclass(frozen=True)
class ReadList:
    """What a pasted list says: nodes with their classes, lines that are none, and what was not used."""

    nodes: list[tuple[str, str | None]]
    unknown: list[tuple[int, str]]
    repeated: int
    unused_columns: list[str]
    said_no: int = 0
    """Lines whose `answer` is no, which are left out."""


@dataclass(frozen=True)
class Estimate:
    """A number with its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class CurvePoint:
    """What the model expects of a class's claims at a threshold."""

    threshold: float
    claimed: int
    precision: float | None
    recall: float | None


@dataclass(frozen=True)
class Trust:
    """What to trust of a class."""

    claimed: int
    members: Estimate
    precision_by_answers: Estimate | None
    """By the answers to a fair sample of claims; None if nobody was asked."""
    sampled: int
    curve: list[CurvePoint]
    known: dict[str, Any] | None
    """Precision and recall by the labels of the data; None if it has no name for the class."""


class DialogueClient(Connection):
    """What is told to the service about nodes, and what it asks and lists."""

    # --- answers ---

    def answer(
        self,
        label: str,
        yes: Sequence[str] = (),
        no: Sequence[str] = (),
        withdrawn: Sequence[str] = (),
        by: str | None = None,
        check: bool = False,
        version: str | None = None,
    ) -> Kept:
        """Nodes that are in a class, that are not, and that are no longer answered for: all or none of it."""
        said = [*((node, "yes") for node in yes), *((node, "no") for node in no), *((node, None) for node in withdrawn)]
        answers = [{"node": node, "class": label, "verdict": verdict} for node, verdict in said]
        return _kept(self._ask("POST", "/api/answers", {"answers": answers, "by": by, "check": check}, version))

    def put_label(self, node: str, label: str | None, by: str | None = None, version: str | None = None) -> Kept:
        """Correct the label that the data has for a node; None: it is not known."""
        return _kept(self._ask("PUT", address("labels", node), {"class": label, "by": by}, version))

    def undo(self, by: str | None = None, version: str | None = None) -> Kept:
        """Undo the last change that is not undone, whatever it changed."""
        return _kept(self._ask("POST", "/api/undo", {"by": by}, version))

    def redo(self, by: str | None = None, version: str | None = None) -> Kept:
        return _kept(self._ask("POST", "/api/redo", {"by": by}, version))

    def journal(self, limit: int = 50, offset: int = 0) -> list[JournalEntry]:
        """Changes, the newest first."""
        found = self._ask("GET", f"/api/journal?{urlencode({'limit': limit, 'offset': offset})}")
        return [JournalEntry(**entry) for entry in found["entries"]]

    # --- questions ---

    def questions(
        self,
        label: str | None = None,
        count: int = 5,
        exclude: Sequence[str] = (),
        mode: str | None = None,
        closed_set: bool = False,
        threshold: float | None = None,
    ) -> list[Question]:
        """What to ask somebody next, about one class or all of them."""
        body = {"class": label, "count": count, "exclude": list(exclude), **judging(mode, closed_set, threshold)}
        found = self._ask("POST", "/api/next", body)["questions"]
        return [
            Question(q["node"], q["class"], q["probability"], q["purpose"], q["why"], q.get("known")) for q in found
        ]

    def trust(
        self,
        label: str | None = None,
        mode: str | None = None,
        closed_set: bool = False,
        threshold: float | None = None,
    ) -> dict[str, Trust]:
        """What to trust of each class, or of one."""
        query = urlencode(in_address({"class": label, **judging(mode, closed_set, threshold)}))
        return {name: _trust(each) for name, each in self._ask("GET", f"/api/trust?{query}")["classes"].items()}

    def why(self, node: str, label: str | None = None) -> dict[str, Any]:
        """What speaks for a node in a class, and what against it, as the service says it."""
        query = urlencode(in_address({"class": label}))
        return dict(self._ask("GET", f"{address('why', node)}?{query}"))

    # --- lists ---

    def claims(
        self,
        label: str | None = None,
        sort: str = "probability",
        descending: bool = True,
        only: Mapping[str, Any] | None = None,
        group: bool = False,
        attributes: Sequence[str] = (),
        offset: int = 0,
        limit: int = 50,
        mode: str | None = None,
        closed_set: bool = False,
        threshold: float | None = None,
    ) -> ClaimPage:
        """What the classes claim. `only`: `text`, `attribute`, `value`, `unanswered`, `attached`."""
        listed = {"class": label, "sort": sort, "descending": descending, "group": group, "offset": offset}
        body = {**listed, "limit": limit, "attributes": list(attributes), **judging(mode, closed_set, threshold)}
        found = self._ask("POST", "/api/claims", {**body, "filter": None if only is None else dict(only)})
        rows = [_claim(row) for row in found["rows"]]
        return ClaimPage(found["version"], found["total"], rows, found.get("groups"))

    def claims_file(
        self,
        kind: str = "csv",
        label: str | None = None,
        mode: str | None = None,
        closed_set: bool = False,
        threshold: float | None = None,
        attributes: Sequence[str] = (),
    ) -> bytes:
        """All that the classes claim as `csv`, `json` or `parquet`, with the threshold, the model and the version."""
        how = in_address({"class": label, **judging(mode, closed_set, threshold)})
        query = urlencode([*how.items(), *(("attributes", name) for name in attributes)])
        return self._content("GET", f"/api/export/claims.{kind}?{query}")[1]

    def journal_file(self, kind: str = "csv") -> bytes:
        """Every change with who and when, as `csv` or `json`."""
        return self._content("GET", f"/api/export/journal.{kind}")[1]

    def alerts(self, since: str) -> list[Claim]:
        """Nodes that were attached since a time (as 2026-01-31T12:00Z) and that a class claims."""
        found = self._ask("GET", f"/api/alerts?{urlencode({'since': since})}")
        return [_claim(row) for row in found["nodes"]]

    def read_list(self, text: str) -> ReadList:
        """What the service makes of a list of nodes, or of nodes and classes; nothing is changed."""
        found = self._ask("POST", "/api/lists", {"text": text})
        nodes = [(each["node"], each["class"]) for each in found["nodes"]]
        unknown = [(each["line"], each["text"]) for each in found["unknown"]]
        return ReadList(nodes, unknown, found["repeated"], found["unused_columns"], found["said_no"])

    # --- what there is to search by ---

    def attributes(self, search: str = "", limit: int = 50) -> list[dict[str, Any]]:
        """Attributes by name, how many nodes have each, and of what kind they are."""
        return list(self._ask("GET", f"/api/attributes?{urlencode({'search': search, 'limit': limit})}")["attributes"])

    def columns(self) -> list[dict[str, Any]]:
        """What a new node can be given by, each with its kind."""
        return list(self._ask("GET", "/api/columns")["columns"])


def _kept(found: Mapping[str, Any]) -> Kept:
    return Kept(found["version"], found["number"], found["undo"], found["redo"], found.get("what"))


def _trust(found: Mapping[str, Any]) -> Trust:
    said = found["precision_by_answers"]
    asked = None if said is None else Estimate(said["value"], said["low"], said["high"])
    curve = [CurvePoint(**point) for point in found["curve"]]
    return Trust(found["claimed"], Estimate(**found["members"]), asked, found["sampled"], curve, found["known"])


def _claim(row: Mapping[str, Any]) -> Claim:
    fields = {name: value for name, value in row.items() if name not in ("class", "group")}
    group = row.get("group")
    return Claim(**fields, label=row["class"], group=None if group is None else group["nodes"])
