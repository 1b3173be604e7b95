"""GPN+ written plainly with SciPy and NumPy: what `embedding` computes, as one would first write it down.

Whole matrices, one diffusion after the other, everything for all nodes, and again when it is needed again; one task
after the other. How views are weighed and how sure answers may be is the same code.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from fewnode.embedding.attributes import inverse_document_frequency, scale
from fewnode.embedding.diffusion import WALK, Diffusion
from fewnode.embedding.directions import EXACT, EXTRA, ROUNDS, Axes, normal_numbers
from fewnode.embedding.mixture import Made, MixedViews
from fewnode.embedding.practice import PracticeTasks
from fewnode.embedding.projection import ViewFusion, ViewProjection, mean_direction, sampled
from fewnode.embedding.sources import STRUCTURE, AttributeSource
from fewnode.embedding.tiles import TiledMatrix
from fewnode.embedding.views import Place
from fewnode.episodes import Task
from fewnode.graph import Attributes, Graph, Ints, is_sparse
from fewnode.methods.plus import GPNPlus
from fewnode.vectors import Floats, unit_rows

Array = NDArray[Any]


class PlainViews(MixedViews):
    """The views of a graph without weights and kinds of edges, as they are defined."""

    def diffused(
        self,
        graph: Graph,
        nodes: Ints | None = None,
        sources: Sequence[str] | None = None,
        made: Made | None = None,
    ) -> Iterator[tuple[Place, TiledMatrix]]:
        for source in self.sources_of() if sources is None else sources:
            z = self._plain_source(graph, source)
            for place, diffusion in {
                (v.source, v.name): v.diffusion for v in self.weight if v.source == source
            }.items():
                h = plain_diffusion(graph, diffusion, z)
                yield place, TiledMatrix(len(h), [h]) if nodes is None else TiledMatrix(nodes.size, [h[nodes]])

    def learned(self, graph: Graph, made: Made | None = None) -> tuple[MixedViews, dict[str, Floats], Floats]:
        some, mixture, blocks = sampled(graph.n), replace(self, projections={}, fusion=None), {}
        for side in self.sides:
            views = dict(self.diffused(graph, None, self.sources_of(side)))
            known = {place: ViewProjection.of(h[some]) for place, h in views.items()}
            whole = np.concatenate(self.side_by_side(views, known, slice(0, graph.n)), axis=1)
            fusion = plain_fusion(whole[some], self.rank)
            blocks[side] = unit_rows((whole - fusion.mean) @ fusion.projection)
            if side != STRUCTURE:
                mixture = replace(mixture, projections=known, fusion=fusion)
        return mixture, blocks, np.empty(0, np.float32)

    def joined(self, blocks: Mapping[str, Floats], z: Floats | None = None) -> Floats:
        return super().joined(blocks)

    def closeness(
        self,
        tasks: Sequence[PracticeTasks],
        projection: ViewProjection,
        h: Floats,
        ranks: Sequence[int],
    ) -> list[Floats]:
        read = [plain_reading(projection, h, rank) for rank in ranks]
        return [np.stack([each.closeness(rows) for rows in read], axis=3) for each in tasks]

    def side_by_side(
        self, views: Mapping[Place, TiledMatrix], projections: Mapping[Place, ViewProjection], rows: slice | Ints
    ) -> list[Floats]:
        return [
            tau**0.5
            * plain_reading(projections[view.source, view.name], views[view.source, view.name][rows], view.rank)
            for view, tau in self.weight.items()
            if (view.source, view.name) in views
        ]

    def _plain_source(self, graph: Graph, name: str) -> Array:
        if name != STRUCTURE:
            source = next(each for each in self.sources if each.name == name)
            z, mean = (
                np.asarray(scale(graph.x, source.axes.scaling, source.axes.idf) @ source.axes.directions),
                source.mean,
            )
        else:
            z = plain_structure(graph, self.rank // 4, self.seed)
            mean = mean_direction(z[sampled(graph.n)])
        return plain_centred(z, mean)


class PlainGPNPlus(GPNPlus):
    mixed_views = PlainViews

    def _sources(self, graph: Graph) -> list[AttributeSource]:
        words = is_sparse(graph.x)
        idf = inverse_document_frequency(graph.x) if words else None
        scaling = "log-tf-idf" if words else "l2"
        axes = Axes(scaling, plain_directions(scale(graph.x, scaling, idf), self.rank, self.seed), idf)
        z = np.asarray(scale(graph.x, scaling, idf) @ axes.directions)
        mean = mean_direction(z[sampled(graph.n)])
        kind = graph.blocks[0].kind if graph.blocks else ""
        return [AttributeSource(kind or "attributes", kind, 0, graph.n_features, axes, mean)]

    def _alike(self, tasks: Sequence[Task]) -> Iterator[list[int]]:
        return ([i] for i in range(len(tasks)))


def plain_centred(z: Floats, mean: Floats) -> Floats:
    return unit_rows(unit_rows(z) - mean) * z.any(axis=1, keepdims=True)


def plain_reading(projection: ViewProjection, h: Floats, rank: int) -> Floats:
    z = plain_centred(h, projection.mean)
    return unit_rows(z @ projection.axes * projection.stretch(rank)) if rank else z


def plain_fusion(rows: Array, rank: int) -> ViewFusion:
    """Principal axes."""
    mean = rows.mean(axis=0, dtype=np.float64)
    _, axes = np.linalg.eigh((rows - mean).T @ (rows - mean))
    return ViewFusion(mean.astype(np.float32), axes[:, -rank:].astype(np.float32))


def plain_diffusion(graph: Graph, diffusion: Diffusion, z: Array) -> Array:
    """Step by step, by a matrix that is made for it."""
    adj = sp.csr_array(graph.adj, dtype=np.float32)
    if diffusion.over == WALK:
        matrix = sp.diags_array(1 / np.maximum(graph.degree, 1)) @ adj
    else:
        root = sp.diags_array((graph.degree + 1.0) ** -0.5)
        matrix = root @ (adj + sp.eye_array(graph.n)) @ root
    matrix, h = matrix.tocsr().astype(np.float32), z
    for _ in range(diffusion.steps):
        h = (1 - diffusion.teleport) * (matrix @ h) + diffusion.teleport * z
    return np.asarray(h, np.float32)


def plain_structure(graph: Graph, rank: int, seed: int) -> Array:
    """Positive pointwise mutual information of one or two steps, and its leading directions."""
    walk = (sp.diags_array(1 / np.maximum(graph.degree, 1)) @ graph.adj.astype(np.float64)).tocsr()
    near = ((walk + walk @ walk) / 2).tocsr()
    row, column = near.sum(axis=1), near.sum(axis=0)
    found = np.log(near.data * near.sum() / (np.repeat(row, np.diff(near.indptr)) * column[near.indices]))
    ppmi = sp.csr_array((np.maximum(found, 0).astype(np.float32), near.indices, near.indptr), near.shape)
    width = min(rank + EXTRA, graph.n)
    q = np.stack([np.random.default_rng((seed, c)).standard_normal(graph.n, np.float32) for c in range(width)], axis=1)
    for _ in range(ROUNDS):
        q = np.linalg.qr(ppmi.T @ (ppmi @ q))[0]
    b = ppmi @ q
    _, vectors = np.linalg.eigh((b.T @ b).astype(np.float64))
    return np.asarray(b @ vectors[:, ::-1][:, :rank], np.float32)


def plain_directions(x: Attributes, rank: int, seed: int) -> NDArray[np.float32]:
    d = x.shape[1]
    if d <= rank:
        return np.eye(d, dtype=np.float32)
    if not is_sparse(x) and d <= EXACT:
        _, vectors = np.linalg.eigh((x.T @ x).astype(np.float64))
        return np.ascontiguousarray(vectors[:, ::-1][:, :rank], np.float32)
    q = normal_numbers((d, min(rank + EXTRA, d)), seed)
    for _ in range(ROUNDS):
        q = np.linalg.qr(x.T @ (x @ q))[0]
    b = x @ q
    _, vectors = np.linalg.eigh((b.T @ b).astype(np.float64))
    return np.asarray(q @ vectors[:, ::-1][:, :rank], np.float32)
