"""Skip-gram with negative sampling (Mikolov et al., 2013) over sequences of nodes: all cores, the same bits.

Threads that race for vectors (Hogwild) give other bits each run. Here nodes are dealt at random into P parts, and the
pairs (centre, context) of a chunk of walks into P x P blocks, by the parts of the two. Blocks that share no row and
no column of that grid share no vector, so P of them are trained at once without a race (GraphVite; Zhu et al., 2019).
A block takes its negatives from its own part of the contexts. Parts are dealt anew for every chunk, so each node is a
negative as often as its frequency says. A block is sequential: the number of threads changes nothing, and the vectors
of a block fit a core's cache, which makes this quicker than racing. The vectors of a part lie side by side: scattered
over all of them, they would need more pages than a core can keep the addresses of.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewnode.errors import FewnodeError
from fewnode.graph import Ints
from fewnode.kernels import compiled

MAX_PARTS, PART_NODES = 16, 512
"""No more parts than this, and none with fewer nodes on average; the vectors of 512 nodes take 256 kB."""
CHUNK_TOKENS, CHUNK_PAIRS = 4, 1 << 24
"""A chunk has this many tokens for each node of the network, and no more than about so many pairs (8 bytes each).

Within a chunk a node meets its contexts part by part. With 50 tokens a node that costs a point of accuracy, with 4
nothing that can be measured."""
STRIPS = 16
"""Pieces of a chunk that are dealt side by side."""

Nodes = NDArray[np.int32]
Parts = NDArray[np.uint8]
Vectors = NDArray[np.float32]
Weights = NDArray[np.floating[Any]]


def each(task: Callable[[int], object], count: int, pool: ThreadPoolExecutor) -> None:
    """task(0) … task(count - 1), side by side, until all are done."""
    for _ in pool.map(task, range(count)):
        pass


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


# --- random words inside kernels: SplitMix64 (Steele et al., 2014), a counter and a hash of it ---------------------

STEP = np.uint64(0x9E3779B97F4A7C15)


@compiled
def word(counter: np.uint64) -> np.uint64:
    """64 random bits; a stream is the words of counter, counter + STEP, counter + 2 STEP …"""
    bits = (counter ^ (counter >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


@compiled
def below(bits: np.uint64, n: int) -> int:
    """A number of 0 … n-1 from the upper 32 bits."""
    return int(((bits >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32))


# --- training -----------------------------------------------------------------------------------------------------


def skip_gram(
    walks: Nodes,
    n: int,
    dimensions: int = 128,
    window: int = 10,
    negatives: int = 5,
    epochs: int = 1,
    lr: float = 0.025,
    seed: int = 0,
    workers: int = 1,
) -> Vectors:
    """Vectors of n nodes, so that z_u · o_v is large where v is near u in a walk.

    Each row of `walks` is a sequence of nodes, filled up with -1. As in word2vec, contexts are the nodes within a reach
    drawn from 1 … window, negatives follow frequency^0.75, and the learning rate falls linearly to 0.
    """
    rng = np.random.default_rng((seed, 1))
    z = (rng.random((n, dimensions), np.float32) - np.float32(0.5)) / np.float32(dimensions)
    out = np.zeros_like(z)
    count = max(walks.size // max(1, CHUNK_TOKENS * n), walks.size * (window + 1) // CHUNK_PAIRS, 1)
    chunks = [chunk for chunk in np.array_split(walks, count) if chunk.size] * epochs
    weight = sum((np.bincount(chunk[chunk >= 0], minlength=n) for chunk in chunks), np.zeros(n)) ** 0.75
    place = np.append(np.arange(n, dtype=np.int32), np.int32(-1))  # the last one is for the filling of walks
    spare = np.empty_like(z)
    with ThreadPoolExecutor(workers) as pool:
        for c, chunk in enumerate(chunks):
            rate = np.float32(lr * (1 - (c + 0.5) / len(chunks)))
            part = rng.integers(parts_for(n), size=n, dtype=np.uint8)
            reach = rng.integers(1, window, chunk.shape, dtype=np.int32, endpoint=True)
            order = np.argsort(part, kind="stable")
            z, spare = np.take(z, place[order], 0, spare, "clip"), z
            out, spare = np.take(out, place[order], 0, spare, "clip"), out
            place[order] = np.arange(n)
            part = part[order]
            grid = deal(place[chunk], reach, part, parts_for(n), pool)
            grid.train(z, out, Noise(part, weight[order], grid.parts), negatives, rate, rng, pool)
    z = z[place[:n]]
    if not np.isfinite(z).all():
        raise FewnodeError(f"the node vectors diverged; try a smaller learning rate than {lr}")
    return z


def parts_for(n: int) -> int:
    """A power of two, and a function of n alone: what depends on the machine must not change the bits."""
    return min(MAX_PARTS, 1 << max(0, (n // PART_NODES).bit_length() - 1))


class Noise:
    """Negatives of each part in proportion to their weight, by Walker's alias method: one word a draw, and exact."""

    def __init__(self, part: Parts, weight: Weights, parts: int) -> None:
        self.nodes = np.argsort(part, kind="stable").astype(np.int32)
        self.edges = _edges(np.bincount(part, minlength=parts))
        self.keep, self.alias = np.ones(part.size, np.float32), self.nodes.copy()
        for i in range(parts):
            _fill_alias_table(*self.table(i), weight)

    def table(self, part: int) -> tuple[Nodes, Vectors, Nodes]:
        """Place c of a table is node `nodes[c]` with probability `keep[c]`, else `alias[c]`."""
        own = slice(self.edges[part], self.edges[part + 1])
        return self.nodes[own], self.keep[own], self.alias[own]


@dataclass(frozen=True, eq=False)
class Grid:
    """The pairs of a chunk, block by block; block (i, j) has centres in part i and contexts in part j."""

    parts: int
    centre: Nodes
    context: Nodes
    edges: Ints

    def train(
        self,
        z: Vectors,
        out: Vectors,
        noise: Noise,
        negatives: int,
        lr: np.float32,
        rng: np.random.Generator,
        pool: ThreadPoolExecutor,
    ) -> None:
        """Every block once: P rounds of P blocks, one in each row and in each column."""
        counter = rng.integers(1 << 63, size=(self.parts, self.parts), dtype=np.uint64)
        train_pairs = pair_trainer(z.shape[1])

        def train_block(shift: int, i: int) -> None:
            j = (i + shift) % self.parts
            block = i * self.parts + j
            own = slice(self.edges[block], self.edges[block + 1])
            train_pairs(z, out, self.centre[own], self.context[own], *noise.table(j), negatives, lr, counter[i, j])

        for shift in range(self.parts):
            each(partial(train_block, shift), self.parts, pool)


def deal(walks: Nodes, reach: Nodes, part: Parts, parts: int, pool: ThreadPoolExecutor) -> Grid:
    """Every pair (centre, context) of the walks into its block: count, then write, strip by strip."""
    strips = [slice(a, b) for a, b in pairwise(np.linspace(0, len(walks), STRIPS + 1).astype(int))]
    cursor = np.zeros((STRIPS, parts * parts), np.int64)
    centre = context = np.empty(0, np.int32)

    def deal_strip(s: int) -> None:
        _deal(walks[strips[s]], reach[strips[s]], part, parts, cursor[s], centre, context)

    each(deal_strip, STRIPS, pool)
    edges = _edges(cursor.sum(axis=0))
    cursor = edges[:-1] + np.cumsum(cursor, axis=0) - cursor
    centre, context = np.empty(edges[-1], np.int32), np.empty(edges[-1], np.int32)
    each(deal_strip, STRIPS, pool)
    return Grid(parts, centre, context, edges)


def _edges(counts: Ints) -> Ints:
    return np.concatenate([[0], np.cumsum(counts)])


# --- kernels ------------------------------------------------------------------------------------------------------


@compiled
def _deal(walks: Nodes, reach: Nodes, part: Parts, parts: int, cursor: Ints, centre: Nodes, context: Nodes) -> None:
    """Write each pair where `cursor` of its block is, and move it on; only count where there is nothing to write to."""
    for w in range(walks.shape[0]):
        for i in range(walks.shape[1]):
            u = walks[w, i]
            if u < 0:
                break
            for j in range(max(0, i - reach[w, i]), min(walks.shape[1], i + reach[w, i] + 1)):
                v = walks[w, j]
                if v < 0:
                    break
                if i != j:
                    block = part[u] * parts + part[v]
                    if centre.size > 0:
                        centre[cursor[block]] = u
                        context[cursor[block]] = v
                    cursor[block] += 1


@compiled
def _fill_alias_table(nodes: Nodes, keep: Vectors, alias: Nodes, weight: Weights) -> None:
    """Walker's table (Vose's order): places lighter than the mean are topped up by heavier ones."""
    n = nodes.size
    share = weight[nodes] * (n / max(weight[nodes].sum(), 1e-300))
    light, heavy = np.flatnonzero(share < 1), np.flatnonzero(share >= 1)
    n_light, n_heavy = light.size, heavy.size
    stack = np.empty(n, np.int64)
    stack[:n_light] = light
    while n_light > 0 and n_heavy > 0:
        n_light -= 1
        a, b = stack[n_light], heavy[n_heavy - 1]
        keep[a], alias[a] = share[a], nodes[b]
        share[b] -= 1 - share[a]
        if share[b] < 1:
            n_heavy -= 1
            stack[n_light] = b
            n_light += 1


@cache
def pair_trainer(width: int) -> Callable[..., None]:
    """`train_pairs` for vectors of this width: loops of a length that the compiler knows are quicker."""

    @compiled
    def train_pairs(
        z: Vectors,
        out: Vectors,
        centre: Nodes,
        context: Nodes,
        nodes: Nodes,
        keep: Vectors,
        alias: Nodes,
        negatives: int,
        lr: np.float32,
        counter: np.uint64,
    ) -> None:
        """One step of SGD a pair, on -log σ(z_u · o_v) - Σ log σ(-z_u · o_w) over its negatives w.

        A negative that is v itself takes no step. All products come before all updates: their loads overlap then,
        which halves the time. Targets go two by two, so that z_u is read half as often; if their number is odd, v
        stands in for the last one.
        """
        z_u, moved = np.empty(width, np.float32), np.empty(width, np.float32)
        even = negatives + 1 + (negatives + 1) % 2
        target, g = np.empty(even, np.int32), np.empty(even, np.float32)
        for i in range(centre.size):
            u = centre[i]
            for d in range(width):
                z_u[d] = z[u, d]
                moved[d] = z[u, d]
            target[0] = target[even - 1] = context[i]
            for k in range(1, negatives + 1):
                counter += STEP
                bits = word(counter)
                place = below(bits, nodes.size)
                fraction = np.float32(bits & np.uint64(0xFFFFFF)) * np.float32(2.0**-24)
                target[k] = nodes[place] if fraction < keep[place] else alias[place]
            for k in range(0, even, 2):
                v, w = target[k], target[k + 1]
                with_v = with_w = np.float32(0)
                for d in range(width):
                    with_v += z_u[d] * out[v, d]
                    with_w += z_u[d] * out[w, d]
                g[k], g[k + 1] = with_v, with_w
            for k in range(even):
                g[k] = -lr / (np.float32(1) + np.float32(math.exp(-g[k])))
                if k > 0 and target[k] == target[0]:
                    g[k] = 0
            g[0] += lr
            for k in range(0, even, 2):
                v, w, g_v, g_w = target[k], target[k + 1], g[k], g[k + 1]
                if v == w:  # one after the other: the second step is from where the first led
                    for d in range(width):
                        before = out[v, d]
                        between = before + g_v * z_u[d]
                        moved[d] += g_v * before + g_w * between
                        out[v, d] = between + g_w * z_u[d]
                else:
                    o_v, o_w = out[v], out[w]
                    for d in range(width):
                        at_v, at_w = o_v[d], o_w[d]
                        moved[d] += g_v * at_v + g_w * at_w
                        o_v[d] = at_v + g_v * z_u[d]
                        o_w[d] = at_w + g_w * z_u[d]
            for d in range(width):
                z[u, d] = moved[d]

    return train_pairs  # type: ignore[no-any-return]
