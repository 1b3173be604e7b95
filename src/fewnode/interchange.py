"""What graphs of other libraries hold: SciPy, NetworkX and PyG. What is read of them, and what is not.

None of the libraries is imported: who has such a graph has its library.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from fewnode.errors import FewnodeError, closest

PARTS = ("train", "valid", "test")
SEVERAL = (list, tuple, set, frozenset)
"""What a node that is in several classes may carry them in."""
NAMES = ("class_names", "node_names", "feature_names")

_EDGES = {"edge_index", "edge_type", "relation_names", "directed_relations"}
_READ = {
    "x",
    "y",
    "labels",
    "num_nodes",
    "kind_names",
    "attribute_blocks",
    *_EDGES,
    *NAMES,
    *(f"{part}_classes" for part in PARTS),
}
"""Fields of a PyG `Data` that are read: PyG's own, and those that `Dataset.to_pyg` writes beside them."""


@dataclass(frozen=True)
class NetworkParts:
    """A graph of another library as plain arrays. `unused` names what else it holds."""

    edges: NDArray[np.int64]
    n: int
    x: Any = None
    y: Any = None
    weight: NDArray[np.float64] | None = None
    """Of each edge."""
    edge_kind: NDArray[np.int64] | None = None
    """Of each edge, as a place in `relation_names`."""
    relation_names: tuple[str, ...] | None = None
    directed: tuple[str, ...] | None = None
    """Relations that have a direction, if the source says so."""
    fields: dict[str, Any] = field(default_factory=dict)
    """Of a `Dataset`: names."""
    split: tuple[tuple[int, ...], ...] | None = None
    blocks: tuple[tuple[str, int, int, str], ...] | None = None
    """Kind, first column, end and name of each `Block` of attributes, if the graph tells."""
    unused: tuple[str, ...] = ()


def read_scipy(adj: Any, x: Any, y: Any) -> NetworkParts:
    """Matrices: `adj[i, j]` other than 0 is an edge i -> j, and its weight."""
    matrix = sp.coo_array(adj)
    n = max(matrix.shape)
    if min(matrix.shape) < n:
        raise FewnodeError(f"the adjacency matrix is {' x '.join(map(str, matrix.shape))}, expected a square one")
    there = matrix.data != 0
    weight = np.asarray(matrix.data[there], np.float64)
    edges = np.stack(matrix.coords).astype(np.int64)[:, there]
    return NetworkParts(edges, n, x, y, weight if (weight != 1).any() else None)


def read_networkx(
    network: Any,
    label: str | None,
    attributes: Sequence[str],
    directed: Any = False,
    weight: str | None = "weight",
    relation: str | None = None,
) -> NetworkParts:
    """A NetworkX graph whose nodes carry their class under `label` and numbers under `attributes`.

    Edges carry numbers under `weight`, if one of them does, and kinds under `relation`. Without `relation` the keys of
    a multigraph are kinds if all of them are text.
    """
    row = {node: i for i, node in enumerate(network)}
    keys = dict.fromkeys(key for node in row for key in network.nodes[node])
    for key in (label, *attributes):
        if key is not None and key not in keys:
            raise FewnodeError(f"no node has {key!r}{closest(str(key), map(str, keys))}")
    found = [(u, v, data) for u, v, data in network.edges(data=True)]
    names = dict.fromkeys(key for *_, data in found for key in data)
    edges = np.array([(row[u], row[v]) for u, v, _ in found], np.int64).reshape(-1, 2).T
    kinds, unused = _edge_kinds(network, found, names, relation), []
    unused += [f"node attribute {key!r}" for key in keys if key != label and key not in attributes]
    unused += [f"edge attribute {key!r}" for key in names if key not in (weight, relation)]
    if network.is_directed() and directed is False and found:
        unused.append("direction of edges (directed=True keeps it)")
    values = {key: _vectors(network, key) for key in attributes}
    x = np.concatenate(list(values.values()), axis=1) if attributes else None
    y: list[Any] | None = [network.nodes[node].get(label) for node in row] if label is not None else None
    fields: dict[str, Any] = {"node_names": tuple(str(node) for node in row)}
    if y is not None and any(isinstance(each, SEVERAL) for each in y):
        fields |= _several(y)
        y = None
    relation_names = None if kinds is None else tuple(dict.fromkeys(kinds))
    place = {name: i for i, name in enumerate(relation_names or ())}
    return NetworkParts(
        edges,
        len(row),
        x,
        y,
        _edge_weights(found, weight) if weight in names else None,
        None if kinds is None else np.array([place[kind] for kind in kinds], np.int64),
        relation_names,
        fields=fields,
        blocks=_side_by_side(values),
        unused=tuple(unused),
    )


def as_networkx(
    nodes: Sequence[tuple[Any, dict[str, Any]]], arcs: NDArray[np.int64], held: Mapping[str, Any], directed: bool
) -> Any:
    """A NetworkX graph of named nodes and what each carries; kinds of edges are keys of a multigraph."""
    try:
        import networkx
    except ModuleNotFoundError:
        raise FewnodeError("to_networkx needs NetworkX: pip install networkx") from None
    directed = directed or bool(held.get("directed_relations"))
    names = held.get("relation_names")
    if names is None:
        graph = networkx.DiGraph() if directed else networkx.Graph()
    else:
        graph = networkx.MultiDiGraph() if directed else networkx.MultiGraph()
    graph.add_nodes_from(nodes)
    ends: list[Sequence[Any]] = [[nodes[i][0] for i in side.tolist()] for side in arcs]
    if names is not None:
        ends.append([names[kind] for kind in held["edge_type"].tolist()])
    weight = held.get("edge_weight")
    told = [{}] * arcs.shape[1] if weight is None else [{"weight": value} for value in weight.tolist()]
    graph.add_edges_from(zip(*ends, told, strict=True))
    return graph


def _several(y: Sequence[Any]) -> dict[str, Any]:
    """Class names and memberships of nodes, of which some carry a list or a set of classes."""
    own = [each if isinstance(each, SEVERAL) else () if each is None else (each,) for each in y]
    names = sorted({str(name) for each in own for name in each})
    place = {name: i for i, name in enumerate(names)}
    member = [(i, place[str(name)]) for i, each in enumerate(own) for name in each]
    ends = np.array(member, np.int64).reshape(-1, 2).T
    labels = sp.csr_array((np.ones(len(member), bool), (ends[0], ends[1])), shape=(len(y), len(names)))
    return {"class_names": tuple(names), "labels": labels}


def _edge_kinds(network: Any, found: Sequence[Any], names: Collection[str], relation: str | None) -> list[str] | None:
    if relation is None:
        keys = [key for *_, key in network.edges(keys=True)] if network.is_multigraph() else []
        return keys if keys and all(isinstance(key, str) for key in keys) else None
    if relation not in names:
        raise FewnodeError(f"no edge has {relation!r}{closest(relation, map(str, names))}")
    for u, v, data in found:
        if data.get(relation) in (None, ""):
            raise FewnodeError(f"edge {u!r} - {v!r} has no {relation!r}, expected the kind of edge it is")
    return [str(data[relation]) for *_, data in found]


def _edge_weights(found: Sequence[Any], weight: Any) -> NDArray[np.float64]:
    for u, v, data in found:
        value = data.get(weight)
        if isinstance(value, bool) or not isinstance(value, int | float | np.number):
            raise FewnodeError(f"edge {u!r} - {v!r}: its {weight!r} is {value!r}, expected a number from 0 on")
        if not 0 <= value < np.inf:
            raise FewnodeError(f"edge {u!r} - {v!r}: its {weight!r} is {value}, expected a number from 0 on")
    return np.array([data[weight] for *_, data in found], np.float64)


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
    held = {name: value for name, value in source.to_dict().items() if value is not None}
    fields |= {name: tuple(held[name]) for name in NAMES if name in held}
    split = None
    if "train_classes" in held:
        split = tuple(tuple(held[f"{part}_classes"].tolist()) for part in PARTS)
    x, y = plain_array(source.x), _column(plain_array(source.y))
    weight, weighed_by = _pyg_weight(held)
    if "node_type" in held and "kind_names" in held:
        fields |= {"kind": plain_array(held["node_type"]), "kind_names": tuple(held["kind_names"])}
    if "labels" in held:
        fields["labels"] = plain_array(held["labels"])
    read = _READ | {weighed_by} | ({"node_type"} if "kind_names" in held else set())
    return NetworkParts(
        plain_array(source.edge_index),
        int(source.num_nodes),
        x,
        y,
        weight,
        plain_array(held.get("edge_type")),
        tuple(held["relation_names"]) if "relation_names" in held else None,
        tuple(held["directed_relations"]) if "directed_relations" in held else None,
        fields,
        split,
        blocks=tuple(map(tuple, held["attribute_blocks"])) if "attribute_blocks" in held else None,
        unused=tuple(name for name in held if name not in read),
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
    kinds = list(source.node_types)
    if not kinds:
        raise FewnodeError("HeteroData has no nodes, expected at least one node type")
    sizes = [int(source[kind].num_nodes or 0) for kind in kinds]
    start = dict(zip(kinds, np.cumsum([0, *sizes[:-1]]).tolist(), strict=True))
    edges, weights, types, unused = [], [], [], []
    names = _type_names(source.edge_types)
    for i, kind in enumerate(source.edge_types):
        held = {name: value for name, value in source[kind].items() if value is not None}
        weight, weighed_by = _pyg_weight(held)
        ends = plain_array(held["edge_index"]).astype(np.int64)
        edges.append(ends + np.array([[start[kind[0]]], [start[kind[2]]]]))
        weights.append(weight)
        types.append(np.full(ends.shape[1], i))
        unused += [f"{names[i]}.{name}" for name in held if name not in ("edge_index", weighed_by)]
    unused += [f"{kind}.{name}" for kind in kinds for name in source[kind].keys() if name not in _HETERO_READ]  # noqa: SIM118
    weighed = [w if w is not None else np.ones(t.size) for w, t in zip(weights, types, strict=True)]
    return NetworkParts(
        np.concatenate(edges, axis=1) if edges else np.zeros((2, 0), np.int64),
        sum(sizes),
        _blocks([plain_array(getattr(source[kind], "x", None)) for kind in kinds], sizes),
        _labels_of_kinds({kind: getattr(source[kind], "y", None) for kind in kinds}, sizes),
        np.concatenate(weighed) if any(weight is not None for weight in weights) else None,
        np.concatenate(types).astype(np.int64) if types else None,
        tuple(names) if types else None,
        fields={**fields, "kind": np.repeat(np.arange(len(kinds)), sizes), "kind_names": tuple(kinds)},
        unused=tuple(unused),
    )


_HETERO_READ = {"x", "y", "num_nodes"}


def _type_names(types: Sequence[tuple[str, str, str]]) -> list[str]:
    """The middle of each edge type, or all of it where two have the same."""
    middle = [kind[1] for kind in types]
    return [kind[1] if middle.count(kind[1]) == 1 else " ".join(kind) for kind in types]


def _blocks(parts: Sequence[Any], sizes: Sequence[int]) -> Any:
    """Attributes of each kind in columns of its own, and the kind itself as an attribute; zero elsewhere."""
    own = [
        sp.csr_array((size, 0), dtype=np.float32) if x is None else sp.csr_array(x)
        for x, size in zip(parts, sizes, strict=True)
    ]
    columns = sp.csr_array(sp.block_diag(own, format="csr"))
    kind = np.repeat(np.arange(len(sizes)), sizes)
    flags = sp.csr_array((np.ones(kind.size, np.float32), (np.arange(kind.size), kind)), (kind.size, len(sizes)))
    return sp.csr_array(sp.hstack([columns, flags], format="csr"), dtype=np.float32)


def _labels_of_kinds(labels: Mapping[str, Any], sizes: Sequence[int]) -> Any:
    """Classes of all nodes; if two kinds have classes, these go by the kind and their number."""
    found = {kind: _column(plain_array(y)) for kind, y in labels.items()}
    there = [kind for kind, y in found.items() if y is not None]
    every: list[Any] = []
    for kind, size in zip(found, sizes, strict=True):
        y = found[kind]
        if y is None:
            every += [-1 if len(there) < 2 else None] * size
        elif len(there) < 2:
            every += y.tolist()
        else:
            every += [f"{kind} {c}" if c >= 0 else None for c in y.tolist()]
    return np.array(every) if len(there) < 2 else every


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
