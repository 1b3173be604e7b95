"""The network that is served: a dataset, its embedding and the classes that are asked about. It only ever grows.

This file has all calls into the embedding of nodes, and `asked` those into recognition and review; the rest of the
service knows arrays.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from fewnode._system import memory
from fewnode._system.files import cache_directory
from fewnode._system.kept import Kept
from fewnode.class_labels import UNKNOWN
from fewnode.dataset import Dataset
from fewnode.embedding.attributes import inverse_document_frequency
from fewnode.embedding.new_rows import StoredViews, can_be_updated
from fewnode.errors import FewnodeError, closest
from fewnode.graph import Ints
from fewnode.method import Embeds
from fewnode.methods.plus import GPNPlus
from fewnode.model.estimator import Estimator
from fewnode.model.model_files import keep, recall
from fewnode.recognition.classes import Class, Given
from fewnode.recognition.description import opaque
from fewnode.recognition.question import Question
from fewnode.recognition.space import Space
from fewnode.review.near_duplicates import grouped
from fewnode.service.bodies import NewNode
from fewnode.service.map import Picture, by_axes, kept_layout
from fewnode.service.new_nodes import NodeReader, appended
from fewnode.service.new_rows import Stored
from fewnode.vectors import Floats

MAX_BATCHES = 50
"""Batches of new nodes that a start appends one after the other, as they came."""


class NotFound(FewnodeError):
    """What the address names is not there."""


class Network:
    """A model and a dataset, every node embedded. With more nodes there is another one; rows of the others stay."""

    def __init__(
        self, model: Estimator, data: Dataset, trained: bool = True, of: Network | None = None, z: Floats | None = None
    ) -> None:
        """`of` is the network of the dataset alone; with `z` nothing is embedded."""
        self.data, self.trained, self.first = data, trained, of or self
        self.model, self.embeds = model, isinstance(model.method_, Embeds)
        self.space: Space | None = None
        if self.embeds and z is not None and self.first.space is not None:
            before = self.first.space
            self.space = replace(before, embedding=replace(before.embedding, z=z), kept=Kept())
        elif self.embeds:
            if not (model.has_space(data.graph) or recall(model, data)):
                keep(model, data)
            self.space = model.space(data.graph)
        self.open_set = self.space is not None and self.space.head.membership is not None
        self.reader = NodeReader(data)
        self.definition = lru_cache(maxsize=256)(self._definition)
        self._stored: Stored | None = None
        self._making = threading.Lock()
        self._picture: Picture | None = None
        self._xy: tuple[Picture, Floats] | None = None
        self.describes: bool = self._can_describe() if of is None else of.describes

    @property
    def n(self) -> int:
        return self.data.graph.n

    @property
    def n_attached(self) -> int:
        return self.n - self.first.n

    @cached_property
    def z(self) -> Floats:
        if self.space is None:
            raise FewnodeError(f"{self.model.method} has no embedding of nodes, so there is no map, and none is near")
        return self.space.embedding.z

    # --- names ---

    def form(self, name: str) -> str:
        """The one form of a name: where nodes have none but their number, 01 is 1."""
        return str(int(name)) if self.first.data.node_names is None and name.isdecimal() else name

    @cached_property
    def _rows(self) -> Mapping[str, int]:
        return self.data.node_id if self.data.node_names is not None else {str(i): i for i in range(self.n)}

    def has(self, name: str) -> bool:
        return self.form(name) in self._rows

    def row(self, name: str) -> int:
        found = self._rows.get(self.form(name))
        if found is None:
            raise FewnodeError(f"unknown node {name!r}{closest(name, self._rows)}")
        return found

    def rows(self, names: Sequence[str]) -> Ints:
        """Those of the nodes that are there."""
        return np.array([self._rows[name] for name in names if name in self._rows], np.int64)

    def known(self, row: int) -> str | None:
        """What the dataset calls the class of a node."""
        label = int(self.data.y[row])
        return None if label == UNKNOWN else self.data.class_names[label]

    # --- more nodes ---

    def appended(self, batches: Sequence[Sequence[NewNode]]) -> Network:
        """The network with more nodes behind its own, in the batches in which they came.

        Where that can be, only they are embedded. After many batches, which only a start has to go through, all nodes
        are embedded together.
        """
        if not batches:
            return self
        stored = self._can_append()
        if stored is None or len(batches) > MAX_BATCHES:
            every = [node for nodes in batches for node in nodes]
            return Network(self.model, appended(self.data, self.reader, every), self.trained, self.first)
        network = self
        for nodes in batches:
            data = appended(network.data, network.reader, nodes)
            stored, z = stored.with_rows(data, network.n)
            network = Network(self.model, data, self.trained, self.first, np.concatenate([network.z, z]))
            network._stored = stored
        return network

    def _can_append(self) -> Stored | None:
        """What rows of new nodes are made from, if their rows can be made alone. For the first of them it is made."""
        method = self.model.method_
        plain = isinstance(method, GPNPlus) and self.model.features is None and method.room.folder is None
        if not plain or not can_be_updated(method.mixture_):
            return None
        with self._making:
            if self._stored is None:
                empty = lambda shape: memory.scratch(cache_directory("services"), shape)  # noqa: E731
                self._stored = Stored(StoredViews.of(method.mixture_, self.data.graph, empty))
            return self._stored

    # --- classes ---

    def question(self, given: Given) -> Question:
        """Classes, prepared for the nodes of this network."""
        if self.space is None:
            return self.model.question(self.data, given)
        return Question(self.model.method, self.data, given, self.space)

    def _can_describe(self) -> bool:
        """Whether the method reads descriptions and the network has words."""
        if self.space is None or not self.space.reads_descriptions:
            return False
        try:
            opaque(self.data, "x")
        except FewnodeError:
            return False
        return True

    def _definition(self, name: str, nodes: tuple[str, ...], description: str) -> Given:
        """What the network makes of the description of a class."""
        return Given.of(self.data, {name: Class(self.rows(nodes).tolist(), text=description)})

    @cached_property
    def idf(self) -> NDArray[np.float32]:
        return inverse_document_frequency(self.data.graph.x)

    def near_duplicates(self, rows: Ints, count: int | None) -> Ints:
        """The group of each row by the place of its first row; with `count`, of so many groups."""
        return grouped(self.z[rows], count)

    # --- the map, and what is near ---

    @property
    def picture(self) -> Picture:
        """Where the nodes of the dataset lie."""
        first = self.first
        with first._making:
            if first._picture is None:
                first._picture = by_axes(first.z)
            return first._picture

    def lay_out(self) -> None:
        """Let nodes lie near those that they are most like; takes up to a minute, and is kept for the next start."""
        if self.embeds:
            self.first._picture = kept_layout(self.first.model, self.first.data, self.first.z)

    @property
    def xy(self) -> Floats:
        """The place of every node; one that came later lies beside those that it is most like, and moves no other."""
        picture = self.picture
        if self._xy is None or self._xy[0] is not picture:
            late = picture.beside(self.z[self.first.n :])
            self._xy = picture, np.concatenate([picture.xy, late]) if len(late) else picture.xy
        return self._xy[1]

    def position(self, row: int) -> tuple[float, float] | None:
        return (round(float(self.xy[row, 0]), 4), round(float(self.xy[row, 1]), 4)) if self.embeds else None

    def typical(self, count: int, share: float) -> list[tuple[str, int]]:
        """Classes of the data whose nodes are most alike, each with its most typical node."""
        data, sizes, found = self.data, self.data.class_sizes, []
        among = data.split.test if self.trained and data.split.test else range(len(data.class_names))
        for c in (c for c in among if self.embeds and sizes[c] >= max(2, share * sizes.sum())):
            members = data.members(c)
            own = self.z[members] / np.maximum(np.linalg.norm(self.z[members], axis=1, keepdims=True), 1e-12)
            like = own @ own.mean(axis=0)
            found.append((float(like.mean()), c, int(members[int(like.argmax())])))
        chosen = sorted(found, reverse=True)[:count]
        return [(data.class_names[c], row) for _, c, row in chosen] if len(chosen) == count else []

    def nearest(self, row: int, among: Ints, count: int) -> tuple[Ints, NDArray[np.float64]]:
        """The nodes that are most like one, and how like: the cosine of their embeddings."""
        length = np.linalg.norm(self.z, axis=1)
        like = self.z @ self.z[row] / np.maximum(length * length[row], 1e-12)
        others = among[among != row]
        found = others[np.argsort(-like[others], kind="stable")[:count]]
        return found, like[found].astype(np.float64)
