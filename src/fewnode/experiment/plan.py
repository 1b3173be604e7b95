"""Before a grid runs: find its networks and methods, give each cell its identity, and see which cells can be.

What is wrong with the grid as a whole (no such network, no such method or option) is said before anything runs. A cell
that a network cannot give (10-way with 6 classes) is impossible, which is a finding and no failure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from fewnode.dataset import Dataset
from fewnode.datasets import BUILT_IN, load
from fewnode.episodes import EpisodeSampler
from fewnode.errors import FewnodeError, closest
from fewnode.estimator import Estimator
from fewnode.experiment.grid import PROTOCOLS, Cell, Grid
from fewnode.experiment.ledger import Record, short_hash
from fewnode.methods.plugins import is_plugin, load_plugin
from fewnode.methods.table import METHODS
from fewnode.paper import BUILDERS
from fewnode.protocols.all_classes import AllClassesSampler

ANY_TASK = ("deepwalk", "node2vec", "gpn-plus", "logistic")
"""They look at no task, or draw their own from the nodes of a class: a test holds them to it."""
GUESS = 10.0
"""Seconds that a training is taken to need while nothing like it has been measured."""


@dataclass(frozen=True)
class PlannedCell:
    """A cell with its identity, where its network and its method are, and why it cannot be, if it cannot."""

    id: str
    cell: Cell
    source: str
    method: str
    """A name, or one's own as `FILE.py:CLASS`; the identity has the hash of its source."""
    identity: dict[str, Any]
    impossible: str | None

    @cached_property
    def training(self) -> str:
        """Cells that agree on this need one training between them.

        What some methods learn is the same for every N, K and M.
        """
        if self.without_base:
            shape: tuple[str, ...] = ("protocol",)
        else:
            shape = () if self.method in ANY_TASK else ("way", "shot", "query")
        return short_hash({key: self.identity[key] for key in ("data_sha256", "method", "options", "seed", *shape)})

    @property
    def without_base(self) -> bool:
        """Whether the method is fitted to the graph alone."""
        return self.cell.protocol != PROTOCOLS[0]


def plan(grid: Grid, data_dir: Path | None = None) -> list[PlannedCell]:
    """Every cell of the grid, in its order; one that two parts ask for is there twice, with the same id."""
    planner = Planner([*([data_dir] if data_dir else []), *grid.folders, Path()])
    return [planner.plan(cell) for cell in grid.cells]


def trainings(cells: Iterable[PlannedCell]) -> list[list[PlannedCell]]:
    """The distinct cells, those of one training together."""
    groups: dict[str, dict[str, PlannedCell]] = {}
    for planned in cells:
        groups.setdefault(planned.training, {})[planned.id] = planned
    return [list(group.values()) for group in groups.values()]


class Planner:
    """Looks things up once: a grid has thousands of cells, but few networks and methods."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self.folders = folders
        self._sources: dict[str, str] = {}
        self._names: dict[str, str] = {}
        self._methods: dict[str, tuple[str, str, dict[str, Any]]] = {}
        self._reasons: dict[tuple[str, int, int, int, str, str], tuple[str | None, int]] = {}

    def plan(self, cell: Cell) -> PlannedCell:
        if cell.dataset not in self._sources:
            self._sources[cell.dataset] = self._find(cell.dataset)
        source = self._sources[cell.dataset]
        data = open_dataset(source)
        if self._names.setdefault(data.name, data.sha256) != data.sha256:
            raise FewnodeError(f"{cell.dataset}: another dataset of the grid is called {data.name!r} too; rename one")
        method, name, options = self._method(cell)
        reason, way = self._reason(source, cell)
        cell = replace(cell, way=way)
        identity = {**asdict(cell), "dataset": data.name, "data_sha256": data.sha256, "method": name}
        identity["options"] = options
        if cell.protocol == PROTOCOLS[0]:
            del identity["protocol"]  # what was measured before there were two keeps its identity
        hashed = {key: value for key, value in identity.items() if key != "dataset"}
        found = replace(cell, dataset=data.name)
        return PlannedCell(short_hash(hashed), found, source, method, identity, reason)

    def _find(self, name: str) -> str:
        """A built-in name, or a dataset directory or file in one of the folders; `.npz` may be left out."""
        if name in BUILT_IN:
            return name
        for folder in self.folders:
            for path in (folder / name, folder / f"{name}.npz"):
                if path.exists():
                    return str(path.resolve())
        places = ", ".join(dict.fromkeys(str(folder) for folder in self.folders))
        how = f"; fewnode data build {name} makes it" if name in BUILDERS else closest(name, BUILT_IN)
        raise FewnodeError(f"{name}: no such dataset in {places}{how}; --data-dir says where datasets are")

    def _method(self, cell: Cell) -> tuple[str, str, dict[str, Any]]:
        """The method, its name (with the hash of its files if it is somebody's own), and all its options."""
        key = f"{cell.method} {sorted(cell.options.items())}"
        if key not in self._methods:
            method = self._file(cell.method) if is_plugin(cell.method) else cell.method
            Estimator(method, cell.way, cell.shot, **cell.options)  # an unknown method or option is refused here
            if is_plugin(method):
                name, preset = f"{Path(cell.method).name} {load_plugin(method)[1]}", {}
            else:
                name, preset = method, METHODS[method]
            self._methods[key] = method, name, {**preset, **cell.options}
        return self._methods[key]

    def _file(self, name: str) -> str:
        for folder in self.folders:
            if Path(folder / name.rpartition(":")[0]).is_file():
                return str(folder / name)
        return name

    def _reason(self, source: str, cell: Cell) -> tuple[str | None, int]:
        """Why the cell cannot be, or None; and N, which is what the network has if all classes are asked about."""
        key = (source, cell.way, cell.shot, cell.query, cell.queries, cell.protocol)
        if key not in self._reasons:
            data = open_dataset(source)
            if cell.protocol == PROTOCOLS[0]:
                self._reasons[key] = impossible(data, cell.way, cell.shot, cell.query, cell.queries), cell.way
            else:
                self._reasons[key] = _all_classes(data, cell.shot)
        return self._reasons[key]


def impossible(data: Dataset, way: int, shot: int, query: int, queries: str = "balanced") -> str | None:
    """Why the network has no such tasks, or None."""
    spread: Any = {"long_tail": True} if queries == "long-tail" else {}
    try:
        EpisodeSampler(data, "test", way, shot, shot, **spread)
        EpisodeSampler(data, "train", way, shot, query)
        EpisodeSampler(data, "valid", min(way, len(data.split.valid)), shot, shot)
    except FewnodeError as error:
        return str(error)
    return None


def _all_classes(data: Dataset, shot: int) -> tuple[str | None, int]:
    try:
        return None, len(AllClassesSampler(data, shot).members)
    except FewnodeError as error:
        return str(error), 0


@lru_cache(maxsize=16)
def open_dataset(source: str) -> Dataset:
    """The network, read once in a process."""
    return load(source)


# --- how long it may take -----------------------------------------------------------------------------------------


class TimeEstimate:
    """Seconds that a training and its evaluations take, from cells like them that are done."""

    def __init__(self, records: Mapping[str, Record]) -> None:
        self._seen: dict[tuple[str, ...], tuple[float, int]] = {}
        for record in records.values():
            self.learn(record)

    def learn(self, record: Record) -> None:
        if record.seconds:
            spent = sum(record.seconds.values())
            for key in _like(record.cell):
                total, count = self._seen.get(key, (0.0, 0))
                self._seen[key] = total + spent, count + 1

    def expect(self, group: Sequence[PlannedCell]) -> float:
        """Seconds for the cells of one training: the mean on the same network, else on any."""
        for key in _like(group[0].identity):
            if key in self._seen:
                total, count = self._seen[key]
                return total / count
        return GUESS

    def knows(self, group: Sequence[PlannedCell]) -> bool:
        return _like(group[0].identity)[-1] in self._seen


def _like(cell: Mapping[str, Any]) -> tuple[tuple[str, ...], ...]:
    return (cell["dataset"], cell["method"]), (cell["method"],)
