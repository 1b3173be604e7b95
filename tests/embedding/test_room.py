"""GPN+ from disk to disk: the same bits as in memory, and what a killed fit has made is not made again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from fewnode.dataset import Dataset
from fewnode.embedding import room as rooms
from fewnode.embedding import tiles
from fewnode.embedding.kinds import KIND_VIEWS
from fewnode.embedding.room import IN_MEMORY, Room
from fewnode.embedding.workers import Workers
from fewnode.episodes import EpisodeSampler
from fewnode.formats.directory import load_dataset, save_dataset
from fewnode.graph import Graph
from fewnode.methods.plus import GPNPlus
from graphs import planted_edges

NONE = EpisodeSampler.none()


@pytest.fixture(name="data", params=["sparse", "dense"])
def _data(request: pytest.FixtureRequest, planted: Dataset, tmp_path: Path) -> Dataset:
    x = planted.graph.x
    if request.param == "dense":
        x = np.asarray(x[:, :30].toarray() if sp.issparse(x) else x[:, :30]) + 0.1
    save_dataset(replace(planted, graph=Graph(planted.graph.adj, x)), tmp_path / "data")
    return load_dataset(tmp_path / "data")


def samplers(data: Dataset, base: bool) -> tuple[EpisodeSampler, EpisodeSampler]:
    if not base:
        return NONE, NONE
    return EpisodeSampler(data, "train", 3, 1, 1), EpisodeSampler(data, "valid", 2, 1, 1)


def fitted(data: Dataset, base: bool, room: Room = IN_MEMORY) -> GPNPlus:
    method = GPNPlus(rank=48)
    method.room = room
    return method.fit(data.graph, *samplers(data, base))


def narrow(data: Dataset, columns: int, **more: Any) -> Workers:
    """As if memory were so small that a tile has so many columns."""
    return Workers(limit=2 * 4 * rooms.TILE_ARRAYS * data.graph.n * columns, **more)


@pytest.mark.parametrize("base", [True, False])
def test_from_disk_to_disk_it_is_the_same_to_the_last_bit(
    data: Dataset, base: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tiles, "ROWS", 64)
    monkeypatch.setattr(rooms, "LARGE", 1)
    plain = fitted(data, base)
    room = Room.of(data.graph, tmp_path / "views", {}, narrow(data, 8))
    assert room.tiles(data.graph.n, 20).tiles[0].shape == (data.graph.n, 8)
    tiled = fitted(data, base, room)
    assert tiled.mixture_.weight == plain.mixture_.weight
    assert np.array_equal(tiled.embed(data.graph).z, plain.embed(data.graph).z)
    assert all(np.array_equal(tensor, plain.state()[name]) for name, tensor in tiled.state().items())
    again = GPNPlus(rank=48).restore(data.graph.n_features, plain.state())
    again.room = replace(room, folder=tmp_path / "others")
    assert np.array_equal(again.embed(data.graph).z, plain.embed(data.graph).z)


@pytest.mark.parametrize("signal", ["weights", "relation", "direction"])
def test_weights_kinds_and_directions_are_read_from_disk_too(signal: str, tmp_path: Path) -> None:
    save_dataset(planted_edges(signal), tmp_path / "data")
    data = load_dataset(tmp_path / "data")
    plain = fitted(data, base=True)
    room = Room.of(data.graph, tmp_path / "views", {}, narrow(data, 8))
    assert any(view.name in KIND_VIEWS for view in plain.mixture_.weight)
    tiled = fitted(data, base=True, room=room)
    assert tiled.mixture_.relations == plain.mixture_.relations
    assert {name: value.tolist() for name, value in tiled.state().items()} == {
        name: value.tolist() for name, value in plain.state().items()
    }
    assert np.array_equal(tiled.embed(data.graph).z, plain.embed(data.graph).z)


def test_a_killed_fit_goes_on_with_the_tiles_that_are_missing(data: Dataset, tmp_path: Path) -> None:
    def killed(what: str, done: int, total: int) -> None:
        if what == "views of structure" and done == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fitted(data, True, Room.of(data.graph, tmp_path / "views", {}, narrow(data, 2, report=killed)))
    made = {path: path.stat().st_mtime_ns for path in (tmp_path / "views").rglob("0*.safetensors")}
    assert made
    finished = fitted(data, True, Room.of(data.graph, tmp_path / "views", {}, narrow(data, 2)))
    assert {path: path.stat().st_mtime_ns for path in made} == made, "no tile is made twice"
    assert np.array_equal(finished.embed(data.graph).z, fitted(data, True).embed(data.graph).z)
