"""Few-shot classification by nearest prototype (section 4.4), for whatever gives a vector z for each node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from fewnode.episodes import Described, Task
from fewnode.errors import FewnodeError
from fewnode.gpn import prototypes, segment_softmax
from fewnode.graph import Graph, Ints
from fewnode.method import Probabilities
from fewnode.recognition.calibration import LeftOut
from fewnode.recognition.embedded import EmbeddedNodes
from fewnode.recognition.membership import MembershipModel
from fewnode.recognition.nearness import nearness, split_rows
from fewnode.recognition.prepared import PreparedSupport
from fewnode.recognition.task_batches import answer_tasks
from fewnode.recognition.transductive import rectify

COMPARED, REMEMBERED = 4, 40
"""Rows of a class that all nodes are compared with at a time, and how many such comparisons are remembered."""
PART = 400
"""Nodes that are compared at a time where their vectors may come from a disk."""


@dataclass(frozen=True)
class Explanation:
    """Why: the weight β of each support node in its prototype, and the support nodes nearest to each query node."""

    beta: NDArray[np.float32]
    nearest: Ints


class Prototypical(EmbeddedNodes):
    """Few-shot classification by nearest prototype (section 4.4), given z and the importance of every node."""

    distance: str
    membership: MembershipModel | None = None
    """Tells a node of no given class, once that is calibrated on validation classes."""
    learns_classes = True
    """Whether weights are trained on the training classes, so that these come out better than others ever will."""
    worth_: float = 1.0
    """What a description counts that nobody doubts, where a labelled node counts 1."""
    of_all: tuple[Prototypical, Graph] | None = None
    _closeness: tuple[Tensor, dict[bytes, Tensor]] | None = None

    @property
    def reads_descriptions(self) -> bool:
        """Whether a class may be given by a description."""
        return False

    def prepare(
        self, graph: Graph, support: Ints, support_y: Ints, described: Described | None = None
    ) -> PreparedSupport:
        """What the answers to any query need of a support set: Eqs. (11)-(12)."""
        if described is not None:
            raise FewnodeError(f"{type(self).__name__} cannot read descriptions of classes; gpn-plus can")
        z, importance = self.valued_rows(graph, support)
        y, n_way = torch.from_numpy(support_y).to(z.device), int(support_y.max()) + 1
        with torch.inference_mode():
            beta = segment_softmax(importance, y, n_way)
            p = prototypes(z, importance, y, n_way)
            return PreparedSupport(z, beta, p, torch.bincount(y, minlength=n_way).to(z.dtype))

    def answer(self, graph: Graph, prepared: PreparedSupport, query: Ints) -> Probabilities:
        """Eq. (13): each query on its own."""
        with torch.inference_mode():
            near = nearness(self.rows(graph, query), prepared.prototypes, self.distance)
            return F.log_softmax(near, dim=1).exp().cpu().numpy()

    def predict_proba(self, graph: Graph, task: Task) -> Probabilities:
        return self.answer(graph, self.prepare(graph, task.support, task.support_y), task.query)

    def predict_tasks(self, graph: Graph, tasks: Sequence[Task], transductive: bool = False) -> list[Probabilities]:
        """The probabilities of many tasks; those of equal N are computed together.

        Inductive: a query is classified on its own. Transductive: the queries of a task help each other.
        """
        if transductive:
            return [self._rectified(graph, task) for task in tasks]
        return answer_tasks(*self.embedding(graph), tasks, self.distance)

    def _rectified(self, graph: Graph, task: Task) -> Probabilities:
        z, prepared = self.rows(graph, task.query), self.prepare(graph, task.support, task.support_y)
        crowd = self.crowd(graph, task.query)
        label = F.one_hot(torch.from_numpy(task.support_y).to(z.device), task.n_way).to(z.dtype)
        with torch.inference_mode():
            share = rectify(prepared.z, prepared.beta, label, z, self.distance, self.membership, crowd)
            if not share.any():
                return self.answer(graph, prepared, task.query)
            return (share / share.sum(dim=1, keepdim=True)).cpu().numpy()

    def nearness(self, graph: Graph, prepared: PreparedSupport, query: Ints) -> Float[Tensor, "q n"]:
        """How near each query is to each prototype: what `MembershipModel` judges by."""
        with torch.inference_mode():
            return nearness(self.rows(graph, query), prepared.prototypes, self.distance)

    def closest(self, graph: Graph, task: Task, stands: Float[Tensor, "k d"] | None = None) -> NDArray[np.float32]:
        """How near each query is to the support node nearest to it: what being sure depends on.

        `stands`: what `stands_for` gave for the same classes before.
        """
        with torch.inference_mode():
            stands, rows = self.stands_for(graph, task) if stands is None else stands, self.rows(graph, task.query)
            if self.kept and rows is self.embedding(graph)[0]:
                return self._closest_of_all(rows, stands, torch.from_numpy(task.labels)).cpu().numpy()
            return nearness(rows, stands, self.distance).amax(dim=1).cpu().numpy()

    def _closest_of_all(
        self, z: Float[Tensor, "n d"], stands: Float[Tensor, "k d"], y: Int[Tensor, " k"]
    ) -> Float[Tensor, " n"]:
        """`closest` of all nodes, by a few rows of a class at a time, remembered: one more example changes one part."""
        parts = [part for c in y.unique() for part in stands[y == c].split(COMPARED)]
        before = self._closeness[1] if self._closeness is not None and self._closeness[0] is z else {}
        found: dict[bytes, Tensor] = {}
        top: Tensor | None = None
        for part in parts:
            key = part.cpu().numpy().tobytes()
            near = before.get(key)
            near = nearness(z, part, self.distance).amax(dim=1) if near is None else near
            top = near if top is None else torch.maximum(top, near)
            if len(found) < REMEMBERED:
                found[key] = near
        self._closeness = (z, found)
        return z.new_zeros(z.shape[0]) if top is None else top

    def stands_for(self, graph: Graph, task: Task) -> Float[Tensor, "k d"]:
        """z of what stands for the classes of a task."""
        return self.rows(graph, task.support)

    def left_out(self, graph: Graph, task: Task) -> LeftOut | None:
        """The labelled nodes of a task, each predicted from the others, where how sure to be is learned from that."""
        return None

    def familiar(
        self, graph: Graph, support: Ints, support_y: Ints, query: Ints, described: Described | None = None
    ) -> NDArray[np.float32]:
        """P(a query node is in one of the given classes), if every second node were."""
        return self.familiar_to(graph, self.prepare(graph, support, support_y, described), query)

    def familiar_to(
        self, graph: Graph, prepared: PreparedSupport, query: Ints, share: float = 0.5
    ) -> NDArray[np.float32]:
        """The same, if that share of all nodes is in the classes."""
        near, crowd = self.nearness(graph, prepared, query), self.crowd(graph, query)
        return self.knows().probability(near, prepared.shots, crowd, share).cpu().numpy()

    def share_of_members(self, graph: Graph, prepared: PreparedSupport) -> float:
        """What share of the network is in the classes: the same, whichever of its nodes are asked about."""
        if self.of_all is not None:
            return self.of_all[0].share_of_members(self.of_all[1], prepared)
        survey = self.embedded(graph).survey
        crowd = torch.from_numpy(survey.sample_crowding) if self.kept else None
        return self.knows().share(self.nearness_in_parts(graph, prepared, survey.sample), prepared.shots, crowd)

    def nearness_in_parts(self, graph: Graph, prepared: PreparedSupport, nodes: Ints) -> Float[Tensor, "q n"]:
        """`nearness` of nodes whose vectors may have to be read from a disk."""
        parts = np.array_split(nodes, max(1, -(-nodes.size // PART)))
        return torch.cat([self.nearness(graph, prepared, part) for part in parts])

    def knows(self) -> MembershipModel:
        if self.membership is None:
            raise FewnodeError("too few validation classes to learn from what belongs to no class; three are needed")
        return self.membership

    def explain(self, graph: Graph, prepared: PreparedSupport, query: Ints, nearest: int = 3) -> Explanation:
        with torch.inference_mode():
            order = [
                nearness(part, prepared.z, self.distance).argsort(dim=1, descending=True, stable=True)[:, :nearest]
                for part in split_rows(self.rows(graph, query), prepared.z.numel())
            ]
        return Explanation(prepared.beta.cpu().numpy(), torch.cat(order).cpu().numpy())
