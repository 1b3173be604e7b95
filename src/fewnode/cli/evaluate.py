"""`fewnode evaluate`: a run on tasks of its test classes, or a method on a graph and a handful of labels."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from fewnode.cli.output import (
    Json,
    Quiet,
    Threads,
    emit,
    following,
    note,
    refuse_unused,
    set_threads,
    starting,
    table,
)
from fewnode.cli.predict import Classes, Transductive, open_run
from fewnode.cli.train import METHODS, method_options
from fewnode.errors import FewnodeError, closest, visible

if TYPE_CHECKING:
    from fewnode.dataset import Dataset
    from fewnode.evaluation import Result
    from fewnode.model.estimator import Estimator

ALL_CLASSES = "all-classes"
MEASURED = {
    "accuracy": "accuracy",
    "micro_f1": "micro-F1",
    "macro_f1": "macro-F1",
    "weighted_f1": "weighted F1",
    "average_precision": "average precision",
    "precision_at_k": "precision@k",
    "auroc": "AUROC of being in a class",
    "known": "members taken for members",
    "unknown": "outliers taken for outliers",
}


def evaluate(
    context: typer.Context,
    run: Path = typer.Option(None, "--run", help="The directory that `fewnode train --out` wrote."),
    data: str = typer.Option(
        None, "--data", help="With --protocol: the network. With --run: another one with the same attributes."
    ),
    protocol: str = typer.Option(
        None,
        "--protocol",
        help="all-classes: no base classes; --shot labels of every class, all other labelled nodes are asked about.",
        autocompletion=starting(ALL_CLASSES),
    ),
    method: str = typer.Option(
        None,
        "--method",
        help="With --protocol: its name (default gpn-plus) or FILE.py:CLASS. With --run of a method of your own: "
        "FILE.py:CLASS, which is run.",
        autocompletion=starting(*METHODS),
    ),
    option: list[str] = typer.Option(
        [], "--option", metavar="NAME=VALUE", help="With --protocol: an option of the method; repeatable."
    ),
    draws: int = typer.Option(None, "--draws", min=1, help="With --protocol: how often labels are drawn; default 30."),
    way: int = typer.Option(None, "--way", help="N; default: as trained, or all test classes if there are fewer."),
    shot: int = typer.Option(None, "--shot", help="K; default: as trained; with --protocol 5."),
    query: int = typer.Option(
        None, "--query", help="M a class; default: as many as --shot; with --protocol all other nodes."
    ),
    tasks: int = typer.Option(None, "--tasks", min=1, help="Tasks; default 50 as in the paper, 500 for less chance."),
    repeats: int = typer.Option(None, "--repeats", min=1, help="Trainings with other seeds, same tasks; default 1."),
    pool: Path = typer.Option(None, "--pool", help="Read the tasks from this file instead of drawing them."),
    save_pool: Path = typer.Option(None, "--save-pool", help="Write the tasks to this file (JSON lines)."),
    pool_seed: int = typer.Option(0, "--pool-seed", min=0, help="Of the tasks; independent of the training's seed."),
    transductive: bool = Transductive,
    queries: str = typer.Option(
        None,
        "--queries",
        help="Spread over the classes: balanced (default), or long-tail.",
        autocompletion=starting("balanced", "long-tail"),
    ),
    classes: Path = Classes,
    open_set: bool = typer.Option(False, "--open-set", help="Also tell nodes that are in none of the classes."),
    multi_label: bool = typer.Option(
        False, "--multi-label", help="Nodes may be in several classes: F1, average precision, precision@k."
    ),
    precision_at: int = typer.Option(None, "--precision-at", min=1, help="k of precision@k; default 10."),
    threads: int = Threads,
    quiet: bool = Quiet,
    as_json: bool = Json,
) -> None:
    """Score a model on few-shot tasks from the test classes: accuracy, macro- and weighted F1, 95 % intervals.

    Also how far its probabilities are from frequencies (expected calibration error) and, with --open-set, how well
    it tells nodes of other classes: AUROC, and the shares told right at its own threshold.

    The tasks are a function of --pool-seed alone, so every model is asked the same ones. With --repeats R the
    method is trained R-1 more times with the next seeds, as the paper does, and both kinds of variance count.

    With --protocol all-classes no run and no base classes are needed. A method is fitted to the graph alone, gets
    --shot labels of every class, and is asked about every other labelled node. This is done --draws times, each
    with other labels. Classes with too few labels are left out, and named.

    With --multi-label a node may be in several classes, and each is judged on its own. The scores are micro- and
    macro-F1 of what is at least as likely as not, and the calibration error of the probabilities of all classes.
    Nodes are also ranked for each class: average precision and precision@k, the mean over classes (k at most the
    number of its members). A support node is given with all classes of the task that it is in.

    With --classes, classes are described, too (see `fewnode predict`); with --shot 0 that is all that is known of them.

    \b
    Example:
      fewnode evaluate --run run --way 5 --shot 3 --tasks 500
      fewnode evaluate --run run --shot 1 --transductive --open-set
      fewnode evaluate --run run --save-pool tasks.jsonl
      fewnode evaluate --run other --pool tasks.jsonl --json
      fewnode evaluate --run run --shot 0 --classes classes.csv
      fewnode evaluate --data debian --protocol all-classes --shot 5
      fewnode evaluate --data debian --protocol all-classes --method logistic
      fewnode evaluate --data D --protocol all-classes --multi-label
      fewnode evaluate --run run --multi-label --way 5 --shot 3

    To compare methods, networks and settings in one table: `fewnode experiment`.
    """
    if protocol not in (None, ALL_CLASSES):
        raise FewnodeError(f"--protocol {protocol!r}: expected {ALL_CLASSES}")
    for_run = {
        "--run": run,
        "--way": way,
        "--tasks": tasks,
        "--repeats": repeats,
        "--pool": pool,
        "--save-pool": save_pool,
        "--queries": queries,
        "--open-set": open_set or None,
        "--classes": classes,
    }
    if precision_at is not None and not multi_label:
        raise FewnodeError("--precision-at: not used without --multi-label; leave it out, or add that")
    at: dict[str, Any] = {} if precision_at is None else {"precision_at": precision_at}
    if protocol:
        _refuse(for_run, f"--protocol {protocol}")
        if data is None:
            raise FewnodeError(f"--protocol {protocol} needs --data D, the network")
        set_threads(threads)
        asked = {"shot": 5 if shot is None else shot, "query": query, "seed": pool_seed, "transductive": transductive}
        if multi_label:
            _refuse({"--transductive": asked.pop("transductive") or None}, "--multi-label")
        given = (data, method or "gpn-plus", method_options(option), draws)
        _all_classes(*given, asked | at, multi_label, quiet, as_json)
        return
    _refuse({"--option": option or None, "--draws": draws}, "--run")
    if run is None:
        raise FewnodeError(f"give --run RUN, what fewnode train wrote, or --data D --protocol {ALL_CLASSES}")
    if multi_label:
        others = {**for_run, "--run": None, "--way": None, "--tasks": None, "--transductive": transductive or None}
        _refuse(others, "--multi-label")
    set_threads(threads)
    model, dataset = open_run(run, data, method, quiet)
    if multi_label:
        _run_multi_label(run, model, dataset, {"way": way, "shot": shot, "query": query}, tasks, pool_seed, at, as_json)
        return
    if pool is None:
        _name_several(dataset, quiet)
    if pool is not None and not open_set:
        refuse_unused(context, ["pool_seed"], "with --pool")
    spread = queries or "balanced"
    shape: dict[str, Any] = {"way": way, "shot": shot, "query": query, "seed": pool_seed, "queries": spread}
    drawn = {"--pool": pool, "--save-pool": save_pool, "--queries": queries, "--repeats": repeats}
    if classes is not None:
        _refuse(drawn, "--classes")
        result = _described(model, dataset, shape, tasks, classes, transductive, open_set, quiet)
    elif shot == 0:
        raise FewnodeError("--shot 0 leaves nothing to know a class by; describe them with --classes")
    else:
        result = _test_tasks(model, dataset, shape, tasks, pool, save_pool, transductive, open_set, repeats or 1, quiet)
    if as_json:
        drawn_from = {"pool": str(pool)} if pool else {"pool_seed": pool_seed}
        emit({**result.to_json(), **drawn_from, "method": model.method, "run": str(run), "seed": model.seed})
        return
    of = result.provenance
    what = f"tasks of {pool}" if pool else f"{of['way']}-way {of['shot']}-shot, {of['query']} queries a class"
    count = result.per_task["accuracy"].shape[1]
    heading = f"{Path(model.method).name} on {dataset.name}: {what}, {count} tasks, {repeats or 1} training(s)"
    _say(result, heading, transductive, "" if pool else f", {spread} queries")


def _refuse(given: dict[str, Any], beside: str) -> None:
    """Options that mean nothing here are named, not ignored."""
    if unused := [name for name, value in given.items() if value is not None]:
        raise FewnodeError(f"{', '.join(unused)}: not used with {beside}; leave it out")


def _name_several(dataset: Dataset, quiet: bool) -> None:
    """Nodes in several classes have no single right answer, so tasks of one class a node leave them out."""
    if dataset.labels is None:
        return
    count = int(((dataset.labels.sum(axis=1) > 0) & (dataset.y < 0)).sum())
    if count:
        note(f"left out: {count:,} nodes that are in several classes; --multi-label asks about them, too", quiet)


def _say(result: Result, heading: str, transductive: bool, more: str) -> None:
    typer.echo(visible(heading))
    typer.echo(f"{'transductive' if transductive else 'inductive'}{more}")
    rows = [(label, result[metric]) for metric, label in MEASURED.items() if metric in result.per_task]
    typer.echo(table(["metric", "% ± 95 %"], [*rows, ("calibration error", f"{100 * result.ece:.1f}")]))


def _described(
    model: Estimator,
    dataset: Dataset,
    shape: dict[str, Any],
    tasks: int | None,
    classes: Path,
    transductive: bool,
    open_set: bool,
    quiet: bool,
) -> Result:
    """Test classes that are described, beside as many labels as asked for, or none."""
    from dataclasses import replace

    from fewnode import evaluation
    from fewnode.recognition.described_tasks import described_pool, silent_classes
    from fewnode.recognition.description import read_classes
    from fewnode.tables.report import name_some

    way = max(2, min(model.way, len(dataset.split.test))) if shape["way"] is None else shape["way"]
    shot = model.shot if shape["shot"] is None else shape["shot"]
    query = max(shot, 5) if shape["query"] is None else shape["query"]
    texts = read_classes(classes)
    if odd := [name for name in texts if name not in dataset.class_names]:
        raise FewnodeError(f"{classes}: {odd[0]!r} is no class of {dataset.name}{closest(odd[0], dataset.class_names)}")
    tested = [dataset.class_names[c] for c in dataset.split.test]
    if others := [name for name in texts if name not in tested]:
        note(f"{classes}: not used, they are no test classes: {name_some(others, 300)}", quiet)
    if silent := silent_classes(dataset, dataset.split.test, texts):
        so = "left out" if shot == 0 else "by their labels alone"
        note(f"{so}, no word about them is in the vocabulary of {dataset.name}: {name_some(silent, 300)}", quiet)
    count = evaluation.TASKS if tasks is None else tasks
    pool = described_pool(dataset, dataset.split.test, texts, (way, shot, query), count, shape["seed"])
    result = evaluation.evaluate(model, dataset, pool=pool, transductive=transductive, open_set=open_set)
    return replace(result, provenance={**result.provenance, "way": way, "shot": shot, "query": query})


# --- a run on its test classes ------------------------------------------------------------------------------------


def _test_tasks(
    model: Estimator,
    dataset: Dataset,
    shape: dict[str, Any],
    tasks: int | None,
    pool: Path | None,
    save_pool: Path | None,
    transductive: bool,
    open_set: bool,
    repeats: int,
    quiet: bool,
) -> Result:
    from fewnode import evaluation
    from fewnode.scoring import pools

    chosen = pools.read_pool(pool, dataset) if pool else None
    asking = {**shape, "tasks": tasks, "pool": chosen, "transductive": transductive, "open_set": open_set}
    if save_pool:
        drawn = chosen or evaluation.test_tasks(model, dataset, **shape).take(tasks or evaluation.TASKS)
        pools.save_pool(save_pool, drawn, dataset)
    results = [evaluation.evaluate(model, dataset, **asking)]
    for extra in range(1, repeats):
        again = model.fresh(model.seed + extra)
        with following(getattr(again.method_, "episodes", 0), quiet, title=f"repeat {extra + 1}/{repeats}") as on_step:
            again.fit(dataset, on_step=on_step)
        results.append(evaluation.evaluate(again, dataset, **asking))
    return evaluation.join(results)


# --- a graph and a handful of labels ------------------------------------------------------------------------------


def _all_classes(
    data: str,
    method: str,
    options: dict[str, Any],
    draws: int | None,
    asked: dict[str, Any],
    multi_label: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    from fewnode.datasets import load
    from fewnode.protocols.all_classes import DRAWS, evaluate_all_classes, large_classes
    from fewnode.protocols.multi_label_evaluation import evaluate_all_classes_multi_label

    dataset, draws = load(data), DRAWS if draws is None else draws
    if left_out := large_classes(dataset, asked["shot"], multi_label)[1]:
        note(f"left out, at most {asked['shot']} labelled nodes: {', '.join(left_out)}", quiet)
    if not multi_label:
        _name_several(dataset, quiet)
    score = evaluate_all_classes_multi_label if multi_label else evaluate_all_classes
    with _draw_bar(quiet) as report:
        result = score(data=dataset, method=method, draws=draws, options=options, report=report, **asked)
    if as_json:
        emit({**result.to_json(), "options": options})
        return
    of = result.provenance
    queries = "every other labelled node" if of["query"] is None else f"at most {of['query']} others a class"
    heading = (
        f"{Path(method).name} on {dataset.name}: {of['shot']} labels of each of {of['way']} classes, {queries} asked "
        f"about, {draws} draws"
    )
    more = _looked_at(result) if multi_label else ""
    _say(result, heading, asked.get("transductive", False), f", no base classes{more}")


# --- several classes a node ---------------------------------------------------------------------------------------


def _run_multi_label(
    run: Path,
    model: Estimator,
    dataset: Dataset,
    shape: dict[str, Any],
    tasks: int | None,
    seed: int,
    at: dict[str, Any],
    as_json: bool,
) -> None:
    from fewnode.evaluation import TASKS
    from fewnode.protocols.multi_label_evaluation import evaluate_multi_label

    count = TASKS if tasks is None else tasks
    result = evaluate_multi_label(model, dataset, **shape, tasks=count, seed=seed, **at)
    if as_json:
        emit({**result.to_json(), "method": model.method, "run": str(run), "seed": model.seed})
        return
    of = result.provenance
    what = f"{of['way']}-way {of['shot']}-shot, {of['query']} queries a class, {count} tasks"
    _say(result, f"{Path(model.method).name} on {dataset.name}: {what}", False, _looked_at(result))


def _looked_at(result: Result) -> str:
    return f", several classes a node, precision@k at k = {result.provenance['precision_at']}"


@contextmanager
def _draw_bar(quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """Draws done of all: a bar, or a line for each fifth of them where there is no terminal."""
    if quiet or not sys.stderr.isatty():
        yield lambda done, total: note(f"{done}/{total} draws", quiet) if done % max(1, total // 5) == 0 else None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("draws"), BarColumn(bar_width=None), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        bar = progress.add_task("draws", total=None)
        yield lambda done, total: progress.update(bar, completed=done, total=total)
