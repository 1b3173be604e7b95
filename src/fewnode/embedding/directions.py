"""Leading directions of attributes and of square matrices, by randomised subspace iteration (Halko et al., 2011)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from fewnode.embedding.attributes import inverse_document_frequency, scale
from fewnode.embedding.tiles import Space, TiledMatrix, in_memory, row_ranges, tile_ranges
from fewnode.engine import loops
from fewnode.engine.sparse import CSR
from fewnode.graph import Attributes, is_sparse
from fewnode.vectors import Floats

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
    directions: Floats
    idf: Floats | None = None

    @classmethod
    def of(cls, x: Attributes, scaling: str, rank: int, seed: int, weight: Floats | None = None) -> Axes:
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

    def read(self, x: Attributes) -> Floats:
        found = np.empty((x.shape[0], self.directions.shape[1]), np.float32)
        for low, high in row_ranges(x.shape[0]):
            found[low:high] = _product(scale(x[low:high], self.scaling, self.idf), self.directions)
        return found


def _held(x: Attributes, scaling: str, idf: Floats | None) -> Blocks:
    """Scaled rows, block by block; the blocks stay in memory if they are small."""

    def blocks() -> Iterator[Attributes]:
        return (scale(x[low:high], scaling, idf) for low, high in row_ranges(x.shape[0]))

    size = 8 * x.nnz if is_sparse(x) else x.nbytes
    if size > HELD:
        return blocks
    kept = list(blocks())
    return lambda: iter(kept)


def _directions(blocks: Blocks, d: int, rank: int, seed: int, dense: bool) -> Floats:
    """The leading right singular vectors (d x rank) of the blocks of rows, one below the other."""
    if dense and d <= EXACT:
        total = np.zeros((d, d))
        for x in blocks():
            total += x.T @ x
        return _leading(total, rank)
    q = normal_numbers((d, min(rank + EXTRA, d)), seed)
    for _ in range(ROUNDS):
        q = np.linalg.qr(_twice(blocks, q))[0]
    gram = np.zeros((q.shape[1], q.shape[1]))
    for x in blocks():
        b = _product(x, q)
        gram += b.T @ b
    return q @ _leading(gram, rank)


def normal_numbers(shape: tuple[int, int], seed: int) -> Floats:
    """Standard normal numbers by the method of Box and Muller, from a stream that no version of NumPy will change."""
    count, state = shape[0] * shape[1], np.random.SeedSequence((seed,)).generate_state(1, np.uint64)[0] >> np.uint64(1)
    stream = np.random.RandomState(int(state) & 0xFFFFFFFF)
    drawn = stream.randint(0, 1 << 32, -(-count // 16) * 16, np.uint32) & 0xFFFFFF
    first, second = (drawn.astype(np.float32) / np.float32(1 << 24)).reshape(-1, 2, 8).swapaxes(0, 1)
    radius, angle = np.sqrt(-2 * np.log(1 - first)), np.float32(2 * np.pi) * second
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1).reshape(-1)[:count].reshape(shape)


def _leading(gram: NDArray[np.float64], rank: int) -> Floats:
    """Eigenvectors of the largest eigenvalues, that of the largest first."""
    return np.ascontiguousarray(np.linalg.eigh(gram)[1][:, ::-1][:, :rank], np.float32)


def _twice(blocks: Blocks, q: Floats) -> Floats:
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


def _product(x: Attributes, dense: Floats) -> Floats:
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
    space: Space = in_memory,
) -> TiledMatrix:
    """Rows of U S: the leading singular vectors and values of a square matrix (n x rank).

    Tile by tile: beside the matrix there are two numbers a node and column in memory. The transpose of a matrix that is
    not `symmetric` is never made.
    """
    m, n = CSR.of(matrix.astype(np.float32, copy=False)), matrix.shape[0]
    q = space(n, min(rank + EXTRA, n))
    _fill_random(q, seed)
    for _ in range(rounds):
        for tile in q.tiles:
            _forth_and_back(m, tile, symmetric)
        _orthonormalise(q)
    for tile in q.tiles:
        before = tile.copy()
        m.multiply_into(before, tile)
    by = _leading(_gram(q), rank)
    return space(n, by.shape[1]).filled(lambda low, high: q[low:high] @ by)


def _fill_random(q: TiledMatrix, seed: int) -> None:
    """A stream of its own for each column: how wide tiles are does not matter."""
    column = 0
    for tile in q.tiles:
        for c in range(tile.shape[1]):
            tile[:, c] = np.random.default_rng((seed, column)).standard_normal(q.n, np.float32)
            column += 1


def _forth_and_back(m: CSR, tile: Floats, symmetric: bool) -> None:
    """tile = Mᵀ M tile."""
    forth = np.empty_like(tile)
    m.multiply_into(tile, forth)
    if symmetric:
        m.multiply_into(forth, tile)
    else:
        tile[:] = 0
        loops.add_transposed(*m.arrays, forth, tile)


def _gram(y: TiledMatrix) -> NDArray[np.float64]:
    total = np.zeros((y.width, y.width))
    for low, high in row_ranges(y.n):
        part = y[low:high].astype(np.float64)
        total += part.T @ part
    return total


def _orthonormalise(y: TiledMatrix) -> None:
    """Columns that span the same, of length 1 and at right angles; zeros for directions that are not there."""
    values, vectors = np.linalg.eigh(_gram(y))
    there = values > NEGLIGIBLE * values[-1:]
    by = (vectors * np.where(there, np.maximum(values, 1e-300) ** -0.5, 0.0)).astype(np.float32)
    for low, high in row_ranges(y.n):
        y.put(low, y[low:high] @ by)
