"""Files, read and written with care: every write is atomic, and only regular files of a bounded size are read."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO

from fewnode._system.locks import can_lock, fsync_directory, lock, renames_open_files
from fewnode.errors import FewnodeError

MAX_TABLE_BYTES = 1 << 28
"""Of a table or a list that is read as a whole."""
_TEMPORARY = ".fewnode-part"


def cache_directory(what: str) -> Path:
    """Where the user's own caches are. They may be deleted at any time."""
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fewnode" / what
    except RuntimeError:
        raise FileNotFoundError("this user has no home directory; XDG_CACHE_HOME can say where caches go") from None


# --- writing ------------------------------------------------------------------------------------------------------


@contextmanager
def atomic_write(path: Path) -> Iterator[BinaryIO]:
    """A file that appears at `path` whole or not at all: temp file, fsync, rename, fsync of the directory.

    The temp file is locked while it is written, so that one without a lock is known to be what a kill left behind.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and not path.is_file():
        raise FewnodeError(f"{path}: not a regular file, so it is not replaced by one")
    _sweep(path.parent, path.name)
    temporary = path.with_name(f".{path.name[:60]}.{secrets.token_hex(4)}{_TEMPORARY}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
    try:
        with os.fdopen(descriptor, "wb") as file:
            lock(descriptor, wait=True)
            yield file
            file.flush()
            os.fsync(descriptor)
            if renames_open_files():  # while it is locked, nobody takes it for what a kill left behind
                os.replace(temporary, path)
        if not renames_open_files():
            os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    fsync_directory(path.parent)


def _sweep(directory: Path, name: str = "") -> None:
    """Remove temp files, of one target or of all, that nobody is writing to any more."""
    for entry in os.scandir(directory) if can_lock() else ():
        if entry.name.endswith(_TEMPORARY) and entry.name.startswith(f".{name[:60]}") and entry.is_file():
            with suppress(OSError), open(entry.path, "rb") as file:
                lock(file, wait=False)
                os.unlink(entry.path)


@contextmanager
def exclusive(directory: Path) -> Iterator[None]:
    """Hold a directory for this process alone; a second one is told so instead of mixing its files in.

    What a killed one left half-written, in the directory or in one below it, is cleared away. A directory that was made
    for what is then refused goes again.
    """
    need_no_file(directory)
    made = missing(directory)
    directory.mkdir(parents=True, exist_ok=True)
    with _lock_file(directory / ".lock") as held:
        try:
            lock(held, wait=False)
        except BlockingIOError:
            raise FewnodeError(f"{directory}: another process is writing to it") from None
        for below in (directory, *(path for path in directory.iterdir() if path.is_dir())):
            _sweep(below)
        try:
            yield
        except FewnodeError:
            if made and [path.name for path in directory.iterdir()] == [".lock"]:
                (directory / ".lock").unlink()
                remove_empty(made)
            raise


def _lock_file(path: Path) -> BinaryIO:
    """Open for writing, but never what a symbolic link of that name points to."""
    try:
        return open(path, "ab", opener=_without_following)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise FewnodeError(f"{path}: a symbolic link, where a file is to be locked; remove it") from None


def need_no_file(directory: Path) -> None:
    """Refuse a file where a directory is to be."""
    there = next((path for path in (directory, *directory.parents) if path.exists()), None)
    if there is not None and not there.is_dir():
        raise FewnodeError(f"{there}: a file, where a directory is to be written; choose another --out")


def missing(directory: Path) -> list[Path]:
    """The directories that have to be made for it to be there, the innermost first."""
    return [path for path in (directory, *directory.parents) if not path.exists()]


def remove_empty(directories: Sequence[Path]) -> None:
    for directory in directories:
        with suppress(OSError):
            directory.rmdir()


def write_text(path: Path, text: str) -> None:
    with atomic_write(path) as file:
        file.write(text.encode())


# --- reading ------------------------------------------------------------------------------------------------------


@contextmanager
def readable(path: Path) -> Iterator[BufferedReader]:
    """Open a regular file for reading, or say in one line why that cannot be.

    It is looked at once it is open: before, it could be exchanged for a pipe, at which one waits for ever.
    """
    try:
        file = open(path, "rb", opener=_without_waiting)  # noqa: SIM115
    except (FileNotFoundError, NotADirectoryError, ValueError):  # a NUL in a name is a ValueError
        raise FewnodeError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise FewnodeError(f"{path}: not a regular file") from None
    with file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise FewnodeError(f"{path}: not a regular file")
        yield file


def _without_waiting(path: str, flags: int) -> int:
    """Open as `open` does, but fail at a pipe that nobody is at the other end of."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0), 0o666)


def _without_following(path: str, flags: int) -> int:
    return _without_waiting(path, flags | getattr(os, "O_NOFOLLOW", 0))


def read_text(path: Path, limit: int) -> str:
    with readable(path) as file:
        if os.fstat(file.fileno()).st_size > limit:
            raise FewnodeError(f"{path}: larger than {limit >> 10:,} kB")
        blob = file.read(limit)
    try:
        return blob.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = blob.count(b"\n", 0, error.start) + 1
        raise FewnodeError(f"{path}: line {line}: byte {error.start} is not UTF-8; save it as UTF-8") from None


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a text file that are not blank, with their numbers."""
    for number, line in enumerate(read_text(path, MAX_TABLE_BYTES).splitlines(), 1):
        if line.strip():
            yield number, line


def one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
