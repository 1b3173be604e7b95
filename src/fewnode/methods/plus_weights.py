"""How much each view of GPN+ counts: the first step of a fit, on tasks of training and validation classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from fewnode.embedding.mixture import Made, MixedViews
from fewnode.embedding.practice import KindsTrial, PracticeTasks, labels, mix_weights, on_trial, stacked
from fewnode.embedding.projection import ViewProjection, sampled
from fewnode.embedding.views import Place, View
from fewnode.graph import Graph, Ints
from fewnode.vectors import Floats

KEPT = 8
"""Views of the plain union that a mix keeps at most, the heaviest, and as many over kinds of edges."""
DOUBTED = 10
"""So many known classes, or fewer, are not trusted to weigh views without the prior."""


def weighed(
    every: MixedViews,
    graph: Graph,
    practice: Sequence[PracticeTasks],
    known: Sequence[Ints],
    expected: Mapping[View, float],
    made: Made,
) -> MixedViews:
    """Views with the weights τ that practice makes of the expected ones; the heaviest `KEPT`. `made` gets sources."""
    views = list(every.weight)
    trial = KindsTrial.of(views, known, every.seed)
    closeness, projections = _looked_at(every, graph, [*practice, *trial.tasks], made)
    start = np.array([expected.get(view, 0.0) for view in views])
    penalty = 1e-4 * (1 + (DOUBTED / len(known)) ** 2)
    chosen = np.ones(len(views), bool)
    if not trial.passed(views, closeness[len(practice) :], start, penalty):
        chosen = np.array([not on_trial(view) for view in views])
    close = stacked([part[..., chosen] for part in closeness[: len(practice)]])
    tau = np.zeros(len(views))
    tau[chosen] = mix_weights(close, labels(practice), start[chosen], penalty)
    kept = _heaviest({view: weight for view, weight in zip(views, tau, strict=True) if weight >= 0.01 * tau.sum()})
    return replace(every, weight=as_saved(kept), projections=projections)


def _looked_at(
    every: MixedViews, graph: Graph, tasks: Sequence[PracticeTasks], made: Made
) -> tuple[list[Floats], dict[Place, ViewProjection]]:
    """How close queries are to classes in each view, and how each is to be read.

    Views are diffused everywhere, but read for nodes of the tasks and for a sample alone.
    """
    asked, some = np.unique(np.concatenate([each.nodes for each in tasks])), sampled(graph.n)
    nodes = np.union1d(asked, some)
    placed, rows = [each.among(asked) for each in tasks], np.searchsorted(nodes, asked)
    found: dict[Place, list[Floats]] = {}
    projections: dict[Place, ViewProjection] = {}
    for place, h in every.diffused(graph, nodes, made=made):
        projections[place] = ViewProjection.of(h[np.searchsorted(nodes, some)])
        ranks = [view.rank for view in every.weight if (view.source, view.name) == place]
        found[place] = every.closeness(placed, projections[place], h[rows], ranks)
    return [np.concatenate([found[place][i] for place in every.places], axis=3) for i in range(len(tasks))], projections


def _heaviest(weight: Mapping[View, float]) -> dict[View, float]:
    """Without the lightest views, where there are more than are kept."""
    found: dict[View, float] = {}
    for of_kinds in (False, True):
        own = {view: tau for view, tau in weight.items() if on_trial(view) == of_kinds}
        least = sorted(own.values())[-KEPT:][:1]
        found |= {view: tau for view, tau in own.items() if tau >= least[0]}
    return {view: weight[view] for view in weight if view in found}


def as_saved(weight: Mapping[View, float]) -> dict[View, float]:
    """Weights to the last bit as a file will have them."""
    return {view: float(np.float32(tau)) for view, tau in weight.items()}
