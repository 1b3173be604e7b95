"""The file of a service without the service: what is in it, and that no damage goes unnoticed."""

from __future__ import annotations

import json
import random
import resource
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from fewnode.errors import FewnodeError
from fewnode.serve import store as module
from fewnode.serve.state import State, Verdict
from fewnode.serve.store import Store, Unusable

DATA = "0" * 64
WHEN = "2026-01-31T12:00:00.000+00:00"
FIRST = State(
    {"ä": ("x", "y")},
    {"new": {"attributes": {"word": 1.5}}},
    frozenset({"gone"}),
    {("new", "x"): True},
    {"ä": "ein\nSatz"},
    verdicts={("ä", "x"): Verdict(True, False, "Ann", WHEN), ("ä", "z"): Verdict(False, True, None, WHEN)},
    labels={"x": "bank", "y": None},
    arrivals={"new": WHEN},
)
SECOND = State(
    {"b": ("z",), "ä": ("x",), "said": ()},
    {"new": {"row": {"a": None, "b": [1.0]}}},
    frozenset(),
    {("a", "x"): False},
    {"said": "a sentence", "b": ""},
)


def content(state: State) -> tuple[Any, ...]:
    same = list(state.classes.items()), list(state.nodes.items()), state.removed, dict(state.edges)
    return *same, dict(state.descriptions), dict(state.verdicts), dict(state.labels), dict(state.arrivals)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "down" / "state.sqlite"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    with closing(Store(path, DATA)) as kept:
        kept.read()
        yield kept


@pytest.fixture
def written(path: Path) -> Path:
    """A file with some changes in it, of a service that has ended."""
    with closing(Store(path, DATA)) as kept:
        kept.read()
        for number, state in enumerate((FIRST, SECOND, FIRST, SECOND)):
            kept.commit(state, {"test": number})
    return path


def reread(path: Path, data: str = DATA) -> State:
    with closing(Store(path, data)) as kept:
        return kept.read()


def edit(path: Path, *statements: str) -> None:
    """As anybody can who has the file."""
    with closing(sqlite3.connect(path)) as database:
        for statement in statements:
            database.execute(statement)
        database.commit()


def test_what_is_committed_comes_back(store: Store, path: Path) -> None:
    assert content(store.read()) == content(State())
    first = store.commit(FIRST, {"what": "ever"})
    assert (first.changes, content(first)) == (1, content(FIRST))
    second = store.commit(SECOND, {"what": "else"})
    assert store.commit(SECOND, {"nothing": "new"}) is second, "no change, no entry"
    versions = {State().version, first.version, second.version}
    assert len(versions) == 3
    store.close()
    again = reread(path)
    assert (again.version, again.classes, again.nodes) == (second.version, SECOND.classes, SECOND.nodes)
    assert (again.removed, again.edges) == (SECOND.removed, SECOND.edges)


def test_any_tool_can_read_it_and_a_copy_of_the_one_file_is_a_backup(store: Store, path: Path, tmp_path: Path) -> None:
    store.commit(FIRST, {"put class": {"name": "ä", "support": ["x", "y"]}})
    shutil.copyfile(path, tmp_path / "backup")  # while the service runs
    with closing(sqlite3.connect(tmp_path / "backup")) as database:
        assert database.execute("SELECT * FROM classes").fetchall() == [("ä", '["x","y"]')]
        assert database.execute("SELECT * FROM nodes").fetchall() == [("new", '{"attributes":{"word":1.5}}')]
        assert database.execute("SELECT * FROM edges").fetchall() == [("new", "x", 1)]
        number, when, change = database.execute("SELECT number, time, change FROM journal").fetchone()
        assert (number, when[:2], json.loads(change)["put class"]["name"]) == (1, "20", "ä")
        assert database.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert content(reread(tmp_path / "backup")) == content(FIRST)


def test_a_state_has_one_service(store: Store) -> None:
    with pytest.raises(FewnodeError) as error:
        Store(store.path, DATA)
    assert str(error.value) == f"{store.path}: another service keeps its state in it; pass another --state"
    store.close()
    Store(store.path, DATA).close()


def test_a_flipped_bit_is_noticed_or_harmless(written: Path, tmp_path: Path) -> None:
    """What SQLite keeps for itself (counters, room on a page) may change; the state never does without a word."""
    expected, whole, rng = content(reread(written)), bytearray(written.read_bytes()), random.Random(0)
    used = [place for place, byte in enumerate(whole) if byte]
    texts = [whole.index(text) + i for text in (b'{"row":{"a"', b'["x"]', b'{"test":2}') for i in range(len(text))]
    noticed = set()
    for place in (*texts, *rng.sample(used, 200)):
        damaged = tmp_path / "damaged"
        damaged.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << rng.randrange(8)]) + whole[place + 1 :])
        try:
            assert content(reread(damaged)) == expected, place
        except Unusable:
            noticed.add(place)
    assert noticed >= set(texts)
    assert len(noticed) > 150


def test_a_file_that_was_cut_is_noticed(written: Path, tmp_path: Path) -> None:
    whole = written.read_bytes()
    for size in (0, 1, 99, 100, 4096, len(whole) // 2, len(whole) - 4096, len(whole) - 1):
        (tmp_path / "cut").write_bytes(whole[:size])
        with pytest.raises(Unusable):
            reread(tmp_path / "cut")


FORGED = {
    "a removed row": ["DELETE FROM journal WHERE number = 2"],
    "a removed last row": ["DELETE FROM journal WHERE number = 4"],
    "all but the first two": ["DELETE FROM journal WHERE number > 2"],
    "a repeated row": [
        "INSERT INTO journal SELECT 5, time, who, change, before, state, chain FROM journal WHERE number = 4"
    ],
    "another order": ["UPDATE journal SET number = -number", "UPDATE journal SET number = number + 5"],
    "another text": ["UPDATE journal SET change = '{}' WHERE number = 1"],
    "another time": ["UPDATE journal SET time = '' WHERE number = 4"],
    "no number at all": ["UPDATE journal SET time = x'00' WHERE number = 4"],
    "a class less": ["DELETE FROM classes WHERE name = 'b'"],
    "a class more": ["INSERT INTO classes VALUES ('c', '[\"z\"]')"],
    "another support": ["UPDATE classes SET support = '[\"q\"]'"],
    "the same support with a space": ["UPDATE classes SET support = replace(support, '[', '[ ')"],
    "support that is no list": ["UPDATE classes SET support = '3'"],
    "support that is no JSON": ["UPDATE classes SET support = '['"],
    "deep support": ["UPDATE classes SET support = replace(printf('%100000s', ''), ' ', '[')"],
    "support that is a number": ["UPDATE classes SET support = 3.5"],
    "support that is bytes": ["UPDATE classes SET support = x'ff'"],
    "support that is no text": ["UPDATE classes SET support = CAST(x'ff' AS TEXT)"],
    "no support": ["UPDATE classes SET support = '[]'"],
    "a name that is bytes": ["UPDATE classes SET name = x'61' WHERE name = 'b'"],
    "a name that is none": ["UPDATE classes SET name = NULL WHERE name = 'b'"],
    "an empty name": ["UPDATE classes SET name = '' WHERE name = 'b'"],
    "a long name": ["UPDATE classes SET name = replace(printf('%201s', ''), ' ', 'n') WHERE name = 'b'"],
    "a node without content": ["UPDATE nodes SET content = '{}'"],
    "a node with other content": ['UPDATE nodes SET content = \'{"row": {"a": {}}}\''],
    "content that is a list": ["UPDATE nodes SET content = '[]'"],
    "an edge that is neither": ["UPDATE edges SET present = 2"],
    "an edge that is text": ["UPDATE edges SET present = 'x'"],
    "an edge without an end": ["UPDATE edges SET source = NULL"],
    "an amount below zero": ["INSERT INTO ties VALUES ('a', 'b', 'pays', -1.0)"],
    "an amount that is text": ["INSERT INTO ties VALUES ('a', 'b', 'pays', 'x')"],
    "an amount without end": ["INSERT INTO ties VALUES ('a', 'b', 'pays', 9e999)"],
    "an edge that nobody gave": ["INSERT INTO ties VALUES ('a', 'b', 'pays', 1.0)"],
    "an answer more": ["INSERT INTO verdicts VALUES ('b', 'x', 0, 0, NULL, '2026-01-31T12:00:00.000+00:00')"],
    "an answer that its class contradicts": [
        "INSERT INTO verdicts VALUES ('b', 'x', 1, 0, NULL, '2026-01-31T12:00:00.000+00:00')"
    ],
    "an answer for no class": [
        "INSERT INTO verdicts VALUES ('nobody', 'x', 1, 0, NULL, '2026-01-31T12:00:00.000+00:00')"
    ],
    "an answer that is neither": [
        "INSERT INTO verdicts VALUES ('b', 'x', 2, 0, NULL, '2026-01-31T12:00:00.000+00:00')"
    ],
    "an answer at no time": ["INSERT INTO verdicts VALUES ('b', 'x', 0, 0, NULL, 'noon')"],
    "an answer of bytes": ["INSERT INTO verdicts VALUES ('b', 'x', 0, 0, x'61', '2026-01-31T12:00:00.000+00:00')"],
    "a label more": ["INSERT INTO labels VALUES ('x', 'bank')"],
    "a label with control characters": ["INSERT INTO labels VALUES ('x', char(27))"],
    "an arrival more": ["INSERT INTO arrivals VALUES ('x', '2026-01-31T12:00:00.000+00:00')"],
    "an arrival at no time": ["INSERT INTO arrivals VALUES ('x', 5)"],
    "somebody else": ["UPDATE journal SET who = 'Eve' WHERE number = 1"],
    "another past": ["UPDATE journal SET before = '[]' WHERE number = 4"],
    "another head": ["UPDATE about SET value = 'x' WHERE key = 'head'"],
    "no head": ["DELETE FROM about WHERE key = 'head'"],
    "no format": ["UPDATE about SET value = '5' WHERE key = 'format'"],
    "an older format than it is": ["PRAGMA user_version = 1"],
    "a description less": ["DELETE FROM descriptions WHERE name = 'b'"],
    "a description more": ["INSERT INTO descriptions VALUES ('ä', 'x')"],
    "another description": ["UPDATE descriptions SET text = 'x'"],
    "a description that is bytes": ["UPDATE descriptions SET text = x'61'"],
    "a description that is a number": ["UPDATE descriptions SET text = 7"],
    "a description with control characters": ["UPDATE descriptions SET text = char(27)"],
    "a long description": ["UPDATE descriptions SET text = printf('%10001s', '')"],
    "a description of no class": ["UPDATE descriptions SET name = 'nobody' WHERE name = 'b'"],
    "a class that nothing stands for": ["DELETE FROM descriptions WHERE name = 'said'"],
    "another dataset": ["UPDATE about SET value = replace(value, '0', '1') WHERE key = 'data'"],
    "a view": ["CREATE VIEW v AS SELECT * FROM classes"],
    "a trigger": ["CREATE TRIGGER t AFTER INSERT ON classes BEGIN DELETE FROM classes; END"],
    "an index": ["CREATE INDEX i ON classes (support)"],
    "no table of descriptions": ["DROP TABLE descriptions"],
    "a view for a table": ["DROP TABLE classes", "CREATE VIEW classes AS SELECT name, content AS support FROM nodes"],
    "another column": ["ALTER TABLE classes ADD COLUMN more"],
    "a table more": ["CREATE TABLE more (x)"],
    "a table less": ["DROP TABLE removed"],
    "another format": ["PRAGMA user_version = 5"],
    "another application": ["PRAGMA application_id = 1"],
}


@pytest.mark.parametrize("statements", FORGED.values(), ids=FORGED.keys())
def test_a_file_that_was_edited_gets_a_sentence(written: Path, statements: list[str]) -> None:
    edit(written, *statements)
    with pytest.raises(Unusable) as error:
        reread(written)
    told = str(error.value)
    assert told.startswith(f"{written}: ")
    assert "\n" not in told
    assert len(told) < len(str(written)) + 150


@pytest.mark.parametrize("blob", [b"", b"\xff", b"{}", b"SQLite format 3\0" + bytes(84), b"SQLite format 3\0" * 300])
def test_what_is_no_state_at_all_is_refused(path: Path, blob: bytes) -> None:
    path.parent.mkdir(parents=True)
    path.write_bytes(blob)
    with pytest.raises(Unusable, match="not the state of a service, or its beginning is damaged"):
        reread(path)


def test_a_file_of_another_dataset_is_refused(written: Path) -> None:
    with pytest.raises(Unusable) as error:
        reread(written, "1" * 64)
    assert str(error.value) == f"{written}: the state of a service of another dataset"


def test_what_is_no_file_is_not_set_aside(path: Path) -> None:
    path.mkdir(parents=True)
    with pytest.raises(FewnodeError, match="not a regular file") as error:
        reread(path)
    assert not isinstance(error.value, Unusable)


def test_sizes_are_looked_at_first(written: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_BYTES", 1000)
    with pytest.raises(Unusable, match="larger than"):
        reread(written)
    monkeypatch.undo()
    monkeypatch.setitem(module.MOST, "classes", 1)
    with pytest.raises(Unusable, match="more than 1 rows in classes"):
        reread(written)
    monkeypatch.undo()
    monkeypatch.setattr(module, "MAX_CELL", 30)
    with pytest.raises(Unusable, match="too big"):
        reread(written)


def test_what_cannot_be_used_gets_another_name(written: Path) -> None:
    damaged = written.read_bytes()[:5000]
    for number in (1, 2):
        written.write_bytes(damaged)
        written.with_name(written.name + "-wal").write_bytes(b"a log that belongs to it")
        with closing(Store(written, DATA)) as store:
            with pytest.raises(Unusable) as error:
                store.read()
            told = store.set_aside(error.value)
            aside = f"{written.name}.unusable-{number}"
            assert told == f"{error.value}. It is now {aside}, and the service starts without it"
            assert written.with_name(aside).read_bytes() == damaged
            assert written.with_name(f"{aside}-wal").read_bytes() == b"a log that belongs to it"
            store.commit(FIRST, {})
        assert content(reread(written)) == content(FIRST)
    written.unlink()
    written.with_name(written.name + "-wal").write_bytes(b"a log without its file")
    with pytest.raises(Unusable, match="its write-ahead log is there"):
        reread(written)


def test_a_creation_that_was_killed_is_begun_anew(path: Path) -> None:
    path.parent.mkdir(parents=True)
    path.with_name(path.name + ".new").write_bytes(b"half of it")
    path.with_name(path.name + ".new-journal").write_bytes(b"and its journal")
    assert content(reread(path)) == content(State())
    assert sorted(each.name for each in path.parent.iterdir()) == ["state.sqlite", "state.sqlite.lock"]


def test_a_disk_that_is_full_leaves_what_was_there(store: Store, path: Path) -> None:
    kept = store.commit(FIRST, {})
    large = State({}, {f"n{i}": {"row": {"text": "x" * 1000}} for i in range(500)})
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        with pytest.raises(OSError, match=r"full|I/O"):
            store.commit(large, {})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    after = store.commit(SECOND, {})
    assert after.changes == kept.changes + 1
    store.close()
    assert reread(path).version == after.version


def test_a_state_is_immutable() -> None:
    one = State().with_class("a", ("x",))
    two = one.with_class("b", ("y",)).with_nodes({"n": {"row": {}}}).with_edges([(("n", "x"), True, False)])
    assert one.classes == {"a": ("x",)}
    assert two.without_class("a").classes == {"b": ("y",)}
    assert two.given == (("a", ("x",), None, ()), ("b", ("y",), None, ()))
    said = two.with_class("b", (), "a sentence")
    assert (said.given[1], said.descriptions) == (("b", (), "a sentence", ()), {"b": "a sentence"})
    assert said.with_class("b", ("y",)).descriptions == said.without_class("b").descriptions == {}
    gone = two.without_node("n", original=False)
    assert content(gone) == content(State(two.classes))
    assert gone.without_node("old", original=True).removed == {"old"}
    assert two.with_edges([(("n", "x"), False, False), (("p", "q"), False, True)]).edges == {("p", "q"): False}
    assert not two.same_network(one)
    assert gone.same_network(one)


def test_twenty_thousand_nodes(store: Store, path: Path) -> None:
    """Linear: a list that is copied for each of them would take a minute."""
    nodes = {f"node {i}": {"attributes": {"a": 1.0}} for i in range(20_000)}
    state = store.commit(State({}, nodes, frozenset(), {(name, "x"): True for name in nodes}), {"attach": []})
    store.close()
    again = reread(path)
    assert again.version == state.version
    assert len(again.nodes) == len(again.edges) == 20_000
