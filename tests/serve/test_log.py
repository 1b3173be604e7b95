"""The file of a service without the service: what is in it, and that damage does not go unnoticed."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from fewnode.errors import FewnodeError
from fewnode.service import log as module
from fewnode.service.bodies import AnswerChange, AttachChange, Change, ClassChange, Forget, NewNode
from fewnode.service.log import Log, Unusable
from fewnode.service.state import State

WHEN = "2026-01-31T12:00:00.000+00:00"


def answers(*said: tuple[str, str, str | None], **more: Any) -> AnswerChange:
    given = [{"node": node, "class": name, "verdict": verdict} for node, name, verdict in said]
    return AnswerChange.model_validate({"answers": given, **more})


CHANGES: list[Change] = [
    ClassChange(name="ä", support=["x", "y"], description="ein\nSatz"),
    AttachChange(nodes=[NewNode(node="new", attributes={"word": 1.5}, edges=["x"])]),
    answers(("z", "ä", "no"), ("u", "ä", "yes"), check=True, id="0123-abcd"),
    ClassChange(name="b", support=["v"]),
    answers(("y", "ä", None)),
    Forget(name="b"),
]


def content(state: State) -> tuple[Any, ...]:
    return [*state.classes.items()], state.nodes, state.arrivals


def add(log: Log, change: Change, who: str | None = "Ann") -> None:
    state = log.state.copied()
    state.apply(change, who, WHEN)
    log.append(state, change, who, WHEN)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "down" / "state.sqlite"


@pytest.fixture
def log(path: Path) -> Iterator[Log]:
    with closing(Log(path)) as kept:
        assert kept.open() is None
        yield kept


@pytest.fixture
def written(path: Path) -> Path:
    """A file with some changes in it, of a service that has ended."""
    with closing(Log(path)) as kept:
        kept.open()
        for change in CHANGES:
            add(kept, change)
        kept.mark(6, True, kept.marked(6, undone=True))
    return path


def reread(path: Path) -> Log:
    with closing(Log(path)) as kept:
        if said := kept.open():
            raise Unusable(said)
        return kept


def test_changes_add_up_and_come_back(log: Log, path: Path) -> None:
    versions = {log.version}
    for change in CHANGES:
        add(log, change)
        versions.add(log.version)
    state = log.state
    assert {name: [*given.support] for name, given in state.classes.items()} == {"ä": ["x", "u"]}
    assert [(name, v.yes, v.check, v.who) for name, v in state.classes["ä"].verdicts.items()] == [
        ("z", False, True, "Ann"),
        ("u", True, True, "Ann"),
    ]
    assert len(versions) == 7
    log.close()
    again = reread(path)
    assert content(again.state) == content(state)
    assert (again.version, again.ids) == (log.version, {"0123-abcd"})


def steps(log: Log) -> tuple[int | None, int | None]:
    """The numbers of the changes that would be undone, and made again."""
    found = [log.next_step(back) for back in (True, False)]
    return found[0] and found[0].n, found[1] and found[1].n


def test_every_state_before_is_that_of_fewer_changes(log: Log) -> None:
    states = [content(log.state)]
    for change in CHANGES:
        add(log, change)
        states.append(content(log.state))
    for n in reversed(range(1, 7)):
        assert steps(log) == (n, None if n == 6 else n + 1)
        log.mark(n, True, log.marked(n, undone=True))
        assert content(log.state) == states[n - 1]
    assert steps(log) == (None, 1)
    for n in range(1, 4):
        log.mark(n, False, log.marked(n, undone=False))
        assert content(log.state) == states[n]
    add(log, Forget(name="ä"))
    assert (*steps(log), log.total) == (7, None, 7), "what was undone before is outdated"
    assert not log.state.classes


def test_only_so_many_changes_can_be_undone(log: Log, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_UNDO", 3)
    states = []
    for change in CHANGES:
        states.append(content(log.state))
        add(log, change)
    for n in (6, 5, 4):
        assert steps(log)[0] == n
        log.mark(n, True, log.marked(n, undone=True))
        assert content(log.state) == states[n - 1]
    assert steps(log) == (None, 4)
    log.close()
    assert content(reread(path).state) == states[3]


def test_a_file_is_its_owners_and_has_one_service(log: Log) -> None:
    assert log.path.stat().st_mode & 0o077 == 0
    with pytest.raises(FewnodeError, match="another service keeps its state in it"):
        Log(log.path)
    log.close()
    Log(log.path).close()


def test_a_file_that_was_cut_is_noticed(written: Path, tmp_path: Path) -> None:
    whole = written.read_bytes()
    for size in (1, 99, 100, 4096, len(whole) // 2, len(whole) - 4096, len(whole) - 1):
        (tmp_path / "cut").write_bytes(whole[:size])
        with pytest.raises(Unusable):
            reread(tmp_path / "cut")


def test_a_damaged_file_is_refused_in_a_sentence_or_read(written: Path, tmp_path: Path) -> None:
    whole, rng = bytearray(written.read_bytes()), random.Random(0)
    for i, place in enumerate(rng.sample([place for place, byte in enumerate(whole) if byte], 200)):
        damaged = tmp_path / f"damaged-{i}"
        damaged.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << rng.randrange(8)]) + whole[place + 1 :])
        with closing(Log(damaged)) as log:
            told = log.open()
        assert told is None or told.endswith("and the service starts without it")


FORGED = {
    "a removed row": "DELETE FROM change WHERE n = 2",
    "another order": "UPDATE change SET n = -n",
    "another mark": "UPDATE change SET undone = 3 WHERE n = 4",
    "no time": "UPDATE change SET time = '' WHERE n = 4",
    "no change": "UPDATE change SET change = '{}' WHERE n = 1",
    "no JSON": "UPDATE change SET change = '[' WHERE n = 1",
    "deep JSON": "UPDATE change SET change = replace(printf('%100000s', ''), ' ', '[')",
    "a long name": "UPDATE change SET change = replace(change, '\"b\"', printf('\"%201s\"', 'x')) WHERE n = 4",
    "an answer for no class": "UPDATE change SET change = replace(change, 'ä', 'o') WHERE n = 5",
    "no count": "UPDATE about SET writes = 'x'",
    "nothing about it": "DELETE FROM about",
    "a trigger": "CREATE TRIGGER t AFTER INSERT ON change BEGIN DELETE FROM change; END",
    "another column": "ALTER TABLE change ADD COLUMN more",
    "a table less": "DROP TABLE about",
}


@pytest.mark.parametrize("statement", FORGED.values(), ids=FORGED.keys())
def test_a_file_that_was_edited_gets_a_sentence_and_another_name(written: Path, statement: str) -> None:
    with closing(sqlite3.connect(written)) as database:
        database.execute(statement)
        database.commit()
    with closing(Log(written)) as log:
        told = str(log.open())
        assert told.startswith(f"{written}: ")
        assert told.endswith(". It is now state.sqlite.unusable-1, and the service starts without it")
        assert "\n" not in told
        assert content(log.state) == content(State())
        add(log, CHANGES[0])
    assert [*reread(written).state.classes] == ["ä"]
    assert written.with_name("state.sqlite.unusable-1").exists()


def test_sizes_are_looked_at_first(written: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_BYTES", 1000)
    with pytest.raises(Unusable, match="larger than"):
        reread(written)


def test_a_log_without_its_file_and_a_folder_are_none(path: Path) -> None:
    path.mkdir(parents=True)
    with pytest.raises(FewnodeError, match="is no file") as error:
        reread(path)
    assert not isinstance(error.value, Unusable)
    path.rmdir()
    path.with_name(path.name + "-wal").write_bytes(b"a log without its file")
    with pytest.raises(Unusable, match="its write-ahead log is there"):
        reread(path)
