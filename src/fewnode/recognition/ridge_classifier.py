"""Answers of GPN+: prototypes by ridge regression, from rows of labelled nodes and of descriptions."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from fewnode.episodes import Described, Task
from fewnode.graph import Attributes, Graph, Ints, is_sparse
from fewnode.method import Probabilities
from fewnode.recognition.calibration import LeftOut
from fewnode.recognition.labelled import LabelledRows, echoed
from fewnode.recognition.nearness import CHUNK, split_rows
from fewnode.recognition.prepared import PreparedSupport
from fewnode.recognition.prototypes import Prototypical
from fewnode.recognition.ridge import SCALE, chosen_factors, class_weights, left_out, ridge_prototypes, ridge_weights
from fewnode.recognition.transductive import familiarity, rectified_prototypes, rectify
from fewnode.represent.mixture import MixedViews
from fewnode.vectors import Floats

ECHOES = 1000
"""Descriptions whose z is remembered."""


class RidgeClassifier(Prototypical):
    """A prototype is Σ_i α_i z_i over all support nodes, with α from ridge regression."""

    distance, learns_classes, kept = "cosine", False, True
    ridge = True
    """False: prototypes are means."""
    mixture_: MixedViews
    adapts_: bool
    """Whether labelled nodes themselves show what counts, for want of known classes."""
    trust_: bool
    """Whether known classes showed that unlabelled nodes can be trusted."""
    _echoes: tuple[Tensor, dict[bytes, Tensor]] | None = None

    @property
    def reads_descriptions(self) -> bool:
        """A mean counts all of its rows alike, and a description is not worth a labelled node."""
        return self.ridge

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
        """z of descriptions. Each is compared with every node, so what it gave is remembered.

        Each on its own: a service that learns of them one by one has the same bits as who gives all at once.
        """
        z = self.all_rows(graph)
        if self._echoes is None or self._echoes[0] is not z or len(self._echoes[1]) > ECHOES:
            self._echoes = (z, {})
        known, rows = self._echoes[1], [described.x[[i]] for i in range(described.x.shape[0])]
        keys = [b"".join(part.tobytes() for part in ((x.indices, x.data) if is_sparse(x) else (x,))) for x in rows]
        for key, x in zip(keys, rows, strict=True):
            if key not in known:
                known[key] = echoed(torch.from_numpy(self.unlinked(x, z.shape[1])), z)
        return torch.cat([known[key] for key in keys])

    @abstractmethod
    def unlinked(self, x: Attributes, width: int) -> Floats:
        """z of nodes that have attributes and no edges, such as the description of a class; `width` is that of z."""

    def stands_for(self, graph: Graph, task: Task) -> Float[Tensor, "k d"]:
        return self._labelled(graph, task).z

    def _factors(self, given: LabelledRows) -> Float[Tensor, " d"]:
        """How much the columns of z count: as known classes showed, or else as the labelled nodes themselves show."""
        if not self.adapts_:
            return torch.ones(given.z.shape[-1])
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
        answers: dict[int, Probabilities] = {}
        with torch.inference_mode():
            for places in self._alike(tasks):
                found = self._answers(graph, [tasks[i] for i in places], transductive)
                answers |= dict(zip(places, found, strict=True))
        return [answers[i] for i in range(len(tasks))]

    def _alike(self, tasks: Sequence[Task]) -> Iterator[list[int]]:
        """Places of tasks that can be answered together: of the same labels, and as many queries."""
        groups: dict[tuple[bytes, int, int], list[int]] = {}
        for i, task in enumerate(tasks):
            alone = i if self.adapts_ or task.described is not None else -1
            groups.setdefault((task.support_y.tobytes(), task.query.size, alone), []).append(i)
        for (_, size, _), places in groups.items():
            rows = size + tasks[places[0]].support.size
            step = max(1, CHUNK // (self.mixture_.rank * max(1, rows)))
            yield from (places[low : low + step] for low in range(0, len(places), step))

    def _answers(self, graph: Graph, tasks: Sequence[Task], transductive: bool) -> list[Probabilities]:
        """Of one task, or of several that are alike."""
        given, query = self._labelled(graph, tasks[0]), self.rows(graph, tasks[0].query)
        asked = tasks[0].query
        if len(tasks) > 1:
            support, asked = (np.stack(part) for part in zip(*((t.support, t.query) for t in tasks), strict=True))
            given = replace(given, z=self.rows(graph, support.ravel()).view(*support.shape, -1))
            query = self.rows(graph, asked.ravel()).view(*asked.shape, -1)
        if self.adapts_:
            factors = self._factors(given)
            given, query = replace(given, z=given.z * factors), query * factors
        found = _softmax(query, ridge_prototypes(given.z, given.label, class_weights(given.counted)))
        if transductive:
            share = self._share(graph, asked, given, query, found)
            together = _softmax(query, rectified_prototypes(given.z, given.counted, query, share))
            found = torch.where(share.any(dim=-1, keepdim=True).any(dim=-2, keepdim=True), together, found)
        return [*found.numpy()] if len(tasks) > 1 else [found.numpy()]

    def _share(
        self,
        graph: Graph,
        asked: Ints,
        given: LabelledRows,
        query: Float[Tensor, "*b q d"],
        alone: Float[Tensor, "*b q n"],
    ) -> Float[Tensor, "*b q n"]:
        """What each query counts in each class to begin with; nothing if most of them seem to be in none.

        Expectation-maximisation is the better beginning where known classes showed that it can be trusted. Else it can
        go wrong, which nobody would notice; the answers that each query gets `alone` cannot go as wrong.
        """
        crowd = None if self.membership is None else self.crowd(graph, asked.ravel())
        crowd = None if crowd is None else crowd.view(asked.shape)
        if self.trust_ and not self.adapts_ and given.is_node.all():
            beta = 1 / given.shots[given.y]
            return rectify(given.z, beta, given.label, query, self.distance, self.membership, crowd)
        return alone * familiarity(query, given.means, given.shots, self.distance, self.membership, crowd)


def _softmax(z: Float[Tensor, "*b q d"], p: Float[Tensor, "*b d n"]) -> Float[Tensor, "*b q n"]:
    if z.dim() > 2:
        return torch.softmax(SCALE * (z @ p), dim=-1)
    p = p.T.contiguous().T  # a product with a few columns takes a quarter of the time so
    return torch.cat([torch.softmax(SCALE * (part @ p), dim=1) for part in split_rows(z, z.shape[1])])
