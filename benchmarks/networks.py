"""Networks of a known size, made by a generator: for time and memory, which labels and words do not change."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import scipy.sparse as sp

from fewnode.dataset import ClassSplit, Dataset
from fewnode.graph import Block, Graph


@dataclass(frozen=True)
class Size:
    """The counts of a network. `spread` is the standard deviation of log degrees; 0 non-zeros a row are all.

    `community` is how many nodes have most of their edges among themselves.
    """

    nodes: int
    edges: int
    attributes: int
    split: tuple[int, int, int]
    spread: float = 1.2
    non_zeros: int = 32
    community: int = 100


INSIDE = 0.9
"""The share of edges within communities: two hops then reach as many nodes as in the published Clothing."""
ALL_LABELLED = 1_500
"""A planted network of at most so many nodes has labels everywhere."""
SIZES = {
    "clothing": Size(24_919, 91_680, 9_034, (40, 17, 20)),
    "electronics": Size(42_318, 43_556, 8_669, (90, 37, 40)),
    "dblp": Size(40_672, 288_270, 7_202, (80, 27, 30)),
    "reddit": Size(232_965, 11_606_919, 602, (16, 10, 15), non_zeros=0, community=10_000),
    "tiny": Size(600, 1_800, 200, (6, 5, 5), non_zeros=8),
}
"""The paper's networks (Table 1). A spread of 1.2 gives Clothing's degrees: half below 4, mean 7, largest near 250."""


def network(size: Size, seed: int = 0) -> Dataset:
    rng = np.random.default_rng(seed)
    graph = Graph.from_edges(random_edges(size, rng), size.nodes, attributes(size, rng))
    bounds = np.cumsum([0, *size.split]).tolist()
    y = rng.permutation(np.arange(size.nodes) % bounds[-1])
    return Dataset(graph, y, ClassSplit(*(tuple(range(low, high)) for low, high in pairwise(bounds))))


def random_edges(size: Size, rng: np.random.Generator) -> np.ndarray:
    """So many distinct edges. Ends are drawn by log-normal weights, hence degrees with a heavy tail (Chung & Lu).

    Most edges stay within a community, so that neighbours have neighbours in common, as in real networks.
    """
    n, found = size.nodes, np.zeros(0, np.int64)
    total = np.concatenate([[0.0], np.cumsum(rng.lognormal(sigma=size.spread, size=n))])

    def draw(low: np.ndarray | int, high: np.ndarray | int, share: np.ndarray) -> np.ndarray:
        """A node from `low` to below `high`, by weight."""
        at = np.searchsorted(total, total[low] + share * (total[high] - total[low]), side="right") - 1
        return np.clip(at, low, np.asarray(high) - 1)

    while found.size < size.edges:
        count = int(1.1 * (size.edges - found.size)) + 100
        one = draw(0, n, rng.random(count))
        home = one // size.community * size.community
        inside = rng.random(count) < INSIDE
        low, high = np.where(inside, home, 0), np.where(inside, np.minimum(home + size.community, n), n)
        other = draw(low, high, rng.random(count))
        low, high = np.minimum(one, other), np.maximum(one, other)
        found = np.unique(np.concatenate([found, (low * n + high)[low < high]]))
    kept = rng.choice(found, size.edges, replace=False)
    name = rng.permutation(n)  # or a community would lie together in memory
    return np.stack([name[kept // n], name[kept % n]])


def attributes(size: Size, rng: np.random.Generator) -> np.ndarray | sp.csr_array:
    """Words, some far more common than others; or numbers in every column if there are no zeros."""
    if size.non_zeros == 0:
        return rng.standard_normal((size.nodes, size.attributes), np.float32)
    column = (size.attributes * rng.random(size.nodes * size.non_zeros) ** 3).astype(np.int64)
    row = np.repeat(np.arange(size.nodes), size.non_zeros)
    words = rng.permutation(size.attributes)[column]
    return sp.csr_array((np.ones(words.size, np.float32), (row, words)), (size.nodes, size.attributes))


def planted(nodes: int, edges: int, width: int, words: int = 0, seed: int = 0) -> Dataset:
    """A network whose classes show: three in five edges stay within a class, and attributes are drawn by class.

    These are dense vectors or, with `words`, so many words a node; a third of the nodes have labels, or all of few.
    """
    rng, classes = np.random.default_rng(seed), 40
    y = rng.permutation(np.arange(nodes) % classes)
    order, start = np.argsort(y, kind="stable"), np.searchsorted(np.sort(y), np.arange(classes + 1))
    one = rng.integers(0, nodes, edges)
    own = start[y[one]] + (rng.random(edges) * (start[y[one] + 1] - start[y[one]])).astype(np.int64)
    other = np.where(rng.random(edges) < 0.6, order[own], rng.integers(0, nodes, edges))
    if words:
        topic = rng.integers(0, width, (classes, 200))
        drawn = topic[y[:, None], rng.integers(0, 200, (nodes, words))]
        common = (width * rng.random((nodes, words)) ** 3).astype(np.int64)
        column = np.where(rng.random((nodes, words)) < 0.3, drawn, common).ravel()
        entries = np.ones(column.size, np.float32), (np.arange(nodes).repeat(words), column)
        x, blocks = sp.csr_array(entries, (nodes, width)), ()
    else:
        centre = rng.standard_normal((classes, width))
        x = (centre[y] + 3 * rng.standard_normal((nodes, width))).astype(np.float32)
        blocks = (Block("vector", 0, width, "x"),)
    graph = Graph.from_edges(np.stack([one, other]), nodes, x, blocks=blocks)
    split = ClassSplit(tuple(range(20)), tuple(range(20, 30)), tuple(range(30, 40)))
    return Dataset(graph, np.where(rng.random(nodes) < max(1 / 3, ALL_LABELLED / nodes), y, -1), split)
