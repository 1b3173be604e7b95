"""Before a grid runs: find its networks and methods, give each cell its identity, and see which cells can be.

What is wrong with the grid as a whole (no such network, no such method or option) is said before anything runs. A cell
that a network cannot give (10-way with 6 classes) is impossible, which is a finding and no failure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Literal

from fewnode.dataset import Dataset
from fewnode.episodes import EpisodeSampler
from fewnode.errors import FewnodeError, closest
from fewnode.experiment.grid import EPISODES, Cell, Grid, read_reported
from fewnode.experiment.ledger import Record, short_hash
from fewnode.formats.published import network_of_the_paper
from fewnode.formats.sources import BUILT_IN, load
from fewnode.methods.plugins import is_plugin, load_plugin
from fewnode.methods.table import METHODS
from fewnode.model.estimator import Estimator
from fewnode.paper import BUILDERS
from fewnode.tasks import AllClassesSampler

ANY_TASK = ("deepwalk", "node2vec", "gpn-plus", "logistic")
"""They look at no task, or draw their own from the nodes of a class: a test holds them to it."""
REPORTED = Path(__file__).parents[1] / "paper" / "reported.toml"


@dataclass(frozen=True)
class PlannedCell:
    """A cell with its identity, where its network and its method are, and why it cannot be, if it cannot."""

    cell: Cell
    source: str
    method: str
    """A name, or one's own as `FILE.py:CLASS`; the identity has the hash of its source."""
    identity: dict[str, Any]
    impossible: str | None

    @property
    def id(self) -> str:
        return self.cell.id

    def record(self, status: Literal["done", "failed", "impossible"], **outcome: Any) -> Record:
        """The line of the ledger that says how the cell ended."""
        return Record(id=self.id, cell=self.identity, status=status, **outcome)

    @cached_property
    def training(self) -> str:
        """Cells that agree on this need one training between them.

        What some methods learn is the same for every N, K and M.
        """
        shape: Sequence[str] = () if self.method in ANY_TASK else ("way", "shot", "query")
        shape = ("protocol",) if self.without_base else shape
        return short_hash({key: self.identity[key] for key in ("data_sha256", "method", "options", "seed", *shape)})

    @property
    def without_base(self) -> bool:
        """Whether the method is fitted to the graph alone."""
        return self.cell.protocol != EPISODES


def plan(grid: Grid, data_dir: Path | None = None) -> tuple[Grid, list[PlannedCell]]:
    """The grid with the id and the network's own name in each cell; and its distinct cells, in its order.

    What the paper reports stands beside a network that is one of its four, whatever that is called.
    """
    folders = [*([data_dir] if data_dir else []), *grid.folders, Path()]
    sources = {name: _find(name, folders) for name in dict.fromkeys(cell.dataset for cell in grid.cells)}
    networks = {name: open_dataset(source) for name, source in sources.items()}
    hashes: dict[str, str] = {}
    for name, data in networks.items():
        if hashes.setdefault(data.name, data.sha256) != data.sha256:
            raise FewnodeError(f"{name}: another dataset of the grid is called {data.name!r} too; rename one")
    planned: dict[str, PlannedCell] = {}
    parts = []
    for part in grid.parts:
        rows = []
        for row in part.rows:
            source, meant = sources[row.cells[0].dataset], _named(row.cells[0], folders)
            cells = [_planned(cell, source, meant) for cell in row.cells]
            planned |= {one.id: one for one in cells}
            places = [one.cell.model_copy(update={"method": Path(one.cell.method).name}) for one in cells]
            rows.append(row.model_copy(update={"cells": places}))
        parts.append(part.model_copy(update={"rows": rows}))
    reported = list(grid.reported)
    for data in networks.values():
        of_paper = network_of_the_paper(data.graph)
        if of_paper and data.name not in {number.dataset for number in grid.reported}:
            numbers = [number for number in read_reported(REPORTED) if number.dataset == of_paper]
            reported += [number.model_copy(update={"dataset": data.name}) for number in numbers]
    return grid.model_copy(update={"parts": parts, "reported": reported}), list(planned.values())


def _planned(cell: Cell, source: str, meant: tuple[str, str, dict[str, Any]]) -> PlannedCell:
    data, (method, name, options) = open_dataset(source), meant
    impossible, way = _possible(source, cell.way, cell.shot, cell.query, cell.queries, cell.protocol)
    cell = cell.model_copy(update={"way": way, "dataset": data.name})
    identity = {**cell.model_dump(exclude={"id"}), "data_sha256": data.sha256, "method": name, "options": options}
    if cell.protocol == EPISODES:
        del identity["protocol"]  # what was measured before there were two keeps its identity
    key = short_hash({key: value for key, value in identity.items() if key != "dataset"})
    return PlannedCell(cell.model_copy(update={"id": key}), source, method, identity, impossible)


def trainings(cells: Iterable[PlannedCell]) -> list[list[PlannedCell]]:
    """The cells, those of one training together."""
    groups: dict[str, list[PlannedCell]] = {}
    for planned in cells:
        groups.setdefault(planned.training, []).append(planned)
    return list(groups.values())


def _find(name: str, folders: Sequence[Path]) -> str:
    """A built-in name, or a dataset directory or file in one of the folders; `.npz` may be left out."""
    if name in BUILT_IN:
        return name
    for folder in folders:
        for path in (folder / name, folder / f"{name}.npz"):
            if path.exists():
                return str(path.resolve())
    places = ", ".join(dict.fromkeys(str(folder) for folder in folders))
    how = f"; fewnode data build {name} makes it" if name in BUILDERS else closest(name, BUILT_IN)
    raise FewnodeError(f"{name}: no such dataset in {places}{how}; --data-dir says where datasets are")


def _named(cell: Cell, folders: Sequence[Path]) -> tuple[str, str, dict[str, Any]]:
    """The method, its name (with the hash of its files if it is somebody's own), and all its options."""
    method = cell.method
    if is_plugin(method):
        file = method.rpartition(":")[0]
        method = next((str(folder / method) for folder in folders if (folder / file).is_file()), method)
    Estimator(method, cell.way, cell.shot, **cell.options)  # an unknown method or option is refused here
    if is_plugin(method):
        return method, f"{Path(method).name} {load_plugin(method)[1]}", cell.options
    return method, method, {**METHODS[method], **cell.options}


@lru_cache(maxsize=4096)
def _possible(source: str, way: int, shot: int, query: int, queries: str, protocol: str) -> tuple[str | None, int]:
    """Why a network has no such tasks, or None; and N, which is what the network has if all classes are asked about."""
    data, spread = open_dataset(source), {"long_tail": True} if queries == "long-tail" else {}
    try:
        if protocol != EPISODES:
            return None, len(AllClassesSampler(data, shot).members)
        EpisodeSampler(data, "test", way, shot, shot, **spread)
        EpisodeSampler(data, "train", way, shot, query)
        EpisodeSampler(data, "valid", min(way, len(data.split.valid)), shot, shot)
    except FewnodeError as error:
        return str(error), way
    return None, way


@lru_cache(maxsize=16)
def open_dataset(source: str) -> Dataset:
    """The network, read once in a process."""
    return load(source)
