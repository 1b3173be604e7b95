"""What a worker process does: one training, then each of its cells, whatever the number of workers."""

from __future__ import annotations

import os
import platform
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

import fewnode
from fewnode._system.files import one_line
from fewnode._system.memory import peak_memory
from fewnode.dataset import Dataset
from fewnode.errors import FewnodeError
from fewnode.evaluation import evaluate, fit_without_base
from fewnode.experiment.ledger import DIGITS, Record
from fewnode.experiment.plan import PlannedCell, open_dataset
from fewnode.method import Fitted
from fewnode.methods.plugins import is_plugin, load_plugin
from fewnode.methods.table import has_option
from fewnode.model.estimator import Estimator
from fewnode.paper.case import look
from fewnode.scores import METRICS


def work_apart(group: Sequence[PlannedCell]) -> list[Record]:
    """`work` in a process of its own, which ends when the run that started it is killed."""
    _end_with_parent()
    return work(group)


@cache
def _end_with_parent() -> None:
    """Otherwise an orphan would train on, and then hold its memory for minutes."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def work(group: Sequence[PlannedCell]) -> list[Record]:
    """The cells of one training, by one thread. Whatever goes wrong in them is recorded, and stops nobody else."""
    os.environ["OMP_NUM_THREADS"] = "1"  # of torch, which may be imported later
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)
    records, first, start = list[Record](), group[0], time.perf_counter()
    with threadpool_limits(1):
        with suppress(OSError):  # not on Linux: the peak is then the process's, not that of this training
            Path("/proc/self/clear_refs").write_text("5")
        try:
            data = open_dataset(first.source)
            start, cpu = time.perf_counter(), time.process_time()
            model = _fit(first, data)
        except Exception as error:
            return [failed(planned, error, time.perf_counter() - start) for planned in group]
        spent = time.perf_counter() - start, time.process_time() - cpu
        for planned in group:
            try:
                records.append(_finish(planned, model, data, spent, shared=planned is not first))
            except Exception as error:
                records.append(failed(planned, error, spent[0]))
    return records


def _fit(planned: PlannedCell, data: Dataset) -> Fitted:
    """On the classes of the split or, by the protocol all-classes, on the graph alone."""
    cell = planned.cell
    if is_plugin(planned.method) and not planned.identity["method"].endswith(load_plugin(planned.method)[1]):
        raise FewnodeError(f"{planned.method}: has changed since the grid was planned; run the grid again")
    options = dict(cell.options)
    if "workers" not in options and has_option(planned.method, "workers"):
        options["workers"] = 1  # it changes no bit, and processes are what the grid runs on
    if planned.without_base:
        return fit_without_base(planned.method, data, cell.seed, options)
    return Estimator(planned.method, cell.way, cell.shot, cell.query, cell.seed, **options).fit(data)


def _finish(planned: PlannedCell, model: Fitted, data: Dataset, fit: tuple[float, float], shared: bool) -> Record:
    """Scores of all tasks, or the case study. `fit` is seconds, by the clock and of the processor."""
    cell, start, cpu = planned.cell, time.perf_counter(), time.process_time()
    outcome: dict[str, Any]
    if cell.kind == "case" and isinstance(model, Estimator):
        outcome = {"case": look(model, data, cell.way, cell.shot, cell.pool_seed)}
    else:
        asked: dict[str, Any] = (
            {"classes": "all"} if planned.without_base else {"way": cell.way, "queries": cell.queries}
        )
        asked |= {"shot": cell.shot, "tasks": cell.tasks, "seed": cell.pool_seed}
        result = evaluate(model, data, **asked, transductive=cell.mode == "transductive")
        outcome = {"per_task": {metric: result.per_task[metric][0].round(DIGITS).tolist() for metric in METRICS}}
    history = getattr(getattr(model, "method_", model), "history_", None)
    provenance = {
        **_versions(),
        "fit_cpu_seconds": round(fit[1], 3),
        "evaluate_cpu_seconds": round(time.process_time() - cpu, 3),
        "memory_mb": _peak_mb(),
        "shared_training": shared,
        "episodes": history.done if history else None,
    }
    seconds = {"fit": round(fit[0], 3), "evaluate": round(time.perf_counter() - start, 3)}
    return planned.record("done", seconds=seconds, provenance=provenance, **outcome)


def failed(planned: PlannedCell, error: BaseException, seconds: float = 0.0) -> Record:
    """The record of a cell that went wrong."""
    what = str(error) if isinstance(error, FewnodeError) else f"{type(error).__name__}: {one_line(error)}"
    return planned.record("failed", reason=what, seconds={"fit": round(seconds, 3)}, provenance=_versions())


def _versions() -> dict[str, Any]:
    versions = {"fewnode": fewnode.__version__, "python": platform.python_version()}
    with suppress(metadata.PackageNotFoundError):
        versions["torch"] = metadata.version("torch")
    return {"versions": versions, "threads": 1, "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}


def _peak_mb() -> int:
    try:
        status = Path("/proc/self/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) >> 10
    except (OSError, IndexError):
        return peak_memory() >> 20
