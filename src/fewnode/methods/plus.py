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
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from fewnode.attributes import SCALINGS
from fewnode.checkpoint import need_shapes
from fewnode.episodes import EpisodeSampler, Task
from fewnode.evaluation import Probabilities
from fewnode.graph import Attributes, Graph, Ints, is_sparse
from fewnode.methods.diffusion import Axes, Diffusion, Operators, centred, mean_direction, structure
from fewnode.methods.gpn import Prototypical, Ready, chunks, rectify

VIEWS: dict[str, Diffusion] = {
    "attributes": Diffusion(0),
    "attributes, two steps": Diffusion(2),
    "attributes, near": Diffusion(6, 0.5),
    "attributes, far": Diffusion(10, 0.15),
    "attributes, neighbours' neighbours": Diffusion(2, walk=True),
    "structure": Diffusion(0),
    "structure, near": Diffusion(10, 0.15),
    "structure, far": Diffusion(20, 0.05, walk=True),
    "structure, farther": Diffusion(40, 0.02, walk=True),
}
POWERS = (0.0, 0.2, 0.4)
"""An axis of a view is stretched by its variance to this power: the more, the less the small axes count."""
SHOTS, QUERIES, TASKS, WAY = (1, 5), 5, 150, 5
"""The tasks of training and validation classes that weights are learned from: shots, queries a class, how many."""
KEPT = 8
"""Views that a mix keeps at most, the heaviest."""
RIDGE, SCALE = 1.0, 15.0
"""Regularisation of the prototypes, and what their scores are multiplied by before the softmax."""
QUERY_WEIGHT, MEAN_WEIGHT, ROUNDS = 0.1, 5.0, 3
"""The transductive mode: what an unlabelled node and a class mean weigh, where a labelled node weighs 1; turns."""
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
        self.known = None  # of an earlier fit: how far unlabelled nodes are trusted must not depend on it
        practice = _practice([*train.members, *valid.members], self.seed)
        self.axes_ = read_along(graph.x, self.rank, self.seed) if graph.n_features else None
        self.mean_ = mean_direction(self._attributes(graph))
        self.weight_ = self._weigh(graph, practice)
        self.lenses_: dict[str, Lens] = {}
        self.join_: Join | None = None
        blocks = self._blocks(graph)
        if self.metric and self.join_ is not None:
            metric = within_class_metric(blocks["attributes"], train.members)
            after = {**blocks, "attributes": F.normalize(blocks["attributes"] @ metric)}
            before_z, after_z = self._joined(blocks), self._joined(after)
            practice = _practice(valid.members, self.seed)
            if sum(tasks.accuracy(after_z) - tasks.accuracy(before_z) for tasks in practice) > 0:
                self.join_, blocks = replace(self.join_, metric=metric), after
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

    def _weigh(self, graph: Graph, practice: Sequence[Tasks]) -> dict[tuple[str, float], float]:
        """τ of each view at each power; the heaviest `KEPT` of them."""
        nodes = np.unique(np.concatenate([tasks.nodes for tasks in practice])) if practice else np.arange(0)
        closeness: dict[tuple[str, float], Tensor] = {}
        for name, h in self._diffused(graph):
            lens, rows = Lens.of(h), h[nodes]
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

        What is learned about attributes (`lenses_`, `join_`) holds in any network. Coordinates in the structure are
        of one network only, so theirs are made anew for each.
        """
        parts: dict[str, list[Tensor]] = {"attributes": [], "structure": []}
        for name, h in self._diffused(graph, {name for name, _ in self.weight_}):
            source = name.split(",")[0]
            lens = self.lenses_.get(name) or Lens.of(h)
            if source == "attributes":
                self.lenses_[name] = lens
            parts[source] += [
                tau**0.5 * lens.read(h, power) for (view, power), tau in self.weight_.items() if view == name
            ]
        blocks = {}
        for source, pieces in parts.items():
            if pieces:
                e = torch.cat(pieces, dim=1)
                join = (self.join_ if source == "attributes" else None) or Join.of(e, self.rank)
                if source == "attributes":
                    self.join_ = join
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

    def ready(self, graph: Graph, support: Ints, support_y: Ints) -> Ready:
        """β is each support node's share in its class's prototype, α of ridge regression where it is positive."""
        plain = super().ready(graph, support, support_y)
        if not self.ridge:
            return plain
        y, n_way = torch.from_numpy(support_y), plain.prototypes.shape[0]
        with torch.inference_mode():
            label = F.one_hot(y, n_way).float()
            weight = class_weights(label)
            own = ridge_weights(plain.z, label, weight)[torch.arange(y.numel()), y].clamp(min=0) + 1e-9
            beta = own / torch.zeros(n_way).index_add(0, y, own)[y]
            return replace(plain, beta=beta, ridge=ridge_prototypes(plain.z, label, weight))

    def answer(self, graph: Graph, ready: Ready, query: Ints) -> Probabilities:
        if ready.ridge is None:
            return super().answer(graph, ready, query)
        z, asked = self._asked(graph, query)
        with torch.inference_mode():
            return _softmax(z, asked, ready.ridge).numpy()

    def predict_tasks(self, graph: Graph, tasks: Sequence[Task], transductive: bool = False) -> list[Probabilities]:
        if not self.ridge:
            return super().predict_tasks(graph, tasks, transductive)
        z, _ = self.embedding(graph)
        with torch.inference_mode():
            return [self._answer(z, task, transductive and self.trust_).numpy() for task in tasks]

    def _answer(self, z: Float[Tensor, "n d"], task: Task, transductive: bool) -> Float[Tensor, "q n"]:
        """Probabilities of a task's queries: each on its own, or all together."""
        y, query = torch.from_numpy(task.support_y), torch.from_numpy(task.query)
        rows, label = z[torch.from_numpy(task.support)], F.one_hot(y, task.n_way).float()
        share = None
        if transductive:
            beta, crowd = 1 / torch.bincount(y)[y], self.crowding(z, query)
            share = rectify(rows, beta, y, z[query], task.n_way, self.distance, self.known, crowd)
        if share is None:
            p = ridge_prototypes(rows, label, class_weights(label))
        else:
            p = rectified_prototypes(rows, label, z[query], share)
        return _softmax(z, query, p)

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
        for name, lens in self.lenses_.items():
            place = list(VIEWS).index(name)
            found |= {f"{place}.mean": lens.mean, f"{place}.axes": lens.axes, f"{place}.variance": lens.variance}
        if self.join_ is not None:
            found |= {"join.mean": self.join_.mean, "join.projection": self.join_.projection}
            if self.join_.metric is not None:
                found["join.metric"] = self.join_.metric
        return {name: tensor.contiguous() for name, tensor in found.items()}

    def _shapes(self, n_features: int, state: Mapping[str, Tensor]) -> dict[str, tuple[int, ...]]:
        """The tensors there must be, given how many directions attributes are read along, and the lenses there are."""
        d = state["mean"].numel()
        trusts = min(max(state["trust"].numel(), 1), 3)  # older files have one for each of several numbers of shots
        shapes: dict[str, tuple[int, ...]] = {"tau": (len(VIEWS), len(POWERS)), "mean": (d,), "trust": (trusts,)}
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
        self.lenses_ = {
            names[int(key.split(".")[0])]: Lens(*(state[f"{key.split('.')[0]}.{part}"] for part in parts))
            for key in state
            if key.endswith(".axes")
        }
        self.join_ = None
        if "join.mean" in state:
            self.join_ = Join(state["join.mean"], state["join.projection"], state.get("join.metric"))
        self._cache = None
        return self


def _softmax(z: Float[Tensor, "n d"], query: Int[Tensor, " q"], p: Float[Tensor, "d n"]) -> Float[Tensor, "q n"]:
    return torch.cat([torch.softmax(SCALE * (z[part] @ p), dim=1) for part in chunks(query, 1, z.shape[1])])


# --- a view, and views joined ---------------------------------------------------------------------------------------


def read_along(x: Attributes, rank: int, seed: int) -> Axes:
    """Counts and flags as logarithmic tf-idf; numbers that are hardly ever zero in units of their deviation."""
    filled = np.count_nonzero(x.data if is_sparse(x) else x) / max(1, x.shape[0] * x.shape[1])
    if is_sparse(x) or filled < 0.5:
        return Axes.of(x, "log-tf-idf", rank, seed)
    deviation = x.std(axis=0, dtype=np.float64)
    return Axes.of(x, "tf-idf", rank, seed, (1 / np.where(deviation > 0, deviation, 1)).astype(np.float32))


@dataclass(frozen=True, eq=False)
class Lens:
    """How a view is looked at: from its mean, along its principal axes."""

    mean: Float[Tensor, " d"]
    axes: Float[Tensor, "d d"]
    variance: Float[Tensor, " d"]
    """Of each axis, as a share of the largest."""

    @classmethod
    def of(cls, h: Float[Tensor, "n d"]) -> Lens:
        mean = mean_direction(h)
        variance, axes = principal_axes(centred(h, mean))
        return cls(mean, axes.float(), (variance / variance.max().clamp(min=1e-30)).clamp(min=1e-4).float())

    def read(self, h: Float[Tensor, "k d"], power: float) -> Float[Tensor, "k d"]:
        z = centred(h, self.mean)
        return z if power == 0 else F.normalize(z @ (self.axes * self.variance**power))


@dataclass(frozen=True, eq=False)
class Join:
    """Several views side by side, seen along their common leading axes."""

    mean: Float[Tensor, " e"]
    projection: Float[Tensor, "e d"]
    metric: Float[Tensor, "d d"] | None = None

    @classmethod
    def of(cls, e: Float[Tensor, "n e"], rank: int) -> Join:
        mean = e.mean(dim=0)
        _, axes = principal_axes(e - mean)
        return cls(mean, axes[:, -rank:].float())

    def read(self, e: Float[Tensor, "n e"]) -> Float[Tensor, "n d"]:
        z = F.normalize((e - self.mean) @ self.projection)
        return z if self.metric is None else F.normalize(z @ self.metric)


def principal_axes(z: Float[Tensor, "n d"], rows: int = 12_000) -> tuple[Tensor, Tensor]:
    """Variances and axes (columns), ascending, of at most so many rows, taken at equal distances."""
    part = z[:: max(1, z.shape[0] // rows)]
    variance, axes = torch.linalg.eigh((part.T @ part / max(1, part.shape[0])).double())
    return variance, axes


# --- weights of views ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Tasks:
    """Tasks of one shape, as arrays: support is tasks x N x K, query and its labels are tasks x (N M)."""

    support: Ints
    query: Ints
    query_y: Int[Tensor, "t q"]

    @classmethod
    def of(cls, sampler: EpisodeSampler, count: int) -> Tasks:
        tasks = sampler.take(count)
        support = np.stack([task.support for task in tasks]).reshape(count, sampler.n_way, sampler.k_shot)
        label = torch.from_numpy(np.stack([task.query_y for task in tasks]))
        return cls(support, np.stack([task.query for task in tasks]), label)

    @property
    def nodes(self) -> Ints:
        return np.concatenate([self.support.ravel(), self.query.ravel()])

    def closeness(self, z: Float[Tensor, "k d"], nodes: Ints) -> Float[Tensor, "t q n"]:
        """Cosine of each query node to each class mean; row i of z is node nodes[i], and nodes are sorted."""
        support, query = (torch.from_numpy(np.searchsorted(nodes, part)) for part in (self.support, self.query))
        p = F.normalize(z[support].mean(dim=2), dim=2)
        return torch.einsum("tqd,tnd->tqn", z[query], p)

    def accuracy(self, z: Float[Tensor, "n d"]) -> float:
        found = self.closeness(z, np.arange(z.shape[0])).argmax(dim=2)
        return float((found == self.query_y).float().mean())


def _practice(members: Sequence[Ints], seed: int) -> list[Tasks]:
    """Tasks of one and of five shots, with fewer queries if classes are small; none if there are too few nodes."""
    found = []
    for k_shot in SHOTS:
        for m_query in (QUERIES, 2, 1):
            large = [nodes for nodes in members if nodes.size >= k_shot + m_query]
            if len(large) > 1:
                sampler = EpisodeSampler.among(large, min(WAY, len(large)), k_shot, m_query, seed)
                found.append(Tasks.of(sampler, TASKS))
                break
    return found


def mix_weights(
    closeness: Float[Tensor, "q n m"], label: Int[Tensor, " q"], penalty: float = 1e-4
) -> NDArray[np.float64]:
    """τ ≥ 0 that minimise the negative log-likelihood of softmax(Σ_m τ_m closeness_m), and a little of τ²."""
    row = torch.arange(label.numel())
    told = closeness[row, label].mean(dim=0)

    def loss(weights: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        tau = torch.from_numpy(weights).float()
        log_prob = torch.log_softmax(closeness @ tau, dim=1)
        expected = torch.einsum("qn,qnm->m", log_prob.exp(), closeness) / label.numel()
        value = -log_prob[row, label].mean() + penalty * tau.square().sum()
        return float(value), (expected - told + 2 * penalty * tau).double().numpy()

    m = closeness.shape[2]
    start, bounds = np.full(m, 10 / m), [(0, 100)] * m
    from scipy.optimize import minimize  # half a second to import, and only a fit needs it

    found: NDArray[np.float64] = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds).x
    return found


# --- the metric ------------------------------------------------------------------------------------------------------


def within_class_metric(
    z: Float[Tensor, "n d"], members: Sequence[Ints], shrink: float = 0.3, power: float = 0.25
) -> Float[Tensor, "d d"]:
    """Directions along which classes vary within more than nodes vary at all are shortened, others lengthened.

    W is the covariance within classes, each counting once, drawn towards the covariance T of all nodes; the map is
    T^-1/2 (T^-1/2 W T^-1/2)^-power T^1/2, the identity where W is proportional to T.
    """
    deviations = [(z[nodes] - z[nodes].mean(dim=0)) / nodes.size**0.5 for nodes in members]
    flat = torch.cat(deviations)
    within, total = (flat.T @ flat).double(), (z.T @ z).double()
    within, total = within / within.trace(), total / total.trace()
    eye = torch.eye(z.shape[1], dtype=torch.float64) / z.shape[1]
    total = total + 1e-4 * eye
    within = (1 - shrink) * within + shrink * total
    half, inverse = _root(total, 0.5), _root(total, -0.5)
    metric: Tensor = inverse @ _root(inverse @ within @ inverse, -power) @ half
    return metric.float()


def _root(matrix: Float[Tensor, "d d"], power: float) -> Float[Tensor, "d d"]:
    values, vectors = torch.linalg.eigh((matrix + matrix.T) / 2)
    root: Tensor = (vectors * values.clamp(min=1e-12) ** power) @ vectors.T
    return root


# --- prototypes ------------------------------------------------------------------------------------------------------


def class_weights(counted: Float[Tensor, "k n"]) -> Float[Tensor, " k"]:
    """A weight for each node, so that classes count the same; all 1 with equal shots.

    Row i is what node i counts in each class: a labelled one 1 in its own.
    """
    mass = counted.sum(dim=0)
    return (counted / mass).sum(dim=1) * mass.mean()


def ridge_weights(
    z: Float[Tensor, "k d"], label: Float[Tensor, "k n"], weight: Float[Tensor, " k"]
) -> Float[Tensor, "k n"]:
    """α of ridge regression in its dual form: prototypes are zᵀ α."""
    if z.shape[0] > z.shape[1]:  # by the normal equations of the primal form: a system of d, not of k
        return weight[:, None] / RIDGE * (label - 1 / label.shape[1] - z @ ridge_prototypes(z, label, weight))
    root = weight.sqrt()[:, None]
    gram = (root * z) @ (root * z).T
    gram.diagonal().add_(RIDGE)
    target = label - 1 / label.shape[1]
    alpha: Tensor = root * torch.linalg.solve(gram, root * target)
    return alpha


def ridge_prototypes(
    z: Float[Tensor, "k d"], label: Float[Tensor, "k n"], weight: Float[Tensor, " k"]
) -> Float[Tensor, "d n"]:
    """p that minimise Σ_i weight_i |z_i p - (label_i - 1/N)|² + |p|²; label_i are probabilities."""
    if z.shape[0] <= z.shape[1]:
        return z.T @ ridge_weights(z, label, weight)
    weighted = weight[:, None] * z
    second = weighted.T @ z
    second.diagonal().add_(RIDGE)
    p: Tensor = torch.linalg.solve(second, weighted.T @ (label - 1 / label.shape[1]))
    return p


def rectified_prototypes(
    z: Float[Tensor, "k d"], label: Float[Tensor, "k n"], query: Float[Tensor, "q d"], share: Float[Tensor, "q n"]
) -> Float[Tensor, "d n"]:
    """Prototypes that unlabelled nodes have moved; `share` is what each counts in each class to begin with.

    In turns: ridge regression on labelled nodes, on unlabelled ones as what they seem to be, and on the means of the
    classes over both; and what unlabelled ones seem to be by its prototypes. Classes count the same, however many nodes
    seem to be in them: else the tail of a long-tailed batch would be drawn to its head.
    """
    n_way, familiar = label.shape[1], share.sum(dim=1, keepdim=True)
    for _ in range(ROUNDS):
        counted = torch.cat([label, QUERY_WEIGHT * share])
        mean = F.normalize(label.T @ z + share.T @ query)
        p = ridge_prototypes(
            torch.cat([z, query, mean]),
            torch.cat([F.normalize(counted, p=1), torch.eye(n_way)]),
            torch.cat([class_weights(counted), torch.full((n_way,), MEAN_WEIGHT)]),
        )
        share = familiar * torch.softmax(SCALE * (query @ p), dim=1)
    return p
