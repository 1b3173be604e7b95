"""Run a grid: every cell that is not finished, in processes of one thread each, its result kept at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from time import monotonic
from typing import TypeAlias

import joblib
from joblib.externals.loky.process_executor import TerminatedWorkerError

from fewnode.experiment.grid import Grid
from fewnode.experiment.ledger import Ledger, Record, read_ledger
from fewnode.experiment.plan import PlannedCell, open_dataset, plan, trainings
from fewnode.experiment.results import LAYOUT, TABLE, read_results, table
from fewnode.experiment.work import THREADS, died, work, work_apart
from fewnode.machine.files import exclusive, write_text
from fewnode.machine.sheets import csv_text
from fewnode.scale.cluster import Lost, connected, each

Group: TypeAlias = Sequence[PlannedCell]
"""The cells of one training."""


@dataclass
class GridProgress:
    """How far a run is."""

    total: int
    done: int = 0
    failed: int = 0
    impossible: int = 0
    kept: int = 0
    """Of those, how many were finished before."""
    running: int = 0
    seconds_left: float = 0.0
    damaged: int = 0
    last: Record | None = field(default=None, repr=False)

    @property
    def finished(self) -> int:
        return self.done + self.failed + self.impossible

    def count(self, status: str) -> None:
        setattr(self, status, getattr(self, status) + 1)


def states(grid: Grid, out: Path, data_dir: Path | None = None, retry: bool = False) -> list[tuple[PlannedCell, str]]:
    """What a run would do with each cell, which is `to run`, or how it ended; nothing is run."""
    records = read_ledger(out)[0]
    return [(planned, _state(planned, records, retry)) for planned in plan(grid, data_dir)[1]]


def _state(planned: PlannedCell, records: Mapping[str, Record], retry: bool) -> str:
    if planned.impossible is not None:
        return "impossible"
    status = records[planned.id].status if planned.id in records else "impossible"
    return "to run" if status == "impossible" or (retry and status == "failed") else status


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
    with exclusive(out):
        records, damaged = read_ledger(out)
        progress, waiting = GridProgress(len(cells), damaged=damaged), list[PlannedCell]()
        for planned in cells:
            state = _state(planned, records, retry)
            if state == "to run":
                waiting.append(planned)
            else:
                progress.count(state)
                progress.kept += state != "impossible"
        groups = sorted(trainings(waiting), key=lambda group: group[0].cell.seed)  # who stops early has as many of each
        write_text(out / LAYOUT, layout.model_dump_json(exclude_defaults=True) + "\n")
        with closing(Ledger(out)) as ledger:
            for planned in cells:
                if planned.impossible is not None and planned.id not in records:
                    ledger.add(
                        Record(id=planned.id, cell=planned.identity, status="impossible", reason=planned.impossible)
                    )
            if backend == "ray":
                finished = _on_cluster(groups, workers, address, out, say)
            else:
                finished = map(work, groups) if workers == 1 else _in_processes(groups, workers)
            start, left = monotonic(), len(groups)
            progress.running = min(workers, left)
            report(progress)
            for count, new in enumerate(finished, 1):
                progress.running = min(workers, left - count)
                progress.seconds_left = (monotonic() - start) / count * (left - count)
                for record in new:
                    ledger.add(record)
                    progress.count(record.status)
                    progress.last = record
                    report(progress)
        write_text(out / TABLE, csv_text(table(read_results(out))))
    return progress


def _on_cluster(
    groups: Sequence[Group], workers: int, address: str | None, out: Path, say: Callable[[str], None]
) -> Iterator[list[Record]]:
    """A group whose worker dies goes to another; one that has killed several is failed.

    Ray as a backend of joblib gives results back when all are there, and ends with the first worker that dies.
    """
    with connected(address, out, say) as ray:
        by_training = {group[0].training: group for group in groups}
        for training, records in each(ray, work, {name: (group,) for name, group in by_training.items()}, workers):
            yield died(by_training[training]) if isinstance(records, Lost) else records


def _in_processes(groups: Sequence[Group], workers: int) -> Iterator[list[Record]]:
    """A group whose process dies is failed, and costs no other: who was running is then tried alone."""
    open_dataset.cache_clear()  # the processes have their own
    left = {group[0].training: group for group in groups}
    while left:
        try:
            with joblib.parallel_config(backend="loky", n_jobs=workers, inner_max_num_threads=THREADS):
                pool = joblib.Parallel(return_as="generator_unordered", batch_size=1, pre_dispatch=2 * workers)
                for training, records in pool(joblib.delayed(_named)(*item) for item in list(left.items())):
                    del left[training]
                    yield records
        except TerminatedWorkerError:
            for training in list(left)[:workers]:
                yield _alone(left.pop(training))


def _named(training: str, group: Group) -> tuple[str, list[Record]]:
    return training, work_apart(group)


def _alone(group: Group) -> list[Record]:
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        try:
            return pool.submit(work_apart, group).result()
        except BrokenProcessPool:
            return died(group)
