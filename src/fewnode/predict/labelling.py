"""Which nodes to label next: those that stand for many nodes of the classes that no labelled node stands for yet.

A node far from all labelled ones teaches most, if it is in one of the classes at all. How much that "if" counts is
learned from the answers: the more of them were "none of these", the more a node has to look like a member. And a new
class is as large as known ones, and as scattered: beyond its likeliest nodes there are only strangers.
Nodes whose class is in doubt have most to gain: each counts by the root of the probability that its answer is wrong.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import reduce

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from fewnode.dataset import Dataset
from fewnode.errors import FewnodeError
from fewnode.estimator import Estimator
from fewnode.graph import Attributes, Ints, is_sparse
from fewnode.model.recogniser import NO_DESCRIPTIONS, NO_REJECTED, Recogniser
from fewnode.nodes import Labels, Network, Nodes, as_dataset, classes, label_list, node_rows, support_rows
from fewnode.predict.suggestions import Suggestion, Suggestions
from fewnode.recognition.prototypes import Prototypical

CANDIDATES = 1500
"""Nodes that are considered at most, drawn by how likely they are in a class: the nearest alone would all be alike."""

LARGER = 3
"""Of a new class, so many times the nodes that a known one has are looked at, at least: the likeliest."""
LOOKS = 60
"""Nodes of known classes that tell how far one has to look."""
BLOCK = 100_000
"""Nodes that are compared with them at a time: there may be millions."""

REJECTED = 200
"""Rejected nodes that others are compared with at most, the last ones: each is a column of probabilities."""


def suggest(
    model: Estimator,
    data: Network,
    support: Nodes,
    support_y: Labels,
    count: int = 10,
    among: Nodes | None = None,
    rejected: Nodes | Mapping[Hashable, Nodes] = (),
    described: Mapping[Hashable, Attributes] = NO_DESCRIPTIONS,
) -> Suggestions:
    """The nodes to label next, most worthwhile first; `among` these, or among all that are not labelled yet.

    Nodes whose class training saw count as labelled, unless a support node is one of them. `rejected` nodes were looked
    at and are in none of the classes. They are not suggested again, nor are nodes like them: each counts as a class of
    its own that needs no label. If they are given by class, those that are rejected for every class count so, and all
    of them in the probabilities. `described`: rows of attributes that stand for classes, too, or alone.

    >>> import fewnode
    >>> y = np.repeat(range(12), 20)
    >>> data = Dataset.from_scipy(y[:, None] == y, np.eye(12)[y], y)
    >>> model = fewnode.Estimator("propagation", way=3, shot=2, steps=1).fit(data)
    >>> [s.likely for s in suggest(model, data, [0, 25], ["mail", "vpn"], count=1, among=[30])]
    ['vpn']
    """
    if not isinstance(model.method_, Prototypical):
        raise FewnodeError(f"{model.method} has no embedding to choose nodes by; use gpn-plus")
    if count < 1:
        raise FewnodeError(f"count is {count}, expected at least 1")
    data = as_dataset(data)
    names = classes([*label_list(support_y), *described])
    by_class = rejected if isinstance(rejected, Mapping) else NO_REJECTED
    own, own_y = support_rows(data, support, support_y, names)
    wanted = model.recogniser(data, own, support_y, described, rejected=by_class)
    no = in_none(wanted) if isinstance(rejected, Mapping) else node_rows(data, rejected, "rejected")
    if len(names) == 1 and wanted.cannot_tell:
        raise FewnodeError(f"there is one class alone, {names[0]!r}: {wanted.cannot_tell}")
    others = list(dict.fromkeys(no[~np.isin(no, own)].tolist()))[-REJECTED:]
    given = [*own.tolist(), *others]
    label = [*own_y.tolist(), *range(len(names), len(names) + len(others))]
    candidates = unlabelled(data, own) if among is None else node_rows(data, among, "among").tolist()
    pool = np.array(list(dict.fromkeys(candidates)), np.int64)
    pool = pool[~np.isin(pool, [*own, *no])]
    if pool.size == 0:
        raise FewnodeError("there is no node left to suggest; name those to choose among (--query)")
    said: dict[Hashable, Attributes] = {names.index(name): row for name, row in described.items()}
    asked = model.recogniser(data, given, label, said)
    probability = torch.from_numpy(asked.among(pool))[:, : len(names)]
    share = probability
    if asked.cannot_tell is None:
        share = torch.from_numpy(asked.familiar(pool))[:, None] * probability
    wrong = 1 - probability.amax(dim=1, keepdim=True) / probability.sum(dim=1, keepdim=True).clamp(min=1e-12)
    z = F.normalize(model.embedding(data.graph))
    membership = model.method_.membership
    expected = data.graph.n if membership is None else membership.class_share * data.graph.n
    counted = likeliest(share, max(count, reach(z, data, expected))) * wrong.clamp(min=1e-3).sqrt()
    weight = (counted / counted.sum(dim=0).clamp(min=1e-12)).mean(dim=1)  # classes count the same, however many nodes
    kept, weight = draw(weight, CANDIDATES)
    chance = share[kept].sum(dim=1) ** (len(others) / max(1, len(given)))
    first = first_looks(share[kept], np.setdiff1d([names.index(name) for name in described], own_y))
    picked, gains = cover(z[torch.from_numpy(pool)[kept]], z[given], weight, chance, count, first)
    nodes = pool[kept[picked].numpy()].tolist()
    probabilities, member = wanted.judge(nodes)
    likely = [names[c] for c in probabilities.argmax(axis=1)]
    known = [None] * len(nodes) if member is None else member.tolist()
    top = probabilities.max(axis=1).tolist()
    found = [Suggestion(*row) for row in zip(nodes, likely, top, known, gains, strict=True)]
    return Suggestions(found, [data.node_name(node) for node in nodes])


def in_none(recogniser: Recogniser) -> Ints:
    """Nodes that are rejected for every class."""
    nodes = [recogniser.rejected.get(place, np.zeros(0, np.int64)) for place in range(len(recogniser.classes))]
    return reduce(np.intersect1d, nodes)


def unlabelled(data: Dataset, support: Sequence[int] | Ints) -> list[int]:
    """The nodes whose class training did not see, of the kind that has classes.

    All nodes if it saw that of a support node: then the classes asked about cut across those of the dataset.
    """
    seen = data.train_mask | data.valid_mask
    return np.flatnonzero((~seen | seen[np.asarray(support, np.int64)].any()) & may_have_class(data, support)).tolist()


def claimable(data: Dataset, support: Sequence[int] | Ints) -> NDArray[np.bool_]:
    """Nodes of the kinds of which some have labels, in the dataset or in the support."""
    if data.kind is None:
        return data.claimable_mask
    given: NDArray[np.bool_] = np.isin(data.kind, data.kind[np.asarray(support, np.int64)])
    return data.claimable_mask | given


def left_out(data: Dataset, support: Sequence[int] | Ints) -> str:
    """The nodes that are not claimable, in words; nothing if there are none."""
    outside = np.flatnonzero(~claimable(data, support))
    if not outside.size or data.kind is None:
        return ""
    kinds = ", ".join(data.kind_names[k] for k in np.unique(data.kind[outside]))
    return f"{outside.size:,} nodes of kinds without any label ({kinds}); name them as query to ask about them"


def blank(data: Dataset, asked: Sequence[int] | Ints) -> str:
    """How many of the nodes have neither an attribute nor an edge, in words; nothing if there are none."""
    graph, rows = data.graph, np.unique(np.asarray(asked, np.int64))
    alone = rows[graph.degree[rows] == 0]
    own = graph.x[alone]
    alone = alone[np.diff(own.indptr) == 0 if is_sparse(own) else ~np.any(own, axis=1)]
    alone = alone[~np.isin(alone, graph.adj.indices)] if alone.size else alone  # an edge may lead away from it
    if not alone.size:
        return ""
    which = f"{alone.size:,} nodes have" if alone.size > 1 else "1 node has"
    shown = ", ".join(repr(data.node_name(node)) for node in alone[:3].tolist()) + ", …" * (alone.size > 3)
    return f"{which} neither an attribute nor an edge, so the answer is a guess: {shown}"


def may_have_class(data: Dataset, support: Sequence[int] | Ints) -> NDArray[np.bool_]:
    """Nodes of the kinds that have labels.

    And where every labelled node has attributes, nodes without any are of another kind, such as relations of things.
    """
    x = data.graph.x
    bare: NDArray[np.bool_] = np.diff(x.indptr) == 0 if is_sparse(x) else ~np.any(x, axis=1)
    labelled = data.train_mask | data.valid_mask
    labelled[np.asarray(support, np.int64)] = True
    found: NDArray[np.bool_] = (~bare | bare[labelled].any()) & claimable(data, support)
    return found


def reach(z: Float[Tensor, "n d"], data: Dataset, expected: float) -> int:
    """How many nodes to look at for a class: three times the size of a known one, or more where classes lie scattered.

    So many are nearer to a node of a known class than half of its own class are, the middle one of some such nodes.
    If no class is known, it is the `expected` size of one: whoever looked at all nodes would be asked about strangers.
    """
    members = [data.members(c) for c in data.split.train + data.split.valid]
    members = [nodes for nodes in members if nodes.size > 1]
    if not members:
        return round(expected)
    rng = np.random.default_rng(0)
    asked = [members[turn % len(members)] for turn in range(LOOKS)]
    seen = z[[int(rng.choice(nodes)) for nodes in asked]]
    half = torch.stack([(z[nodes] @ one).median() for nodes, one in zip(asked, seen, strict=True)])
    nearer = torch.stack([(part @ seen.T > half).sum(dim=0) for part in z.split(BLOCK)]).sum(dim=0)
    passed = int(nearer.median())
    return max(passed, LARGER * int(np.median([nodes.size for nodes in members])))


def likeliest(share: Float[Tensor, "q n"], count: int) -> Float[Tensor, "q n"]:
    """What each node counts in each class, and nothing where it is not one of the class's `count` likeliest."""
    if share.shape[0] <= count:
        return share
    best = share.topk(count, dim=0).indices
    return torch.zeros_like(share).scatter(0, best, share.gather(0, best))


def first_looks(share: Float[Tensor, "q n"], unseen: Ints) -> list[int]:
    """Of each class that only a description stands for, the likeliest node: it best confirms or refutes that."""
    return list(dict.fromkeys(int(share[:, c].argmax()) for c in unseen.tolist()))


def draw(weight: Float[Tensor, " q"], count: int) -> tuple[Tensor, Float[Tensor, " k"]]:
    """The rows that have a weight, with it or, of too many, some drawn by weight, which then count the same."""
    some = weight.nonzero().flatten() if weight.any() else torch.arange(weight.numel())
    if some.numel() <= count:
        return some, weight[some]
    kept = torch.multinomial(weight.double(), count, generator=torch.Generator().manual_seed(0)).sort().values
    return kept, torch.full((count,), 1 / count)


def cover(
    z: Float[Tensor, "q d"],
    labelled: Float[Tensor, "k d"],
    weight: Float[Tensor, " q"],
    chance: Float[Tensor, " q"],
    count: int,
    first: Sequence[int] = (),
) -> tuple[Tensor, list[float]]:
    """Greedy facility location: each node is stood for by the labelled node most like it; `first` are chosen before.

    A node adds what it improves on that, over all nodes by their weight; it is chosen by that times its chance.
    Where all chances are 1, the greedy choice is within 1 - 1/e of the best (Nemhauser et al., 1978).
    """
    like = (z @ z.T).clamp(min=0)
    covered = (z @ labelled.T).clamp(min=0).amax(dim=1) if len(labelled) else torch.zeros(len(z))
    picked: list[int] = []
    gains: list[float] = []
    for turn in range(min(count, z.shape[0])):
        gain = weight @ (like - covered[:, None]).clamp(min=0)
        worth = gain * chance
        worth[picked] = -1
        best = first[turn] if turn < len(first) else int(worth.argmax())
        picked.append(best)
        gains.append(float(gain[best]))
        covered = torch.maximum(covered, like[:, best])
    return torch.tensor(picked), gains
