"""The transductive mode: unlabelled nodes that are asked about together help each other."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from fewnode.graph import Ints
from fewnode.recognition.membership import MembershipModel
from fewnode.recognition.nearness import CHUNK, nearness
from fewnode.recognition.ridge import SCALE, class_weights, ridge_prototypes

STEPS, IMAGINED, LEAST = 5, 10.0, 1 / 3
"""Of `rectify`: how often it looks again, the queries it imagines in every class before it has seen any, and the share
of them that must seem to be in the classes."""


def rectify(
    z: Float[Tensor, "k d"],
    beta: Float[Tensor, " k"],
    y: Int[Tensor, " k"],
    query: Float[Tensor, "q d"],
    n_way: int,
    distance: str,
    membership: MembershipModel | None = None,
    crowd: Float[Tensor, " q"] | None = None,
) -> Float[Tensor, "q n"] | None:
    """The transductive mode: unlabelled query nodes move the prototypes, and tell how common each class is.

    Expectation-maximisation. A query counts in class c with its probability of being in it, times that of being in
    any of them if `membership` can tell. Proportions of classes are estimated too: without them, a class with few
    queries would be drawn into its neighbour. Returns what each query counts in each class; None if most seem to be in
    none of them: so many strangers would move a prototype further than its own nodes do.
    """
    shots = torch.bincount(y, minlength=n_way).to(z.dtype)
    base = z.new_zeros(n_way, z.shape[1]).index_add(0, y, (beta * shots[y])[:, None] * z)
    p, log_share = base / shots[:, None], z.new_zeros(n_way)
    familiar = familiarity(query, p, shots, distance, membership, crowd)
    if familiar is None:
        return None
    for _ in range(STEPS):
        share = torch.softmax(nearness(query, p, distance) + log_share, dim=1) * familiar
        p = (base + share.T @ query) / (shots + share.sum(dim=0))[:, None]
        log_share = torch.log((share.sum(dim=0) + IMAGINED) / (share.sum() + n_way * IMAGINED))
    return share


def familiarity(
    query: Float[Tensor, "q d"],
    p: Float[Tensor, "n d"],
    shots: Float[Tensor, " n"],
    distance: str,
    membership: MembershipModel | None,
    crowd: Float[Tensor, " q"] | None,
) -> Float[Tensor, "q 1"] | None:
    """What a query counts for being in any of the classes, 1 if nobody can tell; None if most of them are in none.

    It is the root of the probability. Membership is learned to tell rare members from the nearest of many strangers;
    a query that is asked about because it may be a member is left out too easily by that.
    """
    if membership is None:
        return query.new_ones(query.shape[0], 1)
    familiar = membership.among(nearness(query, p, distance), shots, crowd)[:, None]
    return None if familiar.mean() < LEAST else familiar.sqrt()


QUERY_WEIGHT, MEAN_WEIGHT, ROUNDS = 0.1, 5.0, 3
"""Of ridge regression: what an unlabelled node and a class mean weigh, where a labelled node weighs 1; turns."""


def rectified_prototypes(
    z: Float[Tensor, "k d"],
    label: Float[Tensor, "k n"],
    query: Float[Tensor, "q d"],
    share: Float[Tensor, "q n"],
    rounds: int = ROUNDS,
) -> Float[Tensor, "d n"]:
    """Prototypes that unlabelled nodes have moved; `share` is what each counts in each class to begin with.

    In turns: ridge regression on labelled nodes, on unlabelled ones as what they seem to be, and on the means of the
    classes over both; and what unlabelled ones seem to be by its prototypes. Classes count the same, however many nodes
    seem to be in them: else the tail of a long-tailed batch would be drawn to its head.
    """
    n_way, familiar = label.shape[1], share.sum(dim=1, keepdim=True)
    for _ in range(rounds):
        counted = torch.cat([label, QUERY_WEIGHT * share])
        mean = F.normalize(label.T @ z + share.T @ query)
        p = ridge_prototypes(
            torch.cat([z, query, mean]),
            torch.cat([F.normalize(counted, p=1), torch.eye(n_way)]),
            torch.cat([class_weights(counted), torch.full((n_way,), MEAN_WEIGHT)]),
        )
        share = familiar * torch.softmax(SCALE * (query @ p), dim=1)
    return p


def gain_together(z: Float[Tensor, "t r d"], y: Ints, query_y: Ints, distance: str) -> float:
    """How much more of the queries are right where those of a task help each other, summed over tasks of one shape.

    Each task has the rows of its support nodes, then of its queries. All tasks are computed at once: one by one, most
    of the time would be spent on starting small operations.
    """
    given, asked = torch.from_numpy(y), torch.from_numpy(query_y)
    label = F.one_hot(given).float()
    beta = 1 / label.sum(dim=0)[given]

    def right(rows: Float[Tensor, "r d"]) -> tuple[Tensor, Tensor]:
        support, query = rows[: y.size], rows[y.size :]
        share = rectify(support, beta, given, query, label.shape[1], distance)
        assert share is not None, "without a membership model, nobody is a stranger"  # noqa: S101 # nosec B101
        alone = ridge_prototypes(support, label, class_weights(label))
        together = rectified_prototypes(support, label, query, share)
        found = [((query @ p).argmax(dim=1) == asked).sum() for p in (alone, together)]
        return found[0], found[1]

    with torch.inference_mode():
        alone, together = torch.func.vmap(right, chunk_size=max(1, CHUNK // z[0].numel()))(z)
    return float((together - alone).sum()) / query_y.size
