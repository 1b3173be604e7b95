"""Tasks whose classes are described: by their names or by sentences, beside labelled nodes or alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import scipy.sparse as sp

from fewnode.dataset import Dataset
from fewnode.episodes import Described, Episode, EpisodeSampler, Task
from fewnode.errors import FewnodeError
from fewnode.graph import Attributes, Ints, is_sparse
from fewnode.recognition.description import describe

QUERIES = 5
"""A class, in tasks of known classes."""


def described_rows(data: Dataset, classes: Sequence[int], texts: Mapping[str, str]) -> dict[int, Attributes]:
    """What stands for each of these classes: its name, and its text if there is one. Some say nothing: no row."""
    found = {}
    for c in classes:
        name = data.class_names[c]
        try:
            found[c] = describe(data, texts.get(name, ""), name).x
        except FewnodeError:
            continue
    return found


def silent_classes(data: Dataset, classes: Sequence[int], texts: Mapping[str, str]) -> list[str]:
    """The names of those of which neither name nor text has a word of the network."""
    rows = described_rows(data, classes, texts)
    return [data.class_names[c] for c in classes if c not in rows]


def with_descriptions(data: Dataset, episode: Episode, rows: Mapping[int, Attributes], labelled: bool) -> Episode:
    """The same question with descriptions of its classes; without `labelled`, the support nodes are taken away."""
    first = [int(np.argmax(episode.support_y == c)) for c in range(episode.n_way)]
    classes = data.y[episode.support[first]].tolist()
    known = [(label, rows[c]) for label, c in enumerate(classes) if c in rows]
    if not known:
        return episode
    every = [row for _, row in known]
    x = sp.vstack(every, format="csr") if is_sparse(every[0]) else np.concatenate(every)
    said = Described(x, np.array([label for label, _ in known], np.int64))
    kept = slice(None) if labelled else slice(0, 0)
    return Episode(Task(episode.support[kept], episode.support_y[kept], episode.query, said), episode.query_y)


def described_pool(
    data: Dataset, classes: Sequence[int], texts: Mapping[str, str], shape: tuple[int, int, int], tasks: int, seed: int
) -> list[Episode]:
    """Tasks of N ways, K shots and M queries of these classes, which are described; K may be 0.

    Without labels only classes whose name or text says something can be asked about.
    """
    way, shot, query = shape
    if min(way, query, shot + 1) < 1:
        raise FewnodeError(f"way and query must be at least 1, and shot at least 0, not {way}, {query} and {shot}")
    rows = described_rows(data, classes, texts)
    if not rows:
        raise FewnodeError("no class has a description or a name with a word of this network")
    members = {c: np.flatnonzero(data.y == c) for c in classes if shot > 0 or c in rows}
    large = [nodes for nodes in members.values() if nodes.size >= max(shot, 1) + query]
    if len(large) < way:
        raise FewnodeError(
            f"{way}-way tasks need {way} classes with a description and {max(shot, 1) + query} nodes, there are "
            f"{len(large)}: choose a smaller way or fewer queries"
        )
    drawn = EpisodeSampler.among(large, way, max(shot, 1), query, seed).take(tasks)
    return list(map(partial(with_descriptions, data, rows=rows, labelled=shot > 0), drawn))


def named_tasks(data: Dataset, members: Sequence[Ints], way: int, count: int, shot: int = 0) -> list[Episode]:
    """Tasks of known classes of which only the names are given; none if too few names say something.

    With `shot`, so many labelled nodes of each are given, too.
    """
    classes = [int(data.y[nodes[0]]) for nodes in members if nodes.size > QUERIES]
    try:
        return described_pool(data, classes, {}, (way, shot, QUERIES), count, 1)
    except FewnodeError:
        return []
