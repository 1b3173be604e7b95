"""The list of what the classes claim: sorted, filtered, in pages, and as files that say the same."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from fewnode.class_labels import UNKNOWN
from fewnode.errors import FewnodeError
from fewnode.graph import Ints
from fewnode.machine.sheets import csv_text
from fewnode.model.recogniser import Recogniser
from fewnode.predict.near_duplicates import grouped
from fewnode.predict.predictions import Answerer, Predictions
from fewnode.serve.dialogue_bodies import ClaimFilter, ListClaims
from fewnode.serve.network import ServedNetwork
from fewnode.serve.snapshot import NotFound, Snapshot

FIELDS = ("node", "class", "probability", "member", "degree", "known", "attached", "verdict", "by", "when")
GROUP, COUNTED = 200, 3_000
"""Names of a group that are told, for one answer to all of them, and claims of which all groups are counted."""


@dataclass(frozen=True, eq=False)
class ClaimList:
    """What each node is taken for in one state, as arrays; made once for a state and a way of judging."""

    now: Snapshot
    network: ServedNetwork
    answer: Predictions
    recogniser: Recogniser
    place: Ints
    """Of each node, the place of the class that claims it, or -1."""

    @classmethod
    def of(cls, now: Snapshot, answerer: Answerer, answer: Predictions) -> ClaimList:
        """No class claims what somebody said is not in it, not even at a threshold of 0."""
        place, data = answer.places.copy(), now.network.data
        for each in now.state.given:
            no = np.array([data.node(name) for name in each.rejected], np.int64)
            place[no[place[no] == answer.classes.index(each.name)]] = -1
        return cls(now, now.network, answer, answerer.recogniser, place)

    # --- which ---

    def rows(self, body: ListClaims) -> Ints:
        """The nodes of the list in its order."""
        if body.label is not None and body.label not in self.answer.classes:
            raise NotFound(f"there is no class {body.label!r}")
        wanted = self.place >= 0 if body.label is None else self.place == self.answer.classes.index(body.label)
        rows = np.flatnonzero(wanted & self._passes(body.filter))
        return rows[self._order(rows, body.sort, body.descending)]

    def _passes(self, wanted: ClaimFilter | None) -> NDArray[np.bool_]:
        found = np.ones(self.place.size, bool)
        if wanted is None:
            return found
        search = self.network.search
        if wanted.text:
            hit = np.zeros(found.size, bool)
            hit[search.find(wanted.text, "all").rows] = True
            found &= hit
        if wanted.attribute:
            found &= search.attributes.having(wanted.attribute, wanted.value)
        if wanted.unanswered:
            place = {name: i for i, name in enumerate(self.answer.classes)}
            found[[node for name, node in self._answered if self.place[node] == place[name]]] = False
        if wanted.attached:
            found &= np.isin(np.arange(found.size), [self._row(name) for name in self.now.state.arrivals])
        return found

    @property
    def _answered(self) -> list[tuple[str, int]]:
        """Classes and nodes that somebody answered for, examples among them."""
        state = self.now.state
        given = {(name, node) for name, nodes in state.classes.items() for node in nodes} | state.verdicts.keys()
        return [(name, self._row(node)) for name, node in given]

    def _row(self, name: str) -> int:
        return self.network.data.node(name)

    def rows_of(self, names: Sequence[str]) -> Ints:
        return np.array([self._row(name) for name in names], np.int64)

    def unanswered(self, label: str) -> Ints:
        """Nodes that the class claims and that nobody has answered for."""
        claimed = self.place == self.answer.classes.index(label)
        claimed[[node for name, node in self._answered if name == label]] = False
        return np.flatnonzero(claimed)

    def _order(self, rows: Ints, by: str, descending: bool) -> Ints:
        """Ties by probability, and then as the network has them."""
        probability = self.answer.probability[rows]
        first = np.argsort(-probability, kind="stable")
        keys = self._keys(rows, by)[first]
        missing = np.isnan(keys) if keys.dtype.kind == "f" else np.zeros(keys.size, bool)
        order = np.argsort(keys, kind="stable")
        if descending:
            order = (keys.size - 1 - np.argsort(keys[::-1], kind="stable"))[::-1]
        last = missing[order]
        found: Ints = first[np.concatenate([order[~last], order[last]])]
        return found

    def _keys(self, rows: Ints, by: str) -> NDArray[Any]:
        if by == "probability":
            return self.answer.probability[rows]
        if by == "member":
            return np.full(rows.size, np.nan) if self.answer.member is None else self.answer.member[rows]
        if by == "degree":
            return np.asarray(self.network.data.graph.degree[rows])
        if by == "node":
            return np.array([self.network.data.node_name(int(row)).lower() for row in rows], object)
        if by == "class":
            return np.array([self.answer.classes[place] for place in self.place[rows].tolist()], object)
        cells = self._cells(by, rows)
        if all(cell is None or isinstance(cell, float) for cell in cells):
            return np.array([np.nan if cell is None else cell for cell in cells], float)
        return np.array(["" if cell is None else str(cell) for cell in cells], object)

    def _cells(self, name: str, rows: Ints) -> list[Any]:
        attributes = self.network.search.attributes
        return attributes.cells(attributes.find(name), rows)

    # --- what is said of them ---

    def told(self, rows: Ints, attributes: Sequence[str] = ()) -> list[dict[str, Any]]:
        """What the page and every file say of some nodes."""
        data, state, member = self.network.data, self.now.state, self.answer.member
        labels, probability = self.place[rows].tolist(), self.answer.probability[rows].tolist()
        shown = [self._cells(name, rows) for name in attributes]
        found = []
        for i, row in enumerate(rows.tolist()):
            name, known = data.node_name(row), int(data.y[row])
            label = None if labels[i] < 0 else self.answer.classes[labels[i]]
            said = None if label is None else state.verdicts.get((label, name))
            given = label is not None and name in state.classes[label]
            found.append(
                {
                    "node": name,
                    "class": label,
                    "probability": probability[i],
                    "member": None if member is None else float(member[row]),
                    "degree": int(data.graph.degree[row]),
                    "known": None if known == UNKNOWN else data.class_names[known],
                    "attached": state.arrivals.get(name),
                    "verdict": "yes" if given else ("no" if said is not None else None),
                    "by": said.who if said else None,
                    "when": said.when if said else None,
                    "attributes": {name: cells[i] for name, cells in zip(attributes, shown, strict=True)},
                }
            )
        return found

    def page(self, body: ListClaims) -> dict[str, Any]:
        rows = self.rows(body)
        page = slice(body.offset, body.offset + body.limit)
        counted: dict[str, Any] = {"version": self.now.version, "total": int(rows.size)}
        if not body.group:
            return {**counted, "rows": [{**each, "group": None} for each in self.told(rows[page], body.attributes)]}
        few = rows.size <= COUNTED
        group = grouped(self._vectors(rows), None if few else page.stop)
        first = np.flatnonzero(group == np.arange(rows.size))
        told = self.told(rows[first[page]], body.attributes)
        for each, leader in zip(told, first[page].tolist(), strict=True):
            each["group"] = self._group(rows[group == leader])
        return {**counted, "groups": int(first.size) if few else None, "rows": told}

    def _vectors(self, rows: Ints) -> NDArray[np.float32]:
        if not self.network.embeds:
            raise FewnodeError(f"{self.network.model.method} has no embedding of nodes to group them by")
        return self.recogniser.embedding(rows)

    def _group(self, rows: Ints) -> dict[str, Any] | None:
        """Nodes that are nearly the same as the first of them, which is shown."""
        names = [self.network.data.node_name(row) for row in rows[1 : GROUP + 1].tolist()]
        return {"count": int(rows.size), "nodes": names} if names else None

    # --- files ---

    def file(self, body: ListClaims, kind: str, about: dict[str, Any]) -> bytes:
        """All of the list, with what it was made by: the threshold, the model, the version."""
        if set(body.attributes) & {*FIELDS, *about} or len(set(body.attributes)) < len(body.attributes):
            raise FewnodeError("an attribute is there twice, or called as a column that every list has")
        told = self.told(self.rows(body), body.attributes)
        if kind == "json":
            return orjson.dumps({**about, "rows": told})
        flat = [{**{name: each[name] for name in FIELDS}, **each["attributes"], **about} for each in told]
        names = list(dict.fromkeys([*FIELDS, *body.attributes, *about]))
        if kind == "csv":
            cells = [[as_cell(each[name]) for name in names] for each in flat]
            return csv_text([names, *cells]).encode()
        return _parquet(names, flat)


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
        kind = pa.float64() if number else kinds.get(name, pa.string())
        columns[name] = pa.array(cells, kind)
    held = io.BytesIO()
    pq.write_table(pa.table(columns), held)
    return held.getvalue()
