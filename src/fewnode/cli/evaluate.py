"""`fewnode evaluate`: a run on tasks of its test classes, or a method on a graph and a handful of labels."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from fewnode.cli.options import MORE, options_of
from fewnode.cli.output import Json, Quiet, Threads, counting, emit, following, note, set_threads, starting, table
from fewnode.cli.predict import Classes, open_run
from fewnode.cli.train import METHODS, method_options
from fewnode.errors import FewnodeError, closest, visible
from fewnode.options import Asked

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
    "auroc": "AUROC",
    "known": "members taken for members",
    "unknown": "outliers taken for outliers",
}


@options_of(Asked)
def evaluate(
    run: Path = typer.Option(None, "--run", help="The directory that `fewnode train --out` wrote."),
    data: str = typer.Option(None, "--data", help="The network; with --run: another one with the same attributes."),
    protocol: str = typer.Option(
        None,
        "--protocol",
        help="all-classes: no base classes; --shot labels of every class, all other labelled nodes are asked about.",
        autocompletion=starting(ALL_CLASSES),
    ),
    method: str = typer.Option(
        None,
        "--method",
        help="With --protocol, default gpn-plus. FILE.py:CLASS is your own, which is run.",
        autocompletion=starting(*METHODS),
    ),
    option: list[str] = typer.Option(
        [], "--option", metavar="NAME=VALUE", help="Of the method, with --protocol.", rich_help_panel=MORE
    ),
    draws: int = typer.Option(None, "--draws", min=1, help="With --protocol: how often labels are drawn; default 30."),
    repeats: int = typer.Option(None, "--repeats", min=1, help="Trainings with other seeds, same tasks; default 1."),
    pool: Path = typer.Option(None, "--pool", help="Read the tasks from this file instead of drawing them."),
    save_pool: Path = typer.Option(
        None, "--save-pool", help="Write the tasks to this file (JSON lines).", rich_help_panel=MORE
    ),
    classes: Path = Classes,
    threads: int = Threads,
    quiet: bool = Quiet,
    as_json: bool = Json,
    *,
    given: Mapping[str, Any],
) -> None:
    """Score a model on few-shot tasks of its test classes, or a method on a few labels of all classes.

    Accuracy and F1 with 95 % intervals over tasks (and trainings, with --repeats), and the expected calibration error.
    Every model is asked the same tasks. With two classes also AUROC and average precision; with --open-set how well
    nodes of other classes are told. With --protocol no run is needed: the method is fitted to the graph alone.

    \b
    Example:
      fewnode evaluate --run run --way 5 --shot 3 --tasks 500
      fewnode evaluate --run run --shot 1 --transductive --open-set
      fewnode evaluate --run run --shot 0 --classes classes.csv
      fewnode evaluate --data debian --protocol all-classes --method logistic
    To compare methods, networks and settings in one table: fewnode experiment
    """
    if protocol not in (None, ALL_CLASSES):
        raise FewnodeError(f"--protocol {protocol!r}: expected {ALL_CLASSES}")
    every: dict[str, Any] = {"classes": "all", "options": method_options(option)} if protocol else {}
    asked = Asked.of({**given, **every, **({"tasks": draws} if draws else {})}, door=Asked.flag)
    for_run = {
        "--run": run,
        "--way": given.get("way"),
        "--tasks": given.get("tasks"),
        "--repeats": repeats,
        "--pool": pool,
        "--save-pool": save_pool,
        "--classes": classes,
    }
    if protocol:
        _refuse(for_run, f"with --protocol {ALL_CLASSES}")
    else:
        _refuse({"--option": option or None, "--draws": draws}, "with --run")
    if run is not None and (asked.several or classes is not None):
        several = {
            **for_run,
            "--run": None,
            "--way": None,
            "--tasks": None,
            "--classes": classes if asked.several else None,
        }
        _refuse(several, "with --multi-label" if asked.several else "with --classes")
    fields, beside = asked.unused(pool is not None)
    _refuse({Asked.flag(field): True for field in fields}, beside)
    set_threads(threads)
    more: dict[str, Any] = {"options": asked.options}
    if protocol:
        if data is None:
            raise FewnodeError(f"--protocol {ALL_CLASSES} needs --data D")
        result = _all_classes(data, method or "gpn-plus", asked, quiet)
    else:
        if run is None:
            raise FewnodeError(f"give --run RUN, what fewnode train wrote, or --data D --protocol {ALL_CLASSES}")
        model, dataset = open_run(run, data, method, quiet)
        if not asked.several and pool is None:
            _name_several(dataset, quiet)
        if classes is not None:
            asked = _described(asked, model, dataset, classes, quiet)
        elif asked.shot == 0:
            raise FewnodeError("--shot 0 leaves nothing to know a class by; describe them with --classes")
        result = _run(model, dataset, asked, pool, save_pool, repeats or 1, quiet)
        more = {"pool": str(pool)} if pool else {"pool_seed": asked.seed}
        more |= {"run": str(run), "seed": model.seed}
    if as_json:
        emit({**result.to_json(), **more})
    else:
        _say(result, pool, repeats or 1)


def _refuse(given: Mapping[str, Any], beside: str) -> None:
    """Options that mean nothing here are named, not ignored."""
    if unused := [name for name, value in given.items() if value is not None]:
        raise FewnodeError(f"{', '.join(unused)}: not used {beside}; leave it out")


def _name_several(dataset: Dataset, quiet: bool) -> None:
    """Nodes in several classes have no single right answer, so tasks of one class a node leave them out."""
    if dataset.labels is None:
        return
    count = int(((dataset.labels.sum(axis=1) > 0) & (dataset.y < 0)).sum())
    if count:
        note(f"left out: {count:,} nodes that are in several classes; --multi-label asks about them, too", quiet)


def _described(asked: Asked, model: Estimator, dataset: Dataset, classes: Path, quiet: bool) -> Asked:
    """What is asked, with the sentences of a table; what of it cannot be used is named."""
    from fewnode.recognition.description import read_classes
    from fewnode.tables.report import name_some
    from fewnode.tasks import described_rows

    texts = read_classes(classes)
    if odd := [name for name in texts if name not in dataset.class_names]:
        raise FewnodeError(f"{classes}: {odd[0]!r} is no class of {dataset.name}{closest(odd[0], dataset.class_names)}")
    tested = {dataset.class_names[c]: c for c in dataset.split.test}
    if others := [name for name in texts if name not in tested]:
        note(f"{classes}: not used, they are no test classes: {name_some(others, 300)}", quiet)
    rows = described_rows(dataset, dataset.split.test, texts)
    if silent := [name for name, c in tested.items() if c not in rows]:
        so = "left out" if (model.shot if asked.shot is None else asked.shot) == 0 else "by their labels alone"
        note(f"{so}, no word about them is in the vocabulary of {dataset.name}: {name_some(silent, 300)}", quiet)
    return asked.model_copy(update={"described": texts})


def _run(
    model: Estimator,
    dataset: Dataset,
    asked: Asked,
    pool: Path | None,
    save_pool: Path | None,
    repeats: int,
    quiet: bool,
) -> Result:
    """A run on its test classes, and trainings of its kind with the next seeds on the same tasks."""
    from fewnode import evaluation, tasks

    chosen = tasks.read_pool(pool, dataset) if pool else None
    if save_pool:
        shape = evaluation.trained_for(model, dataset, asked.way, asked.shot, asked.query)
        drawn = evaluation.tasks_of_test(dataset, shape, asked.seed, asked.queries)
        tasks.save_pool(save_pool, chosen or drawn.take(asked.tasks or evaluation.TASKS), dataset)
    how = asked.model_dump(exclude_unset=True)
    results = [evaluation.evaluate(model, dataset, pool=chosen, **how)]
    for extra in range(1, repeats):
        again = model.fresh(model.seed + extra)
        with following(getattr(again.method_, "episodes", 0), quiet, title=f"repeat {extra + 1}/{repeats}") as on_step:
            again.fit(dataset, on_step=on_step)
        results.append(evaluation.evaluate(again, dataset, pool=chosen, **how))
    return evaluation.join(results)


def _all_classes(data: str, method: str, asked: Asked, quiet: bool) -> Result:
    """A method on a graph and a handful of labels."""
    from fewnode.evaluation import evaluate as score
    from fewnode.formats.sources import load
    from fewnode.tasks import large_classes

    dataset, shot = load(data), 5 if asked.shot is None else asked.shot
    if left_out := large_classes(dataset, shot, asked.several)[1]:
        note(f"left out, at most {shot} labelled nodes: {', '.join(left_out)}", quiet)
    if not asked.several:
        _name_several(dataset, quiet)
    return score(method, dataset, report=counting("draws", quiet), **asked.model_dump(exclude_unset=True))


# --- what a person sees -------------------------------------------------------------------------------------------


def _say(result: Result, pool: Path | None, repeats: int) -> None:
    """What was asked, the scores, and the classes one by one if that was asked for."""
    of = result.provenance
    if of.get("protocol"):
        queries = "every other labelled node" if of["query"] is None else f"at most {of['query']} others a class"
        what = f"{of['shot']} labels of each of {of['way']} classes, {queries} asked about, {of['draws']} draws"
    else:
        shape = f"{of['way']}-way {of['shot']}-shot, {of['query']} queries a class"
        count = next(iter(result.per_task.values())).shape[1]
        what = f"{f'tasks of {pool}' if pool else shape}, {count} tasks, {repeats} training(s)"
    parts = ["transductive" if of["transductive"] else "inductive"]
    parts += ["no base classes"] if of.get("protocol") else []
    parts += [f"{of['queries']} queries"] if of.get("queries") else []
    if of.get("multi_label"):
        parts += [f"several classes a node, precision@k at k = {of['precision_at']}"]
    typer.echo(visible(f"{Path(of['method']).name} on {of['data']}: {what}"))
    typer.echo(", ".join(parts))
    rows = [(label, result[metric]) for metric, label in MEASURED.items() if metric in result.per_task]
    typer.echo(table(["metric", "% ± 95 %"], [*rows, ("calibration error", f"{100 * result.ece:.1f}")]))
    if result.confusion is None:
        return
    classes = {name: row for name, row in result.per_class.items() if row["queries"]}
    lines = [[name, *(f"{100 * row[part]:.1f}" for part in ("precision", "recall", "f1")), int(row["queries"])]
             for name, row in classes.items()]  # fmt: skip
    typer.echo("\n" + table(["class", "precision", "recall", "F1", "queries"], lines))
    places = [result.class_names.index(name) for name in classes]
    counts = result.confusion[places][:, places].tolist()
    numbered = [[f"{i} {name}", *row] for i, (name, row) in enumerate(zip(classes, counts, strict=True), 1)]
    typer.echo("\n" + table(["is, taken for", *map(str, range(1, len(places) + 1))], numbered))
