"""The tasks that methods are compared on (section 5.2): of test classes or of all, of one class a node or of several.

`sampler[t]` is a pure function of (seed, t): the same tasks for every method, process and day.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from fewnode._system.files import read_lines, write_text
from fewnode.class_labels import as_members, class_index
from fewnode.dataset import Dataset
from fewnode.episodes import Described, Episode, Task, TaskSampler, choose, uniform
from fewnode.errors import FewnodeError
from fewnode.graph import Attributes, Ints, is_sparse
from fewnode.nodes import refuse_twice
from fewnode.recognition.description import describe

NAMED_QUERIES = 5
"""A class, in tasks of known classes of which the names are given."""


@dataclass(frozen=True, eq=False)
class SeveralEpisode:
    """A task whose nodes may be in several of its classes: a support node stands there once for each."""

    task: Task
    truth: NDArray[np.bool_]
    """Queries x classes."""


class AllClassesSampler:
    """K support nodes of every class, and all its other labelled nodes to ask about: there are no base classes.

    With `query` at most so many nodes a class are asked about; the support nodes stay the same. Classes with at most
    K labelled nodes leave nothing to ask about: they are in `left_out`, by name.

    >>> y = np.repeat([0, 1, 2], [5, 4, 2])
    >>> data = Dataset.from_scipy(y[:, None] == y, y=y, class_names=("mail", "vpn", "rare"))
    >>> sampler = AllClassesSampler(data, shot=2)
    >>> sampler[0].support.size, sampler[0].query.size, sampler.left_out
    (4, 5, ('rare',))
    """

    def __init__(self, data: Dataset, shot: int = 5, seed: int = 0, query: int | None = None) -> None:
        if shot < 1 or (query is not None and query < 1):
            raise FewnodeError(f"shot and query must be at least 1, not {shot} and {query}")
        self.classes, self.left_out = large_classes(data, shot)
        self.members = [np.flatnonzero(data.y == c) for c in self.classes]
        self.n_way, self.k_shot, self.m_query, self.seed = len(self.members), shot, query, seed

    def __getitem__(self, t: int) -> Episode:
        sizes, shot, query = [members.size for members in self.members], self.k_shot, self.m_query
        asked = [size - shot if query is None else min(query, size - shot) for size in sizes]
        draw = uniform(self.seed, t, len(sizes) * shot + (0 if query is None else sum(asked)))
        support = [members[choose(draw, members.size, shot)] for members in self.members]
        rest = [np.setdiff1d(members, picked) for members, picked in zip(self.members, support, strict=True)]
        if query is not None:
            rest = [others[choose(draw, others.size, count)] for others, count in zip(rest, asked, strict=True)]
        label = np.arange(len(sizes))
        return Episode(Task(np.concatenate(support), label.repeat(shot), np.concatenate(rest)), label.repeat(asked))


class SeveralSampler:
    """Tasks of `way` of the classes, or of all in turn, where a node may be in several of them.

    Every drawn node comes with all classes of the task that it is in, so a class may have more than K. Queries are
    `query` members of each class, or every other labelled node if that is None.

    >>> y = np.repeat(range(4), 20)
    >>> task = SeveralSampler(Dataset.from_scipy(y[:, None] == y, y=y), range(4), way=2, shot=3, query=5)[0]
    >>> task.task.support.size, task.truth.shape, task.truth.sum(axis=0).tolist()
    (6, (10, 2), [5, 5])
    """

    def __init__(
        self, data: Dataset, classes: Sequence[int], way: int | None, shot: int, query: int | None, seed: int = 0
    ) -> None:
        self.labels: sp.csr_array = as_members(data.y, data.labels, len(data.class_names))
        self.classes = np.array(list(classes), np.int64)
        self.members = {c: data.members(c) for c in self.classes.tolist()}
        self.labelled = np.flatnonzero(data.labelled_mask)
        self.n_way, self.every = (len(self.classes), True) if way is None else (way, False)
        self.k_shot, self.m_query, self.seed = shot, query, seed
        if min(self.n_way, shot, 1 if query is None else query) < 1:
            raise FewnodeError(f"way, shot and query must be at least 1, not {self.n_way}, {shot} and {query}")
        if self.n_way == 1:
            raise FewnodeError("way is 1: one class alone has no other to be told from; two are needed")
        if self.n_way > len(self.classes):
            raise FewnodeError(f"{way}-way tasks need {way} classes, there are {len(self.classes)}: choose fewer")
        for c, nodes in self.members.items():
            if nodes.size < (need := shot + (1 if query is None or way is None else query)):
                name = data.class_names[c]
                raise FewnodeError(f"class {name!r} has {nodes.size} nodes, {need} are needed; ask for fewer")

    def __getitem__(self, t: int) -> SeveralEpisode:
        more, count = self.m_query or 0, len(self.classes)
        draw = uniform(self.seed, t, self.n_way * (1 + self.k_shot + more))
        chosen = self.classes if self.every else self.classes[choose(draw, count, self.n_way)]
        drawn = []
        for c in chosen.tolist():
            nodes = self.members[c]
            drawn.append(nodes[choose(draw, nodes.size, min(nodes.size, self.k_shot + more))])
        support = np.unique(np.concatenate([nodes[: self.k_shot] for nodes in drawn]))
        asked = self.labelled if self.m_query is None else np.concatenate([nodes[self.k_shot :] for nodes in drawn])
        query = np.setdiff1d(asked, support)
        row, y = self.labels[support][:, chosen].toarray().nonzero()
        return SeveralEpisode(Task(support[row], y, query), self.labels[query][:, chosen].toarray())


def large_classes(data: Dataset, shot: int, several: bool = False) -> tuple[Ints, tuple[str, ...]]:
    """The classes that have a node to ask about beside `shot` support nodes, and the names of those that have none.

    Nodes in several classes count only if `several`: else each has one right answer.
    """
    sizes = data.class_sizes if several else np.bincount(data.y[data.y >= 0], minlength=len(data.class_names))
    classes: Ints = np.flatnonzero(sizes > shot)
    if classes.size < 2:
        raise FewnodeError(
            f"{data.name}: {classes.size} of {np.count_nonzero(sizes)} classes have more than {shot} labelled nodes, "
            "two are needed; ask for fewer shots"
        )
    return classes, tuple(data.class_names[c] for c in np.flatnonzero((data.class_sizes > 0) & (sizes <= shot)))


def strangers(data: Dataset, episode: Episode, t: int, seed: int) -> Ints:
    """Nodes of classes that are not in the task, as many as it has queries: of the test part if it has such classes."""
    own = np.unique(data.y[np.concatenate([episode.support, episode.query])])  # a described class may have no support
    parts = (data.split.test, (*data.split.train, *data.split.valid))
    others = next((left for part in parts if (left := np.setdiff1d(part, own)).size), np.arange(0))
    nodes = np.flatnonzero(np.isin(data.y, others))
    if nodes.size == 0:
        raise FewnodeError("there is no class outside the task: nothing to tell apart")
    count = min(episode.query.size, nodes.size)
    return nodes[choose(uniform(seed, t, count), nodes.size, count)]


# --- classes that are described -----------------------------------------------------------------------------------


def described_rows(data: Dataset, classes: Sequence[int], texts: Mapping[str, str]) -> dict[int, Attributes]:
    """What stands for each of these classes: its name, and its text if there is one. Some say nothing: no row."""
    rows = {}
    for c in classes:
        name = data.class_names[c]
        with suppress(FewnodeError):
            rows[c] = describe(data, texts.get(name, ""), name).x
    return rows


def described_tasks(
    data: Dataset, classes: Sequence[int], texts: Mapping[str, str], shape: tuple[int, int, int], count: int, seed: int
) -> list[Episode]:
    """Tasks of N ways, K shots and M queries of these classes, each with its name and text; K may be 0.

    Without labels only classes whose name or text says something can be asked about.
    """
    way, shot, query = shape
    if min(way, query, shot + 1) < 1:
        raise FewnodeError(f"way and query must be at least 1, and shot at least 0, not {way}, {query} and {shot}")
    rows = described_rows(data, classes, texts)
    if not rows:
        raise FewnodeError("no class has a description or a name with a word of this network")
    need = max(shot, 1) + query
    members = [np.flatnonzero(data.y == c) for c in classes if shot > 0 or c in rows]
    large = [nodes for nodes in members if nodes.size >= need]
    if len(large) < way:
        raise FewnodeError(
            f"{way}-way tasks need {way} classes with a description and {need} nodes, there are {len(large)}: choose "
            "a smaller way or fewer queries"
        )
    drawn = TaskSampler(large, way, max(shot, 1), query, seed).take(count)
    return [_with_descriptions(data, episode, rows, shot > 0) for episode in drawn]


def _with_descriptions(data: Dataset, episode: Episode, rows: Mapping[int, Attributes], labelled: bool) -> Episode:
    """The question with descriptions of its classes; without `labelled`, the support nodes are taken away."""
    first = [int(np.argmax(episode.support_y == c)) for c in range(episode.n_way)]
    known = [(label, rows[c]) for label, c in enumerate(data.y[episode.support[first]].tolist()) if c in rows]
    if not known:
        return episode
    labels, parts = zip(*known, strict=True)
    x = sp.vstack(parts, format="csr") if is_sparse(parts[0]) else np.concatenate(parts)
    kept, described = slice(None if labelled else 0), Described(x, np.array(labels, np.int64))
    return replace(episode, task=Task(episode.support[kept], episode.support_y[kept], episode.query, described))


def named_tasks(data: Dataset, members: Sequence[Ints], way: int, count: int, shot: int = 0) -> list[Episode]:
    """Tasks of known classes by their names, and by `shot` labelled nodes; none if too few names say something."""
    classes = [int(data.y[nodes[0]]) for nodes in members if nodes.size > NAMED_QUERIES]
    try:
        return described_tasks(data, classes, {}, (way, shot, NAMED_QUERIES), count, 1)
    except FewnodeError:
        return []


# --- pools of tasks in a file -------------------------------------------------------------------------------------


def save_pool(path: Path, pool: Sequence[Episode], data: Dataset) -> None:
    """One task a line; nodes by name where they have names, labels by class name."""
    lines = []
    for episode in pool:
        label = data.y[episode.support[np.unique(episode.support_y, return_index=True)[1]]]
        name = [data.class_names[c] for c in label]
        line = {
            "support": [data.node_name(v) for v in episode.support],
            "support_y": [name[c] for c in episode.support_y],
            "query": [data.node_name(v) for v in episode.query],
            "query_y": [name[c] for c in episode.query_y],
        }
        lines.append(json.dumps(line, ensure_ascii=False))
    write_text(path, "\n".join(lines) + "\n")


def read_pool(path: Path, data: Dataset) -> list[Episode]:
    """Tasks that somebody drew: JSON lines of `support, support_y, query, query_y`; nodes are names or row numbers."""
    pool = []
    for number, line in read_lines(path):
        try:
            task = json.loads(line)
            label = class_index(str(name) for name in task["support_y"])
            support, query = (
                np.array([data.node(str(v)) for v in task[part]], np.int64) for part in ("support", "query")
            )
            support_y, query_y = (
                np.array([label[str(c)] for c in task[part]], np.int64) for part in ("support_y", "query_y")
            )
            pool.append(Episode(Task(support, support_y, query), query_y))
            refuse_twice(data, support, task["support_y"])
        except FewnodeError as error:
            raise FewnodeError(f"{path}: line {number}: {error}") from None
        except KeyError as error:
            raise FewnodeError(f"{path}: line {number}: {error} is missing") from None
        except (ValueError, TypeError, RecursionError):
            raise FewnodeError(
                f"{path}: line {number}: not a JSON object with support, support_y, query and query_y"
            ) from None
    if not pool:
        raise FewnodeError(f"{path}: no task in it")
    return pool


def pool_shape(pool: Sequence[Episode]) -> dict[str, int | None]:
    """N, K and M of the tasks of a pool; None where they differ."""
    counts = {
        "way": {task.n_way for task in pool},
        "shot": {count for task in pool for count in np.bincount(task.support_y).tolist()},
        "query": {count for task in pool for count in np.bincount(task.query_y, minlength=task.n_way).tolist()},
    }
    return {name: found.pop() if len(found) == 1 else None for name, found in counts.items()}
