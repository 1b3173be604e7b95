"""Few-shot classification by prototypes (section 4.4) for whatever gives z of each node: data, and functions of it.

A mean of its class, by importance, is GPN's prototype; that of GPN+ is a ridge regression. What differs between methods
is a `Head`; what differs between networks is an `Embedding`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from fewnode._system import memory
from fewnode._system.kept import Kept, fingerprint
from fewnode.episodes import Described, Task
from fewnode.errors import FewnodeError
from fewnode.graph import Attributes, Ints
from fewnode.recognition import prototypes
from fewnode.recognition.calibration import MODES, CalibrationPrior, LeftOut, MembershipModel, Temperature
from fewnode.recognition.prototypes import SCALE, WORTH, LabelledRows, class_weights, nearness, products, softmax
from fewnode.vectors import NUMBERS_AT_ONCE, Embedding, Floats, Probabilities, crowding, drawn, in_parts

Real = TypeVar("Real", bound=np.floating[Any])

NEAREST = 3
"""Support nodes that an explanation names."""
COMPARED = 4
"""Rows of a class that all nodes are compared with at a time: with one more example, one comparison is made anew."""
HUBNESS, HUB = np.float32(0.25), 10
"""How much of its mean score among so many nodes, the nearest of a sample, a class loses without base classes."""
ASKED_FOR_ALL = 0.5
"""Where this share of the nodes is asked about, how crowded it is around each is computed for all."""


@dataclass(frozen=True, eq=False)
class Head:
    """How rows of z become answers: all of it data, which a fit learned."""

    distance: str = "cosine"
    ridge: bool = False
    """Prototypes by ridge regression; else means, by importance."""
    adapts: bool = False
    """Whether labelled nodes themselves show what counts, for want of known classes."""
    trust: bool = True
    """Whether known classes showed that unlabelled nodes can be trusted."""
    worth: float = WORTH
    """What a description counts that nobody doubts, where a labelled node counts 1."""
    crowds: bool = False
    """Whether membership looks at how close nodes lie around a node."""
    learns_classes: bool = False
    """Whether weights are trained on the training classes, so that these come out better than others ever will."""
    prior: CalibrationPrior | None = None
    """What other networks taught about being sure, and about nodes of none of the classes."""
    membership: MembershipModel | None = None
    """Tells a node of no given class, once that is calibrated."""
    temperatures: Mapping[str, Temperature] = field(default_factory=dict)
    """For each of the `MODES`, how sure answers may be."""


class Explanation(NamedTuple):
    """Why: the weight β of each support node in its prototype, and the support nodes nearest to each query node."""

    beta: NDArray[np.float32]
    nearest: Ints


@dataclass(frozen=True, eq=False)
class Prepared:
    """A support set made ready: what depends on it alone, computed once for any number of queries."""

    given: LabelledRows
    beta: Floats
    means: Floats
    """The mean of each class, by which a node is near to it."""
    ridge: Floats | None = None
    """The prototypes of GPN+, d x N, which answer in place of the means."""
    left_out: LeftOut | None = None
    hubness: Floats | float = 0.0
    """What is taken off the score of each class, for being near to nodes of any kind (CSLS, Conneau et al., 2018)."""


class Rows(NamedTuple):
    """Rows of z of some nodes, or of all."""

    z: Floats
    nodes: Ints
    whole: bool = False
    crowding: Floats | None = None


@dataclass(frozen=True, eq=False)
class Space:
    """The nodes of a network as rows of z, and how these become answers. Nothing of it changes."""

    embedding: Embedding
    head: Head
    unlinked: Callable[[Attributes, int], Floats] | None = None
    """z of nodes without edges, such as descriptions, of a given width; None: descriptions cannot be read."""
    kept: Kept = field(default_factory=Kept)

    @property
    def reads_descriptions(self) -> bool:
        """A mean counts all of its rows alike, and a description is not worth a labelled node."""
        return self.unlinked is not None and self.head.ridge

    # --- rows of z ---

    def look(self, nodes: Ints) -> Rows:
        n = self.embedding.n
        if nodes.size == n and np.array_equal(nodes, np.arange(n)):
            return Rows(self.embedding.z, nodes, True)
        return Rows(memory.taken(self.embedding.z, nodes), nodes)

    def stand_for_all(self, count: int) -> Rows:
        """Nodes that stand for the whole network, always the same: at most as many as a survey keeps."""
        survey = self.embedding.survey
        some = drawn(survey.n, count) if count < survey.sample.size else survey.sample
        places = np.searchsorted(survey.sample, some)
        return Rows(survey.sample_z[places], some, False, survey.sample_crowding[places])

    def lengths(self, rows: Rows) -> Floats:
        made = partial(prototypes.row_lengths, rows.z)
        return self.kept("lengths", made) if rows.whole else made()

    def crowd(self, rows: Rows) -> Floats | None:
        """How close nodes lie around each; None where membership does not look at it."""
        if not self.head.crowds or rows.crowding is not None:
            return rows.crowding if self.head.crowds else None
        landmarks = self.embedding.survey.landmarks
        if "crowding" in self.kept or rows.nodes.size >= ASKED_FOR_ALL * self.embedding.n:
            return self.kept("crowding", lambda: crowding(self.embedding.z, landmarks))[rows.nodes]
        return crowding(rows.z, landmarks)

    def said(self, described: Described) -> Floats:
        """z of descriptions. Each is compared with every node, on its own: so it may come alone or with others."""
        if self.unlinked is None or not self.head.ridge:
            raise FewnodeError("it cannot read descriptions of classes; gpn-plus can")
        read, z, found = self.unlinked, self.embedding.z[: self.embedding.survey.n], []
        for row in (described.x[[i]] for i in range(described.x.shape[0])):
            made = partial(lambda row: prototypes.echoed(read(row, z.shape[1]), z), row)
            found.append(self.kept(("said", fingerprint(row)), made))
        return np.concatenate(found)

    # --- a support set ---

    def labelled(self, task: Task) -> LabelledRows:
        """What stands for the classes of a task."""
        given = self._nodes(task.support, task.support_y)
        if task.described is None:
            return given
        return LabelledRows.of(given.z, given.y, self.said(task.described), task.described.y, self.head.worth)

    def _nodes(self, support: Ints, y: Ints) -> LabelledRows:
        """Labelled nodes of a task (k), or of several with the same labels (T x k); means count them by β, Eq. (11)."""
        count, importance = np.ones(support.shape, np.float32), self.embedding.importance
        if not self.head.ridge:
            own = np.zeros(support.shape, np.float32) if importance is None else importance[support]
            weight = np.exp(own - own.max(axis=-1, keepdims=True))
            count = weight / (weight @ np.eye(int(y.max()) + 1, dtype=np.float32)[y])[..., y]
        return LabelledRows(self._z(support), y, count, np.ones(y.size, bool))

    def _z(self, nodes: Ints) -> Floats:
        z = self.embedding.z
        return memory.taken(z, nodes.ravel()).reshape(*nodes.shape, z.shape[1])

    def prepare(self, task: Task) -> Prepared:
        """β is a support node's share in its class's prototype; by ridge regression, its α where that is positive."""
        given = self.labelled(task)
        if not self.head.ridge:
            return Prepared(given, given.count, given.means)
        factors, weight, label = self._factors(given), class_weights(given.counted), given.label
        z, rows = given.z * factors, np.arange(len(given.y))
        p = prototypes.ridge_prototypes(z, label, weight)
        alpha = weight[:, None] * (label - np.float32(1 / label.shape[1]) - z @ p) / prototypes.RIDGE  # p = zᵀ α
        own = alpha[rows, given.y].clip(min=0) + np.float32(1e-9)
        beta = (own / np.bincount(given.y, own)[given.y]).astype(np.float32)
        p, hubness = factors[:, None] * p, np.zeros(p.shape[1], np.float32)
        if self.head.adapts:
            hubness = HUBNESS * np.sort(self.embedding.survey.sample_z @ p, axis=0)[-HUB:].mean(axis=0)
        return Prepared(given, beta, given.means, p, self._left_out(given, factors, hubness), hubness)

    def _factors(self, given: LabelledRows) -> Floats:
        """How much the columns of z count: as known classes showed, or else as the labelled nodes themselves show."""
        if not self.head.adapts:
            return np.ones(given.z.shape[-1], np.float32)
        share, width = self.embedding.structure_share, self.embedding.attribute_columns
        return prototypes.chosen_factors(given.z[given.is_node], given.label[given.is_node], share, width)

    def _left_out(self, given: LabelledRows, factors: Floats, hubness: Floats) -> LeftOut | None:
        """Base classes show how sure to be. Without them the labelled nodes do, but for those alone in their class."""
        judged = given.is_node & (given.shots[given.y] > 1)
        if not (self.head.adapts and judged.any()):
            return None
        score = prototypes.left_out(given.z * factors, given.label, class_weights(given.counted))
        return LeftOut(softmax(SCALE * (score[judged] - hubness)), given.y[judged])

    # --- answers ---

    def answer(self, prepared: Prepared, z: Floats) -> Probabilities:
        """Eq. (13): P(class) of each row on its own, if it is in one of them."""
        if prepared.ridge is None:
            return softmax(nearness(z, prepared.means, self.head.distance))
        parts = (products(part, prepared.ridge) - prepared.hubness for part in in_parts(z, z.shape[1]))
        return np.concatenate([softmax(SCALE * part) for part in parts])

    def tempered(
        self, answer: Probabilities, task: Task, rows: Rows, prepared: Prepared, mode: str = MODES[0]
    ) -> Probabilities:
        """An answer, as sure as answers of its kind have been right."""
        if mode not in self.head.temperatures:
            return finite(answer)
        temperature = self._temperature(task, prepared, mode)
        near = self.closest(rows, prepared.given) if temperature.by_nearness else 0.0
        return finite(temperature(answer, task, near))

    def _temperature(self, task: Task, prepared: Prepared, mode: str) -> Temperature:
        temperature = self.head.temperatures[mode]
        if prepared.left_out is None:
            return temperature
        added = self.head.temperatures[MODES[0]].revision(task, prepared.left_out)
        return replace(temperature, level=temperature.level + added)

    def left_out(self, prepared: Prepared, task: Task) -> LeftOut | None:
        """Labelled nodes, each answered from all others, as sure as any answer; None where none can be left out."""
        judged = prepared.left_out
        if judged is None or MODES[0] not in self.head.temperatures:
            return judged
        z, y = prepared.given.z, prepared.given.y
        near = nearness(z, z, self.head.distance)
        np.fill_diagonal(near, -np.inf)
        some = prepared.given.is_node & (prepared.given.shots[y] > 1)
        temperature = self._temperature(task, prepared, MODES[0])
        return replace(judged, probability=temperature(judged.probability, task, near.max(axis=1)[some]))

    def closest(self, rows: Rows, given: LabelledRows) -> Floats:
        """How near each row is to what is nearest of all that stands for the classes: being sure depends on it.

        That of all nodes is kept for a few rows of a class at a time: one more example changes one part.
        """
        if not rows.whole:
            return np.asarray(nearness(rows.z, given.z, self.head.distance).max(axis=1))
        own = [given.z[given.y == c] for c in np.unique(given.y)]
        parts = [z[low : low + COMPARED] for z in own for low in range(0, len(z), COMPARED)]
        return np.asarray(np.maximum.reduce([self._closest(rows, part) for part in parts]))

    def _closest(self, rows: Rows, part: Floats) -> Floats:
        """How near each node, all of them, is to the nearest of a few rows."""
        key, distance = ("closest", part.tobytes()), self.head.distance
        return self.kept(key, lambda: nearness(rows.z, part, distance, self.lengths(rows)).max(axis=1))

    def near(self, prepared: Prepared, rows: Rows) -> Floats:
        """How near each row is to each class: what `MembershipModel` judges by. An example changes one class."""
        if rows.whole:
            return np.stack([self._closest(rows, mean) for mean in prepared.means[:, None]]).T
        return nearness(rows.z, prepared.means, self.head.distance)

    def member(self, prepared: Prepared, rows: Rows, share: float) -> NDArray[np.float64]:
        """P(a node is in one of the classes), if that share of the network is."""
        near, crowd = self.near(prepared, rows), self.crowd(rows)
        return finite(np.asarray(self.knows.probability(near, prepared.given.shots, crowd, share), np.float64))

    def share_of_members(self, prepared: Prepared) -> float:
        """What share of the network is in the classes: the same, whichever of its nodes are asked about."""
        rows = self.stand_for_all(self.embedding.survey.sample.size)
        return self.knows.share(self.near(prepared, rows), prepared.given.shots, self.crowd(rows))

    @property
    def knows(self) -> MembershipModel:
        if self.head.membership is None:
            raise FewnodeError("too few validation classes to learn from what belongs to no class; three are needed")
        return self.head.membership

    def explain(self, prepared: Prepared, z: Floats) -> Explanation:
        near = nearness(z, prepared.given.z, self.head.distance)
        return Explanation(prepared.beta, np.argsort(-near, axis=1, kind="stable")[:, :NEAREST])

    # --- many tasks ---

    def predict(self, task: Task, transductive: bool = False) -> Probabilities:
        """P(class) of the queries of a task, as sure as it may be."""
        rows, prepared = self.look(task.query), self.prepare(task)
        answer = self.answer_tasks([task], True)[0] if transductive else self.answer(prepared, rows.z)
        return self.tempered(answer, task, rows, prepared, MODES[transductive])

    def predict_tasks(self, tasks: Sequence[Task], transductive: bool = False) -> list[Probabilities]:
        """`predict` for many tasks at once."""
        answers, mode = self.answer_tasks(tasks, transductive), MODES[transductive]
        if mode not in self.head.temperatures:
            return list(map(finite, answers))
        found = []
        for answer, task in zip(answers, tasks, strict=True):
            plain = not self.head.adapts  # then being sure depends on no more than the rows that are given
            prepared = Prepared(g := self.labelled(task), g.count, g.means) if plain else self.prepare(task)
            found.append(self.tempered(answer, task, self.look(task.query), prepared, mode))
        return found

    def answer_tasks(self, tasks: Sequence[Task], transductive: bool = False) -> list[Probabilities]:
        """Answers before the temperature; tasks of the same labels and as many queries are computed together.

        Inductive: a query is classified on its own. Transductive: the queries of a task help each other.
        """
        groups = dict[tuple[bytes, int, int], list[int]]()
        for i, task in enumerate(tasks):
            alone = i if self.head.adapts or task.described is not None else -1
            groups.setdefault((task.support_y.tobytes(), task.query.size, alone), []).append(i)
        answers, width = dict[int, Probabilities](), self.embedding.z.shape[1]
        for (_, size, _), places in groups.items():
            step = max(1, NUMBERS_AT_ONCE // (width * max(1, size + tasks[places[0]].support.size)))
            for some in (places[low : low + step] for low in range(0, len(places), step)):
                found = self._together([tasks[i] for i in some], transductive)
                answers |= dict(zip(some, found, strict=True))
        return [answers[i] for i in range(len(tasks))]

    def _together(self, tasks: Sequence[Task], transductive: bool) -> Sequence[Probabilities]:
        """Answers to one task, or to several that are alike: Eqs. (11)-(13), or ridge regression in place of means."""
        head, first, asked = self.head, tasks[0], np.stack([task.query for task in tasks])
        given = self.labelled(first)
        if len(tasks) > 1:
            given = self._nodes(np.stack([task.support for task in tasks]), first.support_y)
        asked = asked if len(tasks) > 1 else asked[0]
        query = self._z(asked)
        if head.adapts:
            factors = self._factors(given)
            alone = self.answer(self.prepare(first), query)
            given, query = replace(given, z=given.z * factors), query * factors
        elif head.ridge:
            p = prototypes.ridge_prototypes(given.z, given.label, class_weights(given.counted))
            alone = softmax(SCALE * (query @ p))
        else:
            alone = softmax(nearness(query, given.means, head.distance))
        if not transductive:
            return list(alone) if len(tasks) > 1 else [alone]
        share = self._share(asked, given, query, alone)
        if head.ridge:
            together = softmax(SCALE * (query @ prototypes.rectified_prototypes(given.z, given.counted, query, share)))
        else:
            together = share / np.maximum(share.sum(axis=-1, keepdims=True), np.float32(1e-30))
        found = np.where(share.any(axis=(-2, -1), keepdims=True), together, alone)
        return list(found) if len(tasks) > 1 else [found]

    def _share(self, asked: Ints, given: LabelledRows, query: Floats, alone: Probabilities) -> Floats:
        """What each query counts in each class to begin with; nothing if most of them seem to be in none.

        Expectation-maximisation is the better beginning where known classes showed that it can be trusted. Else it can
        go wrong, which nobody would notice; the answers that each query gets `alone` cannot go as wrong.
        """
        head = self.head
        crowd = None if head.membership is None else self.crowd(self.look(asked.ravel()))
        told = (head.distance, head.membership, None if crowd is None else crowd.reshape(asked.shape))
        if not head.ridge or (head.trust and not head.adapts and given.is_node.all()):
            return prototypes.rectify(given.means, given.shots, query, *told)
        return alone * prototypes.familiarity(query, given.means, given.shots, *told)


def finite(probability: NDArray[Real]) -> NDArray[Real]:
    """Probabilities as they leave: one that is no number is never shown as an answer."""
    if not np.isfinite(probability).all():
        row = int(np.argmin(np.isfinite(probability).reshape(len(probability), -1).all(axis=1)))
        raise FewnodeError(
            f"the model's answer for query {row} is not a number: its weights or the attributes are too large"
        )
    return probability
