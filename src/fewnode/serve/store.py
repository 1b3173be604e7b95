"""What outlives the process: one SQLite file with the state and a journal of every change.

A change is committed and synced before it is answered for. It is moved from the write-ahead log into the file itself at
once, or within half a second where changes come thick and fast, so that a copy of the file alone is a backup. SQLite
notices a damaged page. What it cannot notice (a letter of a name, a row that is gone) the digests do: each row of the
journal has the sum of the hashes of all rows of the state, and a hash that covers the row before it. Checksums tell
damage, not authors.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from fewnode.errors import FewnodeError
from fewnode.machine.files import one_line, readable
from fewnode.machine.system import fsync_directory, lock
from fewnode.serve.journal import Entry, History
from fewnode.serve.state import Row, State
from fewnode.serve.state_rows import (
    CHECKED,
    DELETE,
    MOST,
    PUT,
    TABLES,
    as_json,
    as_moment,
    before,
    chained,
    difference,
    first_line,
    hashed,
    line_of,
    out_of_place,
    rows_of,
)

FORMAT = 4
APPLICATION = 0x666E6F64
"""SQLite's place for whose file it is: `fnod`."""
REST = 0.25
"""Seconds between two moves of the log into the file, where changes follow each other faster."""
MAX_BYTES, MAX_CELL = 4 << 30, 16 << 20
BESIDE = ("", "-wal", "-shm", "-journal")
"""A database is these files."""
MACHINE = (
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_NOMEM,
)
"""What SQLite says when the disk or another program is at fault, and not the file."""


class Unusable(FewnodeError):
    """The file is damaged, or something else, or of another dataset."""


class Store:
    """The file, held by this process alone. `read` it once; after that `commit` what changes."""

    def __init__(self, path: Path, data_sha256: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path, self.data = path, data_sha256
        self._database: sqlite3.Connection | None = None
        self._state, self._chain, self.history = State(), "", History()
        self._using, self._moved = threading.RLock(), 0.0
        self._timer: threading.Timer | None = None
        self._lock = path.with_name(path.name + ".lock").open("w")
        try:
            lock(self._lock, wait=False)
        except BlockingIOError:
            self._lock.close()
            raise FewnodeError(f"{path}: another service keeps its state in it; pass another --state") from None

    def read(self) -> State:
        """The state that the last acknowledged change left; `Unusable` if there is a file that does not tell."""
        if not any(self._beside(end).exists() for end in BESIDE):
            self._create()
        self._check_file()
        try:
            with self._told():
                self._database = _opened(self.path)
                self._check_schema()
                self.history = History()
                chain, changes, digest = self._read_journal()
                state = replace(self._read_state(), changes=changes, touched=())
                if f"{state.digest:064x}" != digest:
                    raise self._damaged("a row of the state is missing, added or changed")
                for statement in ("PRAGMA journal_mode=WAL", "BEGIN IMMEDIATE", "ROLLBACK"):  # it can be written to
                    self._rows(statement)
        except Exception:
            self._close_database()
            raise
        self._state, self._chain = state, chain
        return state

    def commit(self, state: State, change: Mapping[str, Any], who: str | None = None) -> State:
        """Keep all that is new in the state and a row of the journal, or nothing; the state with its number."""
        gone, come = difference(self._state, state)
        if not gone and not come:
            return self._state
        digest = self._state.digest - sum(map(hashed, gone)) + sum(map(hashed, come))
        kept = replace(state, changes=self._state.changes + 1, digest=digest % (1 << 256), touched=())
        entry = (kept.changes, now(), who, as_json(change), before(self._state, gone, come), f"{kept.digest:064x}")
        chain = chained(self._chain, entry)
        replaced = {(table, *key) for table, key, _ in come}
        with self._using, self._transaction() as database:
            for table, key, _ in gone:
                if (table, *key) not in replaced:
                    database.execute(DELETE[table], key)
            for table, key, values in come:
                database.execute(PUT[table], (*key, *values))
            for _, key, values in out_of_place(self._state, kept):
                database.execute(DELETE["classes"], key)
                database.execute(PUT["classes"], (*key, *values))
            database.execute("INSERT INTO journal VALUES (?, ?, ?, ?, ?, ?, ?)", (*entry, chain))
            database.execute("UPDATE about SET value = ? WHERE key = 'head'", (chain,))
        self._state, self._chain = kept, chain
        self.history.add(kept.changes, change)
        if time.monotonic() - self._moved >= REST:
            self._move()
        elif self._timer is None or not self._timer.is_alive():
            self._timer = threading.Timer(REST, self._move)
            self._timer.daemon = True
            self._timer.start()
        return kept

    def _move(self) -> None:
        """Move what is in the log into the file itself. It is durable already, and another program may be reading."""
        with self._using, suppress(sqlite3.Error):
            if self._database is not None:
                self._database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                self._moved = time.monotonic()

    def entries(self, limit: int, offset: int = 0) -> list[Entry]:
        """Changes, the newest first."""
        query = "SELECT number, time, who, change FROM journal ORDER BY number DESC LIMIT ? OFFSET ?"
        with self._using, self._told():
            return [Entry(n, when, who, orjson.loads(said)) for n, when, who, said in self._rows(query, limit, offset)]

    def undoing(self, number: int) -> tuple[Entry, list[Row]]:
        """A change, and the rows that it touched as they were before."""
        query = "SELECT number, time, who, change, before FROM journal WHERE number = ?"
        with self._using, self._told():
            _, when, who, change, was = self._rows(query, number).fetchone()
        return Entry(number, when, who, orjson.loads(change)), rows_of(was)

    def set_aside(self, error: Unusable) -> str:
        """Give the file that cannot be used another name, begin an empty one, and say so."""
        self._close_database()
        number = 1
        while any(self._aside(number, end).exists() for end in BESIDE):
            number += 1
        for end in BESIDE:
            if self._beside(end).exists():
                self._beside(end).rename(self._aside(number, end))
        fsync_directory(self.path.parent)
        self.read()
        return f"{error}. It is now {self._aside(number).name}, and the service starts without it"

    def close(self) -> None:
        self._close_database()
        self._lock.close()

    # --- the file ---

    def _beside(self, end: str) -> Path:
        return self.path.with_name(self.path.name + end)

    def _aside(self, number: int, end: str = "") -> Path:
        return self.path.with_name(f"{self.path.name}.unusable-{number}{end}")

    def _close_database(self) -> None:
        with self._using:
            if self._database is not None:
                with suppress(sqlite3.Error):
                    self._database.close()
            self._database = None

    def _create(self) -> None:
        """An empty state, made under another name: where there is a file, it is whole."""
        new = self._beside(".new")
        for end in BESIDE:
            new.with_name(new.name + end).unlink(missing_ok=True)
        head = chained("", (FORMAT, self.data))
        with self._told():
            database = _opened(new)
            database.execute("BEGIN")
            for table in TABLES.values():
                database.execute(table)
            about = {"format": str(FORMAT), "data": self.data, "head": head}
            database.executemany("INSERT INTO about VALUES (?, ?)", about.items())
            database.execute(f"PRAGMA application_id = {APPLICATION}")
            database.execute(f"PRAGMA user_version = {FORMAT}")
            database.execute("COMMIT")
            database.execute("PRAGMA journal_mode=WAL")
            database.close()
        with new.open("rb") as file:
            os.fsync(file.fileno())
        new.rename(self.path)
        fsync_directory(self.path.parent)

    def _check_file(self) -> None:
        """Whose file it is and how large, before SQLite looks at it."""
        if not self.path.exists():
            raise self._damaged("the file is gone, but its write-ahead log is there")
        if sum(self._beside(end).stat().st_size for end in BESIDE if self._beside(end).exists()) > MAX_BYTES:
            raise Unusable(f"{self.path}: larger than {MAX_BYTES >> 30} GB, which no state of a service is")
        with readable(self.path) as file:
            head = file.read(100)
        versions = head[18:20] in (b"\1\1", b"\2\2")  # any other may not be written to
        if head[:16] != b"SQLite format 3\0" or head[68:72] != APPLICATION.to_bytes(4, "big") or not versions:
            raise Unusable(f"{self.path}: not the state of a service, or its beginning is damaged")
        if (found := int.from_bytes(head[60:64], "big")) != FORMAT:
            raise Unusable(f"{self.path}: of format {found}, expected {FORMAT}")

    def _check_schema(self) -> None:
        """Exactly our tables, before anything is read from them: no view, trigger or index of a stranger."""
        found = self._rows("SELECT type, name, sql FROM sqlite_schema LIMIT 99").fetchall()
        ours = [row for row in found if row[0] != "index" or row[2] is not None]  # SQLite's own indices have no text
        wanted = [("table", name, sql) for name, sql in TABLES.items()]
        if sorted(ours, key=repr) != sorted(wanted, key=repr):  # a damaged name may be no text
            raise Unusable(f"{self.path}: not the tables of a service")
        for table, most in MOST.items():
            if self._rows(f"SELECT count(*) > {most} FROM {table}").fetchone() != (0,):  # noqa: S608 # nosec B608
                raise Unusable(f"{self.path}: more than {most:,} rows in {table}")
        if self._rows("PRAGMA integrity_check(1)").fetchall() != [("ok",)]:
            raise self._damaged("SQLite's own check fails")

    # --- rows ---

    def _rows(self, query: str, *values: int) -> sqlite3.Cursor:
        assert self._database is not None, "read comes first"  # noqa: S101 # nosec B101
        return self._database.execute(query, values)

    def _read_journal(self) -> tuple[str, int, str]:
        """Of its last row: the chain, the number and the state's digest. Every row is there, and as it was written."""
        about = dict(self._rows("SELECT key, value FROM about LIMIT 9"))
        if about.keys() != {"format", "data", "head"} or about["format"] != str(FORMAT):
            raise self._damaged("it does not say what it is")
        if about["data"] != self.data:
            raise Unusable(f"{self.path}: the state of a service of another dataset")
        chain, number, state = chained("", (FORMAT, self.data)), 0, f"{0:064x}"
        for number, when, who, change, was, state, said in self._rows("SELECT * FROM journal ORDER BY number"):
            chain = chained(chain, (number, when, who, change, was, state))
            if said != chain:
                raise self._damaged(f"row {number} of its journal, or one before it, is missing or changed")
            self._follow(number, change)
        if about["head"] != chain:
            raise self._damaged("the last rows of its journal are missing")
        return chain, number, state

    def _follow(self, number: int, change: str) -> None:
        try:
            self.history.add(number, orjson.loads(change))
        except (ValueError, TypeError, IndexError):
            raise self._damaged(f"row {number} of its journal is not as the service writes it") from None

    def _read_state(self) -> State:
        """Every value is checked as if it came in a request. Whether its nodes exist, the network tells."""
        digest = 0
        found: dict[str, dict[Any, Any]] = {}
        for table, checked in CHECKED.items():
            found[table] = {}
            for row in self._rows(f"SELECT * FROM {table} ORDER BY rowid"):  # noqa: S608 # nosec B608
                try:
                    key, value = checked(*row)
                except ValueError as error:  # which a ValidationError is
                    raise self._damaged(f"a row of {table}: {first_line(error)}") from None
                line = line_of(table, key, value)
                if (*line[1], *line[2]) != row:
                    raise self._damaged(f"a row of {table} is not as the service writes it")
                found[table][key] = value
                digest += hashed(line)
        classes, said = found["classes"], found["descriptions"]
        if said.keys() - classes.keys() or any(not support and name not in said for name, support in classes.items()):
            raise self._damaged("a class without nodes and without a description, or the other way round")
        if any(verdict.yes != (node in classes.get(name, ())) for (name, node), verdict in found["verdicts"].items()):
            raise self._damaged("an answer that its class contradicts")
        return State(**{**found, "removed": frozenset(found["removed"])}, digest=digest % (1 << 256))  # type: ignore[arg-type]

    def _damaged(self, how: str) -> Unusable:
        return Unusable(f"{self.path}: damaged or edited by hand ({how})")

    # --- what can go wrong ---

    @contextmanager
    def _told(self) -> Iterator[None]:
        """What SQLite says while reading, as an error of the file or of the machine."""
        try:
            yield
        except (sqlite3.Error, UnicodeError) as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in MACHINE:
                raise OSError(errno.EIO, f"{self.path}: {error}") from None
            raise self._damaged(one_line(error)) from None

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        database = self._database
        assert database is not None, "read comes first"  # noqa: S101 # nosec B101
        try:
            database.execute("BEGIN IMMEDIATE")
            yield database
            database.execute("COMMIT")
        except sqlite3.Error as error:
            raise OSError(errno.EIO, str(error)) from None
        finally:
            if database.in_transaction:
                with suppress(sqlite3.Error):
                    database.execute("ROLLBACK")


def now() -> str:
    return as_moment(datetime.now(UTC))


def _opened(path: Path) -> sqlite3.Connection:
    """A database that may be a stranger's: nothing in its schema is run, and no cell is larger than we write it."""
    database = sqlite3.connect(path, timeout=5, isolation_level=None, check_same_thread=False)
    database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_CELL)
    for setting in ("trusted_schema=OFF", "cell_size_check=ON", "mmap_size=0", "synchronous=FULL"):
        database.execute(f"PRAGMA {setting}")
    return database
