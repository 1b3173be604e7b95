"""Scaling of node attributes: the paper says bag of words and leaves the rest open."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from fewnode.errors import FewnodeError, closest
from fewnode.graph import Attributes, Graph, is_sparse

SCALINGS = ("raw", "l2", "tf-idf", "log-tf-idf")


def need_attributes(graph: Graph) -> None:
    """Refuse a network that has no attributes, and say what to do about it."""
    if graph.n_features == 0:
        advice = "use --features degree, svd or walks, or a walk method such as deepwalk"
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
        x = x.multiply(weight).tocsr() if is_sparse(x) else x * weight
    return unit_rows(x)


def inverse_document_frequency(x: Attributes) -> NDArray[np.float32]:
    """log((1 + n) / (1 + document frequency)) + 1 of each attribute."""
    present = np.bincount(x.indices[x.data != 0], minlength=x.shape[1]) if is_sparse(x) else (x != 0).sum(axis=0)
    return np.asarray(np.log((1 + x.shape[0]) / (1 + present)) + 1, dtype=np.float32)


def dampened(x: Attributes) -> Attributes:
    """log(1 + |x|) with the sign of x: the tenth mention of a word says less than the first."""
    if is_sparse(x):
        return sp.csr_array((dampened(x.data), x.indices, x.indptr), shape=x.shape)
    return np.sign(x) * np.log1p(np.abs(x))


def unit_rows(x: Attributes) -> Attributes:
    """Rows of Euclidean length 1; a row of zeros stays one."""
    if not is_sparse(x):
        length = np.linalg.norm(x, axis=1, keepdims=True)
        return x / np.where(length == 0, 1, length)
    length = np.sqrt(np.asarray(x.multiply(x).sum(axis=1))).ravel()
    data = x.data / np.repeat(np.where(length == 0, 1, length), np.diff(x.indptr))
    return sp.csr_array((data.astype(np.float32), x.indices, x.indptr), shape=x.shape)
