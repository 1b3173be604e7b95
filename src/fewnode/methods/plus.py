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

from fewnode.episodes import Described, EpisodeSampler, Task
from fewnode.errors import FewnodeError
from fewnode.graph import Graph, Ints
from fewnode.method import Probabilities
from fewnode.methods.plus_files import mixture_state, restored_mixture
from fewnode.recognition.calibration import MODES, CalibrationPrior, Temperature
from fewnode.recognition.labelled import WORTH, LabelledRows, echoed
from fewnode.recognition.membership import MembershipModel
from fewnode.recognition.nearness import split_rows
from fewnode.recognition.prototypes import PreparedSupport, Prototypical
from fewnode.recognition.ridge import SCALE, chosen_factors, class_weights, ridge_prototypes, ridge_weights
from fewnode.recognition.transductive import familiarity, rectified_prototypes, rectify
from fewnode.represent.attributes import need_differences
from fewnode.represent.kinds import kind_views, same_class_odds
from fewnode.represent.mix import QUERIES, TASKS, WAY, PracticeTasks, mix_weights, practice_tasks, within_class_metric
from fewnode.represent.mixture import MixedViews, View, all_views
from fewnode.represent.prior import prior, prior_weights
from fewnode.represent.sources import STRUCTURE, attribute_sources
from fewnode.represent.views import AS_IT_IS, RANKS, ViewProjection

KEPT = 8
"""Views that a mix keeps at most, the heaviest."""
DOUBTED = 10
"""So many known classes, or fewer, are not trusted to weigh views without the prior."""
FEW = (1, 3, 5)
"""Shots of the tasks that decide whether unlabelled nodes are to be trusted."""


class GPNPlus(Prototypical):
    """Mixed views, a metric learned on other classes, and ridge prototypes. The constructor only stores.

    views: `all`, `attributes` or `structure`. sharpen, metric, ridge: False takes that part out.
    """

    distance, learns_classes, kept, needs_base, reads_descriptions = "cosine", False, True, False, True

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
        mixture, blocks = self._weighed(graph, practice, [*train.members, *valid.members]).learned(graph)
        if self.metric and mixture.fusion is not None and len(train.members) > 1:
            metric = within_class_metric(blocks["attributes"], train.members)
            after = {**blocks, "attributes": F.normalize(blocks["attributes"] @ metric)}
            before_z, after_z = mixture.joined(blocks), mixture.joined(after)
            judges = practice_tasks(valid.members, self.seed)
            if sum(tasks.accuracy(after_z) - tasks.accuracy(before_z) for tasks in judges) > 0:
                mixture, blocks = replace(mixture, fusion=replace(mixture.fusion, metric=metric)), after
        self.mixture_ = mixture
        z = mixture.joined(blocks)
        self._cache = (graph, z, torch.zeros(graph.n))
        # of two or three classes there are no tasks as hard as those to come; views are mixed by both parts alike
        enough = valid.members if len(valid.members) >= WAY else [*train.members, *valid.members]
        self.adapts_ = not practice
        self.trust_ = True  # while it is judged
        self.trust_ = self._trust(graph, enough) if practice else True
        return self

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
                answers = (self._answer(graph, episode.task, mode) for mode in (False, True))
                alone, together = (answer.numpy().argmax(axis=1) for answer in answers)
                gain[long_tail] += np.mean(together == episode.query_y) - np.mean(alone == episode.query_y)
        return min(gain.values()) >= 0

    def _weighed(self, graph: Graph, practice: Sequence[PracticeTasks], known: Sequence[Ints]) -> MixedViews:
        """The views with their weights τ: those of the prior, or what practice makes of them; the heaviest `KEPT`."""
        if self.views not in ("all", "attributes", STRUCTURE):
            raise FewnodeError(f"views are {self.views!r}, expected all, attributes or structure")
        sources = attribute_sources(graph, self.rank, self.seed) if self.views != STRUCTURE else []
        names = [source.name for source in sources]
        names += [STRUCTURE] if self.views != "attributes" or not sources else []
        expected = prior_weights(names, kind_views(graph))
        views = all_views(names, kind_views(graph), RANKS if self.sharpen else (AS_IT_IS,))
        every = MixedViews(tuple(sources), dict.fromkeys(views, 1.0), self.rank, self.seed)
        every = replace(every, odds=tuple(same_class_odds(graph, known)) if len(graph.relations) > 1 else ())
        if not self.mix:
            return every
        if not practice:
            return replace(every, weight=_as_saved(expected))
        nodes = np.unique(np.concatenate([tasks.nodes for tasks in practice]))
        closeness: dict[View, Tensor] = {}
        for (source, name), h in every.diffused(graph):
            projection, rows = ViewProjection.of(h), h[nodes]
            for view in views:
                if (view.source, view.name) == (source, name):
                    z = projection.read(rows, view.rank)
                    closeness[view] = torch.cat([tasks.closeness(z, nodes).flatten(0, 1) for tasks in practice])
        label = torch.cat([tasks.query_y.flatten() for tasks in practice])
        start, penalty = np.array([expected.get(view, 0.0) for view in views]), 1e-4 * (1 + (DOUBTED / len(known)) ** 2)
        tau = mix_weights(torch.stack([closeness[view] for view in views], dim=2), label, start, penalty)
        least = max(0.01 * tau.sum(), np.sort(tau)[-KEPT:][0])
        kept = {view: weight for view, weight in zip(views, tau, strict=True) if weight >= least}
        return replace(every, weight=_as_saved(kept))

    # --- what a node looks like ---

    def _embed(self, graph: Graph) -> tuple[Float[Tensor, "n d"], Float[Tensor, " n"]]:
        return self.mixture_.embed(graph), torch.zeros(graph.n)

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
            return PreparedSupport(given.z, beta, given.means, given.shots, p, given.count)

    def _labelled(self, graph: Graph, task: Task) -> LabelledRows:
        rows = self.rows(graph, task.support)
        if task.described is None:
            return LabelledRows.of(rows, task.support_y)
        said = echoed(self.mixture_.unlinked(task.described.x, rows.shape[1]), self.embedding(graph)[0])
        return LabelledRows.of(rows, task.support_y, said, task.described.y, self.worth_)

    def stands_for(self, graph: Graph, task: Task) -> Float[Tensor, "k d"]:
        return self._labelled(graph, task).z

    def _factors(self, given: LabelledRows) -> Float[Tensor, " d"]:
        """How much the columns of z count: as known classes showed, or else as the labelled nodes themselves show."""
        if not self.adapts_:
            return torch.ones(given.z.shape[1])
        nodes = given.is_node
        share, width = self.mixture_.structure_share, self.mixture_.attribute_width
        return chosen_factors(given.z[nodes], given.label[nodes], share, width)

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
            return [self._answer(graph, task, transductive).numpy() for task in tasks]

    def _answer(self, graph: Graph, task: Task, transductive: bool) -> Float[Tensor, "q n"]:
        """Probabilities of a task's queries: each on its own, or all together."""
        given = self._labelled(graph, task)
        factors = self._factors(given)
        z, query = given.z * factors, self.rows(graph, task.query) * factors
        p = ridge_prototypes(z, given.label, class_weights(given.counted))
        share = self._share(graph, task, replace(given, z=z), query, _softmax(query, p)) if transductive else None
        return _softmax(query, p if share is None else rectified_prototypes(z, given.counted, query, share))

    def _share(
        self, graph: Graph, task: Task, given: LabelledRows, query: Float[Tensor, "q d"], alone: Float[Tensor, "q n"]
    ) -> Float[Tensor, "q n"] | None:
        """What each query counts in each class to begin with; None if most of them seem to be in none.

        Expectation-maximisation is the better beginning where known classes showed that it can be trusted. Else it can
        go wrong, which nobody would notice; the answers that each query gets `alone` cannot go as wrong.
        """
        crowd = self.crowd(graph, task.query)
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
        self._cache = None
        return self


def _as_saved(weight: Mapping[View, float]) -> dict[View, float]:
    """Weights to the last bit as a file will have them."""
    return {view: float(np.float32(tau)) for view, tau in weight.items()}


def _softmax(z: Float[Tensor, "q d"], p: Float[Tensor, "d n"]) -> Float[Tensor, "q n"]:
    return torch.cat([torch.softmax(SCALE * (part @ p), dim=1) for part in split_rows(z, z.shape[1])])
