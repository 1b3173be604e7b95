"""Measure GPN+ beside the same method written plainly, and beside what a user would do instead of it.

Each in a process of its own: processor seconds and peak memory to a ready model, milliseconds an answer. The plain one
must give the same probabilities to 1e-4, or nothing is measured.
"""

from __future__ import annotations

import json
import os
import subprocess  # nosec B404
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from fewnode.bench.networks import planted
from fewnode.bench.plain import LogisticPipeline, PlainGPNPlus
from fewnode.bench.run import TOLERANCE, Disagreement, new_peak, ratios, resident
from fewnode.dataset import Dataset
from fewnode.episodes import EpisodeSampler, Task
from fewnode.errors import FewnodeError
from fewnode.estimator import Estimator

WAYS = ("plain", "logistic", "fewnode")
LABELS = {"ready": "to a ready model", "answer": "an answer", "peak_mb": "peak memory"}
GOALS = {"ready": {"plain": 5.0}, "answer": {}, "peak_mb": {"plain": 3.0}}
WAY, SHOT, ANSWERS = 5, 5, 50
DEGREE = 10
SPARSE = 1_000
"""Columns from which on attributes are words, 32 a node."""
SMALL = 3_000
"""Nodes of the network on which the plain formulation has to agree."""

Say = Callable[[str], None]


def made(nodes: int, attributes: int) -> Dataset:
    """A network of mean degree 10, with dense vectors or with words."""
    return planted(nodes, nodes * DEGREE // 2, attributes, 32 if attributes >= SPARSE else 0)


def bench_plus(nodes: int, attributes: int, say: Say) -> dict[str, Any]:
    """All figures for a network of so many nodes, as one JSON object."""
    apart = agree(made(min(SMALL, nodes), attributes))
    say(f"the plain formulation agrees to {apart:.0e} in probabilities")
    measured = {}
    for way in WAYS:
        say(f"{way}, in a process of its own")
        measured[way] = measure_apart(way, nodes, attributes)
    figures = {what: {way: measured[way][what] for way in WAYS} for what in LABELS}
    about = {"nodes": nodes, "edges": nodes * DEGREE // 2, "attributes": attributes}
    return {
        **figures,
        "ratio": ratios(figures),
        "goals": GOALS,
        "labels": LABELS,
        "agreement": apart,
        "provenance": about,
    }


def agree(data: Dataset) -> float:
    """The largest difference in probabilities; a `Disagreement` above 1e-4."""
    tasks = [episode.task for episode in EpisodeSampler(data, "test", WAY, SHOT).take(20)]
    ours, plain = (fitted(way, data) for way in ("fewnode", "plain"))
    apart = max(
        float(np.abs(one - other).max())
        for one, other in zip(
            ours.predict_tasks(data.graph, tasks), plain.predict_tasks(data.graph, tasks), strict=True
        )
    )
    if not apart <= TOLERANCE:
        raise Disagreement(f"the plain formulation differs by {apart:.1e} in probabilities; no time is measured")
    return apart


def fitted(way: str, data: Dataset) -> Any:
    if way == "logistic":
        return LogisticPipeline().fit(data)
    model = Estimator("gpn-plus")
    if way == "plain":
        model.method_ = PlainGPNPlus()
    return model.fit(data)


def answer(model: Any, data: Dataset, task: Task) -> None:
    if isinstance(model, LogisticPipeline):
        model.predict_proba(task.support, task.support_y, task.query)
    else:
        model.predict_tasks(data.graph, [task])


def measure(way: str, nodes: int, attributes: int) -> dict[str, float]:
    """In this process, after a tiny network has brought to memory what comes with first use."""
    torch.set_num_threads(1)
    tiny = made(600, attributes)
    answer(fitted(way, tiny), tiny, EpisodeSampler(tiny, "test", WAY, SHOT)[0].task)
    data = made(nodes, attributes)
    tasks = [episode.task for episode in EpisodeSampler(data, "test", WAY, SHOT).take(ANSWERS)]
    before = new_peak()
    start = time.process_time()
    model = fitted(way, data)
    ready = time.process_time() - start
    peak = resident("VmHWM") - before
    start = time.process_time()
    for task in tasks:
        answer(model, data, task)
    return {"ready": ready, "answer": (time.process_time() - start) / ANSWERS, "peak_mb": max(1.0, peak)}


def measure_apart(way: str, nodes: int, attributes: int) -> dict[str, float]:
    command = [sys.executable, "-m", "fewnode.bench.plus", way, str(nodes), str(attributes)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)  # noqa: S603 # nosec B603
    if done.returncode != 0:
        raise FewnodeError(f"measuring {way} failed: {done.stderr.strip().splitlines()[-1:]}")
    found: dict[str, float] = json.loads(done.stdout)
    return found


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
