"""All that requests have changed: registered classes, and nodes and edges beside those of the dataset."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias, TypeVar

Content: TypeAlias = Mapping[str, Any]
"""What was given of a node: `{"row": {column: value}}` or `{"attributes": {name: number}}`."""
Edge: TypeAlias = tuple[str, str]
"""Source and target; of an undirected edge, the name that sorts first is the source."""


class GivenClass(NamedTuple):
    """A class as somebody gave it: the names of some of its nodes, a description, or both."""

    name: str
    nodes: tuple[str, ...] = ()
    description: str | None = None
    """An empty one means that the name speaks."""


@dataclass(frozen=True, eq=False)
class State:
    """One state of the service. Never changed: each change makes another one."""

    classes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The names of the support nodes of each class; none where a description alone stands for it."""
    nodes: Mapping[str, Content] = field(default_factory=dict)
    """Nodes that are new, or of the dataset and replaced."""
    removed: frozenset[str] = frozenset()
    """Nodes of the dataset that were deleted with their edges. One that came back later is in `nodes` as well."""
    edges: Mapping[Edge, bool] = field(default_factory=dict)
    """Edges that differ from the dataset's: added if True, removed if False."""
    descriptions: Mapping[str, str] = field(default_factory=dict)
    """Of the classes that have one."""
    changes: int = 0
    """How many changes led here."""
    digest: int = 0
    """The sum of the hashes of all rows that the store keeps of it."""

    @property
    def version(self) -> str:
        """Says which change this is and, by a digest, that the content is the same too."""
        return f"{self.changes}-{self.digest:064x}"[: len(str(self.changes)) + 9]

    @cached_property
    def given(self) -> tuple[GivenClass, ...]:
        return tuple(GivenClass(name, nodes, self.descriptions.get(name)) for name, nodes in self.classes.items())

    @property
    def changes_network(self) -> bool:
        return bool(self.nodes or self.removed or self.edges)

    def same_network(self, other: State) -> bool:
        return (self.nodes, self.removed, self.edges) == (other.nodes, other.removed, other.edges)

    def with_class(self, name: str, nodes: tuple[str, ...], description: str | None = None) -> State:
        said = {name: description} if description is not None else {}
        return replace(
            self, classes={**self.classes, name: nodes}, descriptions=_without(self.descriptions, name) | said
        )

    def without_class(self, name: str) -> State:
        return replace(self, classes=_without(self.classes, name), descriptions=_without(self.descriptions, name))

    def with_nodes(self, nodes: Mapping[str, Content]) -> State:
        return replace(self, nodes={**self.nodes, **nodes})

    def without_node(self, name: str, original: bool) -> State:
        """Without the node and what was said of its edges; the dataset's own node is noted as removed."""
        return replace(
            self,
            nodes=_without(self.nodes, name),
            removed=self.removed | {name} if original else self.removed,
            edges={edge: present for edge, present in self.edges.items() if name not in edge},
        )

    def with_edges(self, changed: Iterable[tuple[Edge, bool, bool]]) -> State:
        """Edges, whether each is to be there, and whether it is there in the dataset as it is without `edges`."""
        edges = dict(self.edges)
        for edge, wanted, usual in changed:
            if wanted == usual:
                edges.pop(edge, None)
            else:
                edges[edge] = wanted
        return replace(self, edges=edges)


_T = TypeVar("_T")


def _without(each: Mapping[str, _T], name: str) -> dict[str, _T]:
    return {other: value for other, value in each.items() if other != name}
