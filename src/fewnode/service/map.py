"""The map: two coordinates of every node, and files of numbers for who draws it.

At first nodes lie by the two main axes of z. In the background a layout is made in which nodes lie near those that they
are most like: the nearest neighbours in z attract each other and all others repel, as in UMAP (McInnes et al., 2018).
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import orjson

from fewnode._system.files import cache_directory
from fewnode.class_labels import UNKNOWN
from fewnode.dataset import Dataset
from fewnode.embedding.projection import Plane
from fewnode.engine.layout import settle
from fewnode.errors import FewnodeError
from fewnode.formats.directory import read_record, write_record
from fewnode.graph import Ints
from fewnode.model.estimator import Estimator
from fewnode.model.model_files import fingerprint, shrink
from fewnode.vectors import Floats

MARGIN = 0.06
"""The strip at each border that outliers share: the farther one is, the nearer to the border, which none reaches."""
FAR, NOT_KNOWN, KIND = 65_535, 255, "map"
NEAR, BESIDE = 15, 5
"""Nearest nodes in z that attract a node, and those that a node is placed beside that came later."""
MAX_LAID_OUT, EPOCHS = 100_000, 150
"""Nodes that are laid out themselves, others lie beside these; and rounds."""
PLACES_A_CLUSTER, PROBED = 400, 6
"""Nodes of a cluster, and clusters in which the nearest ones of a node are looked for."""


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
        return _within(_beside(_unit(z), self.z, self.lengths, self.xy))


def by_axes(z: Floats) -> Picture:
    """By the two main axes of z: made at once."""
    flat = Plane.of(z).place(z)
    low, high = np.quantile(flat, [0.005, 0.995] if flat.shape[0] < 1e6 else [0, 1], axis=0)
    t = (flat - low) / np.maximum(high - low, 1e-12)
    inner = 1 - 2 * MARGIN
    beyond = MARGIN * (1 - np.exp(-np.abs(t - t.clip(0, 1)) * inner / MARGIN))
    return _picture(MARGIN + t.clip(0, 1) * inner + np.sign(t - 0.5) * beyond, z, "axes")


def by_neighbours(z: Floats, seed: int = 0) -> Picture:
    """Near those that they are most like. Of a large network a random sample is laid out; the others lie beside it."""
    unit, rng = _unit(z), np.random.default_rng(seed)
    chosen = np.arange(len(z))
    if len(z) > MAX_LAID_OUT:
        chosen = np.sort(rng.choice(len(z), MAX_LAID_OUT, replace=False))
    flat = Plane.of(z[chosen]).place(z[chosen])
    near, like = nearest(unit[chosen], min(NEAR, len(chosen) - 1), rng)
    xy = (10 * flat / max(float(flat.std()), 1e-12) + rng.normal(0, 1e-3, flat.shape)).astype(np.float32)
    settle(xy, near, _strength(like), EPOCHS, seed)
    low, high = np.quantile(xy, [0.001, 0.999], axis=0)
    xy = MARGIN + (1 - 2 * MARGIN) * (xy - low) / np.maximum(high - low, 1e-12)
    if len(chosen) < len(z):
        xy = _beside(unit, unit[chosen], np.ones(len(chosen), np.float32), xy)
    return _picture(xy, z, "neighbours")


def _picture(xy: Floats, z: Floats, how: Literal["axes", "neighbours"]) -> Picture:
    return Picture(_within(xy), z, np.maximum(np.linalg.norm(z, axis=1), 1e-12).astype(np.float32), how)


def kept_layout(model: Estimator, data: Dataset, z: Floats) -> Picture:
    """The layout that an earlier process made of this embedding, or one that is made now and kept."""
    place = cache_directory("maps") / fingerprint(model, data)
    try:
        xy = read_record(place, KIND)[1]["xy"]
        if xy.shape == (len(z), 2) and np.isfinite(xy).all():
            return _picture(xy, z, "neighbours")
    except (FewnodeError, OSError, KeyError):
        pass
    picture = by_neighbours(z)
    with suppress(OSError, FewnodeError):
        write_record(place, KIND, {}, {"xy": picture.xy})
        shrink(place.parent)
    return picture


def _unit(z: Floats) -> Floats:
    found: Floats = (z / np.maximum(np.linalg.norm(z, axis=1, keepdims=True), 1e-12)).astype(np.float32)
    return found


def _within(xy: Floats) -> Floats:
    found: Floats = xy.round(4).clip(1e-4, 1 - 1e-4).astype(np.float32)
    return found


def _beside(unit: Floats, others: Floats, lengths: Floats, xy: Floats) -> Floats:
    """The middle of the places of the nodes that each is most like."""
    found, count = np.zeros((len(unit), 2), np.float32), min(BESIDE, len(others))
    for start in range(0, len(unit), 256):
        part = unit[start : start + 256] @ others.T / lengths
        top = np.argpartition(-part, count - 1, axis=1)[:, :count]
        found[start : start + 256] = np.median(xy[top], axis=1)
    return found


def nearest(unit: Floats, count: int, rng: np.random.Generator) -> tuple[Ints, Floats]:
    """The nearest nodes of each and how like they are: looked for in its own cluster and those beside it."""
    n, clusters = len(unit), max(1, len(unit) // PLACES_A_CLUSTER)
    centres = unit[rng.choice(n, clusters, replace=False)]
    for _ in range(3):
        own = _closest(unit, centres, 1)[:, 0]
        sums = np.zeros_like(centres)
        np.add.at(sums, own, unit)
        centres = _unit(np.where(np.bincount(own, minlength=clusters)[:, None] > 0, sums, centres))
    own = _closest(unit, centres, 1)[:, 0]
    members = [np.flatnonzero(own == c) for c in range(clusters)]
    probed = _closest(centres, centres, min(PROBED, clusters))
    near, like = np.zeros((n, count), np.int64), np.full((n, count), -1, np.float32)
    for c, rows in enumerate(members):
        others = np.concatenate([members[other] for other in probed[c].tolist()])
        if others.size <= count:
            others = np.arange(n)
        found = unit[rows] @ unit[others].T
        found[others[None, :] == rows[:, None]] = -2
        top = np.argpartition(-found, count - 1, axis=1)[:, :count]
        near[rows], like[rows] = others[top], np.take_along_axis(found, top, axis=1)
    return near, like


def _closest(unit: Floats, centres: Floats, count: int) -> Ints:
    found = np.zeros((len(unit), count), np.int64)
    for start in range(0, len(unit), 4096):
        like = unit[start : start + 4096] @ centres.T
        found[start : start + 4096] = np.argsort(-like, axis=1, kind="stable")[:, :count]
    return found


def _strength(like: Floats) -> Floats:
    """How much each neighbour attracts: the nearest one fully, others the less the farther they are for that place."""
    distance = 1 - like
    beyond = distance - distance.min(axis=1, keepdims=True)
    found: Floats = np.exp(-beyond / np.maximum(beyond.mean(axis=1, keepdims=True), 1e-6)).astype(np.float32)
    return found


def map_file(data: Dataset, xy: Floats, version: str) -> bytes:
    """A line of JSON, then x and y of every node as 16 bits each, then a byte each: its known class, 255 if none."""
    y = data.y
    known = np.where((y == UNKNOWN) | (y >= NOT_KNOWN), NOT_KNOWN, y).astype(np.uint8)
    header = {"nodes": data.graph.n, "class_names": data.class_names[:NOT_KNOWN], "version": version}
    columns = [np.ascontiguousarray(np.rint(xy[:, i] * FAR).astype("<u2")).tobytes() for i in (0, 1)]
    return b"".join([orjson.dumps(header), b"\n", *columns, known.tobytes()])


def claims_file(place: Ints, classes: list[str], version: str) -> bytes:
    """A line of JSON, then a byte a node in the order of `map_file`: 0 for none, 1 for the first class, and so on."""
    header: dict[str, Any] = {"version": version, "classes": classes}
    return orjson.dumps(header) + b"\n" + (place + 1).astype(np.uint8).tobytes()
