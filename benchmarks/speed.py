"""Speed and memory beside other ways to write the same method: same network, same tasks, same machine.

    python benchmarks/speed.py                           # GPN+: 100,000 nodes, 500,000 edges, 64 dense attributes
    python benchmarks/speed.py --attributes 8000 --json  # with 8,000 words, 32 a node
    python benchmarks/speed.py --method gpn --size clothing --json
    python benchmarks/speed.py --method gpn --size reddit --way fewnode --rounds 1     # ours alone, in this process

gpn-plus: beside the same method with SciPy and NumPy (plain: whole matrices, one view after the other) and beside
tf-idf, truncated SVD, two propagations and logistic regression. gpn: beside the authors' formulation (naive) and that
of a PyG user (left out without PyG). What is the same method must agree to 1e-4 before any time is taken. Each way runs
in a process of its own, on one thread: seconds of the processor, peak memory beyond imports. Look at the ratios: how
many times ours the others take.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fewnode import __version__
from fewnode.dataset import Dataset
from fewnode.episodes import EpisodeSampler, Task
from fewnode.methods.gpn import GPN
from fewnode.model.estimator import Estimator
from fewnode.train import VALID_TASKS, Schedule
from formulations import DROPOUT, FORMULATIONS, LogisticPipeline, Ours, initial_networks
from networks import SIZES, network, planted
from plain_gpn_plus import PlainGPNPlus

WAY, SHOT, TASKS, ANSWERS, DEGREE = 5, 5, 500, 50, 10
TOLERANCE = 1e-4
WORDS_FROM = 1_000
"""Columns from which on the attributes of GPN+'s network are words, 32 a node."""
COMPARED = 3_000
"""Nodes of the network on which the plain formulation of GPN+ has to agree."""
TURNS = {"naive": (1, 1, 1), "pyg": (1, TASKS, 2), "fewnode": (20, TASKS, 8)}
"""Episodes, tasks and blocks of both in a round: about a second for each formulation."""
PROTOCOLS = 3
"""Whole trainings of ours a round. Theirs is put together from the best of each part."""
LABELS = {
    "training_episode": "a training episode",
    "protocol": "300 episodes, validated",
    "evaluation_500_tasks": "500 tasks",
    "ready": "to a ready model",
    "answer": "an answer",
    "peak_mb": "peak memory",
}
GOALS = {
    "training_episode": {"naive": 150.0, "pyg": 15.0},
    "protocol": {"naive": 400.0},
    "evaluation_500_tasks": {"naive": 2000.0},
    "ready": {"plain": 5.0},
    "peak_mb": {"naive": 5.0, "plain": 3.0},
}
"""How many times ours the others should take."""
ESTIMATED = ("protocol.naive", "protocol.pyg", "evaluation_500_tasks.naive")
"""Computed from measured episodes and tasks: to run them would take minutes."""


def seconds_of(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def resident(entry: str) -> float:
    """Megabytes: VmRSS now, VmHWM at most so far. `getrusage` would count the parent's peak as a child's."""
    return int(Path("/proc/self/status").read_text().partition(f"{entry}:")[2].split()[0]) / 1024


def new_peak() -> float:
    """Megabytes resident now; the peak begins anew."""
    Path("/proc/self/clear_refs").write_text("5")
    return resident("VmRSS")


def largest_difference(ours: Sequence[np.ndarray], theirs: Sequence[np.ndarray], what: str, relative: bool) -> float:
    """The end of the run if it is large: then no time means anything."""
    differences = []
    for one, other in zip(ours, theirs, strict=True):
        other = other if other.shape == one.shape else other.T  # PyG keeps its weights transposed
        scale = max(np.abs(one).max(), 1e-6) if relative else 1.0
        differences.append(np.abs(one - other).max() / scale)
    largest = float(np.max(differences))  # NaN if any is
    if not largest <= TOLERANCE:
        sys.exit(f"fewnode and {what} differ by {largest:.1e}; no time is measured")
    return largest


def tasks_of(data: Dataset, count: int) -> list[Task]:
    return [episode.task for episode in EpisodeSampler(data, "test", WAY, SHOT).take(count)]


# --- GPN ------------------------------------------------------------------------------------------------------------


def gpn_agrees(given: argparse.Namespace, ways: list[str]) -> tuple[dict[str, float], dict[str, Any]]:
    """The largest relative differences in loss, gradients and probabilities, without dropout; and what is measured."""
    data = network(SIZES[given.size])
    train, ours = EpisodeSampler(data, "train", WAY, SHOT), Ours(data, initial_networks(data))
    for t in range(30):  # at first all classes are about as likely, and anything would agree with that
        ours.episode(train, t)
    values = {}
    for way in ways:
        formulation = FORMULATIONS[way](data, ours.model)
        loss, gradients = formulation.loss_and_gradients(train[0])
        parts = [np.array(loss)], [np.asarray(part) for part in gradients], formulation.predict(tasks_of(data, 2))
        values[way] = dict(zip(("loss", "gradient", "probability"), parts, strict=True))
    worst = {
        what: max(largest_difference(own, values[way][what], f"{way} in {what}", relative=True) for way in ways)
        for what, own in values["fewnode"].items()
    }
    counts = {"nodes": data.graph.n, "edges": data.graph.n_edges, "attributes": data.graph.n_features}
    task = {"way": WAY, "shot": SHOT, "query": SHOT}
    return worst, {"size": given.size, "network": "generated", **counts, "task": task, "rounds": given.rounds}


def gpn_alone(way: str, given: argparse.Namespace) -> dict[str, float]:
    """A tiny network brings to memory first what comes with first use, as compiled loops do."""
    episodes, tasks, blocks = TURNS[way]

    def trained(data: Dataset, **options: Any) -> GPN:
        train, valid = (EpisodeSampler(data, part, WAY, SHOT) for part in ("train", "valid"))
        return GPN(**options).fit(data.graph, train, valid)

    def some_of_everything(data: Dataset) -> None:
        formulation = FORMULATIONS[way](data, initial_networks(data))
        for t in range(3):
            formulation.episode(EpisodeSampler(data, "train", WAY, SHOT), t)
        formulation.predict(tasks_of(data, tasks))
        if way == "fewnode":
            trained(data, episodes=20)

    some_of_everything(network(SIZES["tiny"]))
    before = new_peak()
    data = network(SIZES[given.size])
    some_of_everything(data)
    peak = max(0.0, resident("VmHWM") - before)  # the kernel counts in batches, each number in its own
    start = time.process_time()
    formulation = FORMULATIONS[way](data, initial_networks(data))
    prepared = time.process_time() - start
    train, pool = EpisodeSampler(data, "train", WAY, SHOT), tasks_of(data, tasks)
    few = pool[:VALID_TASKS]
    episode, task, validation = [], [], []
    for turn in range(given.rounds * blocks):
        block = range(turn * episodes, (turn + 1) * episodes)
        episode.append(seconds_of(lambda block=block: [formulation.episode(train, t) for t in block]) / episodes)
        task.append(seconds_of(lambda: formulation.predict(pool)) / tasks)
        validation.append(seconds_of(lambda: formulation.predict(few)) / len(few) * VALID_TASKS)
    plan = Schedule()
    protocol = [prepared + plan.episodes * min(episode) + plan.episodes // plan.validate_every * min(validation)]
    if way == "fewnode":  # with the others' dropout: by default there is a training for each that is tried
        whole = range(given.rounds * PROTOCOLS)
        protocol = [seconds_of(lambda: trained(data, patience=1000, dropout=DROPOUT)) for _ in whole]
    spent = {"training_episode": min(episode), "protocol": min(protocol), "evaluation_500_tasks": TASKS * min(task)}
    return {**spent, "peak_mb": peak}


# --- GPN+ -----------------------------------------------------------------------------------------------------------


def made(nodes: int, attributes: int) -> Dataset:
    return planted(nodes, nodes * DEGREE // 2, attributes, 32 if attributes >= WORDS_FROM else 0)


def fitted(way: str, data: Dataset) -> Callable[[list[Task]], list[np.ndarray]]:
    """What answers tasks."""
    if way == "logistic":
        return LogisticPipeline(data).predict
    model = Estimator("gpn-plus")
    if way == "plain":
        model.method_ = PlainGPNPlus()
    model.fit(data)
    return lambda tasks: model.predict_tasks(data.graph, tasks)


def gpn_plus_agrees(given: argparse.Namespace, ways: list[str]) -> tuple[float, dict[str, Any]]:
    data = made(min(COMPARED, given.nodes), given.attributes)
    ours, plain = (fitted(way, data)(tasks_of(data, 20)) for way in ("fewnode", "plain"))
    about = {"nodes": given.nodes, "edges": given.nodes * DEGREE // 2, "attributes": given.attributes}
    return largest_difference(ours, plain, "plain in probability", relative=False), about


def gpn_plus_alone(way: str, nodes: int, attributes: int) -> dict[str, float]:
    """A tiny network brings to memory first what comes with first use."""
    tiny, data = made(600, attributes), made(nodes, attributes)
    tasks = tasks_of(data, ANSWERS)
    fitted(way, tiny)(tasks_of(tiny, 1))
    before, start = new_peak(), time.process_time()
    answer = fitted(way, data)
    ready, peak = time.process_time() - start, resident("VmHWM") - before
    spent = seconds_of(lambda: [answer([task]) for task in tasks])
    return {"ready": ready, "answer": spent / ANSWERS, "peak_mb": max(1.0, peak)}


def apart(way: str) -> dict[str, float]:
    """What `--way` prints: this command again, in a process of its own."""
    print(f"{way}, in a process of its own", file=sys.stderr, flush=True)
    environment = os.environ | dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    command = [sys.executable, __file__, *sys.argv[1:], "--way", way]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True, env=environment).stdout)


def measure(given: argparse.Namespace) -> dict[str, Any]:
    ways, agrees = ["plain", "logistic", "fewnode"], gpn_plus_agrees
    if given.method == "gpn":
        ways, agrees = [way for way in FORMULATIONS if way != "pyg" or find_spec("torch_geometric")], gpn_agrees
    start = time.perf_counter()
    agreement, about = agrees(given, ways)
    print(f"they agree: {agreement}", file=sys.stderr, flush=True)
    measured = {way: apart(way) for way in ways}
    found: dict[str, Any] = {what: {way: measured[way][what] for way in ways} for what in measured["fewnode"]}
    ratio = {what: {way: row[way] / row["fewnode"] for way in ways[:-1]} for what, row in found.items()}
    goals = {what: {way: goal for way, goal in GOALS.get(what, {}).items() if way in ways} for what in found}
    labels = {what: LABELS[what] for what in found}
    guessed = [place for place in ESTIMATED if set(place.split(".")) <= {*found, *ways}]
    estimated = {"estimated": guessed} if guessed else {}
    about |= {
        "threads": torch.get_num_threads(),
        "seconds": "of the processor, best of the rounds",
        "processor": Path("/proc/cpuinfo").read_text().partition("model name\t: ")[2].partition("\n")[0],
        "cores": os.cpu_count(),
        "versions": {"fewnode": __version__, "python": platform.python_version(), "torch": torch.__version__},
        "took_seconds": time.perf_counter() - start,
    }
    found |= {"ratio": ratio, **estimated, "goals": goals, "labels": labels}
    return {**found, "agreement": agreement, "provenance": about}


def table(found: dict[str, Any]) -> str:
    def amount(what: str, value: float) -> str:
        return f"{value:,.0f} MB" if what == "peak_mb" else f"{1000 * value:.1f} ms" if value < 1 else f"{value:.1f} s"

    others = list(found["ratio"]["peak_mb"])
    rows = [["", *others, "fewnode", *(f"/{way}" for way in others)]]
    for what, title in found["labels"].items():
        times = [f"{ratio:.0f}x" if ratio >= 10 else f"{ratio:.1f}x" for ratio in found["ratio"][what].values()]
        rows.append([title, *(amount(what, value) for value in found[what].values()), *times])
    return "\n".join(f"{title:24}" + "".join(f"{cell:>11}" for cell in cells) for title, *cells in rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--method", choices=("gpn-plus", "gpn"), default="gpn-plus")
    parser.add_argument("--nodes", type=int, default=100_000, help="for gpn-plus: five edges each")
    parser.add_argument("--attributes", type=int, default=64, help="for gpn-plus: dense ones; from 1000 on, words")
    parser.add_argument("--size", choices=tuple(SIZES), default="clothing", help="for gpn")
    parser.add_argument("--rounds", type=int, default=3, help="for gpn: the best one counts")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.add_argument(
        "--way", choices=(*FORMULATIONS, "plain", "logistic"), help="measure this one alone, in this process"
    )
    given = parser.parse_args()
    torch.set_num_threads(1)
    if given.way and given.method == "gpn":
        print(json.dumps(gpn_alone(given.way, given)))
    elif given.way:
        print(json.dumps(gpn_plus_alone(given.way, given.nodes, given.attributes)))
    else:
        found = measure(given)
        print(json.dumps(found) if given.json else table(found))


if __name__ == "__main__":
    main()
