"""How near nodes are to prototypes, or to each other: section 4.4, in parts that bound memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from fewnode.vectors import Floats, in_parts, unit_rows

NARROW, RESIDENT = 8, 1024
"""Columns up to which each is multiplied alone, which is sooner; rows that stay in the processor's cache meanwhile."""


@np.errstate(invalid="ignore", over="ignore")  # what is not finite is refused where it would be an answer
def nearness(z: Floats, p: Floats, distance: str, lengths: Floats | None = None) -> Floats:
    """How near each row is to each prototype: the negative distance. Of one task, or of several at once.

    A cosine lies in [-1, 1]; it is multiplied by 10 so that the softmax can be sure of something. `lengths`: of the
    rows, where they are known.
    """
    if distance == "cosine" and z.ndim > 2:
        return np.asarray(10 * (unit_rows(z) @ unit_rows(p).swapaxes(-1, -2)))
    if distance == "cosine":
        unit, found = 10 * unit_rows(p).T, np.empty((len(z), len(p)), np.float32, "F")
        for low in range(0, len(z), RESIDENT):
            part = z[low : low + RESIDENT]
            length = row_lengths(part) if lengths is None else lengths[low : low + RESIDENT]
            np.divide(products(part, unit), length[:, None], out=found[low : low + RESIDENT])
        return found
    if z.ndim > 2:
        squared = np.square(z[..., :, None, :] - p[..., None, :, :]).sum(axis=-1)
    else:
        squared = np.concatenate([np.square(part[:, None] - p).sum(axis=2) for part in in_parts(z, p.size)])
    return np.asarray(-squared if distance == "sqeuclidean" else -np.sqrt(squared + np.float32(1e-12)))


def row_lengths(z: Floats) -> Floats:
    return np.asarray(np.maximum(np.sqrt(np.einsum("nd,nd->n", z, z)), 1e-12))


def products(rows: Floats, columns: Floats) -> Floats:
    """rows @ columns. A library of linear algebra takes three times as long for a few columns as for each alone.

    Each column lies together in memory ("F"), so that the largest of a few columns is found soon.
    """
    if columns.shape[1] > NARROW or rows.ndim > 2:
        return np.asarray(rows @ columns)
    found = np.empty((len(rows), columns.shape[1]), np.result_type(rows, columns), "F")
    contiguous = np.ascontiguousarray(columns.T)
    for low in range(0, len(rows), RESIDENT):
        for c, column in enumerate(contiguous):
            found[low : low + RESIDENT, c] = rows[low : low + RESIDENT] @ column
    return found


@np.errstate(invalid="ignore", over="ignore")
def softmax(score: Any) -> Floats:
    weight = np.exp(score - score.max(axis=-1, keepdims=True))
    weight /= weight.sum(axis=-1, keepdims=True)
    return np.asarray(weight)


def log_softmax(score: Any) -> Floats:
    away = score - score.max(axis=-1, keepdims=True)
    return np.asarray(away - np.log(np.exp(away).sum(axis=-1, keepdims=True)))
