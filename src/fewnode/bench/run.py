"""Measure the three formulations in one run: they must agree first, then time by turns, memory in own processes.

Times are of the processor, one thread, so that other work on the machine counts as little as it can; repetitions of
the three take turns, and the best of each is kept. Ratios are what the figures are for.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess  # nosec B404
import sys
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fewnode import __version__
from fewnode.bench.formulations import DROPOUT, FORMULATIONS, Formulation, Ours, initial_networks
from fewnode.bench.networks import SIZES, Size, network
from fewnode.dataset import Dataset
from fewnode.episodes import Episode, EpisodeSampler, Task
from fewnode.errors import FewnodeError
from fewnode.gpn import Networks
from fewnode.methods.gpn import GPN
from fewnode.train import VALID_TASKS, Schedule

WAY, SHOT, TASKS = 5, 5, 500
TOLERANCE = 1e-4
LABELS = {
    "training_episode": "a training episode",
    "protocol": "300 episodes, validated",
    "evaluation_500_tasks": "500 tasks",
    "peak_mb": "peak memory",
}
"""What is measured."""
GOALS = {
    "training_episode": {"naive": 150.0, "pyg": 15.0},
    "protocol": {"naive": 400.0},
    "evaluation_500_tasks": {"naive": 2000.0},
    "peak_mb": {"naive": 5.0},
}
"""How many times more the others should take."""
ESTIMATED = ("protocol.naive", "protocol.pyg", "evaluation_500_tasks.naive")
"""Computed from measured episodes and tasks: to run them would take minutes."""

Say = Callable[[str], None]
Figures = dict[str, dict[str, float]]


class Disagreement(FewnodeError):
    """Two formulations gave different numbers: no time of theirs means anything."""


def bench(size: str, edges: Path | None, rounds: int, say: Say) -> dict[str, Any]:
    """All figures of a network of that size, as one JSON object."""
    if size not in SIZES:
        raise FewnodeError(f"unknown size {size!r}; known are {', '.join(SIZES)}")
    start = time.perf_counter()
    data = network(SIZES[size], edges=edges)
    say(f"{size}: {data.graph}")
    found: Figures = {"peak_mb": {}}
    names = _measured(say)
    for name in names:
        say(f"memory of {name}, in a process of its own")
        found["peak_mb"][name] = peak_of(name, size, edges)
    times, agreement = _times(data, names, rounds, say)
    figures = {**times, **found}
    return {
        **figures,
        "ratio": ratios(figures),
        "estimated": [what for what in ESTIMATED if what.rpartition(".")[2] in names],
        "goals": GOALS,
        "labels": LABELS,
        "agreement": agreement,
        "provenance": _provenance(size, data, edges, rounds, time.perf_counter() - start),
    }


def _measured(say: Say) -> Collection[str]:
    """The formulations that can be had here."""
    if find_spec("torch_geometric") is not None:
        return FORMULATIONS
    say("pyg is left out, as it needs PyG: pip install 'fewnode[pyg]'")
    return [name for name in FORMULATIONS if name != "pyg"]


def ratios(figures: Figures) -> Figures:
    """How many times ours the others take."""
    others = {what: {k: v for k, v in row.items() if k != "fewnode"} for what, row in figures.items()}
    return {what: {k: v / figures[what]["fewnode"] for k, v in row.items()} for what, row in others.items()}


def _provenance(size: str, data: Dataset, edges: Path | None, rounds: int, seconds: float) -> dict[str, Any]:
    return {
        "size": size,
        "network": "generated" if edges is None else str(edges),
        "nodes": data.graph.n,
        "edges": data.graph.n_edges,
        "attributes": data.graph.n_features,
        "task": {"way": WAY, "shot": SHOT, "query": SHOT},
        "threads": torch.get_num_threads(),
        "rounds": rounds,
        "seconds": "of the processor, best of the rounds",
        "processor": _processor(),
        "cores": os.cpu_count(),
        "versions": {"fewnode": __version__, "python": platform.python_version(), "torch": torch.__version__},
        "took_seconds": seconds,
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


# --- do they agree? -----------------------------------------------------------------------------------------------


def agree(formulations: dict[str, Formulation], train: Episode, tasks: list[Task]) -> dict[str, float]:
    """The largest relative differences in loss, gradient and probabilities; a `Disagreement` above 1e-4."""
    values = {name: _values(formulation, train, tasks) for name, formulation in formulations.items()}
    ours = values["fewnode"]
    worst = {"loss": 0.0, "gradient": 0.0, "probability": 0.0}
    for name, theirs in values.items():
        for what in worst:
            apart = max(_apart(a, b) for a, b in zip(ours[what], theirs[what], strict=True))
            if not apart <= TOLERANCE:
                raise Disagreement(f"fewnode and {name} differ by {apart:.1e} in {what}; no time is measured")
            worst[what] = max(worst[what], apart)
    return worst


def _values(formulation: Formulation, train: Episode, tasks: list[Task]) -> dict[str, list[np.ndarray[Any, Any]]]:
    """With dropout off: PyG draws it in its own way."""
    loss, gradient = formulation.loss_and_gradients(train)
    return {
        "loss": [np.array(loss)],
        "gradient": [part.numpy() for part in gradient],
        "probability": list(formulation.predict(tasks)),
    }


def _apart(ours: np.ndarray[Any, Any], theirs: np.ndarray[Any, Any]) -> float:
    theirs = theirs if theirs.shape == ours.shape else theirs.T  # PyG keeps its weights transposed
    return float(np.abs(ours - theirs).max() / max(np.abs(ours).max(), 1e-6))


# --- time ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Turns:
    """What a formulation does in a round: so many blocks of episodes and tasks; about a second, each of them."""

    episodes: int
    tasks: int
    blocks: int


PROTOCOLS = 3
"""Runs of our whole protocol a round. Theirs is put together from the best of each part, and a machine that others use
is seldom at its best for as long as ours takes.
"""
TURNS = {"naive": Turns(1, 1, 1), "pyg": Turns(1, TASKS, 2), "fewnode": Turns(20, TASKS, 8)}


def _times(data: Dataset, names: Collection[str], rounds: int, say: Say) -> tuple[Figures, dict[str, float]]:
    train, test = (EpisodeSampler(data, part, WAY, SHOT) for part in ("train", "test"))
    pool = [episode.task for episode in test.take(TASKS)]
    networks, ready, prepared = trained(data, train), {}, {}
    for name in names:
        start = time.process_time()
        ready[name] = FORMULATIONS[name](data, networks)
        prepared[name] = time.process_time() - start
    agreement = agree(ready, train[0], pool[:2])
    say(f"they agree to {max(agreement.values()):.0e} in loss, gradient and probabilities")
    best = {name: {"episode": np.inf, "task": np.inf, "pool": np.inf, "protocol": np.inf} for name in ready}
    for turn in range(rounds):
        say(f"time, round {turn + 1} of {rounds}")
        for name, formulation in ready.items():
            for block in range(TURNS[name].blocks):
                for what, seconds in _block(formulation, TURNS[name], train, pool, turn + block).items():
                    best[name][what] = min(best[name][what], seconds)
        for _ in range(PROTOCOLS):
            best["fewnode"]["protocol"] = min(best["fewnode"]["protocol"], protocol_seconds(data))
    return _figures(best, prepared), agreement


def trained(data: Dataset, train: EpisodeSampler) -> Networks:
    """Networks after a few episodes: at first all classes are about as likely, and anything would agree with that."""
    ours = Ours(data, initial_networks(data))
    for t in range(30):
        ours.episode(train, t)
    return ours.model


def _block(
    formulation: Formulation, turns: Turns, train: EpisodeSampler, pool: list[Task], turn: int
) -> dict[str, float]:
    """Processor seconds of a training episode, of a task, and of as many tasks as validate."""

    def episodes() -> None:
        for t in range(turns.episodes):
            formulation.episode(train, turn * turns.episodes + t)

    tasks = seconds_of(lambda: formulation.predict(pool[: turns.tasks]))
    few = pool[: min(VALID_TASKS, turns.tasks)]
    return {
        "episode": seconds_of(episodes) / turns.episodes,
        "task": tasks / turns.tasks,
        "pool": seconds_of(lambda: formulation.predict(few)) / len(few) * VALID_TASKS,
    }


def _figures(best: dict[str, dict[str, float]], prepared: dict[str, float]) -> Figures:
    plan = Schedule()
    validations = plan.episodes // plan.validate_every
    for name, own in best.items():
        if name != "fewnode":
            own["protocol"] = prepared[name] + plan.episodes * own["episode"] + validations * own["pool"]
    return {
        "training_episode": {name: own["episode"] for name, own in best.items()},
        "protocol": {name: own["protocol"] for name, own in best.items()},
        "evaluation_500_tasks": {name: TASKS * own["task"] for name, own in best.items()},
    }


def protocol_seconds(data: Dataset) -> float:
    """One whole training, preparation included: 300 episodes, 50 validation tasks after every tenth.

    Dropout is that of the others: by default there would be a training for each dropout that is tried.
    """
    train, valid = (EpisodeSampler(data, part, WAY, SHOT) for part in ("train", "valid"))
    return seconds_of(lambda: GPN(patience=1000, dropout=DROPOUT).fit(data.graph, train, valid))


def seconds_of(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


# --- memory -------------------------------------------------------------------------------------------------------


def peak_of(name: str, size: str, edges: Path | None) -> float:
    command = [sys.executable, "-m", "fewnode.bench.run", name, size, *([str(edges)] if edges else [])]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)  # noqa: S603 # nosec B603
    if done.returncode != 0:
        raise FewnodeError(f"measuring the memory of {name} failed: {done.stderr.strip().splitlines()[-1:]}")
    return float(json.loads(done.stdout)["peak_mb"])


def peak(name: str, size: Size, edges: Path | None) -> float:
    """Megabytes that training and evaluating takes at its peak, beyond what importing takes.

    What comes to memory only when it is first used, as compiled loops do, is brought there by a tiny network before.
    """
    torch.set_num_threads(1)
    _work(name, SIZES["tiny"], None)
    before = new_peak()
    _work(name, size, edges)
    return max(0.0, resident("VmHWM") - before)  # the kernel counts in batches, each number in its own


def _work(name: str, size: Size, edges: Path | None) -> None:
    data = network(size, edges=edges)
    train, test = (EpisodeSampler(data, part, WAY, SHOT) for part in ("train", "test"))
    formulation: Formulation = FORMULATIONS[name](data, initial_networks(data))
    for t in range(3):
        formulation.episode(train, t)
    formulation.predict([episode.task for episode in test.take(2 if name == "naive" else TASKS)])
    if isinstance(formulation, Ours):
        GPN(episodes=20).fit(data.graph, train, EpisodeSampler(data, "valid", WAY, SHOT))


def new_peak() -> float:
    """Megabytes resident now; the peak begins anew."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return resident("VmRSS")


def resident(entry: str) -> float:
    """Megabytes: VmRSS now, VmHWM at most so far. `getrusage` would count the parent's peak as a child's."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(entry)) / 1024


if __name__ == "__main__":
    _, which, named, *given = sys.argv
    print(json.dumps({"peak_mb": peak(which, SIZES[named], Path(given[0]) if given else None)}))
