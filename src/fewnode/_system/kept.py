"""Values that are dear to make, kept by what they were made from."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp

from fewnode._system import memory

T = TypeVar("T")


class Kept:
    """So many values by their keys; what was not asked for longest goes. A key must tell all that a value depends on.

    >>> kept = Kept(1)
    >>> kept("a", lambda: 1), kept("a", lambda: 2), kept("b", lambda: 3), kept("a", lambda: 4)
    (1, 1, 3, 4)
    """

    def __init__(self, most: int = 64) -> None:
        self.most, self._values = most, dict[Hashable, Any]()

    def __call__(self, key: Hashable, make: Callable[[], T]) -> T:
        """The value of that key; made where there is none. Two threads may both make it, and get the same."""
        value: T = self._values.pop(key, None)
        value = make() if value is None else value
        self._values[key] = value  # the last one to go now
        for old in list(self._values)[: max(0, len(self._values) - self.most)]:
            self._values.pop(old, None)
        return value

    def __contains__(self, key: Hashable) -> bool:
        return key in self._values


def fingerprint(*parts: Any) -> str:
    """SHA-256 of arrays, sparse matrices and plain values."""
    digest = hashlib.sha256()
    for part in parts:
        for array in (part.indptr, part.indices, part.data) if sp.issparse(part) else (part,):
            if not isinstance(array, np.ndarray):
                digest.update(repr(array).encode())
                continue
            digest.update(f"{array.dtype} {array.shape}".encode())
            for rows in memory.chunks(array):
                digest.update(np.ascontiguousarray(rows).data)
    return digest.hexdigest()


def threads() -> int:
    """How many threads linear algebra uses here; they change last bits, so what is kept by its bits depends on it."""
    from threadpoolctl import threadpool_info  # which looks at every library that is loaded

    return max((int(library["num_threads"]) for library in threadpool_info()), default=1)
