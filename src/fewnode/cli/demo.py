"""`fewnode demo`: the main job, start to end, on the embedded network."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from fewnode._system.files import need_no_file
from fewnode.cli.output import Json, Quiet, Threads, emit, following, note, set_threads, table
from fewnode.errors import FewnodeError
from fewnode.methods.table import written

if TYPE_CHECKING:
    from fewnode.dataset import Dataset
    from fewnode.evaluation import Result
    from fewnode.model.estimator import Estimator

METHODS = {
    "gpn": (written("gpn"), "yes"),
    "propagation": (f"{written('propagation')}, no search", "none"),
    "gpn-plus": (written("gpn-plus"), "yes"),
    "transductive": (f"{written('gpn-plus')}, transductive", "yes"),
}
PLAIN: dict[str, Any] = {"steps": 2, "scaling": "tf-idf", "centre": False, "distance": "cosine"}
"""The training-free bar without its search: that is `--method propagation`."""


def demo(
    out: Path = typer.Option(Path("demo"), "--out", help="Directory for the model and report.html; made anew."),
    episodes: int = typer.Option(300, "--episodes", min=1, help="Training tasks at most."),
    tasks: int = typer.Option(200, "--tasks", min=2, help="Test tasks."),
    seed: int = typer.Option(0, "--seed", min=0, help="Of weights and training tasks."),
    threads: int = Threads,
    quiet: bool = Quiet,
    as_json: bool = Json,
) -> None:
    """Train, test and explain on a real network, in about a minute: Debian's packages.

    GPN learns from 27 sections of the archive and is tested on 16 others. The same 5-way 5-shot tasks are given to
    GPN+, and to a classifier that learns no weights: attributes spread over the graph, nearest class mean.

    \b
    Example:
      fewnode demo --out demo
      fewnode predict --run demo/run --support support.csv --all --out p.csv
      fewnode serve --run demo/run
    """
    from fewnode.evaluation import evaluate
    from fewnode.formats.sources import load
    from fewnode.model.estimator import Estimator

    _check_free(out)
    set_threads(threads)
    data = load("debian")
    note(f"{data.name}: {data.graph}", quiet)
    plain = evaluate(Estimator("propagation", **PLAIN).fit(data), data, 5, 5, tasks=tasks)
    note(f"new classes from five packages each, without any training: {plain.accuracy} % right", quiet)
    gpn = Estimator("gpn", way=5, shot=5, seed=seed, episodes=episodes)
    with following(episodes, quiet, "GPN is trained, as in the paper; then GPN+") as on_step:
        gpn.fit(data, on_step=on_step)
    plus = Estimator("gpn-plus", way=5, shot=5, seed=seed).fit(data)
    trained = evaluate(gpn, data, 5, 5, tasks=tasks), evaluate(plus, data, 5, 5, tasks=tasks)
    results = {"gpn": trained[0], "propagation": plain, "gpn-plus": trained[1]}
    results["transductive"] = evaluate(plus, data, 5, 5, tasks=tasks, transductive=True)
    example = _example(plus, data)
    _write_report(out / "report.html", data, gpn, results, example)
    replace_run(plus, out / "run")
    if as_json:
        emit({"results": {name: r.to_json() for name, r in results.items()}, "example": example, "out": str(out)})
    else:
        _print(data, results, example, out)


def _check_free(out: Path) -> None:
    """Only what an earlier demo left is replaced: a run without its report is somebody's own."""
    need_no_file(out)
    if (out / "run" / "model.json").exists() and not (out / "report.html").exists():
        raise FewnodeError(f"{out / 'run'}: there is a run that no demo has made; choose another --out")


def _example(model: Estimator, data: Dataset) -> dict[str, Any]:
    """The first test task that begins with games: its support nodes with β, and what its queries are taken for."""
    from fewnode.episodes import EpisodeSampler

    sampler = EpisodeSampler(data, "test", 5, 5)
    games = data.class_names.index("games")
    task = next(sampler[t] for t in range(10_000) if data.y[sampler[t].support[0]] == games)
    names = [data.class_names[data.y[node]] for node in task.support]
    asked = task.query[task.query_y == 0]
    probability = model.predict_proba(data.graph, task.support, names, asked)
    why = model.explain(data.graph, task.support, names, asked)
    columns = sorted(set(names))
    answers = [
        {
            "node": data.node_name(node),
            "label": columns[row.argmax()],
            "probability": float(row.max()),
            "right": columns[row.argmax()] == names[0],
            "nearest": data.node_name(task.support[near[0]]),
        }
        for node, row, near in zip(asked, probability, why.nearest, strict=True)
    ]
    ours = task.support_y == 0
    support = [(data.node_name(v), float(b)) for v, b in zip(task.support[ours], why.beta[ours], strict=True)]
    return {"label": names[0], "others": sorted(set(names) - {names[0]}), "support": support, "answers": answers}


def replace_run(model: Estimator, run: Path) -> None:
    """Save the model in place of the last demo's."""
    if (run / "model.json").exists():
        shutil.rmtree(run)
    model.trained_["data"]["path"] = "debian"
    model.save(run)


def _write_report(
    path: Path, data: Dataset, gpn: Estimator, results: dict[str, Result], example: dict[str, Any]
) -> None:
    from fewnode.experiment.figures import long_tail, training_curve
    from fewnode.experiment.report import write_page

    best = max(results, key=lambda name: results[name].accuracy.mean)
    rows = [
        {
            "method": METHODS[name][0],
            "trained": METHODS[name][1],
            "best": name == best,
            **{metric: str(result[metric]) for metric in ("accuracy", "macro_f1", "weighted_f1")},
        }
        for name, result in results.items()
    ]
    tasks = results["gpn"].per_task["accuracy"].size
    sizes = {part: data.class_sizes[list(data.split.part(part))].tolist() for part in ("train", "valid", "test")}
    write_page(
        path,
        "demo.html",
        data=data,
        rows=rows,
        setting=f"5-way 5-shot, 5 queries a class, {tasks} tasks",
        example=example,
        curve=training_curve(gpn.method_.history_.points),
        histogram=long_tail(sizes, (7.0, 3.0)),
    )


def _print(data: Dataset, results: dict[str, Result], example: dict[str, Any], out: Path) -> None:
    tasks = results["gpn"].per_task["accuracy"].size
    typer.echo(f"\n{len(data.split.test)} classes never seen in training; 5-way 5-shot, {tasks} tasks, % ± 95 %\n")
    rows = [
        (METHODS[name][0], METHODS[name][1], result.accuracy, result["macro_f1"], result["weighted_f1"])
        for name, result in results.items()
    ]
    typer.echo(table(["method", "training", "accuracy", "macro-F1", "weighted F1"], rows))
    others = ", ".join(example["others"])
    typer.echo(f"\nA new class, {example['label']!r}, from five packages; β is their weight in its prototype:")
    for node, beta in example["support"]:
        typer.echo(f"  {node:<36} β = {beta:.3f}")
    typer.echo(f"What GPN+ says of other {example['label']} (it could be {others}):")
    for answer in example["answers"]:
        mark = "" if answer["right"] else "   (wrong)"
        typer.echo(f"  {answer['node']:<36} {answer['label']:<14} {answer['probability']:.2f}{mark}")
    typer.echo(f"\nreport: {out}/report.html   model: {out}/run")
    typer.echo(f"next:   fewnode predict --run {out}/run --support support.csv --all --out p.csv")
