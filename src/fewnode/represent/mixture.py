"""The representation of GPN+: views of a node, each with its weight, joined into one vector z.

The product of two nodes' z is the weighted mean of their cosines in all views, seen along the leading axes. What is
learned about attributes holds in any network. Coordinates in the structure are of one network only, so they are made
anew for each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from fewnode.engine.sparse import as_tensor
from fewnode.graph import Attributes, Graph, Ints
from fewnode.machine import memory
from fewnode.represent.diffused_views import DiffusedViews, Made
from fewnode.represent.kinds import narrowed, width_of, without_edges
from fewnode.represent.practice import PracticeTasks
from fewnode.represent.projection import ViewFusion, ViewProjection, sampled
from fewnode.represent.sources import STRUCTURE
from fewnode.represent.tiles import IN_MEMORY, TiledMatrix, row_ranges
from fewnode.represent.views import Place, diffusions

LARGE = 1 << 16
"""Rows that may need more room than memory has."""


@dataclass(frozen=True, eq=False)
class MixedViews(DiffusedViews):
    """Views that count, and how each is read."""

    projections: Mapping[Place, ViewProjection] = field(default_factory=dict)
    """Of views of attributes, by source and name."""
    fusion: ViewFusion | None = None

    # --- learning ---

    def learned(
        self, graph: Graph, made: Made | None = None
    ) -> tuple[MixedViews, dict[str, Float[Tensor, "n d"]], Float[Tensor, "n e"]]:
        """With projections and fusion of this graph, and what attributes and structure say of its nodes, in one z."""
        some, width = sampled(graph.n), {side: self._width(side, graph.n) for side in self.sides}
        z = as_tensor((self.room if graph.n >= LARGE else IN_MEMORY).empty((graph.n, sum(width.values()))))
        blocks = dict(zip(width, z.split(list(width.values()), dim=1), strict=True))
        mixture, made = replace(self, projections={}, fusion=None), {} if made is None else made
        for each in made.keys() - {*self.diffused_sources, *self.places}:
            del made[each]
        for side in reversed(self.sides):  # first what is there already
            views = dict(self._diffused_side(graph, side, made))
            known = {place: self.projections.get(place) or ViewProjection.of(h[some]) for place, h in views.items()}
            fusion = ViewFusion.of(self._sample(views, known, some), self.rank)
            memory.give_back()
            self._fuse(views, known, fusion, blocks[side])
            views.clear()  # before those of the next side are made
            if side != STRUCTURE:
                mixture = replace(mixture, projections=known, fusion=fusion)
        return mixture, blocks, z

    @property
    def sides(self) -> list[str]:
        """What the attributes say, what the structure says, or both."""
        return list(dict.fromkeys(_side(source) for source in self.diffused_sources))

    def sources_of(self, side: str) -> list[str]:
        return [each for each in self.diffused_sources if _side(each) == side]

    @property
    def places(self) -> list[Place]:
        """The views that have a weight, whatever the rank."""
        return list(dict.fromkeys((view.source, view.name) for view in self.weight))

    def _diffused_side(self, graph: Graph, side: str, made: Made | None = None) -> Iterator[tuple[Place, TiledMatrix]]:
        return self.diffused(graph, None, self.sources_of(side), made)

    # --- reading ---

    def closeness(
        self,
        tasks: Sequence[PracticeTasks],
        projection: ViewProjection,
        h: Float[Tensor, "k d"],
        ranks: Sequence[int],
    ) -> list[Float[Tensor, "t q n r"]]:
        """How close the queries of tasks are to their classes in a view, at each of these ranks."""
        along, square = projection.along(h), torch.stack([projection.stretch(rank) for rank in ranks]).square()
        length = (along.square() @ square.T).sqrt().clamp(min=1e-12)
        return [each.closeness_along(along, square, length) for each in tasks]

    def _read(self, place: Place, projection: ViewProjection, h: Float[Tensor, "k d"]) -> list[Float[Tensor, "k d"]]:
        """A view at each of its effective ranks, by the root of the weight: products are then weighted cosines."""
        own = {view.rank: tau for view, tau in self.weight.items() if (view.source, view.name) == place}
        return [z.mul_(tau**0.5) for tau, z in zip(own.values(), projection.read_all(h, list(own)), strict=True)]

    def side_by_side(
        self,
        views: Mapping[Place, TiledMatrix],
        projections: Mapping[Place, ViewProjection],
        rows: slice | Ints,
    ) -> list[Float[Tensor, "k _"]]:
        """Rows of all views of a side."""
        return [z for place, h in views.items() for z in self._read(place, projections[place], h[rows])]

    def _sample(
        self, views: Mapping[Place, TiledMatrix], projections: Mapping[Place, ViewProjection], nodes: Ints
    ) -> Iterator[list[Float[Tensor, "k _"]]]:
        """The same, of these nodes, some at a time."""
        return (self.side_by_side(views, projections, nodes[low:high]) for low, high in row_ranges(nodes.size))

    def _width(self, side: str, n: int) -> int:
        """Columns that what a side says has in z."""
        width = {source.name: source.mean.numel() for source in self.sources} | {STRUCTURE: min(self.structure_rank, n)}
        own = [view for view in self.weight if _side(view.source) == side]
        return min(self.rank, sum(width_of(each.diffusion, width[each.source]) for each in own))

    def _fuse(
        self,
        views: Mapping[Place, TiledMatrix],
        projections: Mapping[Place, ViewProjection],
        fusion: ViewFusion,
        into: Float[Tensor, "n d"],
    ) -> None:
        for low, high in row_ranges(len(into)):
            into[low:high] = fusion.read(self.side_by_side(views, projections, slice(low, high)))

    def blocks(self, graph: Graph) -> dict[str, Float[Tensor, "n d"]]:
        """Unit rows of what the attributes say and of what the structure says, as learned."""
        found = {}
        for side in self.sides:
            views = dict(self._diffused_side(graph, side))
            projections, fusion = self.readers(side, views, graph.n)
            found[side] = as_tensor(self.room.empty((graph.n, fusion.projection.shape[1])))
            self._fuse(views, projections, fusion, found[side])
        return found

    def readers(
        self, side: str, views: Mapping[Place, TiledMatrix], n: int
    ) -> tuple[Mapping[Place, ViewProjection], ViewFusion]:
        """How the views of a side are looked at: as learned or, in the structure, as those of this graph show."""
        if side != STRUCTURE and self.fusion is not None:
            return self.projections, self.fusion
        some = sampled(n)
        known = {place: ViewProjection.of(h[some]) for place, h in views.items()}
        return known, ViewFusion.of(self._sample(views, known, some), self.rank)

    def joined(
        self, blocks: Mapping[str, Float[Tensor, "n d"]], z: Float[Tensor, "n e"] | None = None
    ) -> Float[Tensor, "n e"]:
        """Blocks side by side, each with its share of the weight in every product of two nodes; in z, if given."""
        share = {side: sum(tau for view, tau in self.weight.items() if _side(view.source) == side) for side in blocks}
        n = len(next(iter(blocks.values())))
        width = sum(block.shape[1] for block in blocks.values())
        z = as_tensor((self.room if n >= LARGE else IN_MEMORY).empty((n, width))) if z is None else z
        for low, high in row_ranges(n):
            parts = [share[side] ** 0.5 * block[low:high] for side, block in blocks.items()]
            z[low:high] = F.normalize(torch.cat(parts, dim=1))
        return z

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
        read = {source: self._named(source).read(x) for source in self.diffused_sources if source != STRUCTURE}
        if not read or self.fusion is None:
            return torch.zeros(x.shape[0], width)
        parts = []
        for source, name in dict.fromkeys((view.source, view.name) for view in self.weight if view.source in read):
            diffusion = diffusions(source)[name]
            h = without_edges(narrowed(read[source], diffusion), diffusion)
            parts += self._read((source, name), self.projections[source, name], h)
        z = self.joined({"attributes": self.fusion.read(parts)})
        return F.pad(z, (0, width - z.shape[1]))


def _side(source: str) -> str:
    return STRUCTURE if source == STRUCTURE else "attributes"
