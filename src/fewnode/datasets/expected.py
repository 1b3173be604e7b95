"""What the paper says its four networks are, from `expected.toml`, and how far a built one is from that."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

from fewnode.dataset import ClassSplit
from fewnode.graph import Graph


@dataclass(frozen=True)
class Expected:
    nodes: int
    edges: int
    attributes: int
    classes: int
    split: tuple[int, int, int]
    """How many classes are for training, validation and test."""
    published: str | None = None
    """The name that the authors' files begin with."""
    blobs: dict[str, str] = field(default_factory=dict)
    """The authors' files and their git blob ids."""

    def compare(self, graph: Graph, split: ClassSplit) -> dict[str, Any]:
        """`expected`: the paper's counts. `difference`: how many more the built network has; negative is fewer."""
        sizes = [len(split.train), len(split.valid), len(split.test)]
        found = {"nodes": graph.n, "edges": graph.n_edges, "attributes": graph.n_features, "classes": sum(sizes)}
        expected = {what: getattr(self, what) for what in found}
        return {
            "expected": {**expected, "split": list(self.split)},
            "difference": {
                **{what: n - expected[what] for what, n in found.items()},
                "split": [n - m for n, m in zip(sizes, self.split, strict=True)],
            },
        }


def _read() -> dict[str, Expected]:
    text = resources.files("fewnode.datasets").joinpath("expected.toml").read_text("utf-8")
    return {name: Expected(**{**entry, "split": tuple(entry["split"])}) for name, entry in tomllib.loads(text).items()}


EXPECTED = _read()
