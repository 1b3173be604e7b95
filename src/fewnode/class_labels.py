"""Labels in whatever form they are given: class ids, names, or a matrix of nodes and classes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import scipy.sparse as sp

from fewnode.errors import FewnodeError
from fewnode.graph import Ints

MAX_CLASSES = 1 << 20
UNKNOWN = -1
"""The label of a node whose class nobody told us."""


def class_index(names: Iterable[str]) -> dict[str, int]:
    """0, 1, 2 … for the distinct names, in sorted order."""
    return {name: i for i, name in enumerate(sorted(set(names)))}


def only_class(labels: sp.csr_array) -> Ints:
    """The class of each node that is in one alone, -1 for the others."""
    alone = np.diff(labels.indptr) == 1
    y = np.full(labels.shape[0], UNKNOWN)
    y[alone] = labels.indices[labels.indptr[:-1][alone]]
    return y


def as_members(y: Ints, labels: sp.csr_array | None, width: int) -> sp.csr_array:
    """Nodes x classes, as wide as there are classes by now: those that are given, or made of one class a node."""
    if labels is not None:
        return sp.csr_array((labels.data, labels.indices, labels.indptr), shape=(labels.shape[0], width))
    known = np.flatnonzero(y >= 0)
    return sp.csr_array((np.ones(known.size, bool), (known, y[known])), shape=(y.size, width))


def read_labels(y: Any, n: int) -> tuple[Ints, tuple[str, ...], sp.csr_array | None]:
    """Class ids of n nodes (None and NaN are unknown), class names if `y` held names, and nodes x classes if it is
    a matrix of zeros and ones."""
    if y is None:
        return np.full(n, UNKNOWN), (), None
    labels = y if sp.issparse(y) else np.asarray(y)
    if sp.issparse(y) or (labels.ndim == 2 and len(labels) == n and np.isin(labels, (0, 1)).all()):
        members = sp.csr_array(labels, dtype=bool)
        return only_class(members), tuple(map(str, range(members.shape[1]))), members
    if labels.shape != (n,):
        raise FewnodeError(f"labels have shape {labels.shape}, expected one class for each of {n} nodes")
    if np.issubdtype(labels.dtype, np.integer):
        if labels.max(initial=0) > MAX_CLASSES:  # each id up to the largest takes memory
            raise FewnodeError(f"label of node {int(labels.argmax())} is {labels.max()}; class ids count from 0")
        return labels.astype(np.int64), (), None
    known = [None if label is None or label != label else str(label) for label in labels.tolist()]
    index = class_index(label for label in known if label is not None)
    return np.array([UNKNOWN if label is None else index[label] for label in known], np.int64), tuple(index), None
