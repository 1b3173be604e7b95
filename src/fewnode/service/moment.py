"""One state of the service and its network, and all that can be asked of it. A request never sees half of a change."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

import fewnode
from fewnode._system.sheets import csv_text
from fewnode.class_labels import UNKNOWN
from fewnode.errors import FewnodeError, closest
from fewnode.methods.table import written
from fewnode.recognition.answers import Answers
from fewnode.recognition.description import MAX_LENGTH
from fewnode.service import bodies as b
from fewnode.service.asked import MAX_USED, Asked
from fewnode.service.map import claims_file
from fewnode.service.network import Network, NotFound
from fewnode.service.search import Search
from fewnode.service.state import GivenClass, State
from fewnode.service.table import Table

FORM, TRY, SHARE = 20, 3, 0.01
"""Attributes of a form for new nodes; classes to try the page with, and the least share of nodes that each has."""
TABLES = 2
"""Ways of judging all nodes that are kept of a state."""
PARTS = ("train", "valid", "test")
Json = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Moment:
    """One state and its network."""

    state: State
    network: Network
    version: str
    _making: Any = field(default_factory=threading.RLock)
    _tables: dict[str, Table] = field(default_factory=dict)

    @cached_property
    def search(self) -> Search:
        return Search(self.network)

    @cached_property
    def asked(self) -> Asked:
        """The registered classes, made ready."""
        return Asked.of(self.network, self.state.classes)

    def table(self, how: b.Judging) -> Table:
        """All nodes as they are judged that way; made once, whoever asks meanwhile."""
        key = how.model_dump_json(include={*b.Judging.model_fields})
        with self._making:
            if key not in self._tables:
                for old in list(self._tables)[: 1 - TABLES]:
                    del self._tables[old]
                self._tables[key] = Table(self.state, self.search, self.asked, self.asked.judge(how))
            return self._tables[key]

    def name(self, node: str) -> str:
        """The one form of the name of a node that is there."""
        self.network.row(node)
        return self.network.form(node)

    def refuse_unknown(self, label: str | None) -> None:
        if label is not None and label not in self.state.classes:
            raise NotFound(f"there is no class {label!r}{closest(label, self.state.classes)}")

    # --- classes ---

    def one_class(self, name: str) -> Json:
        self.refuse_unknown(name)
        return next(each for each in self.class_list() if each["name"] == name)

    def class_list(self) -> list[Json]:
        """Each class with β of what stands for it, its place on the map, and what was not understood."""
        network, (beta, said), places = self.network, self.asked.beta, self.asked.prototypes()

        def example(node: str, label: str) -> Json:
            row = network.row(node) if network.has(node) else -1  # which is no row
            place = network.position(row) if row >= 0 else None
            return {"node": node, "beta": beta.get((row, label)), "position": place}

        return [
            {
                "name": name,
                "description": given.description,
                "description_beta": said.get(name),
                "support": [example(node, name) for node in given.support],
                "position": places.get(name),
                "remarks": self.asked.remarks[name],
                "rejected": given.rejected,
                "answers": len(given.verdicts),
            }
            for name, given in self.state.classes.items()
        ]

    # --- questions about nodes ---

    def classify(self, body: b.Classify) -> Json:
        support, said = body.support or {}, body.descriptions or {}
        given = {
            name: GivenClass(dict.fromkeys(self.name(node) for node in support.get(name, ())), said.get(name))
            for name in {**support, **said}
        }
        asked, counts = Asked.of(self.network, given) if given else self.asked, dict[str, int]()
        if body.nodes is None:
            if body.limit * len(asked.classes) > b.MAX_NODES:
                ways = f"{body.limit} nodes for each of {len(asked.classes)} classes"
                raise FewnodeError(f"{ways}; {b.MAX_NODES} in all at most")
            judged = asked.judge(body) if given else self.table(body).judged
            places = _best(judged, asked, body.limit)
            claimed = np.bincount(judged.places + 1, minlength=len(asked.classes) + 1)[1:].tolist()
            counts = dict(zip(asked.classes, claimed, strict=True))
        else:
            rows = np.array([self.network.row(name) for name in body.nodes], np.int64)
            judged, places = asked.judge(body, rows), range(rows.size)
        names = [*asked.classes, None]
        results = [
            {
                "node": judged.nodes[i],
                "class": names[judged.places[i]],
                "probability": float(judged.probability[i]),
                "probabilities": judged.probabilities[i].tolist(),
                "member": None if judged.member is None else float(judged.member[i]),
            }
            for i in places
        ]
        answer = {"version": self.version, "classes": asked.classes, "closed_set": judged.closed_set}
        return {**answer, "note": judged.reason or None, "results": results, "counts": counts}

    def claims(self, body: b.PageOfClaims) -> Json:
        self.refuse_unknown(body.label)
        found = self.table(body).page(body) if self.asked.classes else {"total": 0, "rows": []}
        return {"version": self.version, **found}

    def trust(self, body: b.AskTrust) -> Json:
        self.refuse_unknown(body.label)
        if not self.asked.classes:
            return {"version": self.version, "classes": {}, "none": self.network.n}
        table = self.table(body)
        classes = {name: table.trust(name) for name in (table.classes if body.label is None else [body.label])}
        none = int((table.place < 0).sum())
        return {"version": self.version, "classes": classes, "none": none, "note": table.judged.reason or None}

    def why(self, node: str, label: str | None) -> Json:
        self.refuse_unknown(label)
        return {"version": self.version, **self.asked.why(self.network.row(node, NotFound), label)}

    def next(self, body: b.NextQuestion) -> Json:
        self.refuse_unknown(body.label)
        table = self.table(body)
        names = [name for name in self.state.classes if name in table.classes] if body.label is None else [body.label]
        return {"version": self.version, "questions": table.questions(names, body)}

    def look(self, body: b.Look) -> Json:
        """All that a page shows of a class, in one answer."""
        network, classes = self.network, self.state.classes
        label = body.label if body.label in classes else next(iter(classes), None)
        found: Json = {"version": self.version, "class": label, "classes": self.class_list()}
        if label is None:
            typical = network.first.typical(TRY, SHARE)
            return {
                **found,
                "examples": [{"class": name, "node": network.data.node_name(row)} for name, row in typical],
            }
        known = self.asked.classes
        if len(known) < 1 + (not network.open_set):
            return found
        found["trust"] = self.trust(b.AskTrust(**{name: getattr(body, name) for name in b.Judging.model_fields}))
        if not network.embeds or label not in known:
            return found
        table = self.table(body)
        kept = [] if body.keep is None or not network.has(body.keep) else [body.keep]
        skipped = [node for node in [*kept, *body.exclude] if network.has(node)]
        first = [{**table.question(label, network.row(node)), "purpose": "find", "why": ""} for node in kept]
        questions = [*first, *table.questions([label], body.model_copy(update={"exclude": skipped}))]
        why = self.why(questions[0]["node"], label) if questions else None
        nodes = [each["node"] for each in questions[:2]]
        if why is not None and why["nearest_example"] is not None:
            nodes.append(why["nearest_example"]["node"])
        evidence = {"nodes": {node: self.search.about(network.row(node)) for node in nodes}, "why": why}
        return {**found, "questions": questions, "evidence": evidence}

    # --- what there is ---

    def model(self) -> Json:
        network = self.network
        data, model = network.data, network.model
        facts = {"name": data.name, "nodes": data.graph.n, "edges": data.graph.n_edges}
        facts |= {"features": data.graph.n_features, "labelled": int((data.y != UNKNOWN).sum())}
        limits = {"classes": b.MAX_CLASSES, "examples": b.MAX_EXAMPLES, "nodes": b.MAX_NODES, "description": MAX_LENGTH}
        return {
            "method": (method := model.method.rsplit("/", 1)[-1]),
            "method_name": written(method),
            "way": model.way,
            "shot": model.shot,
            "data": {**facts, "attached": network.n_attached},
            "modes": ["inductive", "transductive"][: 1 + network.embeds],
            "open_set": network.open_set,
            **dict.fromkeys(("explains", "suggests", "map"), network.embeds),
            "layout": None if network.picture is None else network.picture.how,
            "describes": network.describes,
            "trained": network.trained,
            "classes": {part: [data.class_names[c] for c in data.split.part(part)] for part in PARTS},
            "limits": {**limits, "compared": MAX_USED},
            "fewnode": fewnode.__version__,
            "version": self.version,
        }

    def columns(self) -> Json:
        """What a new node can be given by: the columns of the table or, where there was none, the usual attributes."""
        reader, index = self.network.reader, self.search.attributes
        if not reader.imported:
            usual = index.listed("", FORM)["attributes"]
            return {"columns": [{"name": each["name"], "kind": each["kind"]} for each in usual], "way": "attributes"}
        told: list[Json] = []
        for name in reader.used:
            column = index.columns.get(name)
            kind = {"kind": "text"} if column is None else {"kind": column.kind, **index.values(column)}
            told.append({"name": name, **kind})
        if reader.label:
            told.append({"name": reader.label, "kind": "label", "values": list(self.network.data.class_names)})
        return {"columns": told, "way": "row"}

    def names(self, rows: list[int]) -> Json:
        data = self.network.data
        if len(rows) > b.MAX_EXAMPLES:
            raise FewnodeError(f"{len(rows):,} rows, {b.MAX_EXAMPLES:,} at most")
        if (beyond := max(rows)) >= data.graph.n:
            raise NotFound(f"there is no row {beyond}; there are {data.graph.n:,}")
        return {"names": [data.node_name(row) for row in rows]}

    # --- files ---

    def map_claims(self, how: b.Judging) -> bytes:
        if not self.asked.classes:
            return claims_file(np.full(self.network.n, -1), [], self.version)
        table = self.table(how)
        return claims_file(table.place, table.classes, self.version)

    def claims_file(self, body: b.ListClaims, kind: str) -> bytes:
        model = f"{self.network.model.method.rsplit('/', 1)[-1]}, fewnode {fewnode.__version__}"
        about = {"mode": body.mode, "model": model, "data": self.network.data.name}
        return self.table(body).file(body, kind, {**about, "version": self.version})

    def support_csv(self) -> bytes:
        """Examples; where there are counter-examples, these too, with a column that says which are which."""
        classes = self.state.classes.items()
        yes = [[node, name, "yes"] for name, given in classes for node in given.support]
        no = [[node, name, "no"] for name, given in classes for node in given.rejected]
        rows = [["node", "class", "answer"], *yes, *no]
        return csv_text(rows if no else [row[:2] for row in rows]).encode()

    def classes_csv(self) -> bytes:
        classes = self.state.classes.items()
        rows = [[name, given.description] for name, given in classes if given.description is not None]
        return csv_text([["class", "description"], *rows]).encode()


def _best(judged: Answers, asked: Asked, limit: int) -> Iterable[int]:
    """The rows that each class claims most surely, examples left out; the first class's first."""
    for place, name in enumerate(asked.classes):
        own = np.setdiff1d(np.flatnonzero(judged.places == place), asked.examples[name])
        yield from own[np.argsort(-judged.probability[own], kind="stable")][:limit].tolist()
