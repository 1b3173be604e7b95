"""Classes, nodes and edges outlive the process; what cannot be answered by is not kept; nothing is lost silently."""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import pytest

from fewnode.dataset import Dataset
from fewnode.errors import FewnodeError
from fewnode.model.estimator import Estimator
from fewnode.service import network
from service import InProcess, Local, save_run
from sizes import until

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


def put(local: InProcess, name: str, *nodes: str, **headers: str) -> tuple[int, str]:
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


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Café", "café"),
        ("caf\u00e9", "cafe\u0301"),
        ("straße", "STRASSE"),
        ("\uff56pn", "vpn"),
        ("a b", "a\u00a0b"),
        ("vpn", "vpn\ufe0f"),
        ("vpn", "v\u200bpn"),
        ("vpn", "vpn "),
        ("vpn", "\u3164vpn"),
        ("İ", "i̇"),
    ],
)
def test_classes_that_cannot_be_told_apart_are_refused(local: Local, one: str, other: str) -> None:
    assert put(local, quote(one), "node-1")[0] == 200
    status, told = put(local, quote(other), "node-2")
    assert status == 409
    assert repr(one) in told
    assert repr(other) in told
    assert told.endswith("differ only in case, Unicode form or invisible characters")
    assert put(local, quote(one), "node-2")[0] == 200
    support = {one: ["node-1"], other: ["node-2"]}
    answer = local.ask("/api/classify", {"nodes": ["node-3"], "support": support})
    assert answer.status == 422


@pytest.fixture
def numbered(planted: Dataset, tmp_path: Path) -> Iterator[Start]:
    """A network whose nodes have no names."""
    run = save_run(replace(planted, node_names=None), tmp_path, episodes=5)
    started: list[Local] = []

    def again() -> Local:
        for old in started:
            old.close()
        started.append(Local(run, tmp_path / "state.sqlite"))
        return started[-1]

    yield again
    for old in started:
        old.close()


def test_what_the_dataset_no_longer_has_is_named(planted: Dataset, tmp_path: Path) -> None:
    """Classes and answers are kept by name over a reload, and over a start with a dataset that was imported anew."""
    model = Estimator("propagation", way=3, shot=3, steps=1).fit(planted)
    local = InProcess(model, planted, tmp_path / "state.sqlite")
    assert put(local, "a", "node-1", "node-2")[0] == 200
    assert put(local, "b", "node-3")[0] == 200
    new = {"nodes": [{"node": "new", "edges": ["node-2", "node-4"]}], "classify": False}
    assert local.ask("/api/nodes", new).status == 200
    version = local.ask("/api/classes").json["version"]
    names = tuple({"node-2": "renamed", "node-3": "lost"}.get(name, name) for name in planted.node_names or ())
    local.data = replace(planted, node_names=names)
    assert local.ask("/api/reload", {}).json["running"]
    until(lambda: not local.ask("/api/model").json["reload"]["running"])
    found = local.ask("/api/model").json
    assert (found["reload"]["gone"], found["reload"]["gone_total"]) == (["node-2", "node-3"], 2)
    assert found["version"] != version
    assert local.ask("/api/nodes/renamed").status == 200
    assert [each["node"] for each in local.ask("/api/nodes/new").json["neighbours"]] == ["node-4"]
    one, other = local.ask("/api/classes").json["classes"]
    assert [each["node"] for each in one["support"]] == ["node-1", "node-2"], "the log has it still"
    assert one["remarks"] == ["1 of its nodes are not in the dataset"]
    assert "it claims nothing" in other["remarks"][-1]
    assert put(local, "c", "lost")[0] == 200
    assert local.ask("/api/classify", {"nodes": ["node-9"]}).json["classes"] == ["a", "c"]
    local.close()
    again = InProcess(model, local.data, tmp_path / "state.sqlite")
    assert again.ask("/api/model").json["reload"]["gone"] == ["node-2", "node-3"]
    assert again.ask("/api/classify", {"nodes": ["node-9"]}).json["classes"] == ["a", "c"]
    again.close()
    back = InProcess(model, planted, tmp_path / "state.sqlite")
    assert back.ask("/api/classify", {"nodes": ["node-9"]}).json["classes"] == ["a", "b"]
    back.close()


def test_a_dataset_that_cannot_be_read_again_leaves_the_old_one(local: Local) -> None:
    def broken() -> None:
        raise FewnodeError("d: no such dataset")

    local.service.desk.load = broken  # type: ignore[assignment]
    local.ask("/api/reload", {})
    until(lambda: not local.ask("/api/model").json["reload"]["running"])
    assert local.ask("/api/model").json["reload"]["error"] == "d: no such dataset"
    assert put(local, "a", "node-1")[0] == 200


def test_a_number_has_one_form(numbered: Start) -> None:
    """1 and 01 were two nodes: refused, kept all the same, and from then on nothing could be answered."""
    local = numbered()
    put(local, "a", "1")
    assert put(local, "b", "01") == (409, "node '1' is in class 'a' already; a node is in one class at most")
    assert put(local, "b", "2", "02", "٢")[0] == 200
    assert [each["node"] for each in local.ask("/api/classes/b").json["support"]] == ["2"]
    body = {"nodes": ["07", "7"]}
    assert [each["node"] for each in local.ask("/api/classify", body).json["results"]] == ["7", "7"]
    attached = local.ask("/api/nodes", {"nodes": [{"node": "007"}]})
    assert (attached.status, attached.json["error"]) == (422, "there is a node '7' already")
    assert local.ask("/api/nodes", {"nodes": [{"node": "new", "edges": ["01", "1"]}]}).status == 200
    assert local.ask("/api/nodes/new").json["degree"] == 1
    assert [each["node"] for each in local.ask("/api/classify", body).json["results"]] == ["7", "7"]
    before = local.ask("/api/classes").json
    assert numbered().ask("/api/classes").json == before


def test_what_cannot_be_answered_by_is_not_kept(local: Local, monkeypatch: pytest.MonkeyPatch) -> None:
    put(local, "a", "node-1")
    version = put(local, "c", "node-3")[1]

    def broken(*_: object, **__: object) -> None:
        raise FewnodeError("this support set cannot be used")

    monkeypatch.setattr(network, "Question", broken)
    assert put(local, "b", "node-2") == (422, "this support set cannot be used")
    assert local.ask("/api/classes/a", method="DELETE").status == 422
    assert local.ask("/api/nodes", {"nodes": [{"node": "new"}]}).status == 422
    monkeypatch.undo()
    assert local.ask("/api/classes").json["version"] == version
    assert local.ask("/api/nodes/new").status == 404


def test_attached_nodes_survive(start: Start) -> None:
    local = start()
    local.ask("/api/nodes", {"nodes": [{"node": "new", "edges": ["node-1"]}], "classify": False})
    put(local, "a", "new", "node-1")
    put(local, "b", "node-2")
    body = {"nodes": ["new", "node-3"]}
    before = local.ask("/api/classify", body).json
    local = start()
    assert local.ask("/api/classify", body).json == before
    local.ask("/api/nodes", {"nodes": [{"node": "newer", "edges": ["new"]}]})
    assert start().ask("/api/model").json["data"]["attached"] == 2


def test_a_disk_that_fails_changes_nothing(local: Local) -> None:
    version = put(local, "a", "node-1")[1]
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        answer = local.ask("/api/classes/b", {"support": ["node-2"]}, "PUT")
        assert (answer.status, "could not be kept" in answer.json["error"]) == (507, True)
        assert str(local.log.path) not in answer.json["error"]
        assert local.ask("/api/nodes", {"nodes": [{"node": "new"}]}).status == 507
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert local.ask("/api/classes").json["version"] == version
    assert local.ask("/api/nodes/new").status == 404
    assert put(local, "b", "node-2")[0] == 200


@pytest.mark.parametrize("blob", [b"{}", b"SQLite format 3\0" + bytes(5000)])
def test_a_file_of_something_else_is_set_aside(
    start: Start, tmp_path: Path, blob: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "state.sqlite").write_bytes(blob)
    assert put(start(), "a", "node-1")[0] == 200
    assert (tmp_path / "state.sqlite.unusable-1").read_bytes() == blob
    assert "the service starts without it" in caplog.text
