"""What the service answers, typed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Node:
    """A node: its class is None if the dataset does not know it."""

    name: str
    label: str | None
    degree: int


@dataclass(frozen=True)
class NodeDetails(Node):
    """A node, its most telling attributes, and up to thirty neighbours, by name and class."""

    words: dict[str, float]
    neighbours: dict[str, str | None]
    position: tuple[float, float] | None


@dataclass(frozen=True)
class RegisteredClass:
    """A class and β of its support nodes; None where the method has no β."""

    name: str
    beta: dict[str, float | None]
    position: tuple[float, float] | None
    version: str
    description: str | None = None
    """None if nodes alone stand for it. An empty one: the name speaks."""
    description_beta: float | None = None
    remarks: list[str] = field(default_factory=list)
    """What of the description was not understood or not believed, a sentence each."""
    rejected: list[str] = field(default_factory=list)
    """Nodes that somebody said are not in it."""


@dataclass(frozen=True)
class SharedWords:
    """Words of a class's description that a node has itself, and those that a neighbour has: word and neighbour."""

    own: list[str]
    near: list[tuple[str, str]]


@dataclass(frozen=True)
class Prediction:
    """What a node is taken for; `label` is None if it is in none of the classes."""

    node: str
    label: str | None
    probability: float
    """Of that label."""
    probabilities: dict[str, float]
    member: float | None
    """The probability of being in any of the classes; None where the model cannot tell."""
    nearest: list[tuple[str | None, str]]
    """Support nodes that are most like it, with their classes; None stands for the description of the class."""
    shared: SharedWords | None = None
    """With the description of its likeliest class; None if that has none."""


@dataclass(frozen=True)
class Answer:
    """Predictions, the version of the classes they were made with, and why: β of each class's support nodes."""

    version: str
    results: list[Prediction]
    beta: dict[str, dict[str, float]]
    counts: dict[str, int]
    """How many nodes of the network are taken for each class; empty unless all were asked about."""
    closed_set: bool
    """Whether every node was taken to be in one of the classes."""
    note: str | None
    """Why, where the model cannot tell that a node is in none of them."""
    description_beta: dict[str, float] = field(default_factory=dict)
    """β of each class's description."""
    missing: dict[str, list[str]] = field(default_factory=dict)
    """Of nodes whose rows were given: the columns that they do not have."""
    unknown: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Cells with a category that the dataset does not have; they count as missing."""
    unused: list[str] = field(default_factory=list)
    """Columns that the import left out, and that are left out here as well."""


@dataclass(frozen=True)
class Suggested:
    """A node worth labelling."""

    node: str
    label: str
    probability: float
    why: str


Row = Mapping[str, Any]
"""Cells by column, as the tables have them that the dataset was imported from: text, numbers, categories, vectors."""


@dataclass(frozen=True)
class NewEdge:
    """An edge of a new node with `node`, where it has a kind, a weight or a direction (`way`: `to` or `from` it)."""

    node: str
    kind: str | None = None
    weight: float | None = None
    way: str = "from"


@dataclass(frozen=True)
class Edge:
    """An edge between two nodes that are there, with its kind and weight where edges have them."""

    source: str
    target: str
    kind: str | None = None
    weight: float | None = None


@dataclass(frozen=True)
class NewNode:
    """A node to attach; edges lead to nodes that are there or come with it, by name or as `NewEdge`.

    `attributes`, numbers by the name of an attribute, are for datasets that were not imported from tables.
    """

    name: str
    row: Row | None = None
    edges: Sequence[str | NewEdge] = ()
    attributes: Mapping[str, float] | None = None


@dataclass(frozen=True)
class Share:
    """A share of `nodes`, `right` of them, with its 95 % interval (Wilson's)."""

    value: float
    low: float
    high: float
    right: int
    nodes: int


@dataclass(frozen=True)
class Checked:
    """How much of what is claimed is right, by labels that are known; a share of fewer than ten nodes is None."""

    claimed: int
    checked: int
    """Claimed nodes whose label is known."""
    precision: Share | None
    members: int
    """Nodes that are known to be in the class, or in one of the classes."""
    recall: Share | None
    compared_with: str | None = None
    """What the data calls the class; None if nothing says so."""


@dataclass(frozen=True)
class Progress:
    """All classes together, and each of them. Support nodes are left out."""

    overall: Checked
    per_class: dict[str, Checked]
    version: str


def checked(found: Mapping[str, Any]) -> Checked:
    shares = {what: Share(**found[what]) if found[what] else None for what in ("precision", "recall")}
    return Checked(**{**found, **shares})


def place(position: Any) -> tuple[float, float] | None:
    return None if position is None else (position[0], position[1])


def registered_class(found: Mapping[str, Any]) -> RegisteredClass:
    beta = {each["node"]: each["beta"] for each in found["support"]}
    said = {name: found[name] for name in ("description", "description_beta", "remarks", "rejected")}
    return RegisteredClass(found["name"], beta, place(found["position"]), found["version"], **said)


def _shared(found: Mapping[str, Any] | None) -> SharedWords | None:
    if found is None:
        return None
    return SharedWords(found["own"], [(near["word"], near["node"]) for near in found["near"]])


def answer(found: Mapping[str, Any]) -> Answer:
    results = [
        Prediction(
            each["node"],
            each["class"],
            each["probability"],
            dict(zip(found["classes"], each["probabilities"], strict=True)),
            each["member"],
            [(near["node"], near["class"]) for near in each["nearest"]],
            _shared(each["shared"]),
        )
        for each in found["results"]
    ]
    told = {name: found[name] for name in ("description_beta", "missing", "unknown", "unused") if name in found}
    counts, closed_set = found.get("counts", {}), found.get("closed_set", False)
    return Answer(found["version"], results, found["beta"], counts, closed_set, found.get("note"), **told)
