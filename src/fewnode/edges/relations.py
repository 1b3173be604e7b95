"""Edges as people have them become relations: repeated ones joined, weights scaled, rare kinds and inverses joined."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from fewnode.adjacency import Relation
from fewnode.edges.merging import EdgeRows, merge
from fewnode.edges.scaling import Scaling, Weights, unfit
from fewnode.errors import FewnodeError, closest
from fewnode.graph import Attributes, Graph, Ints, checked_edges

Directed: TypeAlias = bool | Collection[str]
"""Whether all edges have a direction, or the names of the relations whose edges have one."""

FromEdges: TypeAlias = Callable[..., Graph]

MOST = 30
MOST_NAMES = 100_000
OTHERS = "other"
"""What the rarest relations are joined into where there are more than `MOST`."""
UNNAMED = "edges"
"""The relation of edges whose kind has no name."""
REPEATED = ("sum", "count", "once")


class EdgeRules(NamedTuple):
    """What is to be made of edges."""

    directed: Directed = False
    scale: str | None = None
    """`none`, `log` or `rank`; None: by what the weights are like."""
    repeated: str | None = None
    """What repeated edges give: the `sum` of their weights, their `count`, or the largest weight `once`.

    None: the sum where there are weights, else once."""


AS_THEY_ARE = EdgeRules()


@dataclass
class EdgeFacts:
    """What became of the edges, as plain values."""

    repeated: int = 0
    """Rows that repeat the edge of another row, self-loops aside."""
    zero: int = 0
    """Edges of weight 0, which are no edges."""
    relations: list[dict[str, Any]] = field(default_factory=list)
    joined: list[str] = field(default_factory=list)
    """The rare relations that became one."""
    scalings: dict[str, Scaling] = field(default_factory=dict)


def edge_rows(edge_index: Any, weight: Any = None, kind: Any = None, names: Sequence[str] | None = None) -> EdgeRows:
    """Edges from arrays of other libraries and files: a weight and a kind for each, where there are some.

    Weights that are all 1 are none. Kinds are whole numbers from 0; without `names` they are called by their number.
    """
    edges = np.asarray(edge_index)
    count = edges.shape[1] if edges.ndim == 2 else 0
    if weight is not None:
        weight = np.asarray(weight)
        if weight.shape != (count,) or weight.dtype.kind not in "biuf":
            raise FewnodeError(
                f"weights are {weight.dtype} {weight.shape}, expected a number for each of {count} edges"
            )
        weight = None if (weight == 1).all() else weight.astype(np.float64)
    if kind is None:
        if names is not None:
            raise FewnodeError("there are names of relations, but no kind of each edge")
        return EdgeRows(edges, weight)
    kind = np.asarray(kind)
    if kind.shape != (count,) or kind.dtype.kind not in "iu":
        raise FewnodeError(f"kinds of edges are {kind.dtype} {kind.shape}, expected a whole number for each of {count}")
    top = int(kind.max(initial=-1))
    limit = MOST_NAMES if names is None else len(names)
    if count and (kind.min() < 0 or top >= limit):
        place = int(np.argmax((kind < 0) | (kind >= limit)))
        known = "that many kinds are refused" if names is None else f"there are {len(names)} names of relations"
        raise FewnodeError(f"edge {place}: its kind is {kind[place]}, but {known}")
    return EdgeRows(edges, weight, kind.astype(np.int64), tuple(names or map(str, range(top + 1))))


def edges_info(facts: EdgeFacts) -> dict[str, Any]:
    """What is to be told in a dataset's `info`; nothing of a plain graph."""
    told: dict[str, Any] = {"relations": facts.relations} if facts.relations else {}
    if facts.joined:
        told["joined_relations"] = facts.joined
    if facts.zero:
        told["zero_weights"] = facts.zero
    return told


def pyg_edges(graph: Graph) -> tuple[Ints, dict[str, Any]]:
    """Every arc as 2 x E, and what `edge_rows` needs beside that to give the same relations: arrays and lists."""
    if not graph.relations:
        return graph.edge_index(), {}
    names: list[str] = []
    arcs, weights, kinds = [], [], []
    for relation in graph.relations:
        for name in (relation.name, relation.inverse):
            if name is not None:
                coo = relation.adj.tocoo()
                target, source = coo.coords if name == relation.name else coo.coords[::-1]
                arcs.append(np.stack([source, target]).astype(np.int64))
                weights.append(coo.data)
                kinds.append(np.full(coo.nnz, len(names)))
                names.append(name)
    held: dict[str, Any] = {}
    if any(relation.weighted for relation in graph.relations):
        held["edge_weight"] = np.concatenate(weights).astype(np.float32)
    directed = [name for r in graph.relations if r.directed for name in (r.name, r.inverse) if name is not None]
    if names != [UNNAMED]:
        held |= {"edge_type": np.concatenate(kinds), "relation_names": names, "directed_relations": directed}
    return np.concatenate(arcs, axis=1), held


def read_relations(
    rows: EdgeRows,
    n: int,
    x: Attributes | None = None,
    rules: EdgeRules = AS_THEY_ARE,
    from_edges: FromEdges = Graph.from_edges,
) -> tuple[Graph, EdgeFacts]:
    """A graph of the edges, and what became of them. Without weights and kinds it is a plain one.

    `from_edges` makes graphs of edges without weights: as `Graph.from_edges` does, perhaps in less memory.
    """
    rules = _checked(rows, rules)
    if is_plain(rows, rules):
        graph, facts = _plain(rows, n, bool(rules.directed), from_edges)
        return graph if x is None else replace(graph, x=x), facts
    checked_edges(rows.edge_index, n)
    _check_amounts(rows.weight)
    facts = EdgeFacts()
    rows, facts.joined = _without_rare(rows)
    found: list[tuple[Relation, Ints]] = []
    for name, part in _by_kind(rows):
        directed = rules.directed if isinstance(rules.directed, bool) else name in rules.directed
        found.append((_relation(name, part, n, directed, rules, facts, from_edges), part.edge_index))
    return Graph.from_relations(_inverses_once(found, n, facts), x), facts


def is_plain(rows: EdgeRows, rules: EdgeRules) -> bool:
    """Whether edges have neither weights nor kinds."""
    return rows.kind is None and rows.weight is None and rows.fade is None and rules.repeated != "count"


def _plain(rows: EdgeRows, n: int, directed: bool, from_edges: FromEdges) -> tuple[Graph, EdgeFacts]:
    graph = from_edges(rows.edge_index, n, directed=directed)
    proper = int((rows.edge_index[0] != rows.edge_index[1]).sum())
    return graph, EdgeFacts(repeated=proper - int(graph.adj.nnz if directed else graph.adj.nnz // 2))


def _relation(
    name: str,
    rows: EdgeRows,
    n: int,
    directed: bool,
    rules: EdgeRules,
    facts: EdgeFacts,
    from_edges: FromEdges,
) -> Relation:
    if is_plain(rows, rules):
        return _unweighted(name, rows, n, directed, facts, from_edges)
    merged = merge(rows, n, directed, rules.repeated)
    facts.repeated += int((rows.edge_index[0] != rows.edge_index[1]).sum()) - merged.source.size
    facts.zero += int((merged.amount == 0).sum())
    merged = merged.kept(merged.amount > 0)
    scaling = Scaling.learn(merged.amount, rules.scale)
    weight = scaling.apply(merged.amount) * merged.fade
    if rows.fade is not None and weight.size:
        scaling = replace(scaling, mean=scaling.mean * float(weight.mean()))
        weight = weight / weight.mean()
    facts.scalings[name] = scaling
    relation = Relation(name, merged.matrix(weight, n, directed), directed)
    facts.relations.append(_facts(relation, merged.amount, scaling, rules.scale))
    return relation


def _unweighted(name: str, rows: EdgeRows, n: int, directed: bool, facts: EdgeFacts, from_edges: FromEdges) -> Relation:
    """Every edge once, without anything to be added up."""
    relation = Relation(name, _plain(rows, n, directed, from_edges)[0].adj, directed)
    facts.repeated += int((rows.edge_index[0] != rows.edge_index[1]).sum()) - relation.n_edges
    facts.scalings[name] = Scaling.learn(np.ones(min(1, relation.n_edges)), "none")
    facts.relations.append({"name": name, "edges": relation.n_edges, "directed": directed})
    return relation


def _checked(rows: EdgeRows, rules: EdgeRules) -> EdgeRules:
    if rules.repeated not in (None, *REPEATED):
        raise FewnodeError(f"repeated edges: found {rules.repeated!r}, expected {', '.join(REPEATED)}")
    if rules.repeated == "count" and rows.weight is not None:
        raise FewnodeError("repeated edges are counted or their weights are summed: leave out the weights, or sum them")
    if rules.scale is not None:
        Scaling.learn(np.zeros(0), rules.scale)
    if not isinstance(rules.directed, bool):
        names = rows.names if rows.kind is not None else ()
        for name in rules.directed:
            if name not in names:
                shown = ", ".join(names[:12]) or "no kinds of edges"
                raise FewnodeError(f"unknown relation {name!r}{closest(name, names)}; there are {shown}")
    if is_plain(replace(rows, kind=None), rules):
        _need_no_weights(rules)
    default = "once" if rows.weight is None and rows.fade is None else "sum"
    return rules._replace(repeated=rules.repeated or default)


def _need_no_weights(rules: EdgeRules) -> None:
    """Refuse what is said about weights where edges have none."""
    if rules.scale not in (None, "none"):
        raise FewnodeError(f"there are no weights to scale by {rules.scale!r}: name their column, --weight")
    if rules.repeated == "sum":
        raise FewnodeError("there are no weights to sum: name their column, --weight, or say --repeated count")


def _check_amounts(weight: Weights | None) -> None:
    if weight is None:
        return
    odd = unfit(weight)
    if odd.any():
        place = int(np.argmax(odd))
        raise FewnodeError(f"edge {place}: its weight is {weight[place]}, expected a number from 0 on")


def rewired(graph: Graph, kept: NDArray[np.bool_], x: Attributes, added: Ints, gone: Ints, directed: bool) -> Graph:
    """The graph of the nodes that are `kept` and of new ones behind them: `x` has a row for each.

    `added` and `gone` are edges, 2 x E, in the new numbering. All other edges keep relations and weights. A new edge
    whose kind nobody told has weight 1; it is of the only relation, or of one without a name.
    """
    n = int(x.shape[0])
    relations = graph.relations or ((Relation(UNNAMED, graph.adj, graph.directed),) if graph.weighted else ())
    turned = gone if directed else np.concatenate([gone, gone[::-1]], axis=1)
    if not relations:
        edges = _left(graph.adj[kept][:, kept], n, turned)[0]
        return Graph.from_edges(np.concatenate([edges, added], axis=1), n, x, directed=directed)
    names = [relation.name for relation in relations]
    home = names[0] if len(names) == 1 else UNNAMED
    found = []
    for relation in relations:
        edges, weight = _left(relation.adj[kept][:, kept], n, turned)
        more = added if relation.name == home else added[:, :0]
        found.append(_with_ones(relation, edges, weight, more, n))
    if home not in names and added.shape[1]:
        none = Relation(home, sp.csr_array((n, n), dtype=np.float32), directed)
        found.append(_with_ones(none, added[:, :0], np.zeros(0, np.float32), added, n))
    return Graph.from_relations(found, x, directed=directed)


def _left(adj: sp.csr_array, n: int, gone: Ints) -> tuple[Ints, NDArray[np.float32]]:
    """Arcs of a matrix, source above target, without those that are gone, and their weights."""
    old = adj.tocoo()
    target, source = (ends.astype(np.int64) for ends in old.coords)
    left = ~np.isin(source * n + target, gone[0] * n + gone[1])
    return np.stack([source[left], target[left]]), old.data[left]


def _with_ones(relation: Relation, edges: Ints, weight: NDArray[np.float32], added: Ints, n: int) -> Relation:
    """The relation of these arcs, and of edges of weight 1 where there is none yet."""
    new = added if relation.directed else np.concatenate([added, added[::-1]], axis=1)
    new = new[:, ~np.isin(new[0] * n + new[1], edges[0] * n + edges[1])]
    new = new[:, np.unique(new[0] * n + new[1], return_index=True)[1]]
    every = np.concatenate([edges, new], axis=1)
    values = np.concatenate([weight, np.ones(new.shape[1], np.float32)])
    adj = sp.coo_array((values, (every[1], every[0])), shape=(n, n)).tocsr()
    return replace(relation, adj=adj)


# --- kinds --------------------------------------------------------------------------------------------------------


def _by_kind(rows: EdgeRows) -> list[tuple[str, EdgeRows]]:
    if rows.kind is None:
        return [(UNNAMED, rows)]
    found = []
    small = rows.kind.astype(np.int8)  # there are MOST at most
    for place, name in enumerate(rows.names):
        chosen = np.flatnonzero(small == place)
        weight, fade = (None if each is None else each[chosen] for each in (rows.weight, rows.fade))
        found.append((name, EdgeRows(rows.edge_index[:, chosen], weight, fade=fade)))
    return found


def _without_rare(rows: EdgeRows) -> tuple[EdgeRows, list[str]]:
    """The rarest kinds joined into one, if there are more than `MOST`; and their names."""
    if rows.kind is None or len(rows.names) <= MOST:
        return rows, []
    counts = np.bincount(rows.kind, minlength=len(rows.names))
    common = np.sort(np.argsort(-counts, kind="stable")[: MOST - 1])
    place = np.full(len(rows.names), MOST - 1)
    place[common] = np.arange(MOST - 1)
    rare = [name for name, at in zip(rows.names, place, strict=True) if at == MOST - 1]
    kept = [rows.names[i] for i in common]
    others = OTHERS if OTHERS not in kept else f"{OTHERS} kinds"
    return EdgeRows(rows.edge_index, rows.weight, place[rows.kind], (*kept, others), rows.fade), rare


def _inverses_once(relations: Sequence[tuple[Relation, Ints]], n: int, facts: EdgeFacts) -> list[Relation]:
    """A relation that has the edges of an earlier one the other way round is only named there."""
    found: list[tuple[Relation, Ints]] = []
    for relation, arcs in relations:
        inverse = (i for i, (each, theirs) in enumerate(found) if _are_inverse(each, theirs, relation, arcs, n))
        at = next(inverse, None)
        if at is None:
            found.append((relation, arcs))
            continue
        first, theirs = found[at]
        found[at] = replace(first, inverse=relation.name), theirs
        facts.relations = [each for each in facts.relations if each["name"] != relation.name]
        next(each for each in facts.relations if each["name"] == first.name)["inverse"] = relation.name
    return [relation for relation, _ in found]


def _are_inverse(one: Relation, arcs: Ints, other: Relation, others: Ints, n: int) -> bool:
    if one.directed != other.directed or one.inverse is not None or not 0 < one.adj.nnz == other.adj.nnz:
        return False
    if not np.array_equal(np.unique(arcs[0] * n + arcs[1]), np.unique(others[1] * n + others[0])):
        return False
    turned = other.adj.T.tocsr() if other.directed else other.adj
    turned.sort_indices()
    return bool(np.allclose(turned.data, one.adj.data, rtol=1e-5))


def _facts(relation: Relation, amount: Weights, scaling: Scaling, asked: str | None) -> dict[str, Any]:
    facts: dict[str, Any] = {"name": relation.name, "edges": relation.n_edges, "directed": relation.directed}
    if amount.size:
        low, middle, high = (float(each(amount)) for each in (np.min, np.median, np.max))
        facts |= {"weights": {"min": low, "median": middle, "max": high}, "scale": scaling.kind}
        facts["scale_asked"] = asked is not None
    return facts
