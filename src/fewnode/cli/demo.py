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
    from fewnode.model.estimator import Estimator

METHODS = {
    "gpn": ("GPN", "yes"),
    "propagation": ("Propagation, no search", "none"),
    "gpn-plus": ("GPN+", "yes"),
    "transductive": ("GPN+, transductive", "yes"),
}
PLAIN: dict[str, Any] = {"steps": 2, "scaling": "tf-idf", "centre": False, "distance": "cosine"}
"""The training-free bar without its search: that is `--method propagation`."""


class Demo(Options):
    """How long it takes, and where it goes."""

    out: Path = option("Directory for the model and what is printed; made anew.", Path("demo"))
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
    from fewnode._system.files import need_no_file, write_text
    from fewnode.evaluation import evaluate
    from fewnode.formats.sources import load
    from fewnode.model.estimator import Estimator

    results_file, run, tasks = asked.out / "results.txt", asked.out / "run", asked.tasks
    need_no_file(asked.out)
    if (run / "model.json").exists() and not results_file.exists():  # somebody's own: an earlier demo has left both
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
    results = {"gpn": evaluate(gpn, data, 5, 5, tasks=tasks), "propagation": plain}
    results["gpn-plus"] = evaluate(plus, data, 5, 5, tasks=tasks)
    results["transductive"] = evaluate(plus, data, 5, 5, tasks=tasks, transductive=True)
    example = _example(plus, data)
    if (run / "model.json").exists():
        shutil.rmtree(run)
    plus.trained_["data"]["path"] = "debian"
    plus.save(run)
    metrics = ("accuracy", "macro_f1", "weighted_f1")
    rows = [(*METHODS[name], *(result[metric] for metric in metrics)) for name, result in results.items()]
    shown = [
        f"{len(data.split.test)} classes never seen in training; 5-way 5-shot, {tasks} tasks, % ± 95 %\n",
        table(["method", "training", "accuracy", "macro-F1", "weighted F1"], rows),
        *_words(example),
    ]
    write_text(results_file, "\n".join([*shown, ""]))
    made = f"\nresults: {results_file}   model: {run}"
    following = f"next:    fewnode predict --run {run} --support support.csv --all --out p.csv"
    value = {"results": {name: result.to_json() for name, result in results.items()}, "example": example}
    say.result({**value, "out": str(asked.out)}, "\n".join(["", *shown, made, following]))


def _example(model: Estimator, data: Dataset) -> dict[str, Any]:
    """The first test task that begins with games: its support nodes with β, and what its queries are taken for."""
    from fewnode.episodes import EpisodeSampler

    sampler = EpisodeSampler(data, "test", 5, 5)
    games = data.class_names.index("games")
    task = next(sampler[t] for t in range(10_000) if data.y[sampler[t].support[0]] == games)
    classes = {data.class_names[c]: task.support[data.y[task.support] == c] for c in data.y[task.support]}
    answers = model.ask(data, classes).judge(task.query[task.query_y == 0], closed_set=True, explain=True)
    beta = answers.why.beta.tolist() if answers.why else []
    support = [(node, b) for (node, name), b in zip(answers.support, beta, strict=True) if name == "games"]
    columns = zip(answers.nodes, answers.labels, answers.probability.tolist(), answers.nearest, strict=True)
    judged = [
        {"node": node, "label": label, "probability": p, "right": label == "games", "nearest": nearest[0]}
        for node, label, p, nearest in columns
    ]
    return {"label": "games", "others": sorted({*classes} - {"games"}), "support": support, "answers": judged}


def _words(example: dict[str, Any]) -> list[str]:
    """The example, line by line."""
    lines = [
        f"\nA new class, {example['label']!r}, from five packages; β is their weight in its prototype:",
        *(f"  {node:<36} β = {beta:.3f}" for node, beta in example["support"]),
        f"What GPN+ says of other {example['label']} (it could be {', '.join(example['others'])}):",
    ]
    for answer in example["answers"]:
        mark = "" if answer["right"] else "   (wrong)"
        lines.append(f"  {answer['node']:<36} {answer['label']:<14} {answer['probability']:.2f}{mark}")
    return lines
