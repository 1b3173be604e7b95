"""Edges as people have them become relations of a graph: repeated ones are added up, weights brought to one scale.

The mean of scaled weights is 1, as that of the self-loop that stands beside them in Â.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from pydantic import BaseModel, Field, FiniteFloat

from fewnode.errors import FewnodeError, closest
from fewnode.graph import Attributes, Graph, Ints, Relation, checked_edges

Weights: TypeAlias = NDArray[np.float64]
Positive: TypeAlias = Annotated[FiniteFloat, Field(gt=0)]
Directed: TypeAlias = bool | Collection[str]
"""Whether all edges have a direction, or the names of the relations whose edges have one."""

FromEdges: TypeAlias = Callable[..., Graph]

MAX_KINDS = 1000
"""Each is a matrix of its own."""
SCALES = ("none", "log")
HEAVY = 2.0
"""Weights whose deviation is over so many times their mean are heavy-tailed: a few of them would drown the others."""
CLOSE = 1e-6
"""A mean so near to 1 is 1: what was scaled before keeps its bits."""
EXTREME = 1e100
"""Weights beyond this, or so small, cannot be added up and squared."""
UNNAMED = "edges"
"""The relation of edges whose kind has no name."""


class Scaling(BaseModel, frozen=True, extra="forbid"):
    """How amounts become weights: as they are or by logarithm, and then divided by their mean.

    >>> scaling = Scaling.learn(np.array([1.0, 2.0, 3.0]))
    >>> scaling.kind, scaling.apply(np.array([2.0, 4.0])).tolist()
    ('none', [1.0, 2.0])
    """

    kind: Annotated[str, Field(pattern="^(none|log)$")] = "none"
    unit: Positive = 1.0
    """The median, by which an amount is divided before its logarithm."""
    mean: Positive = 1.0
    """Of the scaled amounts, before they were divided by it."""

    @classmethod
    def learn(cls, amounts: Weights, kind: str | None = None) -> Scaling:
        """From positive amounts. `kind` None: by logarithm where a few are far larger than the rest."""
        if not amounts.size:
            return cls(kind=kind or "none")
        usual = abs(float(amounts.mean()) - 1) < CLOSE or amounts.std() <= HEAVY * amounts.mean()
        raw = cls(kind=kind or ("none" if usual else "log"), unit=float(np.median(amounts)))
        mean = float(raw.apply(amounts).mean())
        return cls(kind=raw.kind, unit=raw.unit, mean=1.0 if abs(mean - 1) < CLOSE else mean)

    def apply(self, amounts: Weights) -> Weights:
        return np.asarray((np.log1p(amounts / self.unit) if self.kind == "log" else amounts) / self.mean)

    def invert(self, weights: Weights) -> Weights:
        """The amounts that have these weights."""
        raw = weights * self.mean
        return np.expm1(raw) * self.unit if self.kind == "log" else raw


def unfit(amounts: Weights) -> NDArray[np.bool_]:
    """Amounts that are no weights: below 0, not finite, or too far from 1 to be computed with."""
    return np.asarray(~((amounts == 0) | ((amounts >= 1 / EXTREME) & (amounts <= EXTREME))))


@dataclass(frozen=True, eq=False)
class EdgeRows:
    """Edges in the order they were found: 2 x E node numbers, source above target, and what is known of each."""

    edge_index: Ints
    weight: Weights | None = None
    kind: Ints | None = None
    """Places in `names`."""
    names: tuple[str, ...] = ()

    def __len__(self) -> int:
        return int(self.edge_index.shape[1])

    @property
    def proper(self) -> int:
        """How many are no self-loops."""
        return int(np.count_nonzero(self.edge_index[0] != self.edge_index[1]))

    def by_kind(self) -> Iterator[tuple[str, EdgeRows]]:
        """The edges of each kind, in their order."""
        if self.kind is None:
            yield self.names[0] if self.names else UNNAMED, self
            return
        order = np.argsort(self.kind, kind="stable")
        ends = np.cumsum(np.bincount(self.kind, minlength=len(self.names)))
        for name, own in zip(self.names, np.split(order, ends[:-1]), strict=True):
            yield name, EdgeRows(self.edge_index[:, own], None if self.weight is None else self.weight[own])

    @property
    def is_plain(self) -> bool:
        """Whether they have neither weights nor kinds."""
        return self.kind is None and self.weight is None


@dataclass
class EdgeFacts:
    """What became of the edges, as plain values."""

    repeated: int = 0
    """Rows that repeat the edge of another row, self-loops aside."""
    zero: int = 0
    """Edges of weight 0, which are no edges."""
    relations: list[dict[str, Any]] = field(default_factory=list)
    scalings: dict[str, Scaling] = field(default_factory=dict)
    """Of the relations that have weights."""

    @property
    def info(self) -> dict[str, Any]:
        """What is to be told in a dataset's `info`; nothing of a plain graph."""
        return {name: told for name, told in (("relations", self.relations), ("zero_weights", self.zero)) if told}

    def sum(self, rows: EdgeRows, n: int, directed: bool) -> sp.csr_array:
        """The weight of each distinct edge, as `summed`; those without weight are counted and left out."""
        amounts = summed(rows, n, directed)
        self.repeated += rows.proper - amounts.nnz
        self.zero += int((amounts.data == 0).sum())
        amounts.eliminate_zeros()
        return amounts


def edge_rows(edge_index: Any, weight: Any = None, kind: Any = None, names: Sequence[str] | None = None) -> EdgeRows:
    """Edges from arrays of other libraries and files: a weight and a kind for each, where there are some.

    Weights that are all 1 are none. Kinds are whole numbers from 0; without `names` they are called by their number.
    """
    edges = np.asarray(edge_index)
    count = edges.shape[1] if edges.ndim == 2 else 0
    weight = (
        None if weight is None else _one_each(weight, "weights", "biuf", f"a number for each of {count} edges", count)
    )
    weight = None if weight is None or (weight == 1).all() else weight.astype(np.float64)
    if kind is None:
        if names is not None:
            raise FewnodeError("there are names of relations, but no kind of each edge")
        return EdgeRows(edges, weight)
    kind = _one_each(kind, "kinds of edges", "iu", f"a whole number for each of {count}", count)
    limit = MAX_KINDS if names is None else len(names)
    if (odd := (kind < 0) | (kind >= limit)).any():
        place = int(np.argmax(odd))
        known = "that many kinds are refused" if names is None else f"there are {len(names)} names of relations"
        raise FewnodeError(f"edge {place}: its kind is {kind[place]}, but {known}")
    return EdgeRows(
        edges, weight, kind.astype(np.int64), tuple(names or map(str, range(int(kind.max(initial=-1)) + 1)))
    )


def _one_each(values: Any, what: str, types: str, expected: str, count: int) -> NDArray[Any]:
    array = np.asarray(values)
    if array.shape != (count,) or array.dtype.kind not in types:
        raise FewnodeError(f"{what} are {array.dtype} {array.shape}, expected {expected}")
    return array


def pyg_edges(graph: Graph) -> tuple[Ints, dict[str, Any]]:
    """Every arc as 2 x E, and what `edge_rows` needs beside that to give the same relations: arrays and lists."""
    if not graph.relations:
        return graph.edge_index(), {}
    arcs, weights = [], []
    for relation in graph.relations:
        coo = relation.adj.tocoo()
        target, source = coo.coords
        arcs.append(np.stack([source, target]).astype(np.int64))
        weights.append(coo.data)
    names = [relation.name for relation in graph.relations]
    held: dict[str, Any] = {}
    if any(relation.weighted for relation in graph.relations):
        held["edge_weight"] = np.concatenate(weights).astype(np.float32)
    if names != [UNNAMED]:
        kind = np.repeat(np.arange(len(names)), [ends.shape[1] for ends in arcs])
        directed = [relation.name for relation in graph.relations if relation.directed]
        held |= {"edge_type": kind, "relation_names": names, "directed_relations": directed}
    return np.concatenate(arcs, axis=1), held


def read_relations(
    rows: EdgeRows,
    n: int,
    x: Attributes | None = None,
    *,
    directed: Directed = False,
    scale: str | None = None,
    from_edges: FromEdges = Graph.from_edges,
) -> tuple[Graph, EdgeFacts]:
    """A graph of the edges, and what became of them. Without weights and kinds it is a plain one.

    The weights of repeated edges add up; without weights they count once. `scale` is `none`, `log`, or None: by what
    the weights are like. `from_edges` makes graphs of edges without weights: as `Graph.from_edges` does, perhaps in
    less memory.
    """
    _check(rows, directed, scale)
    facts, relations = EdgeFacts(), list[Relation]()
    if rows.is_plain:
        graph = from_edges(rows.edge_index, n, directed=bool(directed))
        facts.repeated = rows.proper - int(graph.adj.nnz if directed else graph.adj.nnz // 2)
        return graph if x is None else replace(graph, x=x), facts
    checked_edges(rows.edge_index, n)
    for name, part in rows.by_kind():
        one_way = directed if isinstance(directed, bool) else name in directed
        told: dict[str, Any] = {}
        if part.weight is None:
            adj = from_edges(part.edge_index, n, directed=one_way).adj
        else:
            amounts = facts.sum(part, n, one_way)
            scaling = facts.scalings[name] = Scaling.learn(amounts.data, scale)
            adj = adjacency(amounts, scaling.apply(amounts.data), one_way)
            if amounts.nnz:
                low, middle, high = (float(statistic(amounts.data)) for statistic in (np.min, np.median, np.max))
                told = {"weights": {"min": low, "median": middle, "max": high}}
                told |= {"scale": scaling.kind, "scale_asked": scale is not None}
        relations.append(relation := Relation(name, adj, one_way))
        facts.repeated += part.proper - relation.n_edges if part.weight is None else 0
        facts.relations.append({"name": name, "edges": relation.n_edges, "directed": one_way, **told})
    return Graph.from_relations(relations, x), facts


def summed(rows: EdgeRows, n: int, directed: bool) -> sp.csr_array:
    """The weight of each distinct edge at [source, target], without self-loops. Those of repeated edges are added.

    Unless `directed`, a - b and b - a are one edge, from the lower to the higher number. Where every edge is there
    both ways, with one weight, that is how an undirected edge is written: it counts once.
    """
    proper = rows.edge_index[0] != rows.edge_index[1]
    source, target = rows.edge_index[:, proper].astype(np.int64)
    weight = np.ones(source.size) if rows.weight is None else rows.weight[proper]

    def matrix(row: Ints, column: Ints) -> sp.csr_array:
        return sp.coo_array((weight, (row, column)), shape=(n, n)).tocsr()

    if directed:
        return matrix(source, target)
    if 2 * np.count_nonzero(source < target) == source.size:
        arcs, turned = matrix(source, target), matrix(target, source)
        same = np.array_equal(arcs.indptr, turned.indptr) and np.array_equal(arcs.indices, turned.indices)
        if same and np.allclose(arcs.data, turned.data, rtol=1e-9, atol=0):
            return sp.triu(arcs, format="csr")
    return matrix(np.minimum(source, target), np.maximum(source, target))


def adjacency(amounts: sp.csr_array, weight: Weights, directed: bool) -> sp.csr_array:
    """The matrix of a relation from what `summed` gave, with these weights instead of the amounts."""
    least = np.finfo(np.float32).tiny  # what is rounded to 0 would be no edge
    arcs = sp.csr_array((np.maximum(weight.astype(np.float32), least), amounts.indices, amounts.indptr), amounts.shape)
    return arcs.T.tocsr() if directed else (arcs + arcs.T).tocsr()


def _check(rows: EdgeRows, directed: Directed, scale: str | None) -> None:
    if scale is not None and scale not in SCALES:
        raise FewnodeError(f"unknown scale {scale!r} of weights{closest(scale, SCALES)}; known are {', '.join(SCALES)}")
    if rows.weight is None and scale not in (None, "none"):
        raise FewnodeError(f"there are no weights to scale by {scale!r}: name their column, `weight`")
    if rows.weight is not None and (odd := unfit(rows.weight)).any():
        place = int(np.argmax(odd))
        raise FewnodeError(f"edge {place}: its weight is {rows.weight[place]}, expected a number from 0 on")
    if len(rows.names) > MAX_KINDS:
        raise FewnodeError(f"{len(rows.names):,} kinds of edges, at most {MAX_KINDS:,} are kept apart; join the rarest")
    if isinstance(directed, bool):
        return
    for name in directed:
        if name not in rows.names:
            shown = ", ".join(rows.names[:12]) or "no kinds of edges"
            raise FewnodeError(f"unknown relation {name!r}{closest(name, rows.names)}; there are {shown}")
