"""DeepWalk and node2vec (section 5.1): random walks, skip-gram, logistic regression on the support set.

Both see the structure alone. DeepWalk (Perozzi et al., 2014) is node2vec (Grover & Leskovec, 2016) with p = q = 1.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fewnode.checkpoint import need_shapes
from fewnode.engine.lanes import compiled
from fewnode.episodes import EpisodeSampler, Task
from fewnode.errors import FewnodeError
from fewnode.evaluation import Probabilities
from fewnode.graph import Graph
from fewnode.methods.skipgram import STEP, Nodes, Vectors, below, cores, each, skip_gram, word

MAX_BIAS = 1000.0
"""q and 1/q may be at most this: a step of a walk takes up to max(q, 1/q) trials."""


class Walks:
    """Vectors of nodes that walks visit together, and logistic regression on the vectors of the support.

    Transductive by nature: a vector belongs to a node of one network. `fit` embeds the network it is given, without
    any label. Another network is embedded, at the same cost, when it is first asked about; its vectors have nothing
    to do with the first one's.

    p, q: return and in-out parameter of node2vec. walks, length: how many walks begin at each node, and how many
    nodes each has. window, negatives, epochs, lr: of skip-gram. c: inverse strength of the regression's L2 penalty.
    workers: threads, all cores if None; their number does not change a bit of the result.
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
        workers: int | None = None,
        seed: int = 0,
    ) -> None:
        self.p, self.q, self.dimensions = p, q, dimensions
        self.walks, self.length = walks, length
        self.window, self.negatives, self.epochs, self.lr = window, negatives, epochs, lr
        self.c, self.workers, self.seed = c, workers, seed

    def fit(self, graph: Graph, train: EpisodeSampler, valid: EpisodeSampler) -> Walks:
        """Embed the graph; no episode is looked at."""
        self.embedding_, self.graph_ = self.embed(graph), structure_hash(graph)
        self._seen = (graph, self.embedding_)
        return self

    def embedding(self, graph: Graph) -> Vectors:
        """The vectors of the graph's nodes: those of `fit` if the structure is the same, else computed once."""
        seen = self._seen
        if seen is None or seen[0] is not graph:
            same = len(self.embedding_) == graph.n and np.array_equal(self.graph_, structure_hash(graph))
            self._seen = seen = (graph, self.embedding_ if same else self.embed(graph))
        return seen[1]

    def embed(self, graph: Graph) -> Vectors:
        """Walks over the graph, then skip-gram over the walks."""
        self._check()
        workers = self.workers or cores()
        walks = random_walks(graph, self.p, self.q, self.walks, self.length, self.seed, workers)
        return skip_gram(
            walks, graph.n, self.dimensions, self.window, self.negatives, self.epochs, self.lr, self.seed, workers
        )

    def _check(self) -> None:
        for name in ("dimensions", "walks", "length", "window", "negatives", "epochs"):
            if getattr(self, name) < 1:
                raise FewnodeError(f"{name} is {getattr(self, name)}, expected at least 1")
        for name in ("p", "q", "lr", "c"):
            if not 0 < getattr(self, name) < math.inf:
                raise FewnodeError(f"{name} is {getattr(self, name)}, expected a number above 0")
        if not 1 / MAX_BIAS <= self.q <= MAX_BIAS:
            raise FewnodeError(f"q is {self.q}, expected {1 / MAX_BIAS:g} to {MAX_BIAS:g}")
        if self.workers is not None and self.workers < 1:
            raise FewnodeError(f"workers is {self.workers}, expected at least 1")

    def predict_proba(self, graph: Graph, task: Task) -> Probabilities:
        """Multinomial logistic regression; classes count alike, however many support nodes each has."""
        from sklearn.linear_model import LogisticRegression  # costs a second to import, and only this method needs it

        if task.n_way == 1 or task.query.size == 0:
            return np.ones((task.query.size, task.n_way), np.float32)
        z = self.embedding(graph)
        # newton-cg, for lbfgs stops three digits short of the optimum, and threads of BLAS wait for each other in it
        model = LogisticRegression(C=self.c, class_weight="balanced", solver="newton-cg", tol=1e-6, max_iter=1000)
        model.fit(z[task.support].astype(np.float64), task.support_y)
        return model.predict_proba(z[task.query].astype(np.float64)).astype(np.float32)  # type: ignore[no-any-return]

    def state(self) -> dict[str, Tensor]:
        """The vectors, and which network they belong to."""
        return {"embedding": torch.from_numpy(self.embedding_), "graph": torch.from_numpy(self.graph_)}

    def restore(self, n_features: int, state: Mapping[str, Tensor]) -> Walks:
        """Become the method that gave `state`. Attributes do not matter to it, hence not how many there are."""
        self._check()
        need_shapes(state, {"embedding": (len(state["embedding"]), self.dimensions), "graph": (32,)})
        self.embedding_, self.graph_ = state["embedding"].numpy(), state["graph"].numpy()
        self._seen = None
        return self


def structure_hash(graph: Graph) -> NDArray[np.uint8]:
    """SHA-256 of the adjacency matrix, 32 bytes."""
    digest = hashlib.sha256(graph.adj.indptr.data)
    digest.update(graph.adj.indices.data)
    return np.frombuffer(digest.digest(), np.uint8).copy()


def random_walks(graph: Graph, p: float, q: float, walks: int, length: int, seed: int, workers: int = 1) -> Nodes:
    """`walks` walks from every node, each a row of `length` nodes. A walk that finds no way on ends in -1.

    Walks follow edges from source to target. Each has its own stream of random words, so threads change nothing. Nodes
    begin in a new random order in each pass over the graph, as DeepWalk has it.
    """
    forward = graph.adj.T.tocsr()  # row v: where v's edges lead
    forward.sort_indices()
    rng = np.random.default_rng((seed, 0))
    start = np.concatenate([rng.permutation(graph.n).astype(np.int32) for _ in range(walks)])
    counter = rng.integers(1 << 63, size=start.size, dtype=np.uint64)
    rows = np.full((start.size, length), -1, np.int32)
    pieces = [slice(a, b) for a, b in pairwise(np.linspace(0, start.size, 8 * workers + 1).astype(int))]

    def walk_piece(i: int) -> None:
        own = pieces[i]
        _walk(forward.indptr, forward.indices, start[own], counter[own], float(p), float(q), rows[own])

    with ThreadPoolExecutor(workers) as pool:
        each(walk_piece, len(pieces), pool)
    return rows


@compiled
def _walk(
    indptr: Nodes, indices: Nodes, start: Nodes, counter: NDArray[np.uint64], p: float, q: float, rows: Nodes
) -> None:
    for row in range(start.size):
        stream, before, v = counter[row], -1, int(start[row])
        rows[row, 0] = v
        for i in range(1, rows.shape[1]):
            if indptr[v] == indptr[v + 1]:
                break
            if before < 0 or p == q == 1:
                stream += STEP
                after = int(indices[indptr[v] + below(word(stream), indptr[v + 1] - indptr[v])])
            else:
                after, stream = _biased_step(indptr, indices, before, v, 1 / p, 1 / q, stream)
            rows[row, i] = after
            before, v = v, after


@compiled
def _biased_step(
    indptr: Nodes, indices: Nodes, before: int, v: int, back: float, far: float, stream: np.uint64
) -> tuple[int, np.uint64]:
    """A neighbour x of v with probability ∝ 1/p if x is the node before, 1 if an edge leads from there to x, else 1/q.

    By rejection, hence exact. The way back has a share of its own, so that no p, however small or large, costs trials.
    """
    first, last = indptr[v], indptr[v + 1]
    home = _find(indices, first, last, before)
    others = last - first - (home >= 0)
    share = back if home >= 0 else 0.0
    top = max(1.0, far)
    while True:
        stream += STEP
        place = np.float64(word(stream) >> np.uint64(11)) * 2.0**-53 * (share + others * top) - share
        if place < 0:
            return before, stream
        place /= top
        k = min(int(place), others - 1)
        x = indices[first + k + (0 <= home <= first + k)]
        height = (place - k) * top  # uniform in 0 … top, independent of k
        if height < min(1.0, far):
            return int(x), stream
        near = _find(indices, indptr[before], indptr[before + 1], x) >= 0
        if near == (far < 1):  # the heavier of the two kinds reaches up to the top
            return int(x), stream


@compiled
def _find(indices: Nodes, first: int, last: int, node: int) -> int:
    """Where `node` is among the sorted indices[first:last], or -1."""
    end = last
    while first < last:
        middle = (first + last) // 2
        if indices[middle] < node:
            first = middle + 1
        else:
            last = middle
    return first if first < end and indices[first] == node else -1
