"""`fewnode experiment` and `fewnode report`."""

from __future__ import annotations

import time
from datetime import timedelta
from enum import StrEnum
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

import typer

from fewnode.cli.output import Json, Quiet, emit, note, show
from fewnode.cli.scale import Address, Backend, BackendOption, name_unused
from fewnode.errors import FewnodeError

if TYPE_CHECKING:
    from fewnode.experiment.run import GridProgress


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

    grid = read_grids(grids)
    name_unused(backend, address, quiet)
    start = time.monotonic()
    say = partial(note, quiet=quiet)
    told = (lambda progress: say(_said(progress)), address, say)
    found = run(grid, out, workers, backend.value, data_dir, retry, *told)
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
    from fewnode._system.files import write_text
    from fewnode.experiment.report import render, write_report
    from fewnode.experiment.results import read_results

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


def _said(progress: GridProgress) -> str:
    """A cell that has come to its end, and how far the run is; at first what there is to do."""
    record = progress.last
    if record is None:
        damaged = f", {progress.damaged} damaged lines run again" if progress.damaged else ""
        return f"{progress.total} cells, {progress.kept} finished before{damaged}"
    accuracy = f"{100 * fmean(record.per_task['accuracy']):.1f} %, " if record.per_task else ""
    outcome = f"{accuracy}{sum(record.seconds.values()):.1f} s"
    if record.status != "done":
        outcome = f"{record.status}: {record.reason}"
    left = timedelta(seconds=round(progress.seconds_left))
    return f"{progress.finished}/{progress.total}  {record.name}: {outcome}  (about {left} left)"
