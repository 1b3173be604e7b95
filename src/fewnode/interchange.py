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
NAMES = ("class_names", "node_names", "feature_names", "texts")
SEVERAL = (list, tuple, set, frozenset)
"""What a node that is in several classes may carry them in."""
OURS = (
    "labels",
    "kind_names",
    "attribute_blocks",
    "directed_relations",
    *NAMES,
    *(f"{part}_classes" for part in PARTS),
)
"""Fields that `Dataset.to_pyg` writes beside those of PyG."""


@dataclass(frozen=True)
class NetworkParts:
    """A graph of another library as plain arrays. `unused` names what else it holds."""

    edges: NDArray[np.int64]
    n: int
    x: Any = None
    y: Any = None
    weight: NDArray[np.float64] | None = None
    """The weight of each edge."""
    edge_kind: NDArray[np.int64] | None = None
    """The kind of each edge, as a place in `relation_names`."""
    relation_names: tuple[str, ...] | None = None
    directed: bool | tuple[str, ...] = False
    """Whether all edges have a direction, or the relations that have one, if the source says so."""
    fields: dict[str, Any] = field(default_factory=dict)
    """Of a `Dataset`: names, kinds of nodes, several labels a node."""
    split: tuple[tuple[int, ...], ...] | None = None
    blocks: tuple[tuple[str, int, int, str], ...] | None = None
    """Kind, first column, end and name of each `Block` of attributes, if the graph tells."""
    unused: tuple[str, ...] = ()


def read_scipy(adj: Any, x: Any, y: Any) -> NetworkParts:
    """Matrices: `adj[i, j]` other than 0 is an edge i -> j, and its weight."""
    matrix = sp.coo_array(adj)
    if matrix.shape[0] != matrix.shape[1]:
        raise FewnodeError(f"the adjacency matrix is {' x '.join(map(str, matrix.shape))}, expected a square one")
    there = matrix.data != 0
    weight = np.asarray(matrix.data[there], np.float64)
    edges = np.stack(matrix.coords).astype(np.int64)[:, there]
    return NetworkParts(edges, matrix.shape[0], x, y, weight if (weight != 1).any() else None)


# --- NetworkX -----------------------------------------------------------------------------------------------------


def read_networkx(
    network: Any,
    label: str | None,
    attributes: Sequence[str],
    directed: Any = False,
    weight: str | None = "weight",
    relation: str | None = None,
) -> NetworkParts:
    """A NetworkX graph, as `Dataset.from_networkx` describes it."""
    row = {node: i for i, node in enumerate(network)}
    keys = dict.fromkeys(key for node in row for key in network.nodes[node])
    for key in (label, *attributes):
        if key is not None and key not in keys:
            raise FewnodeError(f"no node has {key!r}{closest(str(key), map(str, keys))}")
    edges = list(network.edges(data=True))
    edge_keys = dict.fromkeys(key for *_, data in edges for key in data)
    unused = [f"node attribute {key!r}" for key in keys if key != label and key not in attributes]
    unused += [f"edge attribute {key!r}" for key in edge_keys if key not in (weight, relation)]
    if network.is_directed() and directed is False and edges:
        unused.append("direction of edges (directed=True keeps it)")

    if relation is not None and relation not in edge_keys:
        raise FewnodeError(f"no edge has {relation!r}{closest(relation, map(str, edge_keys))}")
    for u, v, data in edges:
        if relation is not None and data.get(relation) in (None, ""):
            raise FewnodeError(f"edge {u!r} - {v!r} has no {relation!r}, expected the kind of edge it is")
        value = data.get(weight) if weight in edge_keys else 1
        is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
        if not (is_number and 0 <= value < np.inf):
            raise FewnodeError(f"edge {u!r} - {v!r}: its {weight!r} is {value!r}, expected a number from 0 on")
    kinds: list[Any] = []
    if relation is not None:
        kinds = [str(data[relation]) for *_, data in edges]
    elif network.is_multigraph() and all(isinstance(key, str) for *_, key in network.edges(keys=True)):
        kinds = [key for *_, key in network.edges(keys=True)]

    blocks, values, end = list[tuple[str, int, int, str]](), [], 0
    for key in attributes:  # single numbers mean something by themselves, rows of several are vectors
        values.append(_rows(network, key))
        start, end = end, end + values[-1].shape[1]
        blocks += [("numbers" if end == start + 1 else "vector", start, end, key)] if end > start else []
    y: Any = [network.nodes[node].get(label) for node in row] if label is not None else None
    fields: dict[str, Any] = {"node_names": tuple(str(node) for node in row)}
    if y is not None and any(isinstance(classes, SEVERAL) for classes in y):
        own = [classes if isinstance(classes, SEVERAL) else () if classes is None else (classes,) for classes in y]
        names = sorted({str(name) for classes in own for name in classes})
        place = {name: c for c, name in enumerate(names)}
        places = [(i, place[str(name)]) for i, classes in enumerate(own) for name in classes]
        ends = np.array(places, np.int64).reshape(-1, 2).T
        y = sp.csr_array((np.ones(len(places), bool), tuple(ends)), shape=(len(row), len(names)))
        fields["class_names"] = tuple(names)
    number = {name: i for i, name in enumerate(dict.fromkeys(kinds))}
    return NetworkParts(
        np.array([(row[u], row[v]) for u, v, _ in edges], np.int64).reshape(-1, 2).T,
        len(row),
        np.concatenate(values, axis=1) if values else None,
        y,
        np.array([data[weight] for *_, data in edges], np.float64) if weight in edge_keys else None,
        np.array([number[kind] for kind in kinds], np.int64) if kinds else None,
        tuple(number) if kinds else None,
        fields=fields,
        blocks=tuple(blocks),
        unused=tuple(unused),
    )


def _rows(network: Any, key: str) -> NDArray[np.float32]:
    """The values of an attribute, a row a node."""
    rows: list[NDArray[np.float32]] = []
    for node, value in network.nodes(data=key):
        try:
            rows.append(np.asarray(value, dtype=np.float32).reshape(-1))
        except (TypeError, ValueError):
            raise FewnodeError(f"node {node!r}: {key!r} is {value!r}, expected numbers") from None
        if value is None or rows[-1].size != rows[0].size:
            raise FewnodeError(f"node {node!r}: {key!r} is {value!r}, expected {rows[0].size} number(s)")
    return np.stack(rows)


def as_networkx(
    nodes: Sequence[tuple[Any, dict[str, Any]]], arcs: NDArray[np.int64], held: Mapping[str, Any], directed: bool
) -> Any:
    """A NetworkX graph of named nodes and what each carries; kinds of edges are keys of a multigraph."""
    try:
        import networkx
    except ModuleNotFoundError:
        raise FewnodeError("to_networkx needs NetworkX: pip install networkx") from None
    names, weight = held.get("relation_names"), held.get("edge_weight")
    directed = directed or bool(held.get("directed_relations"))
    graphs = (networkx.Graph, networkx.DiGraph, networkx.MultiGraph, networkx.MultiDiGraph)
    graph = graphs[2 * (names is not None) + directed]()
    graph.add_nodes_from(nodes)
    columns: list[Sequence[Any]] = [[nodes[i][0] for i in side.tolist()] for side in arcs]
    columns += [] if names is None else [[names[kind] for kind in held["edge_type"].tolist()]]
    columns.append([{}] * arcs.shape[1] if weight is None else [{"weight": value} for value in weight.tolist()])
    graph.add_edges_from(zip(*columns, strict=True))
    return graph


# --- PyG ----------------------------------------------------------------------------------------------------------


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
    if hasattr(source, "node_types") and hasattr(source, "edge_types"):
        return _read_hetero(source, fields)
    if getattr(source, "edge_index", None) is None:
        raise FewnodeError(f"{type(source).__name__} has no edge_index, expected a homogeneous Data object")
    held = {name: plain_array(value) for name, value in source.to_dict().items() if value is not None}
    weight, weighed_by = _pyg_weight(held)
    lists = {name: tuple(value) for name, value in held.items() if isinstance(value, list)}
    fields |= {name: lists[name] for name in (*NAMES, "kind_names") if name in lists}
    fields |= {"labels": held["labels"]} if "labels" in held else {}
    fields |= {"kind": held["node_type"]} if "kind_names" in lists and "node_type" in held else {}
    used = {"x", "y", "edge_index", "edge_type", "relation_names", "num_nodes", weighed_by, *OURS}
    used |= {"node_type"} if "kind" in fields else set()
    return NetworkParts(
        held["edge_index"],
        int(source.num_nodes),
        held.get("x"),
        _column(held.get("y")),
        weight,
        held.get("edge_type"),
        lists.get("relation_names"),
        lists.get("directed_relations", "directed_relations" in held),
        fields,
        tuple(tuple(held[f"{part}_classes"].tolist()) for part in PARTS) if "train_classes" in held else None,
        tuple(map(tuple, lists["attribute_blocks"])) if "attribute_blocks" in lists else None,
        tuple(name for name in held if name not in used),
    )


def _pyg_weight(held: Mapping[str, Any]) -> tuple[NDArray[np.float64] | None, str]:
    """Weights of edges, and the field that has them: `edge_weight`, or an `edge_attr` of one column."""
    for name in ("edge_weight", "edge_attr"):
        weight = _column(plain_array(held.get(name)))
        if weight is not None and weight.ndim == 1:
            return weight.astype(np.float64), name
    return None, "edge_weight"


def _column(values: Any) -> Any:
    """A matrix of one column as a vector."""
    return values.reshape(-1) if values is not None and values.ndim == 2 and values.shape[1] == 1 else values


def _read_hetero(source: Any, fields: dict[str, Any]) -> NetworkParts:
    """A PyG `HeteroData`: node types become kinds with columns of their own, edge types relations."""
    kinds, types = list(source.node_types), list(source.edge_types)
    if not kinds:
        raise FewnodeError("HeteroData has no nodes, expected at least one node type")
    sizes = [int(source[kind].num_nodes or 0) for kind in kinds]
    start = dict(zip(kinds, np.cumsum([0, *sizes[:-1]]).tolist(), strict=True))
    middle = [kind[1] for kind in types]
    names = [kind[1] if middle.count(kind[1]) == 1 else " ".join(kind) for kind in types]
    edges, weights, unused, is_weighted = [np.zeros((2, 0), np.int64)], [np.zeros(0)], list[str](), False
    for name, kind in zip(names, types, strict=True):
        held = {key: value for key, value in source[kind].items() if value is not None}
        weight, weighed_by = _pyg_weight(held)
        edges.append(plain_array(held["edge_index"]).astype(np.int64) + np.array([[start[kind[0]]], [start[kind[2]]]]))
        weights.append(np.ones(edges[-1].shape[1]) if weight is None else weight)
        is_weighted |= weight is not None
        unused += [f"{name}.{key}" for key in held if key not in ("edge_index", weighed_by)]
    for kind in kinds:
        unused += [f"{kind}.{key}" for key, _ in source[kind].items() if key not in ("x", "y", "num_nodes")]
    node_kind = np.repeat(np.arange(len(kinds)), sizes)
    return NetworkParts(
        np.concatenate(edges, axis=1),
        sum(sizes),
        _columns_of_kinds([plain_array(source[kind].get("x")) for kind in kinds], sizes, node_kind),
        _labels_of_kinds([_column(plain_array(source[kind].get("y"))) for kind in kinds], sizes, kinds),
        np.concatenate(weights) if is_weighted else None,
        np.repeat(np.arange(len(types)), [ends.shape[1] for ends in edges[1:]]) if types else None,
        tuple(names) if types else None,
        fields={**fields, "kind": node_kind, "kind_names": tuple(kinds)},
        unused=tuple(unused),
    )


def _columns_of_kinds(parts: Sequence[Any], sizes: Sequence[int], kind: NDArray[np.int64]) -> Any:
    """Attributes of each kind in columns of its own, and the kind itself as an attribute; zero elsewhere."""
    own = [sp.csr_array((size, 0) if x is None else x) for x, size in zip(parts, sizes, strict=True)]
    flags = sp.csr_array((np.ones(kind.size), (np.arange(kind.size), kind)), (kind.size, len(sizes)))
    return sp.csr_array(sp.hstack([sp.block_diag(own), flags], format="csr"), dtype=np.float32)


def _labels_of_kinds(labels: Sequence[Any], sizes: Sequence[int], kinds: Sequence[str]) -> Any:
    """Classes of all nodes; if two kinds have classes, these go by the kind and their number."""
    if sum(y is not None for y in labels) < 2:
        return np.concatenate([np.full(size, -1) if y is None else y for y, size in zip(labels, sizes, strict=True)])
    return [
        f"{kind} {c}" if c >= 0 else None
        for y, size, kind in zip(labels, sizes, kinds, strict=True)
        for c in ([-1] * size if y is None else y.tolist())
    ]


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
