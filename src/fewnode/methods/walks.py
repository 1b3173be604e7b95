"""DeepWalk and node2vec (section 5.1): random walks, skip-gram, logistic regression on the support set.

Both see the structure alone. DeepWalk (Perozzi et al., 2014) is node2vec (Grover & Leskovec, 2016) with p = q = 1.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewnode.episodes import EpisodeSampler, Task
from fewnode.errors import FewnodeError
from fewnode.formats.directory import need_shapes
from fewnode.graph import Graph, Ints
from fewnode.methods.linear import logistic_heads
from fewnode.methods.skipgram import Vectors, walk_vectors
from fewnode.vectors import Probabilities

MAX_BIAS = 1000.0
"""q and 1/q may be at most this: a step of a walk takes up to max(q, 1/q) trials."""


class Walks:
    """Vectors of nodes that walks visit together, and logistic regression on the vectors of the support.

    Transductive by nature: a vector belongs to a node of one network. `fit` embeds the network it is given, without
    any label. Another network is embedded, at the same cost, when it is first asked about; its vectors have nothing
    to do with the first one's.

    p, q: return and in-out parameter of node2vec. walks, length: how many walks begin at each node, and how many
    nodes each has. window, negatives, epochs, lr: of skip-gram. c: inverse strength of the regression's L2 penalty.
    """

    _seen: tuple[Graph, Vectors] | None = None

    def __init__(
        self,
        p: float = 1.0,
        q: float = 1.0,
        dimensions: int = 128,
        walks: int = 10,
        length: int = 80,
        window: int = 10,
        negatives: int = 5,
        epochs: int = 1,
        lr: float = 0.025,
        c: float = 1.0,
        seed: int = 0,
    ) -> None:
        self.p, self.q, self.dimensions = p, q, dimensions
        self.walks, self.length = walks, length
        self.window, self.negatives, self.epochs, self.lr = window, negatives, epochs, lr
        self.c, self.seed = c, seed

    def fit(self, graph: Graph, train: EpisodeSampler, valid: EpisodeSampler) -> Walks:
        """Embed the graph; no episode is looked at."""
        self.embedding_, self.graph_ = self.vectors(graph), structure_hash(graph)
        self._seen = (graph, self.embedding_)
        return self

    def embedding(self, graph: Graph) -> Vectors:
        """The vectors of the graph's nodes: those of `fit` if the structure is the same, else computed once."""
        seen = self._seen
        if seen is None or seen[0] is not graph:
            same = len(self.embedding_) == graph.n and np.array_equal(self.graph_, structure_hash(graph))
            self._seen = seen = (graph, self.embedding_ if same else self.vectors(graph))
        return seen[1]

    def rows_in(self, graph: Graph, task: Task, nodes: Ints) -> Vectors:
        return self.embedding(graph)[nodes]

    def vectors(self, graph: Graph) -> Vectors:
        """Walks over the graph, then skip-gram over the walks."""
        self._check()
        names = ("dimensions", "walks", "length", "window", "negatives", "epochs", "lr", "seed")
        return walk_vectors(graph, self.p, self.q, **{name: getattr(self, name) for name in names})

    def _check(self) -> None:
        for name in ("dimensions", "walks", "length", "window", "negatives", "epochs"):
            if getattr(self, name) < 1:
                raise FewnodeError(f"{name} is {getattr(self, name)}, expected at least 1")
        for name in ("p", "q", "lr", "c"):
            if not 0 < getattr(self, name) < math.inf:
                raise FewnodeError(f"{name} is {getattr(self, name)}, expected a number above 0")
        if not 1 / MAX_BIAS <= self.q <= MAX_BIAS:
            raise FewnodeError(f"q is {self.q}, expected {1 / MAX_BIAS:g} to {MAX_BIAS:g}")

    def predict_proba(self, graph: Graph, task: Task) -> Probabilities:
        return self.predict_tasks(graph, [task])[0]

    def predict_tasks(self, graph: Graph, tasks: Sequence[Task]) -> list[Probabilities]:
        return logistic_heads(self.embedding(graph), tasks, self.c)

    def state(self) -> dict[str, NDArray[Any]]:
        """The vectors, and which network they belong to."""
        return {"embedding": self.embedding_, "graph": self.graph_}

    def restore(self, n_features: int, state: Mapping[str, NDArray[Any]]) -> Walks:
        """Become the method that gave `state`. Attributes do not matter to it, hence not how many there are."""
        self._check()
        need_shapes(state, {"embedding": (len(state["embedding"]), self.dimensions), "graph": (32,)})
        self.embedding_, self.graph_ = np.asarray(state["embedding"]), np.asarray(state["graph"])
        self._seen = None
        return self


def structure_hash(graph: Graph) -> NDArray[np.uint8]:
    """SHA-256 of the adjacency matrix, with its weights if there are some; 32 bytes."""
    digest = hashlib.sha256(graph.adj.indptr.data)
    digest.update(graph.adj.indices.data)
    if graph.weighted:
        digest.update(np.ascontiguousarray(graph.adj.data).data)
    return np.frombuffer(digest.digest(), np.uint8).copy()
