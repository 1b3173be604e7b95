"""Where tall matrices are while they are worked on: in memory, or in files that this process or others make.

Only this module knows what is in memory and what is in a file. A file is there whole or not at all: a fit that was
killed goes on with those that are missing, and machines that share a disk can make them. The numbers are those that
one process computes in memory, to the last bit.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

import fewnode
from fewnode.graph import Graph, Ints
from fewnode.machine import memory
from fewnode.represent.diffusion import Diffusion, Operators, diffused
from fewnode.represent.kinds import NARROW, LearnedRelations, is_narrow, operators_of
from fewnode.represent.tiles import WIDEST, TiledMatrix, tile_ranges
from fewnode.represent.views import Place
from fewnode.storage.io import load_dataset, map_safetensors, read_record, write_safetensors
from fewnode.vectors import Floats

AT_ONCE, STEPS = 12, 5
"""Tiles that a diffusion has in memory at most: its columns as read, joined and scaled, two steps of them, and the
rest are views."""
SHARED = 16
"""Columns of a tile where several workers share the work."""
LARGE = 1 << 16
"""Rows that may need more room than memory has."""

Pieces: TypeAlias = Mapping[Path, tuple[Any, ...]]
"""Files to be made, and what each is made from: small, since it travels to other processes."""
Runner: TypeAlias = Callable[[Callable[..., None], Pieces, Callable[[], None]], None]
"""Calls `make(path, *arguments)` for each piece, here or elsewhere, and tells after each."""
Report: TypeAlias = Callable[[str, int, int], None]


def here(make: Callable[..., None], pieces: Pieces, done: Callable[[], None]) -> None:
    """One piece after the other, in this process."""
    for path, arguments in pieces.items():
        make(path, *arguments)
        memory.keep()
        done()


def silent(what: str, done: int, total: int) -> None:
    """Tell nobody."""


def finish(make: Callable[..., None], pieces: Pieces, runner: Runner, report: Callable[[int, int], None]) -> None:
    """Make the files that are missing."""
    missing = {path: arguments for path, arguments in pieces.items() if not path.exists()}
    made = len(pieces) - len(missing)
    report(made, len(pieces))

    def done() -> None:
        nonlocal made
        made += 1
        report(made, len(pieces))

    if missing:
        runner(make, missing, done)


@dataclass(frozen=True)
class Room:
    """Memory; or a folder of files for a dataset in the directory `home`, made within `limit` bytes of memory."""

    folder: Path | None = None
    home: Path | None = None
    limit: int | None = None
    runner: Runner = field(default=here, compare=False)
    report: Report = field(default=silent, compare=False)

    @classmethod
    def of(
        cls,
        graph: Graph,
        folder: Path,
        settings: Mapping[str, Any],
        limit: int | None,
        runner: Runner = here,
        report: Report = silent,
    ) -> Room:
        """For a network in a directory, and files of these settings; memory for one that is nowhere else."""
        if graph.home is None:
            return cls()
        data = read_record(graph.home, "dataset", check=False)[0]["sha256"]["dataset.safetensors"]
        told = {**settings, "data": data, "version": fewnode.__version__, "limit": limit}
        return cls(folder.resolve() / _digest(told), graph.home, limit, runner, report)

    def empty(self, shape: tuple[int, int]) -> Floats:
        """A matrix to be filled; on the disk it is gone when nobody uses it any longer."""
        if self.folder is None or shape[0] < LARGE:
            return np.empty(shape, np.float32)
        return memory.scratch(self.folder, shape)

    def tiles(self, n: int, width: int) -> TiledMatrix:
        """Room for a matrix of n rows. A third of the limit is enough for the tiles that are in memory together.

        Several workers get narrower ones, so that there is one for each.
        """
        most = WIDEST if self.runner is here else SHARED
        fit = most if self.limit is None else self.limit // 3 // (4 * AT_ONCE * max(1, n))
        widest = None if self.folder is None else _power_of_two(min(fit, most))
        return TiledMatrix(n, [self.empty((n, high - low)) for low, high in tile_ranges(n, width, widest)])

    def source(self, name: str, make: Callable[[], TiledMatrix]) -> TiledMatrix:
        """What is diffused; made unless it is there."""
        if self.folder is None:
            return make()
        if not (path := self._source(name)).exists():
            write_safetensors(path, {str(i): tile for i, tile in enumerate(make().tiles)})
        tiles = map_safetensors(path)
        found = [tiles[str(i)] for i in range(len(tiles))]
        return TiledMatrix(found[0].shape[0] if found else 0, found)

    def diffused(
        self,
        operators: Operators,
        relations: LearnedRelations,
        source: str,
        z: TiledMatrix,
        wanted: Mapping[Place, Diffusion],
        nodes: Ints | None = None,
    ) -> dict[Place, TiledMatrix]:
        """Several diffusions of a source, of all nodes or of some: tile by tile.

        Most views over kinds of edges are of its first columns alone.
        """
        first = np.cumsum([0, *(tile.shape[1] for tile in z.tiles)])
        if self.folder is None or self.home is None:
            parts: list[Mapping[str, Floats]] = [
                _diffused_columns(operators, int(low), tile, wanted, nodes)
                for low, tile in zip(first[:-1], z.tiles, strict=True)
            ]
        else:
            step = self._joined(z, 0 if nodes is not None else len(wanted))
            told = [source, step, [[*place, *map(str, each)] for place, each in wanted.items()], str(relations)]
            name = _digest([*told, None if nodes is None else hashlib.sha256(nodes.tobytes()).hexdigest()])
            rows = None if nodes is None else self.folder / f"nodes-{name}.safetensors"
            if rows is not None and nodes is not None:
                write_safetensors(rows, {"nodes": nodes})
            home, path = (self.home, relations, rows), self._source(source)
            pieces = {
                self.folder / f"views-{name}" / f"{i:04d}.safetensors": (*home, path, i, i + step, dict(wanted))
                for i in range(0, len(z.tiles), step)
            }
            finish(write_diffused, pieces, self.runner, partial(self.report, f"views of {source}"))
            parts = [map_safetensors(path) for path in pieces]
        n = z.n if nodes is None else nodes.size
        return {
            place: TiledMatrix(n, [part[str(i)] for part in parts if str(i) in part]) for i, place in enumerate(wanted)
        }

    def _joined(self, z: TiledMatrix, views: int) -> int:
        """Tiles that one process takes through a diffusion together, if so many views of all nodes come of it.

        A product asks for rows of many nodes in no order. It takes little longer for 16 columns, a line of the cache,
        than for 4, so half of the limit is used for them.
        """
        if self.limit is None or self.runner is not here or not z.tiles:
            return 1
        columns = _power_of_two(min(WIDEST, self.limit // 2 // (4 * (STEPS + views) * max(1, z.n))))
        return max(1, columns // int(z.tiles[0].shape[1]))

    def _source(self, name: str) -> Path:
        return (self.folder or Path()) / f"source-{name.replace(' ', '-')}.safetensors"

    def clear(self) -> None:
        """Delete all of it: only a fit needs sources and views, and answers read rows of z."""
        if self.folder is not None:
            clear_folder(self.folder)
            with suppress(OSError):  # views of other settings, which were given up
                self.folder.parent.rmdir()


IN_MEMORY = Room()


def clear_folder(folder: Path) -> None:
    with suppress(FileNotFoundError):
        shutil.rmtree(folder)


def write_diffused(
    path: Path,
    home: Path,
    relations: LearnedRelations,
    rows: Path | None,
    source: Path,
    start: int,
    stop: int,
    wanted: Mapping[Place, Diffusion],
) -> None:
    """Diffusions of some tiles of a source, from file to file: a piece of work that any process can do."""
    tiles = map_safetensors(source)
    some = [tiles[str(i)] for i in range(start, min(stop, len(tiles)))]
    first = sum(tiles[str(i)].shape[1] for i in range(start))
    tile = some[0] if len(some) == 1 else np.concatenate(some, axis=1)
    nodes = None if rows is None else map_safetensors(rows)["nodes"]
    write_safetensors(path, _diffused_columns(_opened(home, relations), first, tile, wanted, nodes))


def _diffused_columns(
    operators: Operators, first: int, tile: Floats, wanted: Mapping[Place, Diffusion], nodes: Ints | None
) -> dict[str, Floats]:
    """Diffusions of a tile that begins at this column of its source, by their places among those that are wanted."""
    own = {str(i): each for i, each in enumerate(wanted.values()) if first < NARROW or not is_narrow(each)}
    return diffused(operators, tile, own, nodes)


@lru_cache(maxsize=1)
def _opened(home: Path, relations: LearnedRelations) -> Operators:
    """Of a dataset that whoever planned the work has checked."""
    return operators_of(load_dataset(home, check=False).graph, relations)


def _digest(told: Any) -> str:
    return hashlib.sha256(json.dumps(told, sort_keys=True, default=str).encode()).hexdigest()[:16]


def _power_of_two(number: int) -> int:
    """The largest that is not above it; 1 at least."""
    return 1 << max(0, number.bit_length() - 1)
