"""The map: two coordinates of every node, and files of numbers for who draws it.

At first nodes lie by the two main axes of z. In the background a layout is made in which nodes lie near those that they
are most like: the nearest neighbours in z attract each other and all others repel, as in UMAP (McInnes et al., 2018).
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

import numpy as np
import orjson

from fewnode._system.files import cache_directory
from fewnode.class_labels import UNKNOWN
from fewnode.dataset import Dataset
from fewnode.embedding.projection import Plane
from fewnode.engine.rows import settle
from fewnode.errors import FewnodeError
from fewnode.formats.directory import read_record, write_record
from fewnode.graph import Ints
from fewnode.model.estimator import Estimator
from fewnode.model.model_files import fingerprint, shrink
from fewnode.vectors import Floats, unit_rows

MARGIN = 0.06
"""The strip at each border for the farthest nodes."""
FAR, NOT_KNOWN, KIND = 65_535, 255, "map"
NEAR, BESIDE = 15, 5
"""Nearest nodes in z that attract a node, and those that a node is placed beside that came later."""
MAX_LAID_OUT, EPOCHS = 20_000, 150
"""Nodes that are laid out themselves, others lie beside these; and rounds."""


@dataclass(frozen=True, eq=False)
class Picture:
    """Where the nodes of a dataset lie, in the square from 0 to 1."""

    xy: Floats
    z: Floats
    lengths: Floats
    """Of z; a second copy of z, each of length 1, would be as large as z."""
    how: Literal["axes", "neighbours"]

    def beside(self, z: Floats) -> Floats:
        """Where whatever has an embedding lies, a new node or a prototype: amid the nodes that it is most like."""
        return _within(_beside(unit_rows(z), self.z, self.lengths, self.xy))


def _picture(xy: Floats, z: Floats, how: Literal["axes", "neighbours"]) -> Picture:
    return Picture(_within(xy), z, np.maximum(np.linalg.norm(z, axis=1), 1e-12).astype(np.float32), how)


def by_axes(z: Floats) -> Picture:
    """By the two main axes of z: made at once."""
    return _picture(_scaled(Plane.of(z).place(z), 0.005), z, "axes")


def by_neighbours(z: Floats, seed: int = 0) -> Picture:
    """Near those that they are most like. Of a large network a random sample is laid out; the others lie beside it."""
    from sklearn.neighbors import NearestNeighbors

    rng, n = np.random.default_rng(seed), len(z)
    chosen = np.sort(rng.choice(n, MAX_LAID_OUT, replace=False)) if n > MAX_LAID_OUT else np.arange(n)
    unit, flat = unit_rows(z[chosen]), Plane.of(z[chosen]).place(z[chosen])
    apart, near = NearestNeighbors(n_neighbors=min(NEAR, len(unit) - 1), algorithm="brute").fit(unit).kneighbors()
    beyond = apart**2 - (apart**2).min(axis=1, keepdims=True)
    strength = np.exp(-beyond / np.maximum(beyond.mean(axis=1, keepdims=True), 1e-6)).astype(np.float32)
    xy = (10 * flat / max(float(flat.std()), 1e-12) + rng.normal(0, 1e-3, flat.shape)).astype(np.float32)
    settle(xy, near, strength, EPOCHS, seed)
    xy = _scaled(xy, 0.001)
    if len(unit) < n:
        xy = _beside(unit_rows(z), unit, np.ones(len(unit), np.float32), xy)
    return _picture(xy, z, "neighbours")


def kept_layout(model: Estimator, data: Dataset, z: Floats) -> Picture:
    """The layout that an earlier process made of this embedding, or one that is made now and kept."""
    place = cache_directory("maps") / fingerprint(model, data)
    with suppress(FewnodeError, OSError, KeyError):
        xy = read_record(place, KIND)[1]["xy"]
        if xy.shape == (len(z), 2) and np.isfinite(xy).all():
            return _picture(xy, z, "neighbours")
    picture = by_neighbours(z)
    with suppress(OSError, FewnodeError):
        write_record(place, KIND, {}, {"xy": picture.xy})
        shrink(place.parent)
    return picture


def _scaled(xy: Floats, share: float) -> Floats:
    """Into the square; of each side that share of the nodes is in the margin, or beyond it."""
    low, high = np.quantile(xy, [share, 1 - share], axis=0)
    found: Floats = MARGIN + (1 - 2 * MARGIN) * (xy - low) / np.maximum(high - low, 1e-12)
    return found


def _within(xy: Floats) -> Floats:
    found: Floats = xy.round(4).clip(1e-4, 1 - 1e-4).astype(np.float32)
    return found


def _beside(unit: Floats, others: Floats, lengths: Floats, xy: Floats) -> Floats:
    """The middle of the places of the nodes that each is most like."""
    found, count = np.zeros((len(unit), 2), np.float32), min(BESIDE, len(others))
    for start in range(0, len(unit), 256):
        like = unit[start : start + 256] @ others.T / lengths
        found[start : start + 256] = np.median(xy[np.argpartition(-like, count - 1, axis=1)[:, :count]], axis=1)
    return found


def map_file(data: Dataset, xy: Floats, version: str) -> bytes:
    """A line of JSON, then x and y of every node as 16 bits each, then a byte each: its known class, 255 if none."""
    known = np.where((data.y == UNKNOWN) | (data.y >= NOT_KNOWN), NOT_KNOWN, data.y).astype(np.uint8)
    header = {"nodes": data.graph.n, "class_names": data.class_names[:NOT_KNOWN], "version": version}
    return orjson.dumps(header) + b"\n" + np.rint(xy.T * FAR).astype("<u2").tobytes() + known.tobytes()


def claims_file(place: Ints, classes: list[str], version: str) -> bytes:
    """A line of JSON, then a byte a node in the order of `map_file`: 0 for none, 1 for the first class, and so on."""
    return orjson.dumps({"version": version, "classes": classes}) + b"\n" + (place + 1).astype(np.uint8).tobytes()
