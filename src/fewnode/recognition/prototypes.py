"""What stands for the classes of a task: labelled rows of z, their means (Eq. 12), and prototypes by ridge regression.

Every function is of one task, or of several with the same labels, which are an axis before the others.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewnode.graph import Ints
from fewnode.recognition.calibration import MembershipModel, sigmoid
from fewnode.vectors import Floats, in_parts, unit_rows

# --- how near -----------------------------------------------------------------------------------------------------

NARROW, RESIDENT = 8, 1024
"""Columns up to which each is multiplied alone, which is sooner; rows that stay in the processor's cache meanwhile."""


@np.errstate(invalid="ignore", over="ignore")  # what is not finite is refused where it would be an answer
def nearness(z: Floats, p: Floats, distance: str, lengths: Floats | None = None) -> Floats:
    """How near each row is to each prototype: the negative distance. `lengths` of the rows, where they are known.

    A cosine lies in [-1, 1]; it is multiplied by 10 so that the softmax can be sure of something.
    """
    if distance == "cosine":
        lengths = row_lengths(z) if lengths is None else lengths
        return np.asarray(products(z, 10 * unit_rows(p).swapaxes(-1, -2)) / lengths[..., None])
    if z.ndim > 2:
        squared = np.square(z[..., :, None, :] - p[..., None, :, :]).sum(axis=-1)
    else:
        squared = np.concatenate([np.square(part[:, None] - p).sum(axis=2) for part in in_parts(z, p.size)])
    return np.asarray(-squared if distance == "sqeuclidean" else -np.sqrt(squared + np.float32(1e-12)))


def row_lengths(z: Floats) -> Floats:
    return np.asarray(np.maximum(np.sqrt(np.einsum("...d,...d->...", z, z)), 1e-12))


def products(rows: Floats, columns: Floats) -> Floats:
    """rows @ columns. A library of linear algebra takes three times as long for a few columns as for each alone.

    Each column lies together in memory ("F"), so that the largest of a few columns is found soon.
    """
    if columns.shape[-1] > NARROW or rows.ndim > 2:
        return np.asarray(rows @ columns)
    found = np.empty((len(rows), columns.shape[1]), np.result_type(rows, columns), "F")
    contiguous = np.ascontiguousarray(columns.T)
    for low in range(0, len(rows), RESIDENT):
        for c, column in enumerate(contiguous):
            found[low : low + RESIDENT, c] = rows[low : low + RESIDENT] @ column
    return found


@np.errstate(invalid="ignore", over="ignore")
def softmax(score: Any) -> Floats:
    weight = np.exp(score - score.max(axis=-1, keepdims=True))
    weight /= weight.sum(axis=-1, keepdims=True)
    return np.asarray(weight)


def log_softmax(score: Any) -> Floats:
    away = score - score.max(axis=-1, keepdims=True)
    return np.asarray(away - np.log(np.exp(away).sum(axis=-1, keepdims=True)))


# --- labelled rows ------------------------------------------------------------------------------------------------

WORTH, ODDS = 1.0, 2.0
"""What a description counts, where a labelled node counts 1; and the odds that it is right, before a label is seen."""
WORTHS = (0.25, 0.5, WORTH)
"""What names of known classes may show a description to count: more would cost too much where it is wrong."""
DOUBTED = 0.3
"""A description that counts less disagrees with the labelled nodes of its class."""
ECHO = 30
"""Nodes most like a description that speak for it, too, all together as much as it does itself."""


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """Rows of z, the class of each, and how much it counts beside the others of its class."""

    z: Floats
    y: Ints
    count: Floats
    is_node: NDArray[np.bool_]

    @classmethod
    def of(cls, z: Floats, y: Ints, said: Floats, said_y: Ints, worth: float = WORTH) -> LabelledRows:
        """Labelled nodes, and descriptions, each by how well it agrees with the nodes; `worth` is the most."""
        agreed = worth * sigmoid(agreement(z, y, said, said_y) + math.log(ODDS))
        agreed[~np.isin(said_y, y)] = 1.0  # nothing else stands for the class
        count = np.concatenate([np.ones(len(y), np.float32), agreed.astype(np.float32)])
        is_node = np.repeat([True, False], [len(y), len(said)])
        return cls(np.concatenate([z, said]), np.concatenate([y, said_y]), count, is_node)

    @property
    def label(self) -> Floats:
        """One-hot rows, k x N."""
        return np.eye(int(self.y.max()) + 1, dtype=np.float32)[self.y]

    @property
    def counted(self) -> Floats:
        """What each row counts in each class."""
        return self.label * self.count[..., None]

    @property
    def shots(self) -> Floats:
        """How many labelled nodes a class has."""
        return np.bincount(self.y, self.is_node, int(self.y.max()) + 1).astype(np.float32)

    @property
    def means(self) -> Floats:
        """The mean of each class, Eq. (12) if rows count by β."""
        counted = self.counted
        return np.asarray((counted / counted.sum(axis=-2, keepdims=True)).swapaxes(-1, -2) @ self.z)


def agreement(z: Floats, y: Ints, said: Floats, said_y: Ints) -> NDArray[np.float64]:
    """How much likelier the labels of a class's nodes are by the descriptions than by chance; the logarithm."""
    if len(y) == 0 or len(said_y) < 2:
        return np.zeros(len(said_y))
    place = np.full(max(int(y.max()), int(said_y.max())) + 1, -1)
    place[said_y] = np.arange(len(said_y))
    judged = place[y] >= 0
    label = np.eye(len(said_y), dtype=np.float32)
    log_prob = log_softmax(SCALE * z[judged] @ ridge_prototypes(said, label, class_weights(label)))
    own = place[y[judged]]
    told = log_prob[np.arange(len(own)), own] + math.log(len(said_y))
    return np.asarray(np.bincount(own, told, len(said_y)), np.float64)


def echoed(said: Floats, z: Floats) -> Floats:
    """Descriptions, each with the nodes that are most like it: these have neighbours and a place in the structure."""
    like = np.concatenate([z[low : low + RESIDENT] @ said.T for low in range(0, len(z), RESIDENT)])
    count = min(ECHO, len(z))
    best = np.argpartition(-like, count - 1, axis=0)[:count].T
    return unit_rows(said + unit_rows(np.asarray(z[np.sort(best)].mean(axis=1))))


# --- ridge regression: what several support nodes agree on counts once, what tells classes apart most ---------------

RIDGE, SCALE = np.float32(1.0), np.float32(15.0)
"""Regularisation of the prototypes, and what their scores are multiplied by before the softmax."""
SHARES = (0.0, 0.15, 0.3, 0.5, 0.7, 1.0)
"""Of the structure in z, of which leave-one-out chooses."""
DOUBT = 6.0
"""How much less likely the labels must be for each share of the structure, in nats: attributes mostly say more."""


@np.errstate(invalid="ignore", divide="ignore")
def class_weights(counted: Floats) -> Floats:
    """A weight for each node, so that classes count the same; all 1 with equal shots.

    Row i is what node i counts in each class: a labelled one 1 in its own.
    """
    mass = counted.sum(axis=-2, keepdims=True)
    return np.asarray((counted / mass).sum(axis=-1) * mass.mean(axis=-1))


def ridge_prototypes(z: Floats, label: Floats, weight: Floats) -> Floats:
    """p that minimise Σ_i weight_i |z_i p - (label_i - 1/N)|² + |p|²; label_i are probabilities. Shape d x N.

    Of the two systems of equations, k x k and d x d, the smaller one is solved.
    """
    root = np.sqrt(weight)[..., None]
    rows, target = root * z, root * (label - np.float32(1 / label.shape[-1]))
    columns = rows.swapaxes(-1, -2)
    if z.shape[-2] <= z.shape[-1]:
        return np.asarray(columns @ _solved(rows @ columns, target))
    return _solved(columns @ rows, columns @ target)


def _solved(products: Floats, target: Floats) -> Floats:
    """(products + RIDGE I)^-1 target. Not a number where there is none: an answer must not look like one."""
    system = products + RIDGE * np.eye(products.shape[-1], dtype=np.float32)
    try:
        right = np.broadcast_to(target, (*system.shape[:-1], target.shape[-1]))
        return np.asarray(np.linalg.solve(system, right), np.float32)
    except np.linalg.LinAlgError:
        return np.full((*system.shape[:-1], target.shape[-1]), np.nan, np.float32)


def chosen_factors(z: Floats, label: Floats, expected: float, own: int) -> Floats:
    """What columns of z are multiplied by, so that each labelled node is predicted best from all others.

    The first `own` columns are what the attributes say; the structure has the `expected` share, which stays where all
    labelled nodes are alone in their class.
    """
    judged, plain = (label @ label.sum(axis=0)) > 1, np.ones(z.shape[1], np.float32)
    if not 0 < expected < 1 or not judged.any():
        return plain
    weight, target = class_weights(label), label.argmax(axis=1)
    best, found = -np.inf, plain
    for share in SHARES:
        two = np.array([((1 - share) / (1 - expected)) ** 0.5, (share / expected) ** 0.5], np.float32)
        factors = np.repeat(two, [own, z.shape[1] - own])
        log_prob = log_softmax(SCALE * left_out(z * factors, label, weight))
        likely = float(log_prob[np.arange(len(z)), target][judged].sum()) - DOUBT * share
        if likely > best:
            best, found = likely, factors
    return found


def left_out(z: Floats, label: Floats, weight: Floats) -> Floats:
    """The score of each labelled node by ridge regression on all others: (H y - h y) / (1 - h), h the diagonal of H."""
    root, target = np.sqrt(weight)[:, None], label - np.float32(1 / label.shape[1])
    rows = root * z
    gram = rows @ rows.T
    hat = gram @ np.linalg.inv(gram + RIDGE * np.eye(len(z), dtype=np.float32))
    own = hat.diagonal()[:, None]
    return np.asarray((hat @ (root * target) / root - own * target) / np.maximum(1 - own, np.float32(1e-6)))


# --- the transductive mode: unlabelled nodes that are asked about together help each other --------------------------

STEPS, IMAGINED, LEAST = 5, 10.0, 1 / 3
"""Of `rectify`: how often it looks again, the queries it imagines in every class before it has seen any, and the share
of them that must seem to be in the classes."""
QUERY_WEIGHT, MEAN_WEIGHT, ROUNDS = np.float32(0.1), 5.0, 3
"""Of ridge regression: what an unlabelled node and a class mean weigh, where a labelled node weighs 1; turns."""


def rectify(
    means: Floats,
    shots: Floats,
    query: Floats,
    distance: str,
    membership: MembershipModel | None = None,
    crowd: Floats | None = None,
) -> Floats:
    """What each query counts in each class, where unlabelled nodes move the prototypes and tell how common a class is.

    Expectation-maximisation. A query counts in class c with its probability of being in it, times that of being in
    any of them if `membership` can tell. Proportions of classes are estimated too: without them, a class with few
    queries would be drawn into its neighbour. Nothing counts at all if most queries seem to be in none of them: so many
    strangers would move a prototype further than its own nodes do.
    """
    base, p, log_share = shots[:, None] * means, means, np.zeros(shots.size, np.float32)
    familiar = familiarity(query, means, shots, distance, membership, crowd)
    for _ in range(STEPS):
        share = softmax(nearness(query, p, distance) + log_share) * familiar
        mass = share.sum(axis=-2)
        p = (base + share.swapaxes(-1, -2) @ query) / (shots + mass)[..., None]
        log_share = np.log((mass + IMAGINED) / (mass.sum(axis=-1, keepdims=True) + shots.size * IMAGINED))[..., None, :]
    return share


def familiarity(
    query: Floats, means: Floats, shots: Floats, distance: str, membership: MembershipModel | None, crowd: Floats | None
) -> Floats:
    """What a query counts for being in any of the classes, 1 if nobody can tell; 0 if most of its task are in none.

    It is the root of the probability. Membership is learned to tell rare members from the nearest of many strangers;
    a query that is asked about because it may be a member is left out too easily by that.
    """
    if membership is None:
        return np.ones((*query.shape[:-1], 1), np.float32)
    familiar = membership.among(nearness(query, means, distance), shots, crowd)[..., None]
    return np.asarray(np.sqrt(familiar) * (familiar.mean(axis=-2, keepdims=True) >= LEAST), np.float32)


def rectified_prototypes(z: Floats, label: Floats, query: Floats, share: Floats) -> Floats:
    """Prototypes that unlabelled nodes have moved; `share` is what each counts in each class to begin with.

    In turns: ridge regression on labelled nodes, on unlabelled ones as what they seem to be, and on the means of the
    classes over both; and what unlabelled ones seem to be by its prototypes. Classes count the same, however many nodes
    seem to be in them: else the tail of a long-tailed batch would be drawn to its head.
    """
    n_way, familiar, tasks = label.shape[-1], share.sum(axis=-1, keepdims=True), share.shape[:-2]
    given, every = (np.broadcast_to(part, (*tasks, *part.shape[-2:])) for part in (label, z))
    identity = np.broadcast_to(np.eye(n_way, dtype=np.float32), (*tasks, n_way, n_way))
    for _ in range(ROUNDS):
        counted = np.concatenate([given, QUERY_WEIGHT * share], axis=-2)
        mean = unit_rows(label.swapaxes(-1, -2) @ z + share.swapaxes(-1, -2) @ query)
        target = counted / np.maximum(np.abs(counted).sum(axis=-1, keepdims=True), np.float32(1e-12))
        p = ridge_prototypes(
            np.concatenate([every, query, mean], axis=-2),
            np.concatenate([target, identity], axis=-2),
            np.concatenate([class_weights(counted), np.full((*tasks, n_way), MEAN_WEIGHT, np.float32)], axis=-1),
        )
        share = familiar * softmax(SCALE * (query @ p))
    return p
