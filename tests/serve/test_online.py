"""A GPN+ service whose network changes: rows near a change are made anew, the whole in the background."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from fewnode.dataset import Dataset
from fewnode.edges.relations import EdgeRows, read_relations
from fewnode.estimator import Estimator
from fewnode.graph import Graph
from fewnode.methods.plus import GPNPlus
from fewnode.represent.new_rows import StoredViews
from fewnode.represent.practice import KindsTrial
from fewnode.serve.bodies import Attach, Classify
from fewnode.serve.network import ServedNetwork
from fewnode.serve.session import Session
from service import InProcess


@pytest.fixture(scope="module")
def model(fitted_plus: Estimator) -> Estimator:
    return deepcopy(fitted_plus)  # nodes are attached to it


@pytest.fixture
def local(model: Estimator, planted: Dataset, tmp_path: Path) -> Iterator[InProcess]:
    found = InProcess(model, planted, tmp_path / "state.sqlite")
    yield found
    found.close()


def session_of(local: InProcess) -> Session:
    return local.service.session


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


def embedded_again(local: InProcess, tmp_path: Path) -> ServedNetwork:
    session = session_of(local)
    return ServedNetwork(session.model, session.base.changed(session.now.state), tmp_path / "again")


def cosines(one: torch.Tensor, other: torch.Tensor, width: int) -> torch.Tensor:
    """Of what the attributes say: coordinates of the structure are those of one embedding only."""
    return torch.cosine_similarity(one[:, :width], other[:, :width])


def test_a_node_without_edges_is_exactly_as_embedded_with_all_others(
    local: InProcess, planted: Dataset, tmp_path: Path
) -> None:
    given = {**like(planted, 5, "alone"), "edges": []}
    assert local.ask("/api/nodes", {"nodes": [given]}).status == 200
    online = session_of(local).now
    again = embedded_again(local, tmp_path)
    width = online.network.model.method_.mixture_.attribute_width
    ours, theirs = (each.model.embedding(each.data.graph)[each.data.node("alone")] for each in (online.network, again))
    assert torch.allclose(ours[:width], theirs[:width], atol=1e-5)
    assert ours[width:].norm() == pytest.approx(theirs[width:].norm(), abs=1e-4)


def test_attached_nodes_are_close_to_embedding_everything_again(
    local: InProcess, planted: Dataset, tmp_path: Path
) -> None:
    with_classes(local, planted)
    nodes = [like(planted, node, f"new {node}") for node in range(0, planted.graph.n, 25)]
    answers = [local.ask("/api/nodes", {"nodes": [each]}) for each in nodes]
    assert {answer.status for answer in answers} == {200}
    again = embedded_again(local, tmp_path)
    now = session_of(local).now
    rows = [now.network.data.node(each["node"]) for each in nodes]
    z, fresh = (each.model.embedding(each.data.graph)[rows] for each in (now.network, again))
    assert cosines(z, fresh, now.network.model.method_.mixture_.attribute_width).min() > 0.95
    labels = [local.ask("/api/classify", {"nodes": [each["node"]]}).json["results"][0]["class"] for each in nodes]
    expected = again.answerer(now.state.given).predictions([each["node"] for each in nodes]).labels
    same = np.mean([a == (None if b == "none of these" else b) for a, b in zip(labels, expected, strict=True)])
    assert same >= 0.9


def test_the_answer_with_a_new_node_is_that_of_every_other_door(local: InProcess, planted: Dataset) -> None:
    with_classes(local, planted)
    attached = local.ask("/api/nodes", {"nodes": [like(planted, 7, "new")]}).json
    asked = local.ask("/api/classify", {"nodes": ["new"]}).json
    assert attached["results"] == asked["results"]
    line = next(
        line for line in local.ask("/api/export/labels.csv").body.decode().splitlines() if line.startswith("new,")
    )
    assert float(line.split(",")[2]) == pytest.approx(asked["results"][0]["probability"], abs=2e-6)


def test_only_rows_near_a_change_are_made_anew(local: InProcess, planted: Dataset) -> None:
    local.ask("/api/nodes", {"nodes": [like(planted, 7, "new")]})
    near = set(planted.graph.adj[[7]].indices.tolist())
    overlay = session_of(local).now.online.overlay
    assert overlay is not None
    assert set(overlay.nodes) == near | {planted.graph.n}
    before = session_of(local).now.online.anchor.model.embedding(planted.graph)
    now = session_of(local).now.network
    z = now.model.embedding(now.data.graph)
    others = [i for i in range(planted.graph.n) if i not in near]
    assert torch.equal(z[others], before[others])
    assert not torch.equal(z[sorted(near)], before[sorted(near)])


def test_what_comes_and_goes_leaves_things_as_they_were(local: InProcess, planted: Dataset) -> None:
    """A node that is attached and deleted, an edge that is added and removed, a row that is replaced and put back."""
    first = session_of(local).now.network
    name = planted.node_name(3)
    other = next(planted.node_name(i) for i in range(4, 99) if not planted.graph.adj[3, i])
    local.ask("/api/nodes", {"nodes": [like(planted, 7, "new")]})
    assert local.ask("/api/nodes/new", method="DELETE").status == 200
    edge = [{"source": name, "target": other}]
    assert local.ask("/api/edges", {"add": edge}).json["added"] == 1
    assert local.ask("/api/edges", {"add": edge}).json["unchanged"]
    assert local.ask("/api/edges", {"remove": edge}).json["removed"] == 1
    said = like(planted, 3, name)["attributes"]
    for row in (like(planted, 90, "")["attributes"], said):
        assert local.ask(f"/api/nodes/{name}", {"attributes": row}, "PUT").status == 200
    now = session_of(local).now
    assert not (now.network.data.graph.adj != planted.graph.adj).nnz
    width = first.model.method_.mixture_.attribute_width
    before, z = first.model.embedding(planted.graph), now.network.model.embedding(now.network.data.graph)
    assert cosines(z, before, width).min() > 0.97
    assert now.online.drift > 0


def test_a_deleted_node_comes_back_as_another(local: InProcess, planted: Dataset) -> None:
    name = planted.node_name(3)
    near = local.ask(f"/api/nodes/{name}").json["neighbours_total"]
    assert local.ask(f"/api/nodes/{name}", method="DELETE").status == 200
    assert local.ask(f"/api/nodes/{name}").status == 404
    assert local.ask("/api/nodes", {"nodes": [{**like(planted, 3, name), "edges": []}]}).status == 200
    assert local.ask(f"/api/nodes/{name}").json["neighbours_total"] == 0 < near
    assert session_of(local).now.online.n == planted.graph.n


def test_new_nodes_can_stand_for_classes(local: InProcess, planted: Dataset) -> None:
    with_classes(local, planted)
    local.ask("/api/nodes", {"nodes": [like(planted, 7, "one"), like(planted, 8, "two")]})
    assert local.ask("/api/classes/fresh", {"support": ["one", "two"]}, "PUT").status == 200
    answer = local.ask("/api/classify", {"nodes": ["one", planted.node_name(9)]}).json
    assert answer["results"][0]["class"] == "fresh"
    assert local.ask("/api/classify", {"nodes": ["nobody"]}).status == 422


def test_a_restart_loses_nothing(model: Estimator, planted: Dataset, tmp_path: Path) -> None:
    local = InProcess(model, planted, tmp_path / "state.sqlite")
    with_classes(local, planted)
    for node in (7, 60, 120):
        local.ask("/api/nodes", {"nodes": [like(planted, node, f"new {node}")]})
    local.ask(f"/api/nodes/{planted.node_name(3)}", method="DELETE")
    before = local.ask("/api/classify", {"nodes": ["new 7", "new 60", "new 120"]}).json
    data = session_of(local).now.network.data
    local.close()
    local = InProcess(model, planted, tmp_path / "state.sqlite")
    after = local.ask("/api/classify", {"nodes": ["new 7", "new 60", "new 120"]}).json
    again = session_of(local).now.network.data
    assert again.node_names == data.node_names
    assert not (again.graph.adj != data.graph.adj).nnz
    assert after["version"] == before["version"]
    assert [each["class"] for each in after["results"]] == [each["class"] for each in before["results"]]
    local.close()


def test_all_is_embedded_again_where_the_drift_passes_the_bound(
    model: Estimator, planted: Dataset, tmp_path: Path
) -> None:
    """What changes meanwhile is not lost."""
    local = InProcess(model, planted, tmp_path / "state.sqlite")
    session = session_of(local)
    session.refresh.wait()
    session.refresh.bound = 0.01
    with_classes(local, planted)
    for node in range(40):
        assert local.ask("/api/nodes", {"nodes": [like(planted, node, f"new {node}")]}).status == 200
    before = session.now.online.drift
    session.refresh.wait()
    told = local.ask("/api/model").json["online"]
    assert told["refreshed"] > 0
    assert told["drift_bound"] == 0.01
    assert session.now.online.drift <= before, "the drift begins anew"
    assert session.now.online.n == planted.graph.n + 40
    assert local.ask("/api/nodes/new 39").json["degree"] == planted.graph.degree[39]
    again = embedded_again(local, tmp_path)
    assert session.now.network.data.node_names == again.data.node_names
    assert not (session.now.network.data.graph.adj != again.data.graph.adj).nnz
    local.close()


def test_answers_are_right_while_nodes_are_attached(local: InProcess, planted: Dataset) -> None:
    """Each answer is that of one state, whatever thread it is given by."""
    with_classes(local, planted)
    session, wrong, done = session_of(local), [], threading.Event()
    session.refresh.wait()
    session.refresh.bound = 0.02
    asked = Classify(nodes=[planted.node_name(i) for i in (150, 170)])

    def classify() -> None:
        while not done.is_set():
            now = session.now
            first, second = (json.dumps(session.classify(asked, now), default=np.ndarray.tolist) for _ in range(2))
            if first != second or json.loads(first)["version"] != now.version:
                wrong.append(first)

    thread = threading.Thread(target=classify)
    thread.start()
    for node in range(30):
        session.attach(Attach.model_validate({"nodes": [like(planted, node, f"new {node}")]}))
    done.set()
    thread.join()
    session.refresh.wait()
    assert not wrong
    assert session.now.online.n == planted.graph.n + 30


def test_an_attribute_that_is_too_large_is_refused_and_nothing_is_kept(local: InProcess, planted: Dataset) -> None:
    name = next(iter(like(planted, 7, "new")["attributes"]))
    answer = local.ask("/api/nodes", {"nodes": [{"node": "new", "attributes": {name: 1e39}}]})
    assert answer.status == 422
    assert "infinite" in answer.json["error"]
    assert local.ask("/api/nodes/new").status == 404


def test_edges_of_a_directed_network(planted: Dataset, tmp_path: Path) -> None:
    index = planted.graph.edge_index()[:, ::2]
    data = replace(planted, graph=Graph.from_edges(index, planted.graph.n, planted.graph.x, directed=True))
    local = InProcess(Estimator("gpn-plus", way=3, shot=3).fit(data), data, tmp_path / "state.sqlite")
    local.ask("/api/nodes", {"nodes": [{**like(data, 3, "new")}, {"node": "newer", "edges": ["new"]}]})
    assert local.ask("/api/nodes/new", method="DELETE").status == 200
    assert local.ask("/api/nodes/newer").json["degree"] == 0

    def z(name: str) -> torch.Tensor:
        online = session_of(local).now.online
        assert online.overlay is not None
        return online.overlay.rows([online.number(name)])[0]  # type: ignore[list-item]

    forth, back = {"source": "newer", "target": "node-5"}, {"source": "node-5", "target": "newer"}
    local.ask("/api/edges", {"add": [forth]})
    linked = z("newer")
    local.ask("/api/edges", {"add": [back]})
    assert [local.ask(f"/api/nodes/{name}").json["degree"] for name in ("newer", "node-5")] == [1, degree(data, 5) + 1]
    local.ask("/api/edges", {"remove": [forth]})
    assert [local.ask(f"/api/nodes/{name}").json["degree"] for name in ("newer", "node-5")] == [1, degree(data, 5)]
    assert torch.allclose(z("newer"), linked, atol=1e-6), "an edge either way is an edge"
    local.ask("/api/edges", {"remove": [back]})
    assert not torch.allclose(z("newer"), linked, atol=1e-2)
    local.close()


def degree(data: Dataset, node: int) -> int:
    return int(data.graph.degree[node])


def test_a_restart_goes_on_with_what_was_embedded(
    model: Estimator, planted: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is embedded or diffused again, unless what was kept is damaged."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    asked = {"nodes": ["new 7", planted.node_name(7), planted.node_name(60)]}
    local = InProcess(model, planted, tmp_path / "state.sqlite")
    with_classes(local, planted)
    session_of(local).refresh.wait()
    local.ask("/api/nodes", {"nodes": [like(planted, 7, "new 7")]})
    before = local.ask("/api/classify", asked).json
    local.close()

    def refused(*_: object) -> None:
        raise AssertionError("made again")

    with monkeypatch.context() as patch:
        patch.setattr(GPNPlus, "embed", refused)
        patch.setattr(StoredViews, "of", refused)
        local = InProcess(model, planted, tmp_path / "state.sqlite")
        assert local.ask("/api/classify", asked).json == before
        assert local.ask("/api/nodes", {"nodes": [like(planted, 60, "new 60")]}).status == 200
        local.close()
    [kept] = (tmp_path / "fewnode" / "services").glob("*/anchor.safetensors")
    blob = bytearray(kept.read_bytes())
    blob[-5] ^= 1
    kept.write_bytes(blob)
    local = InProcess(model, planted, tmp_path / "state.sqlite")
    assert session_of(local).now.online.overlay is None
    local.close()


def test_edges_of_kinds_change_rows_near_them(
    planted: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no view over kinds counts, rows are made from the union of all edges."""
    monkeypatch.setattr(KindsTrial, "passed", lambda *_: False)
    edges = planted.graph.edge_index()
    kind = np.add(*edges) % 3  # the same both ways
    rows = EdgeRows(edges, None, kind, ("pays", "owns", "knows"))
    data = replace(planted, graph=read_relations(rows, planted.graph.n, planted.graph.x)[0])
    local = InProcess(Estimator("gpn-plus", way=3, shot=3).fit(data), data, tmp_path / "state.sqlite")
    session = session_of(local)
    session.refresh.wait()
    names = [data.node_name(i) for i in range(0, 60, 5)]
    near = data.node_name(int(edges[1, edges[0] == data.node(names[2])][0]))
    was = ("pays", "owns", "knows")[(data.node(names[2]) + data.node(near)) % 3]
    changes: list[tuple[str, str, str, str]] = [
        ("add", names[0], names[1], "pays"),
        ("add", names[0], names[1], "owns"),
        ("remove", names[0], names[1], "pays"),
        ("remove", names[2], near, was),
        ("add", names[3], names[4], "knows"),
        ("remove", names[3], names[4], "knows"),
    ]
    for what, source, target, name in changes:
        body = {what: [{"source": source, "target": target, "kind": name}]}
        assert local.ask("/api/edges", body).status == 200
    online = session.now.online
    assert online.overlay is not None
    whole = session.base.changed(session.now.state)
    for name in [*names, near]:
        expected = whole.graph.adj[[whole.node(name)]].indices.tolist()
        assert set(online.near(name)) == {whole.node_name(i) for i in expected}
    local.close()
