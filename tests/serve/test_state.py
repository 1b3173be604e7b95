"""Names that cannot be told apart, datasets that have changed and disks that fail: nothing is lost silently."""

from __future__ import annotations

import resource
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import pytest

from fewnode.dataset import Dataset
from fewnode.errors import FewnodeError
from fewnode.model.estimator import Estimator
from service import InProcess, Local
from sizes import until


def put(local: InProcess, name: str, *nodes: str, **headers: str) -> tuple[int, str]:
    answer = local.ask(f"/api/classes/{name}", {"support": list(nodes)}, "PUT", **headers)
    return answer.status, answer.json.get("version", answer.json.get("error"))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Café", "café"),
        ("caf\u00e9", "cafe\u0301"),
        ("straße", "STRASSE"),
        ("\uff56pn", "vpn"),
        ("vpn", "v\u200bpn"),
        ("vpn", "vpn "),
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
