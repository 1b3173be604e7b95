"""What is in a dataset: counts, the class histogram, homophily, and which tasks its classes allow."""

from __future__ import annotations

from typing import Any

import numpy as np

from fewnode.graph import Dataset

PARTS = ("train", "valid", "test")


def statistics(data: Dataset) -> dict[str, Any]:
    """Everything `fewnode data info` shows, as plain values."""
    graph, sizes = data.graph, data.class_sizes
    degree = graph.degree
    stored = graph.x.nnz if hasattr(graph.x, "nnz") else graph.x.size
    return {
        "name": data.name,
        "nodes": graph.n,
        "edges": graph.n_edges,
        "directed": graph.directed,
        "attributes": graph.n_features,
        "attributes_per_node": float(stored / max(1, graph.n)),
        "labelled": int((data.y >= 0).sum()),
        "isolated": int((degree == 0).sum()),
        "degree": {
            "mean": float(degree.mean()) if degree.size else 0.0,
            "median": float(np.median(degree)) if degree.size else 0.0,
            "max": int(degree.max(initial=0)),
        },
        "homophily": edge_homophily(data),
        "classes": {part: len(data.split.part(part)) for part in PARTS},
        "class_sizes": {data.class_names[c]: int(sizes[c]) for c in np.argsort(-sizes, kind="stable") if sizes[c]},
        "largest_tasks": {part: possible_tasks(data, part) for part in PARTS},
        "sha256": data.sha256,
    }


def edge_homophily(data: Dataset) -> float | None:
    """The share of edges between labelled nodes whose ends have the same class; None if there is no such edge."""
    source, target = data.y[data.graph.edge_index()]
    known = (source >= 0) & (target >= 0)
    return float((source[known] == target[known]).mean()) if known.any() else None


def possible_tasks(data: Dataset, part: str) -> dict[str, int]:
    """The most ways, and the most shots with as many queries, that every class of a part allows."""
    sizes = data.class_sizes[list(data.split.part(part))]
    return {"way": int(sizes.size), "shot": int(sizes.min(initial=1 << 30) // 2) if sizes.size else 0}
