"""`fewnode experiment` and `fewnode report`."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from fewnode.cli.output import Json, Quiet, emit, note, show, table
from fewnode.cli.scale import Address, Backend, BackendOption, name_unused
from fewnode.errors import FewnodeError, visible

if TYPE_CHECKING:
    from fewnode.experiment.ledger import Record
    from fewnode.experiment.plan import PlannedCell
    from fewnode.experiment.run import GridProgress

    Report = Callable[[GridProgress], None]


class ReportFormat(StrEnum):
    html = "html"
    latex = "latex"
    markdown = "markdown"
    csv = "csv"


def experiment(
    grids: list[Path] = typer.Argument(..., metavar="GRID.toml...", help="Grid files; several are one grid."),
    out: Path = typer.Option(..., "--out", help="Directory of the results. What is finished there is not run again."),
    workers: int = typer.Option(1, "--workers", min=1, help="Processes, of one thread each."),
    backend: Backend = BackendOption,
    address: str = Address,
    data_dir: Path = typer.Option(
        None, "--data-dir", envvar="FEWNODE_DATA", help="Where the grid's datasets are, if not beside it."
    ),
    retry: bool = typer.Option(False, "--retry", help="Run failed cells again."),
    dry_run: bool = typer.Option(False, "--dry-run", help="List the cells and what would become of each; run nothing."),
    quiet: bool = Quiet,
    as_json: bool = Json,
) -> None:
    """Run a grid of trainings: datasets x methods x (N, K, M) x seeds. It can be stopped and continued at any time.

    Each finished cell is a line of OUT/cells.jsonl with everything that produced it. OUT/table.csv has the same bytes
    whatever the number of workers, the order of the cells, and however often the run was killed. An impossible cell
    (10-way with 6 classes) and a failed one are recorded with the reason, and do not stop the others.

    \b
    A grid is a TOML file; its lists multiply. `fewnode report` shows its parts:
      [defaults]                       for every part
      datasets = ["debian", "mine"]    in --data-dir, beside the grid, or here
      seeds = 10                       0 to 9; or a list
      tasks = 50
      [[compare]]                      also [[sweep]], [[ablation]], [[case]]
      methods = ["gpn", "pn", "my_method.py:Mine"]
      way = [5, 10]
      shot = [3, 5]
      [methods.gpn]                    how a method is meant, wherever it is named
      options = { dropout = 0.2 }
    A grid may name Python files as methods, and running it runs them.

    \b
    Example:
      fewnode experiment examples/grid.toml --out results --workers 2
      fewnode report results --out report.html
    """
    from fewnode.experiment.grid import read_grids
    from fewnode.experiment.run import experiment as run
    from fewnode.experiment.run import states

    grid = read_grids(grids)
    name_unused(backend, address, quiet)
    if dry_run:
        _show_states(states(grid, out, data_dir, retry), as_json)
        return
    start = time.monotonic()
    with _progress(quiet) as report:
        found = run(grid, out, workers, backend.value, data_dir, retry, report, address, partial(note, quiet=quiet))
    counts = {name: getattr(found, name) for name in ("total", "done", "failed", "impossible", "kept", "damaged")}
    if as_json:
        emit({**counts, "out": str(out), "seconds": round(time.monotonic() - start, 1)})
        return
    typer.echo(
        f"{found.total} cells: {found.done} done ({found.kept} of all were finished before), {found.failed} failed, "
        f"{found.impossible} impossible"
    )
    if found.failed:
        note("failed cells and their reasons are in the report; --retry runs them again", quiet)
    note(f"next: fewnode report {out} --out report.html", quiet)


def report(
    results: Path = typer.Argument(..., metavar="DIR", help="What `fewnode experiment --out` wrote."),
    out: Path = typer.Option(None, "--out", help="Where the report goes; default: report.html, or -, standard output."),
    form: ReportFormat = typer.Option(
        ReportFormat.html, "--format", help="A page with tables and figures, or the tables alone."
    ),
    quiet: bool = Quiet,
    as_json: bool = Json,
) -> None:
    """Tables and figures of a grid: one page that needs no other file, or its tables for LaTeX, Markdown or CSV.

    The best of each column is bold. † is equally good (surely less than two points apart), ? is what paired tests over
    the same tasks cannot tell. What has no mark is significantly worse. Published numbers that the grid names stand
    beside ours. An unfinished grid is reported as far as it is; `fewnode experiment` continues it.

    \b
    Example:
      fewnode report results --out report.html
      fewnode report results --format latex --out table.tex
    """
    from fewnode.experiment.report import render, write_report
    from fewnode.experiment.results import read_results
    from fewnode.machine.files import write_text

    found = read_results(results)
    if found.damaged:
        note(f"{found.damaged} damaged lines left out; fewnode experiment runs their cells again", quiet or as_json)
    printed = out == Path("-")
    if form is ReportFormat.html:
        if printed:
            raise FewnodeError("a page is not printed: give --out FILE, or another --format")
        out = out or Path("report.html")
        write_report(found, out)
    elif out is not None and not printed:
        write_text(out, render(found, form.value))
    elif as_json:
        raise FewnodeError("--json needs --out FILE: the report itself would go to standard output")
    else:
        show(render(found, form.value))
        return
    if as_json:
        emit({"out": str(out), "cells": len(found.records), "bytes": out.stat().st_size})
    else:
        note(f"report: {out}", quiet)


# --- what a person sees -------------------------------------------------------------------------------------------


def _show_states(planned: list[tuple[PlannedCell, str]], as_json: bool) -> None:
    if as_json:
        emit({"cells": [{**p.identity, "id": p.id, "state": state, "reason": p.impossible} for p, state in planned]})
        return
    width = max(len(str(p.cell)) for p, _ in planned)
    for p, state in planned:
        typer.echo(visible(f"{str(p.cell).ljust(width)}  {state.ljust(10)}  {p.impossible or ''}".rstrip()))
    states = [state for _, state in planned]
    counts = [(state, states.count(state)) for state in ("to run", "done", "failed", "impossible")]
    typer.echo("\n" + table(["cells", "count"], counts))


@contextmanager
def _progress(quiet: bool) -> Iterator[Report]:
    """Cells done, running and failed, and the time left: a bar, or a line a cell where there is no terminal."""
    if quiet or not sys.stderr.isatty():
        yield lambda progress: note(_line(progress), quiet)
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True)) as bars:
        bar = bars.add_task("reading the networks", total=None)

        def draw(progress: GridProgress) -> None:
            if progress.last is not None and progress.last.status == "failed":
                bars.console.print(visible(_result(progress.last)), markup=False, highlight=False)
            bars.update(bar, completed=progress.finished, total=progress.total, description=_status(progress))

        yield draw


def _line(progress: GridProgress) -> str:
    if progress.last is None:
        damaged = f", {progress.damaged} damaged lines run again" if progress.damaged else ""
        return f"{progress.total} cells, {progress.kept} finished before{damaged}"
    return f"{progress.finished}/{progress.total}  {_result(progress.last)}  ({_status(progress)})"


def _result(record: Record) -> str:
    if record.status != "done":
        return f"{record.name}: {record.status}: {record.reason}"
    accuracy = f"{100 * record.scores['accuracy'].mean():.1f} %, " if record.per_task else ""
    return f"{record.name}: {accuracy}{sum(record.seconds.values()):.1f} s"


def _status(progress: GridProgress) -> str:
    left = f"about {timedelta(seconds=round(progress.seconds_left))} left"
    return f"{progress.running} running, {progress.failed} failed, {progress.impossible} impossible, {left}"
