"""Scaling of node attributes: the paper says bag of words and leaves the rest open."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from fewnode._system import memory
from fewnode.errors import FewnodeError, closest
from fewnode.graph import Attributes, Graph, is_sparse

SCALINGS = ("raw", "l2", "tf-idf", "log-tf-idf")


def need_attributes(graph: Graph) -> None:
    """Refuse a network that has no attributes, and say what to do about it."""
    if graph.n_features == 0:
        advice = "use `features` degree, svd or walks, or a walk method such as deepwalk"
        raise FewnodeError(f"this network has no attributes; {advice}")


def need_differences(graph: Graph) -> None:
    """Refuse a network in which nothing tells one node from another: no edge, and attributes that are all the same."""
    x = graph.x
    if graph.adj.nnz or graph.n < 2 or (x.shape[1] and abs(x.max(axis=0) - x.min(axis=0)).sum()):
        return
    raise FewnodeError(
        "nothing tells one node of this network from another: there is no edge, and no attribute in which two nodes "
        "differ; give a table of edges, or columns that describe nodes"
    )


def scale(x: Attributes, scaling: str, idf: NDArray[np.float32] | None = None) -> Attributes:
    """The attributes as a method reads them: `raw`, or scaled and then rows of unit length.

    `l2` changes nothing before that; `tf-idf` weighs each attribute by its rarity, `log-tf-idf` dampens counts too.
    `idf` is that of the network the method was trained on, so that a node looks the same in another network.
    """
    if scaling not in SCALINGS:
        raise FewnodeError(f"unknown scaling {scaling!r}{closest(scaling, SCALINGS)}")
    if scaling == "raw":
        return x
    if scaling == "log-tf-idf":
        x = dampened(x)
    if scaling in ("tf-idf", "log-tf-idf"):
        weight = inverse_document_frequency(x) if idf is None else idf
        x = _with_values(x, x.data * weight[x.indices]) if is_sparse(x) else x * weight
    return unit_rows(x)


def inverse_document_frequency(x: Attributes) -> NDArray[np.float32]:
    """log((1 + n) / (1 + document frequency)) + 1 of each attribute."""
    if is_sparse(x):
        present = np.bincount(x.indices, weights=x.data != 0, minlength=x.shape[1])
    else:
        present = sum((part != 0).sum(axis=0) for part in memory.chunks(x))
    return np.asarray(np.log((1 + x.shape[0]) / (1 + present)) + 1, dtype=np.float32)


def dampened(x: Attributes) -> Attributes:
    """log(1 + |x|) with the sign of x: the tenth mention of a word says less than the first."""
    if is_sparse(x):
        return _with_values(x, dampened(x.data))
    return np.sign(x) * np.log1p(np.abs(x))


def unit_rows(x: Attributes) -> Attributes:
    """Rows of Euclidean length 1; a row of zeros stays one."""
    if not is_sparse(x):
        length = np.linalg.norm(x, axis=1, keepdims=True)
        return x / np.where(length == 0, 1, length)
    row = np.repeat(np.arange(x.shape[0]), np.diff(x.indptr))
    length = np.sqrt(np.bincount(row, weights=np.square(x.data, dtype=np.float64), minlength=x.shape[0]))
    return _with_values(x, (x.data / np.where(length == 0, 1, length)[row]).astype(np.float32))


def _with_values(x: sp.csr_array, values: NDArray[np.float32]) -> sp.csr_array:
    """A matrix with other values at the places of x."""
    found = sp.csr_array((values, x.indices, x.indptr), shape=x.shape)
    found.has_canonical_format = True
    return found
