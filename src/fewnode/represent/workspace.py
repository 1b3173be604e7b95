"""Representations larger than memory: tiles of columns as files, made here or by the workers of a cluster.

A tile is one file, whole or not there. So a fit that was killed goes on with the tiles that are missing. What is
computed is what one process computes in memory, to the last bit.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import numpy as np

import fewnode
from fewnode.graph import Graph, Ints
from fewnode.machine import memory
from fewnode.represent.diffusion import Diffusion, Operators, diffused
from fewnode.represent.kinds import NARROW, LearnedRelations, is_narrow, operators_of
from fewnode.represent.tiles import WIDEST, TiledMatrix
from fewnode.represent.views import Place
from fewnode.storage.io import load_dataset, map_safetensors, read_record, write_safetensors
from fewnode.vectors import Floats

AT_ONCE, STEPS = 12, 5
"""Tiles that a diffusion has in memory at most: its columns as read, joined and scaled, two steps of them, and the
rest are views."""

SHARED = 16
"""Columns of a tile where several workers share the work."""


def silent(what: str, done: int, total: int) -> None:
    """Tell nobody."""


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


@dataclass(frozen=True)
class DiffusedTiles:
    """A stage of work, a key for some tiles: several diffusions of their columns of a source."""

    home: Path
    folder: Path
    sources: tuple[Path, ...]
    wanted: tuple[Diffusion, ...]
    relations: LearnedRelations
    rows: Path | None
    joined: int = 1
    """Tiles of the source that go through a diffusion together."""

    @property
    def keys(self) -> list[tuple[int, ...]]:
        return [(i,) for i in range(0, len(self.sources), self.joined)]

    def path(self, key: tuple[int, ...]) -> Path:
        return self.folder / f"{key[0]:04d}.safetensors"

    def make(self, key: tuple[int, ...]) -> None:
        before, sources = self.sources[: key[0]], self.sources[key[0] : key[0] + self.joined]
        first = sum(map_safetensors(path)["h"].shape[1] for path in before)
        tiles = [map_safetensors(path)["h"] for path in sources]
        tile = tiles[0] if len(tiles) == 1 else np.concatenate(tiles, axis=1)
        own = {str(i): each for i, each in enumerate(self.wanted) if first < NARROW or not is_narrow(each)}
        nodes = None if self.rows is None else map_safetensors(self.rows)["nodes"]
        write_safetensors(self.path(key), diffused(_operators(self.home, self.relations), tile, own, nodes))


@lru_cache(maxsize=1)
def _operators(home: Path, relations: LearnedRelations) -> Operators:
    """Of a dataset that whoever planned the work has checked."""
    return operators_of(_graph(home), relations)


@lru_cache(maxsize=1)
def _graph(home: Path) -> Graph:
    return load_dataset(home, check=False).graph


@dataclass(frozen=True)
class Workspace:
    """A folder for tiles, of a dataset in a directory `home`, and who makes them."""

    folder: Path
    home: Path
    n: int
    limit: int | None = None
    runner: Runner = field(default=here, compare=False)
    report: Callable[[str, int, int], None] = field(default=silent, compare=False)

    @classmethod
    def of(
        cls,
        graph: Graph,
        folder: Path,
        settings: Mapping[str, Any],
        limit: int | None,
        runner: Runner = here,
        report: Callable[[str, int, int], None] = silent,
    ) -> Workspace | None:
        """For a network in a directory, and tiles of these settings; None for one that is nowhere but in memory."""
        if graph.home is None:
            return None
        told = {**settings, "data": dataset_identity(graph.home), "version": fewnode.__version__, "limit": limit}
        name = hashlib.sha256(json.dumps(told, sort_keys=True, default=str).encode()).hexdigest()[:16]
        return cls(folder.resolve() / name, graph.home, graph.n, limit, runner, report)

    @property
    def widest(self) -> int | None:
        """Columns of a tile, so that a third of the limit is enough for those that are in memory together.

        Several workers get narrower ones, so that there is one for each.
        """
        most = WIDEST if self.runner is here else SHARED
        fit = most if self.limit is None else self.limit // 3 // (4 * AT_ONCE * max(1, self.n))
        return _power_of_two(min(fit, most))

    def _joined(self, z: TiledMatrix, views: int) -> int:
        """Tiles that one process takes through a diffusion together, if so many views of all nodes come of it.

        A product asks for rows of many nodes in no order. It takes little longer for 16 columns, a line of the cache,
        than for 4, so half of the limit is used for them.
        """
        if self.limit is None or self.runner is not here or not z.tiles:
            return 1
        columns = _power_of_two(min(WIDEST, self.limit // 2 // (4 * (STEPS + views) * max(1, self.n))))
        return max(1, columns // int(z.tiles[0].shape[1]))

    def empty(self, shape: tuple[int, int]) -> Floats:
        """Room on the disk, which is gone when nobody uses it any longer."""
        return memory.scratch(self.folder, shape)

    def source(self, name: str, make: Callable[[], TiledMatrix]) -> TiledMatrix:
        """What is diffused, as files of that name; it is made if one of them is missing."""
        found = sorted(self.folder.glob(f"{_file_name(name)}-*-of-*.safetensors"))
        if not found or found != self._paths(name, int(found[0].stem.rpartition("-")[2])):
            made = make()
            found = self._paths(name, len(made.tiles))
            for path, tile in zip(found, made.tiles, strict=True):
                write_safetensors(path, {"h": tile})
        return TiledMatrix(self.n, [map_safetensors(path)["h"] for path in found])

    def clear(self) -> None:
        """Delete all of it: only a fit needs sources and views, and answers read rows of z."""
        clear_blocks(self.folder)
        with suppress(OSError):  # views of other settings, which were given up
            self.folder.parent.rmdir()

    def _paths(self, name: str, count: int) -> list[Path]:
        return [self.folder / f"{_file_name(name)}-{i:04d}-of-{count:04d}.safetensors" for i in range(count)]

    def diffused(
        self,
        source: str,
        z: TiledMatrix,
        wanted: Mapping[Place, Diffusion],
        relations: LearnedRelations,
        nodes: Ints | None,
    ) -> dict[Place, TiledMatrix]:
        """`diffused_tiles` of a source, tile by tile from file to file."""
        joined = self._joined(z, 0 if nodes is not None else len(wanted))
        told = json.dumps(
            [source, joined, [[*place, *map(str, each)] for place, each in wanted.items()], str(relations)]
        )
        name = hashlib.sha256(told.encode() + (b"" if nodes is None else nodes.tobytes())).hexdigest()[:16]
        rows = None if nodes is None else self.folder / f"nodes-{name}.safetensors"
        if rows is not None and nodes is not None:
            write_safetensors(rows, {"nodes": nodes})
        tiles = tuple(self._paths(source, len(z.tiles)))
        stage = DiffusedTiles(
            self.home,
            self.folder / f"{'views' if nodes is None else 'some'}-{name}",
            tiles,
            tuple(wanted.values()),
            relations,
            rows,
            joined,
        )
        finish(stage, self.runner, partial(self.report, f"views of {source}"))
        files = [map_safetensors(stage.path(key)) for key in stage.keys]
        n = z.n if nodes is None else nodes.size
        return {
            place: TiledMatrix(n, [file[str(i)] for file in files if str(i) in file]) for i, place in enumerate(wanted)
        }


def _power_of_two(number: int) -> int:
    """The largest that is not above it; 1 at least."""
    return 1 << max(0, number.bit_length() - 1)


def _file_name(source: str) -> str:
    return f"source-{source.replace(' ', '-')}"
