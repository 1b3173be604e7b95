"""Work that is cut into blocks, each of which becomes one file.

A file is there whole or not at all. So a run that was killed goes on with the blocks that are missing, and several
machines that share a disk can make them.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol, TypeAlias

from fewnode.machine import memory
from fewnode.storage.io import read_record


class Stage(Protocol):
    """Work in blocks, each of which becomes one file. It travels to other processes: small, and paths instead of data.

    `make(key)` writes the file `path(key)`, whole or not at all.
    """

    @property
    def keys(self) -> Sequence[tuple[int, ...]]: ...

    def path(self, key: tuple[int, ...]) -> Path: ...

    def make(self, key: tuple[int, ...]) -> None: ...


Runner: TypeAlias = Callable[[Stage, Sequence[tuple[int, ...]], Callable[[], None]], None]
"""Makes those blocks of a stage, here or elsewhere, and tells after each."""


def here(stage: Stage, keys: Sequence[tuple[int, ...]], done: Callable[[], None]) -> None:
    """One block after the other, in this process."""
    for key in keys:
        stage.make(key)
        memory.keep()
        done()


def finish(stage: Stage, runner: Runner, report: Callable[[int, int], None] = lambda done, total: None) -> None:
    """Make what is missing of a stage."""
    missing = [key for key in stage.keys if not stage.path(key).exists()]
    total, made = len(stage.keys), len(stage.keys) - len(missing)
    report(made, total)

    def done() -> None:
        nonlocal made
        made += 1
        report(made, total)

    if missing:
        runner(stage, missing, done)


def cut(n: int, step: int) -> list[tuple[int, int]]:
    """0 … n in ranges of `step`."""
    return [(low, min(low + step, n)) for low in range(0, n, step)]


def dataset_identity(home: Path) -> str:
    """The checksum that the dataset's manifest vouches for."""
    return str(read_record(home, "dataset", check=False)[0]["sha256"]["dataset.safetensors"])


def clear_blocks(folder: Path) -> None:
    with suppress(FileNotFoundError):
        shutil.rmtree(folder)
