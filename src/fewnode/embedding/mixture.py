"""The representation of GPN+: views of a node, each with its weight, joined into one vector z.

The product of two nodes' z is the weighted mean of their cosines in all views, seen along the leading axes. What is
learned about attributes holds in any network. Coordinates in the structure are of one network only, so they are made
anew for each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np

from fewnode.embedding.diffusion import CLOSED, WALK
from fewnode.embedding.kinds import (
    KIND_VIEWS,
    NOTHING_LEARNED,
    LearnedRelations,
    kind_views,
    narrowed,
    operators_of,
    width_of,
    without_edges,
)
from fewnode.embedding.practice import PracticeTasks
from fewnode.embedding.projection import ViewFusion, ViewProjection, centred, mean_direction, sampled
from fewnode.embedding.room import IN_MEMORY, Room
from fewnode.embedding.sources import STRUCTURE, AttributeSource
from fewnode.embedding.structure import structure
from fewnode.embedding.tiles import TiledMatrix, row_ranges
from fewnode.embedding.views import Place, View, diffusions
from fewnode.errors import FewnodeError
from fewnode.graph import Attributes, Graph, Ints
from fewnode.vectors import Floats, unit_rows

ATTRIBUTES = "attributes"
Made: TypeAlias = dict[str | Place, TiledMatrix]
"""Sources that are there already, by name, and views of the structure."""


@dataclass(frozen=True, eq=False)
class MixedViews:
    """Which views there are, each with its weight; what they are made from; and how each is read."""

    sources: tuple[AttributeSource, ...]
    weight: Mapping[View, float]
    rank: int = 256
    seed: int = 0
    relations: LearnedRelations = NOTHING_LEARNED
    room: Room = IN_MEMORY
    projections: Mapping[Place, ViewProjection] = field(default_factory=dict)
    """Of views of attributes, by source and name."""
    fusion: ViewFusion | None = None

    @property
    def places(self) -> list[Place]:
        """The views that have a weight, whatever the rank."""
        return list(dict.fromkeys(view.place for view in self.weight))

    @property
    def sides(self) -> list[str]:
        """What the attributes say, what the structure says, or both."""
        return list(dict.fromkeys(_side(view.source) for view in self.weight))

    def sources_of(self, side: str | None = None) -> list[str]:
        """The sources of views that have a weight, of one side or of both."""
        return list(dict.fromkeys(view.source for view in self.weight if side in (None, _side(view.source))))

    @property
    def structure_rank(self) -> int:
        """Directions of the structure: more if there is nothing else, and it is worth more time then."""
        return self.rank // 4 if self.sources else self.rank

    def weight_of(self, side: str) -> float:
        return sum(tau for view, tau in self.weight.items() if _side(view.source) == side)

    @property
    def attribute_width(self) -> int:
        """How many of the first columns of z are what the attributes say."""
        return 0 if self.fusion is None else self.fusion.projection.shape[1]

    # --- sources, diffused ---

    def source(self, graph: Graph, name: str) -> TiledMatrix:
        """What is diffused: unit rows, from their mean."""
        return self.room.source(name, lambda: self._made(graph, name))

    def _made(self, graph: Graph, name: str) -> TiledMatrix:
        if name != STRUCTURE:
            own = next(source for source in self.sources if source.name == name)
            return own.tiles(graph.x, self.room.tiles)
        read = self.relations.structure(graph)
        z = structure(read, self.structure_rank, self.seed, thorough=not self.sources, space=self.room.tiles)
        mean = mean_direction(z[sampled(graph.n)])
        for low, high in row_ranges(graph.n):
            z.put(low, centred(z[low:high], mean))
        return z

    def diffused(
        self,
        graph: Graph,
        nodes: Ints | None = None,
        sources: Sequence[str] | None = None,
        made: Made | None = None,
    ) -> Iterator[tuple[Place, TiledMatrix]]:
        """The views that have a weight, of all nodes or of some, one source after the other.

        What is in `made` is not made again: sources, and views of the structure, which have few columns and take many
        steps. These are diffused for all nodes in any case, so that weighing and learning share them.
        """
        made = {} if made is None else made
        operators, kinds = operators_of(graph, self.relations), kind_views(graph)
        if missing := [name for _, name in self.places if name in KIND_VIEWS and name not in kinds]:
            raise FewnodeError(f"the model reads a view of edges, {missing[0]!r}, that this network does not have")
        for source in self.sources_of() if sources is None else sources:
            z = made[source] = made[source] if source in made else self.source(graph, source)
            own = {place: diffusions(source)[place[1]] for place in self.places if place[0] == source}
            for over in dict.fromkeys(diffusion.over for diffusion in own.values()):
                # those over the same matrices share their powers; the others need not be in memory meanwhile
                group = {place: diffusion for place, diffusion in own.items() if diffusion.over == over}
                shared = source == STRUCTURE and over in (CLOSED, WALK)
                found = {place: made[place] for place in group if place in made}
                if rest := {place: diffusion for place, diffusion in group.items() if place not in found}:
                    some = None if shared else nodes
                    found |= self.room.diffused(operators, self.relations, source, z, rest, some)
                if shared:
                    made.update(found.items())
                    if nodes is not None:
                        found = {place: TiledMatrix(nodes.size, [h[nodes]]) for place, h in found.items()}
                yield from found.items()

    # --- learning ---

    def learned(self, graph: Graph, made: Made | None = None) -> tuple[MixedViews, dict[str, Floats], Floats]:
        """With projections and fusion of this graph, and what attributes and structure say of its nodes, in one z."""
        blocks, z, readers = self._said(graph, {} if made is None else made)
        projections, fusion = readers.get(ATTRIBUTES, ({}, None))
        return replace(self, projections=projections, fusion=fusion), blocks, z

    def _said(
        self, graph: Graph, made: Made
    ) -> tuple[dict[str, Floats], Floats, dict[str, tuple[Mapping[Place, ViewProjection], ViewFusion]]]:
        """Unit rows of what each side says, in room for z; and how the views of each side were read."""
        widths, readers = [self._width(side, graph.n) for side in self.sides], {}
        z = self.room.empty((graph.n, sum(widths)))
        blocks = dict(zip(self.sides, np.split(z, np.cumsum(widths)[:-1], axis=1), strict=True))
        for side in reversed(self.sides):
            views = dict(self.diffused(graph, None, self.sources_of(side), made))
            projections, fusion = readers[side] = self.readers(side, views, graph.n)
            for low, high in row_ranges(graph.n):
                blocks[side][low:high] = fusion.read(self.side_by_side(views, projections, slice(low, high)))
            views.clear()  # before those of the next side are made
            for key in [key for key in made if _side(key if isinstance(key, str) else key[0]) == side]:
                del made[key]
        return blocks, z, readers

    def _width(self, side: str, n: int) -> int:
        """Columns that what a side says has in z."""
        width = {source.name: source.mean.size for source in self.sources} | {STRUCTURE: min(self.structure_rank, n)}
        own = [view for view in self.weight if _side(view.source) == side]
        return min(self.rank, sum(width_of(each.diffusion, width[each.source]) for each in own))

    # --- reading ---

    def closeness(
        self, tasks: Sequence[PracticeTasks], projection: ViewProjection, h: Floats, ranks: Sequence[int]
    ) -> list[Floats]:
        """How close the queries of tasks are to their classes in a view, at each of these ranks."""
        along, square = projection.along(h), np.square(np.stack([projection.stretch(rank) for rank in ranks]))
        length = np.maximum(np.sqrt(np.square(along) @ square.T), 1e-12)
        return [each.closeness_along(along, square, length) for each in tasks]

    def side_by_side(
        self, views: Mapping[Place, TiledMatrix], projections: Mapping[Place, ViewProjection], rows: slice | Ints
    ) -> list[Floats]:
        """Rows of these views at each of their effective ranks, by the root of the weight.

        Products of them are then weighted cosines.
        """
        parts = []
        for place in (place for place in self.places if place in views):
            own = {view.rank: tau for view, tau in self.weight.items() if view.place == place}
            parts += projections[place].read_all(views[place][rows], list(own))
            for z, tau in zip(parts[-len(own) :], own.values(), strict=True):
                z *= tau**0.5
        return parts

    def readers(
        self, side: str, views: Mapping[Place, TiledMatrix], n: int
    ) -> tuple[Mapping[Place, ViewProjection], ViewFusion]:
        """How the views of a side are looked at: as learned or, in the structure, as those of this graph show."""
        if side == ATTRIBUTES and self.fusion is not None:
            return self.projections, self.fusion
        some = sampled(n)
        known = {place: self.projections.get(place) or ViewProjection.of(h[some]) for place, h in views.items()}
        parts = (self.side_by_side(views, known, some[low:high]) for low, high in row_ranges(some.size))
        return known, ViewFusion.of(parts, self.rank)

    def joined(self, blocks: Mapping[str, Floats], z: Floats | None = None) -> Floats:
        """Blocks side by side, each with its share of the weight in every product of two nodes; in z, if given."""
        n = len(next(iter(blocks.values())))
        z = np.empty((n, sum(block.shape[1] for block in blocks.values())), np.float32) if z is None else z
        for low, high in row_ranges(n):
            parts = [self.weight_of(side) ** 0.5 * block[low:high] for side, block in blocks.items()]
            z[low:high] = unit_rows(np.concatenate(parts, axis=1))
        return z

    def embed(self, graph: Graph) -> Floats:
        blocks, z, _ = self._said(graph, {})
        return self.joined(blocks, z)

    def unlinked(self, x: Attributes, width: int) -> Floats:
        """z of nodes that have attributes and no edges, such as a description of a class; `width` is that of z.

        Â leaves such a node as it is, the random walk leads nowhere, and the structure says nothing.
        """
        z = np.zeros((x.shape[0], width), np.float32)
        views: dict[Place, TiledMatrix] = {}
        for source in self.sources:
            read = source.read(x)
            for place in (place for place in self.places if place[0] == source.name):
                diffusion = diffusions(source.name)[place[1]]
                views[place] = TiledMatrix(x.shape[0], [without_edges(narrowed(read, diffusion), diffusion)])
        if self.fusion is not None:
            said = self.fusion.read(self.side_by_side(views, self.projections, slice(0, x.shape[0])))
            z[:, : self.attribute_width] = self.joined({ATTRIBUTES: said})
        return z


def _side(source: str) -> str:
    return STRUCTURE if source == STRUCTURE else ATTRIBUTES
