"""What can be changed: classes, nodes, edges. Each change is checked against one snapshot, and gives the next state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import TypeAdapter

from fewnode.errors import FewnodeError, closest
from fewnode.naming import alike
from fewnode.serve.bodies import (
    ATTACHED_IN_ALL,
    CLASSES,
    EDGES_IN_ALL,
    SHOTS_IN_ALL,
    ChangeEdges,
    ClassName,
    NewEdge,
    NewNode,
    PutClass,
    PutNode,
)
from fewnode.serve.snapshot import Condition, Conflict, NearDuplicate, NotFound, Snapshot
from fewnode.serve.state import Content, Edge, State, Tie
from fewnode.serve.store import now as this_moment
from fewnode.serve.ties import tie_of

_CLASS_NAME: TypeAdapter[str] = TypeAdapter(ClassName)


@dataclass(frozen=True)
class Edit:
    """The state that a change leads to, the change as the journal has it, and the nodes that it describes."""

    state: State
    change: Mapping[str, Any]
    nodes: Mapping[str, Content] = field(default_factory=dict)
    who: str | None = None
    """The name of whoever asks for it, if they gave one."""


# --- classes ---


def put_class(now: Snapshot, name: str, body: PutClass, condition: Condition) -> Edit:
    classes = now.state.classes
    condition.check(now, f"class {name!r}", name in classes)
    if why := alike(name, classes):
        raise NearDuplicate(why)
    _CLASS_NAME.validate_python(name)
    support = tuple(dict.fromkeys(now.name(node) for node in body.support))
    others = {node: other for other, given in classes.items() if other != name for node in given}
    for node in support:
        if node in others:
            raise Conflict(f"node {node!r} is in class {others[node]!r} already; a node is in one class at most")
    if name not in classes and len(classes) >= CLASSES:
        raise FewnodeError(f"there are {CLASSES} classes already, which is the limit")
    said = {} if body.description is None else {"description": body.description}
    change = {"put class": {"name": name, "support": support, **said}}
    state = now.state.with_class(name, support, body.description)
    if sum(map(len, state.classes.values())) > SHOTS_IN_ALL:
        raise FewnodeError(f"more than {SHOTS_IN_ALL:,} support nodes in all classes")
    return Edit(state, change, who=body.by)


def delete_class(now: Snapshot, name: str, condition: Condition, by: str | None = None) -> Edit:
    classes = now.state.classes
    condition.check(now, f"class {name!r}", name in classes)
    if name not in classes:
        raise NotFound(f"there is no class {name!r}{closest(name, classes)}")
    return Edit(now.state.without_class(name), {"delete class": name}, who=by)


# --- nodes ---


def attach(now: Snapshot, given: Sequence[NewNode], by: str | None = None) -> Edit:
    """New nodes, with edges to nodes that are there or come with them."""
    nodes: dict[str, Content] = {}
    for new in given:
        name = now.base.form(new.node)
        if name in nodes or now.has(name):
            raise FewnodeError(f"there is a node {name!r} already")
        nodes[name] = now.base.reader.content(name, new.content)
    plain, typed = {}, {}
    for name, new in zip(nodes, given, strict=True):
        plain[name] = _ends(now, name, [_plain_end(each) for each in new.edges if not _has_more(each)], nodes)
        typed[name] = [each for each in new.edges if isinstance(each, NewEdge) and _has_more(each)]
        _ends(now, name, [each.node for each in typed[name]], nodes)
    state = now.state.with_nodes(nodes, dict.fromkeys(nodes, this_moment()))
    state = _rewired(now, state, [now.base.edge(end, name) for name in plain for end in plain[name]], [])
    ties = {name: dict(_tie_of(now, name, each) for each in typed[name]) for name in nodes}
    state = _within(state.with_ties({tie: amount for own in ties.values() for tie, amount in own.items()}))
    change = [
        {"node": name, **content, "edges": plain[name], **_told_ties(ties[name])} for name, content in nodes.items()
    ]
    return Edit(state, {"attach": change}, nodes, by)


def _has_more(edge: str | NewEdge) -> bool:
    """Whether a kind, a weight or a direction was told."""
    return isinstance(edge, NewEdge) and (edge.kind is not None or edge.weight is not None or edge.way != "from")


def _plain_end(edge: str | NewEdge) -> str:
    return edge if isinstance(edge, str) else edge.node


def _tie_of(now: Snapshot, name: str, edge: NewEdge) -> tuple[Tie, float]:
    other = now.base.form(edge.node)
    ends = (other, name) if edge.way == "from" else (name, other)
    return tie_of(now.base.data, *ends, edge.kind, edge.weight)


def _told_ties(ties: Mapping[Tie, float]) -> dict[str, Any]:
    return {"ties": [[*tie, amount] for tie, amount in ties.items()]} if ties else {}


def put_node(now: Snapshot, given: str, body: PutNode, condition: Condition) -> Edit:
    """Another row, other edges, or both; a node that is not there is attached."""
    name = now.base.form(given)
    condition.check(now, f"node {name!r}", now.has(name))
    if not now.has(name):
        new = NewNode(node=name, row=body.row, attributes=body.attributes, edges=[*(body.edges or [])])
        return attach(now, [new], body.by)
    content = None if body.content is None else now.base.reader.content(name, body.content)
    nodes = {} if content is None else {name: content}
    state, change = now.state.with_nodes(nodes), {"node": name, **(content or {})}
    if body.edges is not None:
        wanted = _ends(now, name, body.edges, {})
        before = now.online.near(name)
        added = [now.base.edge(end, name) for end in wanted if end not in set(before)]
        removed = [now.base.edge(end, name) for end in before if end not in set(wanted)]
        state, change = _rewired(now, state, added, removed), {**change, "edges": wanted}
    return Edit(state, {"put node": change}, nodes, body.by)


def delete_node(now: Snapshot, given: str, condition: Condition, by: str | None = None) -> Edit:
    name = now.base.form(given)
    condition.check(now, f"node {name!r}", now.has(name))
    if not now.has(name):
        raise NotFound(f"unknown node {name!r}{closest(name, now.base.names)}")
    supported = next((label for label, nodes in now.state.classes.items() if name in nodes), None)
    if supported is not None:
        raise Conflict(f"node {name!r} is a support node of class {supported!r}")
    if now.online.n == 1:
        raise FewnodeError(f"node {name!r} is the last one")
    original = name in now.base.row and name not in now.state.removed
    return Edit(_within(now.state.without_node(name, original)), {"delete node": name}, who=by)


# --- edges ---


def change_edges(now: Snapshot, body: ChangeEdges) -> tuple[Edit, dict[str, Any]]:
    """Edges of nodes that are there; also how many were changed, and those that needed no change."""

    def resolved(given: Iterable[Any]) -> list[Edge]:
        edges = [now.base.edge(now.name(edge.source), now.name(edge.target)) for edge in given]
        if loop := next((source for source, target in edges if source == target), None):
            raise FewnodeError(f"an edge from {loop!r} to itself says nothing")
        return list(dict.fromkeys(edges))

    if weighed := next((edge for edge in body.remove if edge.weight is not None), None):
        raise FewnodeError(f"the edge {weighed.source!r} - {weighed.target!r} is to be removed: leave out its weight")
    add, remove = (
        resolved(edge for edge in given if edge.kind is None and edge.weight is None)
        for given in (body.add, body.remove)
    )
    state, ties, same = _tied(now, body)
    if both := set(add) & set(remove):
        source, target = min(both)
        raise FewnodeError(f"the edge {source!r} - {target!r} is to be added and removed")
    there = {edge for edge in (*add, *remove) if now.linked(edge)}
    new, gone = [edge for edge in add if edge not in there], [edge for edge in remove if edge in there]
    unchanged = [edge for edge in add if edge in there] + [edge for edge in remove if edge not in there]
    told = {
        "added": len(new) + sum(amount > 0 for amount in ties.values()),
        "removed": len(gone) + sum(amount == 0 for amount in ties.values()),
        "unchanged": [{"source": source, "target": target} for source, target in unchanged] + same,
    }
    change = {"edges": {"add": new, "remove": gone, **_told_ties(ties)}}
    return Edit(_rewired(now, state, new, gone), change, who=body.by), told


def _tied(now: Snapshot, body: ChangeEdges) -> tuple[State, dict[Tie, float], list[dict[str, str]]]:
    """The state with the edges of `body` that have a kind or a weight, what changed, and what needed no change."""
    found, same = dict[Tie, float](), []
    if all(edge.kind is None and edge.weight is None for edge in (*body.add, *body.remove)):
        return now.state, found, []
    graph = now.network.data.graph
    relations = {relation.name: relation.adj for relation in graph.relations}
    for edge, adding in (*((edge, True) for edge in body.add), *((edge, False) for edge in body.remove)):
        if edge.kind is None and edge.weight is None:
            continue
        tie, amount = tie_of(now.base.data, now.name(edge.source), now.name(edge.target), edge.kind, edge.weight)
        if tie in found:
            raise FewnodeError(f"the edge {tie[0]!r} - {tie[1]!r} of kind {tie[2]!r} is there twice")
        source, target = (now.network.data.node(name) for name in tie[:2])
        there = tie[2] in relations and bool(relations[tie[2]][target, source])
        if there == adding and edge.weight is None:
            same.append({"source": tie[0], "target": tie[1], "kind": tie[2]})
        else:
            found[tie] = amount if adding else 0.0
    return now.state.with_ties(found), found, same


def _ends(now: Snapshot, name: str, given: Iterable[str], new: Mapping[str, Content]) -> list[str]:
    """The other ends of a node's edges, each once."""
    ends = list(dict.fromkeys(now.base.form(end) for end in given))
    for end in ends:
        if end == name:
            raise FewnodeError(f"node {name!r} has an edge to itself, which says nothing")
        if end not in new and not now.has(end):
            raise FewnodeError(f"node {name!r} has an edge to {end!r}, which is not in the network")
    return ends


def _rewired(now: Snapshot, state: State, add: Iterable[Edge], remove: Iterable[Edge]) -> State:
    wanted = [*((edge, True) for edge in add), *((edge, False) for edge in remove)]
    state = state.untied(edge for edge, present in wanted if not present)
    return _within(state.with_edges((edge, present, now.base.has_edge(edge, state)) for edge, present in wanted))


def _within(state: State) -> State:
    if max(len(state.nodes), len(state.removed)) > ATTACHED_IN_ALL:
        raise FewnodeError(f"more than {ATTACHED_IN_ALL:,} nodes that were attached, replaced or deleted; import anew")
    if max(len(state.edges), len(state.ties)) > EDGES_IN_ALL:
        raise FewnodeError(f"more than {EDGES_IN_ALL:,} edges that differ from the dataset's; import it anew")
    return state
