"""Values that are dear to make, kept by what they were made from."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

T = TypeVar("T")


class Kept:
    """So many values by their keys; what was not asked for longest goes. A key must tell all that a value depends on.

    >>> kept = Kept(1)
    >>> kept("a", lambda: 1), kept("a", lambda: 2), kept("b", lambda: 3), kept("a", lambda: 4)
    (1, 1, 3, 4)
    """

    def __init__(self, most: int = 64) -> None:
        self.most, self._values, self._changing = most, dict[Hashable, Any](), threading.Lock()

    def __call__(self, key: Hashable, make: Callable[[], T]) -> T:
        """The value of that key; made where there is none. Two threads may both make it, and get the same."""
        with self._changing:
            if key in self._values:
                self._values[key] = self._values.pop(key)  # the last one to go now
                return self._values[key]  # type: ignore[no-any-return]
        value = make()
        with self._changing:
            self._values[key] = value
            for old in list(self._values)[: max(0, len(self._values) - self.most)]:
                del self._values[old]
        return value

    def __contains__(self, key: Hashable) -> bool:
        return key in self._values
