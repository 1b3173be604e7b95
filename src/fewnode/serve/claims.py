"""How much of what the classes claim is right, by the labels that are known.

A claimed node whose known label is another one is wrong, whatever that other one is: also if nobody named it here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewnode.class_labels import UNKNOWN
from fewnode.dataset import Dataset
from fewnode.scoring.interval import wilson as wilson

CHECKABLE = 10
"""Of fewer nodes than that, nothing is said."""

Ids = NDArray[np.int64]
Mask = NDArray[np.bool_]


def share(right: int, nodes: int) -> dict[str, Any] | None:
    if nodes < CHECKABLE:
        return None
    low, high = wilson(right, nodes)
    return {"value": right / nodes, "low": low, "high": high, "right": right, "nodes": nodes}


def counterparts(data: Dataset, classes: Sequence[str], support: Sequence[tuple[int, str]]) -> list[int]:
    """What the data calls each class: the label of most of its support nodes, else its own name, else UNKNOWN."""
    found = []
    for name in classes:
        labels = Counter(int(data.y[node]) for node, label in support if label == name and data.y[node] != UNKNOWN)
        label, count = labels.most_common(1)[0] if labels else (UNKNOWN, 0)
        if 2 * count > labels.total():
            found.append(label)
        else:
            found.append(data.class_names.index(name) if name in data.class_names else UNKNOWN)
    return found


@dataclass(frozen=True)
class Claims:
    """Which class claims each node (its place among the classes, or -1), beside what is known of the node."""

    classes: Sequence[str]
    counterparts: Ids
    """What the data calls each class."""
    claimed: Ids
    known: Ids
    """The data's label of each node."""
    told: Ids
    """The class that somebody told a node to be in, which counts more than the data; -1: nobody did."""

    @classmethod
    def of(
        cls,
        data: Dataset,
        classes: Sequence[str],
        support: Sequence[tuple[int, str]],
        labels: Sequence[str | None],
        truth: Mapping[int, str],
    ) -> Claims:
        """`labels`: what each node of the dataset is taken for. Support nodes are left out."""
        place = {name: i for i, name in enumerate(classes)}
        told = np.full(data.graph.n, -1, np.int64)
        for node, name in truth.items():
            told[node] = place.get(name, len(classes))
        asked = np.ones(data.graph.n, bool)
        asked[[node for node, _ in support]] = False
        claimed = np.array([place.get(label, -1) if label is not None else -1 for label in labels], np.int64)
        own = np.array(counterparts(data, classes, support), np.int64)
        return cls(classes, own, claimed[asked], np.asarray(data.y, np.int64)[asked], told[asked])

    def _members(self, place: int) -> Mask:
        """Nodes that are known to be in the class."""
        called = self.counterparts[place]
        members: Mask = (self.told == place) | ((self.told < 0) & (self.known == called) & (called != UNKNOWN))
        return members

    def _checkable(self, place: int) -> Mask:
        """Nodes of which it is known whether they are in the class."""
        known: Mask = (self.told >= 0) | ((self.known != UNKNOWN) & (self.counterparts[place] != UNKNOWN))
        return known

    def to_json(self, data: Dataset) -> dict[str, Any]:
        each, checked, right, found = {}, 0, 0, np.zeros(self.known.shape, bool)
        member = np.zeros(self.known.shape, bool)
        for place, name in enumerate(self.classes):
            own, members = self.claimed == place, self._members(place)
            sure = own & self._checkable(place)
            good, part = int((own & members).sum()), int(sure.sum())
            called = int(self.counterparts[place])
            alone = called == UNKNOWN or int((self.counterparts == called).sum()) == 1
            each[name] = {
                "compared_with": None if called == UNKNOWN else data.class_names[called],
                "claimed": int(own.sum()),
                "checked": part,
                "precision": share(good, part),
                "members": int(members.sum()),
                "recall": share(good, int(members.sum())) if alone else None,
            }
            checked, right = checked + part, right + good
            found, member = found | (own & members), member | members
        return {
            "claimed": int((self.claimed >= 0).sum()),
            "checked": checked,
            "precision": share(right, checked),
            "members": int(member.sum()),
            "recall": share(int(found.sum()), int(member.sum())),
            "per_class": each,
        }
