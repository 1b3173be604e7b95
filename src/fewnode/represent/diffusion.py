"""Representations without weights: leading directions of attributes or structure, diffused over the graph.

`propagation` chooses one of them; `gpn-plus` mixes many.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from fewnode.engine.sparse import CSR, normalised, operand
from fewnode.graph import Attributes, Graph, is_sparse
from fewnode.represent.attributes import inverse_document_frequency, scale
from fewnode.represent.random_walks import random_walks
from fewnode.train import seeded


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

    def __call__(self, operators: Operators, z: Float[Tensor, "n d"]) -> Float[Tensor, "n d"]:
        h = z
        for _ in range(self.steps):
            for name in self.matrices:
                h = operators[name] @ h
            if self.teleport:
                h.mul_(1 - self.teleport).add_(z, alpha=self.teleport)
        return h

    def __str__(self) -> str:
        kind = "walk" if self.walk else "pagerank" if self.teleport else "steps"
        return f"{kind} {self.steps}" + (f", back {self.teleport:g}" if self.teleport else "")


class Operators:
    """The matrices that attributes are diffused by, each made when it is first asked for.

    `closed` is Â with self-loops, `walk` is D^-1 A without. `more` are others, by name.
    """

    def __init__(self, graph: Graph, more: Mapping[str, Callable[[], sp.csr_array]] = MappingProxyType({})) -> None:
        self._makers = {"closed": lambda: normalised(graph), "walk": lambda: random_walk(graph), **more}
        self._made: dict[str, CSR] = {}

    @classmethod
    def of(cls, graph: Graph) -> Operators:
        return cls(graph)

    def __getitem__(self, name: str) -> CSR:
        if name not in self._made:
            self._made[name] = CSR.of(self._makers[name](), torch.float32)
        return self._made[name]


def random_walk(graph: Graph) -> sp.csr_array:
    """D^-1 A, by weights where A has some; the row of a node without neighbours is zero."""
    share = np.repeat(1 / np.where(graph.degree > 0, graph.strength, 1), graph.degree)
    if graph.weighted:
        share *= graph.adj.data
    return sp.csr_array((share, graph.adj.indices, graph.adj.indptr), graph.adj.shape)


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
        return cls(scaling, leading_directions(scale(x, scaling, idf), rank, seed), idf)

    def checked(self, n_features: int) -> Axes:
        """Refuse directions of another width than the attributes'."""
        if self.directions.ndim != 2 or self.directions.shape[0] != n_features:
            raise ValueError(f"directions are {self.directions.shape} for {n_features} attributes")
        return self

    def read(self, x: Attributes) -> Float[Tensor, "n d"]:
        scaled = scale(x, self.scaling, self.idf)
        return torch.from_numpy(np.ascontiguousarray(scaled @ self.directions, dtype=np.float32))


def structure(graph: Graph, rank: int, seed: int, thorough: bool = False) -> Float[Tensor, "n d"]:
    """Coordinates of nodes by whom they are near: leading directions of positive pointwise mutual information.

    max(0, log p(i, j) - log p(i) p(j)), where p(i, j) is how often i and j are near each other: what walk embeddings
    factorise too (Levy & Goldberg, 2014; Qiu et al., 2018). They mean something in this one network only. `thorough`
    counts over walks of forty steps, as walk embeddings do, and takes longer; else near is one or two steps.
    """
    near = walked(graph, seed) if thorough and graph.n <= WALKED else two_steps(random_walk(graph))
    row, column = (np.maximum(near.sum(axis=axis), 1e-30) for axis in (1, 0))
    information = np.log(near.data * near.sum() / (np.repeat(row, np.diff(near.indptr)) * column[near.indices]))
    ppmi = sp.csr_array((np.maximum(information, 0).astype(np.float32), near.indices, near.indptr), near.shape)
    ppmi.eliminate_zeros()
    return torch.from_numpy(np.ascontiguousarray(ppmi @ leading_directions(ppmi, rank, seed), dtype=np.float32))


WALKED = 100_000
"""Nodes up to which walks are counted: they leave some 300 entries a node."""


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


def two_steps(walk: sp.csr_array, entries: int = 20_000_000) -> sp.csr_array:
    """(P + P P) / 2, where the second step leaves only from nodes of few neighbours if else it had too many entries.

    A hub leads to so many nodes that being two steps apart over it says little, and costs the square of its degree.
    """
    degree = np.diff(walk.indptr)
    cost = np.bincount(walk.indices, minlength=degree.size) * degree.astype(np.int64)
    order = np.argsort(degree, kind="stable")
    affordable = np.zeros(degree.size, bool)
    affordable[order[np.cumsum(cost[order]) <= entries]] = True
    second = sp.diags_array(affordable.astype(walk.dtype)) @ walk
    second.eliminate_zeros()
    return ((walk + walk @ second) / 2).tocsr()


def mean_direction(z: Float[Tensor, "n d"]) -> Float[Tensor, " d"]:
    """The mean of the unit rows of z, of those that are not zero."""
    return F.normalize(z).sum(dim=0) / (z != 0).any(dim=1).sum().clamp(min=1)


def centred(z: Float[Tensor, "n d"], mean: Float[Tensor, " d"]) -> Float[Tensor, "n d"]:
    """Unit rows, moved by the mean, of unit length again. A node that nothing is known of (zeros) stays zero."""
    known = (z != 0).any(dim=1, keepdim=True)
    return F.normalize(F.normalize(z) - mean) * known


def leading_directions(x: Attributes, rank: int, seed: int, rounds: int = 4, extra: int = 16) -> NDArray[np.float32]:
    """The leading right singular vectors of x (d x rank), by randomised subspace iteration (Halko et al., 2011)."""
    d = x.shape[1]
    if d <= rank:
        return np.eye(d, dtype=np.float32)
    forward, back = operand(x), operand(x.T.tocsr() if is_sparse(x) else np.ascontiguousarray(x.T))
    with seeded(seed):
        q = torch.randn(d, min(rank + extra, d))
    for _ in range(rounds):
        q = torch.linalg.qr(back @ (forward @ q))[0]
    b = forward @ q
    values, vectors = torch.linalg.eigh((b.T @ b).double())
    directions: NDArray[np.float32] = (q @ vectors[:, values.argsort(descending=True)[:rank]].float()).numpy()
    return directions
