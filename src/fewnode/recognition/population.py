"""Which nodes may be in a class at all, whether a node may be in none, and what is told of that."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fewnode.dataset import Dataset
from fewnode.errors import FewnodeError
from fewnode.graph import Attributes, Ints, is_sparse
from fewnode.recognition.answers import NONE
from fewnode.recognition.space import Head


def claimable(data: Dataset, support: Ints) -> NDArray[np.bool_]:
    """Nodes of the kinds of which some have labels, in the dataset or in the support."""
    found: NDArray[np.bool_] = data.claimable_mask
    return found if data.kind is None else found | np.isin(data.kind, data.kind[support])


def may_have_class(data: Dataset, support: Ints) -> NDArray[np.bool_]:
    """Nodes of the kinds that have labels.

    And where every labelled node has attributes, nodes without any are of another kind, such as relations of things.
    """
    bare, labelled = _bare(data.graph.x), data.train_mask | data.valid_mask
    labelled[support] = True
    found: NDArray[np.bool_] = (~bare | bare[labelled].any()) & claimable(data, support)
    return found


def _bare(x: Attributes) -> NDArray[np.bool_]:
    return np.asarray(np.diff(x.indptr) == 0 if is_sparse(x) else ~np.any(x, axis=1))


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
    alone = alone[_bare(graph.x[alone])]
    alone = alone[~np.isin(alone, graph.adj.indices)] if alone.size else alone  # an edge may lead away from it
    if not alone.size:
        return ""
    which = f"{alone.size:,} nodes have" if alone.size > 1 else "1 node has"
    shown = ", ".join(repr(data.node_name(node)) for node in alone[:3].tolist()) + ", …" * (alone.size > 3)
    return f"{which} neither an attribute nor an edge, so the answer is a guess: {shown}"


def cannot_tell(model: str, ways: int, head: Head | None) -> str:
    """Why a model cannot tell whether a node is in any of so many classes, and what would help; nothing if it can."""
    if head is not None and head.membership is not None:
        return ""
    remedy = "" if model == "gpn-plus" else "use gpn-plus, or "
    remedy += "give a second class" if ways == 1 else "label more classes"
    if head is None:
        return f"{model.rsplit('/', 1)[-1]} cannot tell whether a node is in none of the classes; {remedy}"
    return f"there were too few known classes to learn from what is in none, three are needed; {remedy}"


def closed_because(
    classes: Sequence[str], several: bool, cannot: str, closed_set: bool, threshold: float | None, ordinary: str = ""
) -> str:
    """Why every node is taken to be in one of the classes, or nothing; what makes no sense is refused.

    `cannot`: why it cannot be told whether a node is in any of them, if that is so. `ordinary`: a class whose examples
    are like any nodes.
    """
    if threshold is not None and not 0 <= threshold <= 1:
        raise FewnodeError(f"the threshold is {threshold}; a probability from 0 to 1 is expected")
    if threshold is not None and closed_set:
        raise FewnodeError("a closed set has no threshold: leave one of them out")
    if several and closed_set:
        raise FewnodeError("a closed set means one class a node: leave it out, or several classes a node")
    if threshold is not None and cannot:
        raise FewnodeError(f"the threshold is of no use: {cannot}")
    if len(classes) == 1 and (closed_set or cannot):
        cause = cannot or "in a closed set that is every node; leave that out"
        raise FewnodeError(f"one class alone asks which nodes are like {classes[0]!r}: {cause}")
    if closed_set or cannot:
        return cannot or "asked for"
    if ordinary:
        return f"examples of class {ordinary!r} are like any nodes: it has all that is in no other class"
    if NONE in classes:
        raise FewnodeError(f"a class is called {NONE!r}, as is what is in no class: rename it, or close the set")
    return ""
