"""What outlives the process: one append-only table of changes in one SQLite file. The state is what they add up to.

A change is the validated body of its request, with who asked for it and when. It is committed and synced before it is
answered for. Undoing marks a change; nothing is ever deleted. SQLite's own checks run at the start.
"""

from __future__ import annotations

import errno
import os
import secrets
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from pydantic import TypeAdapter, ValidationError

from fewnode._system.files import fsync_directory, lock, one_line
from fewnode.errors import FewnodeError
from fewnode.service.bodies import AnswerChange, Change
from fewnode.service.state import State

STATE = "state.sqlite"
MAX_UNDO = 200
"""Changes that can be undone."""
STANDS, UNDONE, OUTDATED = 0, 1, 2
"""A change stands; was undone and may be made again; or was undone, and others were made since."""
MAX_BYTES, MAX_CELL = 4 << 30, 16 << 20
BESIDE = ("", "-wal", "-shm", "-journal")
"""A database is these files."""
TABLES = (
    "CREATE TABLE about (id TEXT NOT NULL, writes INTEGER NOT NULL)",
    "CREATE TABLE change (n INTEGER PRIMARY KEY, time TEXT NOT NULL, who TEXT, change TEXT NOT NULL, "
    "undone INTEGER NOT NULL)",
)
FAULTS = ("IOERR", "FULL", "CANTOPEN", "READONLY", "PERM", "BUSY", "LOCKED", "NOMEM")
MACHINE = {getattr(sqlite3, f"SQLITE_{fault}") for fault in FAULTS}
"""What SQLite says when the disk or another program is at fault, and not the file."""
_CHANGE: TypeAdapter[Change] = TypeAdapter(Change)


class Unusable(FewnodeError):
    """The file is damaged, or something else."""


class Entry(NamedTuple):
    """A change as the log has it."""

    n: int
    time: str
    who: str | None
    change: Change
    mark: int

    def apply_to(self, state: State) -> None:
        if self.mark == STANDS:
            state.apply(self.change, self.who, self.time)


class Log:
    """The file, held by this process alone, and the state that its changes add up to."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path, self._using, self._database = path, threading.RLock(), sqlite3.connect(":memory:")
        self._reset()
        self._lock = path.with_name(path.name + ".lock").open("w")
        try:
            lock(self._lock, wait=False)
        except BlockingIOError:
            self._lock.close()
            raise FewnodeError(f"{path}: another service keeps its state in it; pass another `state`") from None

    def _reset(self) -> None:
        self.state, self.ids, self.total = State(), set[str](), 0
        self._settled, self._late = State(), list[Entry]()
        """The state without the late changes, which are those that can be undone."""
        self._writes, self._id = 0, ""

    def open(self) -> str | None:
        """Read the file, or begin one. One that cannot be used gets another name; a sentence says so."""
        try:
            self._read()
        except Unusable as error:
            self._database.close()
            number = 1
            while any(self._beside(f".unusable-{number}{end}").exists() for end in BESIDE):
                number += 1
            for end in filter(lambda end: self._beside(end).exists(), BESIDE):
                self._beside(end).rename(self._beside(f".unusable-{number}{end}"))
            fsync_directory(self.path.parent)
            self._read()
            return f"{error}. It is now {self.path.name}.unusable-{number}, and the service starts without it"
        return None

    def close(self) -> None:
        with self._using:
            self._database.close()
        self._lock.close()

    # --- what is kept ---

    @property
    def version(self) -> str:
        """Says how many writes led here, and to which file."""
        return f"{self._writes}-{self._id}"

    @property
    def next_version(self) -> str:
        return f"{self._writes + 1}-{self._id}"

    def next_step(self, back: bool) -> Entry | None:
        """The change that would be undone next, or made again: the first of those that were undone last."""
        late = reversed(self._late) if back else self._late
        return next((entry for entry in late if entry.mark == (STANDS if back else UNDONE)), None)

    def entries(self, limit: int, offset: int = 0) -> list[Entry]:
        """Changes, the newest first."""
        return list(self._entries("ORDER BY n DESC LIMIT ? OFFSET ?", limit, offset))

    def append(self, state: State, change: Change, who: str | None, when: str) -> None:
        """Keep a change and the state that it leads to, or nothing. What was undone before cannot be made again now."""
        entry = Entry(self.total + 1, when, who, change, STANDS)
        with self._transaction():
            body = change.model_dump_json(by_alias=True)
            self._run("INSERT INTO change VALUES (?, ?, ?, ?, ?)", entry.n, when, who, body, STANDS)
            late = "UPDATE change SET undone = ? WHERE undone = ? AND n > ?"
            self._run(late, OUTDATED, UNDONE, self.total - MAX_UNDO)
        self._late = [each._replace(mark=OUTDATED) if each.mark == UNDONE else each for each in self._late]
        self._add(entry)
        self.state = state

    def marked(self, n: int, undone: bool) -> State:
        """The state without a late change, or with it again."""
        return self._folded(self._with_mark(n, undone))

    def mark(self, n: int, undone: bool, state: State) -> None:
        """A change counts no longer, or again; that leads to this state."""
        with self._transaction():
            self._run("UPDATE change SET undone = ? WHERE n = ?", UNDONE if undone else STANDS, n)
        self._late, self.state = self._with_mark(n, undone), state

    def touch(self) -> None:
        """Another version of the same changes: they are about another dataset now."""
        with self._transaction():
            pass

    def _with_mark(self, n: int, undone: bool) -> list[Entry]:
        mark = UNDONE if undone else STANDS
        return [entry._replace(mark=mark) if entry.n == n else entry for entry in self._late]

    def _folded(self, late: list[Entry]) -> State:
        state = self._settled.copied()
        for entry in late:
            entry.apply_to(state)
        return state

    def _add(self, entry: Entry) -> None:
        self.total = entry.n
        self._late.append(entry)
        if isinstance(entry.change, AnswerChange) and entry.change.id:
            self.ids.add(entry.change.id)
        if len(self._late) > MAX_UNDO:
            self._late.pop(0).apply_to(self._settled)

    # --- the file ---

    def _read(self) -> None:
        """Open the file and add its changes up; each is checked as if it came in a request."""
        there = [self._beside(end) for end in BESIDE if self._beside(end).exists()]
        if there and not self.path.exists():
            raise Unusable(f"{self.path}: the file is gone, but its write-ahead log is there")
        if self.path.exists() and not self.path.is_file():
            raise FewnodeError(f"{self.path} is no file; pass another `state`")
        if sum(path.stat().st_size for path in there) > MAX_BYTES:
            raise Unusable(f"{self.path}: larger than {MAX_BYTES >> 30} GB, which no log of a service is")
        if not there:
            os.close(os.open(self.path, os.O_CREAT | os.O_WRONLY, 0o600))  # for its owner alone
        self._reset()
        with self._told():
            self._connect()
            if self._run("PRAGMA quick_check(1)").fetchall() != [("ok",)]:
                raise self._damaged("SQLite's own check fails")
            ((self._id, writes),) = self._run("SELECT id, writes FROM about LIMIT 2").fetchall()
            self._writes = int(writes)
            for entry in self._entries("ORDER BY n"):
                if entry.n != self.total + 1 or entry.mark not in (STANDS, UNDONE, OUTDATED):
                    raise self._damaged(f"change {self.total + 1} is missing")
                self._add(entry)
            self.state = self._folded(self._late)

    def _connect(self) -> None:
        """Open the database: one that may be a stranger's, so nothing in its schema is run."""
        self._database = sqlite3.connect(self.path, timeout=5, isolation_level=None, check_same_thread=False)
        self._database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_CELL)
        for setting in ("trusted_schema=OFF", "cell_size_check=ON", "mmap_size=0", "synchronous=FULL"):
            self._run(f"PRAGMA {setting}")
        if not self._run("SELECT 1 FROM sqlite_schema").fetchall() and not self.path.stat().st_size:
            self._run("BEGIN IMMEDIATE")
            for table in TABLES:
                self._run(table)
            self._run("INSERT INTO about VALUES (?, 0)", secrets.token_hex(4))
            self._run("COMMIT")
            fsync_directory(self.path.parent)
        if [sql for (sql,) in self._run("SELECT sql FROM sqlite_schema LIMIT 9")] != [*TABLES]:
            raise Unusable(f"{self.path}: not the log of a service of this version")
        for statement in ("PRAGMA journal_mode=WAL", "BEGIN IMMEDIATE", "ROLLBACK"):  # it can be written to
            self._run(statement)

    def _beside(self, end: str) -> Path:
        return self.path.with_name(self.path.name + end)

    def _run(self, query: str, *values: int | str | None) -> sqlite3.Cursor:
        return self._database.execute(query, values)

    def _entries(self, how: str, *values: int) -> Iterator[Entry]:
        with self._using, self._told():
            query = f"SELECT n, time, who, change, undone FROM change {how}"  # noqa: S608 # nosec B608
            for n, time, who, change, mark in self._run(query, *values):
                try:
                    datetime.fromisoformat(time)
                    yield Entry(n, time, who, _CHANGE.validate_json(change), mark)
                except (ValidationError, TypeError) as error:
                    raise self._damaged(f"change {n}: {one_line(error)[:200]}") from None

    def _damaged(self, how: str) -> Unusable:
        return Unusable(f"{self.path}: damaged or edited by hand ({how})")

    @contextmanager
    def _told(self) -> Iterator[None]:
        """What goes wrong in reading, as an error of the file or of the machine."""
        try:
            yield
        except (sqlite3.Error, ValueError, KeyError, TypeError) as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in MACHINE:
                raise OSError(errno.EIO, f"{self.path}: {error}") from None
            raise self._damaged(one_line(error)[:200]) from None

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """One write: committed, synced, and moved into the file itself, so that a copy of the file is a backup."""
        with self._using:
            try:
                self._run("BEGIN IMMEDIATE")
                yield
                self._run("UPDATE about SET writes = ?", self._writes + 1)
                self._run("COMMIT")
            except sqlite3.Error as error:
                raise OSError(errno.EIO, str(error)) from None
            finally:
                with suppress(sqlite3.Error):
                    self._database.rollback()
            self._writes += 1
            with suppress(sqlite3.Error):  # it is durable already, and another program may be reading
                self._run("PRAGMA wal_checkpoint(TRUNCATE)")


def time_of() -> str:
    """This time as we write it: of the day and the zone, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def usual_place(run: Path | None, data: str | None, name: str) -> Path:
    """Where a log is kept: in the run, or beside the dataset, or with the user's other data; never where one stands."""
    if run is not None:
        return run / STATE
    if data is not None and (source := Path(data).resolve()).exists() and os.access(source.parent, os.W_OK):
        return source.with_name(f"{source.name}.{STATE}")
    home = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    return home / "fewnode" / f"{name}.{STATE}"
