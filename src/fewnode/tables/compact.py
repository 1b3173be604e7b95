"""A graph of more edges than would fit into memory twice: they are read a piece at a time, in memory or mapped."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp

from fewnode.engine import loops
from fewnode.graph import Graph, Ints, checked_edges, no_attributes

PIECE = 1 << 22
"""Edges that are put into their rows at a time."""


def compact_graph(edge_index: Ints, n: int, *, directed: bool = False) -> Graph:
    """What `Graph.from_edges` makes of edges, without a list of arcs beside it."""
    checked_edges(edge_index[:, :1], n)

    def arcs() -> Iterator[tuple[Ints, Ints]]:
        for low in range(0, edge_index.shape[1], PIECE):
            source, target = np.array(edge_index[:, low : low + PIECE], np.int64)
            yield source, target
            if not directed:
                yield target, source

    count = np.zeros(n, np.int64)
    for source, target in arcs():
        checked_edges(np.stack([source, target]), n)
        loops.count_arcs(source, target, count)
    starts = np.concatenate([[0], np.cumsum(count)])
    indices, places = np.empty(int(starts[-1]), np.int32), starts[:-1].copy()
    for source, target in arcs():
        loops.place_arcs(source, target, places, 0, indices)
    indptr = loops.sort_rows(starts, indices)
    indices = indices[: int(indptr[-1])]
    starts = indptr.astype(np.int32) if indptr[-1] < 2**31 else indptr
    adj = sp.csr_array((np.broadcast_to(np.float32(1), indices.shape), indices, starts), (n, n))
    return Graph(adj, no_attributes(n))
