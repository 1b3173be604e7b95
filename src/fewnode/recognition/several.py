"""Several classes a node: every class is a question of its own, with a probability of its own.

P(a node is in c) has two factors. The first is that it looks like the members of c and not like any node of the
network: `MembershipModel` for c alone. The second is that it looks like them rather than like labelled nodes that are
not in c. A node that is in c and in d is an example of both, and speaks against neither.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fewnode.episodes import Described, Task
from fewnode.errors import FewnodeError
from fewnode.graph import Ints
from fewnode.recognition.answers import NONE, SEPARATOR
from fewnode.recognition.classes import Given
from fewnode.recognition.space import Space
from fewnode.vectors import SAMPLE, drawn

AGAINST = 200
"""Labelled nodes that speak against a class at most: more only take time."""
Floats = NDArray[np.float64]


class Contrast(NamedTuple):
    """Classes that are asked about in one closed task, and the column of each: the other columns speak against it."""

    task: Task
    columns: dict[int, int]


def refuse_names(classes: Sequence[str]) -> None:
    """Refuse a class whose name could not be told from the others in a joined label."""
    for name in classes:
        if SEPARATOR in name:
            raise FewnodeError(f"class {name!r}: {SEPARATOR!r} stands between the classes of a node; rename it")
        if name == NONE:
            raise FewnodeError(f"a class is called {NONE!r}, as is what is in no class: rename it")


def each_on_its_own(space: Space, given: Given, asked: Ints, shares: Sequence[float]) -> Floats:
    """P(a node is in a class), a column each, whatever was rejected; `shares` of the network are in each."""
    found, rows, prepared = rather(space, given, asked), space.look(asked), space.prepare(given.task(asked))
    near, crowd = space.near(prepared, rows), space.crowd(rows)
    for c, share in enumerate(shares):
        found[:, c] *= space.knows.probability(near[:, [c]], prepared.shots[[c]], crowd, share)
    return found


def class_shares(space: Space, given: Given, population: Ints, known: float | None = None) -> list[float]:
    """What share of a population is in each class. `known`: that of a class whose members are known."""
    some = population[drawn(population.size, SAMPLE)]
    if not some.size:
        return [0.5] * len(given.names)
    rows, prepared = space.look(some), space.prepare(given.task(some))
    near, crowd, against = space.near(prepared, rows), space.crowd(rows), rather(space, given, some)
    return [
        space.knows.share(near[:, [c]], prepared.shots[[c]], crowd, against[:, c], known)
        for c in range(len(given.names))
    ]


def shares_of_support(given: Given) -> list[float]:
    """What share of the labelled nodes is in each class: for nodes that are drawn as these were."""
    share = np.bincount(given.y, minlength=len(given.names)) / np.unique(given.support).size
    return [float(part) for part in share.clip(0.01, 0.95)]


def rather(space: Space, given: Given, asked: Ints) -> Floats:
    """P(a node is in a class rather than like labelled nodes that are not in it); 1 where there are none."""
    found = np.ones((asked.size, len(given.names)))
    for contrast in _contrasts(given) if asked.size else ():
        task = contrast.task
        answer = space.predict(Task(task.support, task.support_y, asked, task.described))
        for c, column in contrast.columns.items():
            found[:, c] = answer[:, column]
    return found


def _contrasts(given: Given) -> list[Contrast]:
    """What each class is told from: every other one or, if classes share labelled nodes, all that is not in it.

    A closed task of many classes spreads one certainty over them, which is right only where they exclude each
    other, as they seem to if no labelled node is in two. Then they are asked about together.
    """
    nodes = np.unique(given.support)
    shared = nodes.size < given.support.size
    found: dict[int, Contrast] = {}
    for c in range(len(given.names)):
        own = given.support[given.y == c]
        others, said = np.setdiff1d(nodes, own), _description_of(given, c)
        if not others.size:
            continue
        task, column = (_two_classes(own, others, said), 0) if shared else _all_classes(given, c, said)
        key = -1 if said is None and not shared else c
        found.setdefault(key, Contrast(task, {})).columns[c] = column
    return list(found.values())


def _two_classes(own: Ints, others: Ints, said: Described | None) -> Task:
    """Class 0 and labelled nodes that are not in it: all of them or, of very many, some."""
    others = others[:: -(-others.size // AGAINST)]
    words = None if said is None else Described(said.x, np.zeros(1, np.int64))
    label = np.repeat([0, 1], [own.size, others.size])
    return Task(np.concatenate([own, others]), label, np.zeros(0, np.int64), words)


def _all_classes(given: Given, c: int, said: Described | None) -> tuple[Task, int]:
    """Class c and all that have labelled nodes, and the column of c."""
    present = np.unique(np.append(given.y, c))
    column = int(np.searchsorted(present, c))
    words = None if said is None else Described(said.x, np.array([column]))
    return Task(given.support, np.searchsorted(present, given.y), np.zeros(0, np.int64), words), column


def _description_of(given: Given, c: int) -> Described | None:
    """The description of that class alone: one of another class is no example against it."""
    if given.described is None or c not in given.described.y:
        return None
    place = np.flatnonzero(given.described.y == c)
    return Described(given.described.x[place], given.described.y[place])
