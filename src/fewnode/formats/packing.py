"""Graphs and names as plain arrays of a file, and back: what a file says is checked before anything is made of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from fewnode.adjacency import Relation
from fewnode.errors import FewnodeError
from fewnode.graph import Graph, is_sparse

Arrays = Mapping[str, NDArray[Any]]


def graph_arrays(graph: Graph) -> tuple[dict[str, NDArray[Any]], list[dict[str, Any]]]:
    """The arrays of a graph, and what is to be said of its relations. Matrices of ones are stored without them."""
    arrays = _places("adj", graph.adj, graph.weighted)
    if is_sparse(graph.x):
        arrays |= {"x.indptr": graph.x.indptr, "x.indices": graph.x.indices, "x.data": graph.x.data}
    else:
        arrays["x"] = graph.x
    told = []
    for i, relation in enumerate(graph.relations):
        alone = _is_same(relation.adj, graph.adj)  # the only relation is its own sum
        told.append({"name": relation.name, "directed": relation.directed, "alone": alone})
        arrays |= {} if alone else _places(f"relation.{i}", relation.adj, relation.weighted)
    return arrays, told


def graph_of(
    arrays: Arrays, shape: tuple[int, int], told: Sequence[Mapping[str, Any]], home: Path | None = None
) -> Graph:
    """The graph that `graph_arrays` was given."""
    n, width = shape
    adj = _matrix("adj", arrays, n)
    x = arrays.get("x")
    if x is None:
        x = checked_csr(arrays["x.data"], arrays["x.indices"], arrays["x.indptr"], (n, width))
    relations = tuple(
        Relation(each["name"], adj if each["alone"] else _matrix(f"relation.{i}", arrays, n), each["directed"])
        for i, each in enumerate(told)
    )
    return Graph(adj, x, home, relations=relations)


def _places(name: str, matrix: sp.csr_array, weighted: bool) -> dict[str, NDArray[Any]]:
    places = {f"{name}.indptr": matrix.indptr, f"{name}.indices": matrix.indices}
    return places | ({f"{name}.data": matrix.data} if weighted else {})


def _matrix(name: str, arrays: Arrays, n: int) -> sp.csr_array:
    indices = arrays[f"{name}.indices"]
    ones = np.broadcast_to(np.float32(1), indices.shape)  # no memory for what is known
    return checked_csr(arrays.get(f"{name}.data", ones), indices, arrays[f"{name}.indptr"], (n, n))


def _is_same(one: sp.csr_array, other: sp.csr_array) -> bool:
    pairs = ((one.indptr, other.indptr), (one.indices, other.indices), (one.data, other.data))
    return all(a is b or np.array_equal(a, b) for a, b in pairs)


def checked_csr(
    data: NDArray[Any], indices: NDArray[Any], indptr: NDArray[Any], shape: tuple[int, int]
) -> sp.csr_array:
    """A sparse matrix from arrays of an untrusted file.

    SciPy's own check passes a matrix whose last row starts at 0, whatever the others say, and then crashes on it.
    """
    if not (data.ndim == indices.ndim == indptr.ndim == 1 and indices.dtype.kind in "iu" and indptr.dtype.kind in "iu"):
        raise FewnodeError("not a sparse matrix")
    if indptr.size != shape[0] + 1 or data.size != indices.size or data.dtype.kind not in "biuf":
        raise FewnodeError(f"{indptr.size - 1} rows, expected {shape[0]}; {indices.size} places, {data.size} values")
    starts = indptr.astype(np.int64)
    if starts[0] != 0 or starts[-1] != indices.size or (np.diff(starts) < 0).any():
        raise FewnodeError("the starts of the rows do not ascend from 0 to the number of values")
    if indices.size and not 0 <= indices.min() <= indices.max() < shape[1]:
        raise FewnodeError(f"a place outside of the {shape[1]} columns")
    with np.errstate(over="ignore"):  # what becomes infinite is refused where the graph is made
        return sp.csr_array((data.astype(np.float32, copy=False), indices, indptr), shape=shape)


def memberships_of(arrays: Arrays, n: int, classes: int) -> sp.csr_array | None:
    """Which node is in which class, where nodes may be in several."""
    if "labels.indices" not in arrays:
        return None
    indices = arrays["labels.indices"]
    return checked_csr(np.ones(indices.shape, bool), indices, arrays["labels.indptr"], (n, classes))


def pack_names(what: str, names: Sequence[str]) -> dict[str, NDArray[Any]]:
    encoded = [name.encode() for name in names]
    ends = np.cumsum([len(name) for name in encoded], dtype=np.int64)
    return {what: np.frombuffer(b"".join(encoded), np.uint8), f"{what}.ends": ends}


def unpack_names(what: str, arrays: Arrays) -> tuple[str, ...] | None:
    if what not in arrays:
        return None
    blob, ends = arrays[what].tobytes(), arrays[f"{what}.ends"].tolist()
    return tuple(blob[start:end].decode() for start, end in pairwise([0, *ends]))
