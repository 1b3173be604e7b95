"""Skip-gram with negative sampling (Mikolov et al., 2013) over sequences of nodes: all cores, the same bits.

Threads that race for vectors (Hogwild) give other bits each run. Here nodes are dealt at random into P parts, and the
pairs (centre, context) of a chunk of walks into P x P blocks, by the parts of the two. Blocks that share no row and
no column of that grid share no vector, so P of them are trained at once without a race (GraphVite; Zhu et al., 2019).
A block takes its negatives from its own part of the contexts. Parts are dealt anew for every chunk, so each node is a
negative as often as its frequency says. A block is sequential: the number of threads changes nothing.

Within a block the pairs of one centre come together, in groups that take one step: a context that is there three times
is worked out once. Where there are many pairs, seven of them share their negatives (as in Ji et al., 2016): then this
is five times as fast, and each pair's expected step is still that of negatives of its own. The vectors of a part lie
side by side: scattered over all of them, they would need more pages than a core can keep the addresses of.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from fewnode.engine.episode import power
from fewnode.engine.lanes import compiled, exchange_32, prefetch
from fewnode.engine.loops import STEP, word
from fewnode.errors import FewnodeError
from fewnode.graph import Ints

MAX_PARTS, PART_NODES = 8, 512
"""No more parts than this, and none with fewer nodes on average; the vectors of 512 nodes take 256 kB."""
CHUNK_PAIRS, GROUP = 1 << 24, 20
"""Pairs of a chunk (4 bytes each), about, and pairs of a centre that take one step, at most.

With few and large steps vectors diverge: with 32 pairs that all shared their negatives they did."""
UNHURRIED, HURRIED, MANY_PAIRS = (4, 1), (32, 7), 1 << 27
"""Tokens of a chunk for each node of the network, and pairs that share their negatives; and what counts as many.

Hurried vectors are about half a point of accuracy worse (research/notes/methods.md), so few pairs do without.
"""
FINENESS = 4
"""Places of a table of negatives for each node."""
COPIED, AHEAD = 16, 6
"""Nodes that are copied at once (arrays have as much room behind their end), and visits that are asked for ahead."""
COLUMNS, AT_ONCE = 32, 4
"""Columns that `exchange_32` works on, and products that are computed side by side."""

Item = TypeVar("Item")
Result = TypeVar("Result")
Nodes = NDArray[np.int32]
Parts = NDArray[np.uint8]
Vectors = NDArray[np.float32]
Weights = NDArray[np.floating[Any]]


def each(task: Callable[[int], object], count: int, pool: ThreadPoolExecutor) -> None:
    """task(0) … task(count - 1), side by side, until all are done."""
    for _ in pool.map(task, range(count)):
        pass


def one_ahead(task: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """task(item) of one item after the other, each by a thread of its own while the one before it is used."""
    with ThreadPoolExecutor(1) as thread:
        coming = None
        for item in items:
            done, coming = coming, thread.submit(task, item)
            if done:
                yield done.result()
        if coming:
            yield coming.result()


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


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
    z = np.zeros((n, -(-dimensions // COLUMNS) * COLUMNS), np.float32)  # columns of zeros stay zeros
    z[:, :dimensions] = (rng.random((n, dimensions), np.float32) - np.float32(0.5)) / np.float32(dimensions)
    out = np.zeros_like(z)
    pairs = walks.size * (window + 1) * epochs
    tokens, shared = HURRIED if pairs > MANY_PAIRS else UNHURRIED
    count = max(walks.size // max(1, tokens * n), walks.size * (window + 1) // CHUNK_PAIRS, 1)
    chunks = [chunk for chunk in np.array_split(walks, count) if chunk.size] * epochs
    weight = sum((np.bincount(chunk[chunk >= 0], minlength=n) for chunk in chunks), np.zeros(n)) ** 0.75
    place, parts = np.arange(n), parts_for(n)

    def ready(chunk: Nodes) -> tuple[Ints, Grid]:
        part = rng.integers(parts, size=n, dtype=np.uint8)
        reach = rng.integers(1, window, chunk.shape, dtype=np.int32, endpoint=True)
        order = np.argsort(part, kind="stable")
        position = np.full(n + 1, -1, np.int32)  # the last one is for the filling of walks
        position[order] = np.arange(n)
        return order, deal(position[chunk], reach, part[order], parts, rng, pool)

    with ThreadPoolExecutor(workers) as pool:
        for c, (order, grid) in enumerate(one_ahead(ready, chunks)):
            rate = np.float32(lr * (1 - (c + 0.5) / len(chunks)))
            z, out = pool.map(partial(np.take, indices=place[order], axis=0), (z, out))
            place[order] = np.arange(n)
            grid.train(z, out, weight[order], negatives, shared, rate, pool)
    z = z[place, :dimensions]
    if not np.isfinite(z).all():
        raise FewnodeError(f"the node vectors diverged; try a smaller learning rate than {lr}")
    return z


def parts_for(n: int) -> int:
    """A power of two, and a function of n alone: what depends on the machine must not change the bits."""
    return min(MAX_PARTS, 1 << max(0, (n // PART_NODES).bit_length() - 1))


def noise_table(weight: Weights, offset: float) -> Nodes:
    """Places of weights, each as often as its weight says: of its share in the table, rounded up or down.

    Which of the two is a matter of the offset, between 0 and 1: over random offsets each share is exact (systematic
    sampling). A negative is then a single place drawn from the table.
    """
    total = np.cumsum(weight, dtype=np.float64)
    size = FINENESS * weight.size
    edge = np.floor(total / max(total[-1], 1e-300) * size + offset) if size else total
    return np.repeat(np.arange(weight.size, dtype=np.int32), np.diff(edge, prepend=0).astype(np.int64))


@dataclass(frozen=True, eq=False)
class Grid:
    """The pairs of a chunk: the contexts of centre u in part j are those from start[u, j] to stop[u, j].

    Part i has the nodes parts[i]. A context is counted from the first node of its part. Negatives are drawn by
    counter[i, j] from a table with offset[j].
    """

    parts: list[slice]
    start: Ints
    stop: Ints
    context: Nodes
    counter: NDArray[np.uint64]
    offset: NDArray[np.float64]

    def train(
        self,
        z: Vectors,
        out: Vectors,
        weight: Weights,
        negatives: int,
        shared: int,
        lr: np.float32,
        pool: ThreadPoolExecutor,
    ) -> None:
        """Every block once: P rounds of P blocks, one in each row and in each column."""
        size = len(self.parts)
        noise = [noise_table(weight[own], offset) for own, offset in zip(self.parts, self.offset, strict=True)]

        def train_block(shift: int, i: int) -> None:
            j = (i + shift) % size
            own, other = self.parts[i], self.parts[j]
            pairs = self.start[own, j], self.stop[own, j], self.context
            train_pairs(z[own], out[other], *pairs, noise[j], negatives, shared, lr, self.counter[i, j])

        for shift in range(size):
            each(partial(train_block, shift), size, pool)


def deal(
    walks: Nodes, reach: Nodes, part: Parts, parts: int, rng: np.random.Generator, pool: ThreadPoolExecutor
) -> Grid:
    """Every pair (centre, context) of the walks to its centre and its block. Parts are in order, a power of two."""
    there, at = walks >= 0, np.arange(walks.shape[1], dtype=np.int32)
    bounds = _edges(np.bincount(part, minlength=parts))
    seen = _edges(np.bincount(walks[there], minlength=part.size))
    visits = np.empty(seen[-1], np.int64)
    _sort(walks.ravel(), seen[:-1].copy(), visits)
    before = np.minimum(reach, at)
    after = np.minimum(reach, there.sum(axis=1, dtype=np.int32)[:, None] - 1 - at)
    first = _edges(np.bincount(walks[there], (before + after)[there], part.size).astype(np.int64))
    name = np.append((np.arange(part.size) - bounds[part]) * parts + part, -1).astype(np.int32)
    nodes = np.append(name[walks], np.zeros(COPIED, np.int32))
    context = np.empty(first[-1], np.int32)
    stop = np.empty((part.size, parts), np.int64)
    each(
        lambda i: _deal(nodes, before.ravel(), after.ravel(), visits, seen, bounds, i, first, stop, context),
        parts,
        pool,
    )
    start = np.column_stack([first[:-1], stop[:, :-1]])
    counter, offset = rng.integers(1 << 63, size=(parts, parts), dtype=np.uint64), rng.random(parts)
    return Grid([slice(a, b) for a, b in pairwise(bounds)], start, stop, context, counter, offset)


def _edges(counts: Ints) -> Ints:
    return np.concatenate([[0], np.cumsum(counts)])


# --- kernels ------------------------------------------------------------------------------------------------------


@compiled
def _sort(nodes: Nodes, cursor: Ints, visits: Ints) -> None:
    """Where each node is, node by node, from where `cursor` says; -1 is no node."""
    for i in range(nodes.size):
        if nodes[i] >= 0:
            visits[cursor[nodes[i]]] = i
            cursor[nodes[i]] += 1


@compiled
def _deal(
    nodes: Nodes,
    before: Nodes,
    after: Nodes,
    visits: Ints,
    seen: Ints,
    bounds: Ints,
    own: int,
    first: Ints,
    stop: Ints,
    context: Nodes,
) -> None:
    """The contexts of each centre of a part, from first[u] on, by their parts: as they come, then counted and dealt.

    A centre's own are few enough to stay near; its walks lie everywhere, and are read once.
    """
    parts, most = bounds.size - 1, 0
    for u in range(bounds[own], bounds[own + 1]):
        most = max(most, first[u + 1] - first[u])
    met, cursor = np.empty(most + COPIED, np.int32), np.empty(parts + 1, np.int64)
    last, bits = np.uint64(parts - 1), 0
    while 1 << bits < parts:
        bits += 1
    for u in range(bounds[own], bounds[own + 1]):
        count = 0
        for visit in range(seen[u], seen[u + 1]):
            i, soon = visits[visit], visits[min(visit + AHEAD, visits.size - 1)]
            prefetch(nodes, soon)
            prefetch(before, soon)
            prefetch(after, soon)
            _copy(nodes, i - before[i], before[i], met, count)
            count += before[i]
            _copy(nodes, i + 1, after[i], met, count)
            count += after[i]
        cursor[:] = 0
        for k in range(count):
            cursor[(np.uint64(met[k]) & last) + np.uint64(1)] += 1
        cursor[0] = first[u]
        for k in range(parts):
            cursor[k + 1] += cursor[k]
            stop[u, k] = cursor[k + 1]
        for k in range(count):
            at = np.uint64(met[k]) & last
            context[np.uint64(cursor[at])] = met[k] >> bits
            cursor[at] += 1


@compiled
def _copy(source: Nodes, start: int, size: int, target: Nodes, at: int) -> None:
    """source[start : start + size] to target[at :], and what follows, for it costs less than to stop in time."""
    for k in range(0, size, COPIED):
        for i in range(COPIED):
            target[np.uint64(at + k + i)] = source[np.uint64(start + k + i)]


@compiled
def train_pairs(
    z: Vectors,
    out: Vectors,
    start: Ints,
    stop: Ints,
    context: Nodes,
    noise: Nodes,
    negatives: int,
    shared: int,
    lr: np.float32,
    counter: np.uint64,
) -> None:
    """A step of SGD for each group of a centre's pairs, start[u] to stop[u] of the contexts.

    The loss of a group is the sum over its contexts v of -log σ(z_u · o_v) - c Σ log σ(-z_u · o_w), where the negatives
    w are those of the whole group without v itself; c is such that they count as `negatives` to each pair.
    """
    most = _padded(GROUP + negatives * -(-GROUP // shared))
    target, step = np.zeros(most, np.int32), np.zeros(most, np.float32)
    times = np.zeros(most + 1, np.float32)  # behind a zero, for what is not there
    mark, base = np.full(out.shape[0], -1, np.int64), 0
    one = np.float32(1)
    for u in range(start.size):
        for first in range(start[u], stop[u], GROUP):
            pairs, distinct = min(GROUP, stop[u] - first), 0
            for k in range(GROUP):
                times[k + 1] = 0
            for i in range(first, first + pairs):  # without branches, for they could not be foretold
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
            for k in range(_padded(size)):
                step[k] = (np.float32(k < distinct) - one / (one + power(-step[k]))) * lr * times[k + 1]
            for column in range(0, z.shape[1], COLUMNS):
                exchange_32(0, size, target, step, z, out, u, column)


@compiled
def _padded(size: int) -> int:
    """The next multiple of 32: loops of that length need no slow end."""
    return (size + 31) // 32 * 32


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
