"""What the paper says its four networks are, from `expected.toml`, and how far another network is from that."""

from __future__ import annotations

import tomllib
from hashlib import sha1, sha256
from importlib import resources
from typing import Any

import numpy as np
from pydantic import BaseModel

from fewnode.dataset import ClassSplit
from fewnode.graph import Graph


class Expected(BaseModel):
    """Table 1 of the paper for one network, its classes for training, validation and test, and the authors' files:
    the name that they begin with, the git blob id of each, and a hash of the degrees in them, where we have them."""

    nodes: int
    edges: int
    attributes: int
    classes: int
    split: tuple[int, int, int]
    published: str | None = None
    blobs: dict[str, str] = {}
    degrees_sha256: str | None = None

    def compare(self, graph: Graph, split: ClassSplit) -> dict[str, Any]:
        """`expected`: the paper's counts. `difference`: how many more the built network has; negative is fewer."""
        sizes = [len(split.train), len(split.valid), len(split.test)]
        counts = {"nodes": graph.n, "edges": graph.n_edges, "attributes": graph.n_features, "classes": sum(sizes)}
        expected = {what: getattr(self, what) for what in counts}
        difference: dict[str, Any] = {what: n - expected[what] for what, n in counts.items()}
        difference["split"] = [n - m for n, m in zip(sizes, self.split, strict=True)]
        return {"expected": {**expected, "split": list(self.split)}, "difference": difference}


EXPECTED = {
    name: Expected(**entry)
    for name, entry in tomllib.loads(
        resources.files("fewnode.formats").joinpath("expected.toml").read_text("utf-8")
    ).items()
}


def blob_id(content: bytes) -> str:
    """The id that git has for a file's content."""
    return sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def network_of_the_paper(graph: Graph) -> str | None:
    """Which of the four networks this is, whatever it is called and however its nodes are numbered."""
    degrees = sha256(np.sort(graph.degree).astype("<i8").tobytes()).hexdigest()
    for name, expected in EXPECTED.items():
        counts = (expected.nodes, expected.edges, expected.attributes)
        if counts == (graph.n, graph.n_edges, graph.n_features) and expected.degrees_sha256 in (None, degrees):
            return name
    return None
