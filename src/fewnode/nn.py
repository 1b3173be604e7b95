"""Neural parts that read only what an episode needs: sparse rows, receptive fields, encoders (section 4.2).

Everything here takes `nodes`, the rows wanted, or None for all of them. Both ways run the same lines and give
the same numbers; a training step asks for the nodes of its episode, an evaluation asks once for all.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from fewnode.errors import FewnodeError
from fewnode.graph import Graph, is_sparse

warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta")


def segment_softmax(score: Float[Tensor, " k"], segment: Int[Tensor, " k"], n: int) -> Float[Tensor, " k"]:
    """Softmax over the entries of each segment: the attention of Eq. (7) and the weights of Eq. (11)."""
    top = score.new_full((n,), -torch.inf).scatter_reduce(0, segment, score.detach(), "amax")
    weight = torch.exp(score - top[segment])
    return weight / weight.new_zeros(n).index_add(0, segment, weight)[segment]


# --- sparse matrices ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class CSR:
    """A sparse matrix of constants whose rows can be taken quickly and whose product has a gradient.

    On the CPU, rows and transposed products go through SciPy's kernels on the same memory: torch's own are
    ten to thirty times slower there. Other devices use torch throughout.
    """

    indptr: Int[Tensor, " rows1"]
    indices: Int[Tensor, " nnz"]
    values: Float[Tensor, " nnz"]
    shape: tuple[int, int]

    @classmethod
    def from_scipy(cls, matrix: sp.csr_array, dtype: torch.dtype, device: torch.device | str = "cpu") -> CSR:
        parts = (as_tensor(matrix.indptr), as_tensor(matrix.indices), as_tensor(matrix.data).to(dtype))
        indptr, indices, values = (part.to(device) for part in parts)
        return cls(indptr, indices, values, matrix.shape)

    @cached_property
    def scipy(self) -> sp.csr_array:
        parts = (self.values.numpy(), self.indices.numpy(), self.indptr.numpy())
        return sp.csr_array(parts, shape=self.shape)

    @cached_property
    def row(self) -> Int[Tensor, " nnz"]:
        """The row of each entry."""
        counts = self.indptr.diff()
        return torch.repeat_interleave(torch.arange(self.shape[0], device=counts.device), counts)

    def rows(self, nodes: Int[Tensor, " k"]) -> CSR:
        shape = (nodes.numel(), self.shape[1])
        if self.values.device.type == "cpu":
            part = self.scipy[nodes.numpy()]
            indptr, indices, values = (torch.from_numpy(a) for a in (part.indptr, part.indices, part.data))
            return CSR(indptr, indices, values, shape)
        start, count = self.indptr[nodes], self.indptr[nodes + 1] - self.indptr[nodes]
        indptr = F.pad(count.cumsum(0), (1, 0)).to(self.indptr.dtype)
        entry = torch.arange(int(indptr[-1]), device=nodes.device)
        entry = entry + torch.repeat_interleave(start - indptr[:-1], count)
        return CSR(indptr, self.indices[entry], self.values[entry], shape)

    def to_dense(self) -> Tensor:
        if self.values.device.type == "cpu":
            return torch.from_numpy(self.scipy.toarray())
        dense = self.values.new_zeros(self.shape)
        return dense.index_put((self.row, self.indices.long()), self.values)

    def __matmul__(self, dense: Tensor) -> Tensor:
        return _Product.apply(dense, self, False)  # type: ignore[no-any-return,no-untyped-call]

    def transposed_matmul(self, dense: Tensor) -> Tensor:
        return _Product.apply(dense, self, True)  # type: ignore[no-any-return,no-untyped-call]

    def multiply(self, dense: Tensor, transposed: bool) -> Tensor:
        """The plain product, without a gradient."""
        if not transposed:
            matrix = torch.sparse_csr_tensor(self.indptr, self.indices, self.values, self.shape, check_invariants=False)
            return matrix @ dense.contiguous()
        if dense.device.type == "cpu":
            return torch.from_numpy(self.scipy.T @ dense.contiguous().numpy())
        spread = self.values[:, None] * dense[self.row]
        return dense.new_zeros(self.shape[1], dense.shape[1]).index_add(0, self.indices, spread)


class _Product(torch.autograd.Function):
    """sparse @ dense or sparse.T @ dense; each is the other's derivative, so any order of gradient exists."""

    @staticmethod
    def forward(ctx: Any, dense: Tensor, matrix: CSR, transposed: bool) -> Tensor:
        ctx.matrix, ctx.transposed = matrix, transposed
        return matrix.multiply(dense.detach(), transposed)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return _Product.apply(gradient, ctx.matrix, not ctx.transposed), None, None  # type: ignore[no-untyped-call]


def as_tensor(array: NDArray[Any]) -> Tensor:
    """A tensor on the memory of `array`, which may be read-only: nothing here writes to it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return torch.from_numpy(array)


# --- a graph, ready for encoders ----------------------------------------------------------------------------------


class Prepared:
    """A `Graph` as encoders read it: Â = D^-1/2 (A + I) D^-1/2, scaled attributes X, and P = Â X once.

    `hop` is a step of the receptive field. A hub of degree 22,000 costs its own row and nothing more: P holds
    its neighbourhood already summed.
    """

    def __init__(
        self,
        graph: Graph,
        x: sp.csr_array | NDArray[np.float32],
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
    ) -> None:
        self.n, self.n_features = graph.n, graph.n_features
        self.dtype, self.device = dtype, device
        self.degree = torch.from_numpy(graph.degree).to(device=device, dtype=dtype)
        numpy_dtype = np.float64 if dtype == torch.float64 else np.float32
        self._normal, self._x = normalised(graph).astype(numpy_dtype), x.astype(numpy_dtype, copy=False)
        self.adj = CSR.from_scipy(self._normal, dtype, device)
        self.x = self._matrix(self._x)

    def _matrix(self, matrix: sp.csr_array | NDArray[Any]) -> CSR | Tensor:
        if is_sparse(matrix):
            return CSR.from_scipy(matrix, self.dtype, self.device)
        return as_tensor(matrix).to(device=self.device, dtype=self.dtype)

    @cached_property
    def p(self) -> CSR | Tensor:
        """P = Â X, which no parameter enters: once a graph, sparse where X is sparse."""
        return self._matrix(self._normal @ self._x)

    def hop(self, nodes: Int[Tensor, " k"] | None) -> tuple[CSR, Int[Tensor, " m"] | None]:
        """Â from the closed neighbourhood of `nodes` into them, and that neighbourhood, sorted."""
        if nodes is None:
            return self.adj, None
        rows = self.adj.rows(nodes)
        around, place = _distinct(rows.indices, self.n)
        local = place.to(rows.indices.dtype)
        return CSR(rows.indptr, local, rows.values, (nodes.numel(), around.numel())), around

    def features(self, nodes: Int[Tensor, " k"] | None) -> CSR | Tensor:
        return self.x if nodes is None else _take(self.x, nodes)

    def propagated(self, nodes: Int[Tensor, " k"] | None) -> tuple[CSR | Tensor, CSR | None]:
        """Rows, and the hop after W, that give Â X W: for some nodes (Â X) W, for all Â (X W), which is narrower."""
        return (self.x, self.adj) if nodes is None else (_take(self.p, nodes), None)

    def ball(self, nodes: Int[Tensor, " k"], hops: int) -> Int[Tensor, " m"]:
        """All nodes within `hops` of `nodes`, sorted."""
        for _ in range(hops):
            nodes = _distinct(self.adj.rows(nodes).indices, self.n)[0]
        return nodes


def normalised(graph: Graph) -> sp.csr_array:
    """Â = D^-1/2 (A + I) D^-1/2 (Kipf & Welling), D the in-degrees of A + I."""
    closed = (graph.adj + sp.eye_array(graph.n, dtype=np.float32, format="csr")).tocsr()
    scale = ((graph.degree + 1.0) ** -0.5).astype(np.float64)
    rows = np.repeat(scale, np.diff(closed.indptr))
    return sp.csr_array((rows * scale[closed.indices], closed.indices, closed.indptr), shape=closed.shape)


def _take(matrix: CSR | Tensor, nodes: Int[Tensor, " k"]) -> CSR | Tensor:
    return matrix.rows(nodes) if isinstance(matrix, CSR) else matrix[nodes]


def _distinct(nodes: Int[Tensor, " k"], n: int) -> tuple[Int[Tensor, " m"], Int[Tensor, " k"]]:
    """The distinct nodes, sorted, and the place of each given node among them."""
    if nodes.numel() * 16 < n:  # few of many: sorting them is cheaper than marking in a table of n
        distinct, place = torch.unique(nodes.long(), return_inverse=True)
        return distinct, place
    marked = torch.zeros(n, dtype=torch.bool, device=nodes.device)
    marked[nodes] = True
    distinct = marked.nonzero().squeeze(1)
    place = torch.empty(n, dtype=torch.long, device=nodes.device)
    place[distinct] = torch.arange(distinct.numel(), device=nodes.device)
    return distinct, place[nodes]


# --- encoders -----------------------------------------------------------------------------------------------------


class Encoder(Protocol):
    """f_θ: from a prepared graph to the representations z of `nodes` (all if None)."""

    def __call__(self, g: Prepared, nodes: Int[Tensor, " k"] | None) -> Float[Tensor, "k d"]: ...


@dataclass(frozen=True, eq=False)
class Field:
    """What an encoder reads of a graph for some nodes: constants, so that weights can change without slicing again.

    A layer multiplies by its weight and then by its hop, if it has one; the first layer's input is `rows`.
    """

    rows: CSR | Tensor
    hops: tuple[CSR | Tensor | None, ...]


class GCN(nn.Module):
    """The paper's network encoder: GCN layers of the given widths, each activated by ReLU (section 5.1).

    With `graph=False` Â is the identity and this is the MLP of PN.
    """

    def __init__(self, n_features: int, hidden: Sequence[int] = (32, 16), dropout: float = 0.0, graph: bool = True):
        super().__init__()
        widths = [n_features, *hidden]
        self.weight = nn.ParameterList(torch.empty(a, b) for a, b in pairwise(widths))
        self.bias = nn.ParameterList(torch.zeros(b) for b in hidden)
        self.dropout, self.graph = dropout, graph
        for weight in self.weight:
            nn.init.xavier_uniform_(weight)

    def forward(self, g: Prepared, nodes: Int[Tensor, " k"] | None) -> Float[Tensor, "k d"]:
        return self.apply_to(self.read(g, nodes))

    def read(self, g: Prepared, nodes: Int[Tensor, " k"] | None) -> Field:
        """The receptive field of the nodes."""
        if not self.graph:
            return Field(g.features(nodes), (None,) * len(self.weight))
        hops: list[CSR | None] = []
        for _ in self.weight[1:]:
            hop, nodes = g.hop(nodes)
            hops.append(hop)
        rows, first = g.propagated(nodes)
        return Field(rows, (first, *reversed(hops)))

    def apply_to(self, field: Field) -> Float[Tensor, "k d"]:
        return self.finish(field, field.rows @ self.first)

    @property
    def first(self) -> Float[Tensor, "d h"]:
        """The weight that the attributes are multiplied by: by far the largest."""
        return self.weight[0]  # type: ignore[no-any-return]

    def finish(self, field: Field, h: Float[Tensor, "*t m h"]) -> Float[Tensor, "*t k d"]:
        """z, from the product of the field's rows with the first weight."""
        for layer, (bias, hop) in enumerate(zip(self.bias, field.hops, strict=True)):
            if layer > 0:
                h = F.dropout(h, self.dropout, self.training) @ self.weight[layer]
            h = F.relu((h if hop is None else hop @ h) + bias)
        return h


class Module(nn.Module):
    """Any torch module that takes `x, edge_index`, as PyG's do, on the exact subgraph that `nodes` can see.

    `hops` is how far the module looks. One hop more is taken, because modules that normalise by degree need
    the whole neighbourhood of their outermost nodes.
    """

    def __init__(self, module: nn.Module, hops: int | None = None) -> None:
        super().__init__()
        self.module = module
        self.hops = hops or _count_hops(module)

    def forward(self, g: Prepared, nodes: Int[Tensor, " k"] | None) -> Float[Tensor, "k d"]:
        return self.apply_to(self.read(g, nodes))

    def read(self, g: Prepared, nodes: Int[Tensor, " k"] | None) -> tuple[Tensor, Tensor, Tensor]:
        """The subgraph as `x, edge_index`, and the place of each of `nodes` in it."""
        everyone = torch.arange(g.n, device=g.degree.device)
        around = everyone if nodes is None else g.ball(nodes, self.hops + 1)
        x = g.features(around)
        place = everyone if nodes is None else torch.searchsorted(around, nodes)
        return x.to_dense() if isinstance(x, CSR) else x, _arcs(g, around), place

    def apply_to(self, field: tuple[Tensor, Tensor, Tensor]) -> Float[Tensor, "k d"]:
        x, edge_index, place = field
        z: Tensor = self.module(x, edge_index)
        return z[place]


def _count_hops(module: nn.Module) -> int:
    from torch_geometric.nn import MessagePassing  # costs seconds to import, and only these encoders need it

    convolutions = [part for part in module.modules() if isinstance(part, MessagePassing)]
    if not convolutions:
        raise FewnodeError(f"cannot tell how many hops {type(module).__name__} looks; pass Module(encoder, hops=…)")
    return sum(int(getattr(part, "K", 1)) for part in convolutions)


def _arcs(g: Prepared, around: Int[Tensor, " m"]) -> Int[Tensor, "2 e"]:
    """Arcs among the nodes `around` (sorted), source above target, in their own numbering, without self-loops."""
    rows = g.adj.rows(around)
    place = torch.searchsorted(around, rows.indices.long()).clamp(max=around.numel() - 1)
    inside = (around[place] == rows.indices) & (place != rows.row)
    return torch.stack([place[inside], rows.row[inside]])


PYG_ENCODERS = {"sage": "GraphSAGE", "gat": "GAT", "gin": "GIN"}
ENCODERS = ("gcn", "mlp", *PYG_ENCODERS)


def build_encoder(name: str, n_features: int, hidden: Sequence[int], dropout: float) -> nn.Module:
    """An encoder by name: the fast `gcn`, the graph-free `mlp`, or PyG's `sage`, `gat`, `gin`."""
    if name in ("gcn", "mlp"):
        return GCN(n_features, hidden, dropout, graph=name == "gcn")
    if name not in PYG_ENCODERS:
        raise FewnodeError(f"unknown encoder {name!r}; known are {', '.join(ENCODERS)}")
    import torch_geometric.nn.models as pyg  # costs seconds to import, and only these encoders need it

    model = getattr(pyg, PYG_ENCODERS[name])(n_features, hidden[0], len(hidden), hidden[-1], dropout=dropout)
    return Module(model, hops=len(hidden))
