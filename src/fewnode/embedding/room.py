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
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

import fewnode
from fewnode._system import memory
from fewnode.embedding.diffusion import Diffusion, Operators, diffused
from fewnode.embedding.kinds import NARROW, LearnedRelations, is_narrow, operators_of
from fewnode.embedding.tiles import WIDEST, TiledMatrix, tile_ranges
from fewnode.embedding.views import Place
from fewnode.embedding.workers import HERE, Workers
from fewnode.formats.directory import load_dataset, map_safetensors, read_record, write_safetensors
from fewnode.graph import Graph, Ints
from fewnode.vectors import Floats

TILE_ARRAYS, STEPS = 18, 5
"""Arrays as wide as a tile that take half of the limit; and those that a diffusion has beside its views: its columns
as read, joined and scaled, and two steps of them."""
SHARED = 16
"""Columns of a tile where several workers share the work: there is one for each."""
LARGE = 1 << 16
"""Rows that may need more room than memory has."""


@dataclass(frozen=True)
class Room:
    """Memory; or a folder of files for a dataset in the directory `home`, made by workers within their limit."""

    folder: Path | None = None
    home: Path | None = None
    workers: Workers = HERE

    @classmethod
    def of(cls, graph: Graph, folder: Path, settings: Mapping[str, Any], workers: Workers) -> Room:
        """For a network in a directory, and files of these settings; memory for one that is nowhere else."""
        if graph.home is None:
            return cls()
        data = read_record(graph.home, "dataset", check=False)[0]["sha256"]["dataset.safetensors"]
        made_of = {**settings, "data": data, "version": fewnode.__version__, "limit": workers.limit}
        return cls(folder.resolve() / _digest(made_of), graph.home, workers)

    def columns(self, n: int, arrays: int) -> int | None:
        """How many columns go together if so many arrays of n rows have them at once; None: as a cache holds them.

        It is a power of two. Half of the limit is for these arrays; the rest is for what else a process has.
        """
        if self.folder is None:
            return None
        limit, most = self.workers.limit, WIDEST if self.workers.alone else SHARED
        fit = most if limit is None else limit // 2 // (4 * arrays * max(1, n))
        return min(most, 1 << max(0, fit.bit_length() - 1))

    def empty(self, shape: tuple[int, int]) -> Floats:
        """A matrix to be filled; on the disk it is gone when nobody uses it any longer."""
        if self.folder is None or shape[0] < LARGE:
            return np.empty(shape, np.float32)
        return memory.scratch(self.folder, shape)

    def tiles(self, n: int, width: int) -> TiledMatrix:
        """Room for a matrix of n rows."""
        ranges = tile_ranges(n, width, self.columns(n, TILE_ARRAYS))
        return TiledMatrix(n, [self.empty((n, high - low)) for low, high in ranges])

    def source(self, name: str, make: Callable[[], TiledMatrix]) -> TiledMatrix:
        """What is diffused; made unless it is there."""
        if self.folder is None:
            return make()
        if not (path := self._source(name)).exists():
            write_safetensors(path, {str(i): tile for i, tile in enumerate(make().tiles)})
        tiles = map_safetensors(path)
        return TiledMatrix(tiles["0"].shape[0] if tiles else 0, [tiles[str(i)] for i in range(len(tiles))])

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

        Most views over kinds of edges are of its first columns alone. A product asks for rows of many nodes in no
        order, and takes little longer for 16 columns, a line of the cache, than for 4: so tiles are joined where
        there is room.
        """
        parts: list[Mapping[str, Floats]] = []
        if self.folder is None or self.home is None:
            first = np.cumsum([0, *(tile.shape[1] for tile in z.tiles)])
            parts = [
                _diffused_columns(operators, int(low), tile, wanted, nodes)
                for low, tile in zip(first[:-1], z.tiles, strict=True)
            ]
        else:
            columns = self.columns(z.n, STEPS + (0 if nodes is not None else len(wanted)))
            step = max(1, (columns or 1) // max([1, *(tile.shape[1] for tile in z.tiles)]))
            made_of = [source, step, [[*place, *map(str, each)] for place, each in wanted.items()], str(relations)]
            name = _digest([*made_of, None if nodes is None else hashlib.sha256(nodes.tobytes()).hexdigest()])
            rows = None
            if nodes is not None:
                write_safetensors(rows := self.folder / f"nodes-{name}.safetensors", {"nodes": nodes})
            files = {
                self.folder / f"views-{name}" / f"{i:04d}.safetensors": (
                    *(self.home, relations, rows, self._source(source)),
                    *(i, i + step, dict(wanted)),
                )
                for i in range(0, len(z.tiles), step)
            }
            self.workers.make(f"views of {source}", write_diffused, files)
            parts = [map_safetensors(path) for path in files]
        n = z.n if nodes is None else nodes.size
        return {
            place: TiledMatrix(n, [part[str(i)] for part in parts if str(i) in part]) for i, place in enumerate(wanted)
        }

    def _source(self, name: str) -> Path:
        return (self.folder or Path()) / f"source-{name.replace(' ', '-')}.safetensors"

    def clear(self) -> None:
        """Delete all of it: only a fit needs sources and views, and answers read rows of z."""
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)
            with suppress(OSError):  # views of other settings, which were given up
                self.folder.parent.rmdir()


IN_MEMORY = Room()


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
    """The matrices of a dataset that whoever planned the work has checked."""
    return operators_of(load_dataset(home, check=False).graph, relations)


def _digest(made_of: Any) -> str:
    return hashlib.sha256(json.dumps(made_of, sort_keys=True, default=str).encode()).hexdigest()[:16]
