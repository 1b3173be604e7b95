"""Representations larger than memory: tiles of columns as files, made here or by the workers of a cluster.

A tile is one file, whole or not there. So a fit that was killed goes on with the tiles that are missing. What is
computed is what one process computes in memory, to the last bit.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import fewnode
from fewnode.graph import Graph, Ints
from fewnode.machine import memory
from fewnode.represent.blocks import Runner, clear_blocks, dataset_identity, finish, here
from fewnode.represent.diffused_files import DiffusedTiles
from fewnode.represent.diffusion import Diffusion
from fewnode.represent.kinds import LearnedRelations
from fewnode.represent.tiles import WIDEST, Tile, TiledMatrix
from fewnode.represent.views import Place
from fewnode.storage.io import map_safetensors, write_safetensors

AT_ONCE, STEPS = 12, 5
"""Tiles that a diffusion has in memory at most: its columns as read, joined and scaled, two steps of them, and the
rest are views."""

SHARED = 16
"""Columns of a tile where several workers share the work."""


def silent(what: str, done: int, total: int) -> None:
    """Tell nobody."""


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

    def empty(self, shape: tuple[int, int]) -> Tile:
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
