"""What suggestions are worth: from 1 shot, four more labels a class, suggested or at random, on the same tasks.

Labels are asked for in rounds of as many nodes as there are classes. The pool is every node of the task's classes that
is not a query, or of all test classes: then a node of another class is an answer too, of no use.

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
Choose = Callable[[Ints, Ints, Ints, int], list[int]]


def grown(data: Dataset, task: Episode, choose: Choose, wide: bool) -> tuple[Ints, Ints]:
    """The support set after all rounds."""
    support, label = task.support, task.support_y
    own = data.y[task.support]
    asked = data.split.test if wide else own
    pool = np.setdiff1d(np.flatnonzero(np.isin(data.y, asked)), np.concatenate([task.query, support]))
    for _ in range(ROUNDS):
        picked = np.array(choose(support, label, pool, task.n_way))
        pool = np.setdiff1d(pool, picked)
        useful = picked[np.isin(data.y[picked], own)]
        support = np.concatenate([support, useful])
        label = np.concatenate([label, [int(np.flatnonzero(own == data.y[v])[0]) for v in useful]]).astype(np.int64)
    return support, label


def compare(model: Estimator, data: Dataset, tasks: int, wide: bool) -> dict[str, object]:
    sampler = EpisodeSampler(data, "test", min(5, len(data.split.test)), 1, 5)
    scores: dict[str, list[float]] = {"suggested": [], "random": []}
    for t in range(tasks):
        task, rng = sampler[t], np.random.default_rng(t)
        choices: dict[str, Choose] = {
            "suggested": lambda s, y, pool, k: [
                found.node for found in fewnode.suggest(model, data, s, y, k, pool.tolist())
            ],
            "random": lambda s, y, pool, k, rng=rng: rng.choice(pool, k, replace=False).tolist(),  # type: ignore[misc]
        }
        for name, choose in choices.items():
            support, label = grown(data, task, choose, wide)
            p = model.predict_proba(data.graph, support, label, task.query)
            scores[name].append(float((p.argmax(axis=1) == task.query_y).mean()))
    gain = np.subtract(scores["suggested"], scores["random"])[None]
    means = {name: str(interval(np.array(values)[None])) for name, values in scores.items()}
    return {**means, "gain": str(Interval(interval(gain).mean, interval(gain).ci95)), "tasks": tasks}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="+")
    parser.add_argument("--tasks", type=int, default=50)
    options = parser.parse_args()
    torch.set_num_threads(1)
    for network in options.networks:
        data = fewnode.load(network)
        model = Estimator("gpn-plus").fit(data)
        for wide in (False, True):
            found = {"network": data.name, "pool": "all test classes" if wide else "classes of the task"}
            print(json.dumps(found | compare(model, data, options.tasks, wide)), flush=True)


if __name__ == "__main__":
    main()
