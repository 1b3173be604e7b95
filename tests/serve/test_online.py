"""A GPN+ service whose network grows: new nodes get rows of their own, all others keep theirs."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fewnode.dataset import Dataset
from fewnode.embedding.mixture import MixedViews
from fewnode.graph import Graph
from fewnode.model.estimator import Estimator
from fewnode.recognition.answers import NONE
from fewnode.relations import EdgeRows, read_relations
from fewnode.service.asked import Asked
from fewnode.service.bodies import Attach, Classify
from fewnode.service.network import Network
from service import InProcess


@pytest.fixture(scope="module")
def model(fitted_plus: Estimator) -> Estimator:
    return deepcopy(fitted_plus)  # nodes are attached to it


@pytest.fixture
def local(model: Estimator, planted: Dataset, tmp_path: Path) -> Iterator[InProcess]:
    found = InProcess(model, planted, tmp_path / "state.sqlite")
    yield found
    found.close()


def with_classes(local: InProcess, data: Dataset) -> None:
    for c in data.split.test[:3]:
        nodes = [data.node_name(int(i)) for i in np.flatnonzero(data.y == c)[:4]]
        assert local.ask(f"/api/classes/{data.class_names[c]}", {"support": nodes}, "PUT").status == 200


def like(data: Dataset, node: int, name: str) -> dict[str, Any]:
    """A node with the attributes and the neighbours of another."""
    x = data.graph.x[[node]].toarray()[0] if hasattr(data.graph.x, "toarray") else data.graph.x[node]
    names = data.feature_names or tuple(map(str, range(data.graph.n_features)))
    near = data.graph.adj[[node]].indices.tolist()
    said = {names[c]: float(x[c]) for c in np.flatnonzero(x)}
    return {"node": name, "attributes": said, "edges": [data.node_name(i) for i in near]}


def rows(network: Network, *names: str) -> np.ndarray:
    return network.z[[network.row(name) for name in names]]


def test_a_node_without_edges_is_exactly_as_embedded_with_all_others(local: InProcess, planted: Dataset) -> None:
    given = {**like(planted, 5, "alone"), "edges": []}
    assert local.ask("/api/nodes", {"nodes": [given]}).status == 200
    now = local.service.now.network
    again = Network(local.model, now.data)
    width = now.model.method_.mixture_.attribute_width
    ours, theirs = rows(now, "alone")[0], rows(again, "alone")[0]
    assert np.allclose(ours[:width], theirs[:width], atol=1e-5)
    assert np.linalg.norm(ours[width:]) == pytest.approx(np.linalg.norm(theirs[width:]), abs=1e-4)


def test_attached_nodes_are_close_to_embedding_everything_again(local: InProcess, planted: Dataset) -> None:
    with_classes(local, planted)
    before = local.service.now.network.z.copy()
    nodes = [like(planted, node, f"new {node}") for node in range(0, planted.graph.n, 25)]
    assert {local.ask("/api/nodes", {"nodes": [each]}).status for each in nodes} == {200}
    now, names = local.service.now, [each["node"] for each in nodes]
    assert np.array_equal(now.network.z[: planted.graph.n], before), "all others keep their rows"
    again = Network(local.model, now.network.data)
    width = now.network.model.method_.mixture_.attribute_width
    ours, theirs = (rows(each, *names)[:, :width] for each in (now.network, again))
    length = np.linalg.norm(ours, axis=1) * np.linalg.norm(theirs, axis=1)
    assert ((ours * theirs).sum(axis=1) / length).min() > 0.95
    labels = [local.ask("/api/classify", {"nodes": [name]}).json["results"][0]["class"] for name in names]
    asked = np.array([again.row(name) for name in names])
    expected = Asked.of(again, now.state.classes).judge(Classify(all=True), asked).labels
    assert np.mean([(a or NONE) == b for a, b in zip(labels, expected, strict=True)]) >= 0.9


def test_a_restart_loses_nothing(
    model: Estimator, planted: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """New nodes get the rows again that they had; the others have theirs from the cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    local = InProcess(model, planted, tmp_path / "state.sqlite")
    with_classes(local, planted)
    names = [f"new {node}" for node in (7, 60, 120)]
    for node, name in zip((7, 60, 120), names, strict=True):
        local.ask("/api/nodes", {"nodes": [like(planted, node, name)]})
    before, data = local.ask("/api/classify", {"nodes": names}).json, local.service.now.network.data
    monkeypatch.setattr(MixedViews, "embed", None)
    for _ in range(2):
        local.close()
        local = InProcess(model, planted, tmp_path / "state.sqlite")
        after, again = local.ask("/api/classify", {"nodes": names}).json, local.service.now.network.data
        assert again.node_names == data.node_names
        assert not (again.graph.adj != data.graph.adj).nnz
        assert after["version"] == before["version"]
        assert after["results"] == before["results"]
    local.close()


def test_answers_are_right_while_nodes_are_attached(local: InProcess, planted: Dataset) -> None:
    """Each answer is that of one state, whatever thread it is given by."""
    with_classes(local, planted)
    desk, wrong, done = local.service.desk, [], threading.Event()
    asked = Classify(nodes=[planted.node_name(i) for i in (150, 170)])

    def classify() -> None:
        while not done.is_set():
            now = desk.now
            first, second = now.classify(asked), now.classify(asked)
            if first != second or first["version"] != now.version:
                wrong.append(first)

    thread = threading.Thread(target=classify)
    thread.start()
    for node in range(20):
        desk.attach(Attach.model_validate({"nodes": [like(planted, node, f"new {node}")]}), None)
    done.set()
    thread.join()
    assert not wrong
    assert desk.now.network.n == planted.graph.n + 20


@pytest.mark.parametrize("kind", ["directed", "kinds"])
def test_networks_of_directions_and_kinds_grow(planted: Dataset, tmp_path: Path, kind: str) -> None:
    """An edge either way counts; where views over kinds count, all nodes are embedded again."""
    index = planted.graph.edge_index()
    if kind == "directed":
        graph = Graph.from_edges(index[:, ::2], planted.graph.n, planted.graph.x, directed=True)
    else:
        edges = EdgeRows(index, None, np.add(*index) % 2, ("pays", "owns"))
        graph = read_relations(edges, planted.graph.n, planted.graph.x)[0]
    data = replace(planted, graph=graph)
    local = InProcess(Estimator("gpn-plus", way=3, shot=3).fit(data), data, tmp_path / "state.sqlite")
    with_classes(local, data)
    edges = [{"node": "node-5", "kind": "owns"}] if kind == "kinds" else ["node-5"]
    new = {**like(planted, 3, "new"), "edges": edges}
    answer = local.ask("/api/nodes", {"nodes": [new, {"node": "newer", "edges": edges}]})
    assert answer.status == 200, answer.body
    assert [each["node"] for each in answer.json["results"]] == ["new", "newer"]
    assert local.ask("/api/nodes/newer").json["degree"] == 1
    assert local.service.now.network.z.shape[0] == planted.graph.n + 2
    local.close()
