"""A limit of memory that is kept: files are mapped, not read, and what was seen of them is let go in time.

The kernel counts pages of a mapped file as resident until somebody else needs the room. A process that promised to
stay within a limit has a thread that gives them back; what is needed again comes from the page cache or the disk.
Nobody else has to think of it. Memory belongs to a process, so the limit is a process's, too.
"""

from __future__ import annotations

import ctypes
import math
import mmap
import os
import tempfile
import threading
import time
import weakref
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewnode.errors import FewnodeError

try:
    import resource
except ModuleNotFoundError:  # pragma: no cover - Windows
    resource = None  # type: ignore[assignment]

UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
LEAST_LIMIT = 1 << 29
"""Half a gigabyte: Python and NumPy alone take most of that."""
CHUNK_BYTES = 1 << 26
PAUSE, TRIM_PAUSE = 0.01, 1.0
"""Seconds between two looks at the limit, and between two times that freed memory is given back to the system."""
FULL, LITTLE = 0.7, 1 / 16
"""Shares of the limit: from which on files are let go; and where no more than that could be let go, what the process
has is its own, and the next look can wait."""
SCATTERED = 512
"""Rows, anywhere in a file, that are read between two looks: the kernel maps up to 2 MB around each of them."""

_maps: weakref.WeakSet[mmap.mmap] = weakref.WeakSet()
_maps_lock = threading.Lock()
_limit: int | None = None


def parse_size(text: str) -> int:
    """Bytes of `6G`, `512M` or a plain number.

    >>> parse_size("1.5G") == 3 << 29
    True
    """
    number, unit = (text[:-1], UNITS[text[-1].upper()]) if text[-1:].upper() in UNITS else (text, 1)
    try:
        size = int(float(number) * unit)
    except (ValueError, OverflowError):
        raise FewnodeError(f"memory {text!r}: expected a size such as 6G or 512M") from None
    if size < LEAST_LIMIT:
        raise FewnodeError(f"memory {text}: at least {LEAST_LIMIT >> 20}M are needed")
    return size


def keep_within(limit: int | None) -> None:
    """From now on this process stays within so many bytes, as far as mapped files are concerned."""
    global _limit
    _limit = limit
    if limit is not None:
        _watcher()


@cache
def _watcher() -> threading.Thread:
    """The thread that looks at the limit, one in a process."""

    def look() -> None:
        trim = getattr(ctypes.CDLL(None), "malloc_trim", lambda pad: None)  # of glibc alone
        trimmed, pause = 0.0, PAUSE
        while True:
            time.sleep(pause)
            freed = _release()
            pause = PAUSE if freed is None or freed > LITTLE * (_limit or 0) else 10 * PAUSE
            if freed is not None and time.monotonic() > trimmed + TRIM_PAUSE:
                trimmed = time.monotonic()
                trim(0)  # the C library keeps what was freed for later, and it counts as ours until then

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    return thread


def _release() -> int | None:
    """Let go of what was read of mapped files, if the process is near the limit: so many bytes."""
    limit, before = _limit, resident()
    if limit is None or before < FULL * limit:
        return None
    with _maps_lock:
        for mapping in list(_maps):
            mapping.madvise(mmap.MADV_DONTNEED)
    return before - resident()


def resident() -> int:
    """Bytes of this process in memory; 0 where it is not Linux and the kernel alone decides."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE
    except OSError:
        return 0


def peak_memory() -> int:
    """Most bytes of this process that were ever in memory; 0 where nobody knows."""
    if resource is None:
        return 0
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return kilobytes if os.uname().sysname == "Darwin" else kilobytes * 1024


def map_file(path: Path) -> NDArray[np.uint8]:
    """The bytes of a file, read-only, where they are."""
    with path.open("rb") as file:
        if not os.fstat(file.fileno()).st_size:
            return np.zeros(0, np.uint8)
        return np.frombuffer(_known(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)), np.uint8)


def scratch(folder: Path, shape: tuple[int, ...], dtype: Any = np.float32) -> NDArray[Any]:
    """An array on a file without a name, which is gone with it: room beyond memory.

    The room is taken at once: a disk that is full is an error here, not a crash when a page is written.
    """
    size = np.dtype(dtype).itemsize * math.prod(shape)
    if not size:
        return np.zeros(shape, dtype)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder) as file:
        os.posix_fallocate(file.fileno(), 0, size)
        return np.frombuffer(_known(mmap.mmap(file.fileno(), size)), dtype).reshape(shape)


def _known(mapping: mmap.mmap) -> mmap.mmap:
    with _maps_lock:
        _maps.add(mapping)
    return mapping


def taken(matrix: NDArray[Any], rows: NDArray[np.integer[Any]]) -> NDArray[Any]:
    """A copy of these rows of a matrix, which may be mapped."""
    if _limit is None:
        return matrix[rows]  # type: ignore[no-any-return]
    copy = np.empty((rows.size, *matrix.shape[1:]), matrix.dtype)
    for low in range(0, rows.size, SCATTERED):
        copy[low : low + SCATTERED] = matrix[rows[low : low + SCATTERED]]
        _release()
    return copy


def chunks(array: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """The array in pieces of whole rows, so that what is computed of each is small."""
    step = max(1, CHUNK_BYTES // max(1, array[:1].nbytes))
    return (array[start : start + step] for start in range(0, array.shape[0], step))
