"""The vectors of nodes as a value: all that embedding and recognition share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewnode._system import memory
from fewnode.graph import Ints

Floats = NDArray[np.float32]
Probabilities = NDArray[np.float32]
LANDMARKS, NEIGHBOUR = 500, 10
"""Nodes of the network that tell how crowded it is around a node, by the cosine of the tenth nearest of them."""
SAMPLE = 5_000
"""Nodes of the network that tell what share of it is in a class."""
NUMBERS_AT_ONCE = 1 << 22


@dataclass(frozen=True, eq=False)
class Survey:
    """What the whole network looks like, whichever of its nodes are at hand."""

    n: int
    """Nodes of the network."""
    landmarks: Floats
    """z of a few nodes, by which crowding is measured anywhere."""
    sample: Ints
    """Nodes that stand for all of them, always the same for one n."""
    sample_z: Floats
    sample_crowding: Floats


@dataclass(frozen=True, eq=False)
class Embedding:
    """z of some nodes, and what the whole network looks like from there. Where it came from, nobody can tell."""

    z: Floats
    survey: Survey
    importance: Floats | None = None
    """What a node counts in a prototype, before the softmax over its class (GPN); None: all count alike."""
    attribute_columns: int = 0
    """So many first columns of z come from attributes, the others from the structure."""
    structure_share: float = 0.0
    """The structure's part of the squared length of a row of z."""

    @classmethod
    def of(
        cls, z: Floats, importance: Floats | None = None, attribute_columns: int = 0, structure_share: float = 0.0
    ) -> Embedding:
        """From z of all nodes of a network."""
        return cls(z, survey(z), importance, attribute_columns, structure_share)

    @property
    def n(self) -> int:
        return int(self.z.shape[0])

    def take(self, nodes: Ints) -> Embedding:
        """The embedding of these nodes alone."""
        importance = None if self.importance is None else self.importance[nodes]
        return replace(self, z=memory.taken(self.z, nodes), importance=importance)


def survey(z: Floats) -> Survey:
    """Look at the whole network once, from z of all its nodes."""
    sample, landmarks = drawn(z.shape[0], SAMPLE), memory.taken(z, drawn(z.shape[0], LANDMARKS))
    sample_z = memory.taken(z, sample)
    return Survey(z.shape[0], landmarks, sample, sample_z, crowding(sample_z, landmarks))


def drawn(n: int, count: int) -> Ints:
    """So many of n places at random, in order. With some more places most stay the same: answers do not jump."""
    if n <= count:
        return np.arange(n)
    return np.sort(np.argpartition(np.random.default_rng(0).random(n), count)[:count])


@np.errstate(invalid="ignore", over="ignore")  # what is not finite is refused where it would be an answer
def crowding(z: Floats, landmarks: Floats) -> Floats:
    """How close nodes lie around each row of z: ten times the cosine with the tenth nearest landmark."""
    unit = unit_rows(landmarks).T
    tenth = -min(NEIGHBOUR, unit.shape[1])
    parts = [
        np.partition(10 * (unit_rows(part) @ unit), tenth, axis=1)[:, tenth]
        for part in in_parts(z, max(landmarks.shape))
    ]
    return np.concatenate(parts)


@np.errstate(invalid="ignore", over="ignore")
def unit_rows(z: Floats) -> Floats:
    """Rows of length 1; a row of zeros stays one."""
    return np.asarray(z / np.maximum(np.sqrt(np.einsum("...d,...d->...", z, z)), 1e-12)[..., None])


def in_parts(z: Floats, numbers: int) -> Iterator[Floats]:
    """Rows in parts that bound memory, if each row takes so many numbers; one part at least."""
    step = max(1, NUMBERS_AT_ONCE // max(1, numbers))
    for low in range(0, max(1, z.shape[0]), step):
        yield z[low : low + step]


# --- files ----------------------------------------------------------------------------------------------------------


def as_arrays(embedding: Embedding) -> dict[str, NDArray[Any]]:
    """Named arrays for a file, z first: where it begins in memory decides about the last bit of a product."""
    parts = np.array([embedding.attribute_columns, embedding.structure_share], np.float32)
    found = {"z": embedding.z, "z.crowding": embedding.survey.sample_crowding, "z.parts": parts}
    return found if embedding.importance is None else {**found, "z.importance": embedding.importance}


def from_arrays(arrays: Mapping[str, NDArray[Any]], n: int) -> Embedding:
    """What `as_arrays` gave for a network of n nodes, on the same memory. `ValueError` if that cannot be."""
    sample, shapes = drawn(n, SAMPLE), {name: array.shape for name, array in arrays.items()}
    width = shapes["z"][1:]
    expected = {"z": (n, *width), "z.crowding": sample.shape, "z.parts": (2,), "z.importance": (n,)}
    if len(width) != 1 or not {"z", "z.crowding", "z.parts"} <= shapes.keys() <= expected.keys():
        raise ValueError(f"not an embedding: {', '.join(shapes)}")
    if any(shapes[name] != expected[name] or array.dtype != np.float32 for name, array in arrays.items()):
        raise ValueError(f"not an embedding of {n} nodes: {shapes}")
    z, (columns, share) = arrays["z"], arrays["z.parts"].tolist()
    whole = Survey(n, memory.taken(z, drawn(n, LANDMARKS)), sample, memory.taken(z, sample), arrays["z.crowding"])
    return Embedding(z, whole, arrays.get("z.importance"), int(columns), share)
