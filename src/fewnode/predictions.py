"""Support and query tables in, predictions and their reasons out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fewnode.errors import FewnodeError
from fewnode.estimator import Estimator, Recogniser
from fewnode.evaluation import Probabilities
from fewnode.graph import Dataset
from fewnode.io import bare, csv_text, read_table, write_text
from fewnode.methods.gpn import Explanation
from fewnode.nodes import Network, Nodes, as_dataset

NONE = "none of these"
"""The label of a node that looks like none of the classes."""


def read_support(path: Path, data: Dataset) -> tuple[list[int], list[str]]:
    """Nodes and their class names from a table `node,class`; a node in two classes is refused."""
    seen: dict[int, tuple[int, str]] = {}
    for line, (name, text) in read_table(path, ["node", "class"]):
        label = bare(text)
        node = _node(path, line, name, data)
        if not label:
            raise FewnodeError(f"{path}: line {line}: node {name!r} has no class")
        first, before = seen.setdefault(node, (line, label))
        if before != label:
            raise FewnodeError(f"{path}: line {line}: node {name!r} is in {label!r}, but in {before!r} on line {first}")
    if not seen:
        raise FewnodeError(f"{path}: no support node in it")
    return list(seen), [label for _, label in seen.values()]


def read_query(path: Path, data: Dataset) -> list[int]:
    """Nodes from a table `node`."""
    nodes = [_node(path, line, name, data) for line, (name,) in read_table(path, ["node"])]
    if not nodes:
        raise FewnodeError(f"{path}: no node in it")
    return nodes


def _node(path: Path, line: int, name: str, data: Dataset) -> int:
    """The node of that name, which may stand behind the apostrophe that our own tables put before a formula."""
    try:
        return data.node_id[bare(name)] if bare(name) in data.node_id else data.node(name)
    except FewnodeError as error:
        raise FewnodeError(f"{path}: line {line}: {error}") from None


@dataclass(frozen=True, eq=False)
class Predictions:
    """The answer for some nodes: a probability a class, the winner and, if asked, why."""

    nodes: list[str]
    classes: list[str]
    probability: Probabilities
    support: list[tuple[str, str]]
    why: Explanation | None = None

    @classmethod
    def of(
        cls,
        model: Estimator,
        data: Network,
        support: Nodes,
        labels: Sequence[str],
        query: Nodes,
        explain: bool = False,
        transductive: bool = False,
        open_set: bool = False,
    ) -> Predictions:
        return Answerer(model, data, support, labels).predictions(query, explain, transductive, open_set)

    @property
    def labels(self) -> list[str]:
        """The most likely class; none of these only where that is likelier than all classes together."""
        if NONE not in self.classes:
            return [self.classes[c] for c in self.probability.argmax(axis=1)]
        best = self.probability[:, :-1].argmax(axis=1)
        return [NONE if row[-1] > 0.5 else self.classes[c] for row, c in zip(self.probability, best, strict=True)]

    @property
    def nearest(self) -> list[list[str]]:
        """The support nodes nearest to each node, nearest first; empty unless explained."""
        return [[self.support[i][0] for i in row] for row in self.why.nearest] if self.why else []

    def to_csv(self) -> str:
        """`node,label`, one column a class and, if explained, `nearest`."""
        columns = [f"p({c})" if c in ("node", "label", "nearest") else c for c in self.classes]
        header = ["node", "label", *columns]
        rows: list[list[str]] = []
        for node, label, row in zip(self.nodes, self.labels, self.probability, strict=True):
            rows.append([node, label, *(f"{p:.6f}" for p in row)])
        if self.why:
            header.append("nearest")
            for cells, names in zip(rows, self.nearest, strict=True):
                cells.append(" ".join(names))
        return csv_text([header, *rows])

    def support_csv(self) -> str:
        """`node,class,beta`: the weight of each support node in its class's prototype."""
        beta = self.why.beta.tolist() if self.why else []
        rows = [[node, label, f"{b:.6f}"] for (node, label), b in zip(self.support, beta, strict=False)]
        return csv_text([["node", "class", "beta"], *rows])

    def support_table(self) -> str:
        """The same for people: the heaviest support node of each class first."""
        beta = self.why.beta.tolist() if self.why else []
        rows = sorted(zip(self.support, beta, strict=False), key=lambda row: (row[0][1], -row[1]))
        width = max([len(node) for (node, _), _ in rows], default=0)
        return "\n".join(f"  {node.ljust(width)}  β = {weight:.3f}  {label}" for (node, label), weight in rows)

    def write(self, path: Path) -> None:
        write_text(path, self.to_csv())
        if self.why:
            write_text(path.with_suffix(".support.csv"), self.support_csv())

    def to_json(self) -> dict[str, Any]:
        rows: list[dict[str, Any]] = []
        for node, label, row in zip(self.nodes, self.labels, self.probability.tolist(), strict=True):
            rows.append({"node": node, "label": label, "probability": dict(zip(self.classes, row, strict=True))})
        for cells, names in zip(rows, self.nearest, strict=False):
            cells["nearest"] = names
        beta = self.why.beta.tolist() if self.why else [None] * len(self.support)
        support = [
            {"node": node, "class": label, **({} if weight is None else {"beta": weight})}
            for (node, label), weight in zip(self.support, beta, strict=True)
        ]
        return {"classes": self.classes, "support": support, "predictions": rows}


class Answerer:
    """A model and a support set by name; whatever is asked about then, the support set is read once."""

    def __init__(self, model: Estimator, data: Network, support: Nodes, labels: Sequence[str]) -> None:
        self.data = data = as_dataset(data)
        self.recogniser = Recogniser(model, data, support, labels)
        self.nodes: list[int] = self.recogniser.support.tolist()
        self.classes = [str(name) for name in self.recogniser.classes]
        self.support = [(data.node_name(node), label) for node, label in zip(self.nodes, labels, strict=True)]

    def predictions(
        self, query: Nodes, explain: bool = False, transductive: bool = False, open_set: bool = False
    ) -> Predictions:
        rows = self.recogniser.rows(query)
        names, probability = self.classes, self.recogniser.predict_proba(rows, transductive)
        if open_set:
            if NONE in names:
                raise FewnodeError(f"a class is called {NONE!r} already; rename it, or leave --open-set out")
            familiar = self.recogniser.familiar(rows)[:, None]
            names, probability = [*names, NONE], np.concatenate([familiar * probability, 1 - familiar], axis=1)
        why = self.recogniser.explain(rows) if explain else None
        return Predictions([self.data.node_name(node) for node in rows.tolist()], names, probability, self.support, why)
