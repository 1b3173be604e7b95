"""`fewnode tune`."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from fewnode.cli.output import Json, Quiet, Threads, emit, note, set_threads, table
from fewnode.errors import FewnodeError

if TYPE_CHECKING:
    from fewnode.protocols.tune import Trial, Tuned

    Report = Callable[[list[Trial], Trial | None], None]


def tune(
    data: str = typer.Option(..., "--data", help="A built-in name, a dataset directory, or a file to import."),
    method: str = typer.Option("gpn-plus", "--method", help="The method whose options are searched; default gpn-plus."),
    trials: int = typer.Option(20, "--trials", min=1, help="Trainings; the first has the default options."),
    seed: int = typer.Option(0, "--seed", min=0, help="Of the search and of every training."),
    out: Path = typer.Option(None, "--out", help="Write what was found to this file (TOML); it must not exist yet."),
    way: int = typer.Option(None, "--way", min=2, help="N; default 5, or all training classes if there are fewer."),
    shot: int = typer.Option(5, "--shot", min=1, help="K: support nodes a class."),
    query: int = typer.Option(None, "--query", min=1, help="M in training; default: as many as --shot."),
    tasks: int = typer.Option(100, "--tasks", min=1, help="Validation tasks that the trials are compared on."),
    episodes: int = typer.Option(None, "--episodes", min=1, help="Training tasks at most; default: the method's own."),
    threads: int = Threads,
    quiet: bool = Quiet,
    as_json: bool = Json,
) -> None:
    """Search a method's hyper-parameters by accuracy on the validation classes of a network.

    Each trial trains on the training classes; test classes are never looked at. The search is random or, where it is
    installed, optuna's. The same seed finds the same.

    \b
    Example:
      fewnode tune --data debian --method meta-gnn --trials 10 --out tuned.toml
      fewnode train --data debian --method meta-gnn --tuned tuned.toml --out run
    """
    from fewnode.datasets import load
    from fewnode.protocols.tune import tune as search

    if out is not None and out.exists():
        raise FewnodeError(f"{out}: there is such a file already; choose another --out")
    set_threads(threads)
    dataset = load(data)
    ways = way or max(2, min(5, len(dataset.split.train)))
    fixed = {} if episodes is None else {"episodes": episodes}
    with _progress(trials, quiet) as report:
        found = search(method, dataset, ways, shot, query, trials, seed, tasks, report, **fixed)
    if out is not None:
        found.write(out)
    if as_json:
        emit({**found.to_json(), "out": str(out) if out else None})
    else:
        _say(found, out, quiet)


def _say(found: Tuned, out: Path | None, quiet: bool) -> None:
    failed = sum(trial.accuracy is None for trial in found.trials)
    usual = found.trials[0].accuracy
    default = "diverged" if usual is None else f"{100 * usual:.1f} %"
    typer.echo(
        f"{found.method} on {found.data['name']}: validation accuracy {100 * found.accuracy:.1f} % "
        f"(default options: {default}), {len(found.trials)} trials ({found.search}), {failed} failed"
    )
    typer.echo(table(["option", "value"], list(found.options.items())))
    if out is not None:
        note(f"written to {out}", quiet)


@contextmanager
def _progress(trials: int, quiet: bool) -> Iterator[Report]:
    """The trials done, the best so far and the time left: a bar, or lines where there is no terminal."""
    start = time.monotonic()
    if quiet or not sys.stderr.isatty():

        def say(done: list[Trial], best: Trial | None) -> None:
            left = (time.monotonic() - start) / len(done) * (trials - len(done))
            note(f"trial {len(done)}/{trials}  {_status(done, best)}  {left:.0f} s left", quiet)

        yield say
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (
        TextColumn("tuning"),
        BarColumn(bar_width=None),
        TextColumn("{task.completed}/{task.total}  {task.fields[status]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(elapsed_when_finished=False),
    )
    with Progress(*columns, console=Console(stderr=True), speed_estimate_period=3600) as progress:
        bar = progress.add_task("tuning", total=trials, status="")
        yield lambda done, best: progress.update(bar, completed=len(done), status=_status(done, best))


def _status(done: list[Trial], best: Trial | None) -> str:
    last = done[-1].accuracy
    shown = ["failed" if last is None else f"valid {100 * last:.1f} %"]
    if best is not None and best.accuracy is not None:
        shown.append(f"best {100 * best.accuracy:.1f} %")
    return "  ".join(shown)
