"""z of the nodes of a graph, made once and remembered, and how crowded it is among them."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from fewnode.graph import Graph, Ints
from fewnode.recognition.membership import crowding, landmarks
from fewnode.represent.tiles import rows_of

ASKED_FOR_ALL = 0.5
"""Where this share of the nodes is asked about, how crowded it is around each is computed for all, and remembered."""


class EmbeddedNodes(ABC):
    """Whatever gives a vector z and an importance for each node. What is made of z is remembered with it."""

    kept = False
    """Whether `embedding` takes so long that it is worth a file."""
    of_all: tuple[EmbeddedNodes, Graph] | None = None
    """What stands for the nodes of a network as a whole, where this has some of them, or newer rows."""
    _cache: tuple[Graph, Tensor, Tensor] | None = None
    _landmarks: tuple[Tensor, Tensor] | None = None
    _crowding: tuple[Tensor, Tensor] | None = None
    _surveyed: tuple[Tensor, Tensor] | None = None

    @abstractmethod
    def _embed(self, graph: Graph) -> tuple[Float[Tensor, "n d"], Float[Tensor, " n"]]:
        """z and importance of all nodes."""

    def embedding(self, graph: Graph) -> tuple[Float[Tensor, "n d"], Float[Tensor, " n"]]:
        """`_embed`, computed once for a graph: every task after the first is a gather and a small product."""
        if self._cache is None or self._cache[0] is not graph:
            with torch.inference_mode():
                self._cache = (graph, *self._embed(graph))
        return self._cache[1:]

    def remembers(self, graph: Graph) -> bool:
        return self._cache is not None and self._cache[0] is graph

    def remember(self, graph: Graph, z: Float[Tensor, "n d"], importance: Float[Tensor, " n"]) -> None:
        """Take what `embedding` gave for this graph before, perhaps in another process, for what it gives now."""
        self._cache = (graph, z, importance)

    def crowd(self, graph: Graph, query: Ints) -> Float[Tensor, " q"] | None:
        """How close nodes lie around each query; None where z of all nodes is not at hand."""
        if not self.kept:
            return None
        z = self.embedding(graph)[0]
        known = self._crowding is not None and self._crowding[0] is z
        with torch.inference_mode():
            if not known and query.size >= ASKED_FOR_ALL * graph.n:
                self._crowding, known = (z, crowding(z, self.landmarks(z))), True
            if known and self._crowding is not None:
                return self._crowding[1][torch.from_numpy(query)]
            return crowding(self.rows(graph, query), self.landmarks(z))

    def all_rows(self, graph: Graph) -> Float[Tensor, "n d"]:
        """z of the nodes that a node is compared with to tell how usual it is."""
        return self.embedding(graph)[0] if self.of_all is None else self.of_all[0].all_rows(self.of_all[1])

    def landmarks(self, z: Float[Tensor, "n d"]) -> Float[Tensor, "k d"]:
        """Of all nodes' z; drawn once."""
        if self.of_all is not None:
            return self.of_all[0].landmarks(self.all_rows(self.of_all[1]))
        if self._landmarks is None or self._landmarks[0] is not z:
            self._landmarks = (z, landmarks(z))
        return self._landmarks[1]

    def crowd_of_survey(self, graph: Graph, some: Ints) -> Float[Tensor, " q"] | None:
        """`crowd` of the nodes that are surveyed, which are always the same; computed once for a graph."""
        if not self.kept:
            return None
        z = self.embedding(graph)[0]
        if self._surveyed is None or self._surveyed[0] is not z:
            crowd = self.crowd(graph, some)
            self._surveyed = None if crowd is None else (z, crowd)
        return None if self._surveyed is None else self._surveyed[1]

    def rows(self, graph: Graph, nodes: Ints) -> Float[Tensor, "k d"]:
        """z of those nodes: all that recognising needs of a graph."""
        z, _ = self.embedding(graph)
        if nodes.size == graph.n and np.array_equal(nodes, np.arange(graph.n)):
            return z
        return rows_of(z, nodes)

    def valued_rows(self, graph: Graph, nodes: Ints) -> tuple[Float[Tensor, "k d"], Float[Tensor, " k"]]:
        """z and importance of those nodes."""
        z, importance = self.embedding(graph)
        return rows_of(z, nodes), importance[torch.from_numpy(nodes).to(z.device)]
