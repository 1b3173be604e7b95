"""The map: a fixed linear picture of all embeddings, and files of numbers for who draws it."""

from __future__ import annotations

from typing import Any

import numpy as np
import orjson

from fewnode.class_labels import UNKNOWN
from fewnode.dataset import Dataset
from fewnode.graph import Ints
from fewnode.represent.projection import Plane
from fewnode.vectors import Floats

MARGIN = 0.06
"""The strip at each border that outliers share: the farther one is, the nearer to the border, which none reaches."""
FAR, NOT_KNOWN = 65_535, 255


class Projection:
    """A fixed linear map of z to the plane, its two main axes: prototypes can be placed on it too."""

    def __init__(self, z: Floats, like: Projection | None = None) -> None:
        """With the plane and borders of another map, if there is one: those of the dataset, whatever came since."""
        if like is None:
            self.plane = Plane.of(z)
            flat = self.plane.place(z)
            few = flat.shape[0] < 1e6
            self.borders = np.quantile(flat, [0.005, 0.995] if few else [0, 1], axis=0).astype(np.float32)
        else:
            self.plane, self.borders = like.plane, like.borders
        self.xy = self.place(z)

    def place(self, z: Floats) -> Floats:
        """Coordinates between 0 and 1; the farthest hundredth of the nodes is drawn in the margin."""
        low, high = self.borders
        t = (self.plane.place(z) - low) / np.maximum(high - low, 1e-12)
        inner = 1 - 2 * MARGIN
        inside = MARGIN + t.clip(0, 1) * inner
        beyond = MARGIN * (1 - np.exp(-np.abs(t - t.clip(0, 1)) * inner / MARGIN))
        found: Floats = (inside + np.sign(t - 0.5) * beyond).round(4).clip(1e-4, 1 - 1e-4)
        return found

    def position(self, row: int) -> tuple[float, float]:
        return round(float(self.xy[row, 0]), 4), round(float(self.xy[row, 1]), 4)


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
