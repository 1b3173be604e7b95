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
from fewnode.review.trust import trust
from fewnode.scores import wilson
from fewnode.service.asked import Asked as Classes
from fewnode.service.bodies import ListClaims, NextQuestion, PageOfClaims
from fewnode.service.search import Search
from fewnode.service.state import State

Doubles = NDArray[np.float64]
FIELDS = ("node", "class", "probability", "member", "degree", "known", "attached", "verdict", "by", "when")
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

    # --- columns ---

    @property
    def classes(self) -> list[str]:
        return self.judged.classes

    @property
    def place(self) -> Ints:
        """The place of the class that claims each node, or -1."""
        return self.judged.places

    @cached_property
    def attached(self) -> NDArray[np.bool_]:
        return np.arange(self.place.size) >= self.search.network.first.n

    def answered(self, label: str) -> NDArray[np.bool_]:
        """Nodes that somebody answered for, examples among them."""
        found = np.zeros(self.place.size, bool)
        found[self.search.network.rows([*self.state.classes[label].support, *self.state.classes[label].verdicts])] = (
            True
        )
        return found

    def column(self, name: str, rows: Ints) -> NDArray[Any]:
        """What some nodes are sorted by."""
        if name == "probability":
            return self.judged.probability[rows]
        if name == "member":
            return np.full(rows.size, np.nan) if self.judged.member is None else self.judged.member[rows]
        if name == "degree":
            return np.asarray(self.search.data.graph.degree[rows])
        if name == "node":
            return np.array([self.search.data.node_name(row).lower() for row in rows.tolist()], object)
        if name == "class":
            return np.array([self.classes[place] for place in self.place[rows].tolist()], object)
        cells = self._cells(name, rows)
        if all(cell is None or isinstance(cell, float) for cell in cells):
            return np.array([np.nan if cell is None else cell for cell in cells], float)
        return np.array(["" if cell is None else str(cell) for cell in cells], object)

    def _cells(self, name: str, rows: Ints) -> list[Any]:
        attributes = self.search.attributes
        return attributes.cells(attributes.find(name), rows)

    # --- lists ---

    def rows(self, body: ListClaims) -> Ints:
        """The nodes of a list in its order: ties by probability, and then as the network has them."""
        wanted = self.place >= 0 if body.label is None else self.place == self.asked.place(body.label)
        rows = np.flatnonzero(wanted & self._passes(body))
        first = np.argsort(-self.judged.probability[rows], kind="stable")
        keys = self.column(body.sort, rows)[first]
        missing = np.isnan(keys) if keys.dtype.kind == "f" else np.zeros(keys.size, bool)
        order = np.argsort(keys, kind="stable")
        if body.descending:
            order = (keys.size - 1 - np.argsort(keys[::-1], kind="stable"))[::-1]
        last = missing[order]
        found: Ints = rows[first[np.concatenate([order[~last], order[last]])]]
        return found

    def _passes(self, wanted: ListClaims) -> NDArray[np.bool_]:
        found = np.ones(self.place.size, bool)
        if wanted.text:
            found[:] = False
            found[self.search.by_text(wanted.text, "all")[0]] = True
        if wanted.attribute:
            found &= self.search.attributes.having(wanted.attribute, wanted.value)
        if wanted.unanswered:
            for place, name in enumerate(self.classes):
                found &= ~(self.answered(name) & (self.place == place))
        if wanted.attached or wanted.since:
            since = _moment(wanted.since) if wanted.since else None
            late = [
                name for name, at in self.state.arrivals.items() if not since or datetime.fromisoformat(at) >= since
            ]
            came = np.zeros(found.size, bool)
            came[self.search.network.rows(late)] = True
            found &= came
        return found

    def told(self, rows: Ints, attributes: Sequence[str] = ()) -> list[dict[str, Any]]:
        """What the page and every file say of some nodes."""
        data, state, member = self.search.data, self.state, self.judged.member
        shown = [self._cells(name, rows) for name in attributes]
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
                    "verdict": "yes" if given else ("no" if said is not None else None),
                    "by": said.who if said else None,
                    "when": said.when if said else None,
                    "attributes": {name: cells[i] for name, cells in zip(attributes, shown, strict=True)},
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
        for each, leader in zip(told, first[page].tolist(), strict=True):
            own = rows[group == leader]
            names = [name(row) for row in own[1 : GROUP + 1].tolist()]
            each["group"] = {"count": int(own.size), "nodes": names} if names else None
        return {"total": int(rows.size), "groups": int(first.size) if few else None, "rows": told}

    def file(self, body: ListClaims, kind: str, about: dict[str, Any]) -> bytes:
        """All of a list, with what it was made by: the threshold, the model, the version."""
        about = {"threshold": None if self.judged.closed_set else self.judged.threshold, **about}
        about["closed_set"] = self.judged.closed_set
        if set(body.attributes) & {*FIELDS, *about} or len(set(body.attributes)) < len(body.attributes):
            raise FewnodeError("an attribute is there twice, or called as a column that every list has")
        told = self.told(self.rows(body), body.attributes)
        if kind == "json":
            return orjson.dumps({**about, "rows": told})
        flat = [{**{name: each[name] for name in FIELDS}, **each["attributes"], **about} for each in told]
        names = list(dict.fromkeys([*FIELDS, *body.attributes, *about]))
        if kind == "csv":
            return csv_text([names, *([as_cell(each[name]) for name in names] for each in flat)]).encode()
        return _parquet(names, flat)

    # --- what to trust ---

    @cached_property
    def _question(self) -> Question:
        """The classes, and what was answered of nodes that were asked about."""
        found = []
        for name, given in self.state.classes.items():
            asked = [(node, said) for node, said in given.verdicts.items() if said.probability is not None]
            for at, (node, said) in enumerate(asked):
                if self.search.network.has(node) and name in self.classes and said.probability is not None:
                    row = self.search.network.row(node)
                    found.append(Asked(name, row, said.probability, said.yes, "check" if said.check else "find", at))
        return replace(self.asked.question, asked=tuple(found))

    def trust(self, label: str) -> dict[str, Any]:
        """By the answers that were asked for, by the model, and by the labels that the data knows."""
        place = self.asked.place(label)
        yes, no = self.asked.examples[label], self.asked.rejected[label]
        question, claimed = self._question, self.place == place
        estimates, enough = trust(question)[label], stop(question, label)
        probability, points = self.judged.probabilities[:, place].copy(), list[dict[str, Any]]()
        if self.judged.member is not None and not self.judged.closed_set:
            probability[yes], probability[no] = 1.0, 0.0
            own = (self.judged.probabilities.argmax(axis=1) == place) & (probability > 0)
            points = _curve(probability, np.where(own, self.judged.member, -1.0))
        return {
            "claimed": int(claimed.sum()),
            **{what: each and each._asdict() for what, each in estimates._asdict().items()},
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
        open_to = np.ones(self.place.size, bool)
        open_to[np.concatenate([*self.asked.examples.values()])] = False
        known, claimed = data.y[open_to], self.place[open_to] == place
        member, checkable = known == called[place], known != UNKNOWN
        right = int((claimed & member).sum())
        alone = called.count(called[place]) == 1
        return {
            "precision": _share(right, int((claimed & checkable).sum())),
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
            pick = self._to_find if body.order == "doubt" else self._likeliest
            picked = pick(name, skipped, len(range(turn, body.count, len(names))), body)
            skipped |= {row for row, _, _ in picked}
            found += [{**self.question(name, row), "purpose": purpose, "why": why} for row, purpose, why in picked]
        return found

    def question(self, name: str, row: int) -> dict[str, Any]:
        own = float(self.judged.probabilities[row, self.asked.place(name)])
        known = self.search.network.known(row)
        return {"node": self.search.data.node_name(row), "class": name, "probability": own, "known": known}

    def _to_find(self, name: str, skipped: set[int], count: int, body: NextQuestion) -> list[tuple[int, str, str]]:
        pool = _without(self.asked.askable, skipped)
        if not count or not pool.size:
            return []
        threshold, found = 0.5 if body.threshold is None else body.threshold, list[tuple[int, str, str]]()
        for row, p, purpose in ask_next(self._question, name, pool, count, threshold):
            doubt = "in doubt, and " if 0.2 <= p <= 0.8 else ""
            check = "drawn at random, to tell how many members there are"
            found.append((row, purpose, check if purpose == "check" else f"{doubt}unlike what was answered so far"))
        return found

    def _likeliest(self, name: str, skipped: set[int], count: int, body: NextQuestion) -> list[tuple[int, str, str]]:
        pool = _without(np.setdiff1d(self.asked.askable, np.flatnonzero(self.answered(name))), skipped)
        own = self.judged.probabilities[pool, self.asked.place(name)]
        rows = pool[np.argsort(-own, kind="stable")[:count]]
        return [(row, "find", "the likeliest one that nobody answered for") for row in rows.tolist()]


def _curve(probability: Doubles, compared: Doubles) -> list[dict[str, Any]]:
    """How many nodes are claimed at each threshold, and precision and recall to expect, if probabilities are right."""
    place = np.argsort(compared, kind="stable")
    before = np.concatenate([[0.0], np.cumsum(probability[place])])
    found, total = [], float(before[-1])
    for threshold in (round(step / 40, 3) for step in range(41)):
        first = int(np.searchsorted(compared[place], threshold))
        claimed, right = place.size - first, total - float(before[first])
        precision, recall = (min(1.0, round(right / of, 4)) if of > 0 else None for of in (claimed, total))
        found.append({"threshold": threshold, "claimed": claimed, "precision": precision, "recall": recall})
    return found


def _without(rows: Ints, skipped: set[int]) -> Ints:
    return rows[~np.isin(rows, list(skipped))] if skipped else rows


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


def _parquet(names: Sequence[str], rows: Sequence[dict[str, Any]]) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds = {"probability": pa.float64(), "member": pa.float64(), "degree": pa.int64(), "threshold": pa.float64()}
    kinds |= {"closed_set": pa.bool_()}
    columns = {}
    for name in names:
        cells = [row[name] for row in rows]
        number = any(isinstance(cell, float) for cell in cells) and name not in FIELDS
        columns[name] = pa.array(cells, pa.float64() if number else kinds.get(name, pa.string()))
    held = io.BytesIO()
    pq.write_table(pa.table(columns), held)
    return held.getvalue()
