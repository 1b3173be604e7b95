"""`fewnode experiment` and `fewnode report`."""

from __future__ import annotations

import time
from datetime import timedelta
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Literal

from fewnode.cli.options import options
from fewnode.cli.output import Printing, show
from fewnode.cli.source import Cluster
from fewnode.errors import FewnodeError
from fewnode.options import Options, option

if TYPE_CHECKING:
    from fewnode.experiment.run import GridProgress

COUNTS = ("total", "done", "failed", "impossible", "kept", "damaged")


class Grids(Options):
    """What is run, and where its results go."""

    grids: list[Path] = option("Grid files; several are one grid.", ..., metavar="GRID.toml...", door="argument")
    out: Path = option("Directory of the results. What is finished there is not run again.", ...)
    data_dir: Path | None = option("Where the grid's datasets are, if not beside it.", env="FEWNODE_DATA")
    retry: bool = option("Run failed cells again.", False)


class Processes(Cluster):
    """Who runs the cells."""

    workers: int = option("Processes, of one thread each.", 1, ge=1)


@options(Grids, Processes, Printing)
def experiment(asked: Grids, cluster: Processes, say: Printing) -> None:
    """Run a grid of trainings: datasets x methods x (N, K, M) x seeds. It can be stopped and continued at any time.

    Each finished cell is a line of OUT/cells.jsonl with everything that produced it. OUT/table.csv has the same bytes
    whatever the number of workers, the order of the cells, and however often the run was killed. An impossible cell
    (10-way with 6 classes) and a failed one are recorded with the reason, and do not stop the others.

    \b
    A grid is a TOML file; its lists multiply. Python files that it names are run.
      [[compare]]                      also [[sweep]], [[ablation]], [[case]]
      datasets = ["debian", "mine"]    in --data-dir, beside the grid, or here
      methods = ["gpn", "pn", "my_method.py:Mine"]
      way = [5, 10]
      shot = [3, 5]
      seeds = 10                       0 to 9; or a list
      [methods.gpn]                    how a method is meant, wherever it is named
      options = { dropout = 0.2 }

    \b
    Example:
      fewnode experiment examples/grid.toml --out results --workers 2
      fewnode report results --out report.html
    """
    from fewnode.experiment.grid import read_grids
    from fewnode.experiment.run import experiment as run

    grid = read_grids(asked.grids)
    cluster.name_unused(say)
    start = time.monotonic()
    where = (asked.out, cluster.workers, cluster.backend, asked.data_dir, asked.retry)
    progress = run(grid, *where, lambda progress: say.note(_said(progress)), cluster.address, say.note)
    counts = {name: getattr(progress, name) for name in COUNTS}
    seconds = round(time.monotonic() - start, 1)
    told = (
        f"{progress.total} cells: {progress.done} done ({progress.kept} of all were finished before), "
        f"{progress.failed} failed, {progress.impossible} impossible"
    )
    say.result({**counts, "out": str(asked.out), "seconds": seconds}, told)
    if progress.failed:
        say.note("failed cells and their reasons are in the report; --retry runs them again")
    say.note(f"next: fewnode report {asked.out} --out report.html")


class Report(Options):
    """What is reported, and how."""

    results: Path = option("What `fewnode experiment --out` wrote.", ..., metavar="DIR", door="argument")
    out: Path | None = option("Where the report goes; default: report.html, or -, standard output.")
    form: Literal["html", "latex", "markdown", "csv"] = option(
        "A page with tables and figures, or the tables alone: html, latex, markdown or csv.", "html", flag="--format"
    )


@options(Report, Printing)
def report(asked: Report, say: Printing) -> None:
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

    found = read_results(asked.results)
    if found.damaged:
        say.note(f"{found.damaged} damaged lines left out; fewnode experiment runs their cells again")
    out, printed = asked.out, asked.out == Path("-")
    if asked.form == "html":
        if printed:
            raise FewnodeError("a page is not printed: give --out FILE, or another --format")
        out = out or Path("report.html")
        write_report(found, out)
    elif out is not None and not printed:
        write_text(out, render(found, asked.form))
    elif say.as_json:
        raise FewnodeError("--json needs --out FILE: the report itself would go to standard output")
    else:
        show(render(found, asked.form))
        return
    say.result({"out": str(out), "cells": len(found.records), "bytes": out.stat().st_size}, "")
    say.note(f"report: {out}")


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
