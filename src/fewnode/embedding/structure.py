"""The place of a node in the structure: leading directions of whom it is near."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from fewnode.embedding.directions import leading_rows
from fewnode.embedding.random_walks import random_walks
from fewnode.embedding.tiles import ROWS, Space, TiledMatrix, in_memory, row_ranges
from fewnode.graph import Graph

WALKED = 100_000
"""Nodes up to which walks are counted: they leave some 300 entries a node."""
ENTRIES = 20_000_000
"""Pairs of nodes that second steps may join at most."""


def structure(graph: Graph, rank: int, seed: int, thorough: bool = False, space: Space = in_memory) -> TiledMatrix:
    """Coordinates of nodes by whom they are near: leading directions of positive pointwise mutual information.

    max(0, log p(i, j) - log p(i) p(j)), where p(i, j) is how often i and j are near each other: what walk embeddings
    factorise too (Levy & Goldberg, 2014; Qiu et al., 2018). They mean something in this one network only. `thorough`
    counts over walks of forty steps, as walk embeddings do, and takes longer; else near is one or two steps.
    """
    if thorough and graph.n <= WALKED:
        near = walked(graph, seed)
        row, column = (np.asarray(near.sum(axis=axis), np.float64) for axis in (1, 0))
        ppmi = _informative([near], row, column, near.nnz)
        return leading_rows(ppmi, rank, seed, symmetric=True, space=space)
    return leading_rows(two_step_information(graph), rank, seed, space=space)


def two_step_information(graph: Graph, entries: int = ENTRIES) -> sp.csr_array:
    """PPMI of (P + P P) / 2, P the random walk: of two steps, never all at once.

    The second step leaves only from nodes of few neighbours if else it had too many entries: a hub leads to so many
    nodes that being two steps apart over it says little, and costs the square of its degree.
    """
    second = _second_steps(graph, entries)
    linked = (graph.degree > 0).astype(np.float64)
    column = np.zeros(graph.n)
    for _, _, walk in _walk_blocks(graph):
        column += np.bincount(walk.indices, weights=walk.data, minlength=graph.n)
    column = (column + second.T @ column) / 2
    leaves = np.diff(second.indptr) > 0
    row = np.concatenate([(linked[low:high] + walk @ leaves) / 2 for low, high, walk in _walk_blocks(graph)])
    both = ((second + sp.eye_array(graph.n, dtype=np.float32, format="csr")) * np.float32(0.5)).tocsr()
    near = (walk @ both for _, _, walk in _walk_blocks(graph))
    steps = np.bincount(graph.adj.indices, minlength=graph.n) @ np.diff(second.indptr).astype(np.int64)
    return _informative(near, row, column, int(graph.adj.nnz + steps))


def _walk_blocks(graph: Graph) -> Iterator[tuple[int, int, sp.csr_array]]:
    """Rows of D^-1 A, some at a time, as parts of the arrays of A: a slice by SciPy may copy all indices each time.

    A product of SciPy visits every column once a block, so there are at most 256 blocks where there are many nodes.
    """
    strength, adj = np.where(graph.degree > 0, graph.strength, 1), graph.adj
    for low, high in row_ranges(graph.n, max(ROWS, graph.n >> 8)):
        start, end = int(adj.indptr[low]), int(adj.indptr[high])
        share = np.repeat(1 / strength[low:high], graph.degree[low:high]) * adj.data[start:end]
        indptr = (adj.indptr[low : high + 1] - start).astype(adj.indices.dtype)
        yield low, high, sp.csr_array((share.astype(np.float32), adj.indices[start:end], indptr), (high - low, graph.n))


def _second_steps(graph: Graph, entries: int) -> sp.csr_array:
    """D^-1 A in the rows that a second step may leave from, those of the fewest neighbours, and no other."""
    degree = graph.degree
    cost = np.bincount(graph.adj.indices, minlength=graph.n) * degree
    order = np.argsort(degree, kind="stable")
    affordable = np.zeros(graph.n, bool)
    affordable[order[np.cumsum(cost[order]) <= entries]] = True
    blocks = []
    for low, high, walk in _walk_blocks(graph):
        kept = np.repeat(affordable[low:high], degree[low:high])
        count = np.where(affordable[low:high], degree[low:high], 0)
        starts = np.concatenate([[0], np.cumsum(count)]).astype(walk.indptr.dtype)
        blocks.append(sp.csr_array((walk.data[kept], walk.indices[kept], starts), walk.shape))
    return sp.vstack(blocks, format="csr") if blocks else sp.csr_array(graph.adj.shape, dtype=np.float32)


def _informative(
    blocks: Iterator[sp.csr_array] | list[sp.csr_array],
    row: NDArray[np.float64],
    column: NDArray[np.float64],
    most: int,
) -> sp.csr_array:
    """Positive pointwise mutual information of blocks of rows; row and column are the sums of the whole matrix.

    There are at most so many entries in it.
    """
    shape = row.size, column.size
    total, log_column, low, end = row.sum(), np.log(np.maximum(column, 1e-30)).astype(np.float32), 0, 0
    index = np.int32 if max(most, *shape) < 2**31 else np.int64
    indices, values = np.empty(most, index), np.empty(most, np.float32)  # what is not filled takes no memory
    starts = np.zeros(shape[0] + 1, np.int64)
    for near in blocks:
        high = low + near.shape[0]
        log_row = np.log(np.maximum(row[low:high], 1e-30) / max(total, 1e-30)).astype(np.float32)
        with np.errstate(divide="ignore"):
            found = np.log(near.data) - np.repeat(log_row, np.diff(near.indptr)) - log_column[near.indices]
        positive = found > 0
        upto = np.concatenate([[0], np.cumsum(positive)])
        count = int(upto[-1])
        indices[end : end + count] = near.indices[positive]
        values[end : end + count] = found[positive]
        starts[low + 1 : high + 1] = end + upto[near.indptr[1:]]
        low, end = high, end + count
    return sp.csr_array((values[:end], indices[:end], starts.astype(index)), shape)


def walked(graph: Graph, seed: int, walks: int = 5, length: int = 40, window: int = 10) -> sp.csr_array:
    """How often two nodes are within `window` steps of each other in random walks, the nearer the more."""
    path = random_walks(graph, 1.0, 1.0, walks, length, seed)
    near = sp.csr_array((graph.n, graph.n), dtype=np.float32)
    for gap in range(1, window + 1):
        first, second = path[:, :-gap].ravel(), path[:, gap:].ravel()
        met = (first >= 0) & (second >= 0) & (first != second)
        share = np.full(np.count_nonzero(met), (window - gap + 1) / window, np.float32)
        near = near + sp.coo_array((share, (first[met], second[met])), near.shape).tocsr()
    return (near + near.T).tocsr()
