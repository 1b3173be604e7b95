"""GPN+: the three parts of GPN (encoder, valuator, metric), each made as strong as few labels allow.

1. Representation. Views of a node: its attributes and its place in the structure, each diffused in several ways, each
   with its leading axes stressed more or less. What training and validation classes show to be telling is mixed:
   the likelihood of log p(c|v) ∝ Σ_m τ_m cos(z_m(v), p_m(c)) is convex in τ ≥ 0, so there is one answer.
2. Metric. The directions in which members of one class differ are played down: learned on training classes, kept
   only if validation classes gain.
3. Importance. A prototype is Σ_i α_i z_i over all support nodes with α from ridge regression: what several support
   nodes agree on counts once, and what tells a class from its rivals counts most.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from fewnode.checkpoint import need_shapes
from fewnode.episodes import EpisodeSampler, Task
from fewnode.graph import Graph, Ints
from fewnode.method import Probabilities
from fewnode.recognise.membership import crowding
from fewnode.recognise.nearness import split_rows
from fewnode.recognise.prototypes import PreparedSupport, Prototypical
from fewnode.recognise.ridge import SCALE, class_weights, ridge_prototypes, ridge_weights
from fewnode.recognise.transductive import rectified_prototypes, rectify
from fewnode.represent.attributes import SCALINGS
from fewnode.represent.diffusion import Axes, Operators, centred, mean_direction, structure
from fewnode.represent.mix import QUERIES, TASKS, WAY, PracticeTasks, mix_weights, practice_tasks, within_class_metric
from fewnode.represent.views import POWERS, VIEWS, ViewFusion, ViewProjection, read_along

KEPT = 8
"""Views that a mix keeps at most, the heaviest."""
FEW = (1, 3, 5)
"""Shots of the tasks that decide whether unlabelled nodes are to be trusted."""


class GPNPlus(Prototypical):
    """Mixed views, a metric learned on other classes, and ridge prototypes. The constructor only stores.

    views: `all`, `attributes` or `structure`. sharpen, metric, ridge: False takes that part out.
    """

    distance, learns_classes, kept = "cosine", False, True
    _where: tuple[Graph, Tensor] | None = None

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

    # --- what is learned ---

    def fit(self, graph: Graph, train: EpisodeSampler, valid: EpisodeSampler) -> GPNPlus:
        """Weigh the views, then the directions within them, on tasks of training and validation classes."""
        self.membership = None  # of an earlier fit: how far unlabelled nodes are trusted must not depend on it
        practice = practice_tasks([*train.members, *valid.members], self.seed)
        self.axes_ = read_along(graph.x, self.rank, self.seed) if graph.n_features else None
        self.mean_ = mean_direction(self._attributes(graph))
        self.weight_ = self._weigh(graph, practice)
        self.projections_: dict[str, ViewProjection] = {}
        self.fusion_: ViewFusion | None = None
        blocks = self._blocks(graph)
        if self.metric and self.fusion_ is not None:
            metric = within_class_metric(blocks["attributes"], train.members)
            after = {**blocks, "attributes": F.normalize(blocks["attributes"] @ metric)}
            before_z, after_z = self._joined(blocks), self._joined(after)
            practice = practice_tasks(valid.members, self.seed)
            if sum(tasks.accuracy(after_z) - tasks.accuracy(before_z) for tasks in practice) > 0:
                self.fusion_, blocks = replace(self.fusion_, metric=metric), after
        z = self._joined(blocks)
        self._cache = (graph, z, torch.zeros(graph.n))
        # of two or three classes there are no tasks as hard as those to come; views are mixed by both parts alike
        enough = valid.members if len(valid.members) >= WAY else [*train.members, *valid.members]
        self.trust_ = self._trust(z, enough)
        return self

    def _trust(self, z: Float[Tensor, "n d"], members: Sequence[Ints]) -> bool:
        """Whether the transductive mode may differ from the inductive one.

        It must lose neither where queries are balanced over classes nor where they are long-tailed, on their tasks.
        """
        gain = {False: 0.0, True: 0.0}
        for long_tail, k_shot in itertools.product(gain, FEW):
            large = [nodes for nodes in members if nodes.size >= k_shot + QUERIES]
            if len(large) < 2:
                continue
            sampler = EpisodeSampler.among(large, min(WAY, len(large)), k_shot, QUERIES, self.seed + 1, long_tail)
            for episode in sampler.take(TASKS // 2):
                alone, together = (self._answer(z, episode.task, mode).numpy().argmax(axis=1) for mode in (False, True))
                gain[long_tail] += np.mean(together == episode.query_y) - np.mean(alone == episode.query_y)
        return min(gain.values()) >= 0

    def _weigh(self, graph: Graph, practice: Sequence[PracticeTasks]) -> dict[tuple[str, float], float]:
        """τ of each view at each power; the heaviest `KEPT` of them."""
        nodes = np.unique(np.concatenate([tasks.nodes for tasks in practice])) if practice else np.arange(0)
        closeness: dict[tuple[str, float], Tensor] = {}
        for name, h in self._diffused(graph):
            lens, rows = ViewProjection.of(h), h[nodes]
            for power in POWERS if self.sharpen else POWERS[:1]:
                z = lens.read(rows, power)
                parts = [tasks.closeness(z, nodes).flatten(0, 1) for tasks in practice]
                closeness[name, power] = torch.cat(parts) if parts else torch.zeros(0, 2)
        label = torch.cat([tasks.query_y.flatten() for tasks in practice]) if practice else torch.zeros(0).long()
        stacked = torch.stack(list(closeness.values()), dim=2)
        tau = mix_weights(stacked, label) if self.mix and practice else np.ones(stacked.shape[2])
        least = max(0.01 * tau.sum(), np.sort(tau)[-KEPT:][0]) if self.mix else 0.0
        kept = {view: weight for view, weight in zip(closeness, tau, strict=True) if weight >= least}
        return {view: float(np.float32(weight)) for view, weight in kept.items()}  # as it is saved, to the last bit

    # --- what a node looks like ---

    def _diffused(self, graph: Graph, only: set[str] | None = None) -> Iterator[tuple[str, Float[Tensor, "n d"]]]:
        """The views of every node, one after the other: they need not be in memory together."""
        operators = Operators.of(graph)
        for source in ("attributes", "structure"):
            names = [name for name in VIEWS if name.startswith(source) and (only is None or name in only)]
            if not names or self.views not in ("all", source) or (source == "attributes" and self.axes_ is None):
                continue
            z = self._attributes(graph) if source == "attributes" else self._structure(graph)
            z = centred(z, self.mean_ if source == "attributes" else mean_direction(z))
            for name in names:
                yield name, VIEWS[name](operators, z)

    def _attributes(self, graph: Graph) -> Float[Tensor, "n d"]:
        return self.axes_.read(graph.x) if self.axes_ is not None else torch.zeros(graph.n, 1)

    def _structure(self, graph: Graph) -> Float[Tensor, "n d"]:
        """Where there are no attributes, all depends on it: then it is worth more time."""
        if self._where is None or self._where[0] is not graph:
            alone = self.axes_ is None or self.views == "structure"
            z = structure(graph, self.rank if alone else self.rank // 2, self.seed, thorough=alone)
            self._where = (graph, z)
        return self._where[1]

    def _blocks(self, graph: Graph) -> dict[str, Float[Tensor, "n d"]]:
        """Unit rows of what the attributes say and of what the structure says.

        What is learned about attributes (`projections_`, `fusion_`) holds in any network. Coordinates in the structure
        are of one network only, so theirs are made anew for each.
        """
        parts: dict[str, list[Tensor]] = {"attributes": [], "structure": []}
        for name, h in self._diffused(graph, {name for name, _ in self.weight_}):
            source = name.split(",")[0]
            lens = self.projections_.get(name) or ViewProjection.of(h)
            if source == "attributes":
                self.projections_[name] = lens
            parts[source] += [
                tau**0.5 * lens.read(h, power) for (view, power), tau in self.weight_.items() if view == name
            ]
        blocks = {}
        for source, pieces in parts.items():
            if pieces:
                e = torch.cat(pieces, dim=1)
                join = (self.fusion_ if source == "attributes" else None) or ViewFusion.of(e, self.rank)
                if source == "attributes":
                    self.fusion_ = join
                blocks[source] = join.read(e)
        return blocks

    def _joined(self, blocks: Mapping[str, Float[Tensor, "n d"]]) -> Float[Tensor, "n e"]:
        """Blocks side by side, each with its share of the weight in every product of two nodes."""
        share = {
            source: sum(tau for (name, _), tau in self.weight_.items() if name.startswith(source)) for source in blocks
        }
        return F.normalize(torch.cat([share[source] ** 0.5 * block for source, block in blocks.items()], dim=1))

    def _embed(self, graph: Graph) -> tuple[Float[Tensor, "n d"], Float[Tensor, " n"]]:
        return self._joined(self._blocks(graph)), torch.zeros(graph.n)

    # --- what a task is answered with ---

    def prepare(self, graph: Graph, support: Ints, support_y: Ints) -> PreparedSupport:
        """β is each support node's share in its class's prototype, α of ridge regression where it is positive."""
        plain = super().prepare(graph, support, support_y)
        if not self.ridge:
            return plain
        y, n_way = torch.from_numpy(support_y), plain.prototypes.shape[0]
        with torch.inference_mode():
            label = F.one_hot(y, n_way).float()
            weight = class_weights(label)
            own = ridge_weights(plain.z, label, weight)[torch.arange(y.numel()), y].clamp(min=0) + 1e-9
            beta = own / torch.zeros(n_way).index_add(0, y, own)[y]
            return replace(plain, beta=beta, ridge=ridge_prototypes(plain.z, label, weight))

    def answer(self, graph: Graph, prepared: PreparedSupport, query: Ints) -> Probabilities:
        if prepared.ridge is None:
            return super().answer(graph, prepared, query)
        with torch.inference_mode():
            return _softmax(self.rows(graph, query), prepared.ridge).numpy()

    def predict_tasks(self, graph: Graph, tasks: Sequence[Task], transductive: bool = False) -> list[Probabilities]:
        if not self.ridge:
            return super().predict_tasks(graph, tasks, transductive)
        z, _ = self.embedding(graph)
        with torch.inference_mode():
            return [self._answer(z, task, transductive and self.trust_).numpy() for task in tasks]

    def _answer(self, z: Float[Tensor, "n d"], task: Task, transductive: bool) -> Float[Tensor, "q n"]:
        """Probabilities of a task's queries: each on its own, or all together."""
        y, query = torch.from_numpy(task.support_y), z[torch.from_numpy(task.query)]
        rows, label = z[torch.from_numpy(task.support)], F.one_hot(y, task.n_way).float()
        share = None
        if transductive:
            beta, crowd = 1 / torch.bincount(y)[y], crowding(query, self.landmarks(z))
            share = rectify(rows, beta, y, query, task.n_way, self.distance, self.membership, crowd)
        if share is None:
            p = ridge_prototypes(rows, label, class_weights(label))
        else:
            p = rectified_prototypes(rows, label, query, share)
        return _softmax(query, p)

    # --- files ---

    def state(self) -> dict[str, Tensor]:
        """What `fit` learned, as named tensors."""
        tau = torch.zeros(len(VIEWS), len(POWERS))
        for (name, power), weight in self.weight_.items():
            tau[list(VIEWS).index(name), POWERS.index(power)] = weight
        found = {"tau": tau, "mean": self.mean_, "trust": torch.tensor([float(self.trust_)])}
        if self.axes_ is not None:
            found["scaling"] = torch.tensor(SCALINGS.index(self.axes_.scaling))
            found["directions"] = torch.from_numpy(self.axes_.directions)
            found["idf"] = torch.from_numpy(self.axes_.idf)
        for name, lens in self.projections_.items():
            place = list(VIEWS).index(name)
            found |= {f"{place}.mean": lens.mean, f"{place}.axes": lens.axes, f"{place}.variance": lens.variance}
        if self.fusion_ is not None:
            found |= {"join.mean": self.fusion_.mean, "join.projection": self.fusion_.projection}
            if self.fusion_.metric is not None:
                found["join.metric"] = self.fusion_.metric
        return {name: tensor.contiguous() for name, tensor in found.items()}

    def _shapes(self, n_features: int, state: Mapping[str, Tensor]) -> dict[str, tuple[int, ...]]:
        """The tensors there must be, given how many directions attributes are read along, and the lenses there are."""
        d = state["mean"].numel()
        shapes: dict[str, tuple[int, ...]] = {"tau": (len(VIEWS), len(POWERS)), "mean": (d,), "trust": (1,)}
        if n_features:
            one = state["scaling"].shape[:1] if state["scaling"].numel() == 1 else ()  # a file has no tensor of no axis
            shapes |= {"scaling": tuple(one), "directions": (n_features, d), "idf": (n_features,)}
        places = [place for place, name in enumerate(VIEWS) if f"{place}.axes" in state]
        for place in places:
            shapes |= {f"{place}.mean": (d,), f"{place}.axes": (d, d), f"{place}.variance": (d,)}
        if "join.mean" in state:
            joined = d * int((state["tau"][[name.startswith("attributes") for name in VIEWS]] > 0).sum())
            rank = state["join.projection"].shape[-1]
            shapes |= {"join.mean": (joined,), "join.projection": (joined, rank)}
            if "join.metric" in state:
                shapes["join.metric"] = (rank, rank)
        return shapes

    def restore(self, n_features: int, state: Mapping[str, Tensor]) -> GPNPlus:
        need_shapes(state, self._shapes(n_features, state))
        names = list(VIEWS)
        places = torch.nonzero(state["tau"] > 0).tolist()
        self.weight_ = {(names[i], POWERS[j]): float(state["tau"][i, j]) for i, j in places}
        self.axes_, self.mean_, self.trust_ = None, state["mean"], bool((state["trust"] > 0).any())
        if n_features:
            self.axes_ = Axes(
                SCALINGS[int(state["scaling"])], state["directions"].numpy(), state["idf"].numpy()
            ).checked(n_features)
        parts = ("mean", "axes", "variance")
        self.projections_ = {
            names[int(key.split(".")[0])]: ViewProjection(*(state[f"{key.split('.')[0]}.{part}"] for part in parts))
            for key in state
            if key.endswith(".axes")
        }
        self.fusion_ = None
        if "join.mean" in state:
            self.fusion_ = ViewFusion(state["join.mean"], state["join.projection"], state.get("join.metric"))
        self._cache = None
        return self


def _softmax(z: Float[Tensor, "q d"], p: Float[Tensor, "d n"]) -> Float[Tensor, "q n"]:
    return torch.cat([torch.softmax(SCALE * (part @ p), dim=1) for part in split_rows(z, z.shape[1])])
