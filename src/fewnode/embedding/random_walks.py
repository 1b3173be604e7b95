"""Random walks over a graph, biased as node2vec has it (Grover & Leskovec, 2016); plain ones are DeepWalk's."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewnode.engine.lanes import compiled, inlined
from fewnode.engine.loops import STEP, word
from fewnode.graph import Graph

Floats = NDArray[np.floating[Any]]
Nodes = NDArray[np.int32]


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
            else:
                after, stream = _biased_step(indptr, indices, ends, before, v, 1 / p, 1 / q, stream)
            rows[row, i] = after
            before, v = v, after


@compiled
def _biased_step(
    indptr: Nodes, indices: Nodes, ends: Floats | None, before: int, v: int, back: float, far: float, stream: np.uint64
) -> tuple[int, np.uint64]:
    """A neighbour x of v with probability ∝ 1/p if x is the node before, 1 if an edge leads from there to x, else 1/q.

    Each times the weight of the edge, if there are some. By rejection, hence exact. The way back has a share of its
    own, so that no p, however small or large, costs trials.
    """
    first, last = indptr[v], indptr[v + 1]
    home = _find(indices, first, last, before)
    low = 0.0 if home <= first else _sum_to(ends, first, home - 1)
    own = _sum_to(ends, first, home) - low if home >= 0 else 0.0
    total, top = _sum_to(ends, first, last - 1), max(1.0, far)
    while True:
        stream += STEP
        place = _share(stream) * (back * own + (total - own) * top) - back * own
        if place < 0 or (home >= 0 and last - first == 1):
            return before, stream
        place /= top
        if home >= 0 and place >= low:  # the way back has been asked about already
            place += own
        k = min(first + int(place), last - 1) if ends is None else _pick(ends, first, last, place)
        if k == home:  # by rounding
            continue
        start, end = 0.0 if k == first else _sum_to(ends, first, k - 1), _sum_to(ends, first, k)
        height = (place - start) / (end - start) * top  # uniform in 0 … top, independent of k
        if height < min(1.0, far):
            return int(indices[k]), stream
        near = _find(indices, indptr[before], indptr[before + 1], indices[k]) >= 0
        if near == (far < 1):  # the heavier of the two kinds reaches up to the top
            return int(indices[k]), stream


@inlined
def _sum_to(ends: Floats | None, first: int, k: int) -> float:
    """The sum of the weights in a row from its first entry up to entry k."""
    return float(k - first + 1) if ends is None else ends[k]


@compiled
def below(bits: np.uint64, n: int) -> int:
    """A number of 0 … n-1 from the upper 32 bits."""
    return int(((bits >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32))


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
