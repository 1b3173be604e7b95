"""`fewnode evaluate`: a run on tasks of its test classes, or a method on a graph and a handful of labels."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from fewnode.cli.options import options
from fewnode.cli.output import Printing, Threads, refuse, table
from fewnode.cli.source import open_run
from fewnode.cli.train import method_options
from fewnode.errors import FewnodeError, closest
from fewnode.methods.table import METHODS
from fewnode.options import Asked, Options, option

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


class Measured(Options):
    """What is measured, and how often."""

    run: Path | None = option("The directory that `fewnode train --out` wrote.")
    data: str | None = option("The network; with --run: another one with the same attributes.")
    protocol: Literal["all-classes"] | None = option(
        "all-classes: no base classes; --shot labels of every class, all other labelled nodes are asked about.",
        words=[ALL_CLASSES],
    )
    method: str | None = option(
        "With --protocol, default gpn-plus. FILE.py:CLASS is your own, which is run.", words=[*METHODS]
    )
    others: list[str] = option("Of the method, with --protocol.", [], flag="--option", metavar="NAME=VALUE", rare=True)
    draws: int | None = option("With --protocol: how often labels are drawn; default 30.", ge=1)
    repeats: int = option("Trainings with other seeds, same tasks.", 1, ge=1)
    pool: Path | None = option("Read the tasks from this file instead of drawing them.")
    save_pool: Path | None = option("Write the tasks to this file (JSON lines).", rare=True)
    described: Path | None = option(
        "Table `class,description`; an empty description: the name speaks.", flag="--classes"
    )


@options(Measured, Asked, Threads, Printing)
def evaluate(measured: Measured, asked: Asked, threads: Threads, say: Printing) -> None:
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
    if measured.protocol:
        of_run = measured.given("run", "repeats", "pool", "save_pool", "described")
        refuse([*of_run, *asked.given("way", "tasks")], f"with --protocol {ALL_CLASSES}")
        if measured.data is None:
            raise FewnodeError(f"--protocol {ALL_CLASSES} needs --data D")
        threads.use()
        result, about = _all_classes(measured.data, measured, asked, say)
    else:
        refuse(measured.given("others", "draws"), "with --run")
        if asked.several or measured.described:
            refuse(measured.given("save_pool"), "with --multi-label or --classes")
        if measured.run is None:
            raise FewnodeError(f"give --run RUN, what fewnode train wrote, or --data D --protocol {ALL_CLASSES}")
        threads.use()
        model, dataset = open_run(measured.run, measured.data, measured.method, say)
        result = _tasks(model, dataset, measured, asked, say)
        about = {"pool": str(measured.pool)} if measured.pool else {"pool_seed": asked.seed}
        about |= {"run": str(measured.run), "seed": model.seed}
    say.result({**result.to_json(), **about}, _shown(result, measured))


def _all_classes(data: str, measured: Measured, asked: Asked, say: Printing) -> tuple[Result, dict[str, Any]]:
    """A method on a graph and a handful of labels."""
    from fewnode.evaluation import evaluate as score
    from fewnode.formats.sources import load

    dataset, of_method = load(data), method_options(measured.others)
    if not asked.several:
        _name_several(dataset, say)
    how = {**asked.model_dump(exclude_unset=True), "classes": "all", "options": of_method, "tasks": measured.draws}
    report = partial(say.progress(), "draws")
    result = score(measured.method or "gpn-plus", dataset, report=report, **how)
    if left_out := result.provenance["left_out"]:
        say.note(f"left out, at most {result.provenance['shot']} labelled nodes: {', '.join(left_out)}")
    return result, {"options": of_method}


def _tasks(model: Estimator, dataset: Dataset, measured: Measured, asked: Asked, say: Printing) -> Result:
    """A run on its test classes, and trainings of its kind with the next seeds on the same tasks."""
    from fewnode import evaluation, tasks

    if not asked.several and measured.pool is None:
        _name_several(dataset, say)
    if measured.described is not None:
        asked = _described(asked, model, dataset, measured.described, say)
    elif asked.shot == 0:
        raise FewnodeError("--shot 0 leaves nothing to know a class by; describe them with --classes")
    pool = tasks.read_pool(measured.pool, dataset) if measured.pool else None
    if measured.save_pool:
        drawn = evaluation.tasks_of_test(model, dataset, asked)
        tasks.save_pool(measured.save_pool, pool or drawn.take(asked.tasks or evaluation.TASKS), dataset)
    how = asked.model_dump(exclude_unset=True)
    results = [evaluation.evaluate(model, dataset, pool=pool, **how)]
    for extra in range(1, measured.repeats):
        again = model.fresh(model.seed + extra)
        with say.following(again.method_, title=f"repeat {extra + 1}/{measured.repeats}") as on_step:
            again.fit(dataset, on_step=on_step)
        results.append(evaluation.evaluate(again, dataset, pool=pool, **how))
    return evaluation.join(results)


def _name_several(dataset: Dataset, say: Printing) -> None:
    """Nodes in several classes have no single right answer, so tasks of one class a node leave them out."""
    if dataset.labels is not None and (count := int(((dataset.labels.sum(axis=1) > 0) & (dataset.y < 0)).sum())):
        say.note(f"left out: {count:,} nodes that are in several classes; --multi-label asks about them, too")


def _described(asked: Asked, model: Estimator, dataset: Dataset, classes: Path, say: Printing) -> Asked:
    """What is asked, with the sentences of a table; what of it cannot be used is named."""
    from fewnode.recognition.description import read_classes
    from fewnode.tables.report import name_some
    from fewnode.tasks import described_rows

    texts = read_classes(classes)
    if odd := [name for name in texts if name not in dataset.class_names]:
        raise FewnodeError(f"{classes}: {odd[0]!r} is no class of {dataset.name}{closest(odd[0], dataset.class_names)}")
    tested = {dataset.class_names[c]: c for c in dataset.split.test}
    if others := [name for name in texts if name not in tested]:
        say.note(f"{classes}: not used, they are no test classes: {name_some(others, 300)}")
    rows = described_rows(dataset, dataset.split.test, texts)
    if silent := [name for name, c in tested.items() if c not in rows]:
        so = "left out" if (model.shot if asked.shot is None else asked.shot) == 0 else "by their labels alone"
        say.note(f"{so}, no word about them is in the vocabulary of {dataset.name}: {name_some(silent, 300)}")
    return asked.model_copy(update={"described": texts})


def _shown(result: Result, measured: Measured) -> str:
    """What was asked, the scores, and the classes one by one if that was asked for."""
    of = result.provenance
    if of.get("protocol"):
        queries = "every other labelled node" if of["query"] is None else f"at most {of['query']} others a class"
        what = f"{of['shot']} labels of each of {of['way']} classes, {queries} asked about, {of['draws']} draws"
    else:
        shape = f"{of['way']}-way {of['shot']}-shot, {of['query']} queries a class"
        count = next(iter(result.per_task.values())).shape[1]
        drawn = f"tasks of {measured.pool}" if measured.pool else shape
        what = f"{drawn}, {count} tasks, {measured.repeats} training(s)"
    parts = ["transductive" if of["transductive"] else "inductive"]
    parts += ["no base classes"] if of.get("protocol") else []
    parts += [f"{of['queries']} queries"] if of.get("queries") else []
    if of.get("multi_label"):
        parts += [f"several classes a node, precision@k at k = {of['precision_at']}"]
    scores = [(label, result[metric]) for metric, label in MEASURED.items() if metric in result.per_task]
    calibration = ("calibration error", f"{100 * result.ece:.1f}")
    lines = [f"{Path(of['method']).name} on {of['data']}: {what}", ", ".join(parts)]
    return "\n".join([*lines, table(["metric", "% ± 95 %"], [*scores, calibration]), *_per_class(result)])


def _per_class(result: Result) -> list[str]:
    """Scores of each class, and which was taken for which; nothing if that was not asked for."""
    classes = {name: row for name, row in result.per_class.items() if row["queries"]}
    if result.confusion is None:
        return []
    rows = [
        [name, *(f"{100 * row[part]:.1f}" for part in ("precision", "recall", "f1")), int(row["queries"])]
        for name, row in classes.items()
    ]
    places = [result.class_names.index(name) for name in classes]
    counts = result.confusion[places][:, places].tolist()
    numbered = [[f"{i} {name}", *row] for i, (name, row) in enumerate(zip(classes, counts, strict=True), 1)]
    taken_for = table(["is, taken for", *map(str, range(1, len(places) + 1))], numbered)
    return ["", table(["class", "precision", "recall", "F1", "queries"], rows), "", taken_for]
