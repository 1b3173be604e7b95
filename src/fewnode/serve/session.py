"""The answers: registered classes, nodes classified into them, what to label next, how well it goes.

A request sees one `ServedNetwork` and one `State`, both immutable, and so never half of a change.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from fewnode.dataset import Dataset
from fewnode.errors import FewnodeError, closest, visible
from fewnode.estimator import Estimator
from fewnode.machine.sheets import csv_text
from fewnode.predict.labelling import suggest
from fewnode.predict.predictions import Answerer, Predictions
from fewnode.recognition.calibration import MODES
from fewnode.recognition.prototypes import Prototypical
from fewnode.serve import edits
from fewnode.serve.bodies import (
    NODES,
    Attach,
    ChangeEdges,
    Classify,
    Judging,
    MeasureProgress,
    PutClass,
    PutNode,
    Suggest,
)
from fewnode.serve.changes import BaseDataset
from fewnode.serve.claims import Claims
from fewnode.serve.edits import Edit
from fewnode.serve.network import ServedNetwork
from fewnode.serve.online import OnlineNetwork
from fewnode.serve.refresh import DRIFT_BOUND, BackgroundRefresh
from fewnode.serve.rendering import class_list, labels, rendered, words_of
from fewnode.serve.snapshot import ALWAYS, Condition, NotFound, Snapshot
from fewnode.serve.state import NETWORK, State
from fewnode.serve.store import Store, Unusable

LOG = logging.getLogger("fewnode.serve")
PAIRS = 5_000_000
"""Nodes times support nodes that an explained answer may compare at most."""


class Session:
    """All that the service knows: a network, its registered classes, and the store that keeps what was changed."""

    def __init__(
        self,
        model: Estimator,
        data: Dataset,
        store: Store,
        mode: str = MODES[0],
        trained: bool = True,
        drift_bound: float = DRIFT_BOUND,
    ) -> None:
        """`trained`: whether somebody trained the model; else it was made for the dataset as it is.

        Where the estimated drift passes `drift_bound`, all nodes are embedded again in the background.
        """
        self.trained = trained
        self.model, self.store, self.mode, self.base = model, store, mode, BaseDataset(data)
        if mode == MODES[1] and not isinstance(model.method_, Prototypical):
            raise FewnodeError(f"{model.method} answers each query on its own: it has no transductive mode")
        self.refresh = BackgroundRefresh(self._embedded, self._caught_up, self._swap, drift_bound)
        self.now = self._first_snapshot()
        self.refresh.prepare(self.now.online)
        self._class_list = lru_cache(maxsize=1)(class_list)  # more would keep networks of the past
        self._everyone = lru_cache(maxsize=1)(_everyone)  # for the claims, how right they are, and the table

    def _first_snapshot(self) -> Snapshot:
        """What the store kept. If nothing can be made of that, the service starts without it, and says so."""
        try:
            state = self.store.read()
            try:
                return self._snapshot(state)
            except FewnodeError as error:
                raise Unusable(f"{self.store.path}: {error}") from None
        except Unusable as error:
            empty = self._snapshot(State())
            LOG.warning("%s", visible(self.store.set_aside(error)))
            return empty

    def _snapshot(self, state: State, before: Snapshot | None = None) -> Snapshot:
        """The state with its network and its support set, each of them made: what cannot be made is no state."""
        if before is None:
            online = OnlineNetwork.opened(self.model, self.base, self.store.path, state)
        elif state.same_network(before.state):
            online = before.online
        else:
            online = before.online.changed(state, state.differs(before.state))
        snapshot = Snapshot(online, state, self.base)
        if state.classes:
            snapshot.prepare()
        return snapshot

    def _embedded(self, state: State) -> OnlineNetwork:
        """The network of a state, all of it embedded."""
        network = ServedNetwork(self.model, self.base.changed(state), self.store.path)
        return OnlineNetwork.of(network, self.base, state)

    def change(self, edit: Edit, answer: Callable[[Snapshot], Mapping[str, Any]]) -> dict[str, Any]:
        """Build what the change leads to and its answer, then keep it on disk, then answer by it."""
        with self.refresh.changing:
            snapshot = self._snapshot(edit.state, self.now)
            told = answer(snapshot)
            self.now = now = replace(snapshot, state=self.store.commit(edit.state, edit.change, edit.who))
            self.refresh.look(now.online, now.state)
        return {**told, "version": now.version}

    def _caught_up(self, made: OnlineNetwork) -> OnlineNetwork:
        """A network that was embedded in the background, with what has changed since it was begun."""
        state = self.now.state
        keys = state.differs(made.state)
        return made.changed(state, keys) if any(table in NETWORK for table, _ in keys) else made

    def _swap(self, made: OnlineNetwork) -> None:
        self.now = replace(self.now, online=made)

    def row(self, now: Snapshot, name: str) -> int:
        """The row of a node that an address names."""
        try:
            return now.node(name)
        except FewnodeError as error:
            raise NotFound(str(error)) from None

    # --- classes ---

    def classes(self) -> dict[str, Any]:
        now = self.now
        return {"version": now.version, "classes": self._class_list(now.network, now.state)}

    def one_class(self, name: str) -> dict[str, Any]:
        now = self.now
        if name not in now.state.classes:
            raise NotFound(f"there is no class {name!r}{closest(name, now.state.classes)}")
        return {**self._class(name, now), "version": now.version}

    def _class(self, name: str, now: Snapshot) -> dict[str, Any]:
        return next(found for found in self._class_list(now.network, now.state) if found["name"] == name)

    def put_class(self, name: str, body: PutClass, condition: Condition) -> dict[str, Any]:
        return self.change(edits.put_class(self.now, name, body, condition), lambda then: self._class(name, then))

    def delete_class(self, name: str, condition: Condition, by: str | None) -> dict[str, Any]:
        return self.change(edits.delete_class(self.now, name, condition, by), lambda _: {})

    # --- answers ---

    def cost(self, body: Classify) -> int:
        """How many pairs of nodes have to be compared: what decides whether others must not wait for it."""
        n, classes = self.now.online.n, self.now.state.given if body.given is None else body.given
        shots = sum(len(each.nodes) for each in classes)
        asked = n if body.nodes is None else len(body.nodes)
        explained = min(asked, body.limit * len(classes)) if body.nodes is None else asked
        compared = n * len(body.descriptions or ())  # a new description is compared with every node
        if body.explain and not self.now.online.is_whole and any(each.description is not None for each in classes):
            compared += n * len(classes)  # words that nodes share with a description need the whole network
        return asked * len(classes) + (explained * shots if body.explain else 0) + compared

    def classify(self, body: Classify, then: Snapshot | None = None) -> dict[str, Any]:
        now = then or self.now
        version, answerer = now.version, now.answerer(body.given, body.nodes)
        explain = body.explain and now.online.anchor.embeds
        n_way = len(answerer.classes)
        if body.nodes is None and body.limit * n_way > NODES:
            raise FewnodeError(f"{body.limit} nodes for each of {n_way} classes; {NODES} in all at most")
        shown = body.limit * n_way if body.nodes is None else len(body.nodes)
        if explain and shown * len(answerer.nodes) > PAIRS:
            raise FewnodeError(
                f"{shown} nodes and {len(answerer.nodes)} support nodes are too many to explain; ask for fewer"
            )
        given, shots = now.state.given if body.given is None else body.given, len(answerer.nodes)
        if body.nodes is not None:
            nodes = [answerer.data.node(self.base.form(name)) for name in body.nodes]
            answer = self.judged(answerer, body, nodes, explain)
            return {"version": version, **rendered(answer, shots, words_of(now, given, answer))}
        everyone = self.judged(answerer, body)
        best = _best(everyone, body.limit, set(answerer.nodes))
        answer = everyone.only(best, answerer.recogniser.explain(best) if explain else None)
        counts = Counter(everyone.labels)
        counted = {name: counts[name] for name in answer.classes}
        return {"version": version, **rendered(answer, shots, words_of(now, given, answer)), "counts": counted}

    def suggest(self, body: Suggest) -> dict[str, Any]:
        now = self.now
        network, version, answerer = now.network, now.version, now.answerer(body.given)
        data, labels = network.data, [label for _, label in answerer.support[: len(answerer.nodes)]]
        rejected = [now.node(name) for name in body.exclude]
        among = np.flatnonzero(np.isin(data.y, _named(data, answerer.classes))).tolist() if body.known else None
        said = network.described(now.state.given if body.given is None else body.given)
        found = suggest(network.model, data, answerer.nodes, labels, body.count, among, rejected, said)
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

    def progress(self, body: MeasureProgress) -> dict[str, Any]:
        """How much of what each class claims is right, by the data's labels and by those of the request."""
        now = self.now
        answerer = now.answerer()
        data = answerer.data
        answer = self.judged(answerer, body)
        truth = {now.node(node): name for name, nodes in body.truth.items() for node in nodes}
        support = [(node, label) for node, (_, label) in zip(answerer.nodes, answerer.support, strict=False)]
        claims = Claims.of(data, answerer.classes, support, labels(answer), truth)
        return {"version": now.version, **claims.to_json(data)}

    def judged(
        self, answerer: Answerer, how: Judging, nodes: Sequence[int] | None = None, explain: bool = False
    ) -> Predictions:
        """What some nodes, or all of them, are taken for: every answer, count and table is made here."""
        transductive = (how.mode or self.mode) == MODES[1]
        if nodes is None:
            return self._everyone(answerer, transductive, how.closed_set, how.threshold)
        return answerer.predictions(nodes, explain, transductive, closed_set=how.closed_set, threshold=how.threshold)

    # --- nodes and edges ---

    def attach(self, body: Attach, condition: Condition = ALWAYS) -> dict[str, Any]:
        """Keep new nodes and, if asked and if there are classes, classify them; nothing is trained."""
        condition.check(self.now, "new node", exists=False)
        edit = edits.attach(self.now, body.nodes, body.by)
        return self.change(edit, lambda then: self._account(then, edit, list(edit.nodes), body))

    def put_node(self, name: str, body: PutNode, condition: Condition) -> dict[str, Any]:
        """A node as it is from now on; one that is not there is attached."""
        name = self.base.form(name)
        edit = edits.put_node(self.now, name, body, condition)
        return self.change(edit, lambda then: self._account(then, edit, [name], body))

    def delete_node(self, name: str, condition: Condition, by: str | None) -> dict[str, Any]:
        return self.change(edits.delete_node(self.now, name, condition, by), lambda _: {})

    def change_edges(self, body: ChangeEdges, condition: Condition = ALWAYS) -> dict[str, Any]:
        condition.check(self.now, "state of the service", exists=True)
        edit, told = edits.change_edges(self.now, body)
        return self.change(edit, lambda _: told)

    def _account(self, then: Snapshot, edit: Edit, names: list[str], body: Attach | PutNode) -> dict[str, Any]:
        """What became of the cells that were given and, if asked, what the nodes are taken for."""
        told = self.base.reader.report(edit.nodes).to_json()
        if not body.classify or not then.state.classes:
            return {"classes": [], "results": [], "beta": {}, "description_beta": {}, **told}
        how = {name: getattr(body, name) for name in Judging.model_fields}
        return {**self.classify(Classify(nodes=names, **how), then), **told}

    # --- tables ---

    def support_csv(self) -> str:
        """Examples; where there are counter-examples, these too, with a column that says which are which."""
        given = self.now.state.given
        yes = [[node, each.name] for each in given for node in each.nodes]
        no = [[node, each.name] for each in given for node in each.rejected]
        if not no:
            return csv_text([["node", "class"], *yes])
        rows = [*([*row, "yes"] for row in yes), *([*row, "no"] for row in no)]
        return csv_text([["node", "class", "answer"], *rows])

    def classes_csv(self) -> str:
        rows = [[each.name, each.description] for each in self.now.state.given if each.description is not None]
        return csv_text([["class", "description"], *rows])

    def labels_csv(self, how: Judging) -> str:
        return self.judged(self.now.answerer(), how).to_csv()


def _everyone(answerer: Answerer, transductive: bool, closed_set: bool, threshold: float | None) -> Predictions:
    everyone = range(answerer.data.graph.n)
    return answerer.predictions(everyone, False, transductive, closed_set=closed_set, threshold=threshold)


def _best(answer: Predictions, limit: int, support: set[int]) -> list[int]:
    """The rows that each class claims most surely, support nodes left out; the surest class's first."""
    taken, top = np.array(answer.labels, object), answer.probability
    found: list[int] = []
    for name in answer.classes:
        own = np.flatnonzero(taken == name)
        order = own[np.argsort(-top[own], kind="stable")]
        found += [int(i) for i in order[: limit + len(support)] if int(i) not in support][:limit]
    return found


def _named(data: Dataset, labels: Sequence[str]) -> list[int]:
    return [c for c, name in enumerate(data.class_names) if name in set(labels)]
