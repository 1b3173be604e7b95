"""How GPN's defaults were chosen: validation accuracy by dropout rate and attribute scaling. No test class is used.

python benchmarks/defaults.py debian ../shared/data/amazon_clothing_test20.npz ../shared/data/coauthor_cs.npz
"""

from __future__ import annotations

import argparse
import itertools

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
    print("| network | scaling | dropout | validation accuracy, % | range over seeds |\n|---|---|---|---|---|")
    for source in arguments.data:
        data = load(source)
        for scaling, dropout in itertools.product(("raw", "l2", "tf-idf"), GPN.DROPOUTS):
            scores = []
            for seed in range(arguments.seeds):
                train, valid = EpisodeSampler(data, "train", 5, 5, seed=seed), EpisodeSampler(data, "valid", 5, 5)
                model = GPN(scaling=scaling, dropout=dropout, seed=seed).fit(data.graph, train, valid)
                scores.append(100 * model.history_.best.accuracy)
            spread = max(scores) - min(scores)
            print(f"| {data.name} | {scaling} | {dropout} | {np.mean(scores):.1f} | {spread:.1f} |", flush=True)


if __name__ == "__main__":
    main()
