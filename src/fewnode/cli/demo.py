"""`fewnode demo`: the main job, start to end, on the embedded network."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    pass


def demo() -> None: ...
