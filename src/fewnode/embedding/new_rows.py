"""z of new nodes, and of nodes whose edges or attributes have changed, without embedding all the others again.

A diffusion is h ← (1 - a) M h + a z, step after step. So the last step of a node needs its own source z and the rows of
its neighbours one step before, which are kept. What is kept of a changed node is made the same way from the step before
that: of a diffusion of two steps these are the sources, so that it is exact but for what changes farther away. Of more
steps, the rows that are kept stand for them: such a diffusion has almost come to rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from fewnode.embedding.diffusion import Diffusion
from fewnode.embedding.kinds import KIND_VIEWS, operators_of
from fewnode.embedding.mixture import MixedViews
from fewnode.embedding.projection import ViewFusion, ViewProjection
from fewnode.embedding.room import IN_MEMORY
from fewnode.embedding.tiles import TiledMatrix, row_ranges
from fewnode.embedding.views import Place, diffusions
from fewnode.engine.sparse import inverse_root
from fewnode.graph import Attributes, Graph, Ints
from fewnode.vectors import Floats

Kept: TypeAlias = str | Place
"""What is kept of every node: a source by its name, or a view one step before its last."""
BEFORE = "before "
ROUNDS = 3
"""How often changed neighbours of each other are made anew, where each depends on the others."""


def can_be_updated(mixture: MixedViews) -> bool:
    """Whether all views are over the plain union of edges: those over kinds, weights and directions are not."""
    return not any(view.name in KIND_VIEWS for view in mixture.weight)


@dataclass(frozen=True, eq=False)
class Neighbourhood:
    """Some nodes, numbered anew, and all of their neighbours behind them."""

    near: list[Ints]
    """Of each of the first nodes, its neighbours."""
    degree: Ints
    """Of all of them."""

    @property
    def closed(self) -> sp.csr_array:
        """Their rows of Â."""
        near = [np.append(others, i) for i, others in enumerate(self.near)]
        root = inverse_root(self.degree)
        return self._matrix(near, lambda row, column: root[row] * root[column])

    @property
    def walk(self) -> sp.csr_array:
        """Their rows of D^-1 A."""
        share = (1 / np.maximum(self.degree, 1)).astype(np.float32)
        return self._matrix(self.near, lambda row, column: share[row])

    def _matrix(self, near: list[Ints], value: Callable[[Ints, Ints], Floats]) -> sp.csr_array:
        counts = np.array([others.size for others in near], np.int64)
        row, column = np.repeat(np.arange(len(near)), counts), np.concatenate([np.zeros(0, np.int64), *near])
        starts = np.concatenate([[0], np.cumsum(counts)])
        return sp.csr_array((value(row, column), column, starts), (len(near), self.degree.size))


@dataclass(frozen=True, eq=False)
class StoredViews:
    """Of every node of a network, all that the rows of new nodes are made from, and how views become z."""

    mixture: MixedViews
    projections: Mapping[Place, ViewProjection]
    fusions: Mapping[str, ViewFusion]
    kept: Mapping[Kept, Floats]

    @classmethod
    def of(cls, mixture: MixedViews, graph: Graph, empty: Callable[[tuple[int, int]], Floats]) -> StoredViews:
        """Of a graph as `mixture` embeds it; `empty` makes room for what is kept."""
        operators, kept = operators_of(graph, mixture.relations), dict[Kept, Floats]()
        projections, fusions = dict[Place, ViewProjection](), dict[str, ViewFusion]()
        for side in mixture.sides:
            views: dict[Place, TiledMatrix] = {}
            for source in mixture.sources_of(side):
                own = {place: diffusions(source)[place[1]] for place in mixture.places if place[0] == source}
                earlier = {(source, BEFORE + name): _a_step_less(d) for (_, name), d in own.items() if d.steps > 1}
                z = mixture.source(graph, source)
                found = IN_MEMORY.diffused(operators, mixture.relations, source, z, {**own, **earlier})
                views |= {place: found[place] for place in own}
                kept |= {(source, name.removeprefix(BEFORE)): _whole(found[source, name], empty) for _, name in earlier}
                kept[source] = _whole(z, empty)
            known, fusions[side] = mixture.readers(side, views, graph.n)
            projections |= {place: known[place] for place in views}
        return cls(mixture, projections, fusions, kept)

    @property
    def width(self) -> int:
        return sum(fusion.projection.shape[1] for fusion in self.fusions.values())

    def said(self, x: Attributes) -> dict[Kept, Floats]:
        """The sources of nodes with these attributes: all but their place in the structure."""
        return {source.name: source.read(x) for source in self.mixture.sources if source.name in self.kept}

    def placed(self, near: Floats) -> Floats:
        """The place in the structure of a node with neighbours in these places: between them."""
        if not near.shape[0]:
            return np.zeros(near.shape[1:], np.float32)
        mean = near.mean(axis=0)
        found: Floats = mean / max(float(np.linalg.norm(mean)), 1e-12)
        return found

    def made(
        self, around: Neighbourhood, rows: Mapping[Kept, Floats], new: NDArray[np.bool_]
    ) -> tuple[dict[Kept, Floats], Floats]:
        """What is to be kept of the first nodes of a neighbourhood, and their z.

        `rows` is what is kept of all nodes in it; of nodes that are `new` there are only the sources yet.
        """
        count = len(around.near)
        matrices = {"closed": around.closed, "walk": around.walk}
        kept: dict[Kept, Floats] = {name: z[:count] for name, z in rows.items() if isinstance(name, str)}
        views: dict[Place, TiledMatrix] = {}
        for place in self.mixture.places:
            source, diffusion = rows[place[0]], diffusions(place[0])[place[1]]
            matrix, back = matrices[diffusion.matrices[0]], diffusion.teleport
            stay = matrix * np.float32(1 - back)
            home: Floats = source[:count] * np.float32(back)
            if not diffusion.steps:
                last = source[:count]
            elif diffusion.steps == 1:
                last = home + stay @ source
            else:
                before = rows[place].copy()
                if diffusion.steps == 2:
                    before[:count] = home + stay @ source
                else:
                    before[:count][new] = source[:count][new]
                    before[:count][new] = (home + stay @ before)[new]
                    for _ in range(ROUNDS):
                        before[:count] = home + stay @ before
                kept[place] = before[:count]
                last = home + stay @ before
            views[place] = TiledMatrix(count, [last])
        return kept, self._joined(views, count)

    def _joined(self, views: Mapping[Place, TiledMatrix], count: int) -> Floats:
        blocks = {}
        for side, fusion in self.fusions.items():
            own = {place: h for place, h in views.items() if place[0] in self.mixture.sources_of(side)}
            blocks[side] = fusion.read(self.mixture.side_by_side(own, self.projections, slice(0, count)))
        return self.mixture.joined(blocks)


def _a_step_less(diffusion: Diffusion) -> Diffusion:
    return diffusion._replace(steps=diffusion.steps - 1)


def _whole(matrix: TiledMatrix, empty: Callable[[tuple[int, int]], Floats]) -> Floats:
    """The matrix row by row: what is read later are a few whole rows."""
    found = empty((matrix.n, matrix.width))
    for low, high in row_ranges(matrix.n):
        found[low:high] = matrix[low:high]
    return found
