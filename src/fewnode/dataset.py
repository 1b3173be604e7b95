"""The problem's data (section 3): a graph with labels, names and a split of its classes."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import astuple, dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from fewnode._system import memory
from fewnode.class_labels import MAX_CLASSES, UNKNOWN, read_labels
from fewnode.display import Shown
from fewnode.errors import FewnodeError, closest, warn_unused
from fewnode.graph import Block, Graph, Ints, dense_blocks, is_sparse
from fewnode.interchange import NAMES, PARTS, NetworkParts, as_networkx, read_networkx, read_pyg, read_scipy
from fewnode.relations import Directed, edge_rows, pyg_edges, read_relations

Mask: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True)
class ClassSplit:
    """Which classes are for meta-training, for validation and for test: three disjoint sets of class ids.

    >>> ClassSplit(train=(0, 1, 2), valid=(3,), test=(4, 5)).part("test")
    (4, 5)
    """

    train: tuple[int, ...]
    valid: tuple[int, ...]
    test: tuple[int, ...]

    def __post_init__(self) -> None:
        every = self.train + self.valid + self.test
        if len(set(every)) < len(every):
            twice = next(c for c in every if every.count(c) > 1)
            raise FewnodeError(f"class {twice} is in the split twice; train, valid and test must not share a class")

    @classmethod
    def random(
        cls, y: Ints, fractions: Sequence[float] = (50, 20, 30), seed: int = 0, min_nodes: int = 10
    ) -> ClassSplit:
        """Classes dealt at random by `fractions` (any scale); those under `min_nodes` nodes are left out."""
        if len(fractions) != 3 or min(fractions) < 0 or not sum(fractions) > 0:
            raise FewnodeError(f"split {'/'.join(map(str, fractions))}: expected three shares such as 50/20/30")
        counts = np.bincount(y[y >= 0]) if (y >= 0).any() else np.zeros(0, int)
        large = np.flatnonzero(counts >= min_nodes)
        # Raw words of PCG64 never change between NumPy releases; `Generator.permutation` may.
        order = large[np.argsort(np.random.PCG64(seed).random_raw(large.size), kind="stable")].tolist()
        share = np.cumsum(fractions) / sum(fractions) * len(order)
        first, second = (round(s) for s in share[:2].tolist())
        return cls(*(tuple(sorted(part)) for part in (order[:first], order[first:second], order[second:])))

    def part(self, name: str) -> tuple[int, ...]:
        """`train`, `valid` or `test` by name."""
        if name not in PARTS:
            raise FewnodeError(f"there is no part {name!r}{closest(str(name), PARTS)}; parts are {', '.join(PARTS)}")
        return {"train": self.train, "valid": self.valid, "test": self.test}[name]


@dataclass(frozen=True, eq=False, repr=False)
class Dataset(Shown):
    """A `Graph` with labels, names and a class split. Immutable; checked once, here.

    >>> graph = Graph.from_edges([[0, 1, 2], [1, 2, 3]], n=4)
    >>> split = ClassSplit(train=(0,), valid=(), test=(1,))
    >>> data = Dataset(graph, np.array([0, 0, 1, -1]), split, class_names=("mail", "vpn"))  # -1: unknown
    >>> dict(zip(data.class_names, data.class_sizes.tolist()))
    {'mail': 2, 'vpn': 1}
    """

    graph: Graph
    y: Ints
    split: ClassSplit
    class_names: tuple[str, ...] = ()
    node_names: tuple[str, ...] | None = None
    feature_names: tuple[str, ...] | None = None
    name: str = "unnamed"
    info: dict[str, Any] = field(default_factory=dict)
    """Where it came from, as plain JSON values."""
    encoding: dict[str, Any] | None = None
    """How table columns became attributes (plain JSON values), so that new nodes can be encoded the same way."""
    labels: sp.csr_array | None = None
    """Nodes x classes, true where a node is in a class, if some are in several; None if none is. `y` then has the class
    of the nodes that are in one alone, and -1 for those in several. In a hierarchy that is the one class that no other
    of the node's classes is below."""
    kind: Ints | None = None
    """What kind of node each one is, as a place in `kind_names`; None if all are of one kind."""
    kind_names: tuple[str, ...] = ()
    texts: tuple[str, ...] | None = None
    """What the tables say of each node in words, for people to read. `info["link"]` is an address with more."""

    def __post_init__(self) -> None:
        n = self.graph.n
        y = _integers(self.y, n, "labels")
        if y.size and y.min() < UNKNOWN:
            raise FewnodeError(f"label of node {int(np.argmin(y))} is {y.min()}; unknown labels are written -1")
        y.flags.writeable = False
        object.__setattr__(self, "y", y)
        top = max([int(y.max(initial=-1)), *self.split.train, *self.split.valid, *self.split.test])
        if not self.class_names and top >= MAX_CLASSES:
            raise FewnodeError(f"there is a class id {top}; ids count from 0 and stay below {MAX_CLASSES}")
        names = tuple(self.class_names) or tuple(str(c) for c in range(top + 1))
        object.__setattr__(self, "class_names", names)
        if top >= len(names):
            raise FewnodeError(f"class {top} has no name: there are {len(names)} class names")
        of_features = ("feature names", self.feature_names, self.graph.n_features, "features")
        of_nodes = [("node names", self.node_names, n, "nodes"), ("texts", self.texts, n, "nodes")]
        for what, texts, count, of in (*of_nodes, of_features):
            if texts is not None and len(texts) != count:
                raise FewnodeError(f"{len(texts)} {what} for {count} {of}")
        if self.node_names is not None and len(self.node_id) < n:
            twice = next(name for i, name in enumerate(self.node_names) if self.node_id[name] != i)
            raise FewnodeError(f"node name {twice!r} is given twice")
        if self.labels is not None:
            object.__setattr__(self, "labels", self._checked_labels(self.labels))
        if self.kind is not None:
            kind = _integers(self.kind, n, "kinds of nodes")
            if kind.size and not 0 <= kind.min() <= kind.max() < len(self.kind_names):
                raise FewnodeError(f"a kind of node outside of the {len(self.kind_names)} names of kinds")
            object.__setattr__(self, "kind", kind)

    def _checked_labels(self, given: sp.csr_array) -> sp.csr_array:
        shape = (self.graph.n, len(self.class_names))
        if given.shape != shape:
            raise FewnodeError(f"memberships are {given.shape}, expected nodes x classes, {shape}")
        labels = sp.csr_array(given, dtype=bool, copy=True)
        labels.sum_duplicates()
        labels.eliminate_zeros()
        known = np.flatnonzero(self.y >= 0)
        is_member = np.asarray(labels[known, self.y[known]]) if known.size else known
        if not is_member.all():
            node = known[int(np.argmin(is_member))]
            raise FewnodeError(f"label of node {node} is {self.y[node]}, of which it is no member")
        return labels

    @classmethod
    def from_scipy(
        cls,
        adj: Any,
        x: Any = None,
        y: Any = None,
        *,
        split: ClassSplit | None = None,
        directed: bool = False,
        **more: Any,
    ) -> Dataset:
        """A dataset from matrices: `adj[i, j]` other than 0 is an edge i -> j; `x` is sparse or dense, a row a node.

        Values of `adj` other than 1 are weights: positive ones, scaled as `scale` says (`none`, `log` or `rank`; by
        default by logarithm if a few are far larger than the rest). `y` holds class ids (-1: unknown) or class names
        (None: unknown). Without `split` the classes are dealt at random, by `seed`. `more` are other fields of
        `Dataset`, such as `class_names`, and `blocks` of attributes: a dense `x` is one vector, unless it is told
        otherwise or looks like counts.
        """
        return cls.from_parts(read_scipy(adj, x, y), split, directed=directed, **more)

    @classmethod
    def from_networkx(
        cls,
        network: Any,
        label: str | None = "label",
        attributes: Sequence[str] = (),
        *,
        weight: str | None = "weight",
        relation: str | None = None,
        split: ClassSplit | None = None,
        directed: Directed = False,
        **more: Any,
    ) -> Dataset:
        """A dataset from a NetworkX graph whose nodes carry their class under `label` (None: no labels).

        `attributes` are keys whose values are numbers or equally long rows of them. Text and categories are for
        `read_tables`, which takes the frames that pandas makes of such a graph. Edges may carry numbers under `weight`
        and kinds under `relation`; the keys of a multigraph are kinds if all are text. `directed` may list the kinds
        that have a direction. What the graph holds beside that is named in `info["unused"]` and by an `UnusedInput`
        warning. The rest is as in `from_scipy`.
        """
        parts = read_networkx(network, label, attributes, directed, weight, relation)
        return cls.from_parts(parts, split, directed=directed, **more)

    @classmethod
    def from_pyg(
        cls, source: Any, split: ClassSplit | None = None, *, directed: Directed | None = None, **more: Any
    ) -> Dataset:
        """A dataset from a PyG `Data`, a `HeteroData`, or an `InMemoryDataset` of one. What `to_pyg` made comes back.

        Read are `x`, `edge_index`, `y`, `edge_weight` or an `edge_attr` of one column, `edge_type`, and what `to_pyg`
        writes. All other fields are named in `info["unused"]` and by an `UnusedInput` warning. Node types of a
        `HeteroData` become kinds of nodes, each with attributes of its own, and edge types become relations.
        """
        return cls.from_parts(read_pyg(source), split, directed=directed, **more)

    @classmethod
    def from_parts(
        cls,
        parts: NetworkParts,
        split: ClassSplit | None = None,
        *,
        directed: Directed | None = None,
        seed: int = 0,
        scale: str | None = None,
        **more: Any,
    ) -> Dataset:
        """A dataset from what was read of another library's graph. What was not read is named."""
        blocks = more.pop("blocks", None)
        if blocks is None and parts.blocks is not None:
            blocks = [Block(*block) for block in parts.blocks]
        elif blocks is None and isinstance(parts.x, np.ndarray) and parts.x.ndim == 2:
            blocks = dense_blocks(parts.x)
        rows = edge_rows(parts.edges, parts.weight, parts.edge_kind, parts.relation_names)
        directed = parts.directed if directed is None else directed
        graph, facts = read_relations(rows, parts.n, parts.x, directed=directed, scale=scale)
        graph = replace(graph, blocks=tuple(blocks)) if blocks else graph
        y, names, labels = read_labels(parts.y, graph.n)
        if split is None and parts.split is not None:
            split = ClassSplit(*parts.split)
        split = split or ClassSplit.random(y if labels is None else labels.indices, seed=seed)
        fields = {"class_names": names, "labels": labels, **parts.fields, **more}
        fields["info"] = {**facts.info, **fields.get("info", {})}
        if parts.unused:
            fields["info"]["unused"] = list(parts.unused)
            warn_unused(parts.unused, stacklevel=4)
        return cls(graph, y, split, **fields)

    def to_pyg(self, sparse: bool = False) -> Any:
        """A PyG `Data` with split and names; `x` is dense, as PyG's layers expect, or a CSR tensor if `sparse`."""
        import torch

        try:
            from torch_geometric.data import Data
        except ModuleNotFoundError:
            raise FewnodeError("to_pyg needs PyG: pip install 'fewnode[pyg]'") from None
        x = self.graph.x
        if sparse and is_sparse(x):
            indptr, indices, values = (torch.from_numpy(part.copy()) for part in (x.indptr, x.indices, x.data))
            tensor = torch.sparse_csr_tensor(indptr, indices, values, size=x.shape, check_invariants=True)
        else:
            tensor = torch.from_numpy(x.toarray() if is_sparse(x) else x.copy())
        arcs, held = pyg_edges(self.graph)
        held |= {name: list(getattr(self, name)) for name in NAMES if getattr(self, name) is not None}
        held |= {f"{part}_classes": np.array(self.split.part(part), np.int64) for part in PARTS}
        held["attribute_blocks"] = [astuple(block) for block in self.graph.blocks]
        if "edge_type" not in held and self.graph.directed:
            held["directed_relations"] = True
        if self.labels is not None:
            held["labels"] = self.labels.toarray()
        if self.kind is not None:
            held |= {"node_type": self.kind.copy(), "kind_names": list(self.kind_names)}
        held |= {"edge_index": arcs, "y": self.y.copy()}
        tensors = {k: torch.from_numpy(v) if isinstance(v, np.ndarray) else v for k, v in held.items()}
        return Data(x=tensor, **tensors)

    def to_networkx(self, attributes: bool = False) -> Any:
        """A NetworkX graph. Nodes carry `label` and `kind`, edges `weight`; kinds of edges are keys of a multigraph.

        With `attributes`, a node also carries its row of numbers under `x`.
        """
        nodes: list[tuple[Any, dict[str, Any]]] = [(name, {}) for name in self.node_names or range(self.graph.n)]
        for c, name in enumerate(self.class_names):
            for _, held in (nodes[i] for i in self.members(c).tolist()):
                held["label"] = name if self.labels is None else [*held.get("label", ()), name]
        x = self.graph.x
        for i, (_, held) in enumerate(nodes):
            held |= {} if self.kind is None else {"kind": self.kind_names[self.kind[i]]}
            held |= {"x": (x[[i]].toarray() if is_sparse(x) else x[[i]])[0]} if attributes else {}
        return as_networkx(nodes, *pyg_edges(self.graph), self.graph.directed)

    @cached_property
    def node_id(self) -> dict[str, int]:
        """Row of each node name; empty if the nodes have no names."""
        return {name: i for i, name in enumerate(self.node_names or ())}

    @property
    def train_mask(self) -> Mask:
        """Which nodes are of the training classes, as PyG writes it."""
        return self._nodes_of("train")

    @property
    def valid_mask(self) -> Mask:
        """Which nodes are of the validation classes."""
        return self._nodes_of("valid")

    @property
    def test_mask(self) -> Mask:
        """Which nodes are of the test classes."""
        return self._nodes_of("test")

    def _nodes_of(self, part: str) -> Mask:
        if self.labels is not None:
            return np.asarray(self.labels[:, list(self.split.part(part))].sum(axis=1) > 0)
        return np.isin(self.y, self.split.part(part))

    @property
    def class_sizes(self) -> Ints:
        """How many nodes are in each class; one that is in several counts in each."""
        places = self.y[self.y >= 0] if self.labels is None else self.labels.indices
        return np.bincount(places, minlength=len(self.class_names))

    @property
    def labelled_mask(self) -> Mask:
        """Which nodes are known to be in a class, or in several."""
        return self.y >= 0 if self.labels is None else np.diff(self.labels.indptr) > 0

    def members(self, c: int) -> Ints:
        """The nodes of class c, those among them that are in other classes too."""
        if self.labels is None:
            return np.flatnonzero(self.y == c)
        return np.sort(self.labels[:, [c]].tocoo().coords[0]).astype(np.int64)

    @cached_property
    def claimable_mask(self) -> Mask:
        """Nodes of the kinds that have labels: the others, such as the words beside the papers, are in no class."""
        if self.kind is None or not self.labelled_mask.any():
            return np.ones(self.graph.n, bool)
        return np.isin(self.kind, np.unique(self.kind[self.labelled_mask]))

    def node(self, name: str) -> int:
        """The row a user means by `name`: a node name or, where nodes have no names, a row number."""
        if self.node_names is not None:
            if name in self.node_id:
                return self.node_id[name]
            raise FewnodeError(f"unknown node {name!r}{closest(name, self.node_names)}")
        if name.isdecimal() and len(name) < 19 and str(int(name)) == name and int(name) < self.graph.n:
            return int(name)  # as written: `01` is not 1
        numbers = f"a row number 0 to {self.graph.n - 1}"
        raise FewnodeError(f"unknown node {name!r}: nodes have no names here, expected {numbers}")

    def node_name(self, node: int) -> str:
        return self.node_names[node] if self.node_names is not None else str(node)

    def __deepcopy__(self, memo: object) -> Dataset:
        return self  # as a graph

    def facts(self) -> dict[str, object]:
        """What a person wants to know first."""
        labelled, base = int(self.labelled_mask.sum()), self.split
        parts = f"{len(base.train)} training, {len(base.valid)} validation, {len(base.test)} test"
        kinds = ", ".join(relation.name for relation in self.graph.relations)
        return {
            "name": self.name,
            "nodes": f"{self.graph.n:,}" + (f" of {len(self.kind_names)} kinds" if self.kind is not None else ""),
            "edges": f"{self.graph.n_edges:,}" + (f" ({kinds})" if kinds else ""),
            "attributes": f"{self.graph.n_features:,}",
            "classes": f"{len(self.class_names):,} ({parts})" if self.class_names else "none",
            "labelled": f"{labelled:,} nodes",
        }

    @cached_property
    def sha256(self) -> str:
        """Identity of what a method can see and what is scored: structure, attributes, labels and split."""
        digest = hashlib.sha256(repr((self.split, self.class_names, self.graph.x.shape)).encode())
        if self.graph.blocks:
            digest.update(repr([(block.kind, block.start, block.stop) for block in self.graph.blocks]).encode())
        more: list[NDArray[Any]] = []
        for relation in self.graph.relations:
            digest.update(repr((relation.name, relation.directed)).encode())
            more += [relation.adj.indptr, relation.adj.indices, relation.adj.data]
        if self.labels is not None:
            more += [self.labels.indptr, self.labels.indices]
        if self.kind is not None:
            digest.update(repr(self.kind_names).encode())
            more.append(self.kind)
        matrices = [self.graph.adj, self.graph.x] if is_sparse(self.graph.x) else [self.graph.adj]
        arrays = [part for matrix in matrices for part in (matrix.indptr, matrix.indices, matrix.data)]
        arrays += [] if is_sparse(self.graph.x) else [self.graph.x]
        for array in (*arrays, self.y, *more):
            for part in memory.chunks(array):
                digest.update(np.ascontiguousarray(part).data)
        return digest.hexdigest()


def _integers(given: Any, n: int, what: str) -> Ints:
    numbers = np.asarray(given)
    if numbers.shape != (n,) or not np.issubdtype(numbers.dtype, np.integer):
        raise FewnodeError(f"{what} are {numbers.dtype} {numbers.shape}, expected integers of shape ({n},)")
    return numbers.astype(np.int64)
