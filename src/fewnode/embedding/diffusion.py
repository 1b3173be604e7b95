"""Diffusions over a graph: powers of a matrix, or personalised PageRank, of a few columns or of many.

`propagation` chooses one of them; `gpn-plus` mixes many, and those over one matrix share its powers.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple, TypeAlias, TypeVar

import numpy as np
import scipy.sparse as sp

from fewnode.embedding.tiles import tile_ranges
from fewnode.engine import loops
from fewnode.engine.rows import add_shares
from fewnode.engine.sparse import CSR, inverse_root, normalised
from fewnode.graph import Graph, Ints
from fewnode.vectors import Floats

Key = TypeVar("Key", bound=Hashable)
CLOSED, WALK = ("closed",), ("walk",)


class Diffusion(NamedTuple):
    """`steps` of h ← (1 - teleport) M h + teleport z from h = z: powers of M, or personalised PageRank.

    M is Â (`closed`), or `walk`, the random walk without self-loops: D^-1 A tells what the neighbours are, not the
    node. `over` may name others, one after the other in each step.
    """

    steps: int
    teleport: float = 0.0
    over: tuple[str, ...] = CLOSED

    @property
    def coefficients(self) -> list[float]:
        """What M^k z counts in it, for k from 0 to `steps`."""
        stay, back = 1 - self.teleport, self.teleport
        return [back * stay**k for k in range(self.steps)] + [stay**self.steps]

    def __call__(self, graph: Graph, z: Floats) -> Floats:
        matrices, out = operators(graph), np.empty_like(z)
        for low, high in tile_ranges(*z.shape):
            out[:, low:high] = diffused(matrices, np.ascontiguousarray(z[:, low:high]), {"": self})[""]
        return out


# --- matrices -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Operator:
    """A matrix M, as B^-1 N B with a diagonal B: powers of N are those of M between B and its inverse."""

    into: Callable[[Floats, Floats], None]
    """Writes N h, for h, into a second matrix."""
    before: Floats | None = None
    """The diagonal of B; None if it is all ones, as it is where a step goes over several matrices."""


Operators: TypeAlias = Mapping[str, Callable[[], Operator]]
"""By name; each is made when it is first asked for."""


def operators(graph: Graph) -> Operators:
    """`closed` is Â with self-loops, `walk` is D^-1 A without."""
    if graph.weighted:
        return sparse_operators({"closed": lambda: normalised(graph), "walk": lambda: random_walk(graph)})
    return {"closed": cache(lambda: _neighbour_sum(graph, True)), "walk": cache(lambda: _neighbour_sum(graph, False))}


def sparse_operators(matrices: Mapping[str, Callable[[], sp.csr_array]]) -> Operators:
    def made(make: Callable[[], sp.csr_array]) -> Callable[[], Operator]:
        return cache(lambda: Operator(CSR.of(make().astype(np.float32, copy=False)).multiply_into))

    return {name: made(make) for name, make in matrices.items()}


def _neighbour_sum(graph: Graph, closed: bool) -> Operator:
    """Â or D^-1 A of a graph without weights: sums of neighbours' rows. The matrix itself is never made.

    Â = D^-1/2 (A + I) D^-1/2 is B^-1 N B with B = D^-1/2 and N = D^-1 (A + I).
    """
    factor = (1 / np.maximum(graph.degree + closed, 1)).astype(np.float32)

    def into(h: Floats, out: Floats) -> None:
        loops.add_neighbours(graph.adj.indptr, graph.adj.indices, factor, closed, h, out)

    return Operator(into, inverse_root(graph.degree) if closed else None)


def random_walk(graph: Graph) -> sp.csr_array:
    """D^-1 A, by weights where A has some; the row of a node without neighbours is zero."""
    share = np.repeat(1 / np.where(graph.degree > 0, graph.strength, 1), graph.degree)
    if graph.weighted:
        share *= graph.adj.data
    return sp.csr_array((share, graph.adj.indices, graph.adj.indptr), graph.adj.shape)


# --- several at once --------------------------------------------------------------------------------------------------


def diffused(
    matrices: Operators, tile: Floats, wanted: Mapping[Key, Diffusion], rows: Ints | None = None
) -> dict[Key, Floats]:
    """Several diffusions of the same columns: of all rows, or of some.

    Those over the same matrix share its powers: h = Σ_k c_k M^k z, so that near and far cost no more than far alone.
    """
    found = {key: tile if rows is None else tile[rows] for key, diffusion in wanted.items() if not diffusion.steps}
    for over in dict.fromkeys(diffusion.over for diffusion in wanted.values() if diffusion.steps):
        group = {key: each for key, each in wanted.items() if each.steps and each.over == over}
        found |= _along([matrices[name]() for name in over], tile, group, rows)
    return {key: found[key] for key in wanted}


def _along(
    matrices: list[Operator], tile: Floats, wanted: Mapping[Key, Diffusion], rows: Ints | None
) -> dict[Key, Floats]:
    before = matrices[0].before
    shares = np.zeros((max(diffusion.steps for diffusion in wanted.values()) + 1, len(wanted)), np.float32)
    for place, diffusion in enumerate(wanted.values()):
        shares[: diffusion.steps + 1, place] = diffusion.coefficients
    h = tile if before is None else tile * before[:, None]
    room = (np.empty_like(tile), np.empty_like(tile))
    taken = tile if rows is None else np.empty((rows.size, tile.shape[1]), np.float32)
    sums = np.zeros((len(wanted), taken.size), np.float32)
    for k, share in enumerate(shares):
        for matrix in matrices if k else ():
            out = room[h is room[0]]
            matrix.into(h, out)
            h = out
        if share.any():
            part = h if rows is None else np.take(h, rows, axis=0, out=taken, mode="clip")
            add_shares(part.reshape(-1), share, sums)
    found = sums.reshape(len(wanted), -1, tile.shape[1])
    if before is not None:
        found /= before[slice(None) if rows is None else rows, None]
    return dict(zip(wanted, found, strict=True))
