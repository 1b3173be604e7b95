"""Which network and which nodes a caller means: one reading for every function that takes them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fewnode.class_labels import UNKNOWN
from fewnode.dataset import ClassSplit, Dataset
from fewnode.errors import FewnodeError
from fewnode.graph import Graph, Ints
from fewnode.interchange import is_pyg, plain_array, read_pyg
from fewnode.naming import likeness

if TYPE_CHECKING:
    from torch import Tensor


class PyGData(Protocol):
    """A `torch_geometric.data.Data`."""

    x: Any
    edge_index: Any
    num_nodes: Any


Network: TypeAlias = Graph | Dataset | PyGData
Nodes: TypeAlias = "Sequence[int | str] | NDArray[Any] | Tensor | int | str"
"""Row numbers, node names, or a boolean mask with a value for each node of the network."""
Labels: TypeAlias = "Sequence[Hashable] | NDArray[Any] | Tensor"

NODES = "row numbers, node names, or a boolean mask"
SEVERAL = "a node may be in several with `multi_label`"


def as_network(given: Network) -> Graph | Dataset:
    """What was given, if it is a `Graph` or a `Dataset`; the dataset in it, if it is PyG's.

    Masks of a PyG graph are not named as unused here: who wants them passes them as nodes.
    """
    if isinstance(given, Graph | Dataset):
        return given
    if not is_pyg(given):
        kind = "a class" if isinstance(given, type) else f"a {type(given).__name__}"
        raise FewnodeError(
            f"{kind} is no network; expected a fewnode.Graph, a fewnode.Dataset or a PyG Data "
            "(Dataset.from_networkx and Dataset.from_scipy make datasets)"
        )
    parts = read_pyg(given)
    return Dataset.from_parts(replace(parts, unused=tuple(name for name in parts.unused if not name.endswith("_mask"))))


def as_dataset(given: Network) -> Dataset:
    """A network as a dataset; that of a graph alone has no labels and no names."""
    network = as_network(given)
    if isinstance(network, Dataset):
        return network
    return Dataset(network, np.full(network.n, UNKNOWN), ClassSplit((), (), ()))


def as_labelled(given: Network) -> Dataset:
    """A network as a dataset, for those who need labels."""
    if isinstance(given, Graph):
        raise FewnodeError("a Graph has no labels to learn from or to test by; give the Dataset instead")
    return as_dataset(given)


def as_graph(given: Network) -> Graph:
    network = as_network(given)
    return network.graph if isinstance(network, Dataset) else network


def node_rows(network: Graph | Dataset, nodes: Nodes, what: str) -> Ints:
    """The rows that are meant by row numbers, names (if the network has them) or a boolean mask of length n.

    `what` is the argument's name, for the sentence that refuses anything else.
    """
    given, n = plain_array(nodes), as_graph(network).n
    if isinstance(given, str | Integral):
        given = [given]
    if not isinstance(given, Sequence) and not hasattr(given, "__array__"):
        raise FewnodeError(f"{what} is a {type(given).__name__}, expected a list of {NODES}")
    try:
        array = np.asarray(given)
    except ValueError:  # lists of unequal length
        raise FewnodeError(f"{what} is a list of lists, expected a list of {NODES}") from None
    if array.ndim != 1:
        raise FewnodeError(f"{what} has shape {array.shape}, expected one list of {NODES}")
    if array.size == 0:
        return np.zeros(0, np.int64)
    kinds = set(map(type, given)) if array.dtype == object or isinstance(given, list | tuple) else set()
    if array.dtype == bool or kinds == {bool}:
        if array.size != n:
            raise FewnodeError(f"{what} is a mask of length {array.size:,}, expected {n:,}: one value for each node")
        return np.flatnonzero(array)
    if array.dtype.kind in "OU":
        array = np.array([_row(network, node, what) for node in given])
    elif array.dtype.kind not in "iu" or bool in kinds:
        wrong = next((node for node in given if isinstance(node, bool)), array[0].item())
        raise FewnodeError(f"{what} holds {wrong!r}, expected {NODES}")
    outside = (array < 0) | (array >= n)
    if outside.any():
        bad = int(array[outside][0])
        named = isinstance(network, Dataset) and str(bad) in network.node_id
        hint = f"; the node of that name is written as text, {str(bad)!r}" if named else ""
        raise FewnodeError(f"{what}: node {bad} is out of range, expected 0 to {n - 1}{hint}")
    return array.astype(np.int64)  # a copy: torch does not share memory that may not be written


def _row(network: Graph | Dataset, node: Any, what: str) -> int:
    """The row of a node by its name; a number stays what it is."""
    if isinstance(node, Integral) and not isinstance(node, bool):
        return int(node)
    if not isinstance(node, str):
        raise FewnodeError(f"{what} holds {node!r}, expected {NODES}")
    if not isinstance(network, Dataset):
        raise FewnodeError(f"{what} names the node {node!r}, but a Graph has no names; give the Dataset instead")
    try:
        return network.node(node)
    except FewnodeError as error:
        raise FewnodeError(f"{what}: {error}") from None


def support_rows(
    network: Graph | Dataset,
    support: Nodes,
    support_y: Labels,
    names: Sequence[Hashable] | None = None,
    several: bool = False,
) -> tuple[Ints, Ints]:
    """Support nodes as rows and their labels as 0 … N-1, in the order of `classes`: each node once, with one label.

    With `names`, classes are numbered in that order, and some of them may have no node. If `several`, a node may be
    there once for each of its classes.
    """
    rows, labels = node_rows(network, support, "support"), label_list(support_y)
    if len(rows) != len(labels) or not (labels or names):
        hint = "; with a mask, give the labels of the marked nodes alone" if len(labels) == as_graph(network).n else ""
        raise FewnodeError(f"{len(rows)} support nodes and {len(labels)} labels; expected one label a node{hint}")
    index = {name: i for i, name in enumerate(classes(labels) if names is None else names)}
    y = np.array([index[name] for name in labels], np.int64)
    refuse_twice(network, rows, labels, several)
    return rows, y


def refuse_twice(network: Graph | Dataset, rows: Ints, labels: Sequence[Hashable], several: bool = False) -> None:
    """Refuse a support that has a node twice: it would count twice, or be in two classes, unless `several`."""
    given: dict[int, list[Hashable]] = {}
    for row, label in zip(rows.tolist(), labels, strict=True):
        before = given.setdefault(row, [])
        if not before or (several and label not in before):
            before.append(label)
            continue
        node = repr(network.node_names[row]) if isinstance(network, Dataset) and network.node_names else row
        if label not in before:
            raise FewnodeError(f"support node {node} is in two classes, {before[0]!r} and {label!r}; {SEVERAL}")
        raise FewnodeError(f"support has node {node} twice; give it once")


def classes(support_y: Labels) -> list[Hashable]:
    """The distinct labels in the order of the columns of `predict_proba`: sorted, by their text if need be."""
    distinct = list(dict.fromkeys(label_list(support_y)))
    try:
        return sorted(distinct)  # type: ignore[type-var]
    except TypeError:
        return sorted(distinct, key=str)


def label_list(support_y: Labels) -> list[Hashable]:
    """Labels as a list: none of them unknown, and no two that look the same."""
    given = plain_array(support_y)
    if isinstance(given, str | bytes) or not (isinstance(given, Sequence) or hasattr(given, "__array__")):
        shown = repr(given) if isinstance(given, str | bytes) else f"a {type(given).__name__}"
        raise FewnodeError(f"support_y is {shown}, expected a list with a label for each support node")
    if getattr(given, "ndim", 1) != 1:
        raise FewnodeError(f"support_y has shape {given.shape}, expected a label for each support node")
    labels: list[Any] = given.tolist() if hasattr(given, "tolist") else list(given)
    seen: dict[str, Hashable] = {}
    for place, label in enumerate(labels):
        is_missing = label is None or type(label).__name__ in ("NAType", "NaTType")  # pandas
        is_unknown = isinstance(label, Real) and (label != label or (label == UNKNOWN and not isinstance(label, bool)))
        if is_missing or is_unknown or (isinstance(label, str) and not label.strip()):
            raise FewnodeError(f"support_y: label {place} is {label!r}, which names no class; leave that node out")
        if not isinstance(label, Hashable):
            raise FewnodeError(f"support_y: label {place} is a {type(label).__name__}, expected a name or a number")
        first = seen.setdefault(likeness(str(label)), label)
        if first != label:
            raise FewnodeError(f"support_y: the labels {first!r} and {label!r} look the same; write them alike")
    return labels
