"""A network as the service shows it: names to search, a node's words and neighbours, a map of all embeddings."""

from __future__ import annotations

import copy
import threading
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewnode.class_labels import UNKNOWN
from fewnode.classes.definitions import Class, Definitions
from fewnode.classes.description import opaque, shared_words
from fewnode.dataset import Dataset
from fewnode.errors import FewnodeError
from fewnode.estimator import Estimator
from fewnode.graph import Attributes, is_sparse
from fewnode.machine import memory
from fewnode.methods.plus import GPNPlus
from fewnode.predict.embedding_cache import keep, recall
from fewnode.predict.predictions import Answerer
from fewnode.recognition.prototypes import Prototypical
from fewnode.represent.attributes import inverse_document_frequency
from fewnode.represent.kinds import both_ways
from fewnode.represent.new_rows import StoredViews, can_be_updated
from fewnode.serve.anchors import recall_views
from fewnode.serve.edge_kinds import edges_between
from fewnode.serve.overlay import EmbeddedNetwork
from fewnode.serve.projection import MapProjection, spread
from fewnode.serve.search import NodeSearch
from fewnode.serve.state import GivenClass
from fewnode.vectors import Floats

WORDS, NEIGHBOURS = 12, 30
KEPT = 8
"""Sets of classes that are kept ready."""
DESCRIBED = 256
"""Descriptions whose words are kept, more than there are classes."""


class ServedNetwork:
    """A model and a dataset, every node embedded. Never changed: with other nodes or edges there is another one.

    The model is a shallow copy, since a method remembers the embedding of one graph only. One that takes long is kept
    in the user's cache, so that the next start is a short one. `home` is where the state of the service is.
    """

    def __init__(
        self,
        model: Estimator,
        data: Dataset,
        home: Path,
        z: Floats | None = None,
        of_all: ServedNetwork | None = None,
        views: StoredViews | None = None,
    ) -> None:
        """With `z`, nothing is embedded: it has changed a little since that of the network `of_all`.

        `views` is what rows of new nodes are made from, if that was kept.
        """
        self.data, self.home, self._of_all = data, home, of_all
        self.model = copy.copy(model)
        self.model.method_ = copy.copy(model.method_)
        self.embeds = isinstance(model.method_, Prototypical)
        self.open_set = self.embeds and model.method_.membership is not None
        self.answerer = lru_cache(maxsize=KEPT)(self._answerer)
        self.definition = lru_cache(maxsize=DESCRIBED)(self._definition)
        if z is not None and of_all is not None:
            self.model.method_.of_all = (of_all.model.method_, of_all.data.graph)
            self.model.remember(data.graph, replace(of_all.model.embedded(of_all.data.graph), z=z))
        elif self.embeds and not (self.model.has_embedding(data.graph) or recall(self.model, data)):
            keep(self.model, data)
        self.describes: bool = self._can_describe() if of_all is None else of_all.describes
        self._making, self._views = threading.Lock(), views
        self.views_are_kept = False
        """Whether what rows of new nodes are made from is on the disk."""

    def relabelled(self, data: Dataset) -> ServedNetwork:
        """The same network where some labels are other ones: nothing is embedded or indexed again."""
        other = copy.copy(self)
        other.data, other._making = data, threading.Lock()
        other.answerer = lru_cache(maxsize=KEPT)(other._answerer)
        return other

    @cached_property
    def projection(self) -> MapProjection:
        """The map of all nodes: it stays as it is until they are embedded again."""
        before = None if self._of_all is None else self._of_all.projection
        return MapProjection(self.model.embedding(self.data.graph), before)

    @cached_property
    def _embedded(self) -> EmbeddedNetwork | None:
        method, graph = self.model.method_, self.data.graph
        if not isinstance(method, GPNPlus) or self.model.features is not None or method.room.folder is not None:
            return None
        if not can_be_updated(method.mixture_):
            return None
        views = self._views or recall_views(self.home, self.model, self.data)
        self.views_are_kept = views is not None
        if views is None:
            views = StoredViews.of(method.mixture_, graph, partial(memory.scratch, self.home.parent))
        return EmbeddedNetwork(both_ways(graph), method.embedded(graph).z, views)

    def embedded(self) -> EmbeddedNetwork | None:
        """What rows of new nodes are made from; None if all nodes have to be embedded again for that."""
        with self._making:
            return self._embedded

    def _answerer(self, classes: tuple[GivenClass, ...]) -> Answerer:
        """The classes made ready; asked for the same ones again, they are there already."""
        if not classes:
            raise FewnodeError('there is no class yet; put one, or give "support" or "descriptions"')
        if any(each.rejected for each in classes):
            ready = self.answerer(tuple(each._replace(rejected=()) for each in classes))
            return ready.rejecting(
                {each.name: [self.data.node(node) for node in each.rejected] for each in classes if each.rejected}
            )
        seen: dict[int, str] = {}
        for each in classes:
            label = each.name
            for name in each.nodes:
                node = self.data.node(name)
                if seen.setdefault(node, label) != label:
                    raise FewnodeError(f"node {name!r} is in two classes, {seen[node]!r} and {label!r}")
        return Answerer(self.model, self.data, list(seen), list(seen.values()), self.described(classes))

    # --- descriptions ---

    def _can_describe(self) -> bool:
        """Whether the method reads descriptions and the network has words, which are looked through here and now."""
        if not (self.embeds and self.model.method_.reads_descriptions):
            return False
        try:
            opaque(self.data, "x")
        except FewnodeError:
            return False
        return True

    @property
    def rows(self) -> Mapping[str, int]:
        """The row of each node, by its name."""
        return self.data.node_id if self.data.node_names is not None else self._numbers

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {str(i): i for i in range(self.data.graph.n)}

    def described(self, classes: Sequence[GivenClass]) -> dict[Hashable, Attributes]:
        """The rows of attributes that stand for described classes."""
        read = [self.read_definition(each) for each in classes if each.description is not None]
        return {name: row for definition in read for name, row in definition.rows.items()}

    def read_definition(self, given: GivenClass) -> Definitions:
        """`definition`, whatever was rejected: that changes with every answer, and what the words mean does not."""
        return self.definition(given._replace(rejected=()))

    def _definition(self, given: GivenClass) -> Definitions:
        """What the network makes of the description of a class."""
        nodes = [self.data.node(name) for name in given.nodes]
        return Definitions.of(self.data, {given.name: Class(nodes, given.description)})

    def shared(self, given: GivenClass, nodes: Sequence[int]) -> list[dict[str, Any] | None]:
        """The words that each node shares with the description of a class, its own and those of a neighbour."""
        found = self.read_definition(given).descriptions.get(given.name)
        if found is None:
            return [None] * len(nodes)
        return [
            {"own": list(own), "near": [{"word": word, "node": self.data.node_name(i)} for word, i in near]}
            for own, near in shared_words(found, self.data, nodes, idf=self.idf)
        ]

    # --- names ---

    @cached_property
    def search(self) -> NodeSearch:
        return NodeSearch(self.data)

    def class_of(self, node: int) -> str | None:
        label = int(self.data.y[node])
        return None if label == UNKNOWN else self.data.class_names[label]

    def brief(self, node: int) -> dict[str, Any]:
        return {"node": self.data.node_name(node), "class": self.class_of(node)}

    # --- one node ---

    def about(self, node: int) -> dict[str, Any]:
        graph = self.data.graph
        around, near = self._neighbours(node)
        among = graph.adj[near][:, near].tocoo()
        links = sorted({(int(min(i, j)), int(max(i, j))) for i, j in zip(*among.coords, strict=True)})
        return {
            **self.brief(node),
            "degree": int(graph.degree[node]),
            "words": self._words(node),
            "neighbours": [
                {**self.brief(v), "edges": edges, "position": self.position(v)}
                for v, edges in zip(near.tolist(), edges_between(graph, node, near), strict=True)
            ],
            "links": links,
            "neighbours_total": around,
            "position": self.position(node),
        }

    def _neighbours(self, node: int) -> tuple[int, NDArray[np.int64]]:
        """How many there are, and those with the most edges of their own."""
        adj = self.data.graph.adj
        near = adj.indices[adj.indptr[node] : adj.indptr[node + 1]].astype(np.int64)
        order = np.argsort(-self.data.graph.degree[near], kind="stable")
        return near.size, near[order][:NEIGHBOURS]

    @cached_property
    def idf(self) -> NDArray[np.float32]:
        return inverse_document_frequency(self.data.graph.x)

    def _words(self, node: int) -> list[dict[str, Any]]:
        """The attributes that tell most about a node: its own value times how rare the attribute is."""
        x = self.data.graph.x
        if is_sparse(x):
            place = slice(x.indptr[node], x.indptr[node + 1])
            columns, values = x.indices[place], x.data[place]
        else:
            columns = np.flatnonzero(x[node])
            values = x[node][columns]
        weight = values * self.idf[columns]
        order = np.argsort(-np.abs(weight), kind="stable")[:WORDS]
        names = self.data.feature_names
        return [
            {"word": names[columns[i]] if names else f"attribute {columns[i]}", "weight": round(float(weight[i]), 4)}
            for i in order
        ]

    # --- the map ---

    def position(self, node: int) -> list[float] | None:
        return [round(float(each), 4) for each in self.projection.xy[node]] if self.embeds else None

    def map(self, limit: int) -> dict[str, Any]:
        """Labelled nodes first, then others, spread evenly where there are too many."""
        if not self.embeds:
            raise FewnodeError(f"{self.model.method} has no embedding of nodes, so there is no map of them")
        y = self.data.y
        labelled, others = np.flatnonzero(y != UNKNOWN), np.flatnonzero(y == UNKNOWN)
        shown = spread(labelled, limit)
        shown = np.concatenate([shown, spread(others, limit - shown.size)])
        x, height = self.projection.xy[shown].T
        return {
            "nodes": [self.data.node_name(i) for i in shown.tolist()],
            "x": np.ascontiguousarray(x),
            "y": np.ascontiguousarray(height),
            "class": y[shown],
            "class_names": self.data.class_names,
            "shown": int(shown.size),
            "total": self.data.graph.n,
        }
