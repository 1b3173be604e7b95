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

from fewnode.embedding.diffusion import Diffusion
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

Made: TypeAlias = dict[str | Place, TiledMatrix]
"""Sources by name, and views of all nodes."""


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
        return list(dict.fromkeys((view.source, view.name) for view in self.weight))

    @property
    def diffused_sources(self) -> list[str]:
        """Those that a view with a weight is of."""
        return list(dict.fromkeys(view.source for view in self.weight))

    @property
    def sides(self) -> list[str]:
        """What the attributes say, what the structure says, or both."""
        return list(dict.fromkeys(_side(source) for source in self.diffused_sources))

    def sources_of(self, side: str) -> list[str]:
        return [each for each in self.diffused_sources if _side(each) == side]

    @property
    def structure_rank(self) -> int:
        """Directions of the structure: more if there is nothing else, and it is worth more time then."""
        return self.rank // 4 if self.sources else self.rank

    @property
    def structure_share(self) -> float:
        """The share that the structure has in a product of two nodes."""
        own = sum(tau for view, tau in self.weight.items() if view.source == STRUCTURE)
        return own / sum(self.weight.values())

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
            return self._named(name).tiles(graph.x, self.room.tiles)
        read = self.relations.structure(graph)
        z = structure(read, self.structure_rank, self.seed, thorough=not self.sources, space=self.room.tiles)
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
        made: Made | None = None,
    ) -> Iterator[tuple[Place, TiledMatrix]]:
        """The views that have a weight, one source after the other: of all nodes, or of some.

        What is there in `made` is not made again. It is kept there until views of all nodes are asked for.
        """
        made = {} if made is None else made
        wanted = {(view.source, view.name): view.diffusion for view in self.weight}
        operators = operators_of(graph, self.relations)
        if missing := [name for _, name in wanted if name in KIND_VIEWS and name not in kind_views(graph)]:
            raise FewnodeError(f"the model reads a view of edges, {missing[0]!r}, that this network does not have")
        for source in self.diffused_sources if sources is None else sources:
            own = {place: diffusion for place, diffusion in wanted.items() if place[0] == source}
            if source not in made and (nodes is not None or own.keys() - made.keys()):
                made[source] = self.source(graph, source)
            every: dict[Place, TiledMatrix] = {}
            for group in _by_matrices(own):
                # those of the structure have few columns and take many steps: they are kept of all nodes
                whole = nodes is None or (source == STRUCTURE and not next(iter(group.values())).over)
                found = {place: made.pop(place) for place in group if whole and place in made}
                if rest := {place: diffusion for place, diffusion in group.items() if place not in found}:
                    some = None if whole else nodes
                    found |= self.room.diffused(operators, self.relations, source, made[source], rest, some)
                if nodes is None:
                    every |= found
                    continue
                if whole:
                    made.update(found.items())
                    found = {place: TiledMatrix(nodes.size, [h[nodes]]) for place, h in found.items()}
                yield from found.items()
            if nodes is None:
                made.pop(source, None)
                yield from ((place, every[place]) for place in own)

    # --- learning ---

    def learned(self, graph: Graph, made: Made | None = None) -> tuple[MixedViews, dict[str, Floats], Floats]:
        """With projections and fusion of this graph, and what attributes and structure say of its nodes, in one z."""
        some, width = sampled(graph.n), {side: self._width(side, graph.n) for side in self.sides}
        z = self.room.empty((graph.n, sum(width.values())))
        blocks = dict(zip(width, np.split(z, np.cumsum(list(width.values()))[:-1], axis=1), strict=True))
        mixture, made = replace(self, projections={}, fusion=None), {} if made is None else made
        for each in made.keys() - {*self.diffused_sources, *self.places}:
            del made[each]
        for side in reversed(self.sides):  # first what is there already
            views = dict(self.diffused(graph, None, self.sources_of(side), made))
            known = {place: self.projections.get(place) or ViewProjection.of(h[some]) for place, h in views.items()}
            fusion = ViewFusion.of(self._sample(views, known, some), self.rank)
            self._fuse(views, known, fusion, blocks[side])
            views.clear()  # before those of the next side are made
            if side != STRUCTURE:
                mixture = replace(mixture, projections=known, fusion=fusion)
        return mixture, blocks, z

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

    def _read(self, place: Place, projection: ViewProjection, h: Floats) -> list[Floats]:
        """A view at each of its effective ranks, by the root of the weight: products are then weighted cosines."""
        own = {view.rank: tau for view, tau in self.weight.items() if (view.source, view.name) == place}
        views = projection.read_all(h, list(own))
        for tau, z in zip(own.values(), views, strict=True):
            z *= tau**0.5
        return views

    def side_by_side(
        self, views: Mapping[Place, TiledMatrix], projections: Mapping[Place, ViewProjection], rows: slice | Ints
    ) -> list[Floats]:
        """Rows of all views of a side."""
        return [z for place, h in views.items() for z in self._read(place, projections[place], h[rows])]

    def _sample(
        self, views: Mapping[Place, TiledMatrix], projections: Mapping[Place, ViewProjection], nodes: Ints
    ) -> Iterator[list[Floats]]:
        """The same, of these nodes, some at a time."""
        return (self.side_by_side(views, projections, nodes[low:high]) for low, high in row_ranges(nodes.size))

    def _fuse(
        self,
        views: Mapping[Place, TiledMatrix],
        projections: Mapping[Place, ViewProjection],
        fusion: ViewFusion,
        into: Floats,
    ) -> None:
        for low, high in row_ranges(len(into)):
            into[low:high] = fusion.read(self.side_by_side(views, projections, slice(low, high)))

    def blocks(self, graph: Graph) -> dict[str, Floats]:
        """Unit rows of what the attributes say and of what the structure says, as learned."""
        found = {}
        for side in self.sides:
            views = dict(self.diffused(graph, None, self.sources_of(side)))
            projections, fusion = self.readers(side, views, graph.n)
            found[side] = self.room.empty((graph.n, fusion.projection.shape[1]))
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

    def joined(self, blocks: Mapping[str, Floats], z: Floats | None = None) -> Floats:
        """Blocks side by side, each with its share of the weight in every product of two nodes; in z, if given."""
        share = {side: sum(tau for view, tau in self.weight.items() if _side(view.source) == side) for side in blocks}
        n = len(next(iter(blocks.values())))
        width = sum(block.shape[1] for block in blocks.values())
        z = self.room.empty((n, width)) if z is None else z
        for low, high in row_ranges(n):
            parts = [share[side] ** 0.5 * block[low:high] for side, block in blocks.items()]
            z[low:high] = unit_rows(np.concatenate(parts, axis=1))
        return z

    def embed(self, graph: Graph) -> Floats:
        return self.joined(self.blocks(graph))

    def unlinked(self, x: Attributes, width: int) -> Floats:
        """z of nodes that have attributes and no edges, such as a description of a class; `width` is that of z.

        Â leaves such a node as it is, the random walk leads nowhere, and the structure says nothing.
        """
        z = np.zeros((x.shape[0], width), np.float32)
        read = {source: self._named(source).read(x) for source in self.diffused_sources if source != STRUCTURE}
        if not read or self.fusion is None:
            return z
        parts = []
        for source, name in (place for place in self.places if place[0] in read):
            diffusion = diffusions(source)[name]
            h = without_edges(narrowed(read[source], diffusion), diffusion)
            parts += self._read((source, name), self.projections[source, name], h)
        z[:, : self.attribute_width] = self.joined({"attributes": self.fusion.read(parts)})
        return z


def _side(source: str) -> str:
    return STRUCTURE if source == STRUCTURE else "attributes"


def _by_matrices(wanted: Mapping[Place, Diffusion]) -> list[dict[Place, Diffusion]]:
    """Diffusions over the same matrices share their powers; the others need not be in memory meanwhile."""
    groups: dict[tuple[str, ...], dict[Place, Diffusion]] = {}
    for place, diffusion in wanted.items():
        groups.setdefault(diffusion.matrices, {})[place] = diffusion
    return list(groups.values())
