"""The representation of GPN+: views of a node, each with its weight, joined into one vector z.

The product of two nodes' z is the weighted mean of their cosines in all views, seen along the leading axes. What is
learned about attributes holds in any network. Coordinates in the structure are of one network only, so they are made
anew for each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from fewnode.errors import FewnodeError
from fewnode.graph import Attributes, Graph
from fewnode.represent.diffusion import Diffusion, centred, mean_direction, structure
from fewnode.represent.kinds import KIND_VIEWS, kind_views, narrowed, operators_of, without_edges
from fewnode.represent.sources import STRUCTURE, AttributeSource
from fewnode.represent.views import ATTRIBUTE_VIEWS, RANKS, STRUCTURE_VIEWS, ViewFusion, ViewProjection


class View(NamedTuple):
    """What is diffused, how, and with which effective rank."""

    source: str
    name: str
    rank: int

    @property
    def diffusion(self) -> Diffusion:
        return diffusions(self.source)[self.name]

    def __str__(self) -> str:
        return f"{self.source}, {self.name}" + (f", rank {self.rank}" if self.rank else "")


def diffusions(source: str) -> dict[str, Diffusion]:
    """Of the plain union, then those over weights, kinds and directions of edges."""
    return {**(STRUCTURE_VIEWS if source == STRUCTURE else ATTRIBUTE_VIEWS), **KIND_VIEWS}


def all_views(sources: Sequence[str], kinds: Sequence[str] = (), ranks: Sequence[int] = RANKS) -> list[View]:
    """Every view of these sources; `kinds` names those beside the plain ones that there are."""
    return [
        View(source, name, rank)
        for source in sources
        for name in diffusions(source)
        if name not in KIND_VIEWS or name in kinds
        for rank in ranks
    ]


@dataclass(frozen=True, eq=False)
class MixedViews:
    """Which views count how much, and how each is read."""

    sources: tuple[AttributeSource, ...]
    weight: Mapping[View, float]
    rank: int = 256
    seed: int = 0
    projections: Mapping[tuple[str, str], ViewProjection] = field(default_factory=dict)
    """Of views of attributes, by source and name."""
    fusion: ViewFusion | None = None
    odds: tuple[float, ...] = ()
    """Of each relation of the graph, how much likelier its edges join two of one class than chance."""

    # --- learning ---

    def learned(self, graph: Graph) -> tuple[MixedViews, dict[str, Float[Tensor, "n d"]]]:
        """With projections and fusion of this graph, and what attributes and structure say of its nodes."""
        projections: dict[tuple[str, str], ViewProjection] = {}
        parts: dict[str, list[Tensor]] = {}
        for (source, name), h in self.diffused(graph):
            projection = ViewProjection.of(h)
            if source != STRUCTURE:
                projections[source, name] = projection
            parts.setdefault(_side(source), []).extend(self._read(source, name, projection, h))
        fusion, blocks = None, {}
        for side, pieces in parts.items():
            e = torch.cat(pieces, dim=1)
            join = ViewFusion.of(e, self.rank)
            blocks[side] = join.read(e)
            fusion = join if side != STRUCTURE else fusion
        return replace(self, projections=projections, fusion=fusion), blocks

    # --- reading ---

    def diffused(self, graph: Graph) -> Iterator[tuple[tuple[str, str], Float[Tensor, "n d"]]]:
        """The views that have a weight, one after the other: they need not be in memory together."""
        wanted = {(view.source, view.name): view.diffusion for view in self.weight}
        if missing := [name for _, name in wanted if name in KIND_VIEWS and name not in kind_views(graph)]:
            raise FewnodeError(f"the model reads a view of edges, {missing[0]!r}, that this network does not have")
        operators = operators_of(graph, self.odds or (1.0,) * len(graph.relations))
        for source in dict.fromkeys(source for source, _ in wanted):
            z = self._source(graph, source)
            for (of, name), diffusion in wanted.items():
                if of == source:
                    yield (source, name), diffusion(operators, narrowed(z, diffusion))

    def _source(self, graph: Graph, name: str) -> Float[Tensor, "n d"]:
        if name != STRUCTURE:
            return self._named(name).read(graph.x)
        alone = not self.sources  # then all depends on the structure, which is worth more time
        z = structure(graph, self.rank if alone else self.rank // 2, self.seed, thorough=alone)
        return centred(z, mean_direction(z))

    def _named(self, name: str) -> AttributeSource:
        return next(source for source in self.sources if source.name == name)

    def _read(
        self, source: str, name: str, projection: ViewProjection, h: Float[Tensor, "k d"]
    ) -> list[Float[Tensor, "k d"]]:
        """A view at each of its effective ranks, by the root of the weight: products are then weighted cosines."""
        return [
            tau**0.5 * projection.read(h, view.rank)
            for view, tau in self.weight.items()
            if (view.source, view.name) == (source, name)
        ]

    def blocks(self, graph: Graph) -> dict[str, Float[Tensor, "n d"]]:
        """Unit rows of what the attributes say and of what the structure says, as learned."""
        parts: dict[str, list[Tensor]] = {}
        for (source, name), h in self.diffused(graph):
            projection = self.projections[source, name] if source != STRUCTURE else ViewProjection.of(h)
            parts.setdefault(_side(source), []).extend(self._read(source, name, projection, h))
        return {side: self._fused(side, torch.cat(pieces, dim=1)) for side, pieces in parts.items()}

    def _fused(self, side: str, e: Float[Tensor, "n e"]) -> Float[Tensor, "n d"]:
        join = self.fusion if side != STRUCTURE and self.fusion is not None else ViewFusion.of(e, self.rank)
        return join.read(e)

    def joined(self, blocks: Mapping[str, Float[Tensor, "n d"]]) -> Float[Tensor, "n e"]:
        """Blocks side by side, each with its share of the weight in every product of two nodes."""
        share = {side: sum(tau for view, tau in self.weight.items() if _side(view.source) == side) for side in blocks}
        return F.normalize(torch.cat([share[side] ** 0.5 * block for side, block in blocks.items()], dim=1))

    @property
    def structure_share(self) -> float:
        """The share that the structure has in a product of two nodes."""
        own = sum(tau for view, tau in self.weight.items() if view.source == STRUCTURE)
        return own / sum(self.weight.values())

    @property
    def attribute_width(self) -> int:
        """How many of the first columns of z are what the attributes say."""
        return 0 if self.fusion is None else self.fusion.projection.shape[1]

    def embed(self, graph: Graph) -> Float[Tensor, "n e"]:
        return self.joined(self.blocks(graph))

    def unlinked(self, x: Attributes, width: int) -> Float[Tensor, "k e"]:
        """z of nodes that have attributes and no edges, such as a description of a class; `width` is that of z.

        Â leaves such a node as it is, the random walk leads nowhere, and the structure says nothing.
        """
        parts = []
        for source, name in dict.fromkeys((view.source, view.name) for view in self.weight):
            if source == STRUCTURE:
                continue
            diffusion = diffusions(source)[name]
            h = without_edges(narrowed(self._named(source).read(x), diffusion), diffusion)
            parts += self._read(source, name, self.projections[source, name], h)
        if not parts:
            return torch.zeros(x.shape[0], width)
        z = self.joined({"attributes": self._fused("attributes", torch.cat(parts, dim=1))})
        return F.pad(z, (0, width - z.shape[1]))


def _side(source: str) -> str:
    return STRUCTURE if source == STRUCTURE else "attributes"
