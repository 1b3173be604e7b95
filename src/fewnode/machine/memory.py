"""A share of memory that is kept: files are mapped, not read, and what was seen of them is let go in time.

The kernel counts pages of a mapped file as resident until somebody else needs the room. A process that promised to
stay within a limit gives them back itself, between two blocks or two episodes; what is needed again comes from the
page cache or the disk. Memory belongs to a process, so the limit is a process's, too.
"""

from __future__ import annotations

import ctypes
import math
import mmap
import os
import tempfile
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from fewnode.errors import FewnodeError

UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
LEAST = 1 << 29
"""Half a gigabyte: Python, NumPy and torch alone take most of that."""
CHUNK = 1 << 26
"""Bytes looked at between two looks at the limit."""
SCATTERED = 512
"""Rows, anywhere in a file, that are read between two looks: the kernel maps up to 2 MB around each of them."""

_maps: weakref.WeakSet[mmap.mmap] = weakref.WeakSet()
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
        raise FewnodeError(f"--memory {text!r}: expected a size such as 6G or 512M") from None
    if size < LEAST:
        raise FewnodeError(f"--memory {text}: at least {LEAST >> 20}M are needed")
    return size


def keep_within(limit: int | None) -> None:
    """From now on, `keep` lets mapped pages go when this process has more than `limit` bytes resident."""
    global _limit
    _limit = limit


def keep() -> None:
    """Let go of what was read of mapped files, if more than half of the limit is used. Costs microseconds if not."""
    if _limit is not None and resident() > 0.5 * _limit:
        for mapping in list(_maps):
            mapping.madvise(mmap.MADV_DONTNEED)


def give_back() -> None:
    """Let the system have what was freed: the C library keeps it for later, and it counts as ours until then."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # of glibc alone
    if trim is not None:
        trim(0)


def resident() -> int:
    """Bytes of this process in memory."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE
    except OSError:
        return 0  # not on Linux: the kernel alone decides then


def map_file(path: Path) -> NDArray[np.uint8]:
    """The bytes of a file, read-only, where they are."""
    with path.open("rb") as file:
        return map_open(file)


def map_open(file: BinaryIO) -> NDArray[np.uint8]:
    """The same of a file that is open, and may have no name."""
    if not os.fstat(file.fileno()).st_size:
        return np.zeros(0, np.uint8)
    mapping = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    _maps.add(mapping)
    return np.frombuffer(mapping, np.uint8)


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
        mapping = mmap.mmap(file.fileno(), size)
    _maps.add(mapping)
    return np.frombuffer(mapping, dtype).reshape(shape)


def taken(matrix: NDArray[Any], rows: NDArray[np.integer[Any]]) -> NDArray[Any]:
    """A copy of these rows of a matrix, which may be mapped."""
    if _limit is None:
        return matrix[rows]  # type: ignore[no-any-return]
    found = np.empty((rows.size, *matrix.shape[1:]), matrix.dtype)
    for low in range(0, rows.size, SCATTERED):
        found[low : low + SCATTERED] = matrix[rows[low : low + SCATTERED]]
        keep()
    return found


def chunks(array: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """The array in pieces of whole rows, with a look at the limit after each."""
    step = max(1, CHUNK // max(1, array[:1].nbytes))
    for start in range(0, array.shape[0], step):
        yield array[start : start + step]
        keep()
