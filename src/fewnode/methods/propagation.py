"""The training-free bar: diffuse the attributes over the graph, compare with class means by cosine.

It learns no weights, so whatever a trained method is worth shows in the difference to it.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from fewnode.attributes import inverse_document_frequency, need_attributes, scale
from fewnode.episodes import EpisodeSampler
from fewnode.graph import Attributes, Graph, is_sparse
from fewnode.methods.gpn import Prototypical
from fewnode.nn import CSR, as_tensor, normalised
from fewnode.train import seeded


class Propagation(Prototypical):
    """Scaled attributes, their leading `rank` directions, `steps` steps of Â, cosine to the class mean."""

    distance: str = "cosine"

    def __init__(self, steps: int = 2, scaling: str = "tf-idf", rank: int = 256, seed: int = 0) -> None:
        self.steps, self.scaling, self.rank, self.seed = steps, scaling, rank, seed

    def fit(self, graph: Graph, train: EpisodeSampler, valid: EpisodeSampler) -> Propagation:
        """Look at the attributes of the graph; no label is used."""
        need_attributes(graph)
        self.idf_ = inverse_document_frequency(graph.x) if self.scaling == "tf-idf" else None
        self.directions_ = leading_directions(scale(graph.x, self.scaling, self.idf_), self.rank, self.seed)
        self._cache = None
        return self

    def _embed(self, graph: Graph) -> tuple[Float[Tensor, "n d"], Float[Tensor, " n"]]:
        x = scale(graph.x, self.scaling, self.idf_)
        z = torch.from_numpy(np.ascontiguousarray(x @ self.directions_, dtype=np.float32))
        adj = CSR.from_scipy(normalised(graph), torch.float32)
        for _ in range(self.steps):
            z = adj @ z
        return F.normalize(z), torch.zeros(graph.n)

    def state(self) -> dict[str, Tensor]:
        """What `fit` saw, as named tensors."""
        idf = {} if self.idf_ is None else {"idf": torch.from_numpy(self.idf_)}
        return {**idf, "directions": torch.from_numpy(self.directions_)}

    def restore(self, n_features: int, state: Mapping[str, Tensor]) -> Propagation:
        self.idf_ = state["idf"].numpy() if self.scaling == "tf-idf" else None
        self.directions_ = state["directions"].numpy()
        if self.directions_.ndim != 2 or self.directions_.shape[0] != n_features:
            raise ValueError(f"directions are {self.directions_.shape} for {n_features} attributes")
        return self


def leading_directions(x: Attributes, rank: int, seed: int, rounds: int = 4, extra: int = 16) -> NDArray[np.float32]:
    """The leading right singular vectors of x (d x rank), by randomised subspace iteration (Halko et al., 2011)."""
    d = x.shape[1]
    if d <= rank:
        return np.eye(d, dtype=np.float32)
    forward, back = (_operator(m) for m in (x, x.T.tocsr() if is_sparse(x) else x.T))
    with seeded(seed):
        q = torch.randn(d, min(rank + extra, d))
    for _ in range(rounds):
        q = torch.linalg.qr(back @ (forward @ q))[0]
    b = forward @ q
    values, vectors = torch.linalg.eigh((b.T @ b).double())
    directions: NDArray[np.float32] = (q @ vectors[:, values.argsort(descending=True)[:rank]].float()).numpy()
    return directions


def _operator(matrix: Attributes) -> CSR | Tensor:
    return CSR.from_scipy(matrix, torch.float32) if is_sparse(matrix) else as_tensor(np.ascontiguousarray(matrix))
