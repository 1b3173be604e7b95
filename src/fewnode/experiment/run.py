"""Run a grid: every cell that is not finished, in processes of one thread each, its result kept at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import TypeAlias

import joblib
from joblib.externals.loky.process_executor import TerminatedWorkerError

from fewnode.experiment.grid import Grid
from fewnode.experiment.ledger import Ledger, Record, read_ledger
from fewnode.experiment.plan import PlannedCell, TimeEstimate, open_dataset, plan, trainings
from fewnode.experiment.results import TABLE, read_results, table, write_layout
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

    def count(self, record: Record) -> None:
        setattr(self, record.status, getattr(self, record.status) + 1)


@dataclass(frozen=True)
class DryRun:
    """What a run would do: the cells by what is known of them, and an estimate of the time."""

    cells: list[tuple[PlannedCell, str]]
    seconds: float
    guessed: int
    """Trainings whose time is a guess, because nothing like them has been measured."""


def dry_run(grid: Grid, out: Path, workers: int, data_dir: Path | None = None, retry: bool = False) -> DryRun:
    """Look, and run nothing."""
    planned = {p.id: p for p in plan(grid, data_dir)}
    records = read_ledger(out)[0]
    groups = trainings(p for p in planned.values() if _is_open(p, records, retry))
    estimate = TimeEstimate(records)
    waiting = {p.id for group in groups for p in group}
    state = {p.id: "to run" if p.id in waiting else _state(p, records) for p in planned.values()}
    seconds = sum(estimate.expect(group) for group in groups) / workers
    return DryRun([(p, state[p.id]) for p in planned.values()], seconds, sum(not estimate.knows(g) for g in groups))


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
    run = _runner(backend, workers, address, out, say)
    planned = plan(grid, data_dir)
    with exclusive(out):
        records, damaged = read_ledger(out)
        distinct = {p.id: p for p in planned}.values()
        groups = trainings(p for p in distinct if _is_open(p, records, retry))
        estimate = TimeEstimate(records)
        # seed after seed: whoever stops early has as many of each. The long ones first: none is left over at the end
        groups.sort(key=lambda group: (group[0].cell.seed, -estimate.expect(group)))
        progress = replace(_so_far(list(distinct), records, retry), damaged=damaged)
        write_layout(out, grid, planned)
        with closing(Ledger(out)) as ledger:
            for p in distinct:
                if p.impossible is not None and p.id not in records:
                    ledger.add(Record(p.id, p.identity, "impossible", reason=p.impossible))
            _collect(run(groups), groups, workers, estimate, ledger, progress, report)
        write_text(out / TABLE, csv_text(table(read_results(out))))
    return progress


def _so_far(planned: Sequence[PlannedCell], records: dict[str, Record], retry: bool) -> GridProgress:
    """What there is before anything runs."""
    progress = GridProgress(len(planned))
    for p in planned:
        if p.impossible is not None:
            progress.impossible += 1
        elif not _is_open(p, records, retry):
            progress.count(records[p.id])
            progress.kept += 1
    return progress


def _collect(
    finished: Iterator[list[Record]],
    groups: Sequence[Group],
    workers: int,
    estimate: TimeEstimate,
    ledger: Ledger,
    progress: GridProgress,
    report: Callable[[GridProgress], None],
) -> None:
    left = {group[0].training: group for group in groups}
    by_id = {p.id: p.training for group in groups for p in group}

    def tell() -> None:
        progress.running = min(workers, len(left))
        progress.seconds_left = sum(estimate.expect(group) for group in left.values()) / workers
        report(progress)

    tell()
    for records in finished:
        del left[by_id[records[0].id]]
        for record in records:
            ledger.add(record)
            estimate.learn(record)
            progress.count(record)
            progress.last = record
            tell()


def _is_open(planned: PlannedCell, records: dict[str, Record], retry: bool) -> bool:
    """Whether the cell has still to be run."""
    record = records.get(planned.id)
    if planned.impossible is not None:
        return False
    return record is None or record.status == "impossible" or (retry and record.status == "failed")


def _state(planned: PlannedCell, records: dict[str, Record]) -> str:
    return "impossible" if planned.impossible is not None else records[planned.id].status


def _runner(
    backend: str, workers: int, address: str | None, out: Path, say: Callable[[str], None]
) -> Callable[[Sequence[Group]], Iterator[list[Record]]]:
    """How groups become records: here, in processes, or on a cluster; in whichever order they finish."""
    if backend == "ray":
        return partial(_nodes, workers=workers, address=address, out=out, say=say)
    if workers == 1:
        return lambda groups: map(work, groups)
    return partial(_processes, workers=workers)


def _nodes(
    groups: Sequence[Group], workers: int, address: str | None, out: Path, say: Callable[[str], None]
) -> Iterator[list[Record]]:
    """On a cluster. A group whose worker dies goes to another; one that has killed several is failed."""
    with connected(address, out, say) as ray:
        by_training = {group[0].training: group for group in groups}
        for training, records in each(ray, work, {name: (group,) for name, group in by_training.items()}, workers):
            yield died(by_training[training]) if isinstance(records, Lost) else records


def _processes(groups: Sequence[Group], workers: int) -> Iterator[list[Record]]:
    """A group whose process dies is failed, and costs no other: who was running is then tried alone."""
    open_dataset.cache_clear()  # the processes have their own
    left = {group[0].training: group for group in groups}
    while left:
        try:
            for training, records in in_pool(dict(left), workers):
                del left[training]
                yield records
        except TerminatedWorkerError:
            for training in list(left)[:workers]:
                yield alone(left.pop(training))


def in_pool(groups: Mapping[str, Group], workers: int) -> Iterator[tuple[str, list[Record]]]:
    with joblib.parallel_config(backend="loky", n_jobs=workers, inner_max_num_threads=THREADS):
        pool = joblib.Parallel(return_as="generator_unordered", batch_size=1, pre_dispatch=2 * workers)
        yield from pool(joblib.delayed(_named)(*item) for item in groups.items())


def _named(training: str, group: Group) -> tuple[str, list[Record]]:
    return training, work_apart(group)


def alone(group: Group) -> list[Record]:
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        try:
            return pool.submit(work_apart, group).result()
        except BrokenProcessPool:
            return died(group)
