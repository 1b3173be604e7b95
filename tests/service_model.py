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

    def check(self, version: str) -> None:
        if self.if_match not in (None, "*", version):
            raise Refused(412)

    @property
    def headers(self) -> dict[str, str]:
        return {} if self.if_match is None else {"If_Match": "*" if self.if_match == "*" else f'"{self.if_match}"'}


@dataclass(frozen=True)
class Model:
    nodes: Mapping[str, Node]
    edges: frozenset[Edge]
    directed: bool
    numbered: bool
    classes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    descriptions: Mapping[str, str] = field(default_factory=dict)
    known: frozenset[str] = frozenset()
    """Words that a description may have; none if descriptions cannot be read at all."""
    verdicts: Mapping[tuple[str, str], tuple[bool, bool]] = field(default_factory=dict)
    """Of a class and a node: yes or no, and whether it was asked as a check."""
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
        """A description has a known word, or else the name where it is empty; there, nodes will do, too."""
        said = set((description.strip() or name).lower().split()) & self.known
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
        then, seen = self, dict[tuple[str, str], str | None]()
        for given, name, said in answers:
            node = self.there(given)
            if name not in self.classes:
                raise Refused(404)
            if (name, node) in seen:
                raise Refused(422)
            seen[name, node] = said
        for (name, node), said in seen.items():
            then = then._answered(node, name, said, check)
        if any(not then.classes[name] and name not in then.descriptions for name, _ in seen):
            raise Refused(409)
        given_twice = [node for nodes in then.classes.values() for node in nodes]
        if len(set(given_twice)) < len(given_twice):
            raise Refused(409)
        return then

    def _answered(self, node: str, name: str, said: str | None, check: bool) -> Model:
        if said is not None and self.verdicts.get((name, node)) == (said == "yes", check):
            return self
        rest = [each for each in self.classes[name] if each != node]
        support = self.classes[name] if node in self.classes[name] else [*rest, node]
        then = self._with_support(name, support if said == "yes" else rest, self.descriptions)
        verdicts = {key: verdict for key, verdict in then.verdicts.items() if key != (name, node)}
        return replace(then, verdicts={**verdicts, **({} if said is None else {(name, node): (said == "yes", check)})})

    def attach(self, new: Sequence[tuple[str, Meaning | None, Sequence[str]]], classify: bool) -> Model:
        nodes = dict(self.nodes)
        for name, content, _ in new:
            if self.form(name) in nodes or content is None:
                raise Refused(422)
            nodes[self.form(name)] = Node(content.x, content.label, content.same_as)
        then = replace(self, nodes=nodes)
        edges = [then._edges(name, ends) for name, _, ends in new]
        return replace(then, edges=self.edges.union(*edges))._classified(classify)

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
