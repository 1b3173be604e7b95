"""Files, read and written with care: every write is atomic, and only regular files of a bounded size are read."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO

from fewnode.errors import FewnodeError

try:
    import fcntl
except ModuleNotFoundError:  # pragma: no cover - Windows: two processes are not kept apart, what a kill left stays
    fcntl = None  # type: ignore[assignment]

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
    try:
        with open(temporary, "xb") as file:
            lock(file, wait=True)
            yield file
            file.flush()
            os.fsync(file.fileno())
            if fcntl is None:  # Windows renames closed files only; elsewhere a lock must hold until it has its name
                file.close()
            os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    fsync_directory(path.parent)


def write_text(path: Path, text: str) -> None:
    with atomic_write(path) as file:
        file.write(text.encode())


def lock(file: Any, wait: bool) -> None:
    """Lock an open file until it is closed. `BlockingIOError` if another process has, unless we wait for it."""
    if fcntl is not None:
        fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)


def fsync_directory(directory: Path) -> None:
    """Names in a directory are on the disk then. Where directories cannot be opened, the system sees to it."""
    if hasattr(os, "O_DIRECTORY"):
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _sweep(directory: Path, name: str = "") -> None:
    """Remove temp files, of one target or of all, that nobody is writing to any more."""
    for entry in os.scandir(directory) if fcntl is not None else ():
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
    made = [path for path in (directory, *directory.parents) if not path.exists()]
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / ".lock"
    try:
        file = open(path, "ab", opener=lambda name, flags: _open(name, flags, "O_NOFOLLOW"))  # noqa: SIM115
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise FewnodeError(f"{path}: a symbolic link, where a file is to be locked; remove it") from None
    with file:
        try:
            lock(file, wait=False)
        except BlockingIOError:
            raise FewnodeError(f"{directory}: another process is writing to it") from None
        for below in (directory, *(path for path in directory.iterdir() if path.is_dir())):
            _sweep(below)
        try:
            yield
        except FewnodeError:
            if made and list(directory.iterdir()) == [path]:
                path.unlink()
                for empty in made:
                    with suppress(OSError):
                        empty.rmdir()
            raise


def need_no_file(directory: Path) -> None:
    """Refuse a file where a directory is to be."""
    there = next((path for path in (directory, *directory.parents) if path.exists()), None)
    if there is not None and not there.is_dir():
        raise FewnodeError(f"{there}: a file, where a directory is to be written; choose another directory")


# --- reading ------------------------------------------------------------------------------------------------------


@contextmanager
def readable(path: Path) -> Iterator[BufferedReader]:
    """Open a regular file for reading, or say in one line why that cannot be.

    It is looked at once it is open: before, it could be exchanged for a pipe, at which one waits for ever.
    """
    try:
        file = open(path, "rb", opener=_open)  # noqa: SIM115
    except (FileNotFoundError, NotADirectoryError, ValueError):  # a NUL in a name is a ValueError
        raise FewnodeError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise FewnodeError(f"{path}: not a regular file") from None
    with file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise FewnodeError(f"{path}: not a regular file")
        yield file


def _open(path: str, flags: int, more: str = "O_NONBLOCK") -> int:
    """Open a file, but never wait at a pipe, nor follow a link if so asked, where the system can do that."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0) | getattr(os, more, 0), 0o666)


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
    lines = enumerate(read_text(path, MAX_TABLE_BYTES).splitlines(), 1)
    return ((number, line) for number, line in lines if line.strip())


def one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
