"""Random walks over a graph, biased as node2vec has it (Grover & Leskovec, 2016); plain ones are DeepWalk's."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewnode.engine.lanes import compiled
from fewnode.engine.loops import STEP, word
from fewnode.graph import Graph
from fewnode.represent.skipgram import Nodes, Vectors, below, skip_gram

Floats = NDArray[np.floating[Any]]


def walk_vectors(
    graph: Graph,
    p: float = 1.0,
    q: float = 1.0,
    *,
    dimensions: int = 128,
    walks: int = 10,
    length: int = 80,
    window: int = 10,
    negatives: int = 5,
    epochs: int = 1,
    lr: float = 0.025,
    seed: int = 0,
) -> Vectors:
    """Walks over the graph, then skip-gram over the walks; a vector for each node."""
    path = random_walks(graph, p, q, walks, length, seed)
    return skip_gram(path, graph.n, dimensions, window, negatives, epochs, lr, seed)


def random_walks(graph: Graph, p: float, q: float, walks: int, length: int, seed: int) -> Nodes:
    """`walks` walks from every node, each a row of `length` nodes. A walk that finds no way on ends in -1.

    Walks follow edges from source to target, in proportion to their weights. Nodes begin in a new random order in each
    pass over the graph, as DeepWalk has it.
    """
    forward = graph.adj.T.tocsr()  # row v: where v's edges lead
    forward.sort_indices()
    ends = _running_sums(forward.indptr, forward.data) if graph.weighted else None
    rng = np.random.default_rng((seed, 0))
    start = np.concatenate([rng.permutation(graph.n).astype(np.int32) for _ in range(walks)])
    counter = rng.integers(1 << 63, size=start.size, dtype=np.uint64)
    rows = np.full((start.size, length), -1, np.int32)
    _walk(forward.indptr, forward.indices, ends, start, counter, float(p), float(q), rows)
    return rows


@compiled
def _walk(
    indptr: Nodes,
    indices: Nodes,
    ends: Floats | None,
    start: Nodes,
    counter: NDArray[np.uint64],
    p: float,
    q: float,
    rows: Nodes,
) -> None:
    for row in range(start.size):
        stream, before, v = counter[row], -1, int(start[row])
        rows[row, 0] = v
        for i in range(1, rows.shape[1]):
            if indptr[v] == indptr[v + 1]:
                break
            if before < 0 or p == q == 1:
                stream += STEP
                if ends is None:
                    after = int(indices[indptr[v] + below(word(stream), indptr[v + 1] - indptr[v])])
                else:
                    after = int(
                        indices[_pick(ends, indptr[v], indptr[v + 1], _share(stream) * ends[indptr[v + 1] - 1])]
                    )
            elif ends is None:
                after, stream = _biased_step(indptr, indices, before, v, 1 / p, 1 / q, stream)
            else:
                after, stream = _biased_weighted_step(indptr, indices, ends, before, v, 1 / p, 1 / q, stream)
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
        place = _share(stream) * (share + others * top) - share
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
def _biased_weighted_step(
    indptr: Nodes, indices: Nodes, ends: Floats, before: int, v: int, back: float, far: float, stream: np.uint64
) -> tuple[int, np.uint64]:
    """As `_biased_step`, each probability times the weight of the edge."""
    first, last = indptr[v], indptr[v + 1]
    home = _find(indices, first, last, before)
    low = 0.0 if home <= first else ends[home - 1]
    own = ends[home] - low if home >= 0 else 0.0
    top = max(1.0, far)
    while True:
        stream += STEP
        place = _share(stream) * (back * own + (ends[last - 1] - own) * top) - back * own
        if place < 0 or (home >= 0 and last - first == 1):
            return before, stream
        place /= top
        if home >= 0 and place >= low:  # the way back has been asked about already
            place += own
        k = _pick(ends, first, last, place)
        if k == home:  # by rounding
            continue
        start = 0.0 if k == first else ends[k - 1]
        height = (place - start) / (ends[k] - start) * top
        if height < min(1.0, far):
            return int(indices[k]), stream
        near = _find(indices, indptr[before], indptr[before + 1], indices[k]) >= 0
        if near == (far < 1):
            return int(indices[k]), stream


@compiled
def _share(stream: np.uint64) -> float:
    """A random number from 0 to below 1."""
    return np.float64(word(stream) >> np.uint64(11)) * 2.0**-53


@compiled
def _running_sums(indptr: Nodes, weight: Floats) -> Floats:
    """Within each row, the sum of the weights up to each entry."""
    out = np.empty(weight.size, np.float64)
    for i in range(indptr.size - 1):
        total = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            total += weight[e]
            out[e] = total
    return out


@compiled
def _pick(ends: Floats, first: int, last: int, place: float) -> int:
    """The first entry of a row whose running sum is beyond `place`."""
    last -= 1  # what rounding puts at the end is the last one's
    while first < last:
        middle = (first + last) // 2
        if ends[middle] <= place:
            first = middle + 1
        else:
            last = middle
    return first


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
