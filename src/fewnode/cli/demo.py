"""`fewnode demo`: the main job, start to end, on the embedded network."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fewnode.cli.options import options
from fewnode.cli.output import Printing, Threads, table
from fewnode.errors import FewnodeError
from fewnode.options import Options, option

if TYPE_CHECKING:
    from fewnode.dataset import Dataset
    from fewnode.evaluation import Result
    from fewnode.model.estimator import Estimator

METHODS = {
    "gpn": ("GPN", "yes"),
    "propagation": ("Propagation, no search", "none"),
    "gpn-plus": ("GPN+", "yes"),
    "transductive": ("GPN+, transductive", "yes"),
}
METRICS = ("accuracy", "macro_f1", "weighted_f1")
PLAIN: dict[str, Any] = {"steps": 2, "scaling": "tf-idf", "centre": False, "distance": "cosine"}
"""The training-free bar without its search: that is `--method propagation`."""


class Demo(Options):
    """How long it takes, and where it goes."""

    out: Path = option("Directory for the model and report.html; made anew.", Path("demo"))
    episodes: int = option("Training tasks at most.", 300, ge=1)
    tasks: int = option("Test tasks.", 200, ge=2)
    seed: int = option("Of weights and training tasks.", 0, ge=0)


@options(Demo, Threads, Printing)
def demo(asked: Demo, threads: Threads, say: Printing) -> None:
    """Train, test and explain on a real network, in about a minute: Debian's packages.

    GPN learns from 27 sections of the archive and is tested on 16 others. The same 5-way 5-shot tasks are given to
    GPN+, and to a classifier that learns no weights: attributes spread over the graph, nearest class mean.

    \b
    Example:
      fewnode demo --out demo
      fewnode predict --run demo/run --support support.csv --all --out p.csv
      fewnode serve --run demo/run
    """
    from fewnode._system.files import need_no_file
    from fewnode.evaluation import evaluate
    from fewnode.formats.sources import load
    from fewnode.model.estimator import Estimator

    page, run, tasks = asked.out / "report.html", asked.out / "run", asked.tasks
    need_no_file(asked.out)
    if (run / "model.json").exists() and not page.exists():  # somebody's own: an earlier demo has left both
        raise FewnodeError(f"{run}: there is a run that no demo has made; choose another --out")
    threads.use()
    data = load("debian")
    say.note(f"{data.name}: {data.graph}")
    plain = evaluate(Estimator("propagation", **PLAIN).fit(data), data, 5, 5, tasks=tasks)
    say.note(f"new classes from five packages each, without any training: {plain.accuracy} % right")
    gpn = Estimator("gpn", way=5, shot=5, seed=asked.seed, episodes=asked.episodes)
    with say.following(gpn.method_, "GPN is trained, as in the paper; then GPN+") as on_step:
        gpn.fit(data, on_step=on_step)
    plus = Estimator("gpn-plus", way=5, shot=5, seed=asked.seed).fit(data)
    trained = evaluate(gpn, data, 5, 5, tasks=tasks), evaluate(plus, data, 5, 5, tasks=tasks)
    results = {"gpn": trained[0], "propagation": plain, "gpn-plus": trained[1]}
    results["transductive"] = evaluate(plus, data, 5, 5, tasks=tasks, transductive=True)
    example = _example(plus, data)
    _write_page(page, gpn, data, results, example)
    if (run / "model.json").exists():
        shutil.rmtree(run)
    plus.trained_["data"]["path"] = "debian"
    plus.save(run)
    value = {"results": {name: result.to_json() for name, result in results.items()}, "example": example}
    say.result({**value, "out": str(asked.out)}, _shown(data, results, example, asked))


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


def _write_page(path: Path, gpn: Estimator, data: Dataset, results: dict[str, Result], example: dict[str, Any]) -> None:
    from fewnode.experiment.figures import long_tail, training_curve
    from fewnode.experiment.report import write_page

    best = max(results, key=lambda name: results[name].accuracy.mean)
    rows = [
        {
            "method": METHODS[name][0],
            "trained": METHODS[name][1],
            "best": name == best,
            **{metric: str(result[metric]) for metric in METRICS},
        }
        for name, result in results.items()
    ]
    sizes = {part: data.class_sizes[list(data.split.part(part))].tolist() for part in ("train", "valid", "test")}
    write_page(
        path,
        "demo.html",
        data=data,
        rows=rows,
        setting=f"5-way 5-shot, 5 queries a class, {results['gpn'].per_task['accuracy'].size} tasks",
        example=example,
        curve=training_curve(gpn.method_.history_.points),
        histogram=long_tail(sizes, (7.0, 3.0)),
    )


def _shown(data: Dataset, results: dict[str, Result], example: dict[str, Any], asked: Demo) -> str:
    rows = [(*METHODS[name], *(result[metric] for metric in METRICS)) for name, result in results.items()]
    lines = [
        f"\n{len(data.split.test)} classes never seen in training; 5-way 5-shot, {asked.tasks} tasks, % ± 95 %\n",
        table(["method", "training", "accuracy", "macro-F1", "weighted F1"], rows),
        f"\nA new class, {example['label']!r}, from five packages; β is their weight in its prototype:",
        *(f"  {node:<36} β = {beta:.3f}" for node, beta in example["support"]),
        f"What GPN+ says of other {example['label']} (it could be {', '.join(example['others'])}):",
    ]
    for answer in example["answers"]:
        mark = "" if answer["right"] else "   (wrong)"
        lines.append(f"  {answer['node']:<36} {answer['label']:<14} {answer['probability']:.2f}{mark}")
    lines.append(f"\nreport: {asked.out}/report.html   model: {asked.out}/run")
    return "\n".join([*lines, f"next:   fewnode predict --run {asked.out}/run --support support.csv --all --out p.csv"])
