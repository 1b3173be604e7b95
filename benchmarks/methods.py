"""Every method on the same test tasks: accuracy with 95 % intervals and seconds to train, as a Markdown table.

    python benchmarks/methods.py ../shared/data/amazon_clothing_test20.npz ../shared/data/coauthor_cs.npz

Each method is trained with `--seeds` seeds at its default options and answers the same `--tasks` 5-way 5-shot tasks.
"""

from __future__ import annotations

import argparse
import time

import torch

from fewnode.datasets import load
from fewnode.estimator import Estimator
from fewnode.evaluation import evaluate, join
from fewnode.methods.table import METHODS
from fewnode.report.names import written


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="+")
    parser.add_argument("--method", action="append", choices=list(METHODS))
    parser.add_argument("--features", choices=["degree", "svd", "walks"], help="for networks without attributes")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--tasks", type=int, default=500)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    print("| network | method | accuracy, % | macro-F1, % | weighted F1, % | seconds a training |", flush=True)
    print("|---|---|---|---|---|---|", flush=True)
    for source in arguments.data:
        data = load(source)
        for name in arguments.method or METHODS:
            results, seconds = [], 0.0
            for seed in range(arguments.seeds):
                start = time.process_time()
                model = Estimator(name, 5, 5, seed=seed, features=arguments.features).fit(data)
                seconds += (time.process_time() - start) / arguments.seeds
                results.append(evaluate(model, data, 5, 5, tasks=arguments.tasks))
            result = join(results)
            scores = " | ".join(str(result[metric]) for metric in ("accuracy", "macro_f1", "weighted_f1"))
            label = written(name) + (f", {arguments.features}" if arguments.features else "")
            print(f"| {data.name} | {label} | {scores} | {seconds:.1f} |", flush=True)


if __name__ == "__main__":
    main()
