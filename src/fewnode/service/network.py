"""The network that is served: a dataset, its embedding and the map. It only ever grows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fewnode._system import memory
from fewnode._system.files import cache_directory
from fewnode._system.kept import Kept
from fewnode.class_labels import UNKNOWN
from fewnode.dataset import Dataset
from fewnode.embedding.attributes import inverse_document_frequency
from fewnode.embedding.new_rows import StoredViews, can_be_extended
from fewnode.errors import FewnodeError, closest
from fewnode.graph import Ints
from fewnode.method import Embeds
from fewnode.methods.plus import GPNPlus
from fewnode.model.estimator import Estimator
from fewnode.model.model_files import keep, recall
from fewnode.recognition.classes import Given
from fewnode.recognition.description import opaque
from fewnode.recognition.question import Question
from fewnode.recognition.space import Space
from fewnode.service.bodies import NewNode
from fewnode.service.map import Picture, by_axes, kept_layout
from fewnode.service.new_nodes import NodeReader
from fewnode.vectors import Floats, unit_rows

MAX_BATCHES = 50
"""Batches of new nodes that a start appends one after the other, as they came."""


class NotFound(FewnodeError):
    """What the address names is not there."""


class Network:
    """A model and a dataset, every node embedded. With more nodes there is another one; rows of the others stay."""

    def __init__(
        self,
        model: Estimator,
        data: Dataset,
        trained: bool = True,
        first: Network | None = None,
        stored: tuple[StoredViews, Floats] | None = None,
    ) -> None:
        """`first` is the network of the dataset alone; `stored`: what rows are made from, and z of the last nodes."""
        self.model, self.data, self.trained, self.first = model, data, trained, first or self
        self.embeds = isinstance(model.method_, Embeds)
        self.space: Space | None = None
        self._stored: StoredViews | None = None
        if stored is not None and self.first.space is not None:
            self._stored, z = stored
            before = self.first.space
            self.space = replace(before, embedding=replace(before.embedding, z=z), kept=Kept())
        elif self.embeds:
            if not (model.has_space(data.graph) or recall(model, data)):
                keep(model, data)
            self.space = model.space(data.graph)
        self._picture = by_axes(self.z) if self.embeds and first is None else None

    @property
    def n(self) -> int:
        return self.data.graph.n

    @property
    def n_attached(self) -> int:
        return self.n - self.first.n

    @property
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

    def row(self, name: str, otherwise: type[FewnodeError] = FewnodeError) -> int:
        found = self._rows.get(self.form(name))
        if found is None:
            raise otherwise(f"unknown node {name!r}{closest(name, self._rows)}")
        return found

    def rows(self, names: Iterable[str]) -> Ints:
        """The rows of the nodes that are there."""
        return np.array([self._rows[name] for name in names if name in self._rows], np.int64)

    def known(self, row: int) -> str | None:
        """What the dataset calls the class of a node."""
        return None if (label := int(self.data.y[row])) == UNKNOWN else self.data.class_names[label]

    # --- more nodes ---

    @cached_property
    def reader(self) -> NodeReader:
        return NodeReader(self.data)

    def appended(self, batches: Sequence[Sequence[NewNode]]) -> Network:
        """The network with more nodes behind its own, in the batches in which they came.

        Where that can be, only they are embedded. After many batches, which only a start has to go through, all nodes
        are embedded together.
        """
        if not batches:
            return self
        network, stored = self, self._stores()
        if stored is None or len(batches) > MAX_BATCHES:
            every = [node for nodes in batches for node in nodes]
            return Network(self.model, self.reader.appended(every), self.trained, self.first)
        for nodes in batches:
            data = network.reader.appended(nodes)
            stored, z = stored.extended(data.graph, network.n)
            z = np.concatenate([network.z, z])
            network = Network(self.model, data, self.trained, self.first, (stored, z))
        return network

    def _stores(self) -> StoredViews | None:
        """What rows of new nodes are made from, if their rows can be made alone. For the first of them it is made."""
        method = self.model.method_
        plain = isinstance(method, GPNPlus) and self.model.features is None and method.room.folder is None
        if self._stored is None and plain and can_be_extended(method.mixture_):
            room = cache_directory("services")
            self._stored = StoredViews.of(method.mixture_, self.data.graph, lambda shape: memory.scratch(room, shape))
        return self._stored

    # --- classes ---

    @property
    def open_set(self) -> bool:
        """Whether it can be told that a node is in none of the classes."""
        return self.space is not None and self.space.head.membership is not None

    @cached_property
    def describes(self) -> bool:
        """Whether the method reads descriptions and the network has words."""
        if self.space is not None and self.space.reads_descriptions:
            with suppress(FewnodeError):
                opaque(self.data, "x")
                return True
        return False

    def question(self, given: Given) -> Question:
        """Classes, prepared for the nodes of this network."""
        if self.space is None:
            return self.model.question(self.data, given)
        return Question(self.model.method, self.data, given, self.space)

    @cached_property
    def idf(self) -> NDArray[np.float32]:
        return inverse_document_frequency(self.data.graph.x)

    def typical(self, count: int, share: float) -> list[tuple[str, int]]:
        """Classes of the data whose nodes are most alike, each with its most typical node."""
        data, sizes, found = self.data, self.data.class_sizes, []
        among = data.split.test if self.trained and data.split.test else range(len(data.class_names))
        for c in (c for c in among if self.embeds and sizes[c] >= max(2, share * sizes.sum())):
            members = data.members(c)
            own = unit_rows(self.z[members])
            like = own @ own.mean(axis=0)
            found.append((float(like.mean()), data.class_names[c], int(members[int(like.argmax())])))
        chosen = sorted(found, reverse=True)[:count]
        return [(name, row) for _, name, row in chosen] if len(chosen) == count else []

    # --- the map, and what is near ---

    @property
    def picture(self) -> Picture | None:
        """Where the nodes of the dataset lie; None without an embedding."""
        return self.first._picture

    def lay_out(self) -> None:
        """Let nodes lie near those that they are most like; takes up to a minute, and is kept for the next start."""
        if self.embeds:
            self.first._picture = kept_layout(self.first.model, self.first.data, self.first.z)

    @property
    def xy(self) -> Floats:
        """The place of every node; one that came later lies beside those that it is most like, and moves no other."""
        z, space, picture = self.z, self.space, self.picture
        assert space is not None, "z is there"  # noqa: S101 # nosec B101
        assert picture is not None, "as z is"  # noqa: S101 # nosec B101
        made: Floats = space.kept(
            ("xy", picture.how), lambda: np.concatenate([picture.xy, picture.beside(z[self.first.n :])])
        )
        return made

    def position(self, row: int) -> tuple[float, float] | None:
        if self.picture is None:
            return None
        x, y = self.xy[row].tolist()
        return round(x, 4), round(y, 4)

    def nearest(self, row: int, among: Ints, count: int) -> tuple[Ints, NDArray[np.float64]]:
        """The nodes that are most like one, and how like: the cosine of their embeddings."""
        length = np.linalg.norm(self.z, axis=1)
        like = self.z @ self.z[row] / np.maximum(length * length[row], 1e-12)
        others = among[among != row]
        found = others[np.argsort(-like[others], kind="stable")[:count]]
        return found, like[found].astype(np.float64)
