"""Neural parts that read only what an episode needs: sparse rows, receptive fields, encoders (section 4.2).

Everything here takes `nodes`, the rows wanted, or None for all of them. Both ways run the same lines and give
the same numbers; a training step asks for the nodes of its episode, an evaluation asks once for all.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator, Mapping, Sequence
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
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from fewnode import kernels, memory
from fewnode.errors import FewnodeError
from fewnode.graph import Graph, is_sparse

PART = 2048
"""Rows that are read from a file between two looks at the limit of memory: a row may bring 64 kB with it."""

warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta")

SETTLED = ("acos", "asin", "atan", "cos", "erf", "exp", "expm1", "log", "log10", "log1p", "log2", "sin", "sqrt", "tanh")
"""Functions that MKL looks up when they are first called. If two threads are first, one of them may compute its share
with a thousandth of the accuracy (github.com/pytorch/pytorch/issues/188792): here each has been called by one thread.
"""
for _dtype in (torch.float32, torch.float64):
    for _name in SETTLED:
        getattr(torch, _name)(torch.full((1,), 0.5, dtype=_dtype))


def segment_softmax(score: Float[Tensor, " k"], segment: Int[Tensor, " k"], n: int) -> Float[Tensor, " k"]:
    """Softmax over the entries of each segment: the attention of Eq. (7) and the weights of Eq. (11)."""
    top = score.new_full((n,), -torch.inf).scatter_reduce(0, segment, score.detach(), "amax")
    weight = torch.exp(score - top[segment])
    return weight / weight.new_zeros(n).index_add(0, segment, weight)[segment]


def has_kernels(tensor: Tensor) -> bool:
    """Whether `kernels` can work where this tensor is; other devices go the same way by torch."""
    return tensor.device.type == "cpu"


# --- sparse matrices ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class CSR:
    """A sparse matrix of constants whose rows can be taken without a copy and whose product has a gradient.

    Row i is the entries start[i] to stop[i]. On the CPU, products go through `kernels` on the same memory; other
    devices pack the rows and use torch.
    """

    start: Int[Tensor, " rows"]
    stop: Int[Tensor, " rows"]
    indices: Int[Tensor, " nnz"]
    values: Float[Tensor, " nnz"]
    shape: tuple[int, int]

    @classmethod
    def from_scipy(cls, matrix: sp.csr_array, dtype: torch.dtype, device: torch.device | str = "cpu") -> CSR:
        parts = (as_tensor(matrix.indptr), as_tensor(matrix.indices), as_tensor(matrix.data).to(dtype))
        indptr, indices, values = (part.to(device) for part in parts)
        return cls(indptr[:-1], indptr[1:], indices, values, matrix.shape)

    @classmethod
    def of(
        cls,
        start: NDArray[Any],
        stop: NDArray[Any],
        indices: NDArray[Any],
        values: NDArray[Any],
        shape: tuple[int, int],
    ) -> CSR:
        """From what `kernels` gives; it stays at hand for them."""
        arrays = (start, stop, indices, values)
        first, last, columns, entries = map(torch.from_numpy, arrays)
        matrix = cls(first, last, columns, entries, shape)
        matrix.__dict__["arrays"] = arrays
        return matrix

    @classmethod
    def joined(cls, parts: Sequence[CSR]) -> CSR:
        """Copied rows of one matrix, one part below the other."""
        if len(parts) == 1:
            return parts[0]
        start, stop, indices, values = (np.concatenate(each) for each in zip(*(p.arrays for p in parts), strict=True))
        shift = np.cumsum([0, *(p.arrays[2].size for p in parts[:-1])]).repeat([p.shape[0] for p in parts])
        shape = (sum(p.shape[0] for p in parts), parts[0].shape[1])
        return cls.of((start + shift).astype(start.dtype), (stop + shift).astype(stop.dtype), indices, values, shape)

    def rows(self, nodes: Int[Tensor, " k"]) -> CSR:
        """Those rows, where they are."""
        start, stop = self.start.index_select(0, nodes), self.stop.index_select(0, nodes)
        return CSR(start, stop, self.indices, self.values, (nodes.numel(), self.shape[1]))

    def copied(self, nodes: Int[Tensor, " k"]) -> CSR:
        """Those rows, side by side: what is read twice would be missed in the cache twice if it were scattered."""
        shape = (nodes.numel(), self.shape[1])
        if has_kernels(self.values):
            indptr, indices, values = kernels.pack(*self.arrays, nodes.numpy())
            return CSR.of(indptr[:-1], indptr[1:], indices, values, shape)
        indptr, indices, values = self.rows(nodes).packed
        return CSR(indptr[:-1], indptr[1:], indices, values, shape)

    def count(self, nodes: Int[Tensor, " k"]) -> int:
        """How many entries those rows have."""
        if has_kernels(self.values):
            return int(kernels.count(*self.arrays[:2], nodes.numpy()))
        return int((self.stop[nodes] - self.start[nodes]).sum())

    @cached_property
    def packed(self) -> tuple[Int[Tensor, " rows1"], Int[Tensor, " e"], Float[Tensor, " e"]]:
        """`indptr, indices, values` of these rows alone."""
        count = self.stop - self.start
        indptr = F.pad(count.cumsum(0), (1, 0)).to(self.start.dtype)
        entry = torch.arange(int(indptr[-1]), device=count.device)
        entry = entry + torch.repeat_interleave(self.start - indptr[:-1], count)
        return indptr, self.indices[entry], self.values[entry]

    @cached_property
    def row(self) -> Int[Tensor, " e"]:
        """The row of each packed entry."""
        count = self.stop - self.start
        return torch.repeat_interleave(torch.arange(self.shape[0], device=count.device), count)

    @cached_property
    def scipy(self) -> sp.csr_array:
        indptr, indices, values = (part.numpy() for part in self.packed)
        return sp.csr_array((values, indices, indptr), shape=self.shape)

    @cached_property
    def arrays(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Start, stop, indices and values as `kernels` takes them."""
        return self.start.numpy(), self.stop.numpy(), self.indices.numpy(), self.values.numpy()

    def to_dense(self) -> Tensor:
        if has_kernels(self.values):
            return torch.from_numpy(self.scipy.toarray())
        _, indices, values = self.packed
        return values.new_zeros(self.shape).index_put((self.row, indices.long()), values)

    def __matmul__(self, dense: Tensor) -> Tensor:
        return _Product.apply(dense, self, False)  # type: ignore[no-any-return,no-untyped-call]

    def transposed_matmul(self, dense: Tensor) -> Tensor:
        return _Product.apply(dense, self, True)  # type: ignore[no-any-return,no-untyped-call]

    def multiply(self, dense: Tensor, transposed: bool) -> Tensor:
        """The plain product, without a gradient."""
        if has_kernels(dense):
            array, thin = dense.contiguous().numpy(), dense.shape[1] == 1
            if transposed:
                multiply = kernels.spread if thin else kernels.multiply_transposed
                return torch.from_numpy(multiply(*self.arrays, array[:, 0] if thin else array, self.shape[1]))
            if thin:
                return torch.from_numpy(kernels.dots(*self.arrays, array[:, 0])[:, None])
            return torch.from_numpy(kernels.multiply(*self.arrays, array))
        indptr, indices, values = self.packed
        if not transposed:
            return torch.sparse_csr_tensor(indptr, indices, values, self.shape, check_invariants=False) @ dense
        spread = values[:, None] * dense[self.row]
        return dense.new_zeros(self.shape[1], dense.shape[1]).index_add(0, indices, spread)


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
    """A `Graph` as encoders read it: Â = D^-1/2 (A + I) D^-1/2, scaled attributes X, and P = Â X where it is wanted.

    `hop` is a step of the receptive field. A hub of degree 22,000 costs its own row and nothing more: P holds
    its neighbourhood already summed.
    """

    fanout, seed = 0, 0
    """Of neighbour sampling; 0: none, all neighbours count."""
    on_disk = False
    """Whether most of it is not in memory, so that nothing should ask for all nodes at once."""

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
        self._normal, self._x = normalised(graph, numpy_dtype), x.astype(numpy_dtype, copy=False)
        self.adj = CSR.from_scipy(self._normal, dtype, device)
        self.x = self._matrix(self._x)

    @classmethod
    def mapped(cls, graph: Graph, arrays: Mapping[str, NDArray[Any]]) -> Prepared:
        """From Â and P that were computed before and lie on the disk: rows are read when they are asked for."""
        g = cls.__new__(cls)
        g.n, g.n_features, g.dtype, g.device, g.on_disk = graph.n, graph.n_features, torch.float32, "cpu", True
        g.degree = torch.from_numpy(graph.degree).to(torch.float32)
        indptr, indices, values = (as_tensor(arrays[name]) for name in ("indptr", "indices", "values"))
        g.adj = CSR(indptr[:-1], indptr[1:], indices, values, (g.n, g.n))
        g.x = as_tensor(graph.x)
        g.__dict__["p"] = as_tensor(arrays["p"])
        return g

    def _matrix(self, matrix: sp.csr_array | NDArray[Any]) -> CSR | Tensor:
        if is_sparse(matrix):
            return CSR.from_scipy(matrix, self.dtype, self.device)
        return as_tensor(matrix).to(device=self.device, dtype=self.dtype)

    @cached_property
    def p(self) -> CSR | Tensor:
        """P = Â X, which no parameter enters: once a graph, sparse where X is sparse."""
        if isinstance(self.x, Tensor):
            return self.adj.multiply(self.x, transposed=False)
        return self._matrix(self._normal @ self._x)

    def hop(self, nodes: Int[Tensor, " k"] | None) -> tuple[CSR, Int[Tensor, " m"] | None]:
        """Â from the closed neighbourhood of `nodes` into them, and that neighbourhood."""
        return (self.adj, None) if nodes is None else self._around(self.adj, nodes)[:2]

    def reach(self, nodes: Int[Tensor, " k"] | None) -> tuple[CSR, Int[Tensor, " m"] | None, Int[Tensor, " k"] | None]:
        """As `hop`, with the place of each of `nodes` in the neighbourhood.

        That is all nodes (None) once the arcs outnumber them: to number them anew does not pay then.
        """
        if nodes is None:
            return self.adj, None, None
        return self._far(self.adj, nodes)

    def _far(self, adj: CSR, nodes: Int[Tensor, " k"]) -> tuple[CSR, Int[Tensor, " m"] | None, Int[Tensor, " k"]]:
        many = not self.on_disk and adj.count(nodes) >= self.n
        return (adj.rows(nodes), None, nodes) if many else self._around(adj, nodes)

    def _around(self, adj: CSR, nodes: Int[Tensor, " k"]) -> tuple[CSR, Int[Tensor, " m"], Int[Tensor, " k"]]:
        rows = self._rows(adj, nodes)
        if has_kernels(rows.values):
            start, stop, local, values = rows.arrays
            around, own = map(torch.from_numpy, kernels.renumber(local, nodes.numpy(), self.place))
            return CSR.of(start, stop, local, values, (nodes.numel(), around.numel())), around, own
        around, place = _distinct(rows.indices, adj.shape[1])
        hop = CSR(rows.start, rows.stop, place.to(rows.indices.dtype), rows.values, (nodes.numel(), around.numel()))
        return hop, around, torch.searchsorted(around, nodes)

    def _rows(self, adj: CSR, nodes: Int[Tensor, " k"]) -> CSR:
        return CSR.joined([adj.copied(part) for part in _parts(nodes)]) if self.on_disk else adj.copied(nodes)

    def sampled(self, fanout: int, seed: int) -> Prepared:
        """The same network, seen through at most `fanout` neighbours of each node: another choice for every seed."""
        view = copy.copy(self)
        view.__class__, view.fanout, view.seed = _Sampled, fanout, seed
        view.__dict__["place"] = self.place
        return view

    @cached_property
    def place(self) -> NDArray[np.int32]:
        """Room for `kernels.renumber`: nodes, and hubs once more."""
        return np.full(2 * self.n, -1, np.int32)

    def features(self, nodes: Int[Tensor, " k"] | None) -> CSR | Tensor:
        if nodes is None:
            return self.x
        return self.x.rows(nodes) if isinstance(self.x, CSR) else self._taken(self.x, nodes)

    def _taken(self, matrix: CSR | Tensor, nodes: Int[Tensor, " k"]) -> CSR | Tensor:
        if not self.on_disk or isinstance(matrix, CSR):
            return _take(matrix, nodes)
        out = matrix.new_empty(nodes.numel(), matrix.shape[1])
        for part, to in zip(_parts(nodes), out.split(PART), strict=True):
            torch.index_select(matrix, 0, part, out=to)
        return out

    def propagated(self, nodes: Int[Tensor, " k"] | None) -> tuple[CSR | Tensor, CSR | None]:
        """Rows, and the hop after W, that give Â X W: for some nodes (Â X) W, for all Â (X W), which is narrower."""
        return (self.x, self.adj) if nodes is None else (self._taken(self.p, nodes), None)

    def shared(self, nodes: Int[Tensor, " k"] | None) -> tuple[CSR | Tensor, CSR | None]:
        """As `propagated`, in the least time: a sparse row of X that many of the nodes see is multiplied but once."""
        if nodes is None or isinstance(self.x, Tensor):
            return self.propagated(nodes)
        x, adj = self.lean
        hop, around, _ = self._far(adj, nodes)
        return (x if around is None else _take(x, around)), hop

    @cached_property
    def lean(self) -> tuple[CSR, CSR]:
        """X with a row of P added for each hub, and Â whose hubs see that row instead of their neighbours.

        Hubs are nodes whose neighbours have twice as many attributes, all together, as there are columns.
        """
        own = np.diff(sp.csr_array(self._x).indptr)
        many = np.flatnonzero(np.diff(self._normal.indptr) * own.max(initial=0) >= 2 * self.n_features)
        around = self._normal[many]
        hubs = many[kernels.sums(around.indptr, around.indices, own) >= 2 * self.n_features]
        if hubs.size == 0:
            return self.x, self.adj  # type: ignore[return-value]
        x = CSR.from_scipy(sp.vstack([self._x, self._normal[hubs] @ self._x], format="csr"), self.dtype, self.device)
        adj, at = self.adj, torch.from_numpy(hubs).to(self.device)
        added = torch.arange(hubs.size, device=self.device)
        start = adj.start.index_copy(0, at, (added + adj.values.numel()).to(adj.start.dtype))
        stop = adj.stop.index_copy(0, at, (added + adj.values.numel() + 1).to(adj.stop.dtype))
        indices = torch.cat([adj.indices, (added + self.n).to(adj.indices.dtype)])
        values = torch.cat([adj.values, adj.values.new_ones(hubs.size)])
        return x, CSR(start, stop, indices, values, (self.n, self.n + hubs.size))

    def ball(self, nodes: Int[Tensor, " k"], hops: int) -> Int[Tensor, " m"]:
        """All nodes within `hops` of `nodes`, sorted."""
        for _ in range(hops):
            nodes = _distinct(self.adj.rows(nodes).packed[1], self.n)[0]
        return nodes


class _Sampled(Prepared):
    """Hops take a few neighbours of each node, weighed for those left out; P is exact."""

    def _rows(self, adj: CSR, nodes: Int[Tensor, " k"]) -> CSR:
        indptr, indices, values = kernels.pack_some(*adj.arrays, nodes.numpy(), self.fanout, self.seed)
        return CSR.of(indptr[:-1], indptr[1:], indices, values, (nodes.numel(), adj.shape[1]))

    def _far(self, adj: CSR, nodes: Int[Tensor, " k"]) -> tuple[CSR, Int[Tensor, " m"] | None, Int[Tensor, " k"]]:
        return self._around(adj, nodes)

    def shared(self, nodes: Int[Tensor, " k"] | None) -> tuple[CSR | Tensor, CSR | None]:
        return self.propagated(nodes)


def normalised(graph: Graph, dtype: type[np.floating[Any]] = np.float64) -> sp.csr_array:
    """Â = D^-1/2 (A + I) D^-1/2 (Kipf & Welling), D the in-degrees of A + I."""
    scale = ((graph.degree + 1.0) ** -0.5).astype(dtype)
    index = graph.adj.indptr.dtype if graph.adj.nnz + graph.n < 2**31 else np.int64
    indptr, indices, values = kernels.closed(
        graph.adj.indptr.astype(index, copy=False), graph.adj.indices, scale, 0, graph.n
    )
    return sp.csr_array((values, indices, indptr), shape=graph.adj.shape)


def _parts(nodes: Int[Tensor, " k"]) -> Iterator[Int[Tensor, " _"]]:
    """Few enough nodes for their rows, in no order on the disk, not to fill the memory that was promised."""
    for part in nodes.split(PART):
        yield part
        memory.keep()


def _take(matrix: CSR | Tensor, nodes: Int[Tensor, " k"]) -> CSR | Tensor:
    return matrix.copied(nodes) if isinstance(matrix, CSR) else matrix[nodes]


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

    A layer multiplies by its weight and then by its hop, if it has one; the first layer's input is `rows`, which are
    those of `nodes`, or of all.
    """

    rows: CSR | Tensor
    hops: tuple[CSR | Tensor | None, ...]
    nodes: Int[Tensor, " m"] | None = None


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
        return self.encode(self.read(g, nodes, few=False))

    def encode(self, field: Field) -> Float[Tensor, "k d"]:
        """As `apply_to`, for first derivatives alone, in a third of the calls: half an episode would be calls."""
        rate = self.dropout if self.training else 0.0
        return _Convolutions.apply(field, rate, *self.weight, *self.bias)  # type: ignore[no-any-return,no-untyped-call]

    def read(self, g: Prepared, nodes: Int[Tensor, " k"] | None, few: bool = True) -> Field:
        """The receptive field of the nodes: with as `few` rows as can be, or multiplied in the least time."""
        if not self.graph:
            return Field(g.features(nodes), (None,) * len(self.weight), nodes)
        hops: list[CSR | None] = []
        for _ in self.weight[1:]:
            hop, nodes = g.hop(nodes) if few else g.reach(nodes)[:2]
            hops.append(hop)
        rows, first = g.propagated(nodes) if few else g.shared(nodes)
        return Field(rows, (first, *reversed(hops)), nodes)

    def apply_to(self, field: Field) -> Float[Tensor, "k d"]:
        return self.finish(field, field.rows @ self.first)

    @property
    def first(self) -> Float[Tensor, "d h"]:
        """The weight that the attributes are multiplied by: by far the largest."""
        return self.weight[0]  # type: ignore[no-any-return]

    def products(self, g: Prepared) -> Float[Tensor, "n h"]:
        """The rows of a field with few rows, times the first weight, for all nodes."""
        field = self.read(g, None)
        return product(field.hops[0], product(field.rows, self.first.detach()))

    def finish(self, field: Field, h: Float[Tensor, "*t m h"]) -> Float[Tensor, "*t k d"]:
        """z, from the product of the field's rows with the first weight."""
        for layer, (bias, hop) in enumerate(zip(self.bias, field.hops, strict=True)):
            if layer > 0:
                h = F.dropout(h, self.dropout, self.training) @ self.weight[layer]
            h = F.relu((h if hop is None else hop @ h) + bias)
        return h


class _Convolutions(torch.autograd.Function):
    """The layers of a GCN on a field. Where ReLU or dropout gave 0, the derivative is 0."""

    @staticmethod
    def forward(ctx: Any, field: Field, rate: float, *parameters: Tensor) -> Tensor:
        weights, biases = _halves(parameters)
        seen: list[Any] = [field.rows]
        for layer, (weight, bias, hop) in enumerate(zip(weights, biases, field.hops, strict=True)):
            if layer > 0 and rate > 0:
                seen[layer] = _dropout(seen[layer], rate)
            seen.append(product(hop, product(seen[layer], weight)).add_(bias).relu_())
        ctx.save_for_backward(*weights)
        ctx.field, ctx.rate, ctx.seen = field, rate, seen
        z: Tensor = seen[-1]
        return z.detach()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        by_weight, by_bias = [], []
        for layer in reversed(range(len(ctx.saved_tensors))):
            gradient = torch.ops.aten.threshold_backward(gradient, ctx.seen[layer + 1], 0)
            by_bias.append(gradient.sum(dim=0))
            gradient = product(ctx.field.hops[layer], gradient, transposed=True)
            by_weight.append(product(ctx.seen[layer], gradient, transposed=True))
            if layer > 0:
                gradient = gradient @ ctx.saved_tensors[layer].T / (1 - ctx.rate)
        return None, None, *reversed(by_weight), *reversed(by_bias)


def _dropout(h: Tensor, rate: float) -> Tensor:
    """`F.dropout`, whose draws take three times as long on a CPU."""
    return (torch.rand_like(h) >= rate) * h.mul_(1 / (1 - rate))


def _halves(parameters: Sequence[Tensor]) -> tuple[Sequence[Tensor], Sequence[Tensor]]:
    return parameters[: len(parameters) // 2], parameters[len(parameters) // 2 :]


def product(matrix: CSR | Tensor | None, dense: Tensor, transposed: bool = False) -> Tensor:
    """The plain product; None is the identity."""
    if matrix is None:
        return dense
    if isinstance(matrix, CSR):
        return matrix.multiply(dense, transposed)
    return (matrix.T if transposed else matrix) @ dense


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
    _, indices, _ = rows.packed
    place = torch.searchsorted(around, indices.long()).clamp(max=around.numel() - 1)
    inside = (around[place] == indices) & (place != rows.row)
    return torch.stack([place[inside], rows.row[inside]])


PYG_ENCODERS = {"sage": "GraphSAGE", "gat": "GAT", "gin": "GIN"}
ENCODERS = ("gcn", "mlp", *PYG_ENCODERS)


MAX_LAYERS = 64


def check_widths(hidden: Sequence[int]) -> None:
    """Refuse widths of layers that no encoder has."""
    if not 1 <= len(hidden) <= MAX_LAYERS or not all(isinstance(width, int) and width >= 1 for width in hidden):
        raise FewnodeError(f"hidden sizes {hidden[:8]}: expected 1 to {MAX_LAYERS} of them, each at least 1")


def build_encoder(name: str, n_features: int, hidden: Sequence[int], dropout: float) -> nn.Module:
    """An encoder by name: the fast `gcn`, the graph-free `mlp`, or PyG's `sage`, `gat`, `gin`."""
    if name in ("gcn", "mlp"):
        return GCN(n_features, hidden, dropout, graph=name == "gcn")
    if name not in PYG_ENCODERS:
        raise FewnodeError(f"unknown encoder {name!r}; known are {', '.join(ENCODERS)}")
    import torch_geometric.nn.models as pyg  # costs seconds to import, and only these encoders need it

    model = getattr(pyg, PYG_ENCODERS[name])(n_features, hidden[0], len(hidden), hidden[-1], dropout=dropout)
    return Module(model, hops=len(hidden))
