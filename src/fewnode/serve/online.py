"""A network that changes while it is served: each node near a change gets a new row, all others keep theirs.

A question about some nodes needs the rows of these nodes and of those that stand for the classes, and nothing else.
What needs all nodes (the map, exports, suggestions) makes a whole network first, once for a state.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from fewnode.class_labels import UNKNOWN
from fewnode.classes.description import opaque
from fewnode.dataset import ClassSplit, Dataset
from fewnode.errors import FewnodeError
from fewnode.estimator import Estimator
from fewnode.graph import Graph, is_sparse
from fewnode.nodes import Nodes
from fewnode.predict.predictions import Answerer
from fewnode.serve.anchors import keep_anchor, recall_state, recall_views
from fewnode.serve.changes import BaseDataset
from fewnode.serve.layered import Layered
from fewnode.serve.network import KEPT, ServedNetwork
from fewnode.serve.overlay import Change, Overlay
from fewnode.serve.state import NETWORK, Edge, GivenClass, Key, State

NO_SPLIT = ClassSplit((), (), ())


@dataclass(frozen=True, eq=False)
class OnlineNetwork:
    """The network of a state: one that was embedded as a whole, and what has changed since."""

    anchor: ServedNetwork
    base: BaseDataset
    state: State
    overlay: Overlay | None = None
    """None if nothing has changed since all nodes were embedded."""
    numbers: Layered[str, int] = field(default_factory=Layered)
    """Of nodes that came since."""
    names: Layered[int, str] = field(default_factory=Layered)
    anchor_labels: Mapping[str, str | None] = field(default_factory=dict)
    """Corrected labels of the network that was embedded."""
    _ready: dict[Any, tuple[Answerer, list[Any]]] = field(default_factory=dict)
    """Answerers of support sets, and the rows that they were made from."""
    _making: Any = field(default_factory=threading.Lock)

    @classmethod
    def of(cls, anchor: ServedNetwork, base: BaseDataset, state: State) -> OnlineNetwork:
        return cls(anchor, base, state, anchor_labels=state.labels)

    @classmethod
    def opened(cls, model: Estimator, base: BaseDataset, home: Path, state: State) -> OnlineNetwork:
        """The network of a state at a start: what was embedded last, and new rows of what has changed since.

        Where nothing was kept, or it cannot be gone on with, all nodes are embedded.
        """
        whole, before = base.changed(state), recall_state(home)
        keys = [] if before is None else [key for key in state.differs(before) if key[0] in NETWORK]
        if before is not None and keys:
            with suppress(FewnodeError):
                data = base.changed(before)
                if (views := recall_views(home, model, data)) is not None:
                    return cls.of(ServedNetwork(model, data, home, views=views), base, before).changed(state, keys)
        return cls.of(ServedNetwork(model, whole, home), base, state)

    def settle(self) -> None:
        """Make what rows of new nodes need, and keep it for the next start, if it is not there yet."""
        anchor = self.anchor
        embedded = anchor.embedded()
        if embedded is not None and not anchor.views_are_kept and self.overlay is None:
            keep_anchor(anchor.home, anchor.model, anchor.data, embedded.views, self.state)
            anchor.views_are_kept = True

    # --- nodes ---

    @property
    def n(self) -> int:
        n = self.anchor.data.graph.n
        return n if self.overlay is None else n + self.overlay.size - len(self.overlay.gone)

    @property
    def drift(self) -> float:
        return 0.0 if self.overlay is None else self.overlay.drift

    def number(self, name: str) -> int | None:
        """Of the node of that name, in its one form; None if there is none."""
        found = self.numbers.get(name)
        if found is None:
            found = self.anchor.rows.get(name)
        return None if self.overlay is not None and found in self.overlay.gone else found

    def near(self, name: str) -> list[str]:
        """The names of a node's neighbours: where edges have directions, of those that lead to it."""
        number = self._known(name)
        if self.overlay is None:
            adj = self.anchor.data.graph.adj
            return [self._name(int(i)) for i in adj.indices[adj.indptr[number] : adj.indptr[number + 1]]]
        found = [self._name(int(i)) for i in self.overlay.near(number)]
        return [other for other in found if not self.base.directed or self._leads(other, name)]

    def _leads(self, source: str, target: str) -> bool:
        """Whether an edge of a direction is there now."""
        return self.base.joined(self.base.edge(source, target), self.state)

    def _name(self, number: int) -> str:
        return self.names[number] if number in self.names else self.anchor.data.node_name(number)

    # --- all of it ---

    @property
    def is_whole(self) -> bool:
        """Whether `whole` need not be made."""
        return self._is_anchor or "_whole" in self.__dict__

    @property
    def _is_anchor(self) -> bool:
        return self.overlay is None and self.state.labels == self.anchor_labels

    @property
    def whole(self) -> ServedNetwork:
        with self._making:
            return self._whole

    @cached_property
    def _whole(self) -> ServedNetwork:
        if self._is_anchor:
            return self.anchor
        data = self.base.changed(self.state)
        if self.overlay is None:
            return self.anchor.relabelled(data)
        numbers = [self.number(name) for name in data.node_names or map(str, range(data.graph.n))]
        z = self.overlay.rows(number for number in numbers if number is not None)
        return ServedNetwork(self.anchor.model, data, self.anchor.home, z, self.anchor)

    # --- changes ---

    def changed(self, state: State, keys: Sequence[Key]) -> OnlineNetwork:
        """The network of another state, which differs in rows of these keys. What it contradicts is an error."""
        touched = {table: [key for at, key in keys if at == table] for table in NETWORK}
        if not any(touched[table] for table in NETWORK if table != "labels"):
            return replace(self, state=state, _making=threading.Lock())
        embedded = None if self._returns(state, touched) else self.anchor.embedded()
        if embedded is None:
            return OnlineNetwork.of(
                ServedNetwork(self.anchor.model, self.base.changed(state), self.anchor.home), self.base, state
            )
        before = self.overlay or Overlay(embedded)
        gone = self._gone(state, touched)
        names = [name for name in touched["nodes"] if name in state.nodes]
        fresh = [name for name in names if self.number(name) is None or self.number(name) in gone]
        numbers = self.numbers.updated({name: before.end + i for i, name in enumerate(fresh)})
        there = OnlineNetwork(self.anchor, self.base, state, before, numbers, anchor_labels=self.anchor_labels)
        said = {numbers[n] if n in numbers else self.anchor.rows[n]: x for n, x in self._encoded(state, names).items()}
        tied = [self.base.edge(source, target) for source, target, _ in touched["ties"]]
        added, removed = there._arcs(list(dict.fromkeys([*touched["edges"], *tied])), gone)
        overlay = before.changed(Change(gone, said, added, removed))
        later = self.names.updated({numbers[name]: name for name in fresh})
        return OnlineNetwork(self.anchor, self.base, state, overlay, numbers, later, self.anchor_labels, self._ready)

    def _returns(self, state: State, touched: Mapping[str, list[Any]]) -> bool:
        """Whether a node of the dataset is to be again as the dataset has it, with edges that nobody named."""
        back = [name for name in touched["removed"] if name in self.state.removed]
        back += [name for name in touched["nodes"] if name in self.base.row and name in self.state.nodes]
        return any(name not in state.removed and name not in state.nodes for name in back)

    def _gone(self, state: State, touched: Mapping[str, list[Any]]) -> list[int]:
        """Nodes that are deleted; one of the dataset may have come back as another."""
        deleted = [n for n in touched["removed"] if n in state.removed and n not in self.state.removed]
        deleted += [n for n in touched["nodes"] if n not in state.nodes and n in self.state.nodes and n not in deleted]
        dropped = [n for n in deleted if n in state.removed or n not in self.base.row]
        found = [self.number(name) for name in dropped]
        return [number for number in found if number is not None]

    def _encoded(self, state: State, names: Sequence[str]) -> dict[str, Any]:
        """The attributes of nodes as the dataset has them, a row each."""
        if not names:
            return {}
        x = self.base.reader.encoded({name: state.nodes[name] for name in names}).x
        values = x.data if is_sparse(x) else x
        if not np.isfinite(values).all():
            row = next(i for i in range(len(names)) if not np.isfinite(x[[i]].sum()))
            raise FewnodeError(f"an attribute of node {names[row]!r} is NaN or infinite")
        x = x.astype(np.float32)
        if is_sparse(self.base.data.graph.x) and not is_sparse(x):
            x = sp.csr_array(x)
        if is_sparse(x) and not is_sparse(self.base.data.graph.x):
            x = x.toarray()
        return {name: x[[i]] for i, name in enumerate(names)}

    def _arcs(self, edges: Sequence[Edge], gone: Sequence[int]) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
        """Those that come and that go where the presence of these edges changes."""
        added: list[tuple[int, int]] = []
        removed: list[tuple[int, int]] = []
        overlay = self.overlay
        assert overlay is not None, "it was made for this"  # noqa: S101 # nosec B101
        for edge in edges:
            ends = [self.number(name) for name in edge]
            if None in ends or set(ends) & set(gone):
                continue
            source, target = (int(end) for end in ends if end is not None)
            wanted = self._leads(*edge) or self._leads(*edge[::-1])  # rows are made of edges both ways
            for node, other in ((target, source), (source, target)):
                there = node < overlay.end and other in overlay.near(node)
                if wanted != there:
                    (added if wanted else removed).append((node, other))
        return added, removed

    # --- answers ---

    def answerer(self, given: Sequence[GivenClass], names: Sequence[str] = ()) -> Answerer:
        """The classes made ready, for a network of what stands for them, then of other nodes of these names."""
        first = list(dict.fromkeys([*_labels(given), *_rejected(given)]))
        others = [name for name in dict.fromkeys(names) if name not in set(first)]
        return self.ready(given).elsewhere(*self._part([*first, *others]))

    def ready(self, given: Sequence[GivenClass]) -> Answerer:
        """The classes made ready, once for the rows that stand for them as they are."""
        overlay, support = self.overlay, _labels(given)
        assert overlay is not None, "else the whole network answers"  # noqa: S101 # nosec B101
        first = list(dict.fromkeys([*support, *_rejected(given)]))
        numbers = [self._known(name) for name in first]
        key = tuple(given), tuple(id(overlay.nodes[i].z) if i in overlay.nodes else i for i in numbers)
        known = self._ready.get(key)  # other threads may ask, too
        if known is not None:
            return known[0]
        data, method = self._part(first)
        model = copy.copy(self.anchor.model)
        model.method_ = method
        described = self.anchor.described([each._replace(nodes=()) for each in given if not self._is_mute(each)])
        no: dict[Hashable, Nodes] = {each.name: list(each.rejected) for each in given if each.rejected}
        found = Answerer(model, data, list(support), list(support.values()), described, rejected=no)
        for old in list(self._ready)[: max(0, len(self._ready) - KEPT + 1)]:
            self._ready.pop(old, None)
        self._ready[key] = found, [overlay.nodes[i].z for i in numbers if i in overlay.nodes]
        return found

    def _is_mute(self, given: GivenClass) -> bool:
        """Whether a class has nodes and only a name that says nothing here; then its nodes count alone."""
        empty = given.description is not None and not given.description.strip()
        return empty and bool(given.nodes) and opaque(self.anchor.data, given.name)

    def _known(self, name: str) -> int:
        number = self.number(name)
        if number is None:
            raise FewnodeError(f"unknown node {name!r}")
        return number

    def _part(self, names: list[str]) -> tuple[Dataset, Any]:
        """A network of these nodes alone, and the method with their rows."""
        assert self.overlay is not None, "else the whole network answers"  # noqa: S101 # nosec B101
        x = self.anchor.data.graph.x
        empty = sp.csr_array((len(names), x.shape[1]), dtype=np.float32)
        graph = Graph(sp.csr_array((len(names), len(names)), dtype=np.float32), empty)
        data = Dataset(graph, np.full(len(names), UNKNOWN), NO_SPLIT, node_names=tuple(names))
        method = copy.copy(self.anchor.model.method_)
        method.of_all = (self.anchor.model.method_, self.anchor.data.graph)
        z = self.overlay.rows(self._known(name) for name in names)
        whole = self.anchor.model.embedded(self.anchor.data.graph)
        method.remember(graph, replace(whole, z=z))
        return data, method


def _rejected(given: Sequence[GivenClass]) -> list[str]:
    return [name for each in given for name in each.rejected]


def _labels(given: Sequence[GivenClass]) -> dict[str, str]:
    """The class of each support node."""
    if not given:
        raise FewnodeError('there is no class yet; put one, or give "support" or "descriptions"')
    found: dict[str, str] = {}
    for each in given:
        label = each.name
        for name in each.nodes:
            if found.setdefault(name, label) != label:
                raise FewnodeError(f"node {name!r} is in two classes, {found[name]!r} and {label!r}")
    return found
