"""Which nodes of a dataset may be in a class at all, and what is told of the others."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fewnode.dataset import Dataset
from fewnode.graph import Ints, is_sparse


def claimable(data: Dataset, support: Ints) -> NDArray[np.bool_]:
    """Nodes of the kinds of which some have labels, in the dataset or in the support."""
    if data.kind is None:
        return data.claimable_mask
    given: NDArray[np.bool_] = np.isin(data.kind, data.kind[support])
    return data.claimable_mask | given


def may_have_class(data: Dataset, support: Ints) -> NDArray[np.bool_]:
    """Nodes of the kinds that have labels.

    And where every labelled node has attributes, nodes without any are of another kind, such as relations of things.
    """
    x = data.graph.x
    bare: NDArray[np.bool_] = np.diff(x.indptr) == 0 if is_sparse(x) else ~np.any(x, axis=1)
    labelled = data.train_mask | data.valid_mask
    labelled[support] = True
    found: NDArray[np.bool_] = (~bare | bare[labelled].any()) & claimable(data, support)
    return found


def left_out(data: Dataset, support: Ints) -> str:
    """The nodes that are not claimable, in words; nothing if there are none."""
    outside = np.flatnonzero(~claimable(data, support))
    if not outside.size or data.kind is None:
        return ""
    kinds = ", ".join(data.kind_names[k] for k in np.unique(data.kind[outside]))
    return f"{outside.size:,} nodes of kinds without any label ({kinds}); name them as query to ask about them"


def blank(data: Dataset, asked: Ints) -> str:
    """How many of the nodes have neither an attribute nor an edge, in words; nothing if there are none."""
    graph, rows = data.graph, np.unique(asked)
    alone = rows[graph.degree[rows] == 0]
    own = graph.x[alone]
    alone = alone[np.diff(own.indptr) == 0 if is_sparse(own) else ~np.any(own, axis=1)]
    alone = alone[~np.isin(alone, graph.adj.indices)] if alone.size else alone  # an edge may lead away from it
    if not alone.size:
        return ""
    which = f"{alone.size:,} nodes have" if alone.size > 1 else "1 node has"
    shown = ", ".join(repr(data.node_name(node)) for node in alone[:3].tolist()) + ", …" * (alone.size > 3)
    return f"{which} neither an attribute nor an edge, so the answer is a guess: {shown}"
