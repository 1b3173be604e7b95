"""`fewnode tune`."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import typer

from fewnode.cli.output import Json, Quiet, Threads, emit, note, set_threads, table
from fewnode.errors import FewnodeError


def tune(
    data: str = typer.Option(..., "--data", help="A built-in name, a dataset directory, or a file to import."),
    method: str = typer.Option("gpn-plus", "--method", help="The method whose options are searched; default gpn-plus."),
    trials: int = typer.Option(20, "--trials", min=1, help="Trainings; the first has the default options."),
    seed: int = typer.Option(0, "--seed", min=0, help="Of the search and of every training."),
    out: Path = typer.Option(None, "--out", help="Write what was found to this file (JSON); it must not exist yet."),
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

    The search is optuna's (extra `tune`). Test classes are never looked at. The same seed finds the same.

    \b
    Example:
      fewnode tune --data debian --method meta-gnn --trials 10 --out tuned.json
      fewnode train --data debian --method meta-gnn --tuned tuned.json --out run
    """
    from fewnode._system.files import write_text
    from fewnode.experiment.tune import shown
    from fewnode.experiment.tune import tune as search
    from fewnode.formats.sources import load

    if out is not None and out.exists():
        raise FewnodeError(f"{out}: there is such a file already; choose another --out")
    set_threads(threads)
    dataset = load(data)
    shape = (way or max(2, min(5, len(dataset.split.train))), shot, query)
    fixed = {} if episodes is None else {"episodes": episodes}
    found = search(method, dataset, shape, trials, seed, tasks, partial(note, quiet=quiet), **fixed)
    if out is not None:
        write_text(out, json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    if as_json:
        emit({**found, "out": str(out) if out else None})
    else:
        typer.echo(f"{method} on {dataset.name}: {shown(found)} (default options: {shown(found['trials'][0])})")
        typer.echo(table(["option", "value"], list(found["options"].items())))
        note(f"written to {out}", quiet or not out)
