"""What the service must do, as plain dictionaries: no file, network or thread. Each change gives another `Model`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

Edge = tuple[str, str]
Content = dict[str, Any]


class Refused(Exception):
    """The service must answer with this status, and nothing may change."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


@dataclass(frozen=True)
class Node:
    """`given`: what a request said of it, None if it is as the dataset has it."""

    x: tuple[float, ...]
    label: str | None
    given: str | None = None


@dataclass(frozen=True)
class Meaning:
    """What a dataset makes of a node's content."""

    x: tuple[float, ...]
    label: str | None = None
    same_as: str = ""
    """Two contents that say the same have the same text here."""


@dataclass(frozen=True)
class Condition:
    if_match: str | None = None
    if_none_match: str | None = None

    def check(self, version: str, exists: bool) -> None:
        matches = {None: True, "*": exists}.get(self.if_match, self.if_match == version)
        unmatched = {None: True, "*": not exists}.get(self.if_none_match, self.if_none_match != version)
        if not (matches and unmatched):
            raise Refused(412)

    @property
    def headers(self) -> dict[str, str]:
        given = {"If_Match": self.if_match, "If_None_Match": self.if_none_match}
        return {name: tag if tag == "*" else f'"{tag}"' for name, tag in given.items() if tag is not None}


@dataclass(frozen=True)
class Model:
    nodes: Mapping[str, Node]
    edges: frozenset[Edge]
    directed: bool
    numbered: bool
    base: Mapping[str, Node]
    """Nodes of the dataset that were never deleted: their label stays where a new row has none."""
    classes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    descriptions: Mapping[str, str] = field(default_factory=dict)
    known: frozenset[str] = frozenset()
    """Words that a description may have; none if descriptions cannot be read at all."""
    verdicts: Mapping[tuple[str, str], tuple[bool, bool]] = field(default_factory=dict)
    """Of a class and a node: yes or no, and whether it was asked as a check."""
    labels: Mapping[str, str | None] = field(default_factory=dict)
    """Labels that were corrected."""
    open_set: bool = False
    """Whether the model can tell what is in none of the classes."""

    def form(self, name: str) -> str:
        return str(int(name)) if self.numbered and name.isdecimal() else name

    def edge(self, source: str, target: str) -> Edge:
        return (source, target) if self.directed or source <= target else (target, source)

    def there(self, name: str, otherwise: int = 422) -> str:
        if self.form(name) not in self.nodes:
            raise Refused(otherwise)
        return self.form(name)

    def answers(self) -> None:
        """A model that cannot tell what is in none of the classes needs two of them."""
        if len(self.classes) < 2 - self.open_set:
            raise Refused(422)

    # --- changes ---

    def put_class(self, name: str, given: Sequence[str], description: str | None = None) -> Model:
        if any(other != name and other.casefold() == name.casefold() for other in self.classes):
            raise Refused(409)
        support = tuple(dict.fromkeys([self.there(node) for node in given]))
        if any(set(support) & set(nodes) for other, nodes in self.classes.items() if other != name):
            raise Refused(409)
        if description is None and not support:
            raise Refused(422)
        if description is not None:
            self._reads(name, description, bool(support))
        kept = {other: said for other, said in self.descriptions.items() if other != name}
        said = {} if description is None else {name: description}
        return self._with_support(name, support, {**kept, **said})

    def _with_support(self, name: str, support: Sequence[str], descriptions: Mapping[str, str]) -> Model:
        """Answers that the examples of a class contradict are no longer there."""
        true = {key: v for key, v in self.verdicts.items() if key[0] != name or v[0] == (key[1] in support)}
        classes = {**self.classes, name: tuple(support)}
        return replace(self, classes=classes, descriptions=descriptions, verdicts=true)

    def _reads(self, name: str, description: str, has_nodes: bool) -> None:
        """A description, or the name before it, has a known word; where the name is to speak, nodes will do."""
        said = {name.lower(), *description.lower().split()} & self.known
        if not self.known or (not said and (description.strip() or not has_nodes)):
            raise Refused(422)

    def delete_class(self, name: str) -> Model:
        if name not in self.classes:
            raise Refused(404)
        return replace(
            self,
            classes={other: nodes for other, nodes in self.classes.items() if other != name},
            descriptions={other: said for other, said in self.descriptions.items() if other != name},
            verdicts={key: verdict for key, verdict in self.verdicts.items() if key[0] != name},
        )

    def answer(self, answers: Sequence[tuple[str, str, str | None]], check: bool) -> Model:
        """Nodes, classes and what was said, one after the other; all or none."""
        then, seen = self, set()
        for given, name, said in answers:
            node = self.there(given)
            if name not in self.classes:
                raise Refused(404)
            if (name, node) in seen:
                raise Refused(422)
            seen.add((name, node))
            then = then._answered(node, name, said, check)
        if any(not then.classes[name] and name not in then.descriptions for name, _ in seen):
            raise Refused(409)
        return then

    def _answered(self, node: str, name: str, said: str | None, check: bool) -> Model:
        if said is not None and self.verdicts.get((name, node)) == (said == "yes", check):
            return self
        if said == "yes" and any(node in nodes for other, nodes in self.classes.items() if other != name):
            raise Refused(409)
        rest = [each for each in self.classes[name] if each != node]
        support = self.classes[name] if node in self.classes[name] else [*rest, node]
        then = self._with_support(name, support if said == "yes" else rest, self.descriptions)
        verdicts = {key: verdict for key, verdict in then.verdicts.items() if key != (name, node)}
        return replace(then, verdicts={**verdicts, **({} if said is None else {(name, node): (said == "yes", check)})})

    def put_label(self, given: str, label: str | None) -> Model:
        name = self.there(given, 404)
        rest = {node: own for node, own in self.labels.items() if node != name}
        return replace(self, labels=rest if self.nodes[name].label == label else {**rest, name: label})

    def label(self, name: str) -> str | None:
        return self.labels.get(name, self.nodes[name].label)

    def back_to(self, before: Model, dataset: Sequence[str]) -> Model:
        """As it was before. A node that had gone comes last, but for nodes of the dataset, which have their places."""
        own = [name for name in dataset if name in before.base]
        kept = [name for name in self.nodes if name in before.nodes]
        attached = [name for name in dict.fromkeys([*kept, *before.nodes]) if name not in before.base]
        return replace(before, nodes={name: before.nodes[name] for name in [*own, *attached]})

    def attach(self, new: Sequence[tuple[str, Meaning | None, Sequence[str]]], classify: bool) -> Model:
        nodes = dict(self.nodes)
        for name, content, _ in new:
            if self.form(name) in nodes or content is None:
                raise Refused(422)
            nodes[self.form(name)] = Node(content.x, content.label, content.same_as)
        then = replace(self, nodes=nodes)
        edges = [then._edges(name, ends) for name, _, ends in new]
        return replace(then, edges=self.edges.union(*edges))._classified(classify)

    def put_node(
        self, name: str, content: Meaning | None, says: bool, ends: Sequence[str] | None, classify: bool
    ) -> Model:
        """`says`: whether the request has content at all; None if the dataset cannot take it."""
        name = self.form(name)
        if says and content is None:
            raise Refused(422)
        then = self
        if says and content is not None:
            kept = self.base[name].label if name in self.base else None
            node = Node(content.x, content.label or kept, content.same_as)
            then = replace(then, nodes={**self.nodes, name: node})
        if ends is not None:
            into = {edge for edge in self.edges if edge[1] == name or (name in edge and not self.directed)}
            then = replace(then, edges=(self.edges - into) | self._edges(name, ends))
        return then._classified(classify)

    def delete_node(self, given: str) -> Model:
        name = self.there(given, 404)
        if any(name in support for support in self.classes.values()):
            raise Refused(409)
        if len(self.nodes) == 1:
            raise Refused(422)
        return replace(
            self,
            nodes={other: node for other, node in self.nodes.items() if other != name},
            base={other: node for other, node in self.base.items() if other != name},
            edges=frozenset(edge for edge in self.edges if name not in edge),
            verdicts={key: verdict for key, verdict in self.verdicts.items() if key[1] != name},
            labels={other: label for other, label in self.labels.items() if other != name},
        )

    def change_edges(self, add: Sequence[Edge], remove: Sequence[Edge]) -> Model:
        come, go = ({self.edge(self.there(s), self.there(t)) for s, t in given} for given in (add, remove))
        if any(source == target for source, target in come | go) or come & go:
            raise Refused(422)
        return replace(self, edges=(self.edges | come) - go)

    def _edges(self, name: str, ends: Sequence[str]) -> set[Edge]:
        name, found = self.form(name), {self.there(end) for end in ends}
        if name in found:
            raise Refused(422)
        return {self.edge(end, name) for end in found}

    def _classified(self, classify: bool) -> Model:
        """Nodes that are to be classified and cannot be are not kept."""
        if classify and self.classes:
            self.answers()
        return self
