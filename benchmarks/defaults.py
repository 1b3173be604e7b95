"""How GPN's defaults were chosen: validation accuracy by dropout rate and attribute scaling. No test class is used.

    python benchmarks/defaults.py debian amazon_clothing_test20.npz coauthor_cs.npz

One JSON line for each row of the study `dropout` in docs/results.toml: network, scaling and, for each rate, the mean
validation accuracy in % and the difference between the best and the worst seed.
"""

from __future__ import annotations

import argparse
import itertools
import json

import numpy as np
import torch

from fewnode.datasets import load
from fewnode.episodes import EpisodeSampler
from fewnode.methods.gpn import GPN


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="+")
    parser.add_argument("--seeds", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    for source, scaling in itertools.product(arguments.data, ("raw", "l2", "tf-idf")):
        data = load(source)
        row: list[str | float] = [data.name, scaling]
        for dropout in GPN.DROPOUTS:
            scores = []
            for seed in range(arguments.seeds):
                train, valid = EpisodeSampler(data, "train", 5, 5, seed=seed), EpisodeSampler(data, "valid", 5, 5)
                model = GPN(scaling=scaling, dropout=dropout, seed=seed).fit(data.graph, train, valid)
                scores.append(100 * model.history_.best.accuracy)
            row += [round(float(np.mean(scores)), 1), round(max(scores) - min(scores), 1)]
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
