"""z of the nodes of a graph, made once and remembered, and how crowded it is among them."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from fewnode.engine.sparse import as_tensor
from fewnode.graph import Graph, Ints
from fewnode.machine import memory
from fewnode.vectors import Embedding, crowding

ASKED_FOR_ALL = 0.5
"""Where this share of the nodes is asked about, how crowded it is around each is computed for all, and remembered."""


class EmbeddedNodes(ABC):
    """Whatever gives a vector z and an importance for each node. What is made of z is remembered with it."""

    kept = False
    """Whether `embed` takes so long that it is worth a file."""
    of_all: tuple[EmbeddedNodes, Graph] | None = None
    """What stands for the nodes of a network as a whole, where this has some of them, or newer rows."""
    _cache: tuple[Graph, Embedding, Tensor, Tensor] | None = None
    _crowding: tuple[Tensor, Tensor] | None = None

    @abstractmethod
    def embed(self, graph: Graph) -> Embedding:
        """z and importance of all nodes."""

    def embedded(self, graph: Graph) -> Embedding:
        """`embed`, computed once for a graph: every task after the first is a gather and a small product."""
        if self._cache is None or self._cache[0] is not graph:
            with torch.inference_mode():
                self.remember(graph, self.embed(graph))
        assert self._cache is not None, "it was remembered"  # noqa: S101 # nosec B101
        return self._cache[1]

    def embedding(self, graph: Graph) -> tuple[Float[Tensor, "n d"], Float[Tensor, " n"]]:
        """z and importance as tensors, always the same ones of a graph."""
        self.embedded(graph)
        assert self._cache is not None, "it was remembered"  # noqa: S101 # nosec B101
        return self._cache[2:]

    def remembers(self, graph: Graph) -> bool:
        return self._cache is not None and self._cache[0] is graph

    def remember(self, graph: Graph, embedding: Embedding) -> None:
        """Take what `embed` gave for this graph before, perhaps in another process, for what it gives now."""
        importance = torch.zeros(embedding.n) if embedding.importance is None else as_tensor(embedding.importance)
        self._cache = (graph, embedding, as_tensor(embedding.z), importance)

    def crowd(self, graph: Graph, query: Ints) -> Float[Tensor, " q"] | None:
        """How close nodes lie around each query; None where z of all nodes is not at hand."""
        if not self.kept:
            return None
        z, landmarks = self.embedding(graph)[0], self.embedded(graph).survey.landmarks
        known = self._crowding is not None and self._crowding[0] is z
        if not known and query.size >= ASKED_FOR_ALL * graph.n:
            self._crowding, known = (z, torch.from_numpy(crowding(z.numpy(), landmarks))), True
        if known and self._crowding is not None:
            return self._crowding[1][torch.from_numpy(query)]
        return torch.from_numpy(crowding(self.rows(graph, query).numpy(), landmarks))

    def all_rows(self, graph: Graph) -> Float[Tensor, "n d"]:
        """z of the nodes that a node is compared with to tell how usual it is."""
        return self.embedding(graph)[0] if self.of_all is None else self.of_all[0].all_rows(self.of_all[1])

    def rows(self, graph: Graph, nodes: Ints) -> Float[Tensor, "k d"]:
        """z of those nodes: all that recognising needs of a graph."""
        z, _ = self.embedding(graph)
        if nodes.size == graph.n and np.array_equal(nodes, np.arange(graph.n)):
            return z
        return as_tensor(memory.taken(z.numpy(), nodes))

    def valued_rows(self, graph: Graph, nodes: Ints) -> tuple[Float[Tensor, "k d"], Float[Tensor, " k"]]:
        """z and importance of those nodes."""
        z, importance = self.embedding(graph)
        return as_tensor(memory.taken(z.numpy(), nodes)), importance[torch.from_numpy(nodes)]
