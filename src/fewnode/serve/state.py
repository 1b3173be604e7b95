"""All that requests have changed: classes, answers about nodes, and nodes, edges and labels beside the dataset's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias, TypeVar

Content: TypeAlias = Mapping[str, Any]
"""What was given of a node: `{"row": {column: value}}` or `{"attributes": {name: number}}`."""
Edge: TypeAlias = tuple[str, str]
"""Source and target; of an undirected edge, the name that sorts first is the source."""
Tie: TypeAlias = tuple[str, str, str]
"""An edge of a kind: source, target and the name of the relation."""

Key: TypeAlias = tuple[str, Any]
"""A table of the state, and the key of a row in it."""
ABSENT = object()
"""In place of a row that is not there."""
NOBODY: Mapping[str, str] = MappingProxyType({})


class GivenClass(NamedTuple):
    """A class as somebody gave it: the names of some of its nodes, a description, or both."""

    name: str
    nodes: tuple[str, ...] = ()
    description: str | None = None
    """An empty one means that the name speaks."""
    rejected: tuple[str, ...] = ()
    """Nodes that somebody said are not in it."""


class Verdict(NamedTuple):
    """What somebody answered when asked whether a node is in a class."""

    yes: bool
    check: bool
    """Whether it was asked as one of a sample of what the class claims, and not to learn from it."""
    who: str | None
    when: str


Question: TypeAlias = tuple[str, str]
"""A class and a node."""


class Row(NamedTuple):
    """A row of one of the tables of a state, as it is to be."""

    table: str
    key: Any
    value: Any
    """`ABSENT` if there is to be none."""
    place: int | None = None
    """Where it comes in its table if it was not there; None: at the end."""


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
    ties: Mapping[Tie, float] = field(default_factory=dict)
    """Edges of a kind that differ from the dataset's: the amount of each as it was given, 0 if it was removed."""
    verdicts: Mapping[Question, Verdict] = field(default_factory=dict)
    """The node of a yes is among the support of its class, that of a no is not."""
    labels: Mapping[str, str | None] = field(default_factory=dict)
    """Labels of nodes that somebody corrected; None: it is not known."""
    arrivals: Mapping[str, str] = field(default_factory=dict)
    """When nodes that are new were attached."""
    changes: int = 0
    """How many changes led here."""
    digest: int = 0
    """The sum of the hashes of all rows that the store keeps of it."""
    touched: tuple[Key, ...] | None = None
    """What may differ from the state that was kept last; None if nobody knows."""

    @property
    def version(self) -> str:
        """Says which change this is and, by a digest, that the content is the same too."""
        return f"{self.changes}-{self.digest:064x}"[: len(str(self.changes)) + 9]

    @cached_property
    def given(self) -> tuple[GivenClass, ...]:
        no: dict[str, list[str]] = {}
        for (name, node), verdict in self.verdicts.items():
            if not verdict.yes:
                no.setdefault(name, []).append(node)
        said = self.descriptions
        return tuple(
            GivenClass(name, nodes, said.get(name), tuple(no.get(name, ()))) for name, nodes in self.classes.items()
        )

    @property
    def changes_network(self) -> bool:
        return any(getattr(self, table) for table in NETWORK)

    def same_network(self, other: State) -> bool:
        tables = ((getattr(self, table), getattr(other, table)) for table in NETWORK)
        return all(own is others or own == others for own, others in tables)

    def with_class(self, name: str, nodes: tuple[str, ...], description: str | None = None) -> State:
        """The class as it is from now on. Answers that its nodes contradict are withdrawn."""
        said = {name: description} if description is not None else {}
        untrue = [key for key, verdict in self.verdicts.items() if key[0] == name and verdict.yes != (key[1] in nodes)]
        return replace(
            self,
            classes={**self.classes, name: nodes},
            descriptions=_without(self.descriptions, name) | said,
            verdicts=_without(self.verdicts, *untrue),
            touched=self._touching(classes=[name], descriptions=[name], verdicts=untrue),
        )

    def without_class(self, name: str) -> State:
        answered = [key for key in self.verdicts if key[0] == name]
        return replace(
            self,
            classes=_without(self.classes, name),
            descriptions=_without(self.descriptions, name),
            verdicts=_without(self.verdicts, *answered),
            touched=self._touching(classes=[name], descriptions=[name], verdicts=answered),
        )

    def with_verdict(self, name: str, node: str, verdict: Verdict) -> State:
        key = (name, node)
        return replace(self, verdicts={**self.verdicts, key: verdict}, touched=self._touching(verdicts=[key]))

    def without_verdict(self, name: str, node: str) -> State:
        key = (name, node)
        return replace(self, verdicts=_without(self.verdicts, key), touched=self._touching(verdicts=[key]))

    def with_label(self, node: str, label: str | None) -> State:
        return replace(self, labels={**self.labels, node: label}, touched=self._touching(labels=[node]))

    def without_label(self, node: str) -> State:
        return replace(self, labels=_without(self.labels, node), touched=self._touching(labels=[node]))

    def with_nodes(self, nodes: Mapping[str, Content], arrivals: Mapping[str, str] = NOBODY) -> State:
        return replace(
            self,
            nodes={**self.nodes, **nodes},
            arrivals={**self.arrivals, **arrivals},
            touched=self._touching(nodes=nodes, arrivals=arrivals),
        )

    def without_node(self, name: str, original: bool) -> State:
        """Without the node and all that was said of it; the dataset's own node is noted as removed."""
        edges, ties = ([key for key in each if name in key[:2]] for each in (self.edges, self.ties))
        answered = [key for key in self.verdicts if key[1] == name]
        return replace(
            self,
            nodes=_without(self.nodes, name),
            removed=self.removed | {name} if original else self.removed,
            edges={edge: present for edge, present in self.edges.items() if name not in edge},
            ties={tie: amount for tie, amount in self.ties.items() if name not in tie[:2]},
            verdicts=_without(self.verdicts, *answered),
            labels=_without(self.labels, name),
            arrivals=_without(self.arrivals, name),
            touched=self._touching(
                nodes=[name], removed=[name], edges=edges, ties=ties, verdicts=answered, labels=[name], arrivals=[name]
            ),
        )

    def with_edges(self, changed: Iterable[tuple[Edge, bool, bool]]) -> State:
        """Edges, whether each is to be there, and whether it is there in the dataset as it is without `edges`."""
        edges, seen = dict(self.edges), []
        for edge, wanted, usual in changed:
            seen.append(edge)
            if wanted == usual:
                edges.pop(edge, None)
            else:
                edges[edge] = wanted
        return replace(self, edges=edges, touched=self._touching(edges=seen))

    def with_ties(self, changed: Mapping[Tie, float]) -> State:
        return replace(self, ties={**self.ties, **changed}, touched=self._touching(ties=changed))

    def untied(self, pairs: Iterable[Edge]) -> State:
        """Without what was said of kinds of edges between these nodes."""
        ends = {frozenset(pair) for pair in pairs}
        gone = [tie for tie in self.ties if frozenset(tie[:2]) in ends] if ends else []
        if not gone:
            return self
        rest = {tie: amount for tie, amount in self.ties.items() if tie not in set(gone)}
        return replace(self, ties=rest, touched=self._touching(ties=gone))

    def with_rows(self, rows: Iterable[Row]) -> State:
        """With other rows. One that was not there comes to its place."""
        tables: dict[str, dict[Any, Any]] = {}
        touched: dict[str, list[Any]] = {}
        for table, key, value, place in rows:
            found = tables.setdefault(table, dict(self.lines(table)))
            touched.setdefault(table, []).append(key)
            if value is ABSENT:
                found.pop(key, None)
            elif place is None or key in found:
                found[key] = value
            else:
                lines = list(found.items())
                tables[table] = dict([*lines[:place], (key, value), *lines[place:]])
        fields = {table: frozenset(found) if table == "removed" else found for table, found in tables.items()}
        return replace(self, **fields, touched=self._touching(**touched))  # type: ignore[arg-type]

    def _touching(self, **tables: Iterable[Any]) -> tuple[Key, ...] | None:
        if self.touched is None:
            return None
        return (*self.touched, *((table, key) for table, keys in tables.items() for key in keys))

    def lines(self, table: str) -> Mapping[Any, Any]:
        """The rows of a table, by their keys."""
        found: Mapping[Any, Any] = dict.fromkeys(sorted(self.removed)) if table == "removed" else getattr(self, table)
        return found

    def differs(self, old: State) -> list[Key]:
        """The keys of rows that may differ from an older state; those that are new in the order in which they came."""
        if self.touched is not None and (self.changes, self.digest) == (old.changes, old.digest):
            return list(dict.fromkeys(self.touched))
        found: list[Key] = []
        for table in LINES:
            before, after = old.lines(table), self.lines(table)
            if before is not after:
                found += [(table, key) for key in before if key not in after]
                found += [(table, k) for k, v in after.items() if (b := before.get(k, ABSENT)) is not v and b != v]
        return found


LINES = ("classes", "nodes", "removed", "edges", "descriptions", "ties", "verdicts", "labels", "arrivals")
"""The tables that a state is kept in."""
NETWORK = ("nodes", "removed", "edges", "ties", "labels")
"""Those that the network depends on."""

_K = TypeVar("_K")
_T = TypeVar("_T")


def _without(each: Mapping[_K, _T], *gone: _K) -> dict[_K, _T]:
    left = set(gone)
    return {other: value for other, value in each.items() if other not in left}
