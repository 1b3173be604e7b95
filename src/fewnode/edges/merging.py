"""Edges that are given several times become one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from fewnode.edges.scaling import Weights
from fewnode.graph import Ints


@dataclass(frozen=True, eq=False)
class EdgeRows:
    """Edges in the order they were found: 2 x E node numbers, source above target, and what is known of each."""

    edge_index: Ints
    weight: Weights | None = None
    kind: Ints | None = None
    """Places in `names`."""
    names: tuple[str, ...] = ()
    fade: Weights | None = None
    """The share of its weight that an edge of its age still has."""

    def __len__(self) -> int:
        return int(self.edge_index.shape[1])


class Merged(NamedTuple):
    """Distinct edges, ascending: their ends, what they amount to, and how much of it their age has left."""

    source: Ints
    target: Ints
    amount: Weights
    fade: Weights

    def kept(self, chosen: NDArray[np.bool_]) -> Merged:
        return Merged(self.source[chosen], self.target[chosen], self.amount[chosen], self.fade[chosen])

    def upward(self) -> Merged:
        """The same, each from the lower to the higher number."""
        source, target = np.minimum(self.source, self.target), np.maximum(self.source, self.target)
        return self._replace(source=source, target=target)

    def matrix(self, weight: Weights, n: int, directed: bool) -> sp.csr_array:
        """`weight` of each edge, both ways unless `directed`."""
        ends = [(self.target, self.source)] if directed else [(self.target, self.source), (self.source, self.target)]
        row, column = (np.concatenate(each) for each in zip(*ends, strict=True))
        values = np.tile(weight.astype(np.float32), len(ends))
        tiny = np.finfo(np.float32).tiny
        return sp.coo_array((np.maximum(values, tiny), (row, column)), shape=(n, n)).tocsr()


def merge(rows: EdgeRows, n: int, directed: bool, repeated: str | None) -> Merged:
    """Every edge once, without self-loops; unless `directed`, a - b and b - a are the same edge.

    Where every edge is there both ways, with one weight, that is how an undirected edge is written: it counts once.
    """
    proper = rows.edge_index[0] != rows.edge_index[1]
    source, target = rows.edge_index[:, proper].astype(np.int64)
    amount = np.ones(source.size) if rows.weight is None else rows.weight[proper]
    left = amount if rows.fade is None else amount * rows.fade[proper]
    arcs = Merged(source, target, amount, left)
    up = source < target
    if directed:
        arcs = _joined(arcs, n, repeated)
    elif 2 * np.count_nonzero(up) == up.size:
        arcs = _joined(arcs, n, repeated)
        arcs = arcs.kept(arcs.source < arcs.target) if _is_both_ways(arcs, n) else _joined(arcs.upward(), n, repeated)
    else:
        arcs = _joined(arcs.upward(), n, repeated)
    fade = np.divide(arcs.fade, arcs.amount, out=np.ones_like(arcs.amount), where=arcs.amount > 0)
    return arcs._replace(fade=fade)


def _joined(arcs: Merged, n: int, repeated: str | None) -> Merged:
    """Distinct arcs, ascending, with the sums or the largest of their amounts; what is left of those as `fade`."""
    order = _order(arcs.source, arcs.target, n)
    source, target = arcs.source[order], arcs.target[order]
    new = np.ones(source.size, bool)
    new[1:] = (source[1:] != source[:-1]) | (target[1:] != target[:-1])
    start = np.flatnonzero(new)
    if not start.size:
        return arcs
    join = np.maximum if repeated == "once" else np.add
    amounts = (join.reduceat(each[order], start) for each in (arcs.amount, arcs.fade))
    return Merged(source[start], target[start], *amounts)


def _order(row: Ints, column: Ints, n: int) -> Ints:
    """The places of entries by row and column. A matrix sorts them in a fraction of the time."""
    matrix = sp.coo_array((np.arange(row.size), (row, column)), shape=(n, n))
    matrix.has_canonical_format = True  # else equal entries would be added
    csr = matrix.tocsr()
    csr.has_sorted_indices = False
    csr.sort_indices()
    return np.asarray(csr.data)


def _is_both_ways(arcs: Merged, n: int) -> bool:
    order = _order(arcs.target, arcs.source, n)
    turned = Merged(arcs.target[order], arcs.source[order], arcs.amount[order], arcs.fade[order])
    return all(np.array_equal(one, other) for one, other in zip(arcs, turned, strict=True))
