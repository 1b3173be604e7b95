"""Classes as a person gives them: nodes in them, nodes not in them, a sentence; in Python or in tables."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from fewnode._system.sheets import bare, other_columns, read_table
from fewnode.dataset import Dataset
from fewnode.episodes import Described, Task, choose, uniform
from fewnode.errors import FewnodeError, closest
from fewnode.graph import Attributes, Graph, Ints, is_sparse
from fewnode.naming import alike, two_alike
from fewnode.nodes import SEVERAL, Labels, Nodes, label_list, node_rows, refuse_twice, support_rows
from fewnode.nodes import classes as in_order
from fewnode.recognition.description import Description, describe, opaque, read_classes
from fewnode.seeds import stream

ANSWER = "answer"
"""A column that a table of nodes and classes may have: yes or no."""
NOTHING: Mapping[Hashable, Nodes] = MappingProxyType({})


@dataclass(frozen=True)
class Class:
    """A class: nodes that are in it, nodes that are not, and a sentence; an empty one means that the name speaks.

    What is like a node that is not in it becomes less likely.

    >>> Class(yes=["openvpn"], no=["nmap"], text="tunnels between networks").text
    'tunnels between networks'
    """

    yes: Nodes = ()
    no: Nodes = ()
    text: str | None = None


class Asked(NamedTuple):
    """An answer that was asked for: the node's probability then, what for, and how many of the class came before."""

    label: str
    row: int
    probability: float
    yes: bool
    purpose: str
    at: int


@dataclass(frozen=True, eq=False)
class Given:
    """The classes of a question, read: labelled nodes as rows, and what the network makes of descriptions."""

    names: tuple[Hashable, ...]
    support: Ints
    y: Ints
    """The class of each support node, by its place in `names`. A node may be there once for each of its classes."""
    described: Described | None = None
    no: Mapping[int, Ints] = field(default_factory=dict)
    """Of some classes, nodes that are not in them."""
    descriptions: Mapping[str, Description] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    """What was given and not used, a sentence each."""

    @classmethod
    def of_support(
        cls,
        network: Graph | Dataset,
        support: Nodes,
        labels: Labels,
        rows: Mapping[Hashable, Attributes] = MappingProxyType({}),
        no: Mapping[Hashable, Nodes] = NOTHING,
        several: bool = False,
    ) -> Given:
        """From nodes and their labels; of some classes rows of attributes that stand for them, and nodes not in them.

        If `several`, a node may be in several classes.
        """
        names, described, every = in_order([*label_list(labels), *rows]), None, list(rows.values())
        nodes, y = support_rows(network, support, labels, names, several)
        if every:
            x = sp.vstack(every, format="csr") if is_sparse(every[0]) else np.concatenate(every)
            described = Described(x, np.array([names.index(name) for name in rows], np.int64))
        rejected = {name: node_rows(network, nodes, "not in it") for name, nodes in no.items()}
        return cls(tuple(names), nodes, y, described).without(rejected, network)

    def without(self, no: Mapping[Hashable, Ints], network: Graph | Dataset) -> Given:
        """With these nodes, and no others, that are not in a class."""
        places: dict[int, Ints] = {}
        for name, rows in no.items():
            place = self.names.index(name)
            if (both := np.intersect1d(rows, self.support[self.y == place])).size:
                node = network.node_name(int(both[0])) if isinstance(network, Dataset) else int(both[0])
                raise FewnodeError(f"node {node!r} is given for class {name!r}, and as not in it; withdraw one of them")
            if rows.size:
                places[place] = np.unique(rows)
        return replace(self, no=places)

    @classmethod
    def of(cls, data: Dataset, given: Mapping[str, Nodes | str | Class], several: bool = False) -> Given:
        """From names and what each stands for: text is a description, anything else are nodes."""
        if not isinstance(given, Mapping):
            kind = type(given).__name__
            raise FewnodeError(f"classes are a {kind}, expected a dict of names and what each stands for")
        if not given:
            raise FewnodeError("no class is given, expected at least one with nodes or a description")
        support, labels, remarks = list[int](), list[Hashable](), list[str]()
        descriptions, no = dict[str, Description](), dict[Hashable, Nodes]()
        for name, value in given.items():
            if not isinstance(name, str) or not name.strip():
                raise FewnodeError(f"a class is called {name!r}, expected a name")
            what = value if isinstance(value, Class) else Class(text=value) if isinstance(value, str) else Class(value)
            rows = node_rows(data, what.yes, f"class {name!r}").tolist()
            if not isinstance(what.text, str | None):
                raise FewnodeError(f"class {name!r}: its description is {what.text!r:.60}, expected text")
            if not rows and what.text is None:
                raise FewnodeError(f"class {name!r} has no node and no description; give one of them")
            support, labels = support + rows, labels + [name] * len(rows)
            no[name] = node_rows(data, what.no, f"class {name!r}: not in it").tolist()
            if what.text is None:
                continue
            if rows and not what.text.strip() and opaque(data, name):
                remarks.append(f"class {name!r}: its name says nothing here, so only its nodes count")
                continue
            descriptions[name] = describe(data, what.text, name)
            remarks += [f"class {name!r}: {remark}" for remark in descriptions[name].remarks()]
            if value is what.text and what.text in data.node_id:
                remarks.append(f"class {name!r}: {value!r} is its description; [{value!r}] is that node")
        if why := two_alike(given):
            raise FewnodeError(f"{why}; give them as one class, or rename one")
        found = cls.of_support(data, np.array(support, np.int64), labels, _attributes(descriptions), no, several)
        return replace(found, descriptions=descriptions, remarks=tuple(remarks))

    @classmethod
    def read(cls, data: Dataset, support: Path | None, classes: Path | None, several: bool = False) -> Given:
        """From tables `node,class` and `class,description`, of which one may be missing; `several`: `read_support`."""
        if support is None and classes is None:
            raise FewnodeError("no class is given: `support` names nodes of each, `classes` describes them")
        said = [] if support is None else read_support(support, data, several)
        texts = {} if classes is None else read_classes(classes)
        if why := two_alike([*(each.label for each in said), *texts]):
            paths = ", ".join(str(path) for path in (support, classes) if path is not None)
            raise FewnodeError(f"{paths}: {why}; write them alike, or rename one")
        nodes = dict[str, tuple[list[int], list[int]]]()
        for node, label, yes in dict.fromkeys((each.node, each.label, each.yes) for each in said):
            nodes.setdefault(label, ([], []))[not yes].append(node)
        nodes = {name: nodes.get(name, ([], [])) for name in (*nodes, *texts)}
        if unknown := [name for name, (yes, _) in nodes.items() if not yes and name not in texts]:
            raise FewnodeError(f"{support}: class {unknown[0]!r} has only nodes that are not in it; give one that is")
        found = cls.of(data, {name: Class(yes, no, texts.get(name)) for name, (yes, no) in nodes.items()}, several)
        tables = ((support, ["node", "class", ANSWER]), (classes, ["class", "description"]))
        more = [unused_columns(path, columns) for path, columns in tables if path is not None]
        if repeated := len(said) - sum(len(yes) + len(no) for yes, no in nodes.values()):
            rows = (
                "1 row repeats another one and counts"
                if repeated == 1
                else f"{repeated:,} rows repeat others, and count"
            )
            more.append(f"{support}: {rows} once")
        return replace(found, remarks=(*found.remarks, *filter(None, more)))

    @property
    def labels(self) -> list[Hashable]:
        """The class of each support node, by its name."""
        return [self.names[c] for c in self.y.tolist()]

    def task(self, query: Ints) -> Task:
        """The question about these nodes."""
        return Task(self.support, self.y, query, self.described)

    @property
    def key(self) -> tuple[bytes, ...]:
        """What answers depend on, whatever was rejected."""
        x = None if self.described is None else self.described.x
        parts = () if x is None else (x.indptr, x.indices, x.data) if is_sparse(x) else (x,)
        said = () if self.described is None else (self.described.y, *parts)
        return tuple(part.tobytes() for part in (self.support, self.y, *said))

    def answered(self, data: Dataset, answers: Mapping[tuple[str, str | int], bool], several: bool) -> Given:
        """With more answers: is that node in that class?"""
        pairs, names = list(zip(self.support.tolist(), self.y.tolist(), strict=True)), self.names
        no, known = {c: set(rows.tolist()) for c, rows in self.no.items()}, [str(name) for name in names]
        for (name, node), yes in answers.items():
            if name not in known:
                raise FewnodeError(f"{name!r} is none of the classes{closest(str(name), known)}")
            row, c = int(node_rows(data, [node], "answers")[0]), known.index(name)
            pairs = [pair for pair in pairs if pair != (row, c)] + [(row, c)] * yes
            no[c] = (no.get(c, set()) - {row}) | ({row} if not yes else set())
        described, labels = self.described, [names[c] for _, c in pairs]
        said = {} if described is None else {names[c]: described.x[[i]] for i, c in enumerate(described.y.tolist())}
        rejected: dict[Hashable, Nodes] = {names[c]: sorted(nodes) for c, nodes in no.items()}
        given = Given.of_support(data, [row for row, _ in pairs], labels, said, rejected, several)
        if given.names != names:
            gone = next(name for name in names if name not in given.names)
            raise FewnodeError(f"class {gone!r} would have no node and no description; give one of them")
        return replace(given, descriptions=self.descriptions, remarks=self.remarks)

    def beside_base(self, data: Dataset, seed: int) -> Given:
        """These classes and the base classes of the dataset: a node may be in one of either.

        A class of many examples has a head start before one of few, so a base class has as many as the largest new
        class: labelled nodes drawn by the seed, none of those given for a new class. What is left out is told.
        """
        known = {data.class_names[c]: np.flatnonzero(data.y == c) for c in (*data.split.train, *data.split.valid)}
        base, new = {name: nodes for name, nodes in known.items() if nodes.size}, {str(name) for name in self.names}
        instead = "give the new class another name, or leave the base classes out"
        if not base:
            missing = "give it training and validation classes, or leave them out"
            raise FewnodeError(f"{data.name} has no base classes to stand beside the new ones: {missing}")
        if clash := [name for name in base if name in new]:
            raise FewnodeError(f"class {clash[0]!r} is a base class of {data.name} already: {instead}")
        if why := next(filter(None, (alike(name, base) for name in sorted(new))), None):
            raise FewnodeError(f"{why}; the first is a base class of {data.name}: {instead}")
        support, labels, remarks = self.support.tolist(), self.labels, list(self.remarks)
        shots = max(Counter(self.labels).values(), default=1)  # a description counts as one
        for place, (name, members) in enumerate(base.items()):
            free = np.setdiff1d(members, self.support)
            if not free.size:
                remarks.append(f"base class {name!r}: all its nodes are given for new classes, so it is left out")
                continue
            count = min(shots, free.size)
            support += np.sort(free[choose(uniform(stream(seed, place), 0, count), free.size, count)]).tolist()
            labels += [name] * count
        no: dict[Hashable, Nodes] = {self.names[c]: nodes for c, nodes in self.no.items()}
        found = Given.of_support(data, support, labels, _attributes(self.descriptions), no)
        return replace(found, descriptions=self.descriptions, remarks=tuple(remarks))


def _attributes(descriptions: Mapping[str, Description]) -> dict[Hashable, Attributes]:
    return {name: description.x for name, description in descriptions.items()}


def task_rows(network: Graph | Dataset, task: Task) -> Task:
    """The task with row numbers. Its nodes may be names or masks, too; then labels count where the mask is true."""
    support = node_rows(network, task.support, "support")
    support_y: Ints = task.support_y[task.support] if task.support.dtype == bool else task.support_y
    refuse_twice(network, support, support_y.tolist())
    return replace(task, support=support, support_y=support_y, query=node_rows(network, task.query, "query"))


# --- tables -------------------------------------------------------------------------------------------------------


class Said(NamedTuple):
    """A row of a table of nodes: is it in that class? `answered`: a cell of the column `answer` says so."""

    node: int
    label: str
    yes: bool
    answered: bool


def read_support(path: Path, data: Dataset, several: bool = False) -> list[Said]:
    """The rows of a table `node,class[,answer]`; a node in two classes is refused, unless `several`."""
    first: dict[tuple[int, str], tuple[int, str]] = {}
    header, found = other_columns(path, []), list[Said]()
    if odd := next((name for name in header if name.lower() == ANSWER != name), None):
        place = f"{path}: line 1: the column {odd!r}"
        raise FewnodeError(f"{place} must be called {ANSWER!r}; else a no would count as a yes")
    for line, (name, text, *answer) in read_table(path, ["node", "class", *({ANSWER} & {*header})], exact="node"):
        label, node, said = bare(text), _node(path, line, name, data), "".join(answer).lower()
        if not label:
            raise FewnodeError(f"{path}: line {line}: node {name!r} has no class")
        if said not in ("", "yes", "no"):
            raise FewnodeError(f"{path}: line {line}: the answer is {answer[0]!r}, expected yes or no")
        found.append(Said(node, label, said != "no", said != ""))
        if said != "no":
            at, before = first.setdefault((node, label if several else ""), (line, label))
            if before != label:
                both = f"node {name!r} is in {label!r}, but in {before!r} on line {at}"
                raise FewnodeError(f"{path}: line {line}: {both}; {SEVERAL}")
    if not found:
        raise FewnodeError(f"{path}: no support node in it")
    return found


def read_query(path: Path, data: Dataset) -> list[int]:
    """Nodes from a table `node`."""
    nodes = [_node(path, line, name, data) for line, (name,) in read_table(path, ["node"], exact="node")]
    if not nodes:
        raise FewnodeError(f"{path}: no node in it")
    return nodes


def unused_columns(path: Path, columns: Sequence[str] = ("node",)) -> str:
    """Columns of a table that nothing is made of, in a sentence."""
    others, read = other_columns(path, columns), "read is" if len(columns) == 1 else "read are"
    return f"{path}: not used: {', '.join(map(repr, others))}; {read} {' and '.join(columns[:2])}" if others else ""


def read_proportions(given: str) -> dict[str, float]:
    """Shares by class from `mail=0.3,vpn=0.7`, or from the table `class,share` of that name.

    >>> read_proportions("mail=0.3,vpn=0.7")
    {'mail': 0.3, 'vpn': 0.7}
    """
    if os.path.exists(given):
        table = read_table(Path(given), ["class", "share"])
        rows = [(f"{given}: line {line}", bare(name), share) for line, (name, share) in table]
    elif "=" in given:
        pairs = [part.rpartition("=") for part in given.split(",")]
        rows = [("`proportions`", name.strip(), share) for name, _, share in pairs]
    else:
        raise FewnodeError(f"`proportions` {given}: no such table, and not written as mail=0.3,vpn=0.7")
    found: dict[str, float] = {}
    for place, name, share in rows:
        if not name:
            raise FewnodeError(f"{place}: {share!r} is the share of no class, expected such as mail=0.3,vpn=0.7")
        if name in found:
            raise FewnodeError(f"{place}: class {name!r} has two shares, expected one")
        try:
            found[name] = float(share)
        except ValueError:
            raise FewnodeError(f"{place}: the share of {name!r} is {share!r}, expected a number from 0 to 1") from None
    return found


def _node(path: Path, line: int, name: str, data: Dataset) -> int:
    """The node of that name as it is written, else without spaces around it.

    It may stand behind the apostrophe that our own tables put before a formula.
    """
    written = [spelling for spelling in (bare(name), name, bare(name.strip())) if spelling in data.node_id]
    try:
        return data.node_id[written[0]] if written else data.node(name.strip())
    except FewnodeError as error:
        raise FewnodeError(f"{path}: line {line}: {error}") from None
