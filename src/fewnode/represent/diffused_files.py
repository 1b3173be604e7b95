"""Diffusions of a source from file to file: a piece of work that any process can do."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from fewnode.graph import Graph
from fewnode.represent.diffusion import Diffusion, Operators, diffused
from fewnode.represent.kinds import NARROW, LearnedRelations, is_narrow, operators_of
from fewnode.storage.io import load_dataset, map_safetensors, write_safetensors


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
