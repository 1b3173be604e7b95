"""GPN+: the three parts of GPN (encoder, valuator, metric), each made as strong as few labels allow.

1. Representation. Views of a node: its attributes and its place in the structure, each diffused in several ways, each
   with its leading axes stressed more or less. How much each counts is known from other networks (a prior), and what
   training and validation classes show takes over: the likelihood of log p(c|v) ∝ Σ_m τ_m cos(z_m(v), p_m(c)) is
   convex in τ ≥ 0, so there is one answer.
2. Metric. The directions in which members of one class differ are played down: learned on training classes, kept
   only if validation classes gain.
3. Importance. A prototype is Σ_i α_i z_i over all support nodes with α from ridge regression: what several support
   nodes agree on counts once, and what tells a class from its rivals counts most.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewnode._system import memory
from fewnode.embedding.attributes import need_differences
from fewnode.embedding.kinds import BY_WEIGHT, LearnedRelations, kind_views
from fewnode.embedding.mixture import Made, MixedViews
from fewnode.embedding.practice import (
    QUERIES,
    TASKS,
    WAY,
    PracticeTasks,
    gains,
    on_trial,
    practice_tasks,
    tasks_weights,
    trial_tasks,
)
from fewnode.embedding.projection import AS_IT_IS, ViewProjection, sampled, within_class_metric
from fewnode.embedding.room import IN_MEMORY, Room
from fewnode.embedding.sources import STRUCTURE, AttributeSource, attribute_sources
from fewnode.embedding.tiles import row_ranges
from fewnode.embedding.views import RANKS, Place, View, all_views, prior, prior_weights
from fewnode.episodes import TaskSampler
from fewnode.errors import FewnodeError
from fewnode.graph import Attributes, Graph, Ints
from fewnode.methods.plus_files import mixture_state, restored_mixture
from fewnode.recognition.calibration import MODES, CalibrationPrior, MembershipModel, Temperature
from fewnode.recognition.space import Head, Space
from fewnode.vectors import Embedding, Floats, unit_rows

KEPT = 8
"""Views of the plain union that a mix keeps at most, the heaviest, and as many over kinds of edges."""
DOUBTED = 10
"""So many known classes, or fewer, are not trusted to weigh views without the prior."""
FEW = (1, 3, 5)
"""Shots of the tasks that decide whether unlabelled nodes are to be trusted."""


class GPNPlus:
    """Mixed views, a metric learned on other classes, and ridge prototypes. The constructor only stores.

    views: `all`, `attributes` or `structure`. sharpen, metric, ridge: False takes that part out.
    """

    needs_base = False
    room: Room = IN_MEMORY
    """Files for what is larger than memory."""
    mixed_views: type[MixedViews] = MixedViews

    def __init__(
        self,
        views: str = "all",
        mix: bool = True,
        sharpen: bool = True,
        metric: bool = True,
        ridge: bool = True,
        rank: int = 256,
        seed: int = 0,
    ) -> None:
        self.views, self.mix, self.sharpen, self.metric, self.ridge = views, mix, sharpen, metric, ridge
        self.rank, self.seed = rank, seed

    def head(self) -> Head:
        """Ridge regression on cosines; how sure to be is what other networks taught, until this one has."""
        tables = prior()
        temperatures = {mode: Temperature(**tables["temperature"][mode]) for mode in MODES}
        taught = CalibrationPrior(temperatures, MembershipModel(**tables["membership"]))
        return Head(ridge=self.ridge, adapts=self.adapts_, trust=self.trust_, crowds=True, prior=taught)

    # --- what is learned ---

    def fit(self, graph: Graph, train: TaskSampler, valid: TaskSampler) -> GPNPlus:
        self.fit_embedding(graph, train, valid)
        return self

    def fit_embedding(self, graph: Graph, train: TaskSampler, valid: TaskSampler) -> Embedding:
        """Weigh the views, then the directions within them, on tasks of training and validation classes.

        Without such classes the weights are those that other networks taught. Returns z of this graph.
        """
        need_differences(graph)
        practice = practice_tasks([*train.members, *valid.members], self.seed)
        made: Made = {}
        mixture = self._weighed(graph, practice, [*train.members, *valid.members], made)
        mixture, blocks, z = mixture.learned(graph, made)
        if self.metric and mixture.fusion is not None and len(train.members) > 1:
            metric = within_class_metric(blocks["attributes"], train.members)
            if self._gains(mixture, blocks, metric, valid.members):
                mixture = replace(mixture, fusion=replace(mixture.fusion, metric=metric))
                for low, high in row_ranges(graph.n):
                    blocks["attributes"][low:high] = unit_rows(blocks["attributes"][low:high] @ metric)
        self.mixture_ = replace(mixture, room=IN_MEMORY)
        embedding = self._as_value(mixture.joined(blocks, z))
        # of two or three classes there are no tasks as hard as those to come; views are mixed by both parts alike
        enough = valid.members if len(valid.members) >= WAY else [*train.members, *valid.members]
        self.adapts_, self.trust_ = not practice, True
        if practice:
            self.trust_ = self._trust(Space(embedding, self.head()), enough)
        return embedding

    def _gains(
        self, mixture: MixedViews, blocks: Mapping[str, Floats], metric: Floats, members: Sequence[Ints]
    ) -> bool:
        """Whether tasks of these classes are answered better with the metric."""
        gain = 0.0
        for tasks in practice_tasks(members, self.seed):
            nodes = np.unique(tasks.nodes)
            before = {side: memory.taken(block, nodes) for side, block in blocks.items()}
            after = {**before, "attributes": unit_rows(before["attributes"] @ metric)}
            own = tasks.among(nodes)
            gain += own.accuracy(mixture.joined(after)) - own.accuracy(mixture.joined(before))
        return gain > 0

    def _trust(self, space: Space, members: Sequence[Ints]) -> bool:
        """Whether the transductive mode may begin with expectation-maximisation.

        It must lose neither where queries are balanced over classes nor where they are long-tailed, on their tasks.
        """
        gain = {False: 0.0, True: 0.0}
        for long_tail, k_shot in itertools.product(gain, FEW):
            large = [nodes for nodes in members if nodes.size >= k_shot + QUERIES]
            if len(large) < 2:
                continue
            sampler = TaskSampler(large, min(WAY, len(large)), k_shot, QUERIES, self.seed + 1, long_tail)
            episodes = sampler.take(TASKS // 2)
            tasks = [episode.task for episode in episodes]
            for mode, sign in ((False, -1), (True, 1)):
                answers = space.answer_tasks(tasks, mode)
                right = [np.mean(p.argmax(axis=1) == e.query_y) for p, e in zip(answers, episodes, strict=True)]
                gain[long_tail] += sign * float(np.sum(right))
        return min(gain.values()) >= 0

    def _weighed(
        self, graph: Graph, practice: Sequence[PracticeTasks], known: Sequence[Ints], made: Made
    ) -> MixedViews:
        """The views with their weights τ: those of the prior, or what practice makes of them.

        `made` gets the sources that were made on the way.
        """
        if self.views not in ("all", "attributes", STRUCTURE):
            raise FewnodeError(f"views are {self.views!r}, expected all, attributes or structure")
        sources = self._sources(graph) if self.views != STRUCTURE else []
        names = [source.name for source in sources]
        names += [STRUCTURE] if self.views != "attributes" or not sources else []
        expected = prior_weights(names, kind_views(graph))
        views = all_views(names, kind_views(graph), RANKS if self.sharpen else (AS_IT_IS,))
        relations = LearnedRelations.of(graph, known)
        weight = dict.fromkeys(views, 1.0)
        every = self.mixed_views(tuple(sources), weight, self.rank, self.seed, relations, self.room)
        if not self.mix:
            return every
        projections: Mapping[Place, ViewProjection] = {}
        if practice:
            expected, projections = weigh(every, graph, practice, known, expected, made)
        saved = {view: float(np.float32(tau)) for view, tau in expected.items()}  # to the last bit as in a file
        return replace(every, weight=saved, projections=projections)

    # --- what a node looks like ---

    def _sources(self, graph: Graph) -> list[AttributeSource]:
        return attribute_sources(graph, self.rank, self.seed)

    def embed(self, graph: Graph) -> Embedding:
        return self._as_value(replace(self.mixture_, room=self.room).embed(graph))

    def _as_value(self, z: Floats) -> Embedding:
        mixture = self.mixture_
        share = mixture.weight_of(STRUCTURE) / sum(mixture.weight.values())
        return Embedding.of(z, None, mixture.attribute_width, float(np.float32(share)))  # as a file will have it

    def unused_kinds(self, graph: Graph) -> list[str]:
        """What it learned to leave out of what the edges of this graph say."""
        if not set(kind_views(graph)) - set(BY_WEIGHT) or any(map(on_trial, self.mixture_.weight)):
            return []
        return ["kinds and directions of edges, by which known classes did not gain"]

    def unlinked(self, x: Attributes, width: int) -> Floats:
        """z of nodes that have attributes and no edges, such as the description of a class; `width` is that of z."""
        return self.mixture_.unlinked(x, width)

    # --- files ---

    def state(self) -> dict[str, NDArray[Any]]:
        """What `fit` learned, as named arrays."""
        return {**mixture_state(self.mixture_), "modes": np.array([self.trust_, self.adapts_], np.float32)}

    def restore(self, n_features: int, state: Mapping[str, NDArray[Any]]) -> GPNPlus:
        self.mixture_ = restored_mixture(state, n_features, self.rank, self.seed)
        self.trust_, self.adapts_ = (bool(number > 0) for number in state["modes"].tolist())
        return self


# --- how much each view counts --------------------------------------------------------------------------------------


def weigh(
    every: MixedViews,
    graph: Graph,
    practice: Sequence[PracticeTasks],
    known: Sequence[Ints],
    expected: Mapping[View, float],
    made: Made,
) -> tuple[dict[View, float], dict[Place, ViewProjection]]:
    """The weights τ that practice makes of the expected ones, of the heaviest `KEPT`; and how each view is read.

    Views are diffused everywhere, but read for nodes of the tasks and for a sample alone.
    """
    views, penalty = list(every.weight), 1e-4 * (1 + (DOUBTED / len(known)) ** 2)
    halves = trial_tasks(views, known, every.seed)
    tasks = [*practice, *itertools.chain(*halves)]
    asked, some = np.unique(np.concatenate([each.nodes for each in tasks])), sampled(graph.n)
    nodes = np.union1d(asked, some)
    placed, rows = [each.among(asked) for each in tasks], np.searchsorted(nodes, asked)
    closeness: dict[Place, list[Floats]] = {}
    projections: dict[Place, ViewProjection] = {}
    for place, h in every.diffused(graph, None if nodes.size == graph.n else nodes, made=made):
        projections[place] = ViewProjection.of(h[np.searchsorted(nodes, some)])
        ranks = [view.rank for view in views if view.place == place]
        closeness[place] = every.closeness(placed, projections[place], h[rows], ranks)
    close = [np.concatenate([closeness[place][i] for place in every.places], axis=3) for i in range(len(tasks))]
    start, plain = np.array([expected.get(view, 0.0) for view in views]), ~np.array([on_trial(view) for view in views])
    chosen = plain | gains(halves, close[len(practice) :], plain, start, penalty)
    tau = tasks_weights(practice, close[: len(practice)], chosen, start, penalty)
    found = {view: weight for view, weight in zip(views, tau.tolist(), strict=True) if weight >= 0.01 * tau.sum()}
    for kind in (False, True):  # so many of the plain union, and as many over kinds of edges
        own = sorted((weight for view, weight in found.items() if on_trial(view) == kind), reverse=True)
        least = own[:KEPT][-1] if own else 0.0
        found = {view: weight for view, weight in found.items() if on_trial(view) != kind or weight >= least}
    return found, projections
