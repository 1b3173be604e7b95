"""A mapping that never changes and is yet cheap to add to: what is made of it shares most of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")
MOST = 512
"""Entries that are copied for every addition; when there are more, all are copied once."""


class Layered(Mapping[K, V]):
    """Entries that stay, and a few newer ones above them.

    >>> one = Layered[str, int]().updated({"a": 1})
    >>> two = one.updated({"a": 2, "b": 3})
    >>> dict(one), dict(two), len(two)
    ({'a': 1}, {'a': 2, 'b': 3}, 2)
    """

    __slots__ = ("_new", "_old")

    def __init__(self, old: dict[K, V] | None = None, new: dict[K, V] | None = None) -> None:
        self._old: dict[K, V] = {} if old is None else old
        self._new: dict[K, V] = {} if new is None else new

    def updated(self, more: Mapping[K, V]) -> Layered[K, V]:
        new = {**self._new, **more}
        return Layered(self._old, new) if len(new) <= MOST else Layered({**self._old, **new})

    def __getitem__(self, key: K) -> V:
        return self._new[key] if key in self._new else self._old[key]

    def __contains__(self, key: object) -> bool:
        return key in self._new or key in self._old

    def __iter__(self) -> Iterator[K]:
        yield from self._old
        yield from (key for key in self._new if key not in self._old)

    def __len__(self) -> int:
        return len(self._old) + sum(key not in self._old for key in self._new)
