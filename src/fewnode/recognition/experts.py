"""How like each node is to examples, by one kind of evidence at a time: each expert is a function, and linear in them.

So what an expert says of a class is a mean over its examples, and what it says without one of them is another mean.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from fewnode.evidence import Evidence
from fewnode.graph import Ints
from fewnode.vectors import Floats

Expert = Callable[[Evidence, Floats, Ints, Floats], Floats]
"""From the evidence, z, the rows of examples and their weights (a column a question): a number a node and question."""
ECHO = 30
"""Nodes with the words of a sentence that speak for it in the embedding, too: by how well they match."""


def embedding(evidence: Evidence, z: Floats, support: Ints, weights: Floats) -> Floats:
    """The cosine of z with the mean of the examples; rows of z have length 1."""
    return np.asarray(z @ (z[support].T @ weights))


def words(evidence: Evidence, z: Floats, support: Ints, weights: Floats) -> Floats:
    """Tf-idf: the words that a node has itself."""
    return np.asarray(evidence.words @ np.ascontiguousarray(evidence.words[support].T @ weights))


def numbers(evidence: Evidence, z: Floats, support: Ints, weights: Floats) -> Floats:
    """The cosine of standardised numbers, categories, degrees and sums of weights."""
    return np.asarray(evidence.numbers @ (evidence.numbers[support].T @ weights))


def around(evidence: Evidence, z: Floats, support: Ints, weights: Floats) -> Floats:
    """The cosine of these, their mean over the neighbours, and how the node differs from that."""
    return np.asarray(evidence.around @ (evidence.around[support].T @ weights))


def walk(evidence: Evidence, z: Floats, support: Ints, weights: Floats) -> Floats:
    """Personalised PageRank from the examples."""
    start = np.zeros((evidence.n, weights.shape[1]), np.float32)
    np.add.at(start, support, weights)
    return evidence.diffused(start)


def expert_columns(evidence: Evidence, z: Floats, support: Ints, weights: Floats) -> dict[str, Floats]:
    """What each expert says: a row a node, a column a column of weights."""
    experts: Mapping[str, Expert] = {"embedding": embedding, "around": around, "numbers": numbers, "walk": walk}
    found = {name: expert(evidence, z, support, weights) for name, expert in experts.items()}
    if evidence.words.shape[1]:
        found["words"] = words(evidence, z, support, weights)
        found["words around"] = evidence.diffused(found["words"])
    return found


def prior_lead(evidence: Evidence) -> dict[str, float]:
    """How far each expert is ahead before an example is left out: in logarithms of ranks.

    Most networks are about topics, where the embedding leads; in large ones a class is a small part of a topic. Columns
    of numbers come with networks where they matter; without them there are only degrees, which tell few classes apart.
    """
    large = np.log(evidence.n / SMALL) / np.log(LARGE / SMALL)
    numeric = NO_NUMBERS + (SOME_NUMBERS - NO_NUMBERS) * min(1.0, evidence.numeric / MANY_NUMBERS)
    return {
        "embedding": float(1 - np.clip(large, 0, 1)),
        "words": 0.0,
        "words around": 0.4,
        "walk": 0.0,
        "numbers": numeric,
        "around": numeric,
    }


SMALL, LARGE = 5_000, 30_000
"""Nodes up to which the embedding leads, and from which on it does not."""
NO_NUMBERS, SOME_NUMBERS, MANY_NUMBERS = -2.0, 1.5, 4
"""What numbers are ahead by without a column of them, and from so many columns on."""


def sentence_columns(evidence: Evidence, z: Floats, said: Floats) -> tuple[Floats, Floats, Floats]:
    """A sentence's relevance to each node: by its own words, with its neighbours', and by what is like the best.

    `said` has a row of tf-idf. Rare words cannot be lost; the embedding only adds what is like nodes that have them.
    """
    own = np.asarray(evidence.words @ said).astype(np.float32)
    near = evidence.diffused(own[:, None])[:, 0]
    best = np.argsort(-near, kind="stable")[:ECHO]
    return own, near, np.asarray(z @ (near[best] @ z[best]))
