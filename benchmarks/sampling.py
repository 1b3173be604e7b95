"""What neighbour sampling costs in accuracy: training alone samples, evaluation is exact.

    python benchmarks/sampling.py --seeds 3 --fanouts 0 2 5 10

5-way 5-shot on the embedded Debian network and on a generated one whose degrees are 50 on average; the same 200 test
tasks for all. The difference to the exact training is paired over tasks, its interval is over tasks and seeds.
"""

from __future__ import annotations

import argparse
import json
import time

import numpy as np
import torch

from fewnode.datasets import load
from fewnode.estimator import Estimator
from fewnode.evaluation import evaluate
from fewnode.graph import ClassSplit, Dataset, Graph


def generated(nodes: int = 20_000, degree: int = 50, classes: int = 40, width: int = 64) -> Dataset:
    rng = np.random.default_rng(0)
    y = rng.integers(0, classes, nodes)
    order = np.argsort(y, kind="stable")
    start = np.searchsorted(y[order], np.arange(classes + 1))
    one = rng.integers(0, nodes, nodes * degree // 2)
    inside = rng.random(one.size) < 0.3
    own = order[(start[y[one]] + rng.random(one.size) * (start[y[one] + 1] - start[y[one]])).astype(int)]
    other = np.where(inside, own, rng.integers(0, nodes, one.size))
    x = rng.standard_normal((classes, width))[y] + 6 * rng.standard_normal((nodes, width))
    split = ClassSplit(tuple(range(20)), tuple(range(20, 30)), tuple(range(30, 40)))
    return Dataset(Graph.from_edges(np.stack([one, other]), nodes, x.astype(np.float32)), y, split, name="generated")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--fanouts", type=int, nargs="+", default=[0, 2, 5, 10])
    parser.add_argument("--episodes", type=int, default=300)
    parser.add_argument("--network", choices=["debian", "generated"], help="Default: both.")
    given = parser.parse_args()
    torch.set_num_threads(1)
    made = {"debian": lambda: load("debian"), "generated": generated}
    for data in (made[name]() for name in ([given.network] if given.network else made)):
        exact: np.ndarray | None = None
        for fanout in given.fanouts:
            scores, spent = [], 0.0
            for seed in range(given.seeds):
                start = time.process_time()
                model = Estimator("gpn", 5, 5, seed=seed, episodes=given.episodes, fanout=fanout, patience=1000).fit(
                    data
                )
                spent += time.process_time() - start
                scores.append(evaluate(model, data, 5, 5, tasks=200).per_task["accuracy"][0])
            found = np.array(scores)
            exact = found if exact is None else exact
            difference = found - exact
            row = {
                "network": data.name,
                "fanout": fanout or "all",
                "accuracy": round(100 * float(found.mean()), 2),
                "difference": round(100 * float(difference.mean()), 2),
                "ci95": round(196 * float(difference.std(ddof=1)) / difference.size**0.5, 2),
                "training_processor_seconds": round(spent / given.seeds, 1),
            }
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
