"""Leading directions of attributes and of square matrices, by randomised subspace iteration (Halko et al., 2011)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from fewnode.engine import loops
from fewnode.engine.sparse import CSR
from fewnode.graph import Attributes, is_sparse
from fewnode.machine import memory
from fewnode.represent.attributes import inverse_document_frequency, scale
from fewnode.represent.tiles import IN_MEMORY, Room, TiledMatrix, row_ranges, tile_ranges
from fewnode.train import seeded

ROUNDS, EXTRA = 2, 16
"""Of the iteration, and columns beside those that are wanted."""
EXACT = 1024
"""Dense columns up to which all products of two columns are computed: that takes less than the iteration."""
HELD = 1 << 28
"""Bytes of scaled attributes that are kept from one round to the next; larger ones are scaled anew."""
NEGLIGIBLE = 1e-12
"""Of the largest variance: directions of less are rounding noise."""
Blocks = Callable[[], Iterator[Attributes]]


@dataclass(frozen=True, eq=False)
class Axes:
    """Attributes as coordinates: how they are scaled, and the directions they are read along."""

    scaling: str
    directions: NDArray[np.float32]
    idf: NDArray[np.float32] | None = None

    @classmethod
    def of(cls, x: Attributes, scaling: str, rank: int, seed: int, weight: NDArray[np.float32] | None = None) -> Axes:
        """`weight` of each attribute in place of its idf."""
        idf = weight if weight is not None or "idf" not in scaling else inverse_document_frequency(x)
        if x.shape[1] <= rank:
            return cls(scaling, np.eye(x.shape[1], dtype=np.float32), idf)
        return cls(scaling, _directions(_held(x, scaling, idf), x.shape[1], rank, seed, not is_sparse(x)), idf)

    def checked(self, n_features: int) -> Axes:
        """Refuse directions of another width than the attributes'."""
        if self.directions.ndim != 2 or self.directions.shape[0] != n_features:
            raise ValueError(f"directions are {self.directions.shape} for {n_features} attributes")
        return self

    def read(self, x: Attributes) -> Float[Tensor, "n d"]:
        found = np.empty((x.shape[0], self.directions.shape[1]), np.float32)
        for low, high in row_ranges(x.shape[0]):
            found[low:high] = _product(scale(x[low:high], self.scaling, self.idf), self.directions)
        return torch.from_numpy(found)


def _held(x: Attributes, scaling: str, idf: NDArray[np.float32] | None) -> Blocks:
    """Scaled rows, block by block; the blocks stay in memory if they are small."""

    def blocks() -> Iterator[Attributes]:
        return (scale(x[low:high], scaling, idf) for low, high in row_ranges(x.shape[0]))

    size = 8 * x.nnz if is_sparse(x) else x.nbytes
    if size > HELD:
        return blocks
    kept = list(blocks())
    return lambda: iter(kept)


def _directions(blocks: Blocks, d: int, rank: int, seed: int, dense: bool) -> NDArray[np.float32]:
    """The leading right singular vectors (d x rank) of the blocks of rows, one below the other."""
    if dense and d <= EXACT:
        total = np.zeros((d, d))
        for x in blocks():
            total += x.T @ x
        _, vectors = torch.linalg.eigh(torch.from_numpy(total))
        exact: NDArray[np.float32] = vectors[:, -rank:].flip(1).float().contiguous().numpy()
        return exact
    with seeded(seed):
        q = torch.randn(d, min(rank + EXTRA, d))
    for _ in range(ROUNDS):
        q = torch.linalg.qr(torch.from_numpy(_twice(blocks, q.numpy())))[0]
    gram = torch.zeros(q.shape[1], q.shape[1], dtype=torch.float64)
    for x in blocks():
        b = torch.from_numpy(_product(x, q.numpy()))
        gram += b.T @ b
    values, vectors = torch.linalg.eigh(gram)
    directions: NDArray[np.float32] = (q @ vectors[:, values.argsort(descending=True)[:rank]].float()).numpy()
    return directions


def _twice(blocks: Blocks, q: NDArray[np.float32]) -> NDArray[np.float32]:
    """Xᵀ X q, without a transposed X and without all of X q."""
    q = np.ascontiguousarray(q)
    ranges = tile_ranges(q.shape[0], q.shape[1])
    tiles, sums = ([np.ascontiguousarray(each[:, low:high]) for low, high in ranges] for each in (q, np.zeros_like(q)))
    for x in blocks():
        for tile, total in zip(tiles, sums, strict=True):
            product = _product(x, tile)
            if is_sparse(x):
                loops.add_transposed(*CSR.of(x).arrays, product, total)
            else:
                total += x.T @ product
    return np.concatenate(sums, axis=1)


def _product(x: Attributes, dense: NDArray[np.float32]) -> NDArray[np.float32]:
    if not is_sparse(x):
        return x @ dense
    out = np.empty((x.shape[0], dense.shape[1]), np.float32)
    CSR.of(x.astype(np.float32, copy=False)).multiply_into(np.ascontiguousarray(dense), out)
    return out


# --- of a square matrix ---------------------------------------------------------------------------------------------


def leading_rows(
    matrix: sp.csr_array,
    rank: int,
    seed: int,
    symmetric: bool = False,
    rounds: int = ROUNDS,
    room: Room = IN_MEMORY,
) -> TiledMatrix:
    """Rows of U S: the leading singular vectors and values of a square matrix (n x rank).

    Tile by tile: beside the matrix there are two numbers a node and column in memory. The transpose of a matrix that is
    not `symmetric` is never made.
    """
    m, n = CSR.of(matrix.astype(np.float32, copy=False)), matrix.shape[0]
    q = TiledMatrix.empty(n, min(rank + EXTRA, n), room)
    _fill_random(q, seed)
    for _ in range(rounds):
        for tile in q.tiles:
            _forth_and_back(m, tile, symmetric)
            memory.keep()
        _orthonormalise(q)
    for tile in q.tiles:
        before = tile.copy()
        m.multiply_into(before, tile)
    _, vectors = torch.linalg.eigh(_gram(q))
    by = vectors.flip(1)[:, :rank].float().contiguous()
    return TiledMatrix.made(n, by.shape[1], lambda low, high: q[low:high] @ by, room)


def _fill_random(q: TiledMatrix, seed: int) -> None:
    """A stream of its own for each column: how wide tiles are does not matter."""
    column = 0
    for tile in q.tiles:
        for c in range(tile.shape[1]):
            tile[:, c] = np.random.default_rng((seed, column)).standard_normal(q.n, np.float32)
            column += 1


def _forth_and_back(m: CSR, tile: NDArray[np.float32], symmetric: bool) -> None:
    """tile = Mᵀ M tile."""
    forth = np.empty_like(tile)
    m.multiply_into(tile, forth)
    if symmetric:
        m.multiply_into(forth, tile)
    else:
        tile[:] = 0
        loops.add_transposed(*m.arrays, forth, tile)


def _gram(y: TiledMatrix) -> Float[Tensor, "d d"]:
    total = torch.zeros(y.width, y.width, dtype=torch.float64)
    for low, high in row_ranges(y.n):
        part = y[low:high].double()
        total += part.T @ part
    return total


def _orthonormalise(y: TiledMatrix) -> None:
    """Columns that span the same, of length 1 and at right angles; zeros for directions that are not there."""
    values, vectors = torch.linalg.eigh(_gram(y))
    there = values > NEGLIGIBLE * values[-1:]
    by = (vectors * torch.where(there, values.clamp(min=1e-300) ** -0.5, 0.0)).float().contiguous()
    for low, high in row_ranges(y.n):
        y.put(low, y[low:high] @ by)
