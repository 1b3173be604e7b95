"""What is in a dataset: counts, degrees, the long tail of class sizes, homophily, and which tasks its classes allow."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from fewnode.adjacency import Relation
from fewnode.dataset import Dataset
from fewnode.engine import loops
from fewnode.errors import visible
from fewnode.graph import Ints

PARTS = ("train", "valid", "test")
PIECE = 1 << 20
"""Edges that are looked at at a time where nodes are in several classes."""
FEW = 10
"""The paper's Figure 1 counts the classes with fewer labelled nodes than this."""


def statistics(data: Dataset) -> dict[str, Any]:
    """Everything `fewnode data info` shows, as plain values."""
    graph, sizes = data.graph, data.class_sizes
    stored = graph.x.nnz if hasattr(graph.x, "nnz") else graph.x.size
    inside = [c for part in PARTS for c in data.split.part(part)]
    by_size = [int(c) for c in np.argsort(-sizes, kind="stable") if sizes[c]]
    return {
        "name": data.name,
        "nodes": graph.n,
        "edges": graph.n_edges,
        "directed": graph.directed,
        "attributes": graph.n_features,
        "attributes_per_node": float(stored / max(1, graph.n)),
        "labelled": int(data.labelled_mask.sum()),
        "isolated": graph.n - int(np.count_nonzero(graph.degree + np.bincount(graph.adj.indices, minlength=graph.n))),
        "degree": degrees(graph.degree),
        "homophily": edge_homophily(data),
        **_kinds(data),
        "classes": {part: len(data.split.part(part)) for part in PARTS},
        "class_sizes": {data.class_names[c]: int(sizes[c]) for c in by_size},
        "class_size_histogram": count_by_size(sizes[sizes > 0]),
        "few_shot_classes": {"under": FEW, "share": float((sizes[by_size] < FEW).mean()) if by_size else 0.0},
        "outside_split": {data.class_names[c]: int(sizes[c]) for c in by_size if c not in inside},
        "largest_tasks": {part: possible_tasks(data, part) for part in PARTS},
        "sha256": data.sha256,
    }


def degrees(degree: Ints) -> dict[str, Any]:
    return {
        "mean": float(degree.mean()) if degree.size else 0.0,
        "median": float(np.median(degree)) if degree.size else 0.0,
        "max": int(degree.max(initial=0)),
        "histogram": count_by_size(degree),
    }


def count_by_size(values: Ints) -> list[dict[str, int]]:
    """How many values are 0, 1 to 2, 3 to 9, 10 to 29, 30 to 99 …: two bins a decade, up to the largest value."""
    edges = [0, 1]
    while edges[-1] <= values.max(initial=0):
        edges.append(edges[-1] * 3 if len(edges) % 2 == 0 else edges[-2] * 10)
    counts = np.histogram(values, edges)[0]
    start = 0 if counts[0] else 1
    return [
        {"from": low, "to": high - 1, "count": int(count)}
        for low, high, count in list(zip(edges[:-1], edges[1:], counts, strict=True))[start:]
    ]


def edge_homophily(data: Dataset) -> float | None:
    """The share of edges between labelled nodes whose ends have the same class; None if there is no such edge.

    Of nodes that are in several classes one has to be the same.
    """
    return _homophily(data, data.graph.adj)


def _homophily(data: Dataset, adj: sp.csr_array) -> float | None:
    if data.labels is None:
        same, known = loops.same_label(adj.indptr, adj.indices, data.y)
    else:
        target, source = adj.tocoo().coords
        there = data.labelled_mask[target] & data.labelled_mask[source]
        target, source, labels = target[there], source[there], data.labels.astype(np.int8)
        known, same = target.size, 0
        for low in range(0, known, PIECE):
            part = slice(low, low + PIECE)
            same += int((labels[target[part]].multiply(labels[source[part]]).sum(axis=1) > 0).sum())
    return float(same / known) if known else None


def _kinds(data: Dataset) -> dict[str, Any]:
    """Kinds of edges and of nodes, and nodes in several classes, as far as there are any."""
    facts: dict[str, Any] = {}
    if data.graph.relations:
        facts["relations"] = [_relation(data, relation) for relation in data.graph.relations]
    if data.kind is not None:
        sizes = np.bincount(data.kind, minlength=len(data.kind_names))
        facts["kinds"] = dict(zip(data.kind_names, sizes.tolist(), strict=True))
    if data.labels is not None:
        counts = np.diff(data.labels.indptr)
        facts["several_classes"] = {"nodes": int((counts > 1).sum()), "most": int(counts.max(initial=0))}
    return facts


def _relation(data: Dataset, relation: Relation) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "name": relation.name,
        "directed": relation.directed,
        "edges": relation.n_edges,
        "homophily": _homophily(data, relation.adj),
        "weights": None,
    }
    if relation.weighted:
        low, middle, high = (float(each) for each in np.quantile(relation.adj.data, (0, 0.5, 1)))
        facts["weights"] = {"min": low, "median": middle, "max": high}
    return facts


def possible_tasks(data: Dataset, part: str) -> dict[str, Any]:
    """The most ways, and the most shots with as many queries, that every class of a part allows; its smallest class."""
    classes = list(data.split.part(part))
    if not classes:
        return {"way": 0, "shot": 0, "smallest_class": None, "nodes": 0}
    sizes = data.class_sizes[classes]
    smallest = int(sizes.argmin())
    nodes = int(sizes[smallest])
    return {
        "way": len(classes),
        "shot": nodes // 2,
        "smallest_class": data.class_names[classes[smallest]],
        "nodes": nodes,
    }


# --- for a terminal of 80 columns ---------------------------------------------------------------------------------


def describe(facts: dict[str, Any], rows: int = 12) -> str:
    """The facts as text."""
    kind = "directed" if facts["directed"] else "undirected"
    homophily = "unknown" if facts["homophily"] is None else f"{facts['homophily']:.2f}"
    degree, few = facts["degree"], facts["few_shot_classes"]
    lines = [
        f"{printable(facts['name'], 30)}: {facts['nodes']:,} nodes, {facts['edges']:,} {kind} edges",
        f"attributes        {facts['attributes']:,}, {facts['attributes_per_node']:.1f} of them a node",
        f"labelled nodes    {facts['labelled']:,} in {len(facts['class_sizes'])} classes",
        f"isolated nodes    {facts['isolated']:,}",
        f"degree            mean {degree['mean']:.1f}, median {degree['median']:.0f}, max {degree['max']:,}",
        f"edge homophily    {homophily}",
        *(_possible(part, task) for part, task in facts["largest_tasks"].items()),
    ]
    if several := facts.get("several_classes"):
        lines.insert(3, f"several classes   {several['nodes']:,} nodes, {several['most']} classes at most")
    if kinds := facts.get("kinds"):
        lines.insert(1, f"kinds of nodes    {name_some([f'{name} ({count:,})' for name, count in kinds.items()])}")
    if relations := facts.get("relations"):
        lines += ["", "edges by relation, and the share of them within a class", *_relation_lines(relations)]
    if outside := facts["outside_split"]:
        lines.append(f"in no part        {name_some([f'{name[:30]} ({size:,})' for name, size in outside.items()])}")
    if facts["class_sizes"]:
        share = f"{100 * few['share']:.0f} % of classes have under {few['under']}"
        lines += ["", f"labelled nodes by class; {share}", *_largest_and_smallest(facts["class_sizes"], rows)]
    return "\n".join(lines)


def _relation_lines(relations: list[dict[str, Any]]) -> list[str]:
    lines = []
    for each in relations:
        same = "unknown" if each["homophily"] is None else f"{each['homophily']:.2f}"
        way = " →" if each["directed"] else ""
        lines.append(f"{printable(each['name'], 22) + way:<24} {each['edges']:>11,}  same class {same}")
        if each["weights"]:
            low, middle, high = (each["weights"][name] for name in ("min", "median", "max"))
            lines.append(f"  weights, scaled: {low:.3g} to {high:.3g}, median {middle:.3g}")
    return lines


def _possible(part: str, task: dict[str, Any]) -> str:
    if not task["way"]:
        return f"{part + ' classes':<18}none"
    smallest = f"{printable(task['smallest_class'], 14)} has {task['nodes']:,}"
    return f"{part + ' classes':<18}up to {task['way']}-way {task['shot']:,}-shot, as many queries ({smallest})"


def name_some(names: list[str], width: int = 62) -> str:
    """As many of the names as fit into a line, and how many more there are."""
    shown = [printable(name, width - 14) for name in names]
    while len(shown) > 1 and len(", ".join(shown)) > width - 14 * (len(shown) < len(names)):
        shown.pop()
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more:,} more" if more else "")


def printable(name: str, width: int = 24) -> str:
    """A name from a file, without what would move the cursor or colour the terminal."""
    return visible(name[:width].replace("\n", "·"))


def _largest_and_smallest(sizes: dict[str, int], rows: int) -> list[str]:
    """The long tail of classes; those between are counted."""
    lines = [f"{printable(name):<24} {size:>11,}" for name, size in sizes.items()]
    if len(lines) <= rows:
        return lines
    return [*lines[: rows // 2], f"… {len(lines) - rows} classes between", *lines[-(rows - rows // 2) :]]
