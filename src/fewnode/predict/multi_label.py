"""Several classes a node: every class is a question of its own, with a probability of its own.

P(a node is in c) has two factors. The first is that it looks like the members of c and not like any node of the
network: `MembershipModel` for c alone. The second is that it looks like them rather than like labelled nodes that are
not in c. A node that is in c and in d is an example of both, and speaks against neither.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray

from fewnode.dataset import Dataset
from fewnode.episodes import Described, Task
from fewnode.errors import FewnodeError
from fewnode.graph import Ints
from fewnode.model.recogniser import DIGITS, NONE, Recogniser
from fewnode.nodes import Nodes
from fewnode.recognition.evidence import remaining
from fewnode.vectors import SAMPLE, drawn

SEPARATOR = "|"
"""Between the classes of a node in a table of predictions."""
ALL = -1
"""Key of the task that classes share which exclude each other."""
AGAINST = 200
"""Labelled nodes that speak against a class at most: more only take time."""
FEWEST = 3
"""Classes whose sizes tell how large another one may be."""

Floats = NDArray[np.float64]


def joined_labels(classes: Sequence[str], probabilities: Floats, threshold: float) -> list[str]:
    """All classes of each node that are as likely as the threshold, or likelier.

    >>> joined_labels(["mail", "vpn"], np.array([[0.9, 0.5], [0.2, 0.7], [0.1, 0.1]]), 0.5)
    ['mail|vpn', 'vpn', 'none of these']
    """
    chosen = [np.flatnonzero(row >= threshold).tolist() for row in probabilities]
    return [SEPARATOR.join(classes[c] for c in own) or NONE for own in chosen]


def refuse_names(classes: Sequence[str]) -> None:
    """Refuse a class whose name could not be told from the others in a joined label."""
    for name in classes:
        if SEPARATOR in name:
            raise FewnodeError(f"class {name!r}: {SEPARATOR!r} stands between the classes of a node; rename it")
        if name == NONE:
            raise FewnodeError(f"a class is called {NONE!r}, as is what is in no class: rename it")


@dataclass(frozen=True, eq=False)
class Contrast:
    """Classes that are asked about in one closed task, and the column of each: the other columns speak against it."""

    task: Task
    columns: dict[int, int] = field(default_factory=dict)


class IndependentClasses:
    """A recogniser whose classes may share nodes: rows of probabilities need not sum to 1.

    Which share of the network is in a class is estimated over `population`: by default the nodes of the kinds that have
    labels. If `like_support`, the nodes that are asked about were drawn as the labelled ones were: their shares count.
    """

    def __init__(self, recogniser: Recogniser, population: Ints | None = None, like_support: bool = False) -> None:
        if recogniser.cannot_tell:
            raise FewnodeError(f"several classes a node: each is told from all other nodes; {recogniser.cannot_tell}")
        self.recogniser, self._like_support = recogniser, like_support
        network = recogniser.network
        if population is None:
            anyone = network.claimable_mask if isinstance(network, Dataset) else np.ones(network.n, bool)
            population = np.flatnonzero(anyone)
        self._population = population
        self.n_way = len(recogniser.classes)

    def judge(self, query: Nodes) -> tuple[Floats, Floats]:
        """P(a node is in a class), a column each, and P(it is in at least one), as if classes were independent.

        A support node is in the classes it was given for, and in no other.
        """
        asked = self.recogniser.rows(query)
        method, prepared = self.recogniser.telling()
        graph, model = self.recogniser.graph, method.membership
        found = self._rather(asked)
        if asked.size and model is not None:
            near, crowd = method.nearness_in_parts(graph, prepared, asked), method.crowd(graph, asked)
            for c, share in enumerate(self.shares):
                alone = model.probability(near[:, [c]], prepared.shots[[c]], crowd, share)
                found[:, c] *= alone.cpu().numpy()
        shift = self.recogniser.shift(asked)
        if shift is not None:
            found = remaining(found, np.ones((*found.shape, 1)), shift[:, :, None])
        self._take_as_given(asked, found)
        found = found.round(DIGITS)
        return found, (1 - (1 - found).prod(axis=1)).round(DIGITS)

    def _take_as_given(self, asked: Ints, found: Floats) -> None:
        given = self.recogniser.task(asked)
        for row in np.flatnonzero(np.isin(asked, given.support)):
            found[row] = np.isin(np.arange(self.n_way), given.support_y[given.support == asked[row]])

    @cached_property
    def shares(self) -> list[float]:
        """What share of the population is in each class."""
        if self._like_support:
            given = self.recogniser.task(np.zeros(0, np.int64))
            counts = np.bincount(given.support_y, minlength=self.n_way)
            share = counts / np.unique(given.support).size
            return [float(part) for part in share.clip(0.01, 0.95)]
        method, prepared = self.recogniser.telling()
        graph, model = self.recogniser.graph, method.membership
        some = self._population[drawn(self._population.size, SAMPLE)]
        if model is None or not some.size:
            return [0.5] * self.n_way
        near, crowd = method.nearness_in_parts(graph, prepared, some), method.crowd(graph, some)
        rather = torch.from_numpy(self._rather(some)).to(near.device)
        size = self._known_share
        return [model.share(near[:, [c]], prepared.shots[[c]], crowd, rather[:, c], size) for c in range(self.n_way)]

    @property
    def _known_share(self) -> float | None:
        """What share of the population a known class has, where those have several classes a node; None if unknown.

        A model learned that by nodes of one class alone, of which there may be few.
        """
        data = self.recogniser.network
        if not isinstance(data, Dataset) or data.labels is None:
            return None
        sizes = data.class_sizes[[*data.split.train, *data.split.valid]]
        return float(sizes.mean() / max(1, self._population.size)) if sizes.size >= FEWEST else None

    def _rather(self, asked: Ints) -> Floats:
        """P(a node is in a class rather than like labelled nodes that are not in it); 1 where there are none."""
        found = np.ones((asked.size, self.n_way))
        for contrast in self._contrasts if asked.size else ():
            task = contrast.task
            question = Task(task.support, task.support_y, asked, task.described)
            (answer,) = self.recogniser.fitted.predict_tasks(self.recogniser.graph, [question])
            for c, column in contrast.columns.items():
                found[:, c] = answer[:, column]
        return found

    @cached_property
    def _contrasts(self) -> list[Contrast]:
        """What each class is told from: every other one or, if classes share labelled nodes, all that is not in it.

        A closed task of many classes spreads one certainty over them, which is right only where they exclude each
        other, as they seem to if no labelled node is in two. Then they are asked about together.
        """
        given = self.recogniser.task(np.zeros(0, np.int64))
        nodes = np.unique(given.support)
        shares = nodes.size < given.support.size
        found: dict[int, Contrast] = {}
        for c in range(self.n_way):
            own = given.support[given.support_y == c]
            others, said = np.setdiff1d(nodes, own), _description_of(given, c)
            if not others.size:
                continue
            task, column = (_two_classes(own, others, said), 0) if shares else _all_classes(given, c, said)
            key = ALL if said is None and not shares else c
            found.setdefault(key, Contrast(task)).columns[c] = column
        return list(found.values())


def _two_classes(own: Ints, others: Ints, said: Described | None) -> Task:
    """Class 0 and labelled nodes that are not in it: all of them or, of very many, some."""
    others = others[:: -(-others.size // AGAINST)]
    words = None if said is None else Described(said.x, np.zeros(1, np.int64))
    label = np.repeat([0, 1], [own.size, others.size])
    return Task(np.concatenate([own, others]), label, np.zeros(0, np.int64), words)


def _all_classes(given: Task, c: int, said: Described | None) -> tuple[Task, int]:
    """Class c and all that have labelled nodes, and the column of c."""
    present = np.unique(np.append(given.support_y, c))
    column = int(np.searchsorted(present, c))
    words = None if said is None else Described(said.x, np.array([column]))
    return Task(given.support, np.searchsorted(present, given.support_y), given.query, words), column


def _description_of(task: Task, c: int) -> Described | None:
    """The description of that class alone: one of another class is no example against it."""
    if task.described is None or c not in task.described.y:
        return None
    place = np.flatnonzero(task.described.y == c)
    return Described(task.described.x[place], task.described.y[place])
