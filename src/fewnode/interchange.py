"""What graphs of other libraries hold: SciPy, NetworkX and PyG. What is read of them, and what is not.

None of the libraries is imported: who has such a graph has its library.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from fewnode.errors import FewnodeError, closest

PARTS = ("train", "valid", "test")
NAMES = ("class_names", "node_names", "feature_names")

_READ = {"x", "y", "edge_index", "num_nodes", "attribute_blocks", *NAMES, *(f"{part}_classes" for part in PARTS)}
"""Fields of a PyG `Data` that are read: PyG's own, and those that `Dataset.to_pyg` writes beside them."""


@dataclass(frozen=True)
class NetworkParts:
    """A graph of another library as plain arrays. `unused` names what else it holds."""

    edges: NDArray[np.int64]
    n: int
    x: Any = None
    y: Any = None
    fields: dict[str, Any] = field(default_factory=dict)
    """Of a `Dataset`: names."""
    split: tuple[tuple[int, ...], ...] | None = None
    blocks: tuple[tuple[str, int, int, str], ...] | None = None
    """Kind, first column, end and name of each `Block` of attributes, if the graph tells."""
    unused: tuple[str, ...] = ()


def read_scipy(adj: Any, x: Any, y: Any) -> NetworkParts:
    """Matrices: `adj[i, j]` other than 0 is an edge i -> j."""
    matrix = sp.coo_array(adj)
    n = max(matrix.shape)
    if min(matrix.shape) < n:
        raise FewnodeError(f"the adjacency matrix is {' x '.join(map(str, matrix.shape))}, expected a square one")
    there = matrix.data != 0
    unused = ("weights of edges (adj has values other than 0 and 1)",) if (matrix.data[there] != 1).any() else ()
    return NetworkParts(np.stack(matrix.coords).astype(np.int64)[:, there], n, x, y, unused=unused)


def read_networkx(network: Any, label: str | None, attributes: Sequence[str], directed: bool) -> NetworkParts:
    """A NetworkX graph whose nodes carry their class under `label` and numbers under `attributes`."""
    row = {node: i for i, node in enumerate(network)}
    keys = dict.fromkeys(key for node in row for key in network.nodes[node])
    for key in (label, *attributes):
        if key is not None and key not in keys:
            raise FewnodeError(f"no node has {key!r}{closest(str(key), map(str, keys))}")
    found = list(network.edges(data=True))
    edges = np.array([(row[u], row[v]) for u, v, _ in found], np.int64).reshape(-1, 2).T
    unused = [f"node attribute {key!r}" for key in keys if key != label and key not in attributes]
    unused += [f"edge attribute {key!r}" for key in dict.fromkeys(key for *_, data in found for key in data)]
    if network.is_directed() and not directed and found:
        unused.append("direction of edges (directed=True keeps it)")
    values = {key: _vectors(network, key) for key in attributes}
    x = np.concatenate(list(values.values()), axis=1) if attributes else None
    y = [network.nodes[node].get(label) for node in row] if label is not None else None
    names = {"node_names": tuple(str(node) for node in row)}
    return NetworkParts(edges, len(row), x, y, names, blocks=_side_by_side(values), unused=tuple(unused))


def is_pyg(source: object) -> bool:
    """Whether it is PyG's, of one of its classes or of a class made from one."""
    return any(kind.__module__.partition(".")[0] == "torch_geometric" for kind in type(source).__mro__)


def read_pyg(source: Any) -> NetworkParts:
    """A PyG `Data`, or a dataset of one."""
    fields: dict[str, Any] = {}
    if hasattr(type(source), "len"):  # a PyG dataset has the method, a graph has not
        if len(source) != 1:
            raise FewnodeError(f"{type(source).__name__} holds {len(source)} graphs, expected one")
        fields["name"] = str(getattr(source, "name", type(source).__name__))
        source = source[0]
    if getattr(source, "edge_index", None) is None:
        raise FewnodeError(f"{type(source).__name__} has no edge_index, expected a homogeneous Data object")
    held = {name: value for name, value in source.to_dict().items() if value is not None}
    fields |= {name: tuple(held[name]) for name in NAMES if name in held}
    split = None
    if "train_classes" in held:
        split = tuple(tuple(held[f"{part}_classes"].tolist()) for part in PARTS)
    x, y = plain_array(source.x), plain_array(source.y)
    y = y.reshape(-1) if y is not None and y.ndim == 2 and y.shape[1] == 1 else y
    unused = tuple(name for name in held if name not in _READ)
    blocks = tuple(map(tuple, held["attribute_blocks"])) if "attribute_blocks" in held else None
    return NetworkParts(
        plain_array(source.edge_index), int(source.num_nodes), x, y, fields, split, blocks=blocks, unused=unused
    )


def plain_array(tensor: Any) -> Any:
    """A torch tensor as a NumPy array or, if it is sparse, a SciPy one. Anything else comes back as it is."""
    if not hasattr(tensor, "detach"):
        return tensor
    tensor = tensor.detach().cpu()
    layout = str(tensor.layout)
    if layout == "torch.strided":
        return tensor.numpy()
    coo = (tensor if layout == "torch.sparse_coo" else tensor.to_sparse_coo()).coalesce()
    return sp.coo_array((coo.values().numpy(), tuple(coo.indices().numpy())), shape=tuple(tensor.shape)).tocsr()


def _side_by_side(values: Mapping[str, NDArray[np.float32]]) -> tuple[tuple[str, int, int, str], ...]:
    """A block for each attribute: single numbers mean something by themselves, rows of several are vectors."""
    blocks, end = [], 0
    for key, rows in values.items():
        start, end = end, end + rows.shape[1]
        blocks += [("numbers" if rows.shape[1] == 1 else "vector", start, end, key)] if end > start else []
    return tuple(blocks)


def _vectors(network: Any, key: str) -> NDArray[np.float32]:
    """The values of a NetworkX attribute, a row a node."""
    rows: list[NDArray[np.float32]] = []
    for node, found in network.nodes(data=key):
        try:
            rows.append(np.asarray(found, dtype=np.float32).reshape(-1))
        except (TypeError, ValueError):
            raise FewnodeError(f"node {node!r}: {key!r} is {found!r}, expected numbers") from None
        if found is None or rows[-1].size != rows[0].size:
            raise FewnodeError(f"node {node!r}: {key!r} is {found!r}, expected {rows[0].size} number(s)")
    return np.stack(rows)
