"""What only some operating systems have: locks of files, the peak of memory, a faster event loop.

Nothing here is needed. Without locks two processes are not kept from writing to one folder, and what a kill left
behind is not cleared away. Without a peak it is 0. Without uvloop the service runs on asyncio's own loop.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Protocol


class Descriptor(Protocol):
    """An open file."""

    def fileno(self) -> int: ...


def can_lock() -> bool:
    """Whether files can be locked here."""
    try:
        import fcntl  # noqa: F401
    except ModuleNotFoundError:
        return False
    return True


def renames_open_files() -> bool:
    """Whether a file can be renamed while it is open. On Windows it cannot."""
    return can_lock()


def lock(file: Descriptor | int, wait: bool) -> None:
    """Lock a file until it is closed. `BlockingIOError` if another process has, unless we wait for it."""
    if can_lock():
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)


def fsync_directory(directory: Path) -> None:
    """Names in a directory are on the disk then. Where directories cannot be opened, the system sees to it."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def peak_memory() -> int:
    """Most bytes of this process that were ever in memory; 0 where nobody knows."""
    try:
        import resource
    except ModuleNotFoundError:
        return 0
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return kilobytes if os.uname().sysname == "Darwin" else kilobytes * 1024


def run_loop(main: Coroutine[Any, Any, None]) -> None:
    """Run it to its end, on uvloop if that is installed."""
    run: Callable[[Coroutine[Any, Any, None]], None]
    try:
        from uvloop import run
    except ModuleNotFoundError:
        from asyncio import run
    run(main)


def threads() -> int:
    """How many threads linear algebra uses here; they change last bits."""
    from threadpoolctl import threadpool_info  # which looks at every library that is loaded

    return max((int(library["num_threads"]) for library in threadpool_info()), default=1)
