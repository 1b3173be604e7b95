"""The files of a service without the service: what is in them, and what is said of a damaged one."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fewnode.errors import FewnodeError
from fewnode.serve.store import State, Store

DATA = "0" * 64
NODES: list[dict[str, Any]] = [{"node": "ä", "attributes": {"x": 1.5}, "edges": ["b"]}, {"node": "new"}]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    kept = Store(tmp_path / "deep" / "down" / "state.sqlite", DATA)
    yield kept
    kept.close()


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def test_a_version_says_which_change_and_which_content() -> None:
    empty = State({})
    one = empty.with_class("ä", ("x", "y"))
    two = one.with_class("b", ("z",))
    assert empty.version == "0-" + sha256("{}")[:8]
    assert one.version == "1-" + sha256('{"ä":["x","y"]}')[:8]
    assert two.support == (("ä", ("x", "y")), ("b", ("z",)))
    less = two.without("ä")
    assert (less.classes, less.changes) == ({"b": ("z",)}, 3)
    assert two.with_class("b", ("q",)).classes == {"ä": ("x", "y"), "b": ("q",)}


def test_files_lie_beside_each_other_and_appear_when_needed(store: Store) -> None:
    assert store.nodes_path == store.path.with_name("state.sqlite.nodes")
    assert store.embedding_path == store.path.with_name("state.sqlite.embedding")
    assert [path.name for path in store.path.parent.iterdir()] == ["state.sqlite.lock"]
    state = store.read()
    assert (state.classes, state.changes) == ({}, 0)
    assert store.read_nodes() == []


def test_classes_are_kept_as_json_that_people_can_read(store: Store) -> None:
    state = State({"ä": ("x", "y"), "b": ("z",)}, 7)
    store.write(state)
    text = store.path.read_text()
    kept = {"format": "fewnode-classes-1", "version": state.version, "changes": 7, "data": DATA}
    assert json.loads(text) == {**kept, "classes": {"ä": ["x", "y"], "b": ["z"]}}
    assert text.startswith('{\n "format": ')
    assert text.endswith("\n}\n")
    assert '"ä"' in text
    again = store.read()
    assert (again.classes, again.changes, again.version) == (state.classes, 7, state.version)


def test_a_state_has_one_service(store: Store) -> None:
    with pytest.raises(FewnodeError) as error:
        Store(store.path, DATA)
    assert str(error.value) == f"{store.path}: another service keeps its classes in it; pass another --state"
    store.close()
    Store(store.path, DATA).close()


def _forget(key: str) -> Callable[[dict[str, Any]], object]:
    return lambda kept: kept.pop(key)


@pytest.mark.parametrize(
    "change",
    [
        *map(_forget, ("classes", "changes", "format", "version")),
        lambda kept: kept.update(format="fewnode-classes-2"),
        lambda kept: kept.update(version="1-00000000"),
        lambda kept: kept.update(changes=2),
        lambda kept: kept["classes"].update(b=["y"]),
        lambda kept: kept.update(classes={"a": 3}),
        lambda kept: kept.update(classes={"a": []}, version=State({"a": ()}, 1).version),
    ],
)
def test_classes_that_were_edited_are_refused(store: Store, change: Callable[[dict[str, Any]], object]) -> None:
    store.write(State({"a": ("x",)}, 1))
    kept = json.loads(store.path.read_text())
    change(kept)
    store.path.write_text(json.dumps(kept))
    with pytest.raises(FewnodeError) as error:
        store.read()
    assert str(error.value) == f"{store.path}: not the classes of a service, or edited by hand"


@pytest.mark.parametrize("blob", [b"", b"\xff", b"[]", b"3", b'"x"', pytest.param(b"[" * 100_000, id="deep")])
def test_what_are_no_classes_at_all_is_refused(store: Store, blob: bytes) -> None:
    store.path.write_bytes(blob)
    with pytest.raises(FewnodeError) as error:
        store.read()
    assert str(error.value) == f"{store.path}: not the classes of a service, or edited by hand"


def test_classes_of_another_dataset_are_refused(store: Store) -> None:
    store.write(State({"a": ("x",)}, 1))
    store.data = "1" * 64
    with pytest.raises(FewnodeError) as error:
        store.read()
    assert str(error.value) == f"{store.path}: these classes are of another dataset; pass another --state"


def test_attached_nodes_are_lines_with_their_checksum(store: Store) -> None:
    store.append_nodes(NODES)
    store.append_nodes([{"node": "last"}])
    first = '[{"node":"ä","attributes":{"x":1.5},"edges":["b"]},{"node":"new"}]'
    lines = [f'{{"sha256":"{sha256(text)}","nodes":{text}}}\n' for text in (first, '[{"node":"last"}]')]
    assert store.nodes_path.read_text() == "".join(lines)
    assert store.read_nodes() == [*NODES, {"node": "last"}]
    assert store.nodes_path.read_text() == "".join(lines)


@pytest.mark.parametrize(
    "tail",
    [
        b"x",
        b"x\n",
        b"\n",
        b"[]\n",
        b"3\n",
        b'{"nodes":[]}\n',
        b'{"sha256":"","nodes":[]}\n',
        pytest.param(b"[" * 99_999 + b"\n", id="deep"),
    ],
)
def test_a_damaged_last_line_is_cut_off(store: Store, tail: bytes) -> None:
    store.append_nodes(NODES)
    store.append_nodes([{"node": "last"}])
    whole = store.nodes_path.read_bytes()
    store.nodes_path.write_bytes(whole + tail)
    assert store.read_nodes() == [*NODES, {"node": "last"}]
    assert store.nodes_path.read_bytes() == whole


@pytest.mark.parametrize("number", [1, 2])
def test_a_damaged_line_before_the_last_is_an_error(store: Store, number: int) -> None:
    for name in "abc":
        store.append_nodes([{"node": name}])
    lines = store.nodes_path.read_bytes().splitlines(keepends=True)
    lines[number - 1] = lines[number - 1].replace(b'"node"', b'"nude"')
    store.nodes_path.write_bytes(b"".join(lines))
    with pytest.raises(FewnodeError) as error:
        store.read_nodes()
    assert str(error.value) == f"{store.nodes_path}: line {number} is damaged"
    assert store.nodes_path.read_bytes() == b"".join(lines), "and nothing is cut off"


def test_a_line_is_synced_before_the_answer_goes_out(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda file: sizes.append(os.fstat(file).st_size))
    store.append_nodes(NODES)
    assert sizes == [store.nodes_path.stat().st_size]


def test_a_disk_that_is_full_leaves_the_lines_that_were_there(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.append_nodes(NODES)

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    before = store.nodes_path.read_bytes()
    with pytest.raises(OSError, match="No space left"):
        store.append_nodes([{"node": "last"}])
    assert store.nodes_path.read_bytes() == before
