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

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from fewnode import memory
from fewnode.episodes import Described, EpisodeSampler, Task
from fewnode.errors import FewnodeError
from fewnode.graph import Graph, Ints, is_sparse
from fewnode.method import Probabilities
from fewnode.methods.plus_files import mixture_state, restored_mixture
from fewnode.recognition.calibration import MODES, CalibrationPrior, LeftOut, Temperature
from fewnode.recognition.labelled import WORTH, LabelledRows, echoed
from fewnode.recognition.membership import MembershipModel
from fewnode.recognition.nearness import split_rows
from fewnode.recognition.prototypes import PreparedSupport, Prototypical
from fewnode.recognition.ridge import SCALE, chosen_factors, class_weights, left_out, ridge_prototypes, ridge_weights
from fewnode.recognition.transductive import familiarity, rectified_prototypes, rectify
from fewnode.represent.attributes import need_differences
from fewnode.represent.kinds import LearnedRelations, kind_views
from fewnode.represent.kinds_trial import KindsTrial, on_trial
from fewnode.represent.mix import (
    QUERIES,
    TASKS,
    WAY,
    PracticeTasks,
    mix_weights,
    practice_tasks,
    stacked,
    within_class_metric,
)
from fewnode.represent.mixture import MixedViews, View, all_views
from fewnode.represent.prior import prior, prior_weights
from fewnode.represent.sources import STRUCTURE, AttributeSource, attribute_sources
from fewnode.represent.tiles import ROWS, TiledMatrix
from fewnode.represent.views import AS_IT_IS, RANKS, ViewProjection, sampled
from fewnode.represent.workspace import Place, Workspace

KEPT = 8
"""Views of the plain union that a mix keeps at most, the heaviest, and as many over kinds of edges."""
DOUBTED = 10
"""So many known classes, or fewer, are not trusted to weigh views without the prior."""
FEW = (1, 3, 5)
"""Shots of the tasks that decide whether unlabelled nodes are to be trusted."""
ECHOES = 1000
"""Descriptions whose z is remembered."""


class GPNPlus(Prototypical):
    """Mixed views, a metric learned on other classes, and ridge prototypes. The constructor only stores.

    views: `all`, `attributes` or `structure`. sharpen, metric, ridge: False takes that part out.
    """

    distance, learns_classes, kept, needs_base, reads_descriptions = "cosine", False, True, False, True
    workspace: Workspace | None = None
    """Files for what is larger than memory; None keeps everything in memory."""
    mixed_views: type[MixedViews] = MixedViews
    _echoes: tuple[Tensor, dict[bytes, Tensor]] | None = None

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

    @property
    def prior(self) -> CalibrationPrior:
        """What other networks taught about being sure, and about nodes of none of the classes."""
        tables = prior()
        temperatures = {mode: Temperature(**tables["temperature"][mode]) for mode in MODES}
        return CalibrationPrior(temperatures, MembershipModel(**tables["membership"]))

    # --- what is learned ---

    def fit(self, graph: Graph, train: EpisodeSampler, valid: EpisodeSampler) -> GPNPlus:
        """Weigh the views, then the directions within them, on tasks of training and validation classes.

        Without such classes the weights are those that other networks taught.
        """
        need_differences(graph)
        self.worth_ = WORTH
        self.membership = None  # of an earlier fit: how far unlabelled nodes are trusted must not depend on it
        practice = practice_tasks([*train.members, *valid.members], self.seed)
        made: dict[str, TiledMatrix] = {}
        mixture = self._weighed(graph, practice, [*train.members, *valid.members], made)
        memory.give_back()
        mixture, blocks = mixture.learned(graph, made)
        memory.give_back()
        if self.metric and mixture.fusion is not None and len(train.members) > 1:
            metric = within_class_metric(blocks["attributes"], train.members)
            if self._gains(mixture, blocks, metric, valid.members):
                mixture = replace(mixture, fusion=replace(mixture.fusion, metric=metric))
                for part in blocks["attributes"].split(ROWS):
                    part[:] = F.normalize(part @ metric)
        self.mixture_ = replace(mixture, workspace=None)
        z = mixture.joined(blocks)
        self._cache = (graph, z, torch.zeros(graph.n))
        del blocks
        memory.give_back()
        # of two or three classes there are no tasks as hard as those to come; views are mixed by both parts alike
        enough = valid.members if len(valid.members) >= WAY else [*train.members, *valid.members]
        self.adapts_ = not practice
        self.trust_ = True  # while it is judged
        self.trust_ = self._trust(graph, enough) if practice else True
        return self

    def _gains(
        self,
        mixture: MixedViews,
        blocks: Mapping[str, Float[Tensor, "n d"]],
        metric: Float[Tensor, "d d"],
        members: Sequence[Ints],
    ) -> bool:
        """Whether tasks of these classes are answered better with the metric."""
        gain = 0.0
        for tasks in practice_tasks(members, self.seed):
            nodes = np.unique(tasks.nodes)
            before = {side: block[torch.from_numpy(nodes)] for side, block in blocks.items()}
            after = {**before, "attributes": F.normalize(before["attributes"] @ metric)}
            own = tasks.among(nodes)
            gain += own.accuracy(mixture.joined(after)) - own.accuracy(mixture.joined(before))
        return gain > 0

    def _trust(self, graph: Graph, members: Sequence[Ints]) -> bool:
        """Whether the transductive mode may begin with expectation-maximisation.

        It must lose neither where queries are balanced over classes nor where they are long-tailed, on their tasks.
        """
        gain = {False: 0.0, True: 0.0}
        for long_tail, k_shot in itertools.product(gain, FEW):
            large = [nodes for nodes in members if nodes.size >= k_shot + QUERIES]
            if len(large) < 2:
                continue
            sampler = EpisodeSampler.among(large, min(WAY, len(large)), k_shot, QUERIES, self.seed + 1, long_tail)
            for episode in sampler.take(TASKS // 2):
                alone, together = (answer.numpy().argmax(axis=1) for answer in self._both(graph, episode.task))
                gain[long_tail] += np.mean(together == episode.query_y) - np.mean(alone == episode.query_y)
        return min(gain.values()) >= 0

    def _weighed(
        self,
        graph: Graph,
        practice: Sequence[PracticeTasks],
        known: Sequence[Ints],
        made: dict[str, TiledMatrix] | None = None,
    ) -> MixedViews:
        """The views with their weights τ: those of the prior, or what practice makes of them; the heaviest `KEPT`.

        Views are diffused everywhere, but read for the nodes of the tasks alone. `made` gets what was diffused.
        """
        if self.views not in ("all", "attributes", STRUCTURE):
            raise FewnodeError(f"views are {self.views!r}, expected all, attributes or structure")
        sources = self._sources(graph) if self.views != STRUCTURE else []
        names = [source.name for source in sources]
        names += [STRUCTURE] if self.views != "attributes" or not sources else []
        expected = prior_weights(names, kind_views(graph))
        views = all_views(names, kind_views(graph), RANKS if self.sharpen else (AS_IT_IS,))
        every = self.mixed_views(tuple(sources), dict.fromkeys(views, 1.0), self.rank, self.seed)
        every = replace(every, workspace=self.workspace, relations=LearnedRelations.of(graph, known))
        if not self.mix:
            return every
        if not practice:
            return replace(every, weight=_as_saved(expected))
        trial = KindsTrial.of(views, known, self.seed)
        tasks = [*practice, *trial.tasks]
        asked, some = np.unique(np.concatenate([each.nodes for each in tasks])), sampled(graph.n)
        nodes = np.union1d(asked, some)
        found: dict[View, list[Tensor]] = {}
        projections: dict[Place, ViewProjection] = {}
        placed, rows = [each.among(asked) for each in tasks], np.searchsorted(nodes, asked)
        for place, h in every.diffused(graph, nodes, made=made):
            projections[place] = ViewProjection.of(h[np.searchsorted(nodes, some)])
            own = [view for view in views if (view.source, view.name) == place]
            read = projections[place].read_all(h[rows], [view.rank for view in own])
            for view, z in zip(own, read, strict=True):
                found[view] = [each.closeness(z) for each in placed]
        del h, read
        memory.give_back()
        closeness = {view: found[view] for view in views}
        start, penalty = np.array([expected.get(view, 0.0) for view in views]), 1e-4 * (1 + (DOUBTED / len(known)) ** 2)
        tried = {view: close[len(practice) :] for view, close in closeness.items()}
        if not trial.passed(tried, start, penalty):
            chosen = np.array([not on_trial(view) for view in views])
            views, start = [view for view in views if not on_trial(view)], start[chosen]
        label = torch.cat([tasks.query_y.flatten() for tasks in practice])
        close = [stacked(closeness[view][: len(practice)]) for view in views]
        tau = mix_weights(torch.stack(close, dim=2), label, start, penalty)
        kept = _heaviest({view: weight for view, weight in zip(views, tau, strict=True) if weight >= 0.01 * tau.sum()})
        return replace(every, weight=_as_saved(kept), projections=projections)

    # --- what a node looks like ---

    def _sources(self, graph: Graph) -> list[AttributeSource]:
        return attribute_sources(graph, self.rank, self.seed)

    def _embed(self, graph: Graph) -> tuple[Float[Tensor, "n d"], Float[Tensor, " n"]]:
        return replace(self.mixture_, workspace=self.workspace).embed(graph), torch.zeros(graph.n)

    # --- what a task is answered with ---

    def prepare(
        self, graph: Graph, support: Ints, support_y: Ints, described: Described | None = None
    ) -> PreparedSupport:
        """β is each support node's share in its class's prototype, α of ridge regression where it is positive."""
        if not self.ridge:
            return super().prepare(graph, support, support_y, described)
        with torch.inference_mode():
            given = self._labelled(graph, Task(support, support_y, np.zeros(0, np.int64), described))
            z, weight = given.z * (factors := self._factors(given)), class_weights(given.counted)
            own = ridge_weights(z, given.label, weight)[torch.arange(given.y.numel()), given.y].clamp(min=0) + 1e-9
            beta = own / torch.zeros(given.n_way).index_add(0, given.y, own)[given.y]
            p = factors[:, None] * ridge_prototypes(z, given.label, weight)
            left = self._left_out(given, factors)
            return PreparedSupport(given.z, beta, given.means, given.shots, p, given.count, left)

    def _labelled(self, graph: Graph, task: Task) -> LabelledRows:
        rows = self.rows(graph, task.support)
        if task.described is None:
            return LabelledRows.of(rows, task.support_y)
        return LabelledRows.of(rows, task.support_y, self._said(graph, task.described), task.described.y, self.worth_)

    def _said(self, graph: Graph, described: Described) -> Float[Tensor, "m d"]:
        """z of descriptions. Each is compared with every node, so what it gave is remembered."""
        z = self.all_rows(graph)
        if self._echoes is None or self._echoes[0] is not z or len(self._echoes[1]) > ECHOES:
            self._echoes = (z, {})
        known, found = self._echoes[1], []
        for i in range(described.x.shape[0]):
            x = described.x[[i]]
            key = b"".join(part.tobytes() for part in ((x.indices, x.data) if is_sparse(x) else (x,)))
            if key not in known:
                known[key] = echoed(self.mixture_.unlinked(x, z.shape[1]), z)
            found.append(known[key])
        return torch.cat(found)

    def stands_for(self, graph: Graph, task: Task) -> Float[Tensor, "k d"]:
        return self._labelled(graph, task).z

    def _factors(self, given: LabelledRows) -> Float[Tensor, " d"]:
        """How much the columns of z count: as known classes showed, or else as the labelled nodes themselves show."""
        if not self.adapts_:
            return torch.ones(given.z.shape[1])
        nodes = given.is_node
        share, width = self.mixture_.structure_share, self.mixture_.attribute_width
        return chosen_factors(given.z[nodes], given.label[nodes], share, width)

    def left_out(self, graph: Graph, task: Task) -> LeftOut | None:
        if not self.ridge or not self.adapts_:
            return None
        with torch.inference_mode():
            given = self._labelled(graph, task)
            return self._left_out(given, self._factors(given))

    def _left_out(self, given: LabelledRows, factors: Float[Tensor, " d"]) -> LeftOut | None:
        """Base classes show how sure to be. Without them the labelled nodes do, but for those alone in their class."""
        judged = given.is_node & (given.shots[given.y] > 1)
        if not self.adapts_ or not judged.any():
            return None
        score = left_out(given.z * factors, given.label, class_weights(given.counted))
        return LeftOut(torch.softmax(SCALE * score[judged], dim=1).numpy(), given.y[judged].numpy())

    def answer(self, graph: Graph, prepared: PreparedSupport, query: Ints) -> Probabilities:
        if prepared.ridge is None:
            return super().answer(graph, prepared, query)
        with torch.inference_mode():
            return _softmax(self.rows(graph, query), prepared.ridge).numpy()

    def predict_proba(self, graph: Graph, task: Task) -> Probabilities:
        return self.predict_tasks(graph, [task])[0]

    def predict_tasks(self, graph: Graph, tasks: Sequence[Task], transductive: bool = False) -> list[Probabilities]:
        if not self.ridge:
            return super().predict_tasks(graph, tasks, transductive)
        with torch.inference_mode():
            if transductive:
                return [self._both(graph, task)[1].numpy() for task in tasks]
            return [_softmax(query, p).numpy() for _, query, p in (self._parts(graph, task) for task in tasks)]

    def _parts(self, graph: Graph, task: Task) -> tuple[LabelledRows, Float[Tensor, "q d"], Float[Tensor, "d n"]]:
        """What stands for the classes, the queries, and the prototypes, with columns as they count."""
        given = self._labelled(graph, task)
        factors = self._factors(given)
        given = replace(given, z=given.z * factors)
        p = ridge_prototypes(given.z, given.label, class_weights(given.counted))
        return given, self.rows(graph, task.query) * factors, p

    def _both(self, graph: Graph, task: Task) -> tuple[Float[Tensor, "q n"], Float[Tensor, "q n"]]:
        """Probabilities of a task's queries: each on its own, and all together."""
        given, query, p = self._parts(graph, task)
        alone = _softmax(query, p)
        share = self._share(graph, task, given, query, alone)
        if share is None:
            return alone, alone
        return alone, _softmax(query, rectified_prototypes(given.z, given.counted, query, share))

    def _share(
        self, graph: Graph, task: Task, given: LabelledRows, query: Float[Tensor, "q d"], alone: Float[Tensor, "q n"]
    ) -> Float[Tensor, "q n"] | None:
        """What each query counts in each class to begin with; None if most of them seem to be in none.

        Expectation-maximisation is the better beginning where known classes showed that it can be trusted. Else it can
        go wrong, which nobody would notice; the answers that each query gets `alone` cannot go as wrong.
        """
        crowd = None if self.membership is None else self.crowd(graph, task.query)
        if self.trust_ and not self.adapts_ and given.is_node.all():
            y, beta = given.y, 1 / given.shots[given.y]
            return rectify(given.z, beta, y, query, given.n_way, self.distance, self.membership, crowd)
        familiar = familiarity(query, given.means, given.shots, self.distance, self.membership, crowd)
        return None if familiar is None else alone * familiar

    # --- files ---

    def state(self) -> dict[str, Tensor]:
        """What `fit` learned, as named tensors."""
        modes = torch.tensor([float(self.trust_), float(self.adapts_), self.worth_])
        return {**mixture_state(self.mixture_), "modes": modes}

    def restore(self, n_features: int, state: Mapping[str, Tensor]) -> GPNPlus:
        self.mixture_ = restored_mixture(state, n_features, self.rank, self.seed)
        trust, adapts, worth = state["modes"].tolist()
        if not 0 < worth <= WORTH:
            raise ValueError(f"a description counts {worth}")
        self.trust_, self.adapts_, self.worth_ = bool(trust > 0), bool(adapts > 0), worth
        self._cache = self._echoes = None
        return self


def _heaviest(weight: Mapping[View, float]) -> dict[View, float]:
    """Without the lightest views, where there are more than are kept."""
    found: dict[View, float] = {}
    for of_kinds in (False, True):
        own = {view: tau for view, tau in weight.items() if on_trial(view) == of_kinds}
        least = sorted(own.values())[-KEPT:][:1]
        found |= {view: tau for view, tau in own.items() if tau >= least[0]}
    return {view: weight[view] for view in weight if view in found}


def _as_saved(weight: Mapping[View, float]) -> dict[View, float]:
    """Weights to the last bit as a file will have them."""
    return {view: float(np.float32(tau)) for view, tau in weight.items()}


def _softmax(z: Float[Tensor, "q d"], p: Float[Tensor, "d n"]) -> Float[Tensor, "q n"]:
    p = p.T.contiguous().T  # a product with a few columns takes a quarter of the time so
    return torch.cat([torch.softmax(SCALE * (part @ p), dim=1) for part in split_rows(z, z.shape[1])])
