"""Run a grid: every cell that is not finished, in processes of one thread each, its result kept at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import TypeAlias

from fewnode._system.files import exclusive, write_text
from fewnode._system.sheets import csv_text
from fewnode.embedding.workers import LOST, Workers, connected
from fewnode.errors import FewnodeError
from fewnode.experiment.grid import Grid
from fewnode.experiment.ledger import Ledger, Record, read_ledger
from fewnode.experiment.plan import PlannedCell, open_dataset, plan, trainings
from fewnode.experiment.results import LAYOUT, TABLE, read_results, table
from fewnode.experiment.work import failed, work, work_apart

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
    with exclusive(out):
        records, damaged = read_ledger(out)
        progress, waiting = GridProgress(len(cells), damaged=damaged), list[PlannedCell]()
        for planned in cells:
            before = records[planned.id].status if planned.id in records else "impossible"
            if planned.impossible is not None:
                progress.count("impossible")
            elif before == "impossible" or (retry and before == "failed"):
                waiting.append(planned)
            else:
                progress.count(before)
                progress.kept += 1
        groups = sorted(trainings(waiting), key=lambda group: group[0].cell.seed)  # who stops early has as many of each
        write_text(out / LAYOUT, layout.model_dump_json(exclude_defaults=True) + "\n")
        with closing(Ledger(out)) as ledger:
            for planned in cells:
                if planned.impossible is not None and planned.id not in records:
                    ledger.add(planned.record("impossible", reason=planned.impossible))
            cluster = connected(address, out, say) if backend == "ray" else nullcontext()
            start, left = monotonic(), len(groups)
            report(progress)
            with cluster as ray:
                for count, new in enumerate(_finished(groups, Workers(workers, ray=ray)), 1):
                    progress.seconds_left = (monotonic() - start) / count * (left - count)
                    for record in new:
                        ledger.add(record)
                        progress.count(record.status)
                        progress.last = record
                        report(progress)
        write_text(out / TABLE, csv_text(table(read_results(out))))
    return progress


def _finished(groups: Sequence[Group], pool: Workers) -> Iterator[list[Record]]:
    """A group whose process dies although it is alone is failed, and costs no other."""
    if not pool.alone:
        open_dataset.cache_clear()  # the processes have their own
    by_training = {group[0].training: group for group in groups}
    run = work if pool.alone else work_apart
    for training, records in pool.each(run, {name: (group,) for name, group in by_training.items()}):
        died = FewnodeError("its process died, perhaps for lack of memory")
        yield [failed(planned, died) for planned in by_training[training]] if records is LOST else records
