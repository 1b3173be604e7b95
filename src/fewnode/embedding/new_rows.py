"""z of new nodes, without embedding all the others again.

A diffusion is h ← (1 - a) M h + a z, step after step. So the last step of a node needs its own source z and the rows of
its neighbours one step before, which are kept. What is kept of a new node is made the same way from the step before
that: of a diffusion of two steps these are the sources, so that it is exact but for what changes farther away. Of more
steps, the rows that are kept stand for them: such a diffusion has almost come to rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np
import scipy.sparse as sp

from fewnode.embedding.diffusion import Diffusion
from fewnode.embedding.kinds import KIND_VIEWS, both_ways, operators_of
from fewnode.embedding.mixture import MixedViews
from fewnode.embedding.projection import ViewFusion, ViewProjection
from fewnode.embedding.room import IN_MEMORY
from fewnode.embedding.sources import STRUCTURE
from fewnode.embedding.tiles import TiledMatrix, row_ranges
from fewnode.embedding.views import Place, diffusions
from fewnode.engine.sparse import inverse_root
from fewnode.graph import Graph, Ints
from fewnode.vectors import Floats, unit_rows

Kept: TypeAlias = str | Place
"""What is kept of every node: a source by its name, or a view one step before its last."""
BEFORE = "before "
ROUNDS = 4
"""How often new nodes are made anew, where neighbours depend on each other."""


def can_be_extended(mixture: MixedViews) -> bool:
    """Whether all views are over the plain union of edges: those over kinds, weights and directions are not."""
    return not any(view.name in KIND_VIEWS for view in mixture.weight)


@dataclass(frozen=True, eq=False)
class StoredViews:
    """Of every node of a network, all that the rows of new nodes are made from, and how views become z."""

    mixture: MixedViews
    projections: Mapping[Place, ViewProjection]
    fusions: Mapping[str, ViewFusion]
    kept: Mapping[Kept, Floats]
    later: Mapping[Kept, Floats] = field(default_factory=dict)
    """Rows of nodes that came since."""

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

    def extended(self, graph: Graph, old: int) -> tuple[StoredViews, Floats]:
        """What is stored when the nodes of a graph from `old` on have come, and their z; all others keep theirs."""
        x, graph, new = graph.x[old:], both_ways(graph), np.arange(old, graph.n)
        count, edges = new.size, graph.adj[new]
        every = np.concatenate([new, np.setdiff1d(edges.indices, new)])  # the new nodes, and their neighbours
        place = np.zeros(graph.n, np.int64)
        place[every] = np.arange(every.size)
        near = sp.csr_array((np.ones(edges.nnz, np.float32), place[edges.indices], edges.indptr), (count, every.size))
        rows = {name: self._rows(name, every) for name in self.kept}
        for said in self.mixture.sources:
            if said.name in rows:
                rows[said.name][:count] = said.read(x)
        if STRUCTURE in rows:  # between the neighbours that have a place
            rows[STRUCTURE][:count] = unit_rows(near[:, count:] @ rows[STRUCTURE][count:])
        root, share = inverse_root(graph.degree[every]), 1 / np.maximum(graph.degree[new], 1)
        itself = sp.eye_array(count, every.size, dtype=np.float32)
        closed = sp.diags_array(root[:count]) @ (near + itself) @ sp.diags_array(root)
        matrices = {"closed": closed.tocsr(), "walk": (sp.diags_array(share.astype(np.float32)) @ near).tocsr()}
        kept: dict[Kept, Floats] = {name: z[:count] for name, z in rows.items() if isinstance(name, str)}
        views: dict[Place, TiledMatrix] = {}
        for view in self.mixture.places:
            source, diffusion = rows[view[0]], diffusions(view[0])[view[1]]
            home: Floats = source[:count] * np.float32(diffusion.teleport)
            stay = matrices[diffusion.over[0]] * np.float32(1 - diffusion.teleport)
            if diffusion.steps > 1:
                before = rows[view]
                before[:count] = source[:count]
                for _ in range(1 if diffusion.steps == 2 else ROUNDS):
                    before[:count] = home + stay @ (source if diffusion.steps == 2 else before)
                kept[view] = before[:count].copy()
                last = home + stay @ before
            else:
                last = home + stay @ source if diffusion.steps else source[:count]
            views[view] = TiledMatrix(count, [last])
        later = {name: np.concatenate([self.later.get(name, z[:0]), z]) for name, z in kept.items()}
        return replace(self, later=later), self._joined(views, count)

    def _rows(self, name: Kept, nodes: Ints) -> Floats:
        """What is stored of these nodes; of those that are not known yet, anything."""
        first, later = self.kept[name], self.later.get(name, self.kept[name][:1])
        rows: Floats = first[np.minimum(nodes, len(first) - 1)]
        late = nodes >= len(first)
        rows[late] = later[np.minimum(nodes[late] - len(first), len(later) - 1)]
        return rows

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
