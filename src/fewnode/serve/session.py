"""The answers: registered classes, nodes classified into them, what to label next, how well it goes.

A request sees one `Network` and one `State`, both immutable, and so never half of a change.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

import fewnode
from fewnode.errors import FewnodeError, closest
from fewnode.estimator import MODES, Estimator
from fewnode.graph import UNKNOWN, Dataset
from fewnode.io import csv_text
from fewnode.labelling import suggest
from fewnode.predictions import NONE, Answerer, Predictions
from fewnode.report.names import written
from fewnode.serve.bodies import ATTACHED_IN_ALL, CLASSES, NODES, Attach, Classify, Judging, Progress, Suggest, limits
from fewnode.serve.claims import Claims
from fewnode.serve.network import Network, extend_dataset, unknown_words
from fewnode.serve.store import State, Store

PAIRS = 5_000_000
"""Nodes times support nodes that an explained answer may compare at most."""


class Missing(FewnodeError):
    """What the address names is not there."""


class Clash(FewnodeError):
    """What is asked for contradicts what is registered."""


class Moved(FewnodeError):
    """The classes have changed since the asker saw them."""


@dataclass(frozen=True, eq=False)
class Moment:
    """What answers are made from. A request takes one and keeps to it, whatever changes meanwhile."""

    network: Network
    state: State
    n_attached: int

    @property
    def version(self) -> str:
        return f"{self.state.version}-{self.n_attached}" if self.n_attached else self.state.version

    def answerer(self, given: Mapping[str, Sequence[str]] | None) -> Answerer:
        """The given support set, or the registered classes, made ready."""
        support = self.state.support if given is None else tuple((name, tuple(nodes)) for name, nodes in given.items())
        return self.network.answerer(support)


class Session:
    """All that the service knows: a network, its registered classes, and the store that keeps them."""

    def __init__(self, model: Estimator, data: Dataset, store: Store, mode: str = MODES[0]) -> None:
        self.store, self.mode = store, mode
        attached = store.read_nodes()
        network = Network(model, extend_dataset(data, attached) if attached else data, store.embedding_path)
        if mode == MODES[1] and not network.embeds:
            raise FewnodeError(f"{model.method} answers each query on its own: it has no transductive mode")
        self.now = Moment(network, store.read(), len(attached))
        for name, nodes in self.state.classes.items():
            for node in nodes:
                try:
                    self.network.data.node(node)
                except FewnodeError as error:
                    raise FewnodeError(f"{store.path}: class {name!r}: {error}") from None
        self._described = lru_cache(maxsize=1)(_described)  # more would keep networks of the past
        self._everyone = lru_cache(maxsize=1)(_everyone)  # for the claims, how right they are, and the table

    @property
    def network(self) -> Network:
        return self.now.network

    @property
    def state(self) -> State:
        return self.now.state

    @property
    def n_attached(self) -> int:
        return self.now.n_attached

    @property
    def version(self) -> str:
        return self.now.version

    # --- what there is ---

    def about(self) -> dict[str, Any]:
        model, data, network = self.network.model, self.network.data, self.network
        return {
            "method": model.method.rsplit("/", 1)[-1],
            "method_name": written(model.method),
            "way": model.way,
            "shot": model.shot,
            "data": {
                "name": data.name,
                "nodes": data.graph.n,
                "edges": data.graph.n_edges,
                "features": data.graph.n_features,
                "labelled": int((data.y != UNKNOWN).sum()),
                "attached": self.n_attached,
            },
            "modes": list(MODES) if network.embeds else [MODES[0]],
            "mode": self.mode,
            "open_set": network.open_set,
            "explains": network.embeds,
            "suggests": network.embeds,
            "map": network.embeds,
            "classes": {
                part: [data.class_names[c] for c in data.split.part(part)] for part in ("train", "valid", "test")
            },
            "limits": limits(),
            "fewnode": fewnode.__version__,
            "version": self.version,
        }

    def nodes(self, search: str, offset: int, limit: int) -> dict[str, Any]:
        network = self.network
        hits = network.search(search)
        page = hits[offset : offset + limit]
        degree = network.data.graph.degree
        found = [{**network.brief(i), "degree": int(degree[i])} for i in page]
        return {"total": len(hits), "offset": offset, "nodes": found}

    def node(self, name: str) -> dict[str, Any]:
        try:
            node = self.network.data.node(name)
        except FewnodeError as error:
            raise Missing(str(error)) from None
        return self.network.about(node)

    # --- classes ---

    def classes(self) -> dict[str, Any]:
        now = self.now
        return {"version": now.version, "classes": self._described(now.network, now.state)}

    def one_class(self, name: str) -> dict[str, Any]:
        now = self.now
        self._need(name, now)
        found = next(c for c in self._described(now.network, now.state) if c["name"] == name)
        return {**found, "version": now.version}

    def with_class(self, name: str, nodes: Sequence[str], expected: str | None) -> State:
        """The state with the class in it, for `adopt`; what it would contradict is refused."""
        self._expect(expected)
        others = {node: other for other, given in self.state.classes.items() if other != name for node in given}
        for node in nodes:
            self.network.data.node(node)
            if node in others:
                raise Clash(f"node {node!r} is in class {others[node]!r} already; a node is in one class at most")
        if name not in self.state.classes and len(self.state.classes) >= CLASSES:
            raise FewnodeError(f"there are {CLASSES} classes already, which is the limit")
        distinct = tuple(dict.fromkeys(nodes))
        return self.state if self.state.classes.get(name) == distinct else self.state.with_class(name, distinct)

    def without_class(self, name: str, expected: str | None) -> State:
        self._expect(expected)
        self._need(name, self.now)
        return self.state.without(name)

    def adopt(self, state: State) -> None:
        """Keep the state on disk first, then answer by it."""
        if state is not self.state:
            self.store.write(state)
            self.now = replace(self.now, state=state)

    def _need(self, name: str, now: Moment) -> None:
        if name not in now.state.classes:
            raise Missing(f"there is no class {name!r}{closest(name, now.state.classes)}")

    def _expect(self, version: str | None) -> None:
        if version is not None and version.strip('"') not in (self.version, "*"):
            raise Moved(f"the classes are at version {self.version} by now, not {version.strip(chr(34))}")

    # --- answers ---

    def cost(self, body: Classify) -> int:
        """How many pairs of nodes have to be compared: what decides whether others must not wait for it."""
        classes = self.state.classes if body.support is None else body.support
        shots = sum(map(len, classes.values()))
        asked = self.network.data.graph.n if body.nodes is None else len(body.nodes)
        explained = min(asked, body.limit * len(classes)) if body.nodes is None else asked
        return asked * len(classes) + (explained * shots if body.explain else 0)

    def classify(self, body: Classify) -> dict[str, Any]:
        now = self.now
        network, version, answerer = now.network, now.version, now.answerer(body.support)
        explain = body.explain and network.embeds
        n_way = len(answerer.classes)
        if body.nodes is None and body.limit * n_way > NODES:
            raise FewnodeError(f"{body.limit} nodes for each of {n_way} classes; {NODES} in all at most")
        shown = body.limit * n_way if body.nodes is None else len(body.nodes)
        if explain and shown * len(answerer.nodes) > PAIRS:
            raise FewnodeError(
                f"{shown} nodes and {len(answerer.nodes)} support nodes are too many to explain; ask for fewer"
            )
        if body.nodes is not None:
            nodes = [network.data.node(name) for name in body.nodes]
            return {"version": version, **rendered(self._judged(answerer, body, nodes, explain))}
        answer = self._judged(answerer, body)
        best = _best(answer, body.limit, set(answerer.nodes))
        result = rendered(answer.only(best, answerer.recogniser.explain(best) if explain else None))
        counts = Counter(answer.labels)
        return {"version": version, **result, "counts": {name: counts[name] for name in result["classes"]}}

    def suggest(self, body: Suggest) -> dict[str, Any]:
        now = self.now
        network, version, answerer = now.network, now.version, now.answerer(body.support)
        data, labels = network.data, [label for _, label in answerer.support]
        rejected = [data.node(name) for name in body.exclude]
        among = _known(data, set(labels))[0].tolist() if body.known else None
        found = suggest(network.model, data, answerer.nodes, labels, body.count, among, rejected)
        return {
            "version": version,
            "nodes": [
                {
                    "node": data.node_name(s.node),
                    "class": str(s.likely),
                    "probability": s.probability,
                    "why": f"it stands for {100 * s.covers:.1f} % of the nodes of these classes that no labelled "
                    "node is like yet",
                }
                for s in found
            ],
        }

    def progress(self, body: Progress) -> dict[str, Any]:
        """How much of what each class claims is right, by the data's labels and by those of the request."""
        now = self.now
        answerer = now.answerer(None)
        data, given = answerer.data, [label for _, label in answerer.support]
        answer = self._judged(answerer, body)
        truth = {data.node(node): name for name, nodes in body.truth.items() for node in nodes}
        support = list(zip(answerer.nodes, given, strict=True))
        claims = Claims.of(data, answerer.classes, support, labels(answer), truth)
        return {"version": now.version, **claims.to_json(data)}

    def _judged(
        self, answerer: Answerer, how: Judging, nodes: Sequence[int] | None = None, explain: bool = False
    ) -> Predictions:
        """What some nodes, or all of them, are taken for: every answer, count and table is made here."""
        transductive = (how.mode or self.mode) == MODES[1]
        if nodes is None:
            return self._everyone(answerer, transductive, how.closed_set, how.threshold)
        return answerer.predictions(nodes, explain, transductive, closed_set=how.closed_set, threshold=how.threshold)

    # --- new nodes ---

    def attach(self, body: Attach) -> dict[str, Any]:
        """Keep new nodes and, if asked and if there are classes, classify them; nothing is trained."""
        if self.n_attached + len(body.nodes) > ATTACHED_IN_ALL:
            raise FewnodeError(f"{ATTACHED_IN_ALL} nodes can be attached in all; {self.n_attached} are")
        nodes = [node.model_dump() for node in body.nodes]
        network = self.network.extended(nodes)
        self.store.append_nodes(nodes)
        self.now = replace(self.now, network=network, n_attached=self.n_attached + len(nodes))
        ignored = {"unknown_attributes": unknown_words(network.data, nodes)}
        if not body.classify or not self.state.classes:
            return {"version": self.version, "classes": [], "results": [], "beta": {}, **ignored}
        return {**self.classify(Classify(nodes=[node["node"] for node in nodes])), **ignored}

    # --- tables ---

    def support_csv(self) -> str:
        rows = [[node, name] for name, nodes in self.state.classes.items() for node in nodes]
        return csv_text([["node", "class"], *rows])

    def labels_csv(self, how: Judging) -> str:
        return self._judged(self.now.answerer(None), how).to_csv()


def _everyone(answerer: Answerer, transductive: bool, closed_set: bool, threshold: float | None) -> Predictions:
    everyone = range(answerer.data.graph.n)
    return answerer.predictions(everyone, False, transductive, closed_set=closed_set, threshold=threshold)


def _described(network: Network, state: State) -> list[dict[str, Any]]:
    """Each class with β of its support nodes and the place of its prototype on the map."""
    if not network.embeds or not state.classes:
        return [
            {"name": name, "support": [{"node": node, "beta": None} for node in nodes], "position": None}
            for name, nodes in state.classes.items()
        ]
    answerer = network.answerer(state.support)
    beta = answerer.recogniser.explain([]).beta
    found = []
    for name in state.classes:
        places = [i for i, (_, label) in enumerate(answerer.support) if label == name]
        z = network.projection.z[[answerer.nodes[i] for i in places]]
        prototype = (z * z.new_tensor(beta[places].tolist())[:, None]).sum(dim=0, keepdim=True)
        given = [{"node": answerer.support[i][0], "beta": float(beta[i])} for i in places]
        found.append({"name": name, "support": given, "position": network.projection.place(prototype).tolist()[0]})
    return found


def labels(answer: Predictions) -> list[str | None]:
    """What each node is taken for; None, not a class called none, for a node of none of the classes."""
    return [None if label == NONE and not answer.closed_set else label for label in answer.labels]


def rendered(answer: Predictions) -> dict[str, Any]:
    """Predictions as the service gives them; `note` says it where the model cannot tell what is in none of them."""
    class_of = dict(answer.support)
    count = len(answer.nodes)
    nearest = [[{"node": node, "class": class_of[node]} for node in row] for row in answer.nearest] or [[]] * count
    member = [None] * count if answer.member is None else answer.member.tolist()
    columns = (answer.nodes, labels(answer), answer.probability.tolist(), answer.probabilities, member, nearest)
    fields = ("node", "class", "probability", "probabilities", "member", "nearest")
    beta: dict[str, dict[str, float]] = {}
    for (node, label), weight in zip(answer.support, answer.why.beta if answer.why else (), strict=False):
        beta.setdefault(label, {})[node] = float(weight)
    return {
        "classes": answer.classes,
        "closed_set": answer.closed_set,
        "note": answer.reason if answer.member is None else None,
        "results": [dict(zip(fields, row, strict=True)) for row in zip(*columns, strict=True)],
        "beta": beta,
    }


def _best(answer: Predictions, limit: int, support: set[int]) -> list[int]:
    """The rows that each class claims most surely, support nodes left out; the surest class's first."""
    taken, top = np.array(answer.labels, object), answer.probability
    found: list[int] = []
    for name in answer.classes:
        own = np.flatnonzero(taken == name)
        order = own[np.argsort(-top[own], kind="stable")]
        found += [int(i) for i in order[: limit + len(support)] if int(i) not in support][:limit]
    return found


def _known(data: Dataset, labels: set[str]) -> tuple[np.ndarray[Any, Any], list[str]]:
    ids = [c for c, name in enumerate(data.class_names) if name in labels]
    nodes = np.flatnonzero(np.isin(data.y, ids))
    return nodes, [data.class_names[c] for c in data.y[nodes].tolist()]
