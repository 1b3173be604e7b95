"""The door of the engine: two functions that every engine has, and the one place that chooses between engines.

`Compiled` runs the paper's networks on a CPU. `Reference`, which is `fewnode.gpn` on the whole graph, runs everything
else: other devices, depths and distances. `Subgraph` runs encoders that somebody else wrote, `AuthorsEngine` the
networks of the authors' code.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fewnode.engine.authors import AuthorsEngine, AuthorsNetworks
from fewnode.engine.compiled import Compiled
from fewnode.engine.fields import Nodes, ReceptiveFields
from fewnode.engine.reference import Reference
from fewnode.engine.subgraph import ModuleEncoder, Subgraph
from fewnode.gpn import Networks, TrainingBatch, WholeGraph
from fewnode.graph import Attributes, Graph


class Engine(Protocol):
    """Computes the networks of GPN, whose weights come with each call, on one graph."""

    def loss_and_gradients(
        self, networks: Networks, batch: TrainingBatch, dropout: float, seed: int
    ) -> tuple[float, list[Tensor]]:
        """Eq. (14) for the episodes of a batch, and its derivative by each parameter, in their order."""

    def embed(
        self, networks: Networks, nodes: Nodes | None = None, valued: Nodes | None = None
    ) -> tuple[Tensor, Tensor]:
        """z of the nodes, or of all, and the importance of those that are `valued`: by default of the same ones."""


def engine_for(
    networks: Networks,
    graph: Graph,
    distance: str = "sqeuclidean",
    *,
    x: Attributes | None = None,
    degree: NDArray[np.float64] | None = None,
    device: str = "cpu",
) -> Engine:
    """The quickest engine that computes these networks; `x` in place of the graph's attributes.

    `degree` in place of the number of neighbours in Eq. (9).
    """
    theirs = device == "cpu" and isinstance(networks, AuthorsNetworks)
    compiled = device == "cpu" and Compiled.computes(networks, distance)
    fields = None
    if compiled or theirs or isinstance(networks.encoder, ModuleEncoder):
        fields = ReceptiveFields.of(graph, x)
        if degree is not None:
            fields.degree = degree.astype(fields.degree.dtype)
    if compiled and fields is not None:
        return Compiled(fields)
    if theirs and fields is not None:
        return AuthorsEngine(fields, distance)
    whole = WholeGraph.of(graph, x, device=device)
    if degree is not None:
        whole = replace(whole, degree=torch.from_numpy(degree).to(whole.degree))
    if isinstance(networks.encoder, ModuleEncoder) and fields is not None:
        return Subgraph(fields, whole, distance)
    return Reference(whole, distance)
