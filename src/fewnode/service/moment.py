"""One state of the service and its network, and all that can be asked of it. A request never sees half of a change."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from typing import Any

import numpy as np

import fewnode
from fewnode._system.sheets import csv_text
from fewnode.class_labels import UNKNOWN
from fewnode.errors import FewnodeError, closest
from fewnode.graph import Ints
from fewnode.methods.table import written
from fewnode.recognition.description import MAX_LENGTH
from fewnode.service import bodies as b
from fewnode.service.asked import MAX_USED, Asked, Judged, NothingToAsk
from fewnode.service.lists import read_list
from fewnode.service.map import claims_file, map_file
from fewnode.service.network import Network, NotFound
from fewnode.service.search import Search
from fewnode.service.state import GivenClass, State
from fewnode.service.table import Table

MODES: list[b.Mode] = ["inductive", "transductive"]
FORM, TRY, SHARE = 20, 3, 0.01
"""Attributes of a form for new nodes; classes to try the page with, and the least share of nodes that each has."""
TABLES, SETS = 2, 8
"""Ways of judging all nodes, and sets of classes, that are kept of a state."""
Json = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Moment:
    """One state and its network."""

    state: State
    network: Network
    version: str
    mode: b.Mode
    """How nodes are judged unless a request says it."""
    _making: Any = field(default_factory=threading.RLock)
    _tables: dict[str, Table] = field(default_factory=dict)

    @cached_property
    def search(self) -> Search:
        with self._making:
            return Search(self.network)

    @cached_property
    def ask(self) -> Callable[[tuple[GivenClass, ...]], Asked]:
        """Makes classes ready; a few sets of them are kept."""
        return lru_cache(maxsize=SETS)(partial(Asked, self.network))

    @cached_property
    def asked(self) -> Asked:
        """The registered classes, made ready."""
        with self._making:
            return self.ask(self.state.given)

    def table(self, how: b.Judging) -> Table:
        """All nodes as they are judged that way; made once, whoever asks meanwhile."""
        how = b.Judging(mode=how.mode or self.mode, closed_set=how.closed_set, threshold=how.threshold)
        key = how.model_dump_json()
        with self._making:
            if key not in self._tables:
                for old in list(self._tables)[: 1 - TABLES]:
                    del self._tables[old]
                self._tables[key] = Table(self.state, self.search, self.asked, self.asked.judge(how, self.mode))
            return self._tables[key]

    def name(self, node: str) -> str:
        """The one form of the name of a node that is there."""
        self.network.row(node)
        return self.network.form(node)

    def at(self, node: str) -> int:
        """The row of a node that an address names."""
        try:
            return self.network.row(node)
        except FewnodeError as error:
            raise NotFound(str(error)) from None

    def refuse_unknown(self, label: str | None) -> None:
        if label is not None and label not in self.state.support:
            raise NotFound(f"there is no class {label!r}{closest(label, self.state.support)}")

    # --- classes ---

    def classes(self) -> Json:
        return {"version": self.version, "classes": self.class_list()}

    def one_class(self, name: str) -> Json:
        self.refuse_unknown(name)
        return next(each for each in self.class_list() if each["name"] == name)

    def class_list(self) -> list[Json]:
        """Each class with β of what stands for it, its place on the map, and what was not understood."""
        state, network = self.state, self.network
        if not state.support:
            return []
        try:
            asked: Asked | None = self.asked
        except NothingToAsk:  # no class has an example in this dataset; each says so
            asked = None
        beta: dict[tuple[int, str], float] = {}
        said: dict[str, float] = {}
        places: dict[str, tuple[float, float]] = {}
        if asked is not None and network.embeds:
            weights, said = asked.beta
            beta, places = dict(zip(asked.support, weights.tolist(), strict=False)), asked.prototypes()
        found = []
        for given in state.given:
            rows = [network.row(node) if network.has(node) else -1 for node in given.nodes]
            examples = [
                {
                    "node": node,
                    "beta": beta.get((row, given.name)),
                    "position": network.position(row) if row >= 0 else None,
                }
                for node, row in zip(given.nodes, rows, strict=True)
            ]
            remarks = ["no example is in this dataset"] if asked is None else asked.remarks[given.name]
            told: Json = {
                "name": given.name,
                "description": given.description,
                "description_beta": said.get(given.name),
            }
            told |= {"support": examples, "position": places.get(given.name), "remarks": remarks}
            found.append({**told, "rejected": list(given.rejected), "answers": len(state.verdicts[given.name])})
        return found

    # --- questions about nodes ---

    def classify(self, body: b.Classify) -> Json:
        given = _given(body, self)
        asked = self.ask(given) if given else self.asked
        counts: dict[str, int] = {}
        if body.nodes is None:
            if body.limit * len(asked.classes) > b.MAX_NODES:
                ways = f"{body.limit} nodes for each of {len(asked.classes)} classes"
                raise FewnodeError(f"{ways}; {b.MAX_NODES} in all at most")
            everyone = asked.judge(body, self.mode) if given else self.table(body).judged
            rows = _best(everyone, asked, body.limit)
            found = Counter(everyone.labels())
            counts = {name: found[name] for name in asked.classes}
            judged = everyone.only(rows)
        else:
            rows = np.array([self.network.row(name) for name in body.nodes], np.int64)
            judged = asked.judge(body, self.mode, rows)
        node = self.network.data.node_name
        results = [
            {
                "node": node(row),
                "class": label,
                "probability": float(judged.probability[i]),
                "probabilities": judged.probabilities[i].tolist(),
                "member": None if judged.member is None else float(judged.member[i]),
            }
            for i, (row, label) in enumerate(zip(rows.tolist(), judged.labels(), strict=True))
        ]
        answer = {"version": self.version, "classes": asked.classes, "closed_set": judged.closed_set}
        return {**answer, "note": judged.note or None, "results": results, "counts": counts}

    def claims(self, body: b.PageOfClaims) -> Json:
        self.refuse_unknown(body.label)
        found = self.table(body).page(body) if self.state.support else {"total": 0, "rows": []}
        return {"version": self.version, **found}

    def trust(self, body: b.AskTrust) -> Json:
        self.refuse_unknown(body.label)
        if not self.state.support:
            return {"version": self.version, "classes": {}, "none": self.network.n}
        table = self.table(body)
        names = table.classes if body.label is None else [body.label]
        none = int((table.place < 0).sum())
        found = {"version": self.version, "classes": {name: table.trust(name) for name in names}, "none": none}
        return {**found, "note": table.judged.note or None}

    def why(self, node: str, label: str | None) -> Json:
        self.refuse_unknown(label)
        return {"version": self.version, **self.asked.why(self.at(node), label)}

    def next(self, body: b.NextQuestion) -> Json:
        self.refuse_unknown(body.label)
        table = self.table(body)
        names = [name for name in self.state.support if name in table.classes] if body.label is None else [body.label]
        return {"version": self.version, "questions": table.questions(names, body)}

    def look(self, body: b.Look) -> Json:
        """All that a page shows of a class, in one answer."""
        network, classes = self.network, self.state.names
        label = body.label if body.label in classes else next(iter(classes), None)
        found: Json = {"version": self.version, "class": label, "classes": self.class_list()}
        if label is None:
            return {**found, **self.examples()}
        try:
            known = [name for name in classes if name in self.asked.classes]
        except NothingToAsk:
            known = []
        if len(known) < 1 + (not network.open_set):
            return found
        how = b.AskTrust(**{name: getattr(body, name) for name in b.Judging.model_fields})
        found["trust"] = self.trust(how)
        if not network.embeds or label not in known:
            return found
        table = self.table(body)
        kept = [] if body.keep is None or not network.has(body.keep) else [body.keep]
        skipped = [node for node in [*kept, *body.exclude] if network.has(node)]
        first = [{**table.question(label, network.row(node)), "purpose": "find", "why": ""} for node in kept]
        asked = table.questions([label], body.model_copy(update={"exclude": skipped}))
        found["questions"] = [*first, *asked]
        return {**found, "evidence": self._evidence(found["questions"][:2])}

    def _evidence(self, questions: list[Json]) -> Json:
        """What the nodes of questions are, why the first one may be in its class, and the example most like it."""
        if not questions:
            return {"nodes": {}, "why": None}
        why = self.why(questions[0]["node"], questions[0]["class"])
        like = why["nearest_example"]
        nodes = [each["node"] for each in questions] + ([] if like is None else [like["node"]])
        return {"nodes": {node: self.search.about(self.network.row(node)) for node in nodes}, "why": why}

    def read_list(self, body: b.GivenList) -> Json:
        return read_list(self.network, body.text)

    # --- what there is ---

    def model(self) -> Json:
        network = self.network
        data, model = network.data, network.model
        facts = {"name": data.name, "nodes": data.graph.n, "edges": data.graph.n_edges}
        facts |= {"features": data.graph.n_features, "labelled": int((data.y != UNKNOWN).sum())}
        limits = {"classes": b.MAX_CLASSES, "examples": b.MAX_EXAMPLES, "nodes": b.MAX_NODES, "description": MAX_LENGTH}
        limits["compared"] = MAX_USED
        parts = {part: [data.class_names[c] for c in data.split.part(part)] for part in ("train", "valid", "test")}
        return {
            "method": model.method.rsplit("/", 1)[-1],
            "method_name": written(model.method.rsplit("/", 1)[-1]),
            "way": model.way,
            "shot": model.shot,
            "data": {**facts, "attached": network.n_attached},
            "modes": MODES if network.embeds else MODES[:1],
            "mode": self.mode,
            "open_set": network.open_set,
            **dict.fromkeys(("explains", "suggests", "map"), network.embeds),
            "layout": network.picture.how if network.embeds else None,
            "describes": network.describes,
            "trained": network.trained,
            "classes": parts,
            "limits": limits,
            "fewnode": fewnode.__version__,
            "version": self.version,
        }

    def columns(self) -> Json:
        """What a new node can be given by: the columns of the table or, where there was none, the usual attributes."""
        reader, index = self.network.reader, self.search.attributes
        if reader.way == "attributes":
            usual = index.listed("", FORM)["attributes"]
            return {"columns": [{"name": each["name"], "kind": each["kind"]} for each in usual], "way": reader.way}
        told: list[Json] = []
        for name in reader.used:
            column = index.columns.get(name)
            told.append(
                {"name": name, **({"kind": column.kind, **index.values(column)} if column else {"kind": "text"})}
            )
        if reader.label:
            told.append({"name": reader.label, "kind": "label", "values": list(self.network.data.class_names)})
        return {"columns": told, "way": reader.way}

    def examples(self) -> Json:
        network = self.network.first
        typical = network.typical(TRY, SHARE)
        return {"examples": [{"class": name, "node": network.data.node_name(row)} for name, row in typical]}

    def names(self, rows: list[int]) -> Json:
        data = self.network.data
        if len(rows) > b.MAX_EXAMPLES:
            raise FewnodeError(f"{len(rows):,} rows, {b.MAX_EXAMPLES:,} at most")
        if (beyond := max(rows)) >= data.graph.n:
            raise NotFound(f"there is no row {beyond}; there are {data.graph.n:,}")
        return {"names": [data.node_name(row) for row in rows]}

    # --- files ---

    def map_file(self) -> bytes:
        network = self.network
        return map_file(network.data, network.xy, self.version)

    def map_claims(self, how: b.Judging) -> bytes:
        if not self.state.support:
            return claims_file(np.full(self.network.n, -1), [], self.version)
        table = self.table(how)
        return claims_file(table.place, table.classes, self.version)

    def claims_file(self, body: b.ListClaims, kind: str) -> bytes:
        model = f"{self.network.model.method.rsplit('/', 1)[-1]}, fewnode {fewnode.__version__}"
        about = {
            "mode": body.mode or self.mode,
            "model": model,
            "data": self.network.data.name,
            "version": self.version,
        }
        return self.table(body).file(body, kind, about)

    def labels_csv(self, how: b.Judging) -> bytes:
        return self.table(how).judged.csv().encode()

    def support_csv(self) -> bytes:
        """Examples; where there are counter-examples, these too, with a column that says which are which."""
        given = self.state.given
        yes = [[node, each.name] for each in given for node in each.nodes]
        no = [[node, each.name] for each in given for node in each.rejected]
        if not no:
            return csv_text([["node", "class"], *yes]).encode()
        rows = [*([*row, "yes"] for row in yes), *([*row, "no"] for row in no)]
        return csv_text([["node", "class", "answer"], *rows]).encode()

    def classes_csv(self) -> bytes:
        rows = [[each.name, each.description] for each in self.state.given if each.description is not None]
        return csv_text([["class", "description"], *rows]).encode()


def _given(body: b.GivenClasses, moment: Moment) -> tuple[GivenClass, ...] | None:
    """The classes of a request alone; None: the registered ones are meant. All of their nodes must be there."""
    if body.support is None and body.descriptions is None:
        return None
    nodes, said = body.support or {}, body.descriptions or {}
    formed = {name: tuple(dict.fromkeys(moment.name(node) for node in own)) for name, own in nodes.items()}
    return tuple(GivenClass(name, formed.get(name, ()), said.get(name)) for name in {**nodes, **said})


def _best(everyone: Judged, asked: Asked, limit: int) -> Ints:
    """The rows that each class claims most surely, examples left out; the surest class's first."""
    given = np.concatenate([np.zeros(0, np.int64), *asked.examples.values()])
    found = [np.zeros(0, np.int64)]
    for i in range(len(asked.classes)):
        own = np.setdiff1d(np.flatnonzero(everyone.place == i), given)
        found.append(own[np.argsort(-everyone.probability[own], kind="stable")][:limit])
    return np.concatenate(found)
