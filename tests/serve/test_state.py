"""Registered classes and attached nodes outlive the process, a kill, a cut-off write; two services never mix theirs."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fewnode.errors import FewnodeError
from fewnode.methods.gpn import GPN
from fewnode.serve.store import State, Store
from service import Local

Start = Callable[[], Local]


@pytest.fixture
def start(run_dir: Path, tmp_path: Path) -> Iterator[Start]:
    """Start the service again and again on the same files, as if the last one had been killed."""
    started: list[Local] = []

    def again() -> Local:
        for old in started:
            old.close()
        started.append(Local(run_dir, tmp_path / "state.sqlite"))
        return started[-1]

    yield again
    for old in started:
        old.close()


def put(local: Local, name: str, *nodes: str, **headers: str) -> tuple[int, str]:
    answer = local.ask(f"/api/classes/{name}", {"support": list(nodes)}, "PUT", **headers)
    return answer.status, answer.json.get("version", answer.json.get("error"))


def test_classes_survive_and_every_change_has_its_version(start: Start) -> None:
    local = start()
    seen = [local.ask("/api/classes").json["version"]]
    for name, nodes in {"a": ["node-1", "node-2"], "b": ["node-3"], "c": ["node-4"]}.items():
        seen.append(put(local, name, *nodes)[1])
    seen.append(local.ask("/api/classes/c", method="DELETE").json["version"])
    assert len(set(seen)) == 5
    before = local.ask("/api/classes").json
    body = {"nodes": ["node-9"]}
    answer = local.ask("/api/classify", body).json
    assert answer["version"] == before["version"] == seen[-1]
    local = start()
    assert local.ask("/api/classes").json == before
    assert local.ask("/api/classify", body).json == answer
    assert put(local, "a", "node-1", "node-2")[1] == seen[-1]  # nothing changed


def test_a_change_is_made_to_what_was_seen(local: Local) -> None:
    first = put(local, "a", "node-1")[1]
    second = put(local, "b", "node-2", If_Match=first)[1]
    status, told = put(local, "b", "node-3", If_Match=first)
    assert (status, second in told) == (412, True)
    assert local.ask("/api/classes/a", method="DELETE", If_Match=f'"{first}"').status == 412
    assert local.ask("/api/classes/a", method="DELETE", If_Match=f'"{second}"').status == 200
    assert put(local, "b", "node-2", "node-3", "node-3")[0] == 200
    assert [s["node"] for s in local.ask("/api/classes/b").json["support"]] == ["node-2", "node-3"]


def test_a_node_is_in_one_class(local: Local) -> None:
    put(local, "a", "node-1")
    status, told = put(local, "b", "node-2", "node-1")
    assert (status, "'a' already" in told) == (409, True)
    assert put(local, "b", "nobody")[0] == 422
    assert put(local, "..", "node-5")[0] == 422
    assert put(local, "a" * 201, "node-5")[0] == 422
    assert [c["name"] for c in local.ask("/api/classes").json["classes"]] == ["a"]


def test_there_are_at_most_200_classes(local: Local) -> None:
    session = local.service.session
    session.adopt(State({f"c{i}": (f"node-{i}",) for i in range(200)}, 200))
    assert put(local, "one more", "node-201")[0] == 422
    assert put(local, "c7", "node-201")[0] == 200


def test_attached_nodes_survive_and_a_cut_off_line_does_not_count(start: Start) -> None:
    local = start()
    local.ask("/api/nodes", {"nodes": [{"node": "new", "edges": ["node-1"]}], "classify": False})
    put(local, "a", "new", "node-1")
    put(local, "b", "node-2")
    body = {"nodes": ["new", "node-3"]}
    before = local.ask("/api/classify", body).json
    path = local.store.nodes_path
    whole = path.read_bytes()
    for damaged in (whole[:-20], whole[:-20] + b"\n"):
        path.write_bytes(whole + damaged)
        local = start()
        assert local.ask("/api/classify", body).json == before
        assert path.read_bytes() == whole
    local.ask("/api/nodes", {"nodes": [{"node": "newer", "edges": ["new"]}]})
    assert start().ask("/api/model").json["data"]["attached"] == 2
    path.write_bytes(b"x" + path.read_bytes()[1:])
    with pytest.raises(FewnodeError, match="line 1 is damaged"):
        start()


def test_a_full_disk_changes_nothing(local: Local, monkeypatch: pytest.MonkeyPatch) -> None:
    version = put(local, "a", "node-1")[1]

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    answer = local.ask("/api/classes/b", {"support": ["node-2"]}, "PUT")
    assert (answer.status, "No space left" in answer.json["error"]) == (507, True)
    assert local.ask("/api/nodes", {"nodes": [{"node": "new"}]}).status == 507
    monkeypatch.undo()
    assert local.ask("/api/classes").json["version"] == version
    assert local.ask("/api/nodes/new").status == 404
    assert local.store.read().version == version
    assert local.store.read_nodes() == []


@pytest.mark.parametrize(
    "change",
    [
        lambda kept: kept["classes"].update(c=["node-9"]),
        lambda kept: kept.update(changes=3),
        lambda kept: kept.update(format="fewnode-classes-9"),
        lambda kept: kept["classes"].clear(),
        lambda kept: kept.update(classes=[]),
    ],
)
def test_a_file_that_was_edited_is_refused(start: Start, change: Callable[[dict[str, object]], object]) -> None:
    local = start()
    put(local, "a", "node-1")
    kept = json.loads(local.store.path.read_text())
    change(kept)
    local.store.path.write_text(json.dumps(kept))
    with pytest.raises(FewnodeError, match=r"classes\.json: .*edited by hand"):
        start()


def test_files_of_others_are_refused(start: Start, tmp_path: Path) -> None:
    local = start()
    put(local, "a", "node-1")
    with pytest.raises(FewnodeError, match="another service keeps"):
        Store(tmp_path / "state.sqlite", local.data.sha256)
    local.close()
    other = Store(tmp_path / "state.sqlite", "0" * 64)
    with pytest.raises(FewnodeError, match="of another dataset"):
        other.read()
    other.close()
    (tmp_path / "state.sqlite").write_bytes(b"\xff\x00")
    with pytest.raises(FewnodeError, match="not the classes of a service"):
        start()


def test_an_embedding_that_takes_long_is_computed_once(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    embed = GPN._embed
    monkeypatch.setattr(GPN, "kept", True)
    monkeypatch.setattr(GPN, "_embed", lambda self, graph: sizes.append(graph.n) or embed(self, graph))
    asked = {"nodes": ["node-9", "node-10"], "support": {"a": ["node-1"], "b": ["node-3"]}}
    answer = start().ask("/api/classify", asked).json
    local = start()
    assert local.ask("/api/classify", asked).json == answer
    assert len(sizes) == 1
    new = {"node": "new", "attributes": {}, "edges": ["node-1"]}
    assert local.ask("/api/nodes", {"nodes": [new]}).status == 200
    grown = local.ask("/api/classify", asked).json
    assert start().ask("/api/classify", asked).json == grown
    assert sizes == [sizes[0], sizes[0] + 1], "with the attached node there is another one, and that is kept, too"
