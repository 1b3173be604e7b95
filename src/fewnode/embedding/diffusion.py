"""Diffusions over a graph: powers of a matrix, or personalised PageRank, of a few columns or of many.

`propagation` chooses one of them; `gpn-plus` mixes many, and those over one matrix share its powers.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from types import MappingProxyType
from typing import NamedTuple, Protocol, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from fewnode.embedding.tiles import tile_ranges
from fewnode.engine import loops
from fewnode.engine.rows import add_shares
from fewnode.engine.sparse import CSR, inverse_root, normalised
from fewnode.graph import Graph, Ints
from fewnode.vectors import Floats

Key = TypeVar("Key", bound=Hashable)


class Diffusion(NamedTuple):
    """`steps` of h ← (1 - teleport) M h + teleport z from h = z: powers of M, or personalised PageRank.

    M is Â, or with `walk` the random walk without self-loops: D^-1 A tells what the neighbours are, not the node.
    `over` names other matrices, one after the other in each step.
    """

    steps: int
    teleport: float = 0.0
    walk: bool = False
    over: tuple[str, ...] = ()

    @property
    def matrices(self) -> tuple[str, ...]:
        return self.over or (("walk",) if self.walk else ("closed",))

    @property
    def coefficients(self) -> list[float]:
        """What M^k z counts in it, for k from 0 to `steps`."""
        stay, back = 1 - self.teleport, self.teleport
        return [back * stay**k for k in range(self.steps)] + [stay**self.steps]

    def __call__(self, operators: Operators, z: Floats) -> Floats:
        out = np.empty_like(z)
        for low, high in tile_ranges(*z.shape):
            out[:, low:high] = diffused(operators, np.ascontiguousarray(z[:, low:high]), {"": self})[""]
        return out

    def __str__(self) -> str:
        kind = "walk" if self.walk else "pagerank" if self.teleport else "steps"
        return f"{kind} {self.steps}" + (f", back {self.teleport:g}" if self.teleport else "")


# --- matrices -------------------------------------------------------------------------------------------------------


class Operator(Protocol):
    """A matrix M, as B^-1 N B with a diagonal B: powers of N are those of M between B and its inverse."""

    before: NDArray[np.float32] | None
    """The diagonal of B; None if it is all ones."""

    def into(self, h: Floats, out: Floats) -> None:
        """out = N h."""


class SparseOperator:
    """Any sparse matrix."""

    before: NDArray[np.float32] | None = None

    def __init__(self, matrix: sp.csr_array) -> None:
        self.matrix = CSR.of(matrix.astype(np.float32, copy=False))

    def into(self, h: Floats, out: Floats) -> None:
        self.matrix.multiply_into(h, out)


class NeighbourSum:
    """Â or D^-1 A of a graph without weights: sums of neighbours' rows. The matrix itself is never made.

    Â = D^-1/2 (A + I) D^-1/2 is B^-1 N B with B = D^-1/2 and N = D^-1 (A + I).
    """

    def __init__(self, graph: Graph, closed: bool) -> None:
        self.adj, self.closed = graph.adj, closed
        count = graph.degree + closed
        self.factor = (1 / np.maximum(count, 1)).astype(np.float32)
        self.before = inverse_root(graph.degree) if closed else None

    def into(self, h: Floats, out: Floats) -> None:
        loops.add_neighbours(self.adj.indptr, self.adj.indices, self.factor, self.closed, h, out)


class Operators:
    """The matrices that attributes are diffused by, each made when it is first asked for.

    `closed` is Â with self-loops, `walk` is D^-1 A without. `more` are others, by name.
    """

    def __init__(self, graph: Graph, more: Mapping[str, Callable[[], sp.csr_array]] = MappingProxyType({})) -> None:
        self._graph, self._more = graph, more
        self._made: dict[str, Operator] = {}

    @classmethod
    def of(cls, graph: Graph) -> Operators:
        return cls(graph)

    def __getitem__(self, name: str) -> Operator:
        if name not in self._made:
            self._made[name] = self._make(name)
        return self._made[name]

    def _make(self, name: str) -> Operator:
        if name in self._more:
            return SparseOperator(self._more[name]())
        closed = {"closed": True, "walk": False}[name]
        if not self._graph.weighted:
            return NeighbourSum(self._graph, closed)
        return SparseOperator(normalised(self._graph) if closed else random_walk(self._graph))


def random_walk(graph: Graph) -> sp.csr_array:
    """D^-1 A, by weights where A has some; the row of a node without neighbours is zero."""
    share = np.repeat(1 / np.where(graph.degree > 0, graph.strength, 1), graph.degree)
    if graph.weighted:
        share *= graph.adj.data
    return sp.csr_array((share, graph.adj.indices, graph.adj.indptr), graph.adj.shape)


# --- several at once --------------------------------------------------------------------------------------------------


def diffused(
    operators: Operators, tile: Floats, wanted: Mapping[Key, Diffusion], rows: Ints | None = None
) -> dict[Key, Floats]:
    """Several diffusions of the same columns: of all rows, or of some.

    Those over the same matrix share its powers: h = Σ_k c_k M^k z, so that near and far cost no more than far alone.
    """
    found = {key: tile if rows is None else tile[rows] for key, diffusion in wanted.items() if not diffusion.steps}
    for matrices in dict.fromkeys(diffusion.matrices for key, diffusion in wanted.items() if key not in found):
        group = {
            key: diffusion for key, diffusion in wanted.items() if diffusion.matrices == matrices and diffusion.steps
        }
        found |= _along([operators[name] for name in matrices], tile, group, rows)
    return {key: found[key] for key in wanted}


def _along(
    matrices: list[Operator], tile: Floats, wanted: Mapping[Key, Diffusion], rows: Ints | None
) -> dict[Key, Floats]:
    before = matrices[0].before if len(matrices) == 1 else None
    shares = np.zeros((max(diffusion.steps for diffusion in wanted.values()) + 1, len(wanted)), np.float32)
    for place, diffusion in enumerate(wanted.values()):
        shares[: diffusion.steps + 1, place] = diffusion.coefficients
    h = tile if before is None else tile * before[:, None]
    room = (np.empty_like(tile), np.empty_like(tile))
    taken = tile if rows is None else np.empty((rows.size, tile.shape[1]), np.float32)
    sums = np.zeros((len(wanted), taken.size), np.float32)
    for k, share in enumerate(shares):
        for matrix in matrices if k else ():
            h = _product(matrix, h, room[h is room[0]], alone=len(matrices) == 1)
        if share.any():
            part = h if rows is None else np.take(h, rows, axis=0, out=taken, mode="clip")
            add_shares(part.reshape(-1), share, sums)
    found = sums.reshape(len(wanted), -1, tile.shape[1])
    if before is not None:
        found /= before[slice(None) if rows is None else rows, None]
    return dict(zip(wanted, found, strict=True))


def _product(matrix: Operator, h: Floats, out: Floats, alone: bool) -> Floats:
    """N h where powers of one matrix are taken, else M h."""
    if alone or matrix.before is None:
        matrix.into(h, out)
    else:
        matrix.into(h * matrix.before[:, None], out)
        out /= matrix.before[:, None]
    return out
