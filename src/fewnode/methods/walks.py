"""DeepWalk and node2vec (section 5.1): random walks, skip-gram, logistic regression on the support set.

Both see the structure alone. DeepWalk (Perozzi et al., 2014) is node2vec (Grover & Leskovec, 2016) with p = q = 1.
Skip-gram with negative sampling (Mikolov et al., 2013) sorts the pairs (centre, context) of a chunk of walks by their
centres; those of one centre take a step together, in groups: a context that is there three times is worked out once.
Where there are many pairs, seven of them share their negatives (as in Ji et al., 2016): then this is five times as
fast, and each pair's expected step is still that of negatives of its own.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewnode._system.kept import Kept
from fewnode.embedding.random_walks import Nodes, below, random_walks
from fewnode.engine.episode import power
from fewnode.engine.lanes import compiled
from fewnode.engine.loops import STEP, word
from fewnode.episodes import Task, TaskSampler
from fewnode.errors import FewnodeError
from fewnode.formats.directory import need_shapes
from fewnode.graph import Graph, Ints
from fewnode.methods.linear import logistic_heads
from fewnode.vectors import Probabilities

MAX_BIAS = 1000.0
"""q and 1/q may be at most this: a step of a walk takes up to max(q, 1/q) trials."""
CHUNK_PAIRS, GROUP = 1 << 24, 20
"""Pairs of a chunk (4 bytes each), about, and pairs of a centre that take one step, at most.

With few and large steps vectors diverge: with 32 pairs that all shared their negatives they did."""
UNHURRIED, HURRIED, MANY_PAIRS = (4, 1), (32, 7), 1 << 27
"""Tokens of a chunk for each node of the network, and pairs that share their negatives; and what counts as many.

In haste vectors are about half a point of accuracy worse (docs/methods.md): with few pairs there is no need for it.
"""
FINENESS = 4
"""Places of the table of negatives for each node."""
AT_ONCE = 4
"""Products that are computed side by side."""

Vectors = NDArray[np.float32]
Weights = NDArray[np.floating[Any]]


@dataclass(eq=False)
class Walks:
    """Vectors of nodes that walks visit together, and logistic regression on the vectors of the support.

    Transductive by nature: a vector belongs to a node of one network. `fit` embeds the network it is given, without
    any label. Another network is embedded, at the same cost, when it is first asked about; its vectors have nothing
    to do with the first one's.

    p, q: return and in-out parameter of node2vec. walks, length: how many walks begin at each node, and how many
    nodes each has. window, negatives, epochs, lr: of skip-gram. c: inverse strength of the regression's L2 penalty.
    """

    p: float = 1.0
    q: float = 1.0
    dimensions: int = 128
    walks: int = 10
    length: int = 80
    window: int = 10
    negatives: int = 5
    epochs: int = 1
    lr: float = 0.025
    c: float = 1.0
    seed: int = 0
    _kept: Kept = field(default_factory=lambda: Kept(1), init=False, repr=False)

    def fit(self, graph: Graph, train: TaskSampler, valid: TaskSampler) -> Walks:
        """Embed the graph; no episode is looked at."""
        self.embedding_, self.graph_ = self.vectors(graph), structure_hash(graph)
        return self

    def embedding(self, graph: Graph) -> Vectors:
        """The vectors of the graph's nodes: those of `fit` if the structure is the same, else computed once."""
        structure = structure_hash(graph)
        if len(self.embedding_) == graph.n and np.array_equal(self.graph_, structure):
            return self.embedding_
        return self._kept(structure.tobytes(), lambda: self.vectors(graph))

    def rows_in(self, graph: Graph, task: Task, nodes: Ints) -> Vectors:
        return self.embedding(graph)[nodes]

    def vectors(self, graph: Graph) -> Vectors:
        """Walks over the graph, then skip-gram over the walks; a vector for each node."""
        self._check()
        return vectors_of_walks(random_walks(graph, self.p, self.q, self.walks, self.length, self.seed), graph.n, self)

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
        return self


def structure_hash(graph: Graph) -> NDArray[np.uint8]:
    """SHA-256 of the adjacency matrix, with its weights if there are some; 32 bytes."""
    digest = hashlib.sha256(graph.adj.indptr.data)
    digest.update(graph.adj.indices.data)
    if graph.weighted:
        digest.update(np.ascontiguousarray(graph.adj.data).data)
    return np.frombuffer(digest.digest(), np.uint8).copy()


# --- skip-gram ----------------------------------------------------------------------------------------------------


def vectors_of_walks(walks: Nodes, n: int, how: Walks) -> Vectors:
    """Vectors of n nodes, so that z_u · o_v is large where v is near u in a walk.

    Each row of `walks` is a sequence of nodes, filled up with -1. As in word2vec, contexts are the nodes within a reach
    drawn from 1 … window, negatives follow frequency^0.75, and the learning rate falls linearly to 0.
    """
    rng = np.random.default_rng((how.seed, 1))
    z = (rng.random((n, how.dimensions), np.float32) - np.float32(0.5)) / np.float32(how.dimensions)
    out = np.zeros_like(z)
    pairs = walks.size * (how.window + 1) * how.epochs
    tokens, shared = HURRIED if pairs > MANY_PAIRS else UNHURRIED
    count = max(walks.size // max(1, tokens * n), walks.size * (how.window + 1) // CHUNK_PAIRS, 1)
    chunks = [chunk for chunk in np.array_split(walks, count) if chunk.size] * how.epochs
    weight = sum((np.bincount(chunk[chunk >= 0], minlength=n) for chunk in chunks), np.zeros(n)) ** 0.75
    for c, chunk in enumerate(chunks):
        reach = rng.integers(1, how.window, chunk.shape, dtype=np.int32, endpoint=True)
        first, context = contexts(chunk, reach, n)
        noise, counter = noise_table(weight, rng.random()), rng.integers(1 << 63, dtype=np.uint64)
        rate = np.float32(how.lr * (1 - (c + 0.5) / len(chunks)))
        train_pairs(z, out, first, context, noise, how.negatives, shared, rate, counter)
    if not np.isfinite(z).all():
        raise FewnodeError(f"the node vectors diverged; try a smaller learning rate than {how.lr}")
    return z


def noise_table(weight: Weights, offset: float) -> Nodes:
    """Places of weights, each as often as its weight says: of its share in the table, rounded up or down.

    Which of the two is a matter of the offset, between 0 and 1: over random offsets each share is exact (systematic
    sampling). A negative is then a single place drawn from the table.
    """
    total = np.cumsum(weight, dtype=np.float64)
    size = FINENESS * weight.size
    edge = np.floor(total / max(total[-1], 1e-300) * size + offset) if size else total
    return np.repeat(np.arange(weight.size, dtype=np.int32), np.diff(edge, prepend=0).astype(np.int64))


def contexts(walks: Nodes, reach: Nodes, n: int) -> tuple[Ints, Nodes]:
    """The contexts of centre u are those from first[u] to first[u + 1]."""
    there, at = walks >= 0, np.arange(walks.shape[1], dtype=np.int32)
    before = np.minimum(reach, at)
    after = np.minimum(reach, there.sum(axis=1, dtype=np.int32)[:, None] - 1 - at)
    counts = np.bincount(walks[there], (before + after)[there], n).astype(np.int64)
    first = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    context = np.empty(first[-1], np.int32)
    _fill(walks, before, after, first[:-1].copy(), context)
    return first, context


@compiled
def _fill(walks: Nodes, before: Nodes, after: Nodes, cursor: Ints, context: Nodes) -> None:
    for row in range(walks.shape[0]):
        for i in range(walks.shape[1]):
            u = walks[row, i]
            if u >= 0:
                at = cursor[u]
                for k in range(i - before[row, i], i):
                    context[at] = walks[row, k]
                    at += 1
                for k in range(i + 1, i + after[row, i] + 1):
                    context[at] = walks[row, k]
                    at += 1
                cursor[u] = at


@compiled
def train_pairs(
    z: Vectors,
    out: Vectors,
    first: Ints,
    context: Nodes,
    noise: Nodes,
    negatives: int,
    shared: int,
    lr: np.float32,
    counter: np.uint64,
) -> None:
    """A step of SGD for each group of a centre's pairs, first[u] to first[u + 1] of the contexts.

    The loss of a group is the sum over its contexts v of -log σ(z_u · o_v) - c Σ log σ(-z_u · o_w), where the negatives
    w are those of the whole group without v itself; c is such that they count as `negatives` to each pair.
    """
    most = GROUP + negatives * -(-GROUP // shared) + AT_ONCE
    target, step = np.zeros(most, np.int32), np.zeros(most, np.float32)
    times = np.zeros(most + 1, np.float32)  # behind a zero, for what is not there
    mark, base = np.full(out.shape[0], -1, np.int64), 0
    moved, one = np.empty(z.shape[1], np.float32), np.float32(1)
    for u in range(z.shape[0]):
        for low in range(first[u], first[u + 1], GROUP):
            pairs, distinct = min(GROUP, first[u + 1] - low), 0
            for k in range(GROUP):
                times[k + 1] = 0
            for i in range(low, low + pairs):  # without branches, for they could not be foretold
                v = np.uint64(context[i])
                slot = mark[v] - base
                slot = distinct if slot < 0 else slot
                mark[v], target[slot] = base + slot, context[i]
                times[np.uint64(slot + 1)] += one
                distinct = max(distinct, slot + 1)
            size = distinct + negatives * -(-pairs // shared)
            share = np.float32(negatives / (size - distinct))
            for k in range(distinct, size):
                counter += STEP
                target[k] = noise[np.uint64(below(word(counter), noise.size))]
            for k in range(distinct, size):
                known = mark[np.uint64(target[k])] - base
                times[k + 1] = (np.float32(pairs) - times[np.uint64(max(known, -1) + 1)]) * share
            base += GROUP
            _products(z, u, out, target, size, step)
            for k in range(size):
                step[k] = (np.float32(k < distinct) - one / (one + power(-step[k]))) * lr * times[k + 1]
            moved[:] = 0
            for k in range(size):
                v, by = np.uint64(target[k]), step[k]
                for i in range(moved.size):
                    moved[i] += by * out[v, i]
                    out[v, i] += by * z[u, i]
            for i in range(moved.size):
                z[u, i] += moved[i]


@compiled
def _products(z: Vectors, u: int, out: Vectors, target: Nodes, size: int, product: Vectors) -> None:
    """z_u · o of each target. Four by four, so that z_u is read a quarter as often; beyond `size` there is room."""
    for k in range(0, size, AT_ONCE):
        a, b, c, d = np.uint64(target[k]), np.uint64(target[k + 1]), np.uint64(target[k + 2]), np.uint64(target[k + 3])
        with_a = with_b = with_c = with_d = np.float32(0)
        for i in range(z.shape[1]):
            at = z[u, i]
            with_a += at * out[a, i]
            with_b += at * out[b, i]
            with_c += at * out[c, i]
            with_d += at * out[d, i]
        product[k], product[k + 1], product[k + 2], product[k + 3] = with_a, with_b, with_c, with_d
