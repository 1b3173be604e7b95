"""Two small networks that the service and its model start with, and what requests say of nodes in them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fewnode.dataset import ClassSplit, Dataset
from fewnode.graph import Graph, is_sparse
from fewnode.model.estimator import Estimator
from fewnode.tables.extend import extend
from fewnode.tables.read import read_tables
from service_model import Meaning, Model, Node

KINDS = ("bank", "shop", "farm", "mill", "port")
SPLIT = {"train": KINDS[:2], "valid": KINDS[2:4], "test": KINDS[4:]}
N = 10
TOPICS = {
    "mail": "send receive filter mail spam inbox",
    "vpn": "tunnel encrypt network vpn peer",
    "game": "play chess board game score",
    "font": "glyph font typeface serif",
}
MEMBERS = 12


@dataclass(frozen=True)
class Network:
    data: Dataset
    model: Estimator
    start: Model
    names: Sequence[str]
    """Names of nodes in requests, the first are there at the start."""
    new: Sequence[str]
    """Names of nodes that come."""
    contents: Sequence[tuple[dict[str, Any], Meaning | None]]
    """What a request may say of a node, and what that means; None if it is refused."""


def network(
    data: Dataset,
    names: Sequence[str],
    new: Sequence[str],
    contents: Sequence[tuple[dict[str, Any], Meaning | None]],
    known: frozenset[str] = frozenset(),
) -> Network:
    """`known`: the words of a network whose classes can be described; it gets a method that reads descriptions."""
    model = Estimator("gpn-plus") if known else Estimator("propagation", way=1, shot=1, query=1, steps=1)
    model.fit(data)
    own = {data.node_name(i): Node(row, data.class_names[data.y[i]]) for i, row in enumerate(rows(data))}
    numbered, directed = data.node_names is None, data.graph.directed
    start = Model(own, frozenset(edges(data, directed)), directed, numbered, known=known, open_set=bool(known))
    return Network(data, model, start, names, new, contents)


def rows(data: Dataset) -> list[tuple[float, ...]]:
    x = data.graph.x
    return [tuple(row) for row in (x.toarray() if is_sparse(x) else x).tolist()]


def edges(data: Dataset, directed: bool) -> set[tuple[str, str]]:
    target, source = data.graph.adj.tocoo().coords
    named = [(data.node_name(int(s)), data.node_name(int(t))) for s, t in zip(source, target, strict=True)]
    return {edge for edge in named if directed or edge[0] <= edge[1]}


def of_tables() -> Network:
    """Nodes with names, rows with columns, edges without a direction."""
    nodes = {
        "account": [f"A{i}" for i in range(N)],
        "kind": [KINDS[i % 5] for i in range(N)],
        "about": [f"{KINDS[i % 5]} number true" if i % 2 else f"{KINDS[i % 5]} 1" for i in range(N)],
        "balance": [float(i) for i in range(N)],
        "country": [("FR", "true", "1")[i % 3] for i in range(N)],
    }
    ends = {"from": ["A0", "A3", "A1", "A2", "A5"], "to": ["A3", "A6", "A4", "A5", "A7"]}
    data = read_tables(
        nodes, ends, id="account", label="kind", split=SPLIT, text=["about"], numeric=["balance"], category=["country"]
    )

    def means(row: dict[str, Any]) -> Meaning:
        table = {"about": "", "balance": None, "country": "", **row}
        cells = {name: [str(c).lower() if isinstance(c, bool) else c] for name, c in table.items()}
        found = extend(data, {"account": ["new"], "kind": [""], **cells}, alone=True)
        said = {name: float(cell) if name == "balance" else cell for name, cell in row.items()}
        return Meaning(rows(found)[0], row.get("kind"), json.dumps(said, sort_keys=True))

    good: list[dict[str, Any]] = [{}, {"balance": 1}, {"balance": "1"}, {"country": True}, {"country": 1}]
    good += [{"about": "mill farm"}, {"kind": "bank"}, {"kind": "never seen"}]
    bad: list[dict[str, Any]] = [{"colour": 1}, {"balance": "much"}]
    contents = [({"row": row}, means(row)) for row in good] + [({"row": row}, None) for row in bad]
    new = ["a0", "new", "neu", "A1"]
    return network(data, [*nodes["account"], *new, "nobody"], new, contents, frozenset(KINDS))


def of_numbers() -> Network:
    """Nodes without names, attributes without names, edges with a direction."""
    x = np.eye(N, 5, dtype=np.float32) + np.roll(np.eye(N, 5, dtype=np.float32), 5, 0)
    graph = Graph.from_edges([[0, 3, 3, 1, 4, 2, 5], [3, 0, 6, 4, 1, 5, 7]], N, x, directed=True)
    data = Dataset(graph, np.arange(N) % 5, ClassSplit((0, 1), (2, 3), (4,)), KINDS, name="numbers")
    good: list[dict[str, Any]] = [{}, {"0": 1}, {"0": 1.0}, {"1": -2.5, "4": 1}]
    bad: list[dict[str, Any]] = [{"5": 1}, {"0": 1e39}]

    def means(given: dict[str, Any]) -> Meaning:
        found = tuple(float(given.get(str(i), 0)) for i in range(5))
        return Meaning(found, None, json.dumps({name: float(value) for name, value in given.items()}))

    contents = [({"attributes": row}, means(row)) for row in good] + [({"attributes": row}, None) for row in bad]
    new = ["new", "10", "010", "01"]
    return network(data, [*map(str, range(N)), *new, "٤", "-1"], new, contents)


def texts() -> Dataset:
    """Four topics; each node has three of its topic's words, and edges within its topic."""
    rng = np.random.default_rng(0)
    names = [f"{topic}-{i}" for topic in TOPICS for i in range(MEMBERS)]
    about = [" ".join(rng.choice(words.split(), 3, replace=False)) for words in TOPICS.values() for _ in range(MEMBERS)]
    ends = [(f"{t}-{i}", f"{t}-{(i + step) % MEMBERS}") for t in TOPICS for i in range(MEMBERS) for step in (1, 3)]
    return read_tables(
        {"id": names, "about": about},
        {"from": [s for s, _ in ends], "to": [t for _, t in ends]},
        id="id",
        text="about",
    )
