"""Labels that may be wrong: labelled nodes that the rest of their class disagrees with.

Ridge regression from z to all classes answers for each node as if it had been fitted without it, in closed form: with H
the diagonal of X (XᵀX + λI)⁻¹ Xᵀ, its answer is (fitted - H y) / (1 - H). Nodes are ranked by how little their own
class answers to them, and by how much more another one does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fewnode.dataset import Dataset
from fewnode.errors import FewnodeError
from fewnode.graph import Ints
from fewnode.vectors import Floats, unit_rows

MARGIN = 0.3
"""How much it counts that another class answers more, beside how little the own one does."""


class WrongLabel(NamedTuple):
    """A node whose label may be wrong: how much its class agrees (1: fully), the likelier class, and why."""

    node: str
    label: str
    agreement: float
    likelier: str
    why: str


def wrong_labels(z: Floats, data: Dataset, count: int = 20, among: Sequence[int] | None = None) -> list[WrongLabel]:
    """Labelled nodes whose label is likeliest to be wrong, the likeliest first. `z`: a row for each node."""
    if data.labels is not None:
        raise FewnodeError(f"{data.name}: nodes have several labels; a wrong one is looked for where each has one")
    rows = np.flatnonzero(data.y >= 0)
    names, y = np.unique(data.y[rows], return_inverse=True)
    if names.size < 2:
        raise FewnodeError(f"{data.name} has labels of {names.size} classes; it takes two to disagree")
    x, places = unit_rows(z[rows]), np.arange(rows.size)
    fit = left_out_answers(x, y)
    own, others = fit[places, y], fit.copy()
    others[places, y] = -np.inf
    suspect = MARGIN * (others.max(axis=1) - own) - own
    if among is not None:
        suspect[~np.isin(rows, np.asarray(among))] = -np.inf
    found, adj, called = [], data.graph.adj, [data.class_names[c] for c in names]
    for place in np.argsort(-suspect, kind="stable")[: min(count, int(np.isfinite(suspect).sum()))].tolist():
        row, label, c = int(rows[place]), int(y[place]), int(others[place].argmax())
        members = np.flatnonzero(y == c)
        nearest = rows[members[int((x[members] @ x[place]).argmax())]]
        told = f"most like {data.node_name(int(nearest))} of {called[c]}"
        around = data.y[adj.indices[adj.indptr[row] : adj.indptr[row + 1]]]
        if (known := around[around >= 0]).size:
            told += f"; of {known.size} labelled neighbours {(known == names[label]).sum()} are in {called[label]}, "
            told += f"{(known == names[c]).sum()} in {called[c]}"
        agreement = round(float(own[place].clip(0, 1)), 4)
        found.append(WrongLabel(data.node_name(row), called[label], agreement, called[c], told))
    return found


def left_out_answers(x: Floats, y: Ints, ridge: float = 1.0) -> Floats:
    """How much each class (column) answers to each node, by all labelled nodes but that one.

    >>> x = np.array([[1, 0], [1, 0.1], [0, 1], [0.1, 1]], np.float32)
    >>> left_out_answers(x, np.array([0, 0, 1, 1])).argmax(axis=1).tolist()
    [0, 0, 1, 1]
    """
    x = np.column_stack([x, np.ones(len(x), x.dtype)])
    target = np.zeros((len(y), int(y.max()) + 1), x.dtype)
    target[np.arange(len(y)), y] = 1
    inverse = np.linalg.inv((x.T @ x).astype(np.float64) + ridge * np.eye(x.shape[1])).astype(x.dtype)
    seen = np.einsum("ij,jk,ik->i", x, inverse, x, optimize=True)[:, None]
    fitted = x @ (inverse @ (x.T @ target))
    return np.asarray((fitted - seen * target) / np.maximum(1 - seen, 1e-3))
