"""Run a grid: every cell that is not finished, in processes of one thread each, its result kept at once.

What is wrong with the grid as a whole (no such network, no such method or option) is said before anything runs. A cell
that a network cannot give (10-way with 6 classes) is impossible, which is a finding and no failure.
"""

from __future__ import annotations

import os
import platform
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

from threadpoolctl import threadpool_limits

import fewnode
from fewnode._system.files import exclusive, one_line, write_text
from fewnode._system.memory import peak_memory
from fewnode._system.sheets import csv_text
from fewnode.dataset import Dataset
from fewnode.embedding.workers import LOST, Workers, connected
from fewnode.episodes import EpisodeSampler
from fewnode.errors import FewnodeError, closest
from fewnode.evaluation import evaluate, fit_without_base
from fewnode.experiment.grid import Grid, GridRow, read_reported
from fewnode.experiment.ledger import Record, appending, read_ledger, short_hash
from fewnode.experiment.results import LAYOUT, TABLE, read_results, table
from fewnode.formats.published import network_of_the_paper
from fewnode.formats.sources import BUILT_IN, load
from fewnode.method import Fitted, HasHistory
from fewnode.methods.plugins import is_plugin, load_plugin
from fewnode.methods.table import METHODS
from fewnode.model.estimator import Estimator
from fewnode.paper import BUILDERS
from fewnode.paper.case import look
from fewnode.scores import METRICS
from fewnode.tasks import AllClassesSampler

ANY_TASK = ("deepwalk", "node2vec", "gpn-plus", "logistic")
"""They look at no task, or draw their own from the nodes of a class: a test holds them to it."""
REPORTED = Path(__file__).parents[1] / "paper" / "reported.toml"
DIGITS = 4
"""Scores are kept to so many decimals: a hundredth of a percent."""


@dataclass(frozen=True)
class PlannedCell:
    """One training of a row: its identity, where its network and its method are, and why it cannot be, if it cannot."""

    row: GridRow
    seed: int
    id: str
    identity: dict[str, Any]
    training: str
    """Cells that agree on this need one training between them."""
    source: str
    method: str
    """A name, or one's own as `FILE.py:CLASS`; the identity has the hash of its source."""
    impossible: str | None

    def record(self, status: Literal["done", "failed", "impossible"], **outcome: Any) -> Record:
        """The line of the ledger that says how the cell ended."""
        return Record(id=self.id, cell=self.identity, status=status, **outcome)


@dataclass
class GridProgress:
    """How far a run is. `kept`: how many of the cells were finished before."""

    total: int
    done: int = 0
    failed: int = 0
    impossible: int = 0
    kept: int = 0
    seconds_left: float = 0.0
    damaged: int = 0
    last: Record | None = field(default=None, repr=False)

    @property
    def finished(self) -> int:
        return self.done + self.failed + self.impossible

    def count(self, status: str) -> None:
        setattr(self, status, getattr(self, status) + 1)


def experiment(
    grid: Grid,
    out: Path,
    workers: int = 1,
    backend: str = "local",
    data_dir: Path | None = None,
    retry: bool = False,
    report: Callable[[GridProgress], None] = lambda progress: None,
    address: str | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> GridProgress:
    """Bring the results in `out` to what the grid asks for. Failed cells run again only if `retry`.

    A second run in the same directory is refused while the first one is at it.
    """
    layout, cells = plan(grid, data_dir)
    with exclusive(out), appending(out) as add:
        records, damaged = read_ledger(out)
        progress, trainings = GridProgress(len(cells), damaged=damaged), dict[str, list[PlannedCell]]()
        for planned in sorted(cells, key=lambda planned: planned.seed):  # who stops early has as many of each
            before = records[planned.id].status if planned.id in records else "impossible"
            if planned.impossible is not None:
                progress.count("impossible")
                if planned.id not in records:
                    add(planned.record("impossible", reason=planned.impossible))
            elif before == "impossible" or (retry and before == "failed"):
                trainings.setdefault(planned.training, []).append(planned)
            else:
                progress.count(before)
                progress.kept += 1
        write_text(out / LAYOUT, layout.model_dump_json(exclude_defaults=True) + "\n")
        cluster = connected(address, out, say) if backend == "ray" else nullcontext()
        start = time.monotonic()
        report(progress)
        with cluster as ray:
            for number, new in enumerate(_finished(trainings, Workers(workers, ray=ray)), 1):
                progress.seconds_left = (time.monotonic() - start) / number * (len(trainings) - number)
                for record in new:
                    add(record)
                    progress.count(record.status)
                    progress.last = record
                    report(progress)
        write_text(out / TABLE, csv_text(table(read_results(out))))
    return progress


def _finished(trainings: dict[str, list[PlannedCell]], pool: Workers) -> Iterator[list[Record]]:
    """A training whose process dies although it is alone is failed, and costs no other."""
    if not pool.alone:
        open_dataset.cache_clear()  # the processes have their own
    run = work if pool.alone else work_apart
    for training, records in pool.each(run, {name: (cells,) for name, cells in trainings.items()}):
        died = FewnodeError("its process died, perhaps for lack of memory")
        yield [_failed(planned, died) for planned in trainings[training]] if records is LOST else records


# --- before: networks, methods, and the identity of each cell -----------------------------------------------------


def plan(grid: Grid, data_dir: Path | None = None) -> tuple[Grid, list[PlannedCell]]:
    """The grid with the network's own name in each row and the ids of its cells; and its distinct cells, in its order.

    What the paper reports stands beside a network that is one of its four, whatever that is called.
    """
    folders = [*([data_dir] if data_dir else []), *grid.folders, Path()]
    sources = {name: _find(name, folders) for name in dict.fromkeys(row.dataset for row in grid.rows)}
    layout, hashes = grid.model_copy(deep=True), dict[str, str]()
    for name, source in sources.items():
        data = open_dataset(source)
        if hashes.setdefault(data.name, data.sha256) != data.sha256:
            raise FewnodeError(f"{name}: another dataset of the grid is called {data.name!r} too; rename one")
        of_paper = network_of_the_paper(data.graph)
        if of_paper and data.name not in {numbers.dataset for numbers in grid.reported}:
            own = [numbers for numbers in read_reported(REPORTED) if numbers.dataset == of_paper]
            layout.reported += [numbers.model_copy(update={"dataset": data.name}) for numbers in own]
    planned: dict[str, PlannedCell] = {}
    for row in layout.rows:
        cells = _planned(row, sources[row.dataset], folders)
        row.ids = [cell.id for cell in cells]
        planned |= dict(zip(row.ids, cells, strict=True))
    return layout, list(planned.values())


def _planned(row: GridRow, source: str, folders: Sequence[Path]) -> list[PlannedCell]:
    """The cells of a row, which gets its network's own name. What some methods learn is the same for every N, K, M."""
    data, (method, name, options) = open_dataset(source), _named(row, folders)
    impossible, row.way = _possible(row, data)
    row.dataset, row.method = data.name, Path(row.method).name
    asked = {**row.model_dump(exclude={"label", "ids", "seeds"}), "method": name, "options": options}
    if not row.without_base:
        del asked["protocol"]  # so that a cell of the paper's protocol is the same whatever else there is
    shape: Sequence[str] = () if method in ANY_TASK else ("way", "shot", "query")
    shape = ("protocol",) if row.without_base else shape
    cells = []
    for seed in row.seeds:
        identity = {**asked, "data_sha256": data.sha256, "seed": seed}
        key = short_hash({key: value for key, value in identity.items() if key != "dataset"})
        training = short_hash({key: identity[key] for key in ("data_sha256", "method", "options", "seed", *shape)})
        cells.append(PlannedCell(row, seed, key, identity, training, source, method, impossible))
    return cells


def _find(name: str, folders: Sequence[Path]) -> str:
    """A built-in name, or a dataset directory or file in one of the folders; `.npz` may be left out."""
    if name in BUILT_IN:
        return name
    for path in (folder / file for folder in folders for file in (name, f"{name}.npz")):
        if path.exists():
            return str(path.resolve())
    places = ", ".join(dict.fromkeys(str(folder) for folder in folders))
    how = f"; fewnode data build {name} makes it" if name in BUILDERS else closest(name, BUILT_IN)
    raise FewnodeError(f"{name}: no such dataset in {places}{how}; `data_dir` says where datasets are")


def _named(row: GridRow, folders: Sequence[Path]) -> tuple[str, str, dict[str, Any]]:
    """The method, its name (with the hash of its files if it is somebody's own), and all its options."""
    method = row.method
    if is_plugin(method):
        file = method.rpartition(":")[0]
        method = next((str(folder / method) for folder in folders if (folder / file).is_file()), method)
    Estimator(method, row.way, row.shot, **row.options)  # an unknown method or option is refused here
    if is_plugin(method):
        return method, f"{Path(method).name} {load_plugin(method)[1]}", row.options
    return method, method, {**METHODS[method], **row.options}


def _possible(row: GridRow, data: Dataset) -> tuple[str | None, int]:
    """Why a network has no such tasks, or None; and N, which is what the network has if all classes are asked about."""
    try:
        if row.without_base:
            return None, len(AllClassesSampler(data, row.shot).members)
        EpisodeSampler(data, "test", row.way, row.shot, row.shot, long_tail=row.queries == "long-tail")
        EpisodeSampler(data, "train", row.way, row.shot, row.query)
        EpisodeSampler(data, "valid", min(row.way, len(data.split.valid)), row.shot, row.shot)
    except FewnodeError as error:
        return str(error), row.way
    return None, row.way


@lru_cache(maxsize=16)
def open_dataset(source: str) -> Dataset:
    """The network, read once in a process."""
    return load(source)


# --- in a process: one training, then each of its cells -----------------------------------------------------------


def work_apart(cells: Sequence[PlannedCell]) -> list[Record]:
    """`work` in a process of its own, which ends when the run that started it is killed."""
    _end_with_parent()
    return work(cells)


@cache
def _end_with_parent() -> None:
    """Otherwise an orphan would train on, and then hold its memory for minutes."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def work(cells: Sequence[PlannedCell]) -> list[Record]:
    """The cells of one training, by one thread. Whatever goes wrong in them is recorded, and stops nobody else."""
    os.environ["OMP_NUM_THREADS"] = "1"  # of torch, which may be imported later
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)
    records, first = list[Record](), cells[0]
    start, cpu = time.perf_counter(), time.process_time()
    with threadpool_limits(1):
        try:
            data = open_dataset(first.source)
            start, cpu = time.perf_counter(), time.process_time()
            model = _fit(first, data)
        except Exception as error:
            return [_failed(planned, error, time.perf_counter() - start) for planned in cells]
        spent = time.perf_counter() - start, time.process_time() - cpu
        for planned in cells:
            try:
                records.append(_scored(planned, model, data, spent, shared=planned is not first))
            except Exception as error:
                records.append(_failed(planned, error, spent[0]))
    return records


def _fit(planned: PlannedCell, data: Dataset) -> Fitted:
    """On the classes of the split or, by the protocol all-classes, on the graph alone."""
    row, seed = planned.row, planned.seed
    if is_plugin(planned.method) and not planned.identity["method"].endswith(load_plugin(planned.method)[1]):
        raise FewnodeError(f"{planned.method}: has changed since the grid was planned; run the grid again")
    if row.without_base:
        return fit_without_base(planned.method, data, seed, row.options)
    return Estimator(planned.method, row.way, row.shot, row.query, seed, **row.options).fit(data)


def _scored(planned: PlannedCell, model: Fitted, data: Dataset, fit: tuple[float, float], shared: bool) -> Record:
    """Scores of all tasks, or the case study. `fit` is seconds, by the clock and of the processor."""
    row, start, cpu = planned.row, time.perf_counter(), time.process_time()
    outcome: dict[str, Any]
    if row.kind == "case" and isinstance(model, Estimator):
        outcome = {"case": look(model, data, row.way, row.shot, row.pool_seed)}
    else:
        asked: dict[str, Any] = {"classes": "all"} if row.without_base else {"way": row.way, "queries": row.queries}
        asked |= {"shot": row.shot, "tasks": row.tasks, "seed": row.pool_seed}
        result = evaluate(model, data, **asked, transductive=row.mode == "transductive")
        outcome = {"per_task": {metric: result.per_task[metric][0].round(DIGITS).tolist() for metric in METRICS}}
    method = model.method_ if isinstance(model, Estimator) else model
    provenance = {
        **_versions(),
        "fit_cpu_seconds": round(fit[1], 3),
        "evaluate_cpu_seconds": round(time.process_time() - cpu, 3),
        "memory_mb": peak_memory() >> 20,
        "shared_training": shared,
        "episodes": method.history_.done if isinstance(method, HasHistory) else None,
    }
    seconds = {"fit": round(fit[0], 3), "evaluate": round(time.perf_counter() - start, 3)}
    return planned.record("done", seconds=seconds, provenance=provenance, **outcome)


def _failed(planned: PlannedCell, error: BaseException, seconds: float = 0.0) -> Record:
    """The record of a cell that went wrong."""
    what = str(error) if isinstance(error, FewnodeError) else f"{type(error).__name__}: {one_line(error)}"
    return planned.record("failed", reason=what, seconds={"fit": round(seconds, 3)}, provenance=_versions())


def _versions() -> dict[str, Any]:
    versions = {"fewnode": fewnode.__version__, "python": platform.python_version()}
    with suppress(metadata.PackageNotFoundError):
        versions["torch"] = metadata.version("torch")
    return {"versions": versions, "threads": 1, "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
