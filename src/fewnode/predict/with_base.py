"""New classes beside the base classes of a dataset: a node may be in one of either."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from fewnode.classes.definitions import Definitions
from fewnode.dataset import Dataset
from fewnode.episodes import choose, uniform
from fewnode.errors import FewnodeError
from fewnode.graph import Ints
from fewnode.naming import alike
from fewnode.seeds import stream


def joined_by_base(data: Dataset, given: Definitions, seed: int) -> Definitions:
    """The classes of a question and the base classes of the dataset.

    A class of many examples has a head start before one of few, so a base class has as many as the largest new class:
    labelled nodes drawn by the seed, none of those given for a new class. A class left out is told in `remarks`.
    """
    base, new = _base_members(data), {*given.labels, *given.descriptions}
    instead = "give the new class another name, or leave out --with-base"
    if clash := [name for name in base if name in new]:
        raise FewnodeError(f"class {clash[0]!r} is a base class of {data.name} already: {instead}")
    if why := next(filter(None, (alike(name, base) for name in sorted(new))), None):
        raise FewnodeError(f"{why}; the first is a base class of {data.name}: {instead}")
    support, labels, remarks = list(given.support), list(given.labels), list(given.remarks)
    shots = max(Counter(given.labels).values(), default=1)  # a description counts as one
    for place, (name, members) in enumerate(base.items()):
        free = np.setdiff1d(members, given.support)
        if not free.size:
            remarks.append(f"base class {name!r}: all its nodes are given for new classes, so it is left out")
            continue
        count = min(shots, free.size)
        support += np.sort(free[choose(uniform(stream(seed, place), 0, count), free.size, count)]).tolist()
        labels += [name] * count
    return replace(given, support=support, labels=labels, remarks=tuple(remarks))


def _base_members(data: Dataset) -> dict[str, Ints]:
    """The nodes of each training and validation class that has some, by its name."""
    known = [*data.split.train, *data.split.valid]
    members = {data.class_names[c]: np.flatnonzero(data.y == c) for c in known}
    members = {name: nodes for name, nodes in members.items() if nodes.size}
    if not members:
        raise FewnodeError(
            f"{data.name} has no base classes to stand beside the new ones: leave out --with-base, or give it training "
            "and validation classes (fewnode data import --split)"
        )
    return members
