"""All nodes as one table, once a state and a way of judging. Lists, files, trust and questions are queries of it."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fewnode._system.sheets import csv_text
from fewnode.class_labels import UNKNOWN
from fewnode.errors import FewnodeError
from fewnode.graph import Ints
from fewnode.recognition.answers import Answers
from fewnode.recognition.classes import Asked
from fewnode.recognition.question import Question
from fewnode.review.finding import ask_next, stop
from fewnode.review.near_duplicates import grouped
from fewnode.review.trust import ClassTrust, trust
from fewnode.scores import wilson
from fewnode.service.asked import Asked as Classes
from fewnode.service.bodies import ListClaims, NextQuestion, PageOfClaims
from fewnode.service.search import Search
from fewnode.service.state import State

Mask = NDArray[np.bool_]
FIELDS = ("node", "class", "probability", "member", "degree", "known", "attached", "verdict", "by", "when")
TYPES = {"probability": "double", "member": "double", "degree": "int64", "threshold": "double", "closed_set": "bool"}
"""Of the columns of a Parquet file that hold no text."""
GROUP, COUNTED = 200, 3_000
"""Names of a group that are told, for one answer to all of them, and claims of which all groups are counted."""
CHECKABLE = 10
"""Of fewer nodes than that, no share is told."""


@dataclass(frozen=True, eq=False)
class Table:
    """What each node is taken for, and what is known of it."""

    state: State
    search: Search
    asked: Classes
    judged: Answers

    @property
    def classes(self) -> list[str]:
        return self.judged.classes

    @property
    def place(self) -> Ints:
        """The place of the class that claims each node, or -1."""
        return self.judged.places

    def _among(self, names: Sequence[str]) -> Mask:
        """Which of all nodes these are."""
        found = np.zeros(self.place.size, bool)
        found[self.search.network.rows(names)] = True
        return found

    def _answered(self, label: str) -> Mask:
        """Nodes that somebody answered for, examples among them."""
        given = self.state.classes[label]
        return self._among([*given.support, *given.verdicts])

    def _cells(self, name: str, rows: Ints) -> NDArray[Any]:
        attributes = self.search.attributes
        return attributes.cells(attributes.find(name))[rows]

    # --- lists ---

    def rows(self, wanted: ListClaims) -> Ints:
        """The nodes of a list in its order: what is missing last, ties by probability, then as the network has them."""
        keep = self.place >= 0 if wanted.label is None else self.place == self.asked.place(wanted.label)
        if wanted.text:
            keep &= np.isin(np.arange(keep.size), self.search.by_text(wanted.text, "all")[0])
        if wanted.attribute:
            keep &= self.search.attributes.having(wanted.attribute, wanted.value)
        if wanted.unanswered:
            for place, name in enumerate(self.classes):
                keep &= ~(self._answered(name) & (self.place == place))
        if wanted.attached or wanted.since:
            since, came = _moment(wanted.since or "0001-01-01"), self.state.arrivals.items()
            keep &= self._among([name for name, when in came if datetime.fromisoformat(when) >= since])
        rows = np.flatnonzero(keep)
        keys = pa.array(self._keys(wanted.sort, rows), from_pandas=True)
        order = pc.sort_indices(
            pa.table({"key": keys, "probability": self.judged.probability[rows]}),
            sort_keys=[("key", "descending" if wanted.descending else "ascending"), ("probability", "descending")],
        )
        found: Ints = rows[order.to_numpy()]
        return found

    def _keys(self, name: str, rows: Ints) -> Any:
        """What some nodes are sorted by."""
        match name:
            case "probability":
                return self.judged.probability[rows]
            case "member":
                return np.full(rows.size, np.nan) if self.judged.member is None else self.judged.member[rows]
            case "degree":
                return self.search.data.graph.degree[rows]
            case "node":
                return [self.search.data.node_name(row).lower() for row in rows.tolist()]
            case "class":
                return [self.classes[place] for place in self.place[rows].tolist()]
        return self._cells(name, rows)

    def told(self, rows: Ints, attributes: Sequence[str] = ()) -> list[dict[str, Any]]:
        """What the page and every file say of some nodes."""
        data, state, member = self.search.data, self.state, self.judged.member
        cells = {name: self._cells(name, rows).tolist() for name in attributes}
        found = []
        for i, row in enumerate(rows.tolist()):
            name, place = data.node_name(row), int(self.place[row])
            label = None if place < 0 else self.classes[place]
            said = None if label is None else state.classes[label].verdicts.get(name)
            given = label is not None and name in state.classes[label].support
            found.append(
                {
                    "node": name,
                    "class": label,
                    "probability": float(self.judged.probability[row]),
                    "member": None if member is None else float(member[row]),
                    "degree": int(data.graph.degree[row]),
                    "known": self.search.network.known(row),
                    "attached": state.arrivals.get(name),
                    "verdict": "yes" if given else "no" if said else None,
                    "by": said.who if said else None,
                    "when": said.when if said else None,
                    "attributes": {name: None if own[i] != own[i] else own[i] for name, own in cells.items()},
                }
            )
        return found

    def page(self, body: PageOfClaims) -> dict[str, Any]:
        rows, page = self.rows(body), slice(body.offset, body.offset + body.limit)
        if not body.group:
            return {"total": int(rows.size), "rows": self.told(rows[page], body.attributes)}
        few, name = rows.size <= COUNTED, self.search.data.node_name
        group = grouped(self.search.network.z[rows], None if few else page.stop)
        first = np.flatnonzero(group == np.arange(rows.size))
        told = self.told(rows[first[page]], body.attributes)
        for claim, leader in zip(told, first[page].tolist(), strict=True):
            own = rows[group == leader]
            names = [name(row) for row in own[1 : GROUP + 1].tolist()]
            claim["group"] = {"count": int(own.size), "nodes": names} if names else None
        return {"total": int(rows.size), "groups": int(first.size) if few else None, "rows": told}

    def file(self, body: ListClaims, kind: str, about: dict[str, Any]) -> bytes:
        """All of a list, with what it was made by: the threshold, the model, the version."""
        threshold = None if self.judged.closed_set else self.judged.threshold
        about = {"threshold": threshold, **about, "closed_set": self.judged.closed_set}
        names = [*FIELDS, *body.attributes, *about]
        if len({*names}) < len(names):
            raise FewnodeError("an attribute is there twice, or called as a column that every list has")
        told = self.told(self.rows(body), body.attributes)
        if kind == "json":
            return orjson.dumps({**about, "rows": told})
        rows = [{**claim, **claim["attributes"], **about} for claim in told]
        if kind == "csv":
            return csv_text([names, *([as_cell(row[name]) for name in names] for row in rows)]).encode()
        import pyarrow.parquet as pq

        numbers = {name: "double" for name in body.attributes if self.search.attributes.find(name).kind != "category"}
        types = {**TYPES, **numbers}
        columns = {name: pa.array([row[name] for row in rows], types.get(name, "string")) for name in names}
        held = io.BytesIO()
        pq.write_table(pa.table(columns), held)
        return held.getvalue()

    # --- what to trust ---

    @cached_property
    def _question(self) -> Question:
        """The classes, and what was answered of nodes that were asked about."""
        found, network = [], self.search.network
        for name in self.classes:
            verdicts = self.state.classes[name].verdicts.items()
            asked = [(node, said) for node, said in verdicts if said.probability is not None]
            for at, (node, said) in enumerate(asked):
                if network.has(node) and said.probability is not None:
                    purpose = "check" if said.check else "find"
                    found.append(Asked(name, network.row(node), said.probability, said.yes, purpose, at))
        return replace(self.asked.question, asked=tuple(found))

    @cached_property
    def _trusts(self) -> dict[str, ClassTrust]:
        return trust(self._question)

    def trust(self, label: str) -> dict[str, Any]:
        """By the answers that were asked for, by the model, and by the labels that the data knows."""
        place, question = self.asked.place(label), self._question
        estimates, enough = self._trusts[label], stop(question, label)
        points: list[dict[str, Any]] = []
        if self.judged.member is not None and not self.judged.closed_set:
            probability = self.judged.probabilities[:, place].copy()
            probability[self.asked.examples[label]], probability[self.asked.rejected[label]] = 1.0, 0.0
            own = (self.judged.probabilities.argmax(axis=1) == place) & (probability > 0)
            points = _curve(probability, np.where(own, self.judged.member, -1.0))
        return {
            "claimed": int((self.place == place).sum()),
            **{what: estimate and estimate._asdict() for what, estimate in estimates._asdict().items()},
            "asked": sum(each.label == label for each in question.asked),
            "enough": enough.now,
            "reason": enough.reason,
            "curve": points,
            "known": self._by_labels(place),
        }

    def _by_labels(self, place: int) -> dict[str, Any] | None:
        """Precision and recall of a class's claims by known labels; None if the data has no name for the class.

        A claimed node whose known label is another one is wrong, whatever that other one is. Examples are left out.
        """
        called, data = self._counterparts, self.search.data
        if called[place] == UNKNOWN:
            return None
        others = np.ones(self.place.size, bool)
        others[np.concatenate([*self.asked.examples.values()])] = False
        known, claimed = data.y[others], self.place[others] == place
        member = known == called[place]
        right, alone = int((claimed & member).sum()), called.count(called[place]) == 1
        return {
            "precision": _share(right, int((claimed & (known != UNKNOWN)).sum())),
            "recall": _share(right, int(member.sum())) if alone else None,
            "compared_with": data.class_names[called[place]],
        }

    @cached_property
    def _counterparts(self) -> list[int]:
        """What the data calls each class: the label of most of its examples, else its own name, else UNKNOWN."""
        found, data = [], self.search.data
        for name in self.classes:
            labels = Counter(label for label in data.y[self.asked.examples[name]].tolist() if label != UNKNOWN)
            label, count = labels.most_common(1)[0] if labels else (UNKNOWN, 0)
            named = data.class_names.index(name) if name in data.class_names else UNKNOWN
            found.append(label if 2 * count > labels.total() else named)
        return found

    # --- what to ask next ---

    def questions(self, names: Sequence[str], body: NextQuestion) -> list[dict[str, Any]]:
        """Of these classes in turn: nodes that nobody answered for and nobody excludes, each once."""
        skipped = {self.search.network.row(name) for name in body.exclude}
        found: list[dict[str, Any]] = []
        for turn, name in enumerate(names):
            pool = self.asked.askable[~np.isin(self.asked.askable, [*skipped])]
            pick = self._in_doubt if body.order == "doubt" else self._likeliest
            for row, purpose, why in pick(name, pool, len(range(turn, body.count, len(names))), body):
                skipped.add(row)
                found.append({**self.question(name, row), "purpose": purpose, "why": why})
        return found

    def question(self, name: str, row: int) -> dict[str, Any]:
        own = float(self.judged.probabilities[row, self.asked.place(name)])
        return {**self.search.brief(row), "class": name, "probability": own, "known": self.search.network.known(row)}

    def _in_doubt(self, name: str, pool: Ints, count: int, body: NextQuestion) -> list[tuple[int, str, str]]:
        if not count or not pool.size:
            return []
        threshold, found = 0.5 if body.threshold is None else body.threshold, list[tuple[int, str, str]]()
        for row, p, purpose in ask_next(self._question, name, pool, count, threshold):
            doubt = "in doubt, and " if 0.2 <= p <= 0.8 else ""
            check = "drawn at random, to tell how many members there are"
            found.append((row, purpose, check if purpose == "check" else f"{doubt}unlike what was answered so far"))
        return found

    def _likeliest(self, name: str, pool: Ints, count: int, _: NextQuestion) -> list[tuple[int, str, str]]:
        pool = pool[~self._answered(name)[pool]]
        own = self.judged.probabilities[pool, self.asked.place(name)]
        rows = pool[np.argsort(-own, kind="stable")[:count]]
        return [(row, "find", "the likeliest one that nobody answered for") for row in rows.tolist()]


def _curve(probability: NDArray[np.float64], compared: NDArray[np.float64]) -> list[dict[str, Any]]:
    """How many nodes are claimed at each threshold, and precision and recall to expect, if probabilities are right."""
    found, total, open_to = [], float(probability.sum()), compared >= 0
    probability, compared = probability[open_to], compared[open_to]
    for threshold in (round(step / 40, 3) for step in range(41)):
        above = compared >= threshold
        claimed, right = int(above.sum()), float(probability[above].sum())
        precision, recall = (min(1.0, round(right / of, 4)) if of > 0 else None for of in (claimed, total))
        found.append({"threshold": threshold, "claimed": claimed, "precision": precision, "recall": recall})
    return found


def _share(right: int, nodes: int) -> dict[str, Any] | None:
    if nodes < CHECKABLE:
        return None
    low, high = wilson(right, nodes)
    return {"value": right / nodes, "low": low, "high": high, "n": nodes}


def _moment(text: str) -> datetime:
    try:
        when = datetime.fromisoformat(text)
        return when.replace(tzinfo=UTC) if when.tzinfo is None else when.astimezone(UTC)
    except (ValueError, OverflowError):
        raise FewnodeError(f"{text[:40]!r} is no time; write it as 2026-01-31 or 2026-01-31T12:00:00Z") from None


def as_cell(value: Any) -> str:
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
