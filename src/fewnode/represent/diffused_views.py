"""Views of all nodes, or of some: sources, diffused in memory or from file to file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from fewnode.errors import FewnodeError
from fewnode.graph import Graph, Ints
from fewnode.machine import memory
from fewnode.represent.diffusion import Diffusion, Operators, diffused
from fewnode.represent.kinds import (
    KIND_VIEWS,
    NARROW,
    NOTHING_LEARNED,
    LearnedRelations,
    is_narrow,
    kind_views,
    operators_of,
)
from fewnode.represent.projection import centred, mean_direction, sampled
from fewnode.represent.sources import STRUCTURE, AttributeSource
from fewnode.represent.structure import structure
from fewnode.represent.tiles import IN_MEMORY, Room, Tile, TiledMatrix, row_ranges
from fewnode.represent.views import Place, View
from fewnode.represent.workspace import Workspace

Made: TypeAlias = dict[str | Place, TiledMatrix]
"""Sources by name, and views of all nodes."""


@dataclass(frozen=True, eq=False)
class DiffusedViews:
    """Which views there are, each with its weight, and what they are made from."""

    sources: tuple[AttributeSource, ...]
    weight: Mapping[View, float]
    rank: int = 256
    seed: int = 0
    relations: LearnedRelations = NOTHING_LEARNED
    workspace: Workspace | None = None
    """Files for what is larger than memory."""

    @property
    def room(self) -> Room:
        return IN_MEMORY if self.workspace is None else self.workspace

    def source(self, graph: Graph, name: str) -> TiledMatrix:
        """What is diffused: unit rows, from their mean."""
        if self.workspace is not None:
            return self.workspace.source(name, lambda: self._made(graph, name))
        return self._made(graph, name)

    def _made(self, graph: Graph, name: str) -> TiledMatrix:
        if name != STRUCTURE:
            return self._named(name).tiles(graph.x, self.room)
        read = self.relations.structure(graph)
        z = structure(read, self.structure_rank, self.seed, thorough=not self.sources, room=self.room)
        mean = mean_direction(z[sampled(graph.n)])
        for low, high in row_ranges(graph.n):
            z.put(low, centred(z[low:high], mean))
        return z

    @property
    def structure_rank(self) -> int:
        """Directions of the structure: more if there is nothing else, and it is worth more time then."""
        return self.rank // 4 if self.sources else self.rank

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
            memory.give_back()  # what the last source took
            if source not in made and (nodes is not None or own.keys() - made.keys()):
                made[source] = self.source(graph, source)
            if self.workspace is not None:
                z = made.pop(source) if nodes is None else made[source]
                yield from self.workspace.diffused(source, z, own, self.relations, nodes).items()
            elif nodes is None:
                yield from _of_all(operators, source, own, made)
            else:
                yield from _of_some(operators, source, own, nodes, made)

    @property
    def diffused_sources(self) -> list[str]:
        """Those that a view with a weight is of."""
        return list(dict.fromkeys(view.source for view in self.weight))


def _of_all(
    operators: Operators, source: str, own: Mapping[Place, Diffusion], made: Made
) -> list[tuple[Place, TiledMatrix]]:
    there = {place: made.pop(place) for place in own if place in made}
    if missing := {place: diffusion for place, diffusion in own.items() if place not in there}:
        there |= diffused_tiles(operators, made.pop(source), missing)
    made.pop(source, None)
    return [(place, there[place]) for place in own]


def _of_some(
    operators: Operators, source: str, own: Mapping[Place, Diffusion], nodes: Ints, made: Made
) -> Iterator[tuple[Place, TiledMatrix]]:
    """Views of some nodes. Those of the structure have few columns and take many steps: they are kept of all nodes."""
    kept = {place: diffusion for place, diffusion in own.items() if source == STRUCTURE and not diffusion.over}
    if kept:
        made.update(diffused_tiles(operators, made[source], kept).items())
        yield from ((place, TiledMatrix(nodes.size, [tile[nodes] for tile in made[place].tiles])) for place in kept)
    for group in _by_matrices({place: diffusion for place, diffusion in own.items() if place not in kept}):
        yield from diffused_tiles(operators, made[source], group, nodes).items()


def _by_matrices(wanted: Mapping[Place, Diffusion]) -> list[dict[Place, Diffusion]]:
    """Diffusions over the same matrices share their powers; the others need not be in memory meanwhile."""
    groups: dict[tuple[str, ...], dict[Place, Diffusion]] = {}
    for place, diffusion in wanted.items():
        groups.setdefault(diffusion.matrices, {})[place] = diffusion
    return list(groups.values())


def diffused_tiles(
    operators: Operators, z: TiledMatrix, wanted: Mapping[Place, Diffusion], nodes: Ints | None = None
) -> dict[Place, TiledMatrix]:
    """Several diffusions of one source, tile by tile. Most views over kinds of edges are of its first columns alone."""
    own: dict[Place, list[Tile]] = {place: [] for place in wanted}
    n, left, low = z.n if nodes is None else nodes.size, list(z.tiles), 0
    del z  # or no tile of a source that nobody else needs would go before the last is diffused
    while left:
        tile = left.pop(0)
        here = {place: diffusion for place, diffusion in wanted.items() if low < NARROW or not is_narrow(diffusion)}
        for place, h in diffused(operators, tile, here, nodes).items():
            own[place].append(h)
        low += tile.shape[1]
    return {place: TiledMatrix(n, tiles) for place, tiles in own.items()}
