"""What suggestions are worth: from 1 shot, four more labels a class, suggested or at random, on the same tasks.

Labels are asked for in rounds of as many nodes as there are classes. The pool is every node of
a class that training did not see: a node of another class is an answer too, of no use but that `suggest` is told of it.
Then the same with nodes of the task's own classes only, which nobody could pick out beforehand.

    python benchmarks/labelling.py debian ../shared/data/wikispeedia.npz
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable

import numpy as np
import torch

import fewnode
from fewnode.episodes import Episode, EpisodeSampler
from fewnode.estimator import Estimator
from fewnode.evaluation import Interval, interval
from fewnode.graph import Dataset, Ints

ROUNDS = 4
Choose = Callable[[Ints, Ints, Ints, Ints, int], list[int]]


def grown(data: Dataset, task: Episode, choose: Choose, pool: Ints) -> tuple[Ints, Ints]:
    """The support set after all rounds."""
    own = data.y[task.support]
    labelled, rejected = task.support, np.zeros(0, np.int64)
    for _ in range(ROUNDS):
        label = np.array([int(np.flatnonzero(own == data.y[v])[0]) for v in labelled])
        picked = np.array(choose(labelled, label, np.setdiff1d(pool, [*labelled, *rejected]), rejected, task.n_way))
        useful = np.isin(data.y[picked], own)
        labelled = np.concatenate([labelled, picked[useful]])
        rejected = np.concatenate([rejected, picked[~useful]])
    return labelled, np.array([int(np.flatnonzero(own == data.y[v])[0]) for v in labelled])


def compare(model: Estimator, data: Dataset, part: str, tasks: int, wide: bool) -> dict[str, object]:
    classes = data.split.part(part)
    sampler = EpisodeSampler(data, part, min(5, len(classes)), 1, 5)
    scores: dict[str, list[float]] = {"suggested": [], "random": []}
    useful: dict[str, list[int]] = {"suggested": [], "random": []}
    for t in range(tasks):
        task, rng = sampler[t], np.random.default_rng(t)
        inside = np.isin(data.y, classes if wide else data.y[task.support])
        pool = np.setdiff1d(np.flatnonzero(inside), np.concatenate([task.query, task.support]))
        choices: dict[str, Choose] = {
            "suggested": lambda s, y, pool, rejected, k: [
                found.node for found in fewnode.suggest(model, data, s, y, k, pool.tolist(), rejected.tolist())
            ],
            "random": lambda s, y, pool, rejected, k, rng=rng: rng.choice(pool, k, replace=False).tolist(),  # type: ignore[misc]
        }
        for name, choose in choices.items():
            support, label = grown(data, task, choose, pool)
            p = model.predict_proba(data.graph, support, label, task.query)
            scores[name].append(float((p.argmax(axis=1) == task.query_y).mean()))
            useful[name].append(len(support) - task.n_way)
    gain = np.subtract(scores["suggested"], scores["random"])[None]
    means = {name: str(interval(np.array(values)[None])) for name, values in scores.items()}
    labels = {f"useful labels, {name}": round(float(np.mean(found)), 1) for name, found in useful.items()}
    return {**means, "gain": str(Interval(interval(gain).mean, interval(gain).ci95)), **labels, "tasks": tasks}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="+")
    parser.add_argument("--tasks", type=int, default=50)
    parser.add_argument("--part", choices=["valid", "test"], default="test")
    options = parser.parse_args()
    torch.set_num_threads(1)
    for network in options.networks:
        data = fewnode.load(network)
        model = Estimator("gpn-plus").fit(data)
        for wide in (True, False):
            found: dict[str, object] = {
                "network": data.name,
                "pool": f"all {options.part} classes" if wide else "classes of the task",
            }
            found |= compare(model, data, options.part, options.tasks, wide)
            print(json.dumps(found, ensure_ascii=False), flush=True)


if __name__ == "__main__":
    main()
