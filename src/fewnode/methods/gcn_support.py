"""A GCN that is trained on the support set alone, anew for each task: what a practitioner does with a few labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from fewnode.engine.fields import ReceptiveFields
from fewnode.engine.sparse import CSR, taken
from fewnode.episodes import EpisodeSampler, Task
from fewnode.errors import FewnodeError
from fewnode.graph import Graph, Ints
from fewnode.method import Probabilities
from fewnode.methods.linear import ScaledAttributes
from fewnode.train import Diverged, seeded

MAX_HIDDEN, MAX_EPOCHS = 4096, 100_000


class SupportGCN:
    """Kipf & Welling (ICLR 2017): softmax(Â ReLU(Â X W0) W1), with their training.

    Adam, dropout on the input of both layers, weight decay on W0, and a fixed number of epochs: with a few labels
    there is none to stop by. While training, only the nodes that the support can see are computed.

    Weights and dropout are drawn by the seed, for nodes and classes in the order of node numbers. So neither the order
    of the support nor the names of classes matter; where nodes are numbered in another way, other draws are made.
    """

    _seen: tuple[Graph, ReceptiveFields] | None = None

    needs_base = False

    def __init__(
        self,
        hidden: int = 16,
        dropout: float = 0.5,
        epochs: int = 200,
        lr: float = 0.01,
        weight_decay: float = 5e-4,
        scaling: str = "l2",
        seed: int = 0,
    ) -> None:
        self.hidden, self.dropout, self.epochs = hidden, dropout, epochs
        self.lr, self.weight_decay, self.scaling, self.seed = lr, weight_decay, scaling, seed

    def fit(self, graph: Graph, train: EpisodeSampler, valid: EpisodeSampler) -> SupportGCN:
        """Look at the attributes; no episode is looked at."""
        self._check()
        self.attributes_, self._seen = ScaledAttributes(self.scaling).fit(graph), None
        return self

    def _check(self) -> None:
        if not (1 <= self.hidden <= MAX_HIDDEN and 1 <= self.epochs <= MAX_EPOCHS):
            raise FewnodeError(
                f"hidden is {self.hidden} and epochs {self.epochs}, expected at least 1 of each, "
                f"at most {MAX_HIDDEN} and {MAX_EPOCHS}"
            )
        if not 0 <= self.dropout < 1:
            raise FewnodeError(f"dropout is {self.dropout}, expected a rate from 0 to below 1")
        if not (self.lr > 0 and self.weight_decay >= 0):
            raise FewnodeError(f"lr is {self.lr} and weight_decay {self.weight_decay}, expected at least 0, lr above")

    def predict_proba(self, graph: Graph, task: Task) -> Probabilities:
        fields = self._fields(graph)
        order = np.argsort(task.support)
        support, labels = task.support[order], task.support_y[order]
        column = np.argsort(np.unique(labels, return_index=True)[1])  # classes by their first node
        y = torch.from_numpy(np.argsort(column)[labels])
        with seeded(self.seed):
            first, second = self._trained(fields, support, y, task.n_way)
        with torch.inference_mode():
            h = F.relu(fields.adj @ (fields.x @ first))
            logits = (fields.adj @ (h @ second))[torch.from_numpy(task.query)]
        if not torch.isfinite(logits).all():
            raise Diverged(f"training on the support set diverged; try an lr below {self.lr}")
        found = np.empty((task.query.size, task.n_way), np.float32)
        found[:, column] = logits.softmax(dim=1).numpy()
        return found

    def _trained(
        self, fields: ReceptiveFields, support: Ints, y: Tensor, n_way: int
    ) -> tuple[Float[Tensor, "d h"], Float[Tensor, "h n"]]:
        outer = fields.hop(support, in_order=True)
        inner = fields.hop(outer.around, in_order=True)
        x = fields.x if inner.around is None else taken(fields.x, inner.around)
        weights = [
            nn.Parameter(torch.empty(fields.n_features, self.hidden)),
            nn.Parameter(torch.empty(self.hidden, n_way)),
        ]
        for weight in weights:
            nn.init.xavier_uniform_(weight)
        first, second = weights
        groups: list[dict[str, Any]] = [{"params": [first], "weight_decay": self.weight_decay}, {"params": [second]}]
        adam = torch.optim.Adam(groups, lr=self.lr, fused=True)
        words = np.random.PCG64(np.random.SeedSequence((self.seed, 1)))
        for _ in range(self.epochs):
            h = F.relu(inner.matrix @ (dropped(x, self.dropout, words) @ first))
            loss = F.cross_entropy(outer.matrix @ (F.dropout(h, self.dropout) @ second), y)
            adam.zero_grad()
            loss.backward()
            adam.step()
        return first, second

    def _fields(self, graph: Graph) -> ReceptiveFields:
        if self._seen is None or self._seen[0] is not graph:
            self._seen = (graph, ReceptiveFields.of(graph, self.attributes_.of(graph)))
        return self._seen[1]

    def state(self) -> dict[str, Tensor]:
        return self.attributes_.state()

    def restore(self, n_features: int, state: Mapping[str, Tensor]) -> SupportGCN:
        """Become the method that gave `state`."""
        self._check()
        self.attributes_, self._seen = ScaledAttributes(self.scaling).restore(n_features, state), None
        return self


def dropped(x: CSR | Tensor, dropout: float, words: np.random.PCG64) -> CSR | Tensor:
    """Attributes of which some are left out, and the others grow to make up for them.

    Sixteen bits decide on each: most of an epoch would else be spent on drawing numbers.
    """
    if dropout == 0:
        return x
    values = x.values if isinstance(x, CSR) else x.numpy()
    bits = words.random_raw(-(-values.size // 4)).view(np.uint16)[: values.size].reshape(values.shape)
    kept = values * ((bits >= dropout * 2**16) * np.float32(1 / (1 - dropout)))
    return replace(x, values=kept) if isinstance(x, CSR) else torch.from_numpy(kept)
