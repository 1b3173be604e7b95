"""The transductive mode: unlabelled nodes that are asked about together help each other."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from fewnode.recognition.membership import MembershipModel
from fewnode.recognition.nearness import nearness
from fewnode.recognition.ridge import SCALE, class_weights, ridge_prototypes

STEPS, IMAGINED, LEAST = 5, 10.0, 1 / 3
"""Of `rectify`: how often it looks again, the queries it imagines in every class before it has seen any, and the share
of them that must seem to be in the classes."""


def rectify(
    z: Float[Tensor, "*b k d"],
    beta: Float[Tensor, " k"],
    label: Float[Tensor, "k n"],
    query: Float[Tensor, "*b q d"],
    distance: str,
    membership: MembershipModel | None = None,
    crowd: Float[Tensor, "*b q"] | None = None,
) -> Float[Tensor, "*b q n"]:
    """The transductive mode: unlabelled query nodes move the prototypes, and tell how common each class is.

    Expectation-maximisation. A query counts in class c with its probability of being in it, times that of being in
    any of them if `membership` can tell. Proportions of classes are estimated too: without them, a class with few
    queries would be drawn into its neighbour. Returns what each query counts in each class. That is nothing at all if
    most seem to be in none of them: so many strangers would move a prototype further than its own nodes do. It is all
    of one task, or of several with the same labels.
    """
    shots, n_way = label.sum(dim=0), label.shape[1]
    base = (label * (beta * (label @ shots))[:, None]).T @ z
    p, log_share = base / shots[:, None], z.new_zeros(n_way)
    familiar = familiarity(query, p, shots, distance, membership, crowd)
    for _ in range(STEPS):
        share = torch.softmax(nearness(query, p, distance) + log_share, dim=-1) * familiar
        mass = share.sum(dim=-2)
        p = (base + share.mT @ query) / (shots + mass).unsqueeze(-1)
        log_share = torch.log((mass + IMAGINED) / (mass.sum(dim=-1, keepdim=True) + n_way * IMAGINED)).unsqueeze(-2)
    return share


def familiarity(
    query: Float[Tensor, "*b q d"],
    p: Float[Tensor, "*b n d"],
    shots: Float[Tensor, " n"],
    distance: str,
    membership: MembershipModel | None,
    crowd: Float[Tensor, "*b q"] | None,
) -> Float[Tensor, "*b q 1"]:
    """What a query counts for being in any of the classes, 1 if nobody can tell; 0 if most of its task are in none.

    It is the root of the probability. Membership is learned to tell rare members from the nearest of many strangers;
    a query that is asked about because it may be a member is left out too easily by that.
    """
    if membership is None:
        return query.new_ones(*query.shape[:-1], 1)
    familiar = membership.among(nearness(query, p, distance), shots, crowd).unsqueeze(-1)
    return familiar.sqrt() * (familiar.mean(dim=-2, keepdim=True) >= LEAST)


QUERY_WEIGHT, MEAN_WEIGHT, ROUNDS = 0.1, 5.0, 3
"""Of ridge regression: what an unlabelled node and a class mean weigh, where a labelled node weighs 1; turns."""


def rectified_prototypes(
    z: Float[Tensor, "*b k d"],
    label: Float[Tensor, "k n"],
    query: Float[Tensor, "*b q d"],
    share: Float[Tensor, "*b q n"],
    rounds: int = ROUNDS,
) -> Float[Tensor, "*b d n"]:
    """Prototypes that unlabelled nodes have moved; `share` is what each counts in each class to begin with.

    In turns: ridge regression on labelled nodes, on unlabelled ones as what they seem to be, and on the means of the
    classes over both; and what unlabelled ones seem to be by its prototypes. Classes count the same, however many nodes
    seem to be in them: else the tail of a long-tailed batch would be drawn to its head.
    """
    n_way, familiar, tasks = label.shape[1], share.sum(dim=-1, keepdim=True), share.shape[:-2]
    given, means = label.expand(*tasks, -1, -1), torch.eye(n_way).expand(*tasks, -1, -1)
    for _ in range(rounds):
        counted = torch.cat([given, QUERY_WEIGHT * share], dim=-2)
        mean = F.normalize(label.T @ z + share.mT @ query, dim=-1)
        p = ridge_prototypes(
            torch.cat([z, query, mean], dim=-2),
            torch.cat([F.normalize(counted, p=1, dim=-1), means], dim=-2),
            torch.cat([class_weights(counted), torch.full((*tasks, n_way), MEAN_WEIGHT)], dim=-1),
        )
        share = familiar * torch.softmax(SCALE * (query @ p), dim=-1)
    return p
