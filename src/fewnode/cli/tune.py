"""`fewnode tune`."""

from __future__ import annotations

import json
from pathlib import Path

from fewnode.cli.options import options
from fewnode.cli.output import Printing, Threads, table
from fewnode.errors import FewnodeError
from fewnode.options import Options, option


class Search(Options):
    """What is searched, and by which tasks."""

    data: str = option("A built-in name, a dataset directory, or a file to import.", ...)
    method: str = option("The method whose options are searched.", "gpn-plus")
    trials: int = option("Trainings; the first has the default options.", 20, ge=1)
    seed: int = option("Of the search and of every training.", 0, ge=0)
    out: Path | None = option("Write what was found to this file (JSON); it must not exist yet.")
    way: int | None = option("N; default 5, or all training classes if there are fewer.", ge=2)
    shot: int = option("K: support nodes a class.", 5, ge=1)
    query: int | None = option("M in training; default: as many as --shot.", ge=1)
    tasks: int = option("Validation tasks that the trials are compared on.", 100, ge=1)
    episodes: int | None = option("Training tasks at most; default: the method's own.", ge=1)


@options(Search, Threads, Printing)
def tune(search: Search, threads: Threads, say: Printing) -> None:
    """Search a method's hyper-parameters by accuracy on the validation classes of a network.

    The search is optuna's (extra `tune`). Test classes are never looked at. The same seed finds the same.

    \b
    Example:
      fewnode tune --data debian --method meta-gnn --trials 10 --out tuned.json
      fewnode train --data debian --method meta-gnn --tuned tuned.json --out run
    """
    from fewnode._system.files import write_text
    from fewnode.experiment.tune import shown
    from fewnode.experiment.tune import tune as find
    from fewnode.formats.sources import load

    out = search.out
    if out is not None and out.exists():
        raise FewnodeError(f"{out}: there is such a file already; choose another --out")
    threads.use()
    dataset = load(search.data)
    shape = (search.way or max(2, min(5, len(dataset.split.train))), search.shot, search.query)
    fixed = {} if search.episodes is None else {"episodes": search.episodes}
    found = find(search.method, dataset, shape, search.trials, search.seed, search.tasks, say.note, **fixed)
    if out is not None:
        write_text(out, json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    best = f"{search.method} on {dataset.name}: {shown(found)} (default options: {shown(found['trials'][0])})"
    values = table(["option", "value"], list(found["options"].items()))
    say.result({**found, "out": str(out) if out else None}, f"{best}\n{values}")
    if out is not None:
        say.note(f"written to {out}")
