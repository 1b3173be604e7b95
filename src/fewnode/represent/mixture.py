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

from fewnode import memory
from fewnode.engine.sparse import as_tensor
from fewnode.errors import FewnodeError
from fewnode.graph import Attributes, Graph, Ints
from fewnode.represent.diffusion import Diffusion, Operators, centred, diffused, mean_direction
from fewnode.represent.kinds import (
    KIND_VIEWS,
    NARROW,
    NOTHING_LEARNED,
    LearnedRelations,
    is_narrow,
    kind_views,
    narrowed,
    operators_of,
    without_edges,
)
from fewnode.represent.sources import STRUCTURE, AttributeSource
from fewnode.represent.structure import structure
from fewnode.represent.tiles import IN_MEMORY, Room, Tile, TiledMatrix, row_ranges
from fewnode.represent.views import ATTRIBUTE_VIEWS, RANKS, STRUCTURE_VIEWS, ViewFusion, ViewProjection, sampled
from fewnode.represent.workspace import Place, Workspace

LARGE = 1 << 16
"""Rows that may need more room than memory has."""


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
    projections: Mapping[Place, ViewProjection] = field(default_factory=dict)
    """Of views of attributes, by source and name."""
    fusion: ViewFusion | None = None
    relations: LearnedRelations = NOTHING_LEARNED
    workspace: Workspace | None = None
    """Files for what is larger than memory."""

    @property
    def room(self) -> Room:
        return IN_MEMORY if self.workspace is None else self.workspace

    # --- diffusing ---

    def source(self, graph: Graph, name: str) -> TiledMatrix:
        """What is diffused: unit rows, from their mean."""
        if self.workspace is not None:
            return self.workspace.source(name, lambda: self._made(graph, name))
        return self._made(graph, name)

    def _made(self, graph: Graph, name: str) -> TiledMatrix:
        if name != STRUCTURE:
            return self._named(name).tiles(graph.x, self.room)
        alone = not self.sources  # then all depends on the structure, which is worth more time
        read = self.relations.structure(graph)
        z = structure(read, self.rank if alone else self.rank // 4, self.seed, thorough=alone, room=self.room)
        mean = mean_direction(z[sampled(graph.n)])
        for low, high in row_ranges(graph.n):
            z.put(low, centred(z[low:high], mean))
        return z

    def _named(self, name: str) -> AttributeSource:
        return next(source for source in self.sources if source.name == name)

    def diffused(
        self,
        graph: Graph,
        nodes: Ints | None = None,
        sources: Sequence[str] | None = None,
        made: dict[str, TiledMatrix] | None = None,
    ) -> Iterator[tuple[Place, TiledMatrix]]:
        """The views that have a weight, one source after the other: of all nodes, or of some.

        What is diffused is looked for in `made`, and kept there.
        """
        made = {} if made is None else made
        wanted = {(view.source, view.name): view.diffusion for view in self.weight}
        operators = operators_of(graph, self.relations)
        if missing := [name for _, name in wanted if name in KIND_VIEWS and name not in kind_views(graph)]:
            raise FewnodeError(f"the model reads a view of edges, {missing[0]!r}, that this network does not have")
        for source in self.diffused_sources if sources is None else sources:
            own = {place: diffusion for place, diffusion in wanted.items() if place[0] == source}
            memory.give_back()  # what the last source took
            if source not in made:
                made[source] = self.source(graph, source)
            if self.workspace is not None:
                yield from self.workspace.diffused(source, made[source], own, self.relations, nodes).items()
            else:
                for group in [own] if nodes is None else _by_matrices(own):
                    yield from diffused_tiles(operators, made[source], group, nodes).items()

    @property
    def diffused_sources(self) -> list[str]:
        """Those that a view with a weight is of."""
        return list(dict.fromkeys(view.source for view in self.weight))

    # --- learning ---

    def learned(
        self, graph: Graph, made: dict[str, TiledMatrix] | None = None
    ) -> tuple[MixedViews, dict[str, Float[Tensor, "n d"]]]:
        """With projections and fusion of this graph, and what attributes and structure say of its nodes."""
        blocks, some = {}, sampled(graph.n)
        mixture, made = replace(self, projections={}, fusion=None), {} if made is None else made
        for source in made.keys() - set(self.diffused_sources):
            del made[source]
        for side in self.sides:
            views = dict(self._diffused_side(graph, side, made))
            for source in [each for each in made if _side(each) == side]:
                del made[source]
            known = {place: self.projections.get(place) or ViewProjection.of(h[some]) for place, h in views.items()}
            fusion = ViewFusion.of(self._sample(views, known, some), self.rank)
            blocks[side] = self._fused(graph.n, views, known, fusion)
            if side != STRUCTURE:
                mixture = replace(mixture, projections=known, fusion=fusion)
        return mixture, blocks

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

    def _diffused_side(
        self, graph: Graph, side: str, made: dict[str, TiledMatrix] | None = None
    ) -> Iterator[tuple[Place, TiledMatrix]]:
        return self.diffused(graph, None, self.sources_of(side), made)

    # --- reading ---

    def _read(self, place: Place, projection: ViewProjection, h: Float[Tensor, "k d"]) -> list[Float[Tensor, "k d"]]:
        """A view at each of its effective ranks, by the root of the weight: products are then weighted cosines."""
        own = {view.rank: tau for view, tau in self.weight.items() if (view.source, view.name) == place}
        return [tau**0.5 * z for tau, z in zip(own.values(), projection.read_all(h, list(own)), strict=True)]

    def side_by_side(
        self,
        views: Mapping[Place, TiledMatrix],
        projections: Mapping[Place, ViewProjection],
        rows: slice | Ints,
    ) -> Float[Tensor, "k e"]:
        """Rows of all views of a side."""
        return torch.cat([z for place, h in views.items() for z in self._read(place, projections[place], h[rows])], 1)

    def _sample(
        self, views: Mapping[Place, TiledMatrix], projections: Mapping[Place, ViewProjection], nodes: Ints
    ) -> Iterator[Float[Tensor, "k e"]]:
        """The same, of these nodes, some at a time."""
        return (self.side_by_side(views, projections, nodes[low:high]) for low, high in row_ranges(nodes.size))

    def _fused(
        self,
        n: int,
        views: Mapping[Place, TiledMatrix],
        projections: Mapping[Place, ViewProjection],
        fusion: ViewFusion,
    ) -> Float[Tensor, "n d"]:
        found = as_tensor(self.room.empty((n, fusion.projection.shape[1])))
        for low, high in row_ranges(n):
            found[low:high] = fusion.read(self.side_by_side(views, projections, slice(low, high)))
        return found

    def blocks(self, graph: Graph) -> dict[str, Float[Tensor, "n d"]]:
        """Unit rows of what the attributes say and of what the structure says, as learned."""
        found = {}
        for side in self.sides:
            views = dict(self._diffused_side(graph, side))
            found[side] = self._fused(graph.n, views, *self.readers(side, views, graph.n))
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

    def joined(self, blocks: Mapping[str, Float[Tensor, "n d"]]) -> Float[Tensor, "n e"]:
        """Blocks side by side, each with its share of the weight in every product of two nodes."""
        share = {side: sum(tau for view, tau in self.weight.items() if _side(view.source) == side) for side in blocks}
        n = len(next(iter(blocks.values())))
        width = sum(block.shape[1] for block in blocks.values())
        z = as_tensor((self.room if n >= LARGE else IN_MEMORY).empty((n, width)))
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
        z = self.joined({"attributes": self.fusion.read(torch.cat(parts, dim=1))})
        return F.pad(z, (0, width - z.shape[1]))


def _side(source: str) -> str:
    return STRUCTURE if source == STRUCTURE else "attributes"


def _by_matrices(wanted: Mapping[Place, Diffusion]) -> list[dict[Place, Diffusion]]:
    """Diffusions over the same matrices share their powers; the others need not be in memory meanwhile."""
    groups: dict[tuple[str, ...], dict[Place, Diffusion]] = {}
    for place, diffusion in wanted.items():
        groups.setdefault(diffusion.matrices, {})[place] = diffusion
    return list(groups.values())


def diffused_tiles(
    operators: Operators, z: TiledMatrix, wanted: Mapping[Place, Diffusion], nodes: Ints | None
) -> dict[Place, TiledMatrix]:
    """Several diffusions of one source, tile by tile. Most views over kinds of edges are of its first columns alone."""
    tiles: dict[Place, list[Tile]] = {place: [] for place in wanted}
    low = 0
    for tile in z.tiles:
        own = {place: diffusion for place, diffusion in wanted.items() if low < NARROW or not is_narrow(diffusion)}
        for place, h in diffused(operators, tile, own, nodes).items():
            tiles[place].append(h)
        low += tile.shape[1]
    n = z.n if nodes is None else nodes.size
    return {place: TiledMatrix(n, own) for place, own in tiles.items()}
